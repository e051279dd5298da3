//! The probe does no harm: live copies of a server that somebody else started, seen by the real program.
//!
//! The servers are a few lines of sh; the live copy of each is started here, as a client would, with its
//! stdin held open. What is waited for is polled for, to a deadline.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may give up; it is the client that starts the live copy, and the user")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_stdiowatch");

/// A small sound MCP server, in sh. Forks nothing.
const SERVE: &str = r#"
while read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in
        *'"initialize"'*) r='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"tools/list"'*) r='"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}' ;;
        *'"id":'*) r='"error":{"code":-32601,"message":"Method not found"}' ;;
        *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$r"
done
"#;

/// Takes a lock, or stops.
const LOCK: &str = r#"mkdir lock 2>mkdir.err || { echo "store: already locked by another process" >&2; exit 75; }
trap 'rmdir lock' EXIT
"#;

/// Ends the holder of its pid file, and becomes it.
const TAKE_OVER: &str = r#"echo launched >>launches
if read -r other <holder; then kill "$other"; fi 2>other.err
echo $$ >holder
trap 'rm -f holder' EXIT
"#;

/// A server of one test: a directory of its own, and a script that works in it.
struct Server {
    dir: PathBuf,
    script: String,
}

impl Server {
    fn new(before: &str) -> Server {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("peers-{}-{n}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let script = format!("cd {} || exit 9\n{before}{SERVE}", dir.display());
        Server { dir, script }
    }

    /// The same, as a file; says which.
    fn file(&self) -> String {
        let path = self.dir.join("server");
        fs::write(&path, format!("#!/bin/sh\n{}", self.script)).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn command(&self) -> [&str; 3] {
        ["sh", "-c", &self.script]
    }

    /// Starts the live copy, and waits until it answers.
    fn live(&self) -> Live {
        Live::start(&self.command())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn launches(&self) -> usize {
        fs::read_to_string(self.path("launches")).unwrap_or_default().lines().count()
    }
}

impl Drop for Server {
    /// Nothing of it is left.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let dir = self.dir.to_str().unwrap().to_owned();
        until("no survivor", || !running().iter().any(|(_, line)| line.contains(&dir)));
        fs::remove_dir_all(&self.dir).unwrap();
    }
}

/// A live copy, ended with its client.
struct Live {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Live {
    fn start(command: &[&str]) -> Live {
        let mut child =
            Command::new(command[0]).args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
        let mut answer = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut answer).unwrap();
        assert!(answer.contains("-32601"), "{answer}");
        Live { child, stdin: Some(stdin) }
    }

    fn pid(&self) -> u64 {
        self.child.id().into()
    }

    fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        drop(self.stdin.take());
        until("the live copy ends at end-of-file", || !self.lives());
    }
}

/// Polls, for 20 s at the most.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if done() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("waited in vain: {what}");
}

/// What runs: pid and command line.
fn running() -> Vec<(u32, String)> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let line = |pid: u32| Some((pid, String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).ok()?).replace('\0', " ")));
    pids.filter_map(line).collect()
}

/// `check --format json`, ready to be run.
fn check_command(options: &[&str], command: &[&str]) -> Command {
    let mut check = Command::new(PROGRAM);
    check.args(["check", "--format", "json", "--name", "s"]).args(options).arg("--").args(command).stdin(Stdio::null());
    check
}

/// A report, and the exit status.
fn report(output: &Output) -> (Value, i32) {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (document["servers"][0].clone(), output.status.code().unwrap())
}

fn check(options: &[&str], command: &[&str]) -> (Value, i32) {
    report(&check_command(options, command).output().unwrap())
}

fn codes(report: &Value) -> Vec<&str> {
    report["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

/// That nothing can be said, because of the live copy `pid`.
fn assert_second(result: &(Value, i32), pid: u64, sign: &str) {
    let (report, status) = result;
    assert_eq!((report["verdict"].as_str(), *status), (Some("unknown"), 3), "{report:#}");
    assert_eq!(report["reason"], Value::Null);
    let found = report["findings"].as_array().unwrap().iter().find(|f| f["code"] == "peer.second_instance").unwrap();
    let evidence = found["evidence"].as_str().unwrap();
    assert!(evidence.contains(&format!("pid {pid}")) && evidence.contains(sign), "{evidence}");
}

#[test]
fn a_copy_that_stops_over_the_lock_of_a_live_one_says_nothing() {
    let server = Server::new(LOCK);
    let alone = check(&[], &server.command());
    assert_eq!((alone.0["verdict"].as_str(), alone.1), (Some("pass"), 0), "{:#}", alone.0);
    assert_eq!(alone.0["peers"], serde_json::json!({"looked": true, "live": [], "died": []}));
    let live = server.live();
    assert_second(&check(&[], &server.command()), live.pid(), "already locked");
    drop(live);
    fs::create_dir(server.path("lock")).unwrap();
    let stale = check(&[], &server.command());
    let (verdict, reason) = (stale.0["verdict"].as_str(), stale.0["reason"].as_str());
    assert_eq!((verdict, reason, stale.1), (Some("fail"), Some("exited"), 1), "nobody lives who could hold it");
}

#[test]
fn a_copy_that_stops_without_a_word_or_waits_says_nothing_either() {
    let silent = Server::new("mkdir lock 2>mkdir.err || exit 1\ntrap 'rmdir lock' EXIT\n");
    let live = silent.live();
    assert_second(&check(&[], &silent.command()), live.pid(), "without a word");
    drop(live);
    let waits = Server::new("while ! mkdir lock 2>mkdir.err; do sleep 0.05; done\ntrap 'rmdir lock' EXIT\n");
    let live = waits.live();
    let options = ["--startup-timeout", "400ms", "--eof-grace", "100ms", "--era", "legacy"];
    assert_second(&check(&options, &waits.command()), live.pid(), "waits for a lock");
    drop(live);
    fs::remove_dir(waits.path("lock")).unwrap_or_default();
}

#[test]
fn a_live_copy_is_known_by_what_the_command_turns_out_to_run() {
    let server = Server::new(&format!("echo starting >&2; sleep 0.2\n{LOCK}"));
    let file = server.file();
    let live = Live::start(&["/bin/sh", &file]);
    assert_second(&check(&[], &[&file]), live.pid(), "already locked");
    // A wrapper, as npx is one: what it runs is what a client had started too.
    assert_second(&check(&[], &["sh", "-c", &format!("{file}; exit $?")]), live.pid(), "already locked");
}

#[test]
fn another_sidecars_probe_is_no_live_copy() {
    let server = Server::new(&format!("{LOCK}while [ -e wait ]; do sleep 0.02; done\n"));
    fs::write(server.path("wait"), "").unwrap();
    let other = check_command(&["--era", "legacy"], &server.command()).stdout(Stdio::piped()).spawn().unwrap();
    until("the other probe has the lock", || server.path("lock").exists());
    let (ours, status) = check(&["--era", "legacy"], &server.command());
    fs::remove_file(server.path("wait")).unwrap();
    assert_eq!((ours["verdict"].as_str(), status), (Some("fail"), 1), "{ours:#}");
    assert_eq!((codes(&ours), &ours["peers"]["live"]), (vec!["exit.before_reply"], &Value::Array(vec![])));
    let (theirs, status) = report(&other.wait_with_output().unwrap());
    assert_eq!((theirs["verdict"].as_str(), status), (Some("pass"), 0), "{theirs:#}");
}

#[test]
fn check_says_that_a_live_copy_died() {
    let server = Server::new(TAKE_OVER);
    let (alone, status) = check(&[], &server.command());
    assert_eq!((alone["verdict"].as_str(), status), (Some("pass"), 0), "{alone:#}");
    let mut live = server.live();
    let (report, status) = check(&[], &server.command());
    assert!(!live.lives());
    assert_eq!((report["verdict"].as_str(), &report["reason"], status), (Some("unknown"), &Value::Null, 3), "{report:#}");
    assert_eq!((codes(&report), &report["peers"]["died"]), (vec!["peer.harmed"], &serde_json::json!([live.pid()])));
}

#[test]
fn a_copy_that_takes_its_time_to_die_is_seen_to() {
    let server = Server::new(&format!("trap 'sleep 0.1; exit' TERM\n{TAKE_OVER}"));
    // Dead only a while after the probe's copy told it to end, and after that copy has answered.
    let mut live = server.live();
    let (report, _) = check(&[], &server.command());
    assert!(!live.lives());
    assert_eq!(codes(&report), ["peer.harmed"], "{report:#}");
}

/// `serve`, and what it logs.
struct Serve {
    child: Child,
    address: String,
    log: std::thread::JoinHandle<String>,
}

impl Serve {
    fn start(options: &[&str], server: &Server) -> Serve {
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--listen", "127.0.0.1:0", "--interval", "1s", "--name", "s", "--state-dir"])
            .arg(server.path("state"))
            .args(options)
            .arg("--")
            .args(server.command())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut head = String::new();
        let address = loop {
            let from = head.len();
            assert_ne!(stderr.read_line(&mut head).unwrap(), 0, "{head}");
            if let Some((_, rest)) = head[from..].split_once("http://") {
                break rest.split('/').next().unwrap().to_owned();
            }
        };
        let log = std::thread::spawn(move || {
            stderr.read_to_string(&mut head).unwrap();
            head
        });
        Serve { child, address, log }
    }

    /// Status and body.
    fn ask(&self, method: &str, path: &str, headers: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = &self.address;
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n{headers}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer[9..12].parse().unwrap(), answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    fn word(&self) -> String {
        let (_, body) = self.ask("GET", "/health?format=text", "");
        body.lines().nth(1).unwrap().split(' ').next().unwrap().to_owned()
    }

    fn metric(&self, series: &str) -> f64 {
        let (_, text) = self.ask("GET", "/metrics", "");
        let line = text.lines().find_map(|line| line.strip_prefix(series)).unwrap_or_else(|| panic!("no {series}"));
        line.trim().parse().unwrap()
    }

    /// Ends it politely; says what it logged.
    fn stop(mut self) -> String {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        until("serve ends", || self.child.try_wait().unwrap().is_some());
        self.log.join().unwrap()
    }
}

const SKIPPED: &str = "stdiowatch_probe_skipped_total{server=\"s\",reason=\"peer_harmed\"}";
const HELD: &str = "stdiowatch_probing_held{server=\"s\"}";

#[test]
fn serve_probes_a_server_that_did_harm_no_more_until_it_is_resumed() {
    let server = Server::new(TAKE_OVER);
    let mut live = server.live();
    let serve = Serve::start(&["--enable-actions"], &server);
    until("the harm is seen", || serve.metric(HELD) == 1.0);
    assert!(!live.lives());
    let launches = server.launches();
    // Someone starts it again, and nothing happens to this one.
    let mut second = server.live();
    until("several probes are passed over", || serve.metric(SKIPPED) >= 3.0);
    assert_eq!(server.launches(), launches + 1, "the second live copy alone");
    assert!(second.lives());
    let (status, body) = serve.ask("GET", "/health", "");
    assert_eq!((status, serve.word()), (503, "unknown".to_owned()), "{body}");
    assert!(body.contains("peer.harmed") && body.contains("resumes"), "{body}");
    assert_eq!(serve.metric("stdiowatch_verdict{server=\"s\",verdict=\"unknown\"}"), 1.0);
    assert_eq!((serve.ask("GET", "/-/resume/s", "").0, serve.ask("POST", "/-/resume/t", "").0), (405, 404));
    assert_eq!(serve.ask("POST", "/-/resume/s", "Origin: http://x.example\r\n").0, 403);
    assert_eq!(serve.metric(HELD), 1.0);
    drop(second);
    assert_eq!(serve.ask("POST", "/-/resume/s", "").0, 200);
    until("it is probed again", || server.launches() > launches + 1);
    until("and is well", || serve.word() == "up");
    assert_eq!(serve.metric(HELD), 0.0);
    let log = serve.stop();
    assert_eq!(log.lines().filter(|line| line.contains("WARN") && line.contains("POST /-/resume/s")).count(), 1, "{log}");
}

/// Nobody asked for a restart, and whoever was harmed lives again: a probe would do it again.
#[test]
fn a_restart_resumes_nothing_and_a_person_without_actions_can() {
    let server = Server::new(TAKE_OVER);
    let live = server.live();
    let serve = Serve::start(&[], &server);
    until("the harm is seen", || serve.metric(HELD) == 1.0);
    drop(live);
    let mut second = server.live();
    let launches = server.launches();
    // As in a rollout, the next one is there before the last one is gone.
    let next = Serve::start(&[], &server);
    until("points are passed over", || next.metric(SKIPPED) >= 2.0);
    next.stop();
    assert!(serve.stop().contains("probing is held, after a restart too"));
    let restart = |held: bool, options: &[&str]| {
        let serve = Serve::start(options, &server);
        if held {
            until("points are passed over", || serve.metric(SKIPPED) >= 2.0);
            until("there is no round to wait for", || serve.ask("GET", "/readyz", "").0 == 200);
            let (status, body) = serve.ask("GET", "/health", "");
            assert!(status == 503 && body.contains("peer.harmed") && body.contains("resumes"), "{body}");
            assert_eq!((serve.metric(HELD), serve.word()), (1.0, "unknown".to_owned()));
            let (_, page) = serve.ask("GET", "/servers/s", "");
            assert!(page.contains("probing is held until a person resumes it"), "{page}");
        } else {
            until("it is probed", || serve.metric("stdiowatch_probes_total{server=\"s\"}") >= 1.0);
            assert_eq!(serve.metric(HELD), 0.0);
        }
        serve.stop()
    };
    for _ in 0..2 {
        let log = restart(true, &[]);
        assert_eq!(log.lines().filter(|line| line.contains("WARN") && line.contains("Resuming after harm")).count(), 1, "{log}");
        assert!(log.contains("died while the probe's copy ran"), "{log}");
    }
    assert!(server.launches() == launches && second.lives());
    drop(second);
    // Either way says that somebody knows.
    restart(false, &["--severity", "peer.harmed=warn"]);
    assert!(server.launches() > launches);
    restart(false, &[]);
}

#[test]
fn a_hold_ends_with_the_file_that_it_is_kept_in() {
    let server = Server::new(TAKE_OVER);
    let live = server.live();
    let serve = Serve::start(&[], &server);
    until("the harm is seen", || serve.metric(HELD) == 1.0);
    serve.stop();
    drop(live);
    let kept = fs::read_dir(server.path("state")).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<PathBuf> = kept.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("history-s-")).collect();
    assert_eq!(kept.len(), 1);
    fs::remove_file(&kept[0]).unwrap();
    let serve = Serve::start(&[], &server);
    until("it is probed", || serve.word() == "up");
    serve.stop();
}

#[test]
fn nothing_is_resumed_where_actions_are_off() {
    let server = Server::new(TAKE_OVER);
    let serve = Serve::start(&[], &server);
    let (status, why) = serve.ask("POST", "/-/resume/s", "");
    assert_eq!(status, 403);
    assert!(why.contains("--enable-actions"), "{why}");
    serve.stop();
}

#[test]
fn a_server_of_which_two_can_live_is_judged_as_any_other() {
    let server = Server::new("echo launched >>launches\nif [ -e broken ]; then exit 1; fi\n");
    let live = server.live();
    let serve = Serve::start(&[], &server);
    until("it is well beside the live copy", || serve.word() == "up");
    fs::write(server.path("broken"), "").unwrap();
    until("it is down", || serve.word() == "down");
    assert_eq!(serve.metric(HELD), 0.0);
    serve.stop();
    drop(live);
}
