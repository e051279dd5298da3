use quick_xml::Reader;
use quick_xml::events::Event;

use super::fixture::{HOSTILE, drift, finding, hostile, report};
use crate::judge::{Report, Severity};
use crate::ledger::Unwatched;
use crate::show::junit;

/// An element's name, its attributes and its text.
type Element = (String, Vec<(String, String)>, String);

/// The document's elements in order, each with its attributes and its text, as a conforming reader has them.
fn elements(xml: &str) -> Vec<Element> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let mut found: Vec<Element> = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(element) | Event::Empty(element) => {
                let name = element.name().as_ref().to_owned();
                let attribute = |a: quick_xml::events::attributes::Attribute<'_>| {
                    let value = quick_xml::escape::unescape(&a.value).unwrap().into_owned();
                    (a.key.as_ref().to_owned(), value)
                };
                found.push((name, element.attributes().map(|a| attribute(a.unwrap())).collect(), String::new()));
            }
            Event::Text(text) => {
                if let Some(last) = found.last_mut() {
                    last.2.push_str(&text);
                }
            }
            Event::GeneralRef(reference) => {
                let text = format!("&{};", &*reference);
                found.last_mut().unwrap().2.push_str(&quick_xml::escape::unescape(&text).unwrap());
            }
            Event::Eof => return found,
            Event::End(_) | Event::Decl(_) => {}
            other @ (Event::CData(_) | Event::Comment(_) | Event::PI(_) | Event::DocType(_)) => panic!("{other:?} is not ours"),
        }
    }
}

fn document(reports: &[Report], strict: bool) -> String {
    junit::document(reports, &[], strict).unwrap()
}

fn attribute<'e>(element: &'e Element, name: &str) -> &'e str {
    element.1.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
}

fn several() -> Vec<Report> {
    vec![
        report("sound", vec![finding("stdout.crlf", Severity::Info, "lines end in CRLF")]),
        report("slow", vec![finding("latency.slow", Severity::Warn, "start-up took long")]),
        report("broken", vec![finding("rpc.error", Severity::Warn, "later"), finding("stdout.noise", Severity::Fail, "a line of text")]),
        report("held", vec![finding("peer.second_instance", Severity::Unknown, "a copy lives")]),
    ]
}

#[test]
fn a_testcase_for_each_server_and_its_outcome() {
    let xml = document(&several(), false);
    let found = elements(&xml);
    for all in &found[..2] {
        assert_eq!((attribute(all, "tests"), attribute(all, "failures"), attribute(all, "errors")), ("4", "1", "1"), "{xml}");
        assert_eq!(attribute(all, "time"), "0.380");
    }
    assert_eq!(attribute(&found[1], "timestamp"), "2026-01-01T00:00:00");
    let names: Vec<&str> = found.iter().filter(|e| e.0 == "testcase").map(|e| attribute(e, "name")).collect();
    assert_eq!(names, ["sound", "slow", "broken", "held"]);
    let failure = found.iter().find(|e| e.0 == "failure").unwrap();
    assert_eq!((attribute(failure, "type"), attribute(failure, "message")), ("stdout.noise", "stdout.noise: a line of text"));
    assert!(failure.2.contains("secret-evidence") && failure.2.contains("What to do: Write logs to stderr"), "{}", failure.2);
    assert_eq!(attribute(found.iter().find(|e| e.0 == "error").unwrap(), "type"), "peer.second_instance");
    let out = found.iter().filter(|e| e.0 == "system-out").nth(1).unwrap();
    assert!(out.2.contains("latency.slow: start-up took long"), "a warning is told: {}", out.2);
    assert!(found.iter().filter(|e| e.0 == "system-err").all(|e| e.2.trim() == "secret-stderr"));
}

#[test]
fn a_warning_fails_where_it_is_asked_to() {
    assert_eq!(attribute(&elements(&document(&several(), true))[0], "failures"), "2");
}

#[test]
fn no_server_is_no_mistake() {
    assert_eq!(attribute(&elements(&document(&[], false))[0], "tests"), "0");
}

#[test]
fn what_changed_is_in_the_failure_with_a_bound() {
    let mut changed = report("s", vec![finding("drift.changed", Severity::Fail, "30 items changed")]);
    changed.drift = drift(30);
    let found = elements(&document(&[changed], false));
    let failure = &found.iter().find(|e| e.0 == "failure").unwrap().2;
    assert!(failure.contains("! tool0 /description: its description is another (description): \"Echoes the message back\" → "), "{failure}");
    assert!(failure.contains("and 13 more") && !failure.contains("tool25"), "{failure}");
    let breaking = failure.find("it is required now").unwrap();
    assert!(breaking < failure.find("tool0").unwrap(), "the gravest first: {failure}");
}

#[test]
fn hostile_text_is_text() {
    let xml = document(&[hostile()], false);
    let is_xml = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(xml.chars().all(is_xml), "{xml:?}");
    let found = elements(&xml);
    let names: Vec<&str> = found.iter().map(|e| e.0.as_str()).collect();
    assert_eq!(names, ["testsuites", "testsuite", "testcase", "failure", "system-out", "system-err"]);
    assert!(found[3].2.contains("<script>") && found[3].2.contains("]]>"), "{}", found[3].2);
    assert!(HOSTILE.contains("[[ATTACHMENT") && !xml.contains("[[ATTACHMENT"), "no file is fetched: {xml}");
}

#[test]
fn an_entry_that_is_broken_is_a_failure_and_another_is_skipped() {
    let entry =
        |name: &str, broken| Unwatched { name: name.to_owned(), file: "mcp.json".to_owned(), line: 3, column: 5, why: HOSTILE.to_owned(), broken };
    let xml = junit::document(&[report("sound", vec![])], &[entry("wrong", true), entry("far", false)], false).unwrap();
    let suite = &elements(&xml)[1];
    let count = |name| attribute(suite, name);
    assert_eq!((count("tests"), count("failures"), count("errors"), count("skipped")), ("3", "1", "0", "1"), "{xml}");
    assert!(xml.contains("<failure type=\"config.broken\" message=\"mcp.json:3:5: ") && xml.contains("<skipped message=\"mcp.json:3:5: "), "{xml}");
}
