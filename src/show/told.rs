//! What every report for people tells, in the same words wherever it is read: which finding decided, what a
//! finding says, what was seen of the server.

use std::cmp::Reverse;
use std::time::Duration;

use crate::judge::{Finding, Report, Severity, Verdict};
use crate::ledger::Unwatched;
use crate::probe::EndedBy;
use crate::words::printable;

/// The longest line of somebody else's text, in characters.
const MAX_LINE: usize = 2000;

/// The worst first, and what explains a failure before it; those of one weight in the order of time.
pub(super) fn by_weight(report: &Report) -> Vec<&Finding> {
    let explains = |f: &Finding| ["peer.", "probe.", "auth."].iter().any(|family| f.code.starts_with(family));
    let mut findings: Vec<&Finding> = report.findings.iter().collect();
    findings.sort_by_key(|f| (Reverse(f.severity), !explains(f)));
    findings
}

/// Those that weigh something.
pub(super) fn problems(report: &Report) -> Vec<&Finding> {
    by_weight(report).into_iter().filter(|f| f.severity > Severity::Info).collect()
}

/// A finding in one line, without its code: what is wrong, and what shows it.
pub(super) fn finding(finding: &Finding) -> String {
    let times = if finding.times > 1 { format!(" ({} times)", finding.times) } else { String::new() };
    line(&format!("{}{times}: {}", finding.message, finding.evidence))
}

/// An entry of a file that is not watched: where it stands, and why.
pub(super) fn unwatched(entry: &Unwatched) -> String {
    line(&format!("{}:{}:{}: {}", entry.file, entry.line, entry.column, entry.why))
}

/// Why the server is not simply well, in one line; `None` if it is.
pub(super) fn why(report: &Report) -> Option<String> {
    match problems(report).first() {
        Some(finding) => Some(line(&format!("{}: {}", finding.code, finding.message))),
        None if !report.verdict.is_up() => Some("it was not launched".to_owned()),
        None => None,
    }
}

/// Somebody else's text as one line.
pub(super) fn line(text: &str) -> String {
    bounded(text, MAX_LINE)
}

/// Somebody else's text as one line of at most `max` characters, in which a CI system that reads its log finds no
/// command: GitHub's runner looks for `##[…]` everywhere.
pub(super) fn bounded(text: &str, max: usize) -> String {
    printable(text, max).replace("##[", "# #[")
}

/// The lines of stderr that say something, escaped.
pub(super) fn stderr_lines(report: &Report) -> Vec<String> {
    report.stderr_tail.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

/// Protocol, server, lists, times: what was seen of the server, in one line for somebody who is new to all of it.
/// Empty if nothing was launched.
pub(super) fn seen(report: &Report) -> String {
    let mut parts = Vec::new();
    if let Some(era) = report.era {
        let version = report.protocol_version.as_deref().map(|v| format!(" {v}")).unwrap_or_default();
        parts.push(format!("speaks MCP{version} ({era} era)"));
    }
    if let Some(info) = &report.server_info {
        parts.push(format!("calls itself {} {}", info.name, info.version).trim_end().to_owned());
    }
    let lists: Vec<String> = report.lists.each().into_iter().filter_map(|(kind, count)| Some(counted(count?, kind.word()))).collect();
    if !lists.is_empty() {
        parts.push(format!("offers {}", lists.join(", ")));
    }
    let timings = &report.timings;
    if let Some(ms) = timings.startup_ms {
        parts.push(format!("answered {} after its launch", duration(ms)));
    }
    if let Some(shutdown) = &report.shutdown {
        parts.push(ended(shutdown.ended_by, timings.shutdown_ms));
    }
    if let Some(rss) = report.usage.and_then(|u| u.max_rss_bytes) {
        parts.push(format!("used {} MiB of memory", rss.div_ceil(1 << 20)));
    }
    if report.spawns > 0 {
        // Asked in the era that is not its own, a server may end, or be of no use any more.
        let why = if report.spawns > 1 { " (each era is asked in a fresh one)" } else { "" };
        parts.push(format!("{}{why} and {} in all", counted(report.spawns, "launches"), duration(timings.total_ms)));
    }
    line(&parts.join("; "))
}

/// What a server with which all is well offers, and how soon it answered.
pub(super) fn briefly(report: &Report) -> String {
    let lists: Vec<String> = report.lists.each().into_iter().filter_map(|(kind, n)| Some(counted(n?, kind.word()))).collect();
    let startup = report.timings.startup_ms.map(|ms| format!("answered after {}", duration(ms)));
    let parts: Vec<String> = [Some(lists.join(", ")).filter(|l| !l.is_empty()), startup].into_iter().flatten().collect();
    parts.join("; ")
}

pub(super) fn ended(by: EndedBy, ms: Option<f64>) -> String {
    let after = ms.map(|ms| format!("{} after its input was closed", duration(ms)));
    match by {
        EndedBy::Itself => "ended by itself".to_owned(),
        EndedBy::Eof => format!("ended {}", after.unwrap_or_else(|| "when its input was closed".to_owned())),
        EndedBy::Sigterm => format!("had to be ended by SIGTERM{}", after.map(|a| format!(" {a}")).unwrap_or_default()),
        EndedBy::Sigkill => format!("had to be ended by SIGKILL{}", after.map(|a| format!(" {a}")).unwrap_or_default()),
    }
}

/// A number and what it counts, as people write it.
#[must_use]
pub fn counted(count: usize, words: &str) -> String {
    let words = words.replace('_', " ");
    let word = if count == 1 && words == "entries" {
        Some("entry")
    } else if count == 1 {
        words.strip_suffix("es").filter(|w| w.ends_with("ch")).or_else(|| words.strip_suffix('s'))
    } else {
        None
    };
    format!("{count} {}", word.unwrap_or(&words))
}

/// Milliseconds as people read them.
pub(super) fn duration(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.0} ms") } else { format!("{:.1} s", ms / 1000.0) }
}

/// A length of time, to its greatest unit.
pub(super) fn span(duration: Duration) -> String {
    match duration.as_secs() {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{} min", s / 60),
        s @ 7200..172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86400),
    }
}

/// `20 servers: 17 pass, 1 warn, 1 unknown, 1 fail`: every verdict that there is, the best first.
pub(super) fn summary<'r>(reports: impl IntoIterator<Item = &'r Report>) -> String {
    let verdicts: Vec<Verdict> = reports.into_iter().map(|report| report.verdict).collect();
    let counts = Verdict::ALL.map(|verdict| (verdict, verdicts.iter().filter(|v| **v == verdict).count()));
    let counts: Vec<String> = counts.into_iter().filter(|(_, count)| *count > 0).map(|(verdict, count)| format!("{count} {verdict}")).collect();
    let servers = counted(verdicts.len(), "servers");
    if counts.is_empty() { servers } else { format!("{servers}: {}", counts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_words() {
        assert_eq!(counted(1, "tools"), "1 tool");
        assert_eq!(counted(0, "resource_templates"), "0 resource templates");
        assert_eq!(counted(1, "launches"), "1 launch");
    }
}
