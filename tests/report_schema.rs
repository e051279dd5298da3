//! docs/report.schema.json against real reports, and against reports that are not.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use common::*;
use jsonschema::Validator;
use serde_json::{Value, json};
use stdiowatch::judge::{Accepted, Environment, Listing, Reference, Rules, Source, judge};
use stdiowatch::probe::Recording;
use stdiowatch::words::ServerName;

const SHORT: [&str; 8] = ["--startup-timeout", "300ms", "--request-timeout", "300ms", "--eof-grace", "200ms", "--term-grace", "200ms"];

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/report.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The published schema, and the same without room for members that it does not name: a reader has to put up with
/// those, and we have to document them.
fn validators() -> [Validator; 2] {
    let mut closed = schema();
    close(&mut closed);
    [schema(), closed].map(|schema| jsonschema::draft202012::options().should_validate_formats(true).build(&schema).unwrap())
}

fn close(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        if object.contains_key("properties") && object.contains_key("required") {
            object.insert("additionalProperties".to_owned(), false.into());
        }
        object.values_mut().for_each(close);
    } else if let Some(array) = schema.as_array_mut() {
        array.iter_mut().for_each(close);
    }
}

#[track_caller]
fn is_valid(document: &Value) {
    for validator in validators() {
        let wrong: Vec<String> = validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(wrong.is_empty(), "{wrong:#?} in {document:#}");
    }
}

fn document(args: &[&str]) -> Value {
    let mut all = vec!["check", "--format", "json"];
    all.extend_from_slice(args);
    let output = Run::new().output(&all);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn sample(kind: &str) -> Value {
    document(&[&SHORT[..], &["--", PROGRAM, "sample-server", kind]].concat())
}

#[test]
fn reports_of_all_kinds_are_valid() {
    for kind in ["sound", "sound-modern", "banner", "glued", "mute", "exit", "ignore-sigterm", "helper"] {
        is_valid(&sample(kind));
    }
    is_valid(&document(&["--", "no-such-command-anywhere"]));
    let scratch = Scratch::new();
    let entries = format!(
        r#"{{"mcpServers": {{"a": {{"command": "{PROGRAM}", "args": ["sample-server", "sound"]}}, "b": {{"url": "https://x"}}, "c": {{}}}}}}"#
    );
    let told = document(&["--config", &scratch.write("mcp.json", &entries)]);
    assert_eq!(told["unwatched"].as_array().unwrap().len(), 2);
    is_valid(&told);
    is_valid(&document(&["--cwd", "/no/such/dir", "--", "true"]));
    is_valid(&document(&["--call", "echo", "--env", "A_KEY=secret", "--cwd", "/", "--", PROGRAM, "sample-server", "sound"]));
}

#[test]
fn what_differs_from_an_accepted_schema_is_valid() {
    let path = std::env::temp_dir().join(format!("stdiowatch-schema-{}", std::process::id()));
    let observe = || {
        let args = ["check", "--record", path.to_str().unwrap(), "--", PROGRAM, "sample-server", "drift"];
        assert!(Run::new().output(&args).status.success());
        let recording = Recording::from_lines(&std::fs::read_to_string(&path).unwrap()).unwrap();
        (recording.started_at.clone(), recording.replay())
    };
    let (_, before) = observe();
    let (started_at, now) = observe();
    let listing = Listing::of(before.judged().unwrap(), &Environment::default()).unwrap();
    let accepted = Accepted { listing: listing.into(), source: Source::Seen };
    let reference = Reference { accepted: Some(&accepted), ..Reference::nothing() };
    let report = judge(&ServerName::new("drift").unwrap(), started_at, &now, &Rules::default(), reference);
    let document = json!({ "format": 1, "servers": [report] });
    let drift = &document["servers"][0]["drift"];
    assert!(drift["status"] == "differs" && !drift["changed"].as_array().unwrap().is_empty(), "{drift:#}");
    is_valid(&document);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_http_answers_is_valid() {
    let run = Run::new();
    let serving = Serving::start(&run, &["--name", "s", "--", PROGRAM, "sample-server", "banner"]);
    let report: Value = serde_json::from_str(&serving.becomes("/api/v1/servers/s", 200)).unwrap();
    assert!(report["stderr_tail"].is_null() && report["given"].is_null(), "{report:#}");
    is_valid(&json!({ "format": 1, "servers": [report] }));
}

/// Every member of `value` and of what is in it, as JSON Pointers.
fn members(value: &Value, at: &str, found: &mut Vec<String>) {
    // The items that were listed are there for `diff`, and have names of their own.
    for (name, value) in value.as_object().into_iter().flatten().filter(|(name, _)| *name != "items") {
        found.push(format!("{at}/{name}"));
        members(value, &format!("{at}/{name}"), found);
    }
    for (place, value) in value.as_array().into_iter().flatten().enumerate() {
        members(value, &format!("{at}/{place}"), found);
    }
}

#[test]
fn a_report_without_any_of_its_members_is_refused() {
    let [published, _] = validators();
    let whole = sample("banner");
    assert!(published.is_valid(&whole));
    let mut all = Vec::new();
    members(&whole, "", &mut all);
    assert!(all.len() > 60, "{all:?}");
    for pointer in &all {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut less = whole.clone();
        less.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
        assert!(!published.is_valid(&less), "without {pointer}");
    }
}

#[test]
fn a_report_with_something_wrong_is_refused() {
    let [published, closed] = validators();
    let whole = sample("banner");
    for (pointer, wrong) in [
        ("/format", json!(2)),
        ("/servers/0/verdict", json!("ok")),
        ("/servers/0/reason", Value::Null),
        ("/servers/0/reason", json!("because")),
        ("/servers/0/started_at", json!("yesterday")),
        ("/servers/0/timings/total_ms", json!("5 ms")),
        ("/servers/0/lists/tools", json!(-1)),
        ("/servers/0/schema/sha256", json!("abc")),
        ("/servers/0/findings/0/severity", json!("bad")),
        ("/servers/0/shutdown/ended_by", json!("itself")),
    ] {
        let mut other = whole.clone();
        *other.pointer_mut(pointer).unwrap() = wrong;
        assert!(!published.is_valid(&other), "{pointer}");
    }
    let mut more = whole;
    more["servers"][0]["usage"]["more"] = json!(1);
    assert!(published.is_valid(&more), "a later version may say more");
    assert!(!closed.is_valid(&more));
}
