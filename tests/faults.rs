//! Every misbehaving server under `tests/servers`, probed by the real program and held against what
//! its own head says is right.
//!
//! A `.mcp` file is a script for `liar` (see `servers/liar.rs`), a `.sh` file one for `/bin/sh`, with
//! `$LIAR` in its environment. The head is the comment at the top: first what the server does, with
//! a public report of its kind where there is one, then
//!
//! ```text
//! # flags: --stdio socketpair        options besides, or instead of, the usual ones
//! # expect: KEY=VALUE…               what is right; `|` stands between alternatives
//! ```
//!
//! `codes` must all be there. No other finding may be, unless it is `info` or listed as `may`; `never`
//! may not even be `info`. `says` is a word in some finding, `hides` one that is nowhere in the report.
//! The other keys are members of the report.

#![allow(clippy::disallowed_methods, reason = "this test launches the program under test, and waits in real time")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_stdiowatch");
/// A process that carries this in its environment or its arguments belongs to one run of this test.
const MARK: &str = "FAULT_MARK";
/// Servers at the same time.
const WORKERS: usize = 4;
/// A probe that takes longer than its limits and this is stuck.
const SLACK: Duration = Duration::from_secs(8);
const USUAL: [(&str, &str); 5] =
    [("--startup-timeout", "3s"), ("--request-timeout", "1500ms"), ("--total-timeout", "15s"), ("--eof-grace", "500ms"), ("--term-grace", "500ms")];

/// Keys of a head and where the report has them.
const MEMBERS: [(&str, &str); 18] = [
    ("verdict", "/verdict"),
    ("reason", "/reason"),
    ("era", "/era"),
    ("version", "/protocol_version"),
    ("spawns", "/spawns"),
    ("tools", "/lists/tools"),
    ("prompts", "/lists/prompts"),
    ("resources", "/lists/resources"),
    ("templates", "/lists/resource_templates"),
    ("complete", "/schema/complete"),
    ("ended_by", "/shutdown/ended_by"),
    ("exit_code", "/shutdown/exit_code"),
    ("signal", "/shutdown/signal"),
    ("leftover_group", "/shutdown/leftover_group"),
    ("leftover_escaped", "/shutdown/leftover_escaped"),
    ("pipe_held", "/shutdown/pipe_held"),
    ("min_startup_ms", "/timings/startup_ms"),
    ("max_total_ms", "/timings/total_ms"),
];

/// One server and what is right.
struct Case {
    name: String,
    flags: Vec<String>,
    command: Vec<String>,
    expect: Vec<(String, String)>,
}

impl Case {
    fn read(path: &Path) -> Case {
        let file = path.to_str().unwrap().to_owned();
        let command = if file.ends_with(".sh") { vec!["/bin/sh".to_owned(), file] } else { vec![liar().to_str().unwrap().to_owned(), file] };
        Case::with_head(path.file_name().unwrap().to_str().unwrap(), &fs::read_to_string(path).unwrap(), command)
    }

    /// A case whose flags and expectations are in the head of `text`.
    fn with_head(name: &str, text: &str, command: Vec<String>) -> Case {
        let head = |key: &str| -> String {
            let lines = text.lines().filter_map(|line| line.strip_prefix("# ")?.strip_prefix(key));
            lines.collect::<Vec<_>>().join(" ")
        };
        Case::new(name, &head("flags:"), command, &head("expect:"))
    }

    fn new(name: &str, flags: &str, command: Vec<String>, expect: &str) -> Case {
        let pair = |word: &str| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        let expect: Vec<_> = expect.split_whitespace().map(|word| pair(word).unwrap_or_else(|| panic!("{name}: {word} is no KEY=VALUE"))).collect();
        let case = Case { name: name.to_owned(), flags: flags.split_whitespace().map(str::to_owned).collect(), command, expect };
        for (key, _) in &case.expect {
            let known = ["codes", "may", "never", "says", "hides"].contains(&key.as_str()) || MEMBERS.iter().any(|(member, _)| member == key);
            assert!(known, "{name}: there is no key {key}");
        }
        assert!(case.get("verdict").is_some(), "{name}: no verdict is expected");
        case
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.expect.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// Codes under `key`, each with its alternatives.
    fn codes(&self, key: &str) -> Vec<Vec<&str>> {
        self.get(key).into_iter().flat_map(|list| list.split(',')).map(|code| code.split('|').collect()).collect()
    }

    /// Probes the server and says what is wrong with the report.
    fn run(&self) -> Vec<String> {
        let mark = format!("{}-{}", process::id(), self.name);
        let mut command = Command::new(PROGRAM);
        command.args(["check", "--format", "json", "--env", &format!("{MARK}={mark}"), "--env", &format!("LIAR={}", liar().display())]);
        for (flag, value) in USUAL {
            if !self.flags.iter().any(|own| own == flag) {
                command.args([flag, value]);
            }
        }
        command.args(&self.flags).arg("--").args(&self.command);
        let mut wrong = Vec::new();
        match output(command) {
            None => wrong.push("stdiowatch hung".to_owned()),
            Some(output) => self.hold(&output, &mut wrong),
        }
        let left = survivors(&mark);
        if !left.is_empty() {
            wrong.push(format!("survivors: {}", left.join(", ")));
        }
        wrong
    }

    fn hold(&self, output: &Output, wrong: &mut Vec<String>) {
        let text = String::from_utf8_lossy(&output.stdout);
        let report = serde_json::from_str::<Value>(&text).unwrap_or_default()["servers"][0].take();
        if let Some(c) = text.chars().find(|c| c.is_control() && *c != '\n') {
            wrong.push(format!("{c:?} stands in the report as it is"));
        }
        if report.is_null() {
            wrong.push(format!("no report: {}; {:?}", output.status, String::from_utf8_lossy(&output.stderr)));
            return;
        }
        for (key, pointer) in MEMBERS {
            let Some(wanted) = self.get(key) else { continue };
            let got = report.pointer(pointer).unwrap_or(&Value::Null);
            let word = got.as_str().map_or_else(|| got.to_string(), str::to_owned);
            let limit = wanted.parse::<f64>().unwrap_or_default();
            let right = match key {
                "min_startup_ms" => got.as_f64().is_some_and(|got| got >= limit),
                "max_total_ms" => got.as_f64().is_some_and(|got| got <= limit),
                _ => wanted.split('|').any(|wanted| wanted == word),
            };
            if !right {
                wrong.push(format!("{key} is {word}, not {wanted}"));
            }
        }
        self.hold_findings(&report, wrong);
        hold_always(&report, output.status.code(), wrong);
        if let Some(secret) = self.get("hides") {
            let places = strings(&report).into_iter().filter(|(_, text)| text.contains(secret));
            wrong.extend(places.map(|(place, _)| format!("the secret is in {place}")));
        }
        if !wrong.is_empty() {
            let told: Vec<String> = findings(&report).map(|f| format!("{}={}", word(f, "code"), word(f, "severity"))).collect();
            wrong.push(format!("[findings: {}]", told.join(" ")));
        }
    }

    fn hold_findings(&self, report: &Value, wrong: &mut Vec<String>) {
        let found: Vec<(&str, &str)> = findings(report).map(|f| (word(f, "code"), word(f, "severity"))).collect();
        for wanted in self.codes("codes") {
            if !found.iter().any(|(code, _)| wanted.contains(code)) {
                wrong.push(format!("no {}", wanted.join(" or ")));
            }
        }
        let allowed: BTreeSet<&str> = ["codes", "may"].iter().flat_map(|key| self.codes(key)).flatten().collect();
        for (code, severity) in &found {
            if *severity != "info" && !allowed.contains(code) {
                wrong.push(format!("{code} ({severity}) is no fault of this server"));
            }
            if *severity != "info" && self.codes("never").iter().flatten().any(|never| never == code) {
                wrong.push(format!("{code} must not be"));
            }
        }
        if let Some(said) = self.get("says")
            && !findings(report).any(|f| word(f, "message").contains(said) || word(f, "evidence").contains(said))
        {
            wrong.push(format!("nothing says {said}"));
        }
    }
}

/// What is right of every report.
fn hold_always(report: &Value, status: Option<i32>, wrong: &mut Vec<String>) {
    let verdict = word(report, "verdict");
    let wanted = match verdict {
        "pass" | "warn" => 0,
        "fail" => 1,
        _ => 3,
    };
    if status != Some(wanted) {
        wrong.push(format!("exit status {status:?} for {verdict}"));
    }
    let worst = ["fail", "unknown", "warn"].into_iter().find(|severity| findings(report).any(|f| word(f, "severity") == *severity));
    if verdict != worst.unwrap_or("pass") {
        wrong.push(format!("the verdict is {verdict}, the worst finding {worst:?}"));
    }
    if report["reason"].is_null() == (verdict == "fail") {
        wrong.push(format!("reason {} for {verdict}", report["reason"]));
    }
    for finding in findings(report) {
        let code = word(finding, "code");
        if word(finding, "evidence").trim().is_empty() || word(finding, "message").trim().is_empty() {
            wrong.push(format!("{code} has no evidence or no message"));
        }
        if word(finding, "evidence").len() > 3000 || word(finding, "message").len() > 1000 {
            wrong.push(format!("{code} is not bounded"));
        }
    }
    if let Some((place, text)) = strings(report)
        .into_iter()
        // What is listed is there as it is, for `diff`; the text of the report shows it escaped.
        .filter(|(place, _)| !place.starts_with("/schema/items/"))
        .find(|(place, text)| text.chars().any(|c| c.is_control() && !(place == "/stderr_tail" && matches!(c, '\n' | '\t'))))
    {
        let shown: String = text.escape_debug().take(80).collect();
        wrong.push(format!("a control character in {place}: {shown}"));
    }
    if word(report, "stderr_tail").len() > 64 << 10 {
        wrong.push("stderr_tail is not bounded".to_owned());
    }
}

fn findings(report: &Value) -> impl Iterator<Item = &Value> {
    report["findings"].as_array().into_iter().flatten()
}

fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// Every string in `value`, keys too, with its place.
fn strings(value: &Value) -> Vec<(String, String)> {
    let mut todo = vec![(String::new(), value)];
    let mut found = Vec::new();
    while let Some((place, value)) = todo.pop() {
        match value {
            Value::String(text) => found.push((place, text.clone())),
            Value::Array(items) => todo.extend(items.iter().enumerate().map(|(n, item)| (format!("{place}/{n}"), item))),
            Value::Object(members) => {
                found.extend(members.keys().map(|key| (format!("{place} (a key)"), key.clone())));
                todo.extend(members.iter().map(|(key, item)| (format!("{place}/{key}"), item)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

/// The output of `command`; `None` if it does not end.
fn output(mut command: Command) -> Option<Output> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let (done, ended) = mpsc::channel();
    thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    let output = ended.recv_timeout(Duration::from_secs(15) + SLACK).ok();
    if output.is_none() {
        end(pid);
        let _ = ended.recv_timeout(SLACK);
    }
    output
}

/// Processes of this run that live on, after a moment for the dying. They are ended.
fn survivors(mark: &str) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let left: Vec<(u32, String)> = fs::read_dir("/proc").unwrap().filter_map(|entry| marked(&entry.ok()?.path(), mark)).collect();
        if left.is_empty() || Instant::now() > deadline {
            left.iter().for_each(|(pid, _)| end(*pid));
            return left.into_iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The pid and the name of a living process that carries the mark.
fn marked(proc: &Path, mark: &str) -> Option<(u32, String)> {
    let pid: u32 = proc.file_name()?.to_str()?.parse().ok()?;
    let holds = |file: &str| fs::read(proc.join(file)).is_ok_and(|bytes| bytes.windows(mark.len()).any(|part| part == mark.as_bytes()));
    let stat = fs::read_to_string(proc.join("stat")).ok()?;
    let (name, rest) = (stat.split_once('(')?.1.rsplit_once(')')?.0, stat.rsplit_once(')')?.1);
    let dead = matches!(rest.trim_start().as_bytes().first(), Some(b'Z' | b'X'));
    (pid != process::id() && !dead && (holds("environ") || holds("cmdline"))).then(|| (pid, name.to_owned()))
}

fn end(pid: u32) {
    let _ = Command::new("/bin/sh").args(["-c", &format!("kill -KILL {pid}")]).stderr(Stdio::null()).status();
}

/// The scripted server: cargo puts examples beside the programs.
fn liar() -> PathBuf {
    Path::new(PROGRAM).with_file_name("examples").join("liar")
}

fn servers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers")
}

/// Runs the cases, a few at a time, and fails with a table of all that was wrong.
fn run_all(cases: &[Case]) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let began = Instant::now();
            let problems = case.run();
            if std::env::var_os("FAULTS_TIMES").is_some() {
                eprintln!("{:6.2} s  {}", began.elapsed().as_secs_f64(), case.name);
            }
            if !problems.is_empty() {
                wrong.push((case.name.clone(), problems));
            }
        }
        wrong
    };
    let mut wrong: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    wrong.sort();
    let mut table = format!("{} of {} servers are judged wrongly:\n", wrong.len(), cases.len());
    for (name, problems) in &wrong {
        let _ = writeln!(table, "{name:<36} {}", problems.join("; "));
    }
    assert!(wrong.is_empty(), "{table}");
}

#[test]
fn every_server_is_judged_rightly() {
    assert!(liar().exists(), "{} is missing: cargo builds it with the tests (or: cargo build --example liar)", liar().display());
    let only = std::env::var("FAULTS_ONLY").unwrap_or_default();
    let mut paths: Vec<PathBuf> = fs::read_dir(servers()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let is_script = |path: &&PathBuf| path.extension().is_some_and(|e| e == "mcp" || e == "sh");
    let cases: Vec<Case> = paths.iter().filter(is_script).map(|path| Case::read(path)).filter(|case| case.name.contains(&only)).collect();
    let explain = Command::new(PROGRAM).arg("explain").output().unwrap();
    let known = String::from_utf8_lossy(&explain.stdout).into_owned();
    for case in &cases {
        for code in ["codes", "may", "never"].iter().flat_map(|key| case.codes(key)).flatten() {
            assert!(known.contains(code), "{}: there is no code {code}", case.name);
        }
    }
    run_all(&cases);
}

#[test]
fn the_verdict_does_not_depend_on_the_cuts() {
    const SERVERS: [&str; 10] = [
        "batch_2025_06_18",
        "bom_on_second_reply",
        "encoding_latin1",
        "glued_after",
        "glued_two_messages",
        "half_line_then_exit",
        "lsp_glued",
        "multi_pretty_crlf_blank",
        "noise_open_brace",
        "surrogate_pair",
    ];
    // Three bytes at a time: through characters, escapes and ends of lines.
    let cut = |name: &&str| {
        let path = servers().join(format!("{name}.mcp"));
        let script = format!("{}\nchunk 3", fs::read_to_string(path).unwrap());
        Case::with_head(&format!("{name}, cut"), &script, vec![liar().to_str().unwrap().to_owned(), script.clone()])
    };
    run_all(&SERVERS.iter().map(cut).collect::<Vec<_>>());
}

#[test]
fn every_launch_error_has_its_own_code() {
    let dir = std::env::temp_dir().join(format!("stdiowatch-faults-{}", process::id()));
    fs::create_dir_all(&dir).unwrap();
    let file = |name: &str, text: &str, mode: &str| -> Vec<String> {
        let path = dir.join(name).to_str().unwrap().to_owned();
        fs::write(&path, text).unwrap();
        assert!(Command::new("/bin/chmod").args([mode, &path]).status().unwrap().success());
        vec![path]
    };
    let path = |path: &str| vec![path.to_owned()];
    let none = dir.join("none").to_str().unwrap().to_owned();
    let plain = file("plain", "", "0644").remove(0);
    std::os::unix::fs::symlink(&none, dir.join("dangling")).unwrap();
    let dangling = dir.join("dangling").to_str().unwrap().to_owned();
    let within = dir.to_str().unwrap().to_owned();
    let rows = [
        ("name_nowhere_on_path", "", path("stdiowatch-no-such-command"), "spawn.not_found"),
        ("path_without_a_file", "", path(&none), "spawn.not_found"),
        ("path_below_a_file", "", path(&format!("{plain}/server")), "spawn.not_found"),
        ("dangling_link", "", path(&dangling), "spawn.not_found"),
        ("name_not_on_the_servers_path", "--env PATH=/nonexistent", path("sh"), "spawn.not_found"),
        ("interpreter_missing", "", file("interpreter", "#!/no/such/interpreter\n", "0755"), "spawn.interpreter_missing"),
        ("interpreter_with_carriage_return", "", file("crlf", "#!/bin/sh\r\nexit 0\r\n", "0755"), "spawn.interpreter_missing"),
        ("directory_missing", &format!("--cwd {none}"), path("/bin/sh"), "spawn.cwd_missing"),
        ("directory_is_a_file", &format!("--cwd {plain}"), path("/bin/sh"), "spawn.cwd_missing"),
        ("mode_0644", "", file("mode", "#!/bin/sh\n", "0644"), "spawn.permission"),
        ("command_is_a_directory", "", path(&within), "spawn.permission"),
        ("text_without_interpreter", "", file("text", "var x = 1\n", "0755"), "spawn.exec_format"),
        ("empty_file", "", file("empty", "", "0755"), "spawn.exec_format"),
    ];
    let expect = |code: &str| format!("verdict=fail reason=spawn_failed codes={code} spawns=0 era=null tools=null");
    let cases: Vec<Case> = rows.into_iter().map(|(name, flags, command, code)| Case::new(name, flags, command, &expect(code))).collect();
    run_all(&cases);
    fs::remove_dir_all(&dir).unwrap();
}
