//! What of a server's probes is worth a line in the log: a change of what it counts as, another reason for what it
//! does, a change of what it lists, that it is held.

use tracing::{info, warn};

use crate::judge::{DriftStatus, Finding, Report, Severity, Verdict};
use crate::ledger::ServerState;
use crate::words::{Moment, printable};

/// So many reasons are told of one row of probes that were not well: some say something else each time.
const REASONS: usize = 5;

/// What was told since a server was last well.
#[derive(Debug, Default)]
pub(super) struct News {
    reasons: Vec<String>,
}

impl News {
    /// Tells what is new about a server by a probe that came to `report` and ended at `now`; `change` is what it
    /// counted as before, if it counts as something else now.
    pub(super) fn tell(&mut self, state: &ServerState, change: Option<Option<Verdict>>, report: &Report, now: Moment) {
        let is_new = self.is_new(report);
        let verdict = state.health(now).verdict();
        let server = state.name.as_str();
        match change {
            Some(before) => {
                let was = before.map_or("not probed", Verdict::as_str);
                told(state, verdict, report, &format!("{server}: {was} → {}", verdict.as_str()));
            }
            None if is_new && verdict == report.verdict => {
                told(state, verdict, report, &format!("{server}: {}, for another reason", verdict.as_str()));
            }
            // One that the thresholds hold back.
            None if is_new => {
                told(state, verdict, report, &format!("{server}: {}, and still counts as {}", report.verdict.as_str(), verdict.as_str()))
            }
            None => {}
        }
        if state.schema.changed == Some(now) || state.probes == 1 && report.drift.status == DriftStatus::Differs {
            tell_drift(state, report);
        }
    }

    /// Whether a probe was not well for a reason that was not told yet.
    fn is_new(&mut self, report: &Report) -> bool {
        if report.verdict.is_up() {
            self.reasons.clear();
            return false;
        }
        let reason = worst(report).map(|found| format!("{} {} {}", found.code, found.message, shape(&found.evidence))).unwrap_or_default();
        let is_new = self.reasons.len() < REASONS && !self.reasons.contains(&reason);
        if is_new {
            self.reasons.push(reason);
        }
        is_new
    }
}

/// The finding that decided; none of those that are only worth knowing.
fn worst(report: &Report) -> Option<&Finding> {
    let worst = report.findings.iter().map(|f| f.severity).max().filter(|s| *s > Severity::Info)?;
    report.findings.iter().find(|f| f.severity == worst)
}

/// A text without what is another one each time: times, pids, addresses, identifiers.
fn shape(text: &str) -> String {
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    words.map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "#" } else { word }).collect()
}

/// One line, with what was found and what shows it.
fn told(state: &ServerState, verdict: Verdict, report: &Report, what: &str) {
    let (server, verdict) = (state.name.as_str(), verdict.as_str());
    match worst(report) {
        None => info!(server, verdict, "{what}"),
        Some(f) if report.verdict.is_up() => info!(server, verdict, code = f.code, "{what}: {}", f.message),
        Some(f) => {
            let evidence = printable(&f.evidence, 400);
            warn!(server, verdict, code = f.code, evidence, "{what}: {}", f.message);
        }
    }
}

/// A server that is held: why, for how long, and what ends it.
pub(super) fn tell_held(state: &ServerState, keeps: bool) {
    let Some(held) = &state.held else { return };
    let lasts = if keeps { "after a restart too" } else { "until a restart, for no state directory is ours to keep that in" };
    warn!(
        server = state.name.as_str(),
        why = held.why,
        since = held.since.rfc3339(),
        "probing is held, {lasts}, since it may be what ended a live copy; to resume it: POST /-/resume/{} (serve --enable-actions), \
         or see \"Resuming after harm\" in docs/safety.md",
        state.name
    );
}

/// One line for each change of what a server lists.
fn tell_drift(state: &ServerState, report: &Report) {
    let drift = &report.drift;
    let sha256 = state.schema.listed.as_ref().map(|listed| listed.digest.to_string());
    let classes: Vec<&str> = drift.classes.keys().map(|class| class.as_str()).collect();
    let bounded = |names: Vec<&str>| printable(&names.join(", "), 400);
    let mut changed: Vec<&str> = drift.changed.iter().map(|c| c.tool.as_str()).collect();
    changed.dedup();
    warn!(
        server = state.name.as_str(),
        sha256,
        status = drift.status.as_str(),
        classes = classes.join(", "),
        added = bounded(drift.added.iter().map(String::as_str).collect()),
        removed = bounded(drift.removed.iter().map(String::as_str).collect()),
        changed = bounded(changed),
        upgrade = drift.upgrade,
        "{}: what it lists has changed",
        state.name
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Reference, Rules, judge};
    use crate::probe::{Observation, Peers, Phase};
    use crate::words::ServerName;

    fn report(verdict: Verdict, code: &'static str, evidence: &str) -> Report {
        let nothing = Observation {
            launches: vec![],
            judged: 0,
            total: std::time::Duration::from_secs(1),
            cancelled: false,
            peers: Peers::default(),
            container: None,
        };
        let finding = |severity| {
            let (message, evidence) = ("a message".to_owned(), evidence.to_owned());
            Finding { code, severity, phase: Phase::Handshake, message, evidence, times: 1 }
        };
        let findings = if verdict.is_up() { vec![] } else { vec![finding(Severity::Info), finding(Severity::Fail)] };
        let name = ServerName::new("s").unwrap();
        Report { verdict, findings, ..judge(&name, String::new(), &nothing, &Rules::default(), Reference::nothing()) }
    }

    #[test]
    fn a_reason_is_news_once_in_a_row_of_failures() {
        let mut news = News::default();
        let mut is_new = |code, evidence: &str| news.is_new(&report(Verdict::Fail, code, evidence));
        assert!(is_new("exit.before_reply", "at 1.234 s: pid 17: no module a"));
        assert!(!is_new("exit.before_reply", "at 2.345 s: pid 99: no module a"), "the same at another time");
        assert!(is_new("exit.before_reply", "at 2.345 s: pid 99: no key"));
        assert!(is_new("timeout.silent", "at 2.345 s: pid 99: no key"));
        assert!(!is_new("exit.before_reply", "at 3.456 s: pid 7: no module a"), "it was told before");
        assert!(is_new("a", "") && is_new("b", "") && !is_new("c", ""), "a bounded number of them");
        assert!(!news.is_new(&report(Verdict::Pass, "", "")));
        assert!(news.is_new(&report(Verdict::Fail, "exit.before_reply", "at 1.234 s: pid 17: no module a")), "another row");
    }
}
