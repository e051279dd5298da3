//! A server's state in one word and one sentence, the same on every surface.

use std::time::Duration;

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

/// Why a server counts as failing, in one word: by its last report, or by that of its last failure while more good ones
/// are awaited. `None` if it does not count so, whatever its last report says.
pub(super) fn reason(server: &ServerState, now: Moment) -> Option<&'static str> {
    if server.health(now).verdict() != Verdict::Fail {
        return None;
    }
    let failed = server.last_failure.as_ref().map(|(_, report)| report.as_ref());
    server.report().and_then(|report| report.reason).or(failed.and_then(|report| report.reason)).map(|reason| reason.as_str())
}

/// Since when a server has counted as what it counts as: one that is overdue, since its verdict expired.
pub(super) fn since(server: &ServerState, now: Moment) -> Option<Moment> {
    match (server.health(now), &server.last) {
        (Health::Stale { .. }, Some((last, _))) => Some(after(*last, server.expires.saturating_sub(last.up))),
        (Health::Known(_), _) if server.held.is_some() => server.held.as_ref().map(|held| held.since),
        (Health::Known(_) | Health::NotProbed | Health::Stale { .. }, _) => server.since,
    }
}

/// The moment so long after another.
fn after(moment: Moment, time: Duration) -> Moment {
    Moment { up: moment.up + time, unix_ms: moment.unix_ms.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)) }
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
