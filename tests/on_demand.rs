//! `/probe?target=NAME`, as Prometheus and people ask it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::*;

fn probe(serving: &Serving, target: &str, fields: &str) -> (u16, String, String) {
    serving.exchange(&format!("GET /probe?target={target} HTTP/1.0\r\n{fields}\r\n"))
}

fn has(body: &str, line: &str) -> bool {
    body.lines().any(|l| l == line)
}

#[test]
fn one_server_is_probed_now_and_answered_with_its_series_alone() {
    let run = Run::new();
    let serving = Serving::start(&run, &["--demo", "--interval", "1h"]);
    let (status, head, body) = probe(&serving, "sound", "");
    assert_eq!(status, 200, "{body}");
    assert!(head.contains("\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n") && !head.contains("\r\nage:"), "{head}");
    for line in [
        "probe_success 1",
        "stdiowatch_up{server=\"sound\"} 1",
        "stdiowatch_probes_total{server=\"sound\"} 1",
        "stdiowatch_on_demand{answer=\"probed\"} 1",
    ] {
        assert!(has(&body, line), "{line} is not in\n{body}");
    }
    let servers: BTreeSet<&str> = body.split("server=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(servers, BTreeSet::from(["sound"]));
    let (_, head, body) = probe(&serving, "sound", "Accept: application/openmetrics-text\r\n");
    assert!(head.contains("application/openmetrics-text") && head.contains("\r\nage: ") && body.ends_with("\n# EOF\n"), "{head}");
    assert!(has(&body, "stdiowatch_on_demand{answer=\"again\"} 1") && has(&body, "stdiowatch_probes_total{server=\"sound\"} 1"), "{body}");
    let (_, _, body) = probe(&serving, "banner", "");
    assert!(has(&body, "probe_success 0") && has(&body, "stdiowatch_verdict{server=\"banner\",verdict=\"fail\"} 1"), "{body}");
    let ask = |target: &str| serving.get(target);
    assert_eq!((ask("/probe?target=nobody").0, ask("/probe?target=a%2Fb").0, ask("/probe").0, ask("/probe?target=").0), (404, 404, 400, 404));
    assert_eq!(ask("/probe?target=nobody").1, "no server has this name\n");
    assert_eq!(serving.exchange("POST /probe?target=sound HTTP/1.0\r\n\r\n").0, 405);
}

#[test]
fn head_launches_nothing() {
    let run = Run::new();
    let dir = std::env::temp_dir().join(format!("stdiowatch-head-{}", std::process::id()));
    let script = format!("echo launched >> {}; exec {PROGRAM} sample-server sound", dir.display());
    let serving = Serving::start(&run, &["--interval", "1h", "--era", "legacy", "--name", "mine", "--", "sh", "-c", &script]);
    serving.becomes("/health/mine", 200);
    let launches = || std::fs::read_to_string(&dir).unwrap().lines().count();
    // Longer than a probe that was asked for has to wait.
    let until = Instant::now() + Duration::from_millis(5100);
    poll(LONG, || (Instant::now() >= until).then_some(()));
    for target in ["mine", "nobody"] {
        let (status, _, body) = serving.exchange(&format!("HEAD /probe?target={target} HTTP/1.0\r\n\r\n"));
        assert_eq!((status, body.as_str()), (if target == "mine" { 200 } else { 404 }, ""));
    }
    assert_eq!(serving.exchange("OPTIONS /probe?target=mine HTTP/1.0\r\n\r\n").0, 204);
    assert_eq!(launches(), 1);
    // A crowd of GETs launches one.
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..30).map(|_| scope.spawn(|| probe(&serving, "mine", "").0)).collect();
        asking.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert_eq!((statuses, launches()), (vec![200; 30], 2));
    let _ = std::fs::remove_file(&dir);
}

#[test]
fn a_scraper_is_answered_in_time_though_the_server_is_not() {
    let run = Run::new();
    let mut serving = Serving::start(&run, &["--interval", "1h", "--name", "mine", "--", PROGRAM, "sample-server", "mute"]);
    let began = Instant::now();
    let (status, _, body) = probe(&serving, "mine", "X-Prometheus-Scrape-Timeout-Seconds: 1.5\r\n");
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(990) && took < Duration::from_millis(1500), "{took:?}");
    assert_eq!(status, 200);
    for line in
        ["probe_success 0", "probe_duration_seconds 1", "stdiowatch_on_demand{answer=\"late\"} 1", "stdiowatch_probes_total{server=\"mine\"} 0"]
    {
        assert!(has(&body, line), "{line} is not in\n{body}");
    }
    // Who waits when the sidecar ends is told so, and does not hold it up.
    let mut waiting = TcpStream::connect(("127.0.0.1", serving.port)).unwrap();
    waiting.write_all(b"GET /probe?target=mine HTTP/1.0\r\n\r\n").unwrap();
    // Its head is read when another connection, opened later, has been answered.
    assert_eq!(serving.get("/livez").0, 200);
    serving.signal("TERM");
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 503") && answer.ends_with("stdiowatch is about to end\n"), "{answer}");
    assert_eq!(serving.wait().code(), Some(0));
}

#[test]
fn a_crowd_that_waits_keeps_nobody_out() {
    let run = Run::new();
    let serving = Serving::start(&run, &["--interval", "1h", "--name", "mine", "--", PROGRAM, "sample-server", "mute"]);
    let seats = match rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        Some(descriptors) => usize::try_from(descriptors / 8).unwrap().clamp(1, 128),
        None => 128,
    };
    let waiting: Vec<TcpStream> = (0..seats)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", serving.port)).unwrap();
            stream.write_all(b"GET /probe?target=mine HTTP/1.0\r\n\r\n").unwrap();
            stream
        })
        .collect();
    let refused = poll(LONG, || {
        let (status, head, _) = probe(&serving, "mine", "X-Prometheus-Scrape-Timeout-Seconds: 0.6\r\n");
        (status == 503).then_some(head)
    });
    assert!(refused.unwrap().contains("\r\nretry-after: 1"));
    let began = Instant::now();
    assert_eq!((serving.get("/livez").0, serving.get("/health").0), (200, 503));
    assert!(began.elapsed() < Duration::from_secs(1));
    drop(waiting);
}

#[test]
fn a_transcript_is_shown_to_its_owner_without_secrets() {
    let run = Run::new();
    let server = ["--interval", "1h", "--env", "API_KEY=hunter2hunter2", "--name", "mine", "--", "sh", "-c"];
    let script = format!("echo my key is $API_KEY >&2; exec {PROGRAM} sample-server sound");
    let args = |first: &[&'static str]| [first, &server].concat().into_iter().map(str::to_owned).chain([script.clone()]).collect::<Vec<_>>();
    let started = |first: &[&'static str]| Serving::start(&run, &args(first).iter().map(String::as_str).collect::<Vec<_>>());

    let serving = started(&[]);
    let (status, _, body) = probe(&serving, "mine&debug=true", "");
    assert_eq!((status, body.starts_with("actions are off")), (403, true), "{body}");
    drop(serving);

    let serving = started(&["--enable-actions"]);
    for field in ["Host: evil.example\r\n", "Origin: http://localhost\r\n"] {
        assert_eq!(probe(&serving, "mine&debug=true", field).0, 403, "{field}");
    }
    let (status, _, body) = probe(&serving, "mine&debug=true", "Host: localhost:1\r\n");
    assert_eq!(status, 200);
    assert!(body.starts_with("Transcript of the probe:\n"), "{body}");
    for part in ["  → {\"jsonrpc\":\"2.0\"", "  ← {", "  stderr: my key is ", "\nReport:\n\nPASS  mine", "\nprobe_success 1\n"] {
        assert!(body.contains(part), "{part} is not in\n{body}");
    }
    assert!(!body.contains("hunter2"), "{body}");
}
