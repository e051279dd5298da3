//! Reports as JUnit XML, for CI systems: one `<testsuite>` a run, one `<testcase>` a server.
//!
//! There is no standard. This is what Jenkins' xUnit plugin (`junit-10.xsd`), Maven Surefire and GitLab read;
//! `tests/formats/junit.xsd` is their common part.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::{drift, told};
use crate::judge::{Report, Verdict};
use crate::ledger::Unwatched;
use crate::words::printable_lines;

/// The document. `fail` is a failure, `unknown` an error; `warn` passes, and is a failure too where `strict` is
/// asked for, as in `check`'s exit status. An entry that is broken is a failure, another that is not watched is skipped.
///
/// # Errors
///
/// None that are known: writing to memory does not fail.
pub fn document(reports: &[Report], unwatched: &[Unwatched], strict: bool) -> io::Result<String> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let count = |outcome| reports.iter().filter(|r| Outcome::of(r, strict) == outcome).count();
    let broken = unwatched.iter().filter(|entry| entry.broken).count();
    let (tests, failures) = ((reports.len() + unwatched.len()).to_string(), (count(Outcome::Failure) + broken).to_string());
    let (errors, skipped) = (count(Outcome::Error).to_string(), (unwatched.len() - broken).to_string());
    let time = seconds(reports.iter().map(|r| r.timings.total_ms).sum());
    let sums = [("tests", tests.as_str()), ("failures", &failures), ("errors", &errors), ("time", &time)];
    let all = writer.create_element("testsuites").with_attribute(("name", "stdiowatch")).with_attributes(sums);
    all.write_inner_content(|writer| {
        let suite = writer.create_element("testsuite").with_attribute(("name", "stdiowatch")).with_attributes(sums);
        let suite = suite.with_attribute(("skipped", skipped.as_str())).with_attribute(("timestamp", begun(reports).as_str()));
        suite.write_inner_content(|writer| {
            reports.iter().try_for_each(|report| testcase(writer, report, strict))?;
            unwatched.iter().try_for_each(|entry| not_tested(writer, entry))
        })?;
        Ok(())
    })?;
    let mut text = String::from_utf8(writer.into_inner()).map_err(io::Error::other)?;
    text.push('\n');
    Ok(text)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failure,
    Error,
}

impl Outcome {
    fn of(report: &Report, strict: bool) -> Outcome {
        match report.verdict {
            Verdict::Pass => Outcome::Passed,
            Verdict::Warn if strict => Outcome::Failure,
            Verdict::Warn => Outcome::Passed,
            Verdict::Unknown => Outcome::Error,
            Verdict::Fail => Outcome::Failure,
        }
    }

    fn element(self) -> Option<&'static str> {
        match self {
            Outcome::Passed => None,
            Outcome::Failure => Some("failure"),
            Outcome::Error => Some("error"),
        }
    }
}

fn testcase(writer: &mut Writer<Vec<u8>>, report: &Report, strict: bool) -> io::Result<()> {
    let (name, time) = (text(&report.server), seconds(report.timings.total_ms));
    let case = writer.create_element("testcase").with_attribute(("name", name.as_str()));
    let case = case.with_attribute(("classname", "stdiowatch")).with_attribute(("time", time.as_str()));
    case.write_inner_content(|writer| {
        let outcome = Outcome::of(report, strict).element();
        if let Some(element) = outcome {
            let kind = told::problems(report).first().map_or("unknown", |finding| finding.code);
            let message = text(&told::why(report).unwrap_or_default());
            let element = writer.create_element(element).with_attribute(("type", kind)).with_attribute(("message", message.as_str()));
            element.write_text_content(BytesText::new(&text(&findings(report))))?;
        }
        let mut out = if outcome.is_none() { findings(report) } else { String::new() };
        out.push_str(&told::seen(report));
        tell(writer, "system-out", &out)?;
        tell(writer, "system-err", &report.stderr_tail)
    })?;
    Ok(())
}

/// An entry of a file of which nothing was launched.
fn not_tested(writer: &mut Writer<Vec<u8>>, entry: &Unwatched) -> io::Result<()> {
    let (name, message) = (text(&entry.name), text(&told::unwatched(entry)));
    let case = writer.create_element("testcase").with_attribute(("name", name.as_str()));
    let case = case.with_attribute(("classname", "stdiowatch")).with_attribute(("time", "0.000"));
    case.write_inner_content(|writer| {
        let element =
            if entry.broken { writer.create_element("failure").with_attribute(("type", "config.broken")) } else { writer.create_element("skipped") };
        element.with_attribute(("message", message.as_str())).write_empty().map(drop)
    })?;
    Ok(())
}

fn tell(writer: &mut Writer<Vec<u8>>, element: &'static str, told: &str) -> io::Result<()> {
    if !told.trim().is_empty() {
        writer.create_element(element).write_text_content(BytesText::new(&text(told)))?;
    }
    Ok(())
}

/// Every finding, what to do about those that weigh something, and what changed.
fn findings(report: &Report) -> String {
    let mut out = String::new();
    for finding in told::by_weight(report) {
        out.push_str(&format!("{} {}: {}\n", finding.severity, finding.code, told::finding(finding)));
        if let Some(check) = crate::judge::check(finding.code).filter(|_| finding.severity > crate::judge::Severity::Info) {
            out.push_str(&format!("  What to do: {}\n", check.mend));
        }
    }
    for line in drift::lines(&report.drift) {
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// When the first probe began: UTC, without a zone, as Ant's formatter writes it and the stricter schemas want it.
fn begun(reports: &[Report]) -> String {
    let first = reports.iter().map(|r| r.started_at.as_str()).min().unwrap_or_default();
    first.get(..19).unwrap_or("1970-01-01T00:00:00").to_owned()
}

/// Seconds, to the millisecond: more digits are an error to some schemas.
fn seconds(ms: f64) -> String {
    format!("{:.3}", ms / 1000.0)
}

/// `text` as characters that XML 1.0 has (2.2), other controls escaped for people, and as nothing that a reader of
/// such files acts on: Jenkins and GitLab fetch the file named in `[[ATTACHMENT|FILE]]`.
fn text(text: &str) -> String {
    let text = printable_lines(text).replace('\u{fffe}', "\\u{fffe}").replace('\u{ffff}', "\\u{ffff}");
    text.replace("[[ATTACHMENT", "[ [ATTACHMENT")
}
