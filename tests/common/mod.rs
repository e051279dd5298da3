//! The program, run as its users run it, and a look at what it leaves behind.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than anything takes that works.
pub const LONG: Duration = Duration::from_secs(30);

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_stdiowatch");

/// One run of the program, whose descendants can be told from all others: the variable that
/// stdiowatch marks its servers with holds the marks of those around it too.
pub struct Run {
    mark: String,
}

impl Run {
    pub fn new() -> Run {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Run { mark: format!("test-{}-{}-end", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)) }
    }

    /// The program with these arguments, not started yet.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(args)
            .env("STDIOWATCH_TREE", &self.mark)
            .env("XDG_STATE_HOME", self.state_home())
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What is kept over restarts is this run's own.
    pub fn state_home(&self) -> PathBuf {
        std::env::temp_dir().join(format!("stdiowatch-state-{}", self.mark))
    }

    /// Runs it to its end.
    pub fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The processes of this run that are alive: pid and command line.
    pub fn alive(&self) -> Vec<String> {
        let mut alive = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let path = entry.path();
            let Ok(environ) = fs::read(path.join("environ")) else { continue };
            if !String::from_utf8_lossy(&environ).contains(&self.mark) || is_dead(&fs::read_to_string(path.join("stat")).unwrap_or_default()) {
                continue;
            }
            let cmdline = fs::read(path.join("cmdline")).unwrap_or_default();
            alive.push(format!("{} {}", entry.file_name().to_string_lossy(), String::from_utf8_lossy(&cmdline).replace('\0', " ")));
        }
        alive
    }

    /// Waits until a sample server runs: the program itself, and its guard, do not count.
    pub fn waits_for_server(&self) {
        let is_server = |line: &String| line.split_once(' ').is_some_and(|(_, line)| line.starts_with(&format!("{PROGRAM} sample-server ")));
        poll(LONG, || self.alive().iter().any(is_server).then_some(())).expect("the server runs");
    }

    /// Waits until nothing of this run is alive.
    pub fn leaves_nothing(&self, within: Duration) {
        let alive = poll(within, || Some(self.alive()).filter(Vec::is_empty)).is_none();
        assert!(!alive, "still alive after {within:?}: {:#?}", self.alive());
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.state_home());
    }
}

/// A directory of this test's own, removed with it.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("stdiowatch-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// From /proc/PID/stat: a zombie is dead, and so is what has gone meanwhile.
fn is_dead(stat: &str) -> bool {
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    matches!(state, None | Some('Z' | 'X'))
}

/// Asks again and again, until there is an answer or the time is up.
pub fn poll<T>(within: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + within;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The report of `check --format json`.
pub fn report(output: &Output) -> Value {
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {:?} {:?}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)));
    assert_eq!(document["format"], 1);
    document["servers"][0].clone()
}

pub fn codes(report: &Value) -> Vec<String> {
    report["findings"].as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap().to_owned()).collect()
}

/// A `serve` that is running, ended with the test.
pub struct Serving {
    pub child: Child,
    pub port: u16,
}

impl Serving {
    /// Starts `serve` with these arguments at a free port, and waits until it listens.
    pub fn start(run: &Run, args: &[&str]) -> Serving {
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let mut all = vec!["serve", "--listen", &listen];
        all.extend_from_slice(args);
        let child = run.command(&all).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut serving = Serving { child, port };
        poll(LONG, || TcpStream::connect(("127.0.0.1", port)).ok()).expect("it listens");
        assert_eq!(serving.child.try_wait().unwrap(), None, "somebody else listens there");
        serving
    }

    /// The status and the body of the answer to GET `path`.
    pub fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path)
    }

    /// The status and the body of the answer to `method` `path`.
    pub fn ask(&self, method: &str, path: &str) -> (u16, String) {
        let (status, _, body) = self.exchange(&format!("{method} {path} HTTP/1.0\r\n\r\n"));
        (status, body)
    }

    /// The status, the head and the body of the answer to these bytes.
    pub fn exchange(&self, request: &str) -> (u16, String, String) {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return (0, String::new(), String::new()) };
        let _ = stream.set_read_timeout(Some(LONG));
        let _ = stream.write_all(request.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let status = answer.get(9..12).and_then(|s| s.parse().ok()).unwrap_or(0);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        (status, head.to_owned(), body.to_owned())
    }

    /// The value of a series, as /metrics has it.
    pub fn metric(&self, series: &str) -> Option<f64> {
        let metrics = self.get("/metrics").1;
        metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    /// Waits until a series has this value.
    pub fn metric_becomes(&self, series: &str, value: f64) {
        let became = poll(LONG, || (self.metric(series) == Some(value)).then_some(()));
        assert!(became.is_some(), "{series} is {:?} and never became {value}", self.metric(series));
    }

    /// Waits until `path` answers with `status`.
    pub fn becomes(&self, path: &str, status: u16) -> String {
        let answer = poll(LONG, || Some(self.get(path)).filter(|(s, _)| *s == status));
        answer.unwrap_or_else(|| panic!("{path} never answered {status}: {:?}", self.get(path))).1
    }

    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits for its end; its exit status.
    pub fn wait(&mut self) -> std::process::ExitStatus {
        poll(LONG, || self.child.try_wait().unwrap()).expect("it ends")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn signal(pid: u32, name: &str) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let signal = match name {
        "TERM" => rustix::process::Signal::TERM,
        "HUP" => rustix::process::Signal::HUP,
        "INT" => rustix::process::Signal::INT,
        "KILL" => rustix::process::Signal::KILL,
        "STOP" => rustix::process::Signal::STOP,
        "CONT" => rustix::process::Signal::CONT,
        other => panic!("no signal {other} here"),
    };
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A port that nobody listens at. Each is given once, and none is one that clients get for their end, so that it stays free; and
/// nothing is listened at to find out, since a process that is just being launched would listen there as well for a moment.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(61);
    let mut ports = std::iter::repeat_with(|| 12_000 + (first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000) as u16);
    ports.find(|port| TcpStream::connect(("127.0.0.1", *port)).is_err()).unwrap()
}
