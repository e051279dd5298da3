//! Reports for GitHub Actions: annotations, as workflow commands on stdout, and a step summary in Markdown.
//!
//! The runner acts on every line of stdout that begins with `::`, after blanks, and on `##[…]` anywhere in a line
//! (`ActionCommand.cs` of actions/runner). So no line here begins with anybody else's text, and a command's data are
//! escaped as `@actions/core` does.

use std::cmp::Reverse;
use std::fmt::Write as _;

use super::{drift, told};
use crate::judge::{Finding, Report, Severity, Verdict};
use crate::ledger::Unwatched;
use crate::words::printable;

/// GitHub shows so many annotations of one kind for one step, and drops the rest without a word.
const MAX_ANNOTATIONS: usize = 10;

/// An annotation's longest message, in bytes before escaping. GitHub cuts it at 64 KiB.
const MAX_MESSAGE: usize = 16 << 10;

/// The largest summary of a step, in bytes; GitHub refuses a larger one whole.
pub const MAX_SUMMARY: usize = 1 << 20;

/// The log: annotations for every finding that weighs something, the worst first, and a line for each server.
#[must_use]
pub fn annotations(reports: &[Report]) -> String {
    let mut out = String::new();
    for (kind, wanted) in [("error", [Severity::Fail, Severity::Unknown].as_slice()), ("warning", &[Severity::Warn])] {
        let found = found(reports, wanted);
        // The last one's place is taken by the line that says how many more there are.
        let shown = if found.len() > MAX_ANNOTATIONS { MAX_ANNOTATIONS - 1 } else { found.len() };
        for (report, finding) in &found[..shown] {
            let title = format!("{}: {}", report.server, finding.code);
            command(&mut out, kind, &title, &message(report, finding));
        }
        let more = found.len() - shown;
        if more > 0 {
            command(&mut out, kind, "stdiowatch", &format!("and {more} more of this kind: see the step summary, or --format json"));
        }
    }
    // Those of which there is nothing to find: never launched.
    for report in reports.iter().filter(|r| !r.verdict.is_up() && told::problems(r).is_empty()) {
        command(&mut out, "error", &report.server, &told::why(report).unwrap_or_default());
    }
    for report in reports {
        let why = told::why(report).map(|why| format!("  {why}")).unwrap_or_default();
        let _ = writeln!(out, "{}", told::line(&format!("{}  {}{why}", report.verdict.as_str().to_uppercase(), report.server)));
    }
    let _ = writeln!(out, "{}", told::summary(reports));
    out
}

/// The log's beginning: an annotation, at its place in its file, for every entry that is not watched.
#[must_use]
pub fn unwatched(entries: &[Unwatched]) -> String {
    let mut out = String::new();
    for (kind, broken, how) in [("error", true, "broken"), ("notice", false, "not watched")] {
        for entry in entries.iter().filter(|entry| entry.broken == broken).take(MAX_ANNOTATIONS) {
            let (file, title) = (property(&entry.file), property(&told::bounded(&format!("{} is {how}", entry.name), 200)));
            let place = format!("file={file},line={},col={}", entry.line, entry.column);
            let _ = writeln!(out, "::{kind} {place},title={title}::{}", data(&told::line(&entry.why)));
        }
    }
    out
}

/// The findings of these severities: the gravest first, then each server's first before any server's second.
fn found<'r>(reports: &'r [Report], wanted: &[Severity]) -> Vec<(&'r Report, &'r Finding)> {
    let of = |report: &'r Report| {
        let those = told::problems(report).into_iter().filter(|f| wanted.contains(&f.severity));
        those.enumerate().map(move |(place, finding)| (place, report, finding)).collect::<Vec<_>>()
    };
    let mut found: Vec<_> = reports.iter().flat_map(of).collect();
    found.sort_by_key(|(place, _, finding)| (Reverse(finding.severity), *place));
    found.into_iter().map(|(_, report, finding)| (report, finding)).collect()
}

fn message(report: &Report, finding: &Finding) -> String {
    let mut message = told::finding(finding);
    for line in drift::lines_of(&report.drift, finding.code) {
        let _ = write!(message, "\n{line}");
    }
    if let Some(check) = crate::judge::check(finding.code) {
        let _ = write!(message, "\nWhat to do: {}", check.mend);
    }
    message
}

/// `::KIND title=TITLE::MESSAGE`
fn command(out: &mut String, kind: &str, title: &str, message: &str) {
    let title = property(&told::bounded(title, 200));
    let cut = (0..=MAX_MESSAGE.min(message.len())).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
    let _ = writeln!(out, "::{kind} title={title}::{}", data(&message[..cut]));
}

/// The value of one of a command's properties.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A command's data: what the runner decodes again.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The step summary, in no more than `room` bytes: a table of the servers, then what is wrong with each and what
/// changed.
#[must_use]
pub fn summary(reports: &[Report], unwatched: &[Unwatched], room: usize) -> String {
    let mut page = Page { text: String::new(), room: room.min(MAX_SUMMARY) };
    let head = "| server | verdict | why | answered after | tools |\n|---|---|---|---|---|\n";
    page.push(&format!("### stdiowatch: {}\n\n{head}", told::summary(reports)));
    let mut worst_first: Vec<&Report> = reports.iter().collect();
    worst_first.sort_by_key(|report| Reverse(report.verdict));
    let fits = unwatched.iter().filter(|entry| entry.broken).all(|entry| page.push(&broken(entry)));
    let fits = fits && worst_first.iter().all(|report| page.push(&row(report)));
    if fits {
        let _ = worst_first.iter().all(|report| page.push(&details(report)));
    }
    page.text
}

/// A text with a bound: what does not fit whole is left out, and that is said.
struct Page {
    text: String,
    room: usize,
}

impl Page {
    const CUT: &str = "\n\n*There is more than fits here: see `--format json`.*\n";

    fn push(&mut self, part: &str) -> bool {
        let fits = self.text.len() + part.len() + Page::CUT.len() <= self.room;
        if fits {
            self.text.push_str(part);
        } else if self.text.len() + Page::CUT.len() <= self.room {
            self.text.push_str(Page::CUT);
        }
        fits
    }
}

fn row(report: &Report) -> String {
    let sign = match report.verdict {
        Verdict::Pass => "✅",
        Verdict::Warn => "⚠️",
        Verdict::Unknown => "❔",
        Verdict::Fail => "❌",
    };
    let why = told::why(report).map(|why| markdown(&why)).unwrap_or_default();
    let startup = report.timings.startup_ms.map(told::duration).unwrap_or_default();
    let tools = report.lists.tools.map(|n| n.to_string()).unwrap_or_default();
    format!("| {} | {sign} {} | {why} | {startup} | {tools} |\n", markdown(&printable(&report.server, 100)), report.verdict)
}

fn broken(entry: &Unwatched) -> String {
    format!("| {} | ❌ broken entry | {} | | |\n", markdown(&printable(&entry.name, 100)), markdown(&told::unwatched(entry)))
}

fn details(report: &Report) -> String {
    let mut out = String::new();
    let problems = told::problems(report);
    let changes = drift::lines(&report.drift);
    if problems.is_empty() && changes.is_empty() {
        return out;
    }
    let _ = write!(out, "\n#### {}\n\n", markdown(&printable(&report.server, 100)));
    for finding in problems {
        let _ = writeln!(out, "- **{}** `{}`: {}", finding.severity, finding.code, markdown(&told::finding(finding)));
    }
    if !changes.is_empty() {
        // Each line begins with a sign of ours, so none can end the block.
        let _ = write!(out, "\n```diff\n{}\n```\n", changes.join("\n"));
    }
    let stderr = told::stderr_lines(report);
    if !report.verdict.is_up() && !stderr.is_empty() {
        let quoted: Vec<String> = stderr.iter().map(|line| format!("    {line}")).collect();
        let _ = write!(out, "\n<details><summary>The end of stderr</summary>\n\n{}\n\n</details>\n", quoted.join("\n"));
    }
    out
}

/// `text` as text in GitHub's Markdown, also in a cell of a table: everything that means something there, or in
/// HTML, is written as a character reference.
fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation() && !matches!(c, ',' | '/' | '-' | '(' | ')') {
            let _ = write!(out, "&#{};", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}
