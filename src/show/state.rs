//! A server's state in one word and one sentence, the same on every surface.

use super::told::span;
use crate::judge::{Finding, PEER_HARMED, Report, Severity, Verdict};
use crate::ledger::{Health, ServerState};
use crate::words::{Moment, printable};

/// The longest sentence, in characters: with everything else, one server fits in 1 KiB.
const MAX_SENTENCE: usize = 120;

/// What a server is, in one word. None of them contains a word for a verdict.
pub(super) const fn word(health: Health) -> &'static str {
    match health {
        Health::NotProbed => "unprobed",
        Health::Stale { .. } => "stale",
        Health::Known(Verdict::Pass | Verdict::Warn) => "up",
        Health::Known(Verdict::Unknown) => "unknown",
        Health::Known(Verdict::Fail) => "down",
    }
}

/// Why a server is not simply well, in one bounded sentence; `None` if it is.
pub(super) fn sentence(server: &ServerState, now: Moment) -> Option<String> {
    if let Some(held) = &server.held {
        return Some(printable(&format!("{PEER_HARMED}: {}; probing is held until a person resumes it", held.why), MAX_SENTENCE));
    }
    match server.health(now) {
        Health::NotProbed => Some("not probed yet".to_owned()),
        Health::Stale { .. } => {
            let age = server.last.as_ref().map(|(at, _)| now.since(*at)).unwrap_or_default();
            Some(format!("the next probe is overdue: the last one ended {} ago", span(age)))
        }
        Health::Known(Verdict::Pass) => None,
        Health::Known(verdict @ (Verdict::Warn | Verdict::Unknown | Verdict::Fail)) => Some(why(server, verdict)),
    }
}

fn why(server: &ServerState, standing: Verdict) -> String {
    let Some(report) = server.report() else { return String::new() };
    if report.verdict.is_up() && !standing.is_up() {
        return "the last probe was good; more in a row are awaited".to_owned();
    }
    match telling(report) {
        Some(finding) => printable(&format!("{}: {}", finding.code, finding.message), MAX_SENTENCE),
        None => "the last probe says nothing about it".to_owned(),
    }
}

/// The finding that decided: the first of the worst severity, unless that is `info`.
pub(super) fn telling(report: &Report) -> Option<&Finding> {
    let worst = report.findings.iter().map(|f| f.severity).max().filter(|s| *s > Severity::Info)?;
    report.findings.iter().find(|f| f.severity == worst)
}
