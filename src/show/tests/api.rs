use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::*;
use crate::judge::{PEER_HARMED, Severity, Verdict};
use crate::ledger::ServerState;
use crate::show::{api, health};
use crate::words::Moment;

/// What is said of one server wherever it is said: its verdict, since when, why.
fn told(server: &ServerState, now: Moment) -> [Value; 3] {
    let listed = api::servers(&snapshot(vec![server.clone()]), now)["servers"][0].clone();
    let history = api::history(server, now);
    let verbose = health::Question { verbose: true, ..health::Question::default() };
    let details: Value = serde_json::from_str(&health::all(&snapshot(vec![server.clone()]), now, &verbose).body).unwrap();
    let details = &details["checks"][format!("{}:handshake", server.name)][0];
    assert_eq!((&listed["since"], &listed["verdict"]), (&history["since"], &history["verdict"]));
    assert_eq!([&listed["since"], &listed["reason"]], [&details["since"], &details["reason"]], "{details}");
    ["verdict", "since", "reason"].map(|key| listed[key].clone())
}

fn failed(server: &mut ServerState, seconds: u64) {
    probe(server, Verdict::Fail, vec![finding("stdout.not_json", Severity::Fail, "a line is no JSON")], "echo", seconds);
}

#[test]
fn a_reason_is_given_only_while_the_verdict_is_fail() {
    let mut server = passing("a");
    (server.terms.failures, server.terms.successes) = (2, 2);
    failed(&mut server, 60);
    assert_eq!(told(&server, at(61)), [json!("pass"), json!("2026-01-01T00:00:00.000Z"), Value::Null], "a failure is held back");
    failed(&mut server, 120);
    let fell = json!("2026-01-01T00:02:00.000Z");
    let down = [json!("fail"), fell, json!("stdout_violation")];
    assert_eq!(told(&server, at(121)), down);
    probe(&mut server, Verdict::Pass, vec![], "echo", 180);
    assert_eq!(told(&server, at(181)), down, "another good one is awaited");
    assert_eq!(told(&server, at(100_000))[2], Value::Null, "overdue");
    probe(&mut server, Verdict::Pass, vec![], "echo", 240);
    assert_eq!(told(&server, at(241)), [json!("pass"), json!("2026-01-01T00:04:00.000Z"), Value::Null]);
}

#[test]
fn what_is_overdue_is_unknown_since_its_verdict_expired() {
    let server = passing("a");
    let expired = server.expires - at(0).up;
    assert_eq!(expired, Duration::from_secs(60 + 180 + 35));
    for later in [0, 1, 1000] {
        let now = at(275 + later);
        assert_eq!(told(&server, now), [json!("unknown"), json!("2026-01-01T00:04:35.000Z"), Value::Null]);
    }
    assert_eq!(told(&server, at(274))[1], "2026-01-01T00:00:00.000Z");
}

#[test]
fn what_is_held_is_unknown_since_it_is_held() {
    let mut server = unprobed("a");
    let harmed = || vec![finding(PEER_HARMED, Severity::Unknown, "pid 7 died")];
    probe(&mut server, Verdict::Unknown, vec![finding("probe.resources", Severity::Unknown, "no memory")], "echo", 60);
    probe(&mut server, Verdict::Unknown, harmed(), "echo", 120);
    assert_eq!(told(&server, at(100_000)), [json!("unknown"), json!("2026-01-01T00:02:00.000Z"), Value::Null]);
}
