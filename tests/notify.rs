//! What `serve` tells the service manager that has started it, and takes over from it: `sd_notify(3)`,
//! `sd_watchdog_enabled(3)`, `sd_listen_fds(3)`. A real systemd is for tests/deploy/systemd.py.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::*;

/// What a service manager hears, one line after the other.
struct Ear {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Ear {
    fn at(address: &SocketAddr) -> Ear {
        let socket = UnixDatagram::bind_addr(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        Ear { socket, heard: Vec::new() }
    }

    /// Waits until a line begins like this, and forgets it and those before it.
    fn hears(&mut self, wanted: &str) -> String {
        let heard = poll(LONG, || {
            self.listen();
            self.heard.iter().position(|line| line.starts_with(wanted))
        });
        let at = heard.unwrap_or_else(|| panic!("never heard {wanted:?}, but {:?}", self.heard));
        self.heard.drain(..=at).next_back().unwrap()
    }

    fn listen(&mut self) {
        let mut buffer = [0; 4096];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            self.heard.extend(std::str::from_utf8(&buffer[..length]).unwrap().lines().map(str::to_owned));
        }
    }
}

fn path(scratch: &Scratch) -> SocketAddr {
    SocketAddr::from_pathname(scratch.path("notify")).unwrap()
}

fn config(scratch: &Scratch, servers: &[(&str, &str)]) -> String {
    let server = |(name, kind): &(&str, &str)| format!("  {name}: {{command: {PROGRAM}, args: [sample-server, {kind}], interval: 2s}}\n");
    scratch.write("config.yaml", &format!("servers:\n{}", servers.iter().map(server).collect::<String>()))
}

fn serve(run: &Run, scratch: &Scratch, config: &str) -> Serving {
    let port = free_port();
    let mut command = run.command(&["serve", "--listen", &format!("127.0.0.1:{port}"), "--config", config]);
    command.env("NOTIFY_SOCKET", scratch.path("notify")).env("WATCHDOG_USEC", "400000");
    Serving { child: quiet(&mut command).spawn().unwrap(), port }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdout(Stdio::null()).stderr(Stdio::null())
}

#[test]
fn it_is_ready_when_it_answers_and_tells_what_becomes_of_its_servers() {
    let (run, scratch) = (Run::new(), Scratch::new());
    let mut ear = Ear::at(&path(&scratch));
    let file = config(&scratch, &[("a", "sound"), ("b", "sound"), ("hangs", "mute")]);
    let mut serving = serve(&run, &scratch, &file);
    ear.hears("READY=1");
    assert_eq!(serving.get("/livez").0, 200);
    assert_eq!(serving.get("/readyz").0, 503, "it does not wait for a server that hangs");
    ear.hears("STATUS=3 servers: 2 up, 1 unprobed");

    config(&scratch, &[("a", "sound")]);
    serving.signal("HUP");
    ear.hears("RELOADING=1");
    let at: u64 = ear.hears("MONOTONIC_USEC=")["MONOTONIC_USEC=".len()..].parse().unwrap();
    assert!(Duration::from_micros(at).abs_diff(stdiowatch::outside::clock::monotonic()) < LONG);
    ear.hears("READY=1");
    ear.hears("STATUS=1 server: 1 up");

    scratch.write("config.yaml", "servers: {a: {comand: x}}");
    serving.signal("HUP");
    ear.hears("RELOADING=1");
    ear.hears("READY=1");
    ear.hears("STATUS=1 server: 1 up; the configuration that was read last is refused");

    serving.signal("TERM");
    ear.hears("STOPPING=1");
    // Five seconds each for end-of-file and SIGTERM, and what comes after.
    ear.hears("EXTEND_TIMEOUT_USEC=25000000");
    assert!(serving.wait().success());
    ear.listen();
    assert!(!ear.heard.iter().any(|line| line == "READY=1"), "{:?}", ear.heard);
    run.leaves_nothing(LONG);
}

#[test]
fn signs_of_life_come_in_time_and_stop_with_the_life() {
    let (run, scratch) = (Run::new(), Scratch::new());
    let mut ear = Ear::at(&path(&scratch));
    let file = config(&scratch, &[("a", "sound")]);
    let serving = serve(&run, &scratch, &file);
    ear.hears("READY=1");
    ear.hears("WATCHDOG=1");
    let begin = Instant::now();
    for _ in 0..10 {
        ear.hears("WATCHDOG=1");
    }
    // Twice in each 0.4 s: no fewer, unless the machine is late, and certainly not one upon another.
    assert!(begin.elapsed() > Duration::from_millis(1_500), "{:?}", begin.elapsed());
    serving.signal("STOP");
    poll(LONG, || std::fs::read_to_string(format!("/proc/{}/stat", serving.child.id())).unwrap().contains(") T ").then_some(())).unwrap();
    ear.listen();
    ear.heard.clear();
    let silence = Instant::now();
    while silence.elapsed() < Duration::from_secs(1) {
        ear.listen();
    }
    assert_eq!(ear.heard, Vec::<String>::new());
    serving.signal("CONT");
    ear.hears("WATCHDOG=1");
}

#[test]
fn an_abstract_address_is_heard_too() {
    let (run, scratch) = (Run::new(), Scratch::new());
    let name = format!("stdiowatch-test-{}", std::process::id());
    let mut ear = Ear::at(&SocketAddr::from_abstract_name(&name).unwrap());
    let file = config(&scratch, &[("a", "sound")]);
    let mut command = run.command(&["serve", "--listen", "127.0.0.1:0", "--config", &file]);
    command.env("NOTIFY_SOCKET", format!("@{name}")).env("WATCHDOG_USEC", "400000").env("WATCHDOG_PID", "1");
    let mut child = quiet(&mut command).spawn().unwrap();
    ear.hears("READY=1");
    ear.hears("STATUS=1 server: 1 up");
    signal(child.id(), "TERM");
    ear.hears("STOPPING=1");
    child.wait().unwrap();
    assert!(!ear.heard.iter().any(|line| line.starts_with("WATCHDOG")), "that watchdog is another process'");
}

#[test]
fn nobody_there_is_no_reason_not_to_serve() {
    let (run, scratch) = (Run::new(), Scratch::new());
    let file = config(&scratch, &[("a", "sound")]);
    for address in [scratch.path("nobody"), "vsock:2:1234".to_owned(), String::new()] {
        let port = free_port();
        let mut command = run.command(&["serve", "--listen", &format!("127.0.0.1:{port}"), "--config", &file]);
        let serving = Serving { child: quiet(command.env("NOTIFY_SOCKET", address)).spawn().unwrap(), port };
        serving.becomes("/health", 200);
    }
}

#[test]
fn no_server_is_told_what_the_service_manager_says() {
    let (run, scratch) = (Run::new(), Scratch::new());
    let seen = scratch.path("seen");
    let said = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];
    let script = format!("env > {seen}; exec {PROGRAM} sample-server sound");
    let mut command = run.command(&["check", "--env-mode", "inherit", "--", "/bin/sh", "-c", &script]);
    command.envs(said.map(|name| (name, "1"))).env("ANOTHER", "1");
    assert!(command.output().unwrap().status.success());
    let seen = scratch.read("seen");
    assert!(seen.contains("ANOTHER=1"), "{seen}");
    for name in said {
        assert!(!seen.contains(name), "{name}: {seen}");
    }
}

/// Starts it as systemd would: with a socket as descriptor 3, and its own number in LISTEN_PID.
fn handed(run: &Run, listener: TcpListener, count: &str, args: &[&str]) -> Child {
    let script = format!("exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS={count} exec \"$0\" \"$@\"");
    let mut command = Command::new("/bin/sh");
    let as_given = run.command(args);
    command.args(["-c", &script]).arg(PROGRAM).args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    command.envs(as_given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::from(std::os::fd::OwnedFd::from(listener))).spawn().unwrap()
}

#[test]
fn a_socket_that_is_handed_over_is_listened_on() {
    let (run, scratch) = (Run::new(), Scratch::new());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Who connects before it listens is answered all the same.
    let early = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let descriptors = scratch.path("descriptors");
    let script = format!("ls -l /proc/self/fd > {descriptors}; exec {PROGRAM} sample-server sound");
    // Nothing can listen there a second time.
    let args = ["serve", "--listen", &format!("127.0.0.1:{port}"), "--name", "a", "--", "/bin/sh", "-c", &script];
    let mut serving = Serving { child: handed(&run, listener, "1", &args), port };
    serving.becomes("/health", 200);
    drop(early);
    assert!(!scratch.read("descriptors").contains(" 3 -> socket"), "no server gets it: {}", scratch.read("descriptors"));
    serving.signal("TERM");
    assert!(serving.wait().success());
}

#[test]
fn what_cannot_be_listened_on_is_refused_before_anything_is_launched() {
    let run = Run::new();
    let refusal = |count: &str, connected: bool| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = if connected { TcpListener::from(std::os::fd::OwnedFd::from(client)) } else { listener };
        let output = handed(&run, socket, count, &["serve", "--demo"]).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refusal("2", false).contains("LISTEN_FDS=\"2\" sockets; one is wanted"));
    assert!(refusal("x", false).contains("LISTEN_FDS=\"x\""));
    assert!(refusal("1", true).contains("no TCP socket that listens"));
}
