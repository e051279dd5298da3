//! `stdiowatch check`, as its users run it: reports, exit statuses, bad input, signals.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::process::Output;
use std::time::{Duration, Instant};

use common::*;
use serde_json::Value;

const SHORT: [&str; 10] =
    ["--startup-timeout", "2s", "--request-timeout", "1s", "--total-timeout", "15s", "--eof-grace", "500ms", "--term-grace", "500ms"];

/// Checks the sample server `kind`, as JSON.
fn check(kind: &str) -> (Output, Value) {
    let run = Run::new();
    let mut args = vec!["check", "--format", "json"];
    args.extend(SHORT);
    args.extend(["--", PROGRAM, "sample-server", kind]);
    let output = run.output(&args);
    run.leaves_nothing(Duration::ZERO);
    let report = report(&output);
    (output, report)
}

#[test]
fn every_sample_gets_its_verdict() {
    for (kind, verdict, code, era, spawns, ended_by) in [
        ("sound", "pass", "", "legacy", 2, "eof"),
        ("sound-modern", "pass", "", "modern", 1, "eof"),
        ("sound-dual", "pass", "", "modern", 1, "eof"),
        ("paged", "pass", "", "legacy", 2, "eof"),
        ("die-on-discover", "pass", "", "legacy", 2, "eof"),
        ("drift", "pass", "", "legacy", 2, "eof"),
        ("banner", "fail", "stdout.noise", "legacy", 2, "eof"),
        ("glued", "fail", "stdout.glued", "legacy", 2, "eof"),
        ("hang", "fail", "timeout.silent", "legacy", 2, "eof"),
        ("mute", "fail", "timeout.silent", "", 2, "eof"),
        ("exit", "fail", "exit.before_reply", "", 2, "self"),
        ("ignore-eof", "warn", "shutdown.needed_term", "legacy", 2, "sigterm"),
        ("ignore-sigterm", "warn", "shutdown.needed_kill", "legacy", 2, "sigkill"),
        ("helper", "warn", "shutdown.left_escaped", "legacy", 2, "eof"),
    ] {
        let (output, report) = check(kind);
        let told = format!("{kind}: {report:#}");
        assert_eq!(report["verdict"], verdict, "{told}");
        assert_eq!(output.status.code(), Some(i32::from(verdict == "fail")), "{told}");
        assert_eq!(codes(&report), if code.is_empty() { vec![] } else { vec![code.to_owned()] }, "{told}");
        assert_eq!(report["era"], if era.is_empty() { Value::Null } else { era.into() }, "{told}");
        assert_eq!(report["spawns"], spawns, "{told}");
        assert_eq!(report["shutdown"]["ended_by"], ended_by, "{told}");
        assert_eq!(report["reason"].is_null(), verdict != "fail", "{told}");
    }
}

#[test]
fn the_report_has_what_the_interface_promises() {
    let (_, report) = check("sound");
    for (pointer, wanted) in [
        ("/server", Value::from("stdiowatch")),
        ("/protocol_version", "2025-11-25".into()),
        ("/server_info/name", "stdiowatch-sample".into()),
        ("/lists/tools", 3.into()),
        ("/lists/prompts", 2.into()),
        ("/lists/resources", 2.into()),
        ("/lists/resource_templates", 1.into()),
        ("/schema/complete", true.into()),
        ("/drift/status", "no_baseline".into()),
        ("/shutdown/exit_code", 0.into()),
        ("/shutdown/signal", Value::Null),
        ("/shutdown/pipe_held", false.into()),
        ("/stderr_tail", "".into()),
    ] {
        assert_eq!(report.pointer(pointer), Some(&wanted), "{pointer} in {report:#}");
    }
    for pointer in ["/timings/spawn_ms", "/timings/startup_ms", "/timings/list_ms", "/timings/shutdown_ms", "/timings/total_ms", "/usage/cpu_seconds"]
    {
        assert!(report.pointer(pointer).unwrap().as_f64().unwrap() >= 0.0, "{pointer} in {report:#}");
    }
    assert_eq!((&report["given"]["env_mode"], &report["given"]["stdio"]), (&"sdk".into(), &"pipe".into()));
    let names: Vec<&str> = report["given"]["env"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    let usual = ["BROWSER", "HOME", "LOGNAME", "PATH", "SHELL", "STDIOWATCH_TREE", "TERM", "USER"];
    assert!(names.contains(&"PATH") && names.iter().all(|n| usual.contains(n)), "{names:?}");
    assert!(report["usage"]["max_rss_bytes"].as_u64().unwrap() > 500_000);
    assert_eq!(report["schema"]["sha256"].as_str().unwrap().len(), 64);
    assert!(report["io"]["messages"].as_u64().unwrap() >= 5);
    assert!(report["started_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn people_read_first_what_is_wrong_and_what_to_do() {
    let output = Run::new().output(&["check", "--name", "mine", "--", PROGRAM, "sample-server", "banner"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("FAIL  mine  "), "{text}");
    assert!(text.contains("Something other than a message is on stdout"), "{text}");
    assert!(text.contains("What to do: Write logs to stderr"), "{text}");
    assert!(!text.contains('\x1b'), "no colours without a terminal: {text}");
    assert!(text.lines().count() < 15, "{text}");
}

#[test]
fn secrets_of_the_configuration_do_not_surface() {
    let script = r#"echo "token is $API_KEY"; echo "err $API_KEY" >&2; exit 3"#;
    let run = Run::new();
    for format in ["json", "human"] {
        let output = run.output(&["check", "--format", format, "--env", "API_KEY=s3cr3t-value", "--", "sh", "-c", script]);
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("s3cr3t") && said.contains("[redacted]"), "{said}");
    }
}

#[test]
fn a_variable_can_be_handed_on_by_its_name() {
    let run = Run::new();
    let script = ": ${WANTED_KEY:?WANTED_KEY is required}; exec \"$0\" sample-server sound";
    let check = |options: &[&str]| {
        let args: Vec<&str> = ["check", "--format", "json"].iter().chain(options).copied().chain(["--", "sh", "-c", script, PROGRAM]).collect();
        report(&run.command(&args).env("WANTED_KEY", "value-of-it").output().unwrap())
    };
    let without = check(&[]);
    assert_eq!(codes(&without), ["exit.before_reply"]);
    let evidence = without["findings"][0]["evidence"].as_str().unwrap();
    assert!(evidence.contains("WANTED_KEY is set here, and is not handed on") && evidence.contains("--env WANTED_KEY"), "{evidence}");
    assert_eq!(check(&["--env", "WANTED_KEY"])["verdict"], "pass");
}

#[test]
fn a_strict_check_fails_on_warnings() {
    let args = |strict| {
        let mut args = vec!["check", "--eof-grace", "200ms"];
        args.extend(if strict { vec!["--strict"] } else { vec![] });
        args.extend(["--", PROGRAM, "sample-server", "ignore-eof"]);
        Run::new().output(&args).status.code()
    };
    assert_eq!((args(false), args(true)), (Some(0), Some(1)));
}

#[test]
fn an_objective_that_was_missed_is_a_warning() {
    let check = |objective| {
        let output = Run::new().output(&["check", "--format", "json", "--objective", objective, "--", PROGRAM, "sample-server", "sound"]);
        codes(&report(&output))
    };
    assert_eq!((check("startup=1h"), check("startup=0.001ms")), (vec![], vec!["latency.slow".to_owned()]));
}

#[test]
fn a_severity_can_be_changed() {
    let severity = |setting| Run::new().output(&["check", "--severity", setting, "--", PROGRAM, "sample-server", "banner"]).status.code();
    assert_eq!(severity("stdout.noise=warn"), Some(0));
    assert_eq!(severity("stdout.noise=unknown"), Some(3));
}

#[test]
fn launch_errors_are_reports_not_crashes() {
    let dir = std::env::temp_dir().join(format!("stdiowatch-check-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let cases = [
        ("no-such-command-anywhere".to_owned(), "spawn.not_found"),
        (file("interpreter", "#!/no/such/interpreter\n", 0o755), "spawn.interpreter_missing"),
        (file("crlf", "#!/bin/sh\r\necho\n", 0o755), "spawn.interpreter_missing"),
        (file("mode", "#!/bin/sh\n", 0o644), "spawn.permission"),
        (file("bare", "var x = 1\n", 0o755), "spawn.exec_format"),
    ];
    for (command, code) in cases {
        let output = Run::new().output(&["check", "--format", "json", "--", &command]);
        let report = report(&output);
        assert_eq!((codes(&report), output.status.code()), (vec![code.to_owned()], Some(1)), "{command}");
        assert_eq!((&report["reason"], &report["spawns"]), (&"spawn_failed".into(), &0.into()));
    }
    let output = Run::new().output(&["check", "--format", "json", "--cwd", "/no/such/dir", "--", "true"]);
    assert_eq!(codes(&report(&output)), ["spawn.cwd_missing"]);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn bad_input_is_one_clear_line_and_launches_nothing() {
    let trace = std::env::temp_dir().join(format!("stdiowatch-launched-{}", std::process::id()));
    let touch = trace.to_str().unwrap();
    for (args, wanted) in [
        (vec!["check"], "no server: give its command and arguments after --"),
        (vec!["check", "--startup-timeout", "-5s", "--", "touch", touch], "negative"),
        (vec!["check", "--startup-timeout=-5s", "--", "touch", touch], "a duration cannot be negative"),
        (vec!["check", "--startup-timeout", "5", "--", "touch", touch], "the unit is missing"),
        (vec!["check", "--startup-timeout", "0s", "--", "touch", touch], "longer than zero"),
        (vec!["check", "python3", "server.py"], "come after --"),
        (vec!["check", "--format", "xml", "--", "touch", touch], "[possible values: human, json, junit, github, nagios]"),
        (vec!["sample-server"], "<KIND>"),
        (vec!["check", "--no-such-option", "--", "touch", touch], "--no-such-option"),
        (vec!["check", "--env", "NOVALUE_ANYWHERE", "--", "touch", touch], "NAME=VALUE"),
        (vec!["check", "--severity", "stdout.nose=warn", "--", "touch", touch], "there is no finding \"stdout.nose\""),
        (vec!["check", "--severity", "stdout.noise=bad", "--", "touch", touch], "a level is info, warn, fail or unknown"),
        (vec!["check", "--objective", "start=1s", "--", "touch", touch], "a phase is startup, list, call or shutdown"),
        (vec!["check", "--name", "a/b", "--", "touch", touch], "may not contain '/'"),
        (vec!["check", "-o", "/no/such/dir/file", "--format", "json", "--", "touch", touch], "cannot write /no/such/dir/file"),
        (vec!["check", "--", ""], "the command is empty"),
        (vec!["serve", "--interval", "10ms", "--", "touch", touch], "at most once a second"),
        (vec!["serve"], "no server"),
        (vec!["serve", "--demo", "--call", "echo"], "--call is for a server that is given as a command"),
        (vec!["serve", "--demo", "--lock", "mcp.lock.json"], "--lock is for a server that is given as a command"),
        // What says what holds anyway says it of no server of a file, all the same.
        (vec!["check", "--config", "/nowhere.yaml", "--era", "auto"], "--era is for a server that is given as a command"),
        (vec!["check", "--replay", "/nowhere", "--env-mode", "sdk"], "--env-mode is about how a server is probed"),
        (vec!["check", "--replay", "/nowhere", "name"], "cannot be used with"),
        (vec!["serve", "--listen", "nowhere", "--", "touch", touch], "an address is HOST:PORT"),
        (vec!["sample-server", "nonsense"], "nonsense"),
        (vec!["explain", "stdout.nose"], "there is no finding"),
    ] {
        let output = Run::new().output(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(wanted), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(!trace.exists(), "{args:?} launched something");
    }
}

#[test]
fn an_address_in_use_is_told_before_anything_is_launched() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let trace = std::env::temp_dir().join(format!("stdiowatch-in-use-{}", std::process::id()));
    let output = Run::new().output(&["serve", "--listen", &address, "--", "touch", trace.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains(&address) && said.contains("address already in use"), "{said}");
    assert!(said.trim_end().ends_with("; give another address by --listen"), "{said}");
    assert!(!trace.exists());
}

#[test]
fn a_tool_can_be_called() {
    let call = |call: &str| {
        let output = Run::new().output(&["check", "--format", "json", "--call", call, "--", PROGRAM, "sample-server", "sound"]);
        let report = report(&output);
        (output.status.code(), codes(&report), report["reason"].clone())
    };
    assert_eq!(call(r#"{"tool":"echo","arguments":{"message":"hi"},"expect":{"contains":"hi"}}"#), (Some(0), vec![], Value::Null));
    assert_eq!(call(r#"{"tool":"add","arguments":{"a":2,"b":3},"expect":{"equals":{"/structuredContent/sum":5}}}"#).0, Some(0));
    let failed = (Some(1), vec!["call.failed".to_owned()], Value::from("call_failed"));
    assert_eq!(call(r#"{"tool":"add","arguments":{"a":2,"b":3},"expect":{"contains":"7"}}"#), failed);
    assert_eq!(call("no-such-tool"), failed);
    let output = Run::new().output(&["check", "--format", "json", "--call", "nope", "--", PROGRAM, "sample-server", "sound"]);
    let said = report(&output)["findings"][0]["message"].as_str().unwrap().to_owned();
    assert!(said.starts_with("the call of \"nope\" failed: the server lists no such tool; there are: ") && said.contains("echo"), "{said}");
    let output = Run::new().output(&["check", "--format", "json", "--call", "ecoh", "--", PROGRAM, "sample-server", "sound"]);
    let said = &report(&output)["findings"][0]["message"];
    assert_eq!(said, "the call of \"ecoh\" failed: the server lists no such tool (did you mean \"echo\"?)");
}

#[test]
fn a_probe_can_be_recorded_and_judged_again() {
    let dir = std::env::temp_dir().join(format!("stdiowatch-record-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for kind in ["sound", "sound-modern", "banner", "hang", "mute", "exit", "ignore-sigterm", "helper", "glued"] {
        let path = dir.join(kind);
        let file = path.to_str().unwrap();
        let mut args = vec!["check", "--format", "json", "--record", file];
        args.extend(SHORT);
        args.extend(["--", PROGRAM, "sample-server", kind]);
        let first = report(&Run::new().output(&args));
        let mut again = report(&Run::new().output(&["check", "--format", "json", "--replay", file]));
        // Times are those of the machine, to the microsecond; all else is the same.
        again["timings"] = first["timings"].clone();
        again["given"] = first["given"].clone();
        let mut told = first.clone();
        for report in [&mut told, &mut again] {
            report["findings"].as_array_mut().unwrap().iter_mut().for_each(|f| f["evidence"] = Value::Null);
            report["usage"] = Value::Null;
        }
        assert_eq!(told, again, "{kind}");
    }
    let text = std::fs::read_to_string(dir.join("sound")).unwrap();
    assert!(text.contains("\"event\":\"sent\"") && text.contains("\"event\":\"stdout\""), "{text}");
    let broken = dir.join("broken");
    std::fs::write(&broken, text.replacen("\"event\":\"spawned\"", "\"event\":\"nonsense\"", 1)).unwrap();
    let output = Run::new().output(&["check", "--replay", broken.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("line 3, column"), "{said}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_recording_holds_no_secret_however_it_was_written() {
    let path = std::env::temp_dir().join(format!("stdiowatch-secret-{}", std::process::id()));
    let script = r#"printf 'half hunt'; sleep 0.1; printf 'er2secret\n'; printf 'hunter2s' >&2; sleep 0.1; printf 'ecret' >&2; read x; exit 3"#;
    let args = ["check", "--record", path.to_str().unwrap(), "--env", "KEY=hunter2secret", "--", "sh", "-c", script];
    Run::new().output(&args);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("hunter2") && text.matches("[redacted]").count() >= 2, "{text}");
    std::fs::remove_file(path).unwrap();
}

/// What is configured may be a part of what the protocol says, or of a tool's name. That is no reason to judge otherwise, at once or
/// from a recording.
#[test]
fn a_value_that_stands_in_the_protocol_changes_no_verdict() {
    let path = std::env::temp_dir().join(format!("stdiowatch-words-{}", std::process::id()));
    let recording = path.to_str().unwrap();
    let told = |args: &[&str]| {
        let report = report(&Run::new().output(&[&["check", "--format", "json"], args].concat()));
        (report["verdict"].clone(), codes(&report), report["lists"]["tools"].clone(), report["protocol_version"].clone())
    };
    let of = |kind: &str| told(&["--", PROGRAM, "sample-server", kind]);
    let (legacy, modern) = (of("sound"), of("sound-modern"));
    assert_eq!((&legacy.0, &modern.0), (&Value::from("pass"), &Value::from("pass")));
    let words = [
        "2025",
        "2025-11-25",
        "2026",
        "tool",
        "tools",
        "json",
        "jsonrpc",
        "result",
        "name",
        "object",
        "initialize",
        "protocol",
        "method",
        "60000",
        "\"tools\"",
        "ult\":{",
        "32601",
    ];
    for (kind, usual) in [("sound", &legacy), ("sound-modern", &modern)] {
        for word in words {
            let value = format!("VALUE={word}");
            let got = told(&["--env", &value, "--record", recording, "--", PROGRAM, "sample-server", kind]);
            assert_eq!(&got, usual, "{kind} {word}");
            assert_eq!(&told(&["--replay", recording]), usual, "{kind} {word}, replayed");
        }
    }
    // As an argument too; and a tool is found by its name, however that is shown.
    assert_eq!(told(&["--", "sh", "-c", &format!("exec {PROGRAM} sample-server sound"), "sh", "--auth-token", "2025"]).0, "pass");
    let called = told(&[
        "--env",
        "VALUE=echo",
        "--call",
        r#"{"tool":"echo","arguments":{"message":"hi"}}"#,
        "--record",
        recording,
        "--",
        PROGRAM,
        "sample-server",
        "sound",
    ]);
    assert_eq!((&called.0, &called.1), (&legacy.0, &legacy.1));
    assert_eq!(told(&["--replay", recording]).1, called.1);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_servers_options_are_the_same_for_all_that_launch_it() {
    let output = Run::new().output(&["check", "--format", "json", "--interval", "5s", "--", PROGRAM, "sample-server", "sound"]);
    assert_eq!(report(&output)["verdict"], "pass");
    let path = std::env::temp_dir().join(format!("stdiowatch-options-{}", std::process::id()));
    let output = Run::new().output(&["lock", "--interval", "5s", "--lock", path.to_str().unwrap(), "--", PROGRAM, "sample-server", "sound"]);
    assert!(output.status.success(), "{output:?}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_report_can_go_to_a_file() {
    let path = std::env::temp_dir().join(format!("stdiowatch-report-{}.json", std::process::id()));
    let output = Run::new().output(&["check", "--format", "json", "-o", path.to_str().unwrap(), "--", PROGRAM, "sample-server", "sound"]);
    assert!(output.status.success() && output.stdout.is_empty());
    let document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(document["servers"][0]["verdict"], "pass");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_signal_ends_what_was_launched_and_then_the_check() {
    for (name, status) in [("TERM", 143), ("INT", 130)] {
        let run = Run::new();
        let mut child = run.command(&["check", "--", PROGRAM, "sample-server", "mute"]).spawn().unwrap();
        run.waits_for_server();
        signal(child.id(), name);
        let ended = poll(LONG, || child.try_wait().unwrap()).expect("it ends");
        assert_eq!(ended.code(), Some(status));
        run.leaves_nothing(Duration::ZERO);
    }
}

#[test]
fn a_reply_that_came_while_we_stood_still_came_in_time() {
    let run = Run::new();
    let args = ["check", "--format", "json", "--era", "legacy", "--startup-timeout", "4s", "--", PROGRAM, "sample-server", "slow"];
    let mut child = run.command(&args).spawn().unwrap();
    run.waits_for_server();
    // It has been asked by then.
    let asked = Instant::now() + Duration::from_millis(300);
    poll(LONG, || (Instant::now() >= asked).then_some(()));
    signal(child.id(), "STOP");
    // The sample answers after 3 s; we wake up when its 4 s are over.
    let until = Instant::now() + Duration::from_secs(6);
    poll(LONG, || (Instant::now() >= until).then_some(()));
    signal(child.id(), "CONT");
    poll(LONG, || child.try_wait().unwrap()).expect("it ends");
    let report = report(&child.wait_with_output().unwrap());
    assert_eq!((&report["verdict"], codes(&report)), (&"pass".into(), vec![]), "{report:#}");
}

/// Waits until then, without holding anybody up.
fn until(then: Instant) {
    poll(LONG, || (Instant::now() >= then).then_some(()));
}

/// Whether the process is stopped.
fn is_stopped(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')))
}

/// Stops all of `pids` from now on until `then`, and wakes them up in their order, each when the one before has long run on.
fn stand_still(pids: &[u32], then: Instant) {
    pids.iter().for_each(|pid| signal(*pid, "STOP"));
    poll(LONG, || pids.iter().all(|pid| is_stopped(*pid)).then_some(())).expect("they are stopped");
    until(then);
    for pid in pids {
        signal(*pid, "CONT");
        until(Instant::now() + Duration::from_millis(300));
    }
}

#[test]
fn a_server_that_stood_still_with_us_has_the_time_that_was_left() {
    // The sample answers after 3 s of its 4. They end while nobody runs: a little before we look again, or long before.
    for over in [200, 3000] {
        let run = Run::new();
        let scratch = Scratch::new();
        let file = scratch.path("pid");
        let script = format!("echo $$ >'{file}.new'; mv '{file}.new' '{file}'; exec '{PROGRAM}' sample-server slow");
        let args = ["check", "--format", "json", "--era", "legacy", "--startup-timeout", "4s", "--", "sh", "-c", &script];
        let began = Instant::now();
        let mut child = run.command(&args).spawn().unwrap();
        let server: u32 = poll(LONG, || std::fs::read_to_string(&file).ok()).expect("it runs").trim().parse().unwrap();
        until(began + Duration::from_millis(500));
        stand_still(&[child.id(), server], Instant::now() + Duration::from_millis(3500 + over));
        poll(LONG, || child.try_wait().unwrap()).expect("it ends");
        let report = report(&child.wait_with_output().unwrap());
        assert_eq!((&report["verdict"], codes(&report)), (&"pass".into(), vec![]), "{over}: {report:#}");
        let took = report["timings"]["startup_ms"].as_f64().unwrap();
        assert!(took < 4000.0, "its time is that without ours: {took}");
    }
}

#[test]
fn a_server_that_hangs_is_not_blamed_for_a_wait_in_which_we_stood_still() {
    let (run, scratch) = (Run::new(), Scratch::new());
    let file = scratch.path("asked");
    let script = format!("read asked; echo 1 >'{file}'; exec '{PROGRAM}' sample-server mute");
    let mut args = vec!["check", "--format", "json", "--era", "legacy"];
    args.extend(SHORT);
    args.extend(["--", "sh", "-c", &script]);
    let mut child = run.command(&args).spawn().unwrap();
    poll(LONG, || std::fs::read_to_string(&file).ok()).expect("it is asked");
    // We wait by then.
    until(Instant::now() + Duration::from_millis(50));
    stand_still(&[child.id()], Instant::now() + Duration::from_millis(1800));
    poll(LONG, || child.try_wait().unwrap()).expect("it ends");
    let report = report(&child.wait_with_output().unwrap());
    assert_eq!(report["verdict"], "unknown", "{report:#}");
    assert_eq!(codes(&report), ["probe.host_busy", "timeout.silent"], "{report:#}");
}

#[test]
fn a_server_that_ended_while_we_stood_still_ended_by_itself() {
    // It needs a second of its three to end. Either we alone stand still meanwhile, or it does too.
    for together in [false, true] {
        let run = Run::new();
        let scratch = Scratch::new();
        let file = scratch.path("pid");
        let script = format!("'{PROGRAM}' sample-server sound; echo $$ >'{file}.new'; mv '{file}.new' '{file}'; sleep 1; :");
        let args = ["check", "--format", "json", "--era", "legacy", "--eof-grace", "3s", "--term-grace", "2s", "--", "sh", "-c", &script];
        let mut child = run.command(&args).spawn().unwrap();
        let server: u32 = poll(LONG, || std::fs::read_to_string(&file).ok()).expect("its input has ended").trim().parse().unwrap();
        let all = [child.id(), server];
        stand_still(if together { &all } else { &all[..1] }, Instant::now() + Duration::from_secs(4));
        poll(LONG, || child.try_wait().unwrap()).expect("it ends");
        let report = report(&child.wait_with_output().unwrap());
        let shown = (&report["verdict"], codes(&report), &report["shutdown"]["ended_by"]);
        assert_eq!(shown, (&"pass".into(), vec![], &"eof".into()), "{together}: {report:#}");
    }
}

#[test]
fn a_killed_check_leaves_nothing() {
    for kind in ["mute", "ignore-sigterm", "helper"] {
        let run = Run::new();
        let mut child = run.command(&["check", "--", PROGRAM, "sample-server", kind]).spawn().unwrap();
        run.waits_for_server();
        signal(child.id(), "KILL");
        child.wait().unwrap();
        run.leaves_nothing(Duration::from_secs(1));
    }
}

#[test]
fn every_finding_can_be_explained() {
    let list = String::from_utf8(Run::new().output(&["explain"]).stdout).unwrap();
    assert!(list.lines().count() > 50);
    let page = String::from_utf8(Run::new().output(&["explain", "stdout.noise"]).stdout).unwrap();
    assert!(page.contains("What it means") && page.contains("What to do"), "{page}");
    // What JUnit's reports call an entry that is wrong.
    let broken = Run::new().output(&["explain", "config.broken"]);
    assert!(broken.status.success() && String::from_utf8(broken.stdout).unwrap().contains("no client can use it"));
}
