//! Reports for people: of each server first what is wrong and what to do about it, then what was seen. Of several
//! the sound ones first, in a line each, and the worst last: a terminal shows the end.

use std::fmt::Write as _;

use textwrap::{Options, WordSplitter};

use super::drift::{self, Entry};
use super::{diff, told};
use crate::judge::{ChangeClass, Finding, Report, Severity, Verdict, check};
use crate::words::printable;

/// Lines of stderr that are shown with a failure.
const STDERR_LINES: usize = 12;

/// The narrowest width that text is wrapped to, in columns.
const NARROWEST: usize = 30;

/// How it is to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// With colours: for a terminal.
    pub colours: bool,
    /// Wrapped to so many columns; `None` leaves lines as long as they are.
    pub width: Option<usize>,
    /// Only what is wrong.
    pub quiet: bool,
}

/// The reports, one after the other; of several, a line that counts them at the end.
#[must_use]
pub fn reports(reports: &[Report], look: Look) -> String {
    let mut in_order: Vec<&Report> = reports.iter().filter(|r| !(look.quiet && r.verdict == Verdict::Pass)).collect();
    in_order.sort_by_key(|report| report.verdict);
    let several = reports.len() > 1;
    let mut page = Page { out: String::new(), look };
    let mut was_long = false;
    for report in in_order {
        let is_long = !several || report.verdict != Verdict::Pass;
        if !page.out.is_empty() && (is_long || was_long) {
            page.out.push('\n');
        }
        was_long = is_long;
        if is_long { page.whole(report) } else { page.briefly(report) }
    }
    if several && !look.quiet {
        let _ = write!(page.out, "\n{}\n", told::summary(reports));
    }
    page.out
}

/// Colours, as numbers of ANSI's Select Graphic Rendition.
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const MAGENTA: &str = "35";
const DIM: &str = "2";

struct Page {
    out: String,
    look: Look,
}

impl Page {
    /// Everything about one server.
    fn whole(&mut self, report: &Report) {
        self.head(report, headline(report.verdict));
        for finding in told::problems(report) {
            self.problem(finding);
        }
        self.drift(report);
        let noted: Vec<String> =
            told::by_weight(report).iter().filter(|f| f.severity == Severity::Info).map(|f| format!("{} ({})", f.message, f.code)).collect();
        if !noted.is_empty() && !self.look.quiet {
            self.out.push('\n');
            self.paragraph(2, "", &format!("Noted: {}.", told::line(&noted.join("; "))), None);
        }
        if !report.verdict.is_up() {
            self.stderr(report);
        }
        let seen = told::seen(report);
        if !seen.is_empty() && !self.look.quiet {
            self.out.push('\n');
            self.paragraph(2, "", &format!("Seen: {seen}."), None);
        }
    }

    /// One line about a server with which all is well.
    fn briefly(&mut self, report: &Report) {
        self.head(report, &told::briefly(report));
    }

    fn head(&mut self, report: &Report, rest: &str) {
        let (word, colour) = match report.verdict {
            Verdict::Pass => ("PASS", GREEN),
            Verdict::Warn => ("WARN", YELLOW),
            Verdict::Unknown => ("UNKNOWN", MAGENTA),
            Verdict::Fail => ("FAIL", RED),
        };
        let text = format!("{word}  {}  {rest}", printable(&report.server, 100));
        let from = self.out.len();
        self.paragraph(0, "      ", text.trim_end(), None);
        if self.look.colours {
            self.out.replace_range(from..from + word.len(), &format!("\x1b[1;{colour}m{word}\x1b[0m"));
        }
    }

    fn problem(&mut self, finding: &Finding) {
        self.out.push('\n');
        self.paragraph(2, "", &format!("{}: {}", finding.severity, capitalised(&told::line(&finding.message))), None);
        let times = if finding.times > 1 { format!(", {} times", finding.times) } else { String::new() };
        self.paragraph(4, "  ", &format!("{}{times}: {}", finding.code, told::line(&finding.evidence)), Some(DIM));
        if let Some(check) = check(finding.code) {
            self.paragraph(4, "  ", &format!("What to do: {}", check.mend), None);
        }
    }

    fn drift(&mut self, report: &Report) {
        let (entries, more) = drift::entries(&report.drift);
        if entries.is_empty() {
            return;
        }
        self.out.push('\n');
        self.paragraph(2, "", "Since the schema was accepted:", None);
        for entry in entries {
            match entry {
                Entry::Removed(_) => self.paragraph(4, "    ", &entry.line(), Some(RED)),
                Entry::Added(_) => self.paragraph(4, "    ", &entry.line(), Some(GREEN)),
                Entry::Changed(change) => match (change.class, &change.old, &change.new) {
                    (ChangeClass::Description, Some(old), Some(new)) => {
                        self.paragraph(4, "    ", &format!("! {}", drift::head(change)), Some(YELLOW));
                        self.paragraph(8, "", &diff::words(old, new), None);
                    }
                    _ => self.paragraph(4, "    ", &entry.line(), Some(YELLOW)),
                },
            }
        }
        if more > 0 {
            self.paragraph(4, "", &format!("and {more} more"), None);
        }
    }

    /// The end of stderr, line by line. Each has a mark of ours in front: a CI system that reads this log must not
    /// take the server's words for commands.
    fn stderr(&mut self, report: &Report) {
        let lines = told::stderr_lines(report);
        // Few lines stand in the evidence already.
        let told = lines.len() <= 3 && report.findings.iter().any(|f| f.evidence.contains("stderr ends: "));
        if lines.is_empty() || told {
            return;
        }
        let shown = lines.len().min(STDERR_LINES);
        self.out.push('\n');
        let what = if shown == 1 { "line".to_owned() } else { format!("{shown} lines") };
        self.paragraph(2, "", &format!("The last {what} on stderr:"), None);
        for line in &lines[lines.len() - shown..] {
            self.paragraph(4, "| ", &format!("| {}", told::bounded(line, 300)), Some(DIM));
        }
    }

    /// `text` on a line of its own, or on several, indented by so many columns, those after the first by `hanging`
    /// as well.
    fn paragraph(&mut self, indent: usize, hanging: &str, text: &str, colour: Option<&str>) {
        let first = " ".repeat(indent);
        let later = format!("{first}{hanging}");
        let lines = match self.look.width {
            None => vec![format!("{first}{text}")],
            Some(width) => {
                let options = Options::new(width.max(NARROWEST)).initial_indent(&first).subsequent_indent(&later);
                let wrapped = textwrap::wrap(text, options.word_splitter(WordSplitter::NoHyphenation));
                wrapped.into_iter().map(|line| line.into_owned()).collect()
            }
        };
        for line in lines {
            let _ = match colour.filter(|_| self.look.colours) {
                Some(colour) => writeln!(self.out, "\x1b[{colour}m{line}\x1b[0m"),
                None => writeln!(self.out, "{line}"),
            };
        }
    }
}

/// In one sentence, for somebody who has never read the specification.
fn headline(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "a client that launched this server now could use it",
        Verdict::Warn => "a client that launched this server now could use it, but something should be mended",
        Verdict::Unknown => "nothing can be said about this server",
        Verdict::Fail => "a client that launched this server now could not rely on it",
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}
