use std::time::Duration;

use serde_json::Value;

use super::fixture::*;
use crate::judge::{PEER_HARMED, Severity, Verdict};
use crate::ledger::{ServerState, Snapshot, Unwatched};
use crate::show::health::{self, Answer, Question};
use crate::words::Moment;

const WORDS: [&str; 3] = ["pass", "warn", "fail"];

fn asked(servers: Vec<ServerState>, now: Moment, question: &Question) -> Answer {
    let answer = health::all(&snapshot(servers), now, question);
    let overall = if question.text { answer.body.lines().next().unwrap().to_owned() } else { json(&answer)["status"].as_str().unwrap().to_owned() };
    let lower = answer.body.to_ascii_lowercase();
    for word in WORDS {
        assert_eq!(lower.matches(word).count(), usize::from(word == overall), "{word} in {}", answer.body);
    }
    assert_eq!(answer.healthy, overall != "fail");
    assert_eq!(answer.retry_after.is_some(), !answer.healthy);
    answer
}

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}

fn verbose() -> Question {
    Question { verbose: true, ..Question::default() }
}

fn plain() -> Question {
    Question::default()
}

#[test]
fn the_whole_is_as_bad_as_its_worst_part() {
    let status = |servers: Vec<ServerState>, seconds| json(&asked(servers, at(seconds), &plain()))["status"].clone();
    assert_eq!(status(vec![passing("a"), passing("b")], 1), "pass");
    assert_eq!(status(vec![passing("a"), warning("b")], 1), "warn");
    assert_eq!(status(vec![passing("a"), failing("b"), warning("c")], 61), "fail");
    assert_eq!(status(vec![passing("a"), unprobed("b")], 1), "fail");
    assert_eq!(status(vec![passing("a")], 100_000), "fail", "overdue");
    assert_eq!(status(vec![], 0), "fail", "nobody said that anything is well");
}

#[test]
fn a_server_that_is_held_is_unknown_for_as_long_as_that_lasts() {
    let mut held = unprobed("h");
    let harmed = finding(PEER_HARMED, Severity::Unknown, "a live copy (pid 12345) died while the probe's copy ran");
    probe(&mut held, Verdict::Unknown, vec![harmed], "echo", 60);
    let answer = asked(vec![held], at(1_000_000), &plain());
    let entry = &json(&answer)["checks"]["h:handshake"][0];
    assert_eq!((entry["observedValue"].as_str(), answer.retry_after), (Some("unknown"), Some(60)));
    let told = "peer.harmed: a live copy (pid 12345) died while the probe's copy ran; probing is held until a person resumes it";
    assert_eq!(entry["output"], told);
}

#[test]
fn a_server_is_told_in_one_word_and_one_sentence() {
    let mut unknown = unprobed("u");
    probe(&mut unknown, Verdict::Unknown, vec![finding("probe.host_busy", Severity::Unknown, "the host was busy")], "echo", 60);
    let body = json(&asked(vec![passing("p"), warning("w"), failing("f"), unprobed("n"), unknown], at(61), &plain()));
    let told = |name: &str| {
        let entry = &body["checks"][format!("{name}:handshake")][0];
        (entry["observedValue"].as_str().unwrap().to_owned(), entry["output"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(told("p"), ("up".to_owned(), String::new()));
    assert_eq!(told("w").1, "latency.slow: start-up took 5.000 s, and should take 2.000 s at the most");
    assert_eq!(told("f"), ("down".to_owned(), "stdout.noise: a line that fails to be JSON: \"warning: pass\"".to_owned()));
    assert_eq!(told("n"), ("unprobed".to_owned(), "not probed yet".to_owned()));
    assert_eq!(told("u"), ("unknown".to_owned(), "probe.host_busy: the host was busy".to_owned()));
    let stale = json(&asked(vec![passing("p")], at(1000), &plain()));
    assert_eq!(stale["checks"]["p:handshake"][0]["observedValue"], "stale");
    assert_eq!(stale["checks"]["p:handshake"][0]["output"], "the next probe is overdue: the last one ended 16 min ago");
    assert_eq!(stale["checks"]["p:handshake"][0]["time"], "2026-01-01T00:00:00.000Z");
}

#[test]
fn no_name_can_be_taken_for_a_verdict() {
    let names = ["failover", "passwords", "WARNINGS", "pAsS", "passfailwarn"];
    for question in [plain(), verbose(), Question { text: true, ..plain() }] {
        asked(names.iter().map(|name| passing(name)).collect(), at(1), &question);
        let answer = asked(names.iter().map(|name| failing(name)).collect(), at(61), &question);
        if !question.text {
            assert_eq!(json(&answer)["checks"]["failover:handshake"][0]["observedValue"], "down");
        }
    }
}

#[test]
fn one_server_fits_in_a_kibibyte() {
    for name in ["f", &"fail".repeat(25), &"\"".repeat(100), &"\u{1f600}".repeat(25)] {
        for message in ["short".to_owned(), "fail".repeat(500), "\u{1f600}".repeat(500), "\"\\".repeat(500), "\u{7}\n".repeat(500)] {
            let mut server = unprobed(name);
            probe(&mut server, Verdict::Fail, vec![finding("shutdown.left_container", Severity::Fail, &message)], "echo", 0);
            let answer = asked(vec![server], at(1), &plain());
            assert!(answer.body.len() < 1024, "{}: {}", answer.body.len(), answer.body);
        }
    }
}

#[test]
fn verbose_tells_more_and_nothing_private() {
    let answer = asked(vec![failing("f")], at(61), &verbose());
    insta::assert_snapshot!(serde_json::to_string_pretty(&json(&answer)).unwrap());
    for private in ["secret", "1.2.3", "sample"] {
        assert!(!answer.body.contains(private), "{private}");
    }
    asked(vec![unprobed("u"), warning("w")], at(1), &verbose());
}

#[test]
fn servers_can_be_left_out() {
    let exclude = |names: &[&str]| Question { exclude: names.iter().map(|n| (*n).to_owned()).collect(), ..plain() };
    let servers = || vec![passing("a"), failing("b"), failing("c")];
    assert!(!asked(servers(), at(61), &exclude(&["b"])).healthy);
    let answer = asked(servers(), at(61), &exclude(&["b", "c"]));
    assert!(answer.healthy && !answer.body.contains("b:"));
    let answer = asked(servers(), at(61), &exclude(&["b", "c", "<gone>", "d"]));
    assert!(answer.healthy, "a name that is gone breaks nothing");
    assert_eq!(json(&answer)["notes"][0], "names to exclude that no server has: 2");
    assert!(!answer.body.contains("gone"), "and is not said again");
    assert!(!asked(servers(), at(61), &exclude(&["a", "b", "c"])).healthy);
}

#[test]
fn one_server_alone() {
    let snapshot = snapshot(vec![passing("a"), failing("b c")]);
    assert!(health::one(&snapshot, at(61), "a", &plain()).unwrap().healthy);
    assert!(!health::one(&snapshot, at(61), "b c", &plain()).unwrap().healthy);
    assert_eq!(health::one(&snapshot, at(61), "b", &plain()), None);
    let mut snapshot = Snapshot::clone(&snapshot);
    let entry = |name: &str, broken| Unwatched { name: name.to_owned(), file: "f".to_owned(), line: 1, column: 1, why: "secret".to_owned(), broken };
    snapshot.read(vec![entry("broken", true), entry("off", false)]);
    for (name, why) in [("b", "no server has this name"), ("broken", "is broken: `stdiowatch config check`"), ("off", "is switched off, remote")] {
        let answer: Value = serde_json::from_str(&health::no_such_server(&snapshot, name)).unwrap();
        assert!(answer["output"].as_str().unwrap().contains(why) && !answer.to_string().contains("secret"), "{answer}");
    }
}

#[test]
fn text_is_one_word_and_a_line_for_each_server() {
    let question = Question { text: true, ..plain() };
    let answer = asked(vec![passing("a b"), failing("passwords"), unprobed("z")], at(61), &question);
    assert_eq!(answer.body, "fail\nup a b\ndown p%61sswords\nunprobed z\n");
    assert_eq!(asked(vec![passing("a")], at(1), &question).body, "pass\nup a\n");
    assert_eq!(asked(vec![], at(1), &question).body, "fail\n");
}

#[test]
fn look_again_when_the_next_verdict_is_due() {
    let after = |server: ServerState, seconds| asked(vec![passing("ok"), server], at(seconds), &plain()).retry_after;
    assert_eq!(after(failing("f"), 61), Some(59));
    assert_eq!(after(failing("f"), 119), Some(1));
    assert_eq!(after(failing("f"), 150), Some(1), "it is running");
    assert_eq!(after(unprobed("u"), 1), Some(5));
    assert_eq!(after(failing("f"), 100_000), Some(5));
    let mut failing = failing("f");
    failing.backoff = Duration::from_secs(100_000);
    assert_eq!(after(failing, 61), Some(3600));
}

#[test]
fn thresholds_decide_what_is_told() {
    let mut server = unprobed("s");
    server.terms.successes = 3;
    probe(&mut server, Verdict::Fail, vec![finding("stdout.noise", Severity::Fail, "noise")], "echo", 0);
    probe(&mut server, Verdict::Pass, Vec::new(), "echo", 60);
    let body = json(&asked(vec![server], at(61), &plain()));
    assert_eq!(body["checks"]["s:handshake"][0]["observedValue"], "down");
    assert_eq!(body["checks"]["s:handshake"][0]["output"], "the last probe was good; more in a row are awaited");
}
