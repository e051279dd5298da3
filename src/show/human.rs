//! A report for people: first what is wrong and what to do about it, then what was seen.

use std::fmt::Write as _;

use crate::judge::{Finding, Report, Severity, Verdict, check};
use crate::probe::EndedBy;
use crate::words::printable;

/// Lines of stderr that are shown with a failure.
const STDERR_LINES: usize = 12;

/// The reports, one after the other.
#[must_use]
pub fn reports(reports: &[Report], colours: bool) -> String {
    let style = Style { colours };
    let texts: Vec<String> = reports.iter().map(|report| one(report, style)).collect();
    texts.join("\n")
}

#[derive(Clone, Copy)]
struct Style {
    colours: bool,
}

impl Style {
    fn verdict(self, verdict: Verdict) -> String {
        let (word, colour) = match verdict {
            Verdict::Pass => ("PASS", "32"),
            Verdict::Warn => ("WARN", "33"),
            Verdict::Unknown => ("UNKNOWN", "35"),
            Verdict::Fail => ("FAIL", "31"),
        };
        if self.colours { format!("\x1b[1;{colour}m{word}\x1b[0m") } else { word.to_owned() }
    }

    fn dim(self, text: &str) -> String {
        if self.colours { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn one(report: &Report, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}  {}  {}", style.verdict(report.verdict), printable(&report.server, 100), headline(report));
    let told: Vec<&Finding> = by_weight(report);
    for finding in told.iter().filter(|f| f.severity > Severity::Info) {
        tell(&mut out, finding, style);
    }
    let noted: Vec<String> = told.iter().filter(|f| f.severity == Severity::Info).map(|f| format!("{} ({})", f.message, f.code)).collect();
    if !noted.is_empty() {
        let _ = writeln!(out, "\n  Noted: {}.", noted.join("; "));
    }
    if !report.verdict.is_up() {
        tell_stderr(&mut out, report, style);
    }
    let seen = seen(report);
    if !seen.is_empty() {
        let _ = writeln!(out, "\n  Seen: {seen}.");
    }
    out
}

/// In one sentence, for somebody who has never read the specification.
pub(super) fn headline(report: &Report) -> &'static str {
    match report.verdict {
        Verdict::Pass => "a client that launched this server now could use it",
        Verdict::Warn => "a client that launched this server now could use it, but something should be mended",
        Verdict::Unknown => "nothing can be said about this server",
        Verdict::Fail => "a client that launched this server now could not rely on it",
    }
}

/// The worst first; those of one weight in the order of time.
pub(super) fn by_weight(report: &Report) -> Vec<&Finding> {
    let mut findings: Vec<&Finding> = report.findings.iter().collect();
    // What explains a failure comes before it.
    let explains = |f: &Finding| ["peer.", "probe.", "auth."].iter().any(|family| f.code.starts_with(family));
    findings.sort_by_key(|f| (std::cmp::Reverse(f.severity), !explains(f)));
    findings
}

fn tell(out: &mut String, finding: &Finding, style: Style) {
    let times = if finding.times > 1 { format!(", {} times", finding.times) } else { String::new() };
    let _ = writeln!(out, "\n  {}: {}", finding.severity, capitalised(&finding.message));
    let _ = writeln!(out, "    {}", style.dim(&format!("{}{times}: {}", finding.code, finding.evidence)));
    if let Some(check) = check(finding.code) {
        let _ = writeln!(out, "    What to do: {}", check.mend);
    }
}

pub(super) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

/// The end of stderr, line by line, escaped.
fn tell_stderr(out: &mut String, report: &Report, style: Style) {
    let lines: Vec<&str> = report.stderr_tail.lines().filter(|line| !line.trim().is_empty()).collect();
    // Few lines stand in the evidence already.
    let told = lines.len() <= 3 && report.findings.iter().any(|f| f.evidence.contains("stderr ends: "));
    if lines.is_empty() || told {
        return;
    }
    let shown = lines.len().min(STDERR_LINES);
    let _ = writeln!(out, "\n  The last {} on stderr:", if shown == 1 { "line".to_owned() } else { format!("{shown} lines") });
    for line in &lines[lines.len() - shown..] {
        let _ = writeln!(out, "    {}", style.dim(&printable(line, 300)));
    }
}

/// Era, server, lists, times: what was seen of the server.
fn seen(report: &Report) -> String {
    let mut parts = Vec::new();
    if let Some(era) = report.era {
        let version = report.protocol_version.as_deref().map(|v| format!(", protocol {v}")).unwrap_or_default();
        parts.push(format!("{era} era{version}"));
    }
    if let Some(info) = &report.server_info {
        parts.push(format!("{} {}", info.name, info.version).trim_end().to_owned());
    }
    let lists: Vec<String> = report.lists.each().into_iter().filter_map(|(kind, count)| Some(counted(count?, kind.word()))).collect();
    if !lists.is_empty() {
        parts.push(lists.join(", "));
    }
    let timings = &report.timings;
    if let Some(ms) = timings.startup_ms {
        parts.push(format!("first reply after {}", seconds(ms)));
    }
    if let Some(shutdown) = &report.shutdown {
        parts.push(ended(shutdown.ended_by, timings.shutdown_ms));
    }
    if let Some(rss) = report.usage.and_then(|u| u.max_rss_bytes) {
        parts.push(format!("{} MiB of memory", rss.div_ceil(1 << 20)));
    }
    if report.spawns > 0 {
        parts.push(format!("{} and {} in all", counted(report.spawns, "launches"), seconds(timings.total_ms)));
    }
    parts.join("; ")
}

pub(super) fn counted(count: usize, words: &str) -> String {
    let words = words.replace('_', " ");
    let word = if count == 1 { words.strip_suffix("es").filter(|w| w.ends_with("ch")).or_else(|| words.strip_suffix('s')) } else { None };
    format!("{count} {}", word.unwrap_or(&words))
}

pub(super) fn ended(by: EndedBy, ms: Option<f64>) -> String {
    let after = ms.map(|ms| format!(" after {}", seconds(ms))).unwrap_or_default();
    match by {
        EndedBy::Itself => "ended by itself".to_owned(),
        EndedBy::Eof => format!("ended at the end of its input{after}"),
        EndedBy::Sigterm => format!("ended by SIGTERM{after}"),
        EndedBy::Sigkill => format!("ended by SIGKILL{after}"),
    }
}

pub(super) fn seconds(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.0} ms") } else { format!("{:.1} s", ms / 1000.0) }
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
