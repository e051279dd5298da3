//! What servers list: locked, compared, kept over restarts.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::fs;
use std::os::unix::fs::{DirEntryExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::*;
use stdiowatch::judge::LockFile;
use stdiowatch::outside::vault::Vault;

/// A server of the legacy era that lists what is in the file `tools` beside it, and calls itself what
/// is in the file `version`. While there is a file `hold`, it lists nothing, and makes a file `holds`.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=${line##*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"server/discover"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"Method not found"}}' ;;
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"mine","version":"'$(cat "$0.version")'"}}}' ;;
    *'"tools/list"'*)
      while [ -e "$0.hold" ]; do : >"$0.holds"; sleep 0.02; done
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":'$(cat "$0.tools")'}}' ;;
  esac
done
"#;

const ECHO: &str = r#"{"name":"echo","description":"Says it back.","inputSchema":{"type":"object","properties":{"message":{"type":"string"}}}}"#;
const ADD: &str = r#"{"name":"add","description":"Adds.","inputSchema":{"type":"object"}}"#;

struct Mine {
    scratch: Scratch,
    run: Run,
}

impl Mine {
    fn new() -> Mine {
        let mine = Mine { scratch: Scratch::new(), run: Run::new() };
        mine.scratch.write("mine", SERVER);
        mine.is("1.0.0", &[ECHO, ADD]);
        mine
    }

    /// What it is from now on.
    fn is(&self, version: &str, tools: &[&str]) {
        self.scratch.write("mine.version", version);
        self.scratch.write("mine.tools", &format!("[{}]", tools.join(",")));
    }

    /// Runs a subcommand with these options for it.
    fn output(&self, subcommand: &str, options: &[&str]) -> Output {
        let script = self.scratch.path("mine");
        let mut args = vec![subcommand, "--name", "mine"];
        args.extend_from_slice(options);
        args.extend_from_slice(&["--", "sh", &script]);
        let output = self.run.command(&args).current_dir(&self.scratch.0).output().unwrap();
        self.run.leaves_nothing(Duration::from_secs(2));
        output
    }

    fn serve(&self, options: &[&str]) -> Serving {
        let script = self.scratch.path("mine");
        let mut args = vec!["--name", "mine", "--interval", "1s"];
        args.extend_from_slice(options);
        args.extend_from_slice(&["--", "sh", &script]);
        Serving::start(&self.run, &args)
    }

    fn report(&self, options: &[&str]) -> serde_json::Value {
        let mut args = vec!["--format", "json"];
        args.extend_from_slice(options);
        report(&self.output("check", &args))
    }
}

fn out(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_lock_is_written_once_and_checked_ever_after() {
    let mine = Mine::new();
    let first = mine.output("lock", &[]);
    assert_eq!((first.status.code(), out(&first)), (Some(0), "mine: 2 tools\nmcp.lock.json written\n".to_owned()));
    let text = mine.scratch.read("mcp.lock.json");
    let again = mine.output("lock", &[]);
    assert_eq!((again.status.code(), out(&again)), (Some(0), "mine: 2 tools\nmcp.lock.json is up to date\n".to_owned()));
    assert_eq!(mine.scratch.read("mcp.lock.json"), text, "byte for byte");
    assert_eq!(mine.output("lock", &["--check"]).status.code(), Some(0));
    // The order of the list says nothing.
    mine.is("1.0.0", &[ADD, ECHO]);
    assert_eq!(mine.output("lock", &["--check"]).status.code(), Some(0));
    mine.is("1.0.0", &[ECHO]);
    let stale = mine.output("lock", &["--check"]);
    assert_eq!(stale.status.code(), Some(1), "{}", out(&stale));
    assert!(out(&stale).contains("-  add (breaking)") && out(&stale).contains("mcp.lock.json would change"), "{}", out(&stale));
    assert_eq!(mine.scratch.read("mcp.lock.json"), text, "--check writes nothing");
}

#[test]
fn one_file_holds_several_servers() {
    let mine = Mine::new();
    mine.output("lock", &[]);
    let other = mine.run.command(&["lock", "--", PROGRAM, "sample-server", "sound"]).current_dir(&mine.scratch.0).output().unwrap();
    assert_eq!(other.status.code(), Some(0), "{}", out(&other));
    let lock: serde_json::Value = serde_json::from_str(&mine.scratch.read("mcp.lock.json")).unwrap();
    let names: Vec<&String> = lock["servers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["mine", "stdiowatch"]);
    assert_eq!(mine.output("check", &["--lock", "mcp.lock.json"]).status.code(), Some(0));
}

#[test]
fn runs_at_the_same_time_lose_nothing() {
    let mine = Mine::new();
    let script = mine.scratch.path("mine");
    let names = ["a", "b", "c", "d", "e"];
    let runs: Vec<_> = names
        .iter()
        .map(|name| mine.run.command(&["lock", "--name", name, "--", "sh", &script]).current_dir(&mine.scratch.0).spawn().unwrap())
        .collect();
    for run in runs {
        assert_eq!(run.wait_with_output().unwrap().status.code(), Some(0));
    }
    let lock: serde_json::Value = serde_json::from_str(&mine.scratch.read("mcp.lock.json")).unwrap();
    assert_eq!(lock["servers"].as_object().unwrap().keys().collect::<Vec<_>>(), names);
}

#[test]
fn check_fails_on_what_is_not_in_the_lock_file() {
    let mine = Mine::new();
    mine.output("lock", &[]);
    let same = mine.report(&["--lock", "mcp.lock.json"]);
    assert_eq!((&same["verdict"], &same["drift"]["status"]), (&"pass".into(), &"same".into()));
    mine.is("1.1.0", &[&ECHO.replace("Says it back.", "Says it back, and sends it home."), r#"{"name":"new","inputSchema":{"type":"object"}}"#]);
    let output = mine.output("check", &["--lock", "mcp.lock.json", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let drifted = report(&output);
    assert_eq!((&drifted["verdict"], &drifted["reason"]), (&"fail".into(), &"schema_drift".into()));
    assert_eq!(codes(&drifted), ["drift.added", "drift.removed", "drift.changed"]);
    let drift = &drifted["drift"];
    assert_eq!((&drift["added"], &drift["removed"]), (&serde_json::json!(["new"]), &serde_json::json!(["add"])));
    assert_eq!((&drift["changed"][0]["path"], &drift["changed"][0]["class"]), (&"/description".into(), &"description".into()));
    assert_eq!((&drift["upgrade"], &drift["against"]["source"]), (&true.into(), &"lock".into()));
    // People see it too.
    let human = out(&mine.output("check", &["--lock", "mcp.lock.json"]));
    assert!(human.contains("drift.changed") && human.contains("/description"), "{human}");
    assert!(human.contains("1.0.0") && human.contains("1.1.0"), "{human}");
}

#[test]
fn classes_can_be_allowed() {
    let mine = Mine::new();
    mine.output("lock", &[]);
    mine.is("1.0.0", &[&ECHO.replace("back", "BACK"), ADD, r#"{"name":"new","inputSchema":{"type":"object"}}"#]);
    let with = |allow: &str| {
        let report = mine.report(&["--lock", "mcp.lock.json", "--allow", allow]);
        report["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!((with("compatible").as_str(), with("description").as_str(), with("compatible,description").as_str()), ("fail", "fail", "pass"));
    mine.is("1.0.0", &[ECHO]);
    assert_eq!((with("compatible,description").as_str(), with("breaking").as_str()), ("fail", "pass"));
    let wrong = mine.output("check", &["--allow", "harmless"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(out(&wrong).contains("annotation, description, compatible or breaking"), "{}", out(&wrong));
}

#[test]
fn a_lock_file_that_is_not_there_or_of_others_or_damaged_launches_nothing() {
    let mine = Mine::new();
    let check = |options: &[&str]| {
        let output = mine.output("check", options);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true));
        out(&output)
    };
    assert!(check(&["--lock", "mcp.lock.json"]).contains("there is no lock file mcp.lock.json: write it with `stdiowatch lock`"));
    mine.output("lock", &[]);
    let others =
        mine.run.command(&["check", "--lock", "mcp.lock.json", "--name", "other", "--", "false"]).current_dir(&mine.scratch.0).output().unwrap();
    assert!(out(&others).contains("says nothing of a server \"other\", but of: mine; --name says"), "{}", out(&others));
    // What is called so in a file is called otherwise there.
    std::fs::write(mine.scratch.0.join("f.yaml"), "servers: {other: {command: \"false\"}}\n").unwrap();
    for (lock, wanted) in [
        ("mcp.lock.json", "but of: mine; call it so in the file, or lock it with `stdiowatch lock --config FILE NAME`"),
        ("none.json", "there is no lock file none.json: write it with `stdiowatch lock --config FILE NAME`"),
    ] {
        let told = mine.run.command(&["check", "--lock", lock, "--config", "f.yaml"]).current_dir(&mine.scratch.0).output().unwrap();
        assert!(told.status.code() == Some(2) && out(&told).contains(wanted), "{}", out(&told));
    }
    mine.scratch.write("mcp.lock.json", &mine.scratch.read("mcp.lock.json").replace("Says", "SAYS"));
    assert!(check(&["--lock", "mcp.lock.json"]).contains("mcp.lock.json:5:17: the items have the digest"));
    let refused = mine.output("lock", &[]);
    assert_eq!(refused.status.code(), Some(2), "what cannot be read is not overwritten: {}", out(&refused));
    // What is said helps: the command that refused it is not all of it.
    for damaged in ["", "<<<<<<< HEAD\n{}\n", "{\"format\":1,\"servers\":[]}"] {
        mine.scratch.write("mcp.lock.json", damaged);
        let refused = mine.output("lock", &[]);
        let wanted = "remove the file (or take an older one), then write it by `stdiowatch lock`";
        assert!(refused.status.code() == Some(2) && out(&refused).contains(wanted), "{}", out(&refused));
        std::fs::remove_file(mine.scratch.0.join("mcp.lock.json")).unwrap();
        assert_eq!(mine.output("lock", &[]).status.code(), Some(0));
    }
}

#[test]
fn lists_that_cannot_be_relied_on_are_not_locked() {
    for (tools, told) in [
        (vec![ECHO, ECHO], "echo is listed twice"),
        (vec![ECHO, r#"{"name":"echo","inputSchema":{"type":"object"}}"#], "echo is listed twice, and not the same both times"),
        (vec![r#"{"name":"k","inputSchema":{"type":"object","type":"object"}}"#], "there is an object with the same key twice in k"),
        (vec![r#"{"name":"n","inputSchema":{"type":"object","maximum":1e999}}"#], "there is a number that a double does not hold in n"),
    ] {
        let mine = Mine::new();
        mine.is("1.0.0", &tools);
        let refused = mine.output("lock", &[]);
        assert_eq!(refused.status.code(), Some(1), "{}", out(&refused));
        assert!(out(&refused).contains(told) && out(&refused).contains("nothing was written"), "{told}: {}", out(&refused));
        assert!(!mine.scratch.0.join("mcp.lock.json").exists());
    }
    let run = Run::new();
    let scratch = Scratch::new();
    for (kind, told) in [("hang", "its lists were not read to their end: timeout.silent"), ("exit", "exit.before_reply")] {
        let args = ["lock", "--request-timeout", "300ms", "--eof-grace", "200ms", "--term-grace", "200ms", "--", PROGRAM, "sample-server", kind];
        let refused = run.command(&args).current_dir(&scratch.0).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{}", out(&refused));
        assert!(out(&refused).contains(told), "{}", out(&refused));
    }
}

#[test]
fn a_secret_is_never_locked() {
    let mine = Mine::new();
    mine.is("1.0.0", &[&ECHO.replace("back", "to hunter2-hunter2")]);
    let refused = mine.output("lock", &["--env", "TOKEN=hunter2-hunter2"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(out(&refused).contains("echo holds the value of the variable TOKEN, which has no place in a file"), "{}", out(&refused));
    // Neither does a report tell it, nor a lock file of a server that does not.
    let told = out(&mine.output("check", &["--format", "json", "--env", "TOKEN=hunter2-hunter2"]));
    assert!(told.contains("to [redacted]") && !told.contains("hunter2"), "{told}");
    mine.is("1.0.0", &[ECHO]);
    assert_eq!(mine.output("lock", &["--env", "TOKEN=hunter2-hunter2"]).status.code(), Some(0));
    let lock = mine.scratch.read("mcp.lock.json");
    assert!(lock.contains("TOKEN") && !lock.contains("hunter2"), "{lock}");
}

#[test]
fn lists_taken_under_other_conditions_do_not_compare() {
    let mine = Mine::new();
    mine.output("lock", &["--env", "TOKEN=one-of-them"]);
    // The same lists are the same, whatever the conditions.
    assert_eq!(mine.report(&["--lock", "mcp.lock.json", "--env", "TOKEN=another-one"])["drift"]["status"], "same");
    mine.is("1.0.0", &[ECHO]);
    for (options, told) in [
        (["--env", "TOKEN=another-one"], "a configured variable has another value (TOKEN)"),
        (["--env", "OTHER=one-of-them"], "configured variables then: TOKEN; now: OTHER"),
        (["--env-mode", "inherit"], "environment mode sdk then, inherit now"),
    ] {
        let report = mine.report(&[&["--lock", "mcp.lock.json"], &options[..]].concat());
        assert_eq!((&report["verdict"], &report["drift"]["status"]), (&"pass".into(), &"not_comparable".into()), "{told}");
        assert_eq!(report["drift"]["why"], told);
        assert_eq!(codes(&report), ["drift.not_comparable"]);
    }
    let report = mine.report(&["--lock", "mcp.lock.json", "--env", "TOKEN=one-of-them"]);
    assert_eq!(report["verdict"], "fail");
    // Where no variable is configured, no value can be another one.
    mine.output("lock", &[]);
    let path = mine.scratch.path("mcp.lock.json");
    let lock = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, lock.replacen("\"mine\":", "\"other\":", 1)).unwrap();
    mine.is("1.0.0", &[ADD]);
    let script = mine.scratch.path("mine");
    let args = ["check", "--format", "json", "--name", "other", "--lock", "mcp.lock.json", "--", "sh", &script];
    let renamed = common::report(&mine.run.command(&args).current_dir(&mine.scratch.0).output().unwrap());
    let why = renamed["drift"]["why"].as_str().unwrap();
    assert!(why.starts_with("it was locked under another name: "), "{why}");
}

#[test]
fn diff_compares_lock_files_and_reports() {
    let mine = Mine::new();
    mine.output("lock", &["--lock", "old.json"]);
    mine.is("2.0.0", &[&ECHO.replace("back", "home"), ADD]);
    mine.output("lock", &["--lock", "new.json"]);
    let report = mine.output("check", &["--format", "json"]);
    fs::write(mine.scratch.0.join("report.json"), &report.stdout).unwrap();
    let diff = |old: &str, new: &str, format: &str| {
        let output = mine.run.command(&["diff", old, new, "--format", format]).current_dir(&mine.scratch.0).output().unwrap();
        (output.status.code().unwrap(), out(&output))
    };
    assert_eq!(diff("old.json", "old.json", "human"), (0, "mine: the same\n".to_owned()));
    let (status, text) = diff("old.json", "new.json", "human");
    assert_eq!(status, 1);
    assert!(text.starts_with("mine (mine 1.0.0 → mine 2.0.0)\n") && text.contains("/description") && text.contains("home"), "{text}");
    let (status, text) = diff("old.json", "report.json", "json");
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &document["servers"]["mine"]["changed"][0]["class"]), (1, &"description".into()), "{text}");
    assert_eq!(diff("new.json", "report.json", "human").0, 0);
    for (old, new, told) in [
        ("missing.json", "new.json", "cannot read missing.json"),
        ("new.json", "mine", "mine:2:1: this is no JSON"),
        ("new.json", "mine.tools", "mine.tools:1:1: this is no lock file"),
    ] {
        let (status, text) = diff(old, new, "human");
        assert_eq!(status, 2, "{text}");
        assert!(text.contains(told), "{text}");
    }
    let broken = mine.run.output(&["check", "--format", "json", "--", "false"]);
    fs::write(mine.scratch.0.join("broken.json"), &broken.stdout).unwrap();
    let (status, text) = diff("new.json", "broken.json", "human");
    assert!(status == 2 && text.contains("does not hold what it lists"), "{text}");
}

#[test]
fn what_was_accepted_outlives_a_restart() {
    let mine = Mine::new();
    let state = mine.scratch.path("state");
    let serve = || mine.serve(&["--state-dir", &state, "--enable-actions"]);
    let mut serving = serve();
    serving.metric_becomes("stdiowatch_schema_drift{server=\"mine\"}", 0.0);
    assert_eq!(serving.metric("stdiowatch_state_kept"), Some(1.0));
    serving.signal("TERM");
    assert_eq!(serving.wait().code(), Some(0));
    // A release comes, and with it a new process of ours.
    mine.is("1.1.0", &[&ECHO.replace("back", "home"), ADD]);
    let mut serving = serve();
    serving.metric_becomes("stdiowatch_schema_drift{server=\"mine\"}", 1.0);
    assert_eq!(serving.metric("stdiowatch_schema_drift_changes{server=\"mine\",class=\"description\"}"), Some(1.0));
    let report: serde_json::Value = serde_json::from_str(&serving.get("/api/v1/servers/mine").1).unwrap();
    assert_eq!((&report["verdict"], &report["drift"]["upgrade"]), (&"warn".into(), &true.into()));
    assert_eq!(report["drift"]["changed"][0]["tool"], "echo");
    // It stays so until a person accepts it.
    let (status, told) = serving.ask("POST", "/-/accept/mine");
    assert_eq!((status, told.as_str()), (200, "what was listed last is accepted\n"));
    serving.metric_becomes("stdiowatch_schema_drift{server=\"mine\"}", 0.0);
    assert_eq!(serving.ask("POST", "/-/accept/nobody").0, 404);
    assert_eq!(serving.ask("GET", "/-/accept/mine").0, 405);
    serving.signal("TERM");
    serving.wait();
    let serving = serve();
    serving.becomes("/readyz", 200);
    assert_eq!(serving.metric("stdiowatch_schema_drift{server=\"mine\"}"), Some(0.0), "what was accepted outlives a restart too");
}

#[test]
fn what_is_accepted_while_a_probe_runs_is_what_it_is_compared_with() {
    let mine = Mine::new();
    let serving = mine.serve(&["--enable-actions"]);
    let drift = "stdiowatch_schema_drift{server=\"mine\"}";
    serving.metric_becomes(drift, 0.0);
    mine.is("1.1.0", &[&ECHO.replace("back", "home"), ADD]);
    serving.metric_becomes(drift, 1.0);
    mine.scratch.write("mine.hold", "");
    let holds = || Path::new(&mine.scratch.path("mine.holds")).exists().then_some(());
    poll(LONG, holds).unwrap();
    let told = || {
        let of = |series: &str| serving.metric(series).unwrap();
        (of("stdiowatch_findings_total{server=\"mine\",code=\"drift.changed\"}"), of("stdiowatch_probes_total{server=\"mine\"}"))
    };
    let (findings, probes) = told();
    assert!(findings > 0.0);
    assert_eq!(serving.ask("POST", "/-/accept/mine").0, 200);
    assert_eq!((serving.metric(drift), told()), (Some(0.0), (findings, probes)), "it still runs");
    fs::remove_file(mine.scratch.path("mine.hold")).unwrap();
    poll(LONG, || (told().1 > probes).then_some(())).unwrap();
    assert_eq!((serving.metric(drift), told().0), (Some(0.0), findings));
}

#[test]
fn what_probes_came_to_outlives_a_restart_and_says_nothing_of_now() {
    let mine = Mine::new();
    let state = mine.scratch.path("state");
    let history = |serving: &Serving| -> serde_json::Value { serde_json::from_str(&serving.get("/api/v1/servers/mine/history").1).unwrap() };
    let recent = |history: &serde_json::Value| history["recent"].as_array().unwrap().len();
    let mut serving = mine.serve(&["--state-dir", &state]);
    poll(LONG, || (recent(&history(&serving)) >= 3).then_some(())).expect("it is probed");
    serving.signal("TERM");
    serving.wait();
    // From now on it says nothing, and so nothing is known of it.
    mine.scratch.write("mine", "sleep 60");
    let mut serving = mine.serve(&["--state-dir", &state]);
    let kept = history(&serving);
    assert!(recent(&kept) >= 3 && kept["last_success"].is_string(), "{kept}");
    assert_eq!((&kept["verdict"], &kept["since"]), (&"unknown".into(), &serde_json::Value::Null));
    let (status, health) = serving.get("/health/mine");
    assert!(status == 503 && health.contains("unprobed"), "{health}");
    assert!(serving.get("/servers/mine").1.contains("It has not been probed since stdiowatch was started."));
    serving.signal("TERM");
    serving.wait();
    // What was not probed keeps what it had.
    let serving = mine.serve(&["--state-dir", &state]);
    assert_eq!(history(&serving)["recent"], kept["recent"]);
}

#[test]
fn nothing_is_accepted_over_http_unless_asked_for() {
    let mine = Mine::new();
    let serving = mine.serve(&[]);
    serving.becomes("/readyz", 200);
    assert_eq!(serving.ask("POST", "/-/accept/mine").0, 403);
}

#[test]
fn a_lock_file_says_what_is_accepted_in_serve_too() {
    let mine = Mine::new();
    mine.output("lock", &[]);
    mine.is("1.0.0", &[ECHO]);
    let lock = mine.scratch.path("mcp.lock.json");
    let serving = mine.serve(&["--lock", &lock, "--enable-actions"]);
    let body = serving.becomes("/health/mine", 503);
    poll(LONG, || serving.get("/health/mine").1.contains("drift.removed").then_some(())).unwrap_or_else(|| panic!("{body}"));
    assert_eq!(serving.ask("POST", "/-/accept/mine").0, 409);
}

#[test]
fn a_damaged_or_foreign_state_file_is_set_aside() {
    for damage in ["", "{\"format\": 1", "\0\0\0\0", "{\"format\":1,\"servers\":{}}", "{\"format\":99,\"servers\":{}}"] {
        let mine = Mine::new();
        let state = mine.scratch.path("state");
        let mut serving = mine.serve(&["--state-dir", &state]);
        serving.metric_becomes("stdiowatch_schema_drift{server=\"mine\"}", 0.0);
        serving.signal("TERM");
        serving.wait();
        let files: Vec<_> = fs::read_dir(&state).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "json")).collect();
        assert_eq!(files.len(), 2, "what was accepted, and the history");
        files.iter().for_each(|file| fs::write(file, damage).unwrap());
        let serving = mine.serve(&["--state-dir", &state]);
        serving.becomes("/readyz", 200);
        serving.metric_becomes("stdiowatch_schema_drift{server=\"mine\"}", 0.0);
        for file in files {
            assert_eq!(fs::read(format!("{}.set-aside", file.display())).unwrap(), damage.as_bytes());
        }
    }
}

#[test]
fn a_pipe_in_place_of_a_state_file_keeps_nobody_waiting() {
    let mine = Mine::new();
    let state = mine.scratch.path("state");
    let mut serving = mine.serve(&["--state-dir", &state]);
    serving.metric_becomes("stdiowatch_schema_drift{server=\"mine\"}", 0.0);
    serving.signal("TERM");
    serving.wait();
    for entry in fs::read_dir(&state).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "json")) {
        fs::remove_file(&entry).unwrap();
        assert!(Command::new("mkfifo").arg(&entry).status().unwrap().success());
    }
    let serving = mine.serve(&["--state-dir", &state]);
    serving.becomes("/health/mine", 200);
}

#[test]
fn a_state_directory_that_cannot_be_written_is_told_and_no_trouble() {
    let mine = Mine::new();
    let file = mine.scratch.write("file", "");
    for dir in [format!("{file}/state"), "/proc/stdiowatch".to_owned()] {
        let serving = mine.serve(&["--state-dir", &dir]);
        serving.becomes("/health/mine", 200);
        serving.metric_becomes("stdiowatch_state_kept", 0.0);
        serving.metric_becomes("stdiowatch_state_write_failures_total", 1.0);
    }
}

/// Not a test of its own: what the one below kills. Keeps one text, then another, on and on.
#[test]
#[ignore = "started by the test below"]
fn writes_on_and_on() {
    let Some(dir) = std::env::var_os("WRITES_TO") else { return };
    let vault = Vault::open(Path::new(&dir)).unwrap();
    for text in texts().iter().cycle() {
        vault.save("mine", text.as_bytes()).unwrap();
    }
}

/// Two lock files of some size.
fn texts() -> [String; 2] {
    ["one", "two"].map(|word| {
        let tools: Vec<String> = (0..300).map(|n| format!(r#"{{"name":"t{n}","description":"{}","inputSchema":{{}}}}"#, word.repeat(100))).collect();
        let report = format!(
            r#"{{"servers":[{{"server":"mine","era":"legacy","capabilities":[],"schema":{{"items":{{"tools":{{{}}}}}}}}}]}}"#,
            tools.iter().enumerate().map(|(n, tool)| format!("\"t{n}\":{tool}")).collect::<Vec<_>>().join(",")
        );
        LockFile::parse_any(report.as_bytes()).unwrap().to_text()
    })
}

#[test]
fn what_is_kept_is_whole_whenever_we_are_killed() {
    let scratch = Scratch::new();
    let texts = texts();
    let mut seen = [0; 2];
    for round in 0..200 {
        let me = std::env::current_exe().unwrap();
        let mut writer = Command::new(me)
            .args(["--exact", "writes_on_and_on", "--include-ignored"])
            .env("WRITES_TO", &scratch.0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Wherever it is in its work: so many replacements after its beginning, and a little later each time.
        let inode = || fs::read_dir(&scratch.0).unwrap().flatten().find(|e| e.path().extension().is_some_and(|e| e == "json")).map(|e| e.ino());
        let (mut last, mut replaced) = (inode(), 0);
        poll(LONG, || {
            let now = inode();
            replaced += u32::from(now.is_some() && now != last);
            last = now.or(last);
            (replaced > round % 4).then_some(())
        })
        .unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(u64::from(round) * 29) {
            std::hint::spin_loop();
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        let vault = Vault::open(&scratch.0).unwrap();
        let Some(kept) = vault.load("mine").unwrap() else { continue };
        let which = texts.iter().position(|text| text.as_bytes() == kept).unwrap_or_else(|| panic!("{} bytes after {round} kills", kept.len()));
        seen[which] += 1;
        let files = fs::read_dir(&scratch.0).unwrap().count();
        assert_eq!(files, 2, "what was not finished is cleared");
    }
    assert!(seen.iter().all(|n| *n > 10), "both were found: {seen:?}");
}

#[test]
fn state_files_are_for_their_owner_alone() {
    let mine = Mine::new();
    let state = mine.scratch.path("state");
    let serving = mine.serve(&["--state-dir", &state]);
    let files = || fs::read_dir(&state).map(|dir| dir.map(|e| e.unwrap()).collect::<Vec<_>>()).unwrap_or_default();
    // What says that it is in use, what was accepted, the history.
    poll(LONG, || (files().len() == 3).then_some(())).expect("it is kept");
    assert!(files().iter().all(|f| f.metadata().unwrap().permissions().mode() & 0o077 == 0));
    drop(serving);
}

/// As in a rollout: the new one is there before the old one is gone.
#[test]
fn who_finds_the_state_directory_in_use_takes_it_over_with_what_was_accepted() {
    let mine = Mine::new();
    let drift = "stdiowatch_schema_drift{server=\"mine\"}";
    let dir = mine.scratch.path("state");
    let mut old = mine.serve(&["--state-dir", &dir]);
    old.becomes("/health/mine", 200);
    mine.is("1.1.0", &[ECHO]);
    old.metric_becomes(drift, 1.0);
    let new = mine.serve(&["--state-dir", &dir]);
    new.metric_becomes(drift, 1.0);
    assert_eq!(new.metric("stdiowatch_state_kept"), Some(0.0), "what is kept there is known, and not ours");
    old.signal("TERM");
    old.wait();
    new.metric_becomes("stdiowatch_state_kept", 1.0);
    assert_eq!(new.metric(drift), Some(1.0));
}

/// Nobody is to be told that things are kept which are not: after a restart they would be taken as they are then.
#[test]
fn a_state_directory_that_was_removed_is_made_anew_with_all_that_was_accepted() {
    let mine = Mine::new();
    let drift = "stdiowatch_schema_drift{server=\"mine\"}";
    let dir = mine.scratch.path("state");
    let mut serving = mine.serve(&["--state-dir", &dir, "--enable-actions"]);
    serving.metric_becomes(drift, 0.0);
    mine.is("1.1.0", &[ECHO]);
    serving.metric_becomes(drift, 1.0);
    // It is looked at before something is written.
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(serving.ask("POST", "/-/accept/mine").0, 200);
    serving.metric_becomes("stdiowatch_state_write_failures_total", 1.0);
    serving.metric_becomes("stdiowatch_state_kept", 1.0);
    serving.signal("TERM");
    serving.wait();
    mine.is("1.2.0", &[ADD]);
    mine.serve(&["--state-dir", &dir]).metric_becomes(drift, 1.0);
}
