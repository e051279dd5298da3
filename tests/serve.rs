//! `stdiowatch serve`, as its users run it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::*;

#[test]
fn a_sound_server_becomes_healthy_and_a_broken_one_does_not() {
    let run = Run::new();
    let serving = Serving::start(&run, &["--demo"]);
    let sound = serving.becomes("/health/sound", 200);
    assert!(sound.starts_with("{\"status\":\"pass\""), "{sound}");
    let all = serving.becomes("/readyz", 200);
    assert_eq!(all, "ok\n");
    let (status, body) = serving.get("/health");
    assert_eq!(status, 503);
    assert!(body.starts_with("{\"status\":\"fail\""), "{body}");
    assert_eq!(serving.get("/health/banner").0, 503);
    assert_eq!(serving.get("/health/nobody").0, 404);
    assert_eq!(serving.get("/livez").0, 200);
    let (status, api) = serving.get("/api/v1/servers/exit");
    assert_eq!((status, serving.get("/api/v1/servers/nobody").0), (200, 404));
    let report: serde_json::Value = serde_json::from_str(&api).unwrap();
    assert_eq!((&report["verdict"], &report["reason"]), (&"fail".into(), &"exited".into()));
    assert!(!api.contains("SAMPLE_API_KEY"), "what was on stderr is private: {api}");
    let list: serde_json::Value = serde_json::from_str(&serving.get("/api/v1/servers").1).unwrap();
    assert_eq!(list["servers"][0]["server"], "banner");
    let metrics = serving.get("/metrics").1;
    for line in [
        "stdiowatch_up{server=\"sound\"} 1",
        "stdiowatch_up{server=\"banner\"} 0",
        "stdiowatch_probe_failures_total{server=\"banner\",reason=\"timeout\"} 0",
    ] {
        assert!(metrics.lines().any(|l| l == line), "{line} is not in\n{metrics}");
    }
}

#[test]
fn nothing_is_healthy_before_the_first_verdict() {
    let run = Run::new();
    let serving = Serving::start(&run, &["--", PROGRAM, "sample-server", "mute"]);
    let (status, body) = serving.get("/health");
    assert_eq!(status, 503, "{body}");
    assert_eq!(serving.get("/readyz").0, 503);
    assert_eq!(serving.get("/livez").0, 200);
}

#[test]
fn a_verdict_follows_the_server() {
    let dir = std::env::temp_dir().join(format!("stdiowatch-serve-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let broken = dir.join("broken");
    let script = format!("if [ -e {} ]; then exit 7; fi; exec {PROGRAM} sample-server sound", broken.display());
    let run = Run::new();
    let serving = Serving::start(&run, &["--interval", "1s", "--name", "mine", "--", "sh", "-c", &script]);
    serving.becomes("/health/mine", 200);
    std::fs::write(&broken, "").unwrap();
    let body = serving.becomes("/health/mine", 503);
    assert!(body.contains("exit.before_reply"), "{body}");
    std::fs::remove_file(&broken).unwrap();
    serving.becomes("/health/mine", 200);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn the_log_tells_each_reason_of_a_failure_once_with_its_evidence() {
    let (run, scratch, port) = (Run::new(), Scratch::new(), free_port());
    let (log, why) = (scratch.path("log"), scratch.write("why", "no module a"));
    let (listen, script) = (format!("127.0.0.1:{port}"), format!("cat {why} >&2; exit 7"));
    let args = ["serve", "--listen", &listen, "--interval", "1s", "--name", "mine", "--", "sh", "-c", &script];
    let child = run.command(&args).stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn().unwrap();
    let serving = Serving { child, port };
    let told = || {
        let log = scratch.read("log");
        log.lines().filter(|line| line.contains("WARN") && line.contains("exit.before_reply")).map(str::to_owned).collect::<Vec<_>>()
    };
    let is_told = |n: usize| {
        // It is put off more and more, unless it is asked for.
        let probed = || Some(serving.get("/probe?target=mine")).and_then(|_| (told().len() >= n).then(&told));
        poll(LONG, probed).unwrap_or_else(|| panic!("{}", scratch.read("log")))
    };
    let first = is_told(1);
    assert!(first[0].contains("mine: not probed → fail") && first[0].contains("no module a"), "{first:?}");
    scratch.write("why", "no key");
    let second = is_told(2);
    assert!(second[1].contains("mine: fail, for another reason") && second[1].contains("no key"), "{second:?}");
    scratch.write("why", "no module a");
    let probes = || serving.metric("stdiowatch_probes_total{server=\"mine\"}").unwrap();
    let before = probes();
    poll(LONG, || Some(serving.get("/probe?target=mine")).and_then(|_| (probes() >= before + 2.0).then_some(()))).unwrap();
    assert_eq!(told().len(), 2, "{:?}", told());
}

#[test]
fn an_interval_is_for_servers_whose_file_does_not_say() {
    let (run, scratch, port) = (Run::new(), Scratch::new(), free_port());
    let server = format!("command: {PROGRAM}, args: [sample-server, sound]");
    let file = scratch.write("f.yaml", &format!("servers:\n  own: {{{server}, interval: 1h}}\n  none: {{{server}}}\n"));
    let (listen, log) = (format!("127.0.0.1:{port}"), scratch.path("log"));
    let args = ["serve", "--listen", &listen, "--config", &file, "--interval", "5m"];
    let child = run.command(&args).stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn().unwrap();
    let serving = Serving { child, port };
    serving.becomes("/readyz", 200);
    let interval = |name: &str| serving.metric(&format!("stdiowatch_interval_seconds{{server=\"{name}\"}}"));
    assert_eq!((interval("own"), interval("none")), (Some(3600.0), Some(300.0)));
    let log = scratch.read("log");
    assert!(log.contains("--interval is for servers whose file does not say; these go by their own: own"), "{log}");
}

#[test]
fn sigterm_ends_everything_politely_and_exits_with_0() {
    for kind in ["sound", "mute", "ignore-sigterm"] {
        let run = Run::new();
        let mut serving = Serving::start(&run, &["--eof-grace", "300ms", "--term-grace", "300ms", "--", PROGRAM, "sample-server", kind]);
        poll(LONG, || (run.alive().len() > 1).then_some(()).or_else(|| (serving.get("/readyz").0 == 200).then_some(()))).unwrap();
        let asked = Instant::now();
        serving.signal("TERM");
        assert_eq!(serving.wait().code(), Some(0), "{kind}");
        assert!(asked.elapsed() < Duration::from_secs(10), "{kind}: {:?}", asked.elapsed());
        run.leaves_nothing(Duration::ZERO);
    }
}

#[test]
fn a_killed_sidecar_leaves_nothing() {
    // At moments of all kinds: while servers start, answer, hang, are ended.
    for wait in [0, 40, 150, 600, 1300] {
        let run = Run::new();
        let mut serving = Serving::start(&run, &["--demo", "--interval", "1s"]);
        let until = Instant::now() + Duration::from_millis(wait);
        poll(LONG, || (Instant::now() >= until).then_some(()));
        serving.signal("KILL");
        serving.wait();
        run.leaves_nothing(Duration::from_secs(1));
    }
}

#[test]
fn a_stopped_sidecar_is_not_healthy_when_it_wakes() {
    let run = Run::new();
    let serving = Serving::start(&run, &["--interval", "1s", "--total-timeout", "1s", "--name", "mine", "--", PROGRAM, "sample-server", "sound"]);
    serving.becomes("/health/mine", 200);
    serving.signal("STOP");
    // Longer than a verdict is good for: the interval, the probe's time, half an interval and 5 s.
    let until = Instant::now() + Duration::from_secs(9);
    poll(LONG, || (Instant::now() >= until).then_some(()));
    serving.signal("CONT");
    // It recovers by itself; whether the first answer is still 503 is a race that it may win.
    serving.becomes("/health/mine", 200);
}

#[test]
fn sighup_ends_nothing_and_there_is_nothing_to_read_again() {
    let run = Run::new();
    let mut serving = Serving::start(&run, &["--enable-actions", "--name", "mine", "--", PROGRAM, "sample-server", "sound"]);
    serving.becomes("/health/mine", 200);
    serving.signal("HUP");
    serving.signal("HUP");
    let (status, _, body) = serving.exchange("POST /-/reload HTTP/1.0\r\n\r\n");
    assert_eq!((status, body.starts_with("there is nothing to read again")), (409, true), "{body}");
    assert_eq!(serving.get("/-/reload").0, 405);
    assert_eq!((serving.get("/health/mine").0, serving.get("/livez").0), (200, 200));
    serving.signal("TERM");
    assert_eq!(serving.wait().code(), Some(0));
    let serving = Serving::start(&run, &["--name", "mine", "--", PROGRAM, "sample-server", "sound"]);
    assert_eq!(serving.exchange("POST /-/reload HTTP/1.0\r\n\r\n").0, 403, "off unless enabled");
}

#[test]
fn five_hundred_half_open_connections_delay_no_health_check() {
    let run = Run::new();
    let serving = Serving::start(&run, &["--name", "mine", "--", PROGRAM, "sample-server", "sound"]);
    serving.becomes("/health/mine", 200);
    let half_open: Vec<_> = (0..500)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(("127.0.0.1", serving.port)).unwrap();
            std::io::Write::write_all(&mut stream, b"GET /health HTTP/1.1\r\nHo").unwrap();
            stream
        })
        .collect();
    let slowest = (0..20).map(|_| {
        let began = Instant::now();
        assert_eq!(serving.get("/health").0, 200);
        began.elapsed()
    });
    let slowest = slowest.max().unwrap();
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
    drop(half_open);
}

#[test]
fn healthcheck_is_for_images_without_a_shell() {
    let run = Run::new();
    let serving = Serving::start(&run, &["--name", "mine", "--", PROGRAM, "sample-server", "sound"]);
    serving.becomes("/health/mine", 200);
    let ask = |path: &str| Run::new().output(&["healthcheck", &format!("http://127.0.0.1:{}{path}", serving.port)]).status.code();
    assert_eq!((ask("/health"), ask("/health/nobody")), (Some(0), Some(1)));
    assert_eq!(Run::new().output(&["healthcheck", "http://127.0.0.1:1/health"]).status.code(), Some(1));
    assert_eq!(Run::new().output(&["healthcheck", "nonsense"]).status.code(), Some(1));
}
