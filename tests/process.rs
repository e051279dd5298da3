//! Real processes: launched, watched, ended, and nothing of them left.
//!
//! Who adopts orphans, and the list of them, is one for a whole process, so each test runs in a process
//! of its own: this binary again, for that one test. There it checks that no child, no zombie and no
//! descriptor is left. Where time is measured there is room for a busy machine.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may give up, reads the clock, and runs programs")]

use std::collections::BTreeSet;
use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep as pause;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit};
use stdiowatch::outside::process::{Child, EnvMode, GuardCommand, LaunchSpec, Launcher, Signal, StdioKind};
use stdiowatch::probe::{Exit, LaunchError, Swept, Usage};
use tokio::time::timeout;

/// Says to this binary that it is to run a test, and not to launch itself for it.
const ALONE: &str = "STDIOWATCH_TEST_ALONE";
/// Longer than anything takes that works.
const LONG: Duration = Duration::from_secs(20);
const SECOND: Duration = Duration::from_secs(1);

fn guard() -> GuardCommand {
    GuardCommand::new(env!("CARGO_BIN_EXE_stdiowatch"), ["guard"])
}

/// Runs `body` in a process of its own.
fn alone(test: &str, body: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let output = again(test).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(ALONE, "1");
    command
}

/// Runs `body` with a launcher on a thread that is not the main one, as the sidecar does.
fn watching<F: Future>(test: &str, body: impl FnOnce(Launcher) -> F + Send + 'static) {
    alone(test, || std::thread::spawn(|| here(body)).join().unwrap());
}

/// Runs `body` with a launcher on this thread, and sees that it leaves nothing.
fn here<F: Future>(body: impl FnOnce(Launcher) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let before = descriptors();
    runtime.block_on(async {
        let launcher = Launcher::start(guard()).unwrap();
        launcher.guard_running().unwrap();
        timeout(LONG, body(launcher)).await.expect("it takes too long");
    });
    assert_eq!(children(), BTreeSet::new());
    assert_eq!(descriptors(), before);
}

fn sh(script: &str) -> LaunchSpec {
    spec("/bin/sh", &["-c", script])
}

fn spec(command: &str, args: &[&str]) -> LaunchSpec {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    LaunchSpec { command: command.to_owned(), args, ..LaunchSpec::default() }
}

/// All that a server says on stdout until it ends that, and how the process ends.
async fn output(child: &Child) -> (String, Exit) {
    let mut said = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match child.read_stdout(&mut chunk).await.unwrap() {
            0 => break,
            len => said.extend_from_slice(&chunk[..len]),
        }
    }
    (String::from_utf8(said).unwrap(), child.exited().await)
}

/// Reads from stdout until something ends in `end`.
async fn said(child: &Child, end: &str) -> String {
    let mut all = Vec::new();
    let mut chunk = [0; 4096];
    while !all.ends_with(end.as_bytes()) {
        let len = child.read_stdout(&mut chunk).await.unwrap();
        assert!(len > 0, "it ended after {:?}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&chunk[..len]);
    }
    String::from_utf8(all).unwrap()
}

/// Launches, ends the input, and sweeps when the process has ended.
async fn whole(launcher: &Launcher, spec: &LaunchSpec) -> (String, Exit, Swept, Usage) {
    let mut child = launcher.launch(spec).unwrap();
    child.close_stdin();
    let (said, exit) = output(&child).await;
    let (swept, usage) = child.sweep(SECOND).await;
    (said, exit, swept, usage)
}

fn names(leftovers: &[stdiowatch::probe::Leftover]) -> Vec<&str> {
    leftovers.iter().map(|leftover| leftover.name.as_str()).collect()
}

/// The children of all threads, zombies too.
fn children() -> BTreeSet<u32> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()).collect()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// How many descriptors we were given that an exec does not close. std makes none of that kind.
fn inherited() -> usize {
    let entries = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let others = entries.filter(|entry| !matches!(entry.file_name().to_str(), Some("0" | "1" | "2")));
    let flags = others.filter_map(|entry| {
        let info = fs::read_to_string(entry.path()).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        u32::from_str_radix(flags.trim(), 8).ok()
    });
    flags.filter(|flags| flags & 0o2_000_000 == 0).count()
}

/// The state letter of a process, if there is one.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn lives(pid: u32) -> bool {
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LONG, "never: {what}");
        pause(Duration::from_millis(2));
    }
}

/// Waits until everybody below us has become what it is to be: so many sleep, so many are stopped, and
/// nobody is on the way to another session.
fn settle(sleeping: usize, stopped: usize) {
    until("settled", || {
        let all = descendants(std::process::id());
        let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let living: Vec<_> = all.iter().filter(|pid| lives(**pid)).collect();
        let named = |wanted: &str| living.iter().filter(|pid| name(pid) == wanted).count();
        let stops = living.iter().filter(|pid| state(***pid) == Some('T')).count();
        (named("sleep\n"), named("setsid\n"), stops) == (sleeping, 0, stopped)
    });
}

/// A directory that goes when the test ends.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("stdiowatch-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    fn file(&self, name: &str, mode: u32, content: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// The launch.

#[test]
fn each_mistake_in_a_command_is_told() {
    watching("each_mistake_in_a_command_is_told", async |launcher| {
        let dir = Dir::new("mistakes");
        let refused = |spec: &LaunchSpec| launcher.launch(spec).err().unwrap();
        let not_found = refused(&spec("no-such-command", &[]));
        assert!(matches!(not_found, LaunchError::NotFound { searched: Some(_), .. }), "{not_found:?}");
        let not_found = refused(&spec("/no/such/command", &[]));
        assert!(matches!(not_found, LaunchError::NotFound { searched: None, .. }), "{not_found:?}");
        let script = spec(&dir.file("script", 0o755, "#!/bin/sh\r\n"), &[]);
        let LaunchError::InterpreterMissing { interpreter, .. } = refused(&script) else { panic!() };
        assert_eq!(interpreter, "/bin/sh\\r");
        let script = spec(&dir.file("script", 0o755, "#!/usr/bin/env no-such-command\n"), &[]);
        let LaunchError::InterpreterMissing { interpreter, .. } = refused(&script) else { panic!() };
        assert_eq!(interpreter, "no-such-command");
        let data = spec(&dir.file("data", 0o644, ""), &[]);
        assert!(matches!(refused(&data), LaunchError::Permission { .. }));
        assert!(matches!(refused(&spec("/bin", &[])), LaunchError::Permission { what, .. } if what == "is a directory"));
        for text in ["var x = 1\n", "", "#!\n"] {
            let file = spec(&dir.file("text", 0o755, text), &[]);
            assert!(matches!(refused(&file), LaunchError::ExecFormat { .. }), "{text:?}");
            let here = LaunchSpec { cwd: Some(dir.0.clone()), ..file };
            assert!(matches!(refused(&here), LaunchError::ExecFormat { .. }), "{text:?}");
        }
        let cwd = |path: PathBuf| LaunchSpec { cwd: Some(path), ..sh("true") };
        assert!(matches!(refused(&cwd("/no/dir".into())), LaunchError::CwdMissing { not_a_directory: false, .. }));
        assert!(matches!(refused(&cwd(dir.0.join("data"))), LaunchError::CwdMissing { not_a_directory: true, .. }));
        let LaunchError::Failed { error } = refused(&spec("/bin/true", &["a\0b"])) else { panic!() };
        assert!(error.contains("nul byte"), "{error}");
        let LaunchError::Failed { error } = refused(&spec("/bin/true", &[&"x".repeat(1 << 18)])) else { panic!() };
        assert!(error.starts_with("E2BIG: "), "{error}");
    });
}

#[test]
fn a_program_that_is_being_written_is_tried_again() {
    watching("a_program_that_is_being_written_is_tried_again", async |launcher| {
        let dir = Dir::new("busy");
        let program = dir.0.join("program");
        fs::copy("/bin/true", &program).unwrap();
        let writer = fs::OpenOptions::new().append(true).open(&program).unwrap();
        let busy = spec(program.to_str().unwrap(), &[]);
        let LaunchError::Failed { error } = launcher.launch(&busy).err().unwrap() else { panic!() };
        assert!(error.starts_with("ETXTBSY: "), "{error}");
        drop(writer);
        // The second try is too late where the machine is busy.
        until("in time", || {
            let writer = fs::OpenOptions::new().append(true).open(&program).unwrap();
            let later = std::thread::spawn(move || {
                pause(Duration::from_millis(1));
                drop(writer);
            });
            let launched = launcher.launch(&busy);
            later.join().unwrap();
            launched.is_ok()
        });
    });
}

#[test]
fn want_of_descriptors_is_our_own_trouble() {
    watching("want_of_descriptors_is_our_own_trouble", async |launcher| {
        let before = descriptors();
        let full = rustix::process::getrlimit(Resource::Nofile);
        for more in 0..12 {
            let few = Rlimit { current: Some(before as u64 + more), ..full };
            rustix::process::setrlimit(Resource::Nofile, few).unwrap();
            let launched = launcher.launch(&sh("cat"));
            rustix::process::setrlimit(Resource::Nofile, full).unwrap();
            match launched {
                Err(LaunchError::Resources { error }) => assert!(error.starts_with("EMFILE: "), "{error}"),
                Err(other) => panic!("{other:?}"),
                Ok(child) => drop(child),
            }
            assert_eq!(descriptors(), before, "with {more} more");
        }
        let (_, exit, _, _) = whole(&launcher, &sh("exit 3")).await;
        assert_eq!(exit, Exit::Code(3));
    });
}

#[test]
fn an_exit_is_seen_where_no_descriptor_is_left_to_watch_it_by() {
    watching("an_exit_is_seen_where_no_descriptor_is_left_to_watch_it_by", async |launcher| {
        let child = launcher.launch(&sh("sleep 0.1; exit 4")).unwrap();
        let full = rustix::process::getrlimit(Resource::Nofile);
        let none = Rlimit { current: Some(0), ..full };
        rustix::process::setrlimit(Resource::Nofile, none).unwrap();
        let exit = child.exited().await;
        rustix::process::setrlimit(Resource::Nofile, full).unwrap();
        assert_eq!(exit, Exit::Code(4));
        child.sweep(SECOND).await;
    });
}

#[test]
fn a_server_gets_what_it_should_and_no_more() {
    watching("a_server_gets_what_it_should_and_no_more", async |launcher| {
        for stdio in [StdioKind::Pipe, StdioKind::Socketpair] {
            let server = LaunchSpec { stdio, ..sh("ls -l /proc/self/fd; grep ^Sig /proc/self/status") };
            let (said, exit, _, _) = whole(&launcher, &server).await;
            assert_eq!(exit, Exit::Code(0));
            let kind = if stdio == StdioKind::Pipe { "pipe:" } else { "socket:" };
            for fd in 0..3 {
                assert!(said.contains(&format!(" {fd} -> {kind}")), "{said}");
            }
            // Its own three, the directory that is being listed, and what we cannot help.
            assert_eq!(said.matches(" -> ").count(), 4 + inherited(), "{said}");
            assert!(said.contains("SigBlk:\t0000000000000000"), "{said}");
            // Above the 31 of old, glibc has two of its own (32 and 33) ignored by whatever it spawns.
            let ignored = said.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
            assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 0x7fff_ffff, 0, "{said}");
        }
    });
}

#[test]
fn a_server_gets_the_environment_of_its_mode() {
    watching("a_server_gets_the_environment_of_its_mode", async |launcher| {
        for (env_mode, inherits) in [(EnvMode::Sdk, false), (EnvMode::Inherit, true), (EnvMode::Clean, false)] {
            let env = vec![("OWN".to_owned(), "1".to_owned())];
            let (said, ..) = whole(&launcher, &LaunchSpec { env_mode, env, ..spec("/usr/bin/env", &[]) }).await;
            assert!(said.contains("\nOWN=1\n") || said.starts_with("OWN=1\n"), "{said}");
            assert!(said.contains("STDIOWATCH_TREE="), "{said}");
            assert_eq!(said.contains(ALONE), inherits, "{said}");
            assert_eq!(said.contains("PATH="), env_mode != EnvMode::Clean, "{said}");
        }
    });
}

#[test]
fn a_server_is_started_in_its_directory() {
    watching("a_server_is_started_in_its_directory", async |launcher| {
        let dir = Dir::new("cwd");
        dir.file("server", 0o755, "#!/bin/sh\npwd\necho $0\n");
        let cwd = Some(dir.0.clone());
        let here = std::env::current_dir().unwrap();
        let (said, ..) = whole(&launcher, &LaunchSpec { cwd: cwd.clone(), ..spec("./server", &[]) }).await;
        assert_eq!(said, format!("{}\n./server\n", dir.0.display()));
        let env = vec![("PATH".to_owned(), "/bin:.".to_owned())];
        let (said, ..) = whole(&launcher, &LaunchSpec { cwd, env, ..spec("server", &[]) }).await;
        assert_eq!(said, format!("{}\n./server\n", dir.0.display()));
        let (said, ..) = whole(&launcher, &sh("pwd")).await;
        assert_eq!(said, format!("{}\n", here.display()));
        // The other threads stay where they are, and so do launches from one of them.
        assert_eq!(std::env::current_dir().unwrap(), here);
    });
}

#[test]
fn a_server_can_be_launched_from_any_thread() {
    alone("a_server_can_be_launched_from_any_thread", || {
        here(async |launcher| {
            let dir = Dir::new("thread");
            let server = LaunchSpec { cwd: Some(dir.0.clone()), ..sh("setsid sleep 100 </dev/null >/dev/null 2>&1 & pwd; exec cat") };
            let runtime = tokio::runtime::Handle::current();
            let mut child = std::thread::scope(|scope| {
                let elsewhere = scope.spawn(|| {
                    let _inside = runtime.enter();
                    launcher.launch(&server).unwrap()
                });
                elsewhere.join().unwrap()
            });
            assert_eq!(said(&child, "\n").await, format!("{}\n", dir.0.display()));
            settle(1, 0);
            child.close_stdin();
            assert_eq!(child.exited().await, Exit::Code(0));
            let (swept, _) = child.sweep(SECOND).await;
            assert_eq!(names(&swept.escaped), ["sleep"]);
        });
    });
}

// The streams and the end.

#[test]
fn what_is_written_comes_back() {
    watching("what_is_written_comes_back", async |launcher| {
        for stdio in [StdioKind::Pipe, StdioKind::Socketpair] {
            let mut child = launcher.launch(&LaunchSpec { stdio, ..spec("cat", &[]) }).unwrap();
            for text in ["one\n", "two\n"] {
                assert_eq!(child.write_stdin(text.as_bytes()).await.unwrap(), 4);
                assert_eq!(said(&child, "\n").await, text);
            }
            child.close_stdin();
            assert_eq!(child.write_stdin(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
            assert_eq!(output(&child).await, (String::new(), Exit::Code(0)));
            assert_eq!(child.try_read_stdout(&mut [0; 8]).unwrap(), 0);
            assert_eq!(child.try_read_stderr(&mut [0; 8]).unwrap(), 0);
            let (swept, _) = child.sweep(SECOND).await;
            assert_eq!(swept, Swept::default());
        }
    });
}

#[test]
fn more_than_a_pipe_holds_goes_both_ways() {
    watching("more_than_a_pipe_holds_goes_both_ways", async |launcher| {
        const LEN: usize = 3 << 20;
        for stdio in [StdioKind::Pipe, StdioKind::Socketpair] {
            let mut child = launcher.launch(&LaunchSpec { stdio, ..spec("cat", &[]) }).unwrap();
            let sent = vec![b'x'; LEN];
            let (mut written, mut got) = (0, 0);
            let mut chunk = vec![0; 1 << 16];
            let exit = loop {
                tokio::select! {
                    len = child.write_stdin(&sent[written..]), if written < LEN => {
                        written += len.unwrap();
                        if written == LEN {
                            child.close_stdin();
                        }
                    }
                    len = child.read_stdout(&mut chunk), if got < LEN => got += len.unwrap(),
                    exit = child.exited() => break exit,
                }
            };
            // The exit may be seen before the rest of what was said.
            while let Ok(len @ 1..) = child.try_read_stdout(&mut chunk) {
                got += len;
            }
            assert_eq!((got, exit), (LEN, Exit::Code(0)));
            child.sweep(SECOND).await;
        }
    });
}

#[test]
fn stderr_is_read_however_much_it_is() {
    watching("stderr_is_read_however_much_it_is", async |launcher| {
        let script = "head -c 1000000 /dev/zero >&2; echo done; read x; exit 5";
        for stdio in [StdioKind::Pipe, StdioKind::Socketpair] {
            let mut child = launcher.launch(&LaunchSpec { stdio, ..sh(script) }).unwrap();
            let (mut out, mut err) = ([0; 64], vec![0; 1 << 16]);
            let mut all = 0;
            let mut open = true;
            let exit = loop {
                tokio::select! {
                    len = child.read_stdout(&mut out), if open => match len.unwrap() {
                        0 => open = false,
                        len => {
                            assert_eq!(&out[..len], b"done\n");
                            child.close_stdin();
                        }
                    },
                    len = child.read_stderr(&mut err), if all < 1_000_000 => all += len.unwrap(),
                    exit = child.exited() => break exit,
                }
            };
            while let Ok(len @ 1..) = child.try_read_stderr(&mut err) {
                all += len;
            }
            assert_eq!((all, exit), (1_000_000, Exit::Code(5)));
            child.sweep(SECOND).await;
        }
    });
}

#[test]
fn ends_are_told_apart() {
    watching("ends_are_told_apart", async |launcher| {
        for (script, exit) in [("exit 0", Exit::Code(0)), ("exit 77", Exit::Code(77)), ("kill -SEGV $$", Exit::Signal(11))] {
            // By the end of its streams, or by its own.
            assert_eq!(whole(&launcher, &sh(script)).await.1, exit);
            let child = launcher.launch(&sh(script)).unwrap();
            assert_eq!(child.exited().await, exit);
            assert_eq!(child.exited().await, exit);
            assert_eq!(state(child.pid()), Some('Z'));
            child.sweep(SECOND).await;
        }
        let child = launcher.launch(&sh("trap 'exit 9' TERM; echo; while :; do sleep 0.01; done")).unwrap();
        said(&child, "\n").await;
        child.signal_group(Signal::Term).unwrap();
        assert_eq!(child.exited().await, Exit::Code(9));
        child.sweep(SECOND).await;
        let child = launcher.launch(&sh("kill -STOP $$")).unwrap();
        until("stopped", || state(child.pid()) == Some('T'));
        child.signal_group(Signal::Term).unwrap();
        assert!(timeout(Duration::from_millis(100), child.exited()).await.is_err());
        child.signal_group(Signal::Kill).unwrap();
        assert_eq!(child.exited().await, Exit::Signal(9));
        child.sweep(SECOND).await;
    });
}

#[test]
fn a_stdin_that_nobody_reads_is_seen() {
    watching("a_stdin_that_nobody_reads_is_seen", async |launcher| {
        for stdio in [StdioKind::Pipe, StdioKind::Socketpair] {
            let open = launcher.launch(&LaunchSpec { stdio, ..sh("exec 2>&-; sleep 100") }).unwrap();
            let child = launcher.launch(&LaunchSpec { stdio, ..sh("exec 0<&-; sleep 100") }).unwrap();
            child.stdin_broken().await;
            assert_eq!(child.write_stdin(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
            assert!(timeout(Duration::from_millis(50), open.stdin_broken()).await.is_err());
            assert!(timeout(Duration::from_millis(50), child.exited()).await.is_err());
            // A full one breaks too.
            let full = async { while open.write_stdin(&[0; 4096]).await.is_ok() {} };
            tokio::select! {
                () = full => panic!("broken"),
                () = tokio::time::sleep(Duration::from_millis(50)) => {}
            }
            open.signal_group(Signal::Kill).unwrap();
            while open.write_stdin(&[0; 4096]).await.is_ok() {}
            assert_eq!(open.exited().await, Exit::Signal(9));
            open.sweep(SECOND).await;
            child.sweep(SECOND).await;
        }
    });
}

#[test]
fn an_exit_is_seen_though_a_helper_holds_every_stream() {
    watching("an_exit_is_seen_though_a_helper_holds_every_stream", async |launcher| {
        let mut child = launcher.launch(&sh("sleep 100 <&0 & exit 6")).unwrap();
        assert_eq!(child.exited().await, Exit::Code(6));
        let stdout = child.try_read_stdout(&mut [0; 8]);
        assert_eq!(stdout.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        child.close_stdin();
        let (swept, _) = child.sweep(SECOND).await;
        assert_eq!((names(&swept.in_group), names(&swept.escaped)), (vec!["sleep"], vec![]));
    });
}

// What is left.

#[test]
fn leftovers_are_told_apart_and_ended() {
    watching("leftovers_are_told_apart_and_ended", async |launcher| {
        const QUIET: &str = "</dev/null >/dev/null 2>&1";
        for (script, in_group, escaped) in [
            ("cat".to_owned(), vec![], vec![]),
            (format!("sleep 100 {QUIET} & cat"), vec!["sleep"], vec![]),
            (format!("setsid sleep 100 {QUIET} & cat"), vec![], vec!["sleep"]),
            (format!("setsid setsid sleep 100 {QUIET} & cat"), vec![], vec!["sleep"]),
            (format!("(setsid sh -c 'sleep 100 & exit' {QUIET} &); cat"), vec![], vec!["sleep"]),
            (format!("(sleep 100 {QUIET} &) & cat"), vec!["sleep"], vec![]),
            (format!("env -i setsid /bin/sleep 100 {QUIET} & cat"), vec![], vec!["sleep"]),
            (format!("setsid sh -c 'kill -STOP $$' {QUIET} & cat"), vec![], vec!["sh"]),
        ] {
            let mut child = launcher.launch(&sh(&script)).unwrap();
            child.write_stdin(b"x\n").await.unwrap();
            said(&child, "x\n").await;
            let sleeping = in_group.iter().chain(&escaped).filter(|name| **name == "sleep").count();
            settle(sleeping, usize::from(script.contains("STOP")));
            child.measure();
            child.close_stdin();
            let (_, exit) = output(&child).await;
            assert_eq!(exit, Exit::Code(0));
            let (swept, usage) = child.sweep(Duration::from_millis(200)).await;
            assert_eq!((names(&swept.in_group), names(&swept.escaped)), (in_group, escaped), "{script}");
            assert_eq!(swept.survivors, []);
            assert!(usage.max_rss.unwrap() > 500_000);
        }
    });
}

#[test]
fn a_helper_that_ends_with_its_server_is_no_leftover() {
    watching("a_helper_that_ends_with_its_server_is_no_leftover", async |launcher| {
        // Both see the same end-of-file.
        for script in ["exec 3<&0; cat <&3 >/dev/null & exec cat", "exec 3<&0; (cat <&3; sleep 0.005) >&2 & exec cat"] {
            let mut child = launcher.launch(&sh(script)).unwrap();
            child.close_stdin();
            child.exited().await;
            let (swept, _) = child.sweep(SECOND).await;
            assert_eq!(swept, Swept::default());
        }
    });
}

#[test]
fn leftovers_that_ignore_sigterm_are_killed() {
    watching("leftovers_that_ignore_sigterm_are_killed", async |launcher| {
        let script = "(trap '' TERM; setsid sleep 100 & sleep 100) >/dev/null 2>&1 </dev/null & echo; cat";
        let mut child = launcher.launch(&sh(script)).unwrap();
        said(&child, "\n").await;
        settle(2, 0);
        child.close_stdin();
        child.exited().await;
        let begun = Instant::now();
        let (swept, _) = child.sweep(Duration::from_millis(100)).await;
        assert_eq!(names(&swept.escaped), ["sleep"]);
        assert!(!swept.in_group.is_empty());
        assert_eq!(swept.survivors, []);
        assert!(begun.elapsed() >= Duration::from_millis(100));
        assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    });
}

#[test]
fn those_that_escape_are_ended_soon() {
    watching("those_that_escape_are_ended_soon", async |launcher| {
        let mut best = LONG;
        for _ in 0..5 {
            let mut child = launcher.launch(&sh("setsid sleep 100 </dev/null >/dev/null 2>&1 & exec cat")).unwrap();
            settle(1, 0);
            child.close_stdin();
            child.exited().await;
            let begun = Instant::now();
            let (swept, _) = child.sweep(SECOND).await;
            best = best.min(begun.elapsed());
            assert_eq!(names(&swept.escaped), ["sleep"]);
        }
        assert!(best < Duration::from_millis(50), "{best:?}");
    });
}

#[test]
fn processes_that_multiply_are_ended() {
    watching("processes_that_multiply_are_ended", async |launcher| {
        // Three hundred in the group and out of it, and one that keeps hopping to a new session.
        let many = "i=0; while [ $i -lt 150 ]; do setsid sleep 100 & sleep 100 & i=$((i+1)); done";
        let hopping = r#"export H='trap "" TERM; exec setsid -f sh -c "$H"'; sh -c "$H" &"#;
        let script = format!("exec >/dev/null 2>&1; {many}; {hopping} sleep 0.1; exit 0");
        let child = launcher.launch(&sh(&script)).unwrap();
        child.exited().await;
        let (swept, _) = child.sweep(Duration::from_millis(100)).await;
        assert!(swept.in_group.len() >= 140, "{}", swept.in_group.len());
        assert!(swept.escaped.len() >= 140, "{}", swept.escaped.len());
        assert_eq!(swept.survivors, []);
        // A tree of 511 sessions that is growing all the while.
        let growing = r#"export G='trap "" TERM; if [ $1 -gt 0 ]; then for i in 1 2; do setsid -f sh -c "$G" x $(($1-1)); done; fi; exec sleep 100'"#;
        let script = format!(r#"exec >/dev/null 2>&1; {growing}; setsid -f sh -c "$G" x 8; sleep 0.05; exit 0"#);
        let child = launcher.launch(&sh(&script)).unwrap();
        child.exited().await;
        let (swept, _) = child.sweep(Duration::from_millis(10)).await;
        assert_eq!(swept.survivors, []);
    });
}

#[test]
fn a_tree_leaves_others_alone() {
    watching("a_tree_leaves_others_alone", async |launcher| {
        let script = "setsid sleep 100 </dev/null >/dev/null 2>&1 & exec cat";
        let mut one = launcher.launch(&sh(script)).unwrap();
        let mut other = launcher.launch(&sh(script)).unwrap();
        settle(2, 0);
        one.close_stdin();
        other.close_stdin();
        one.exited().await;
        other.exited().await;
        let (swept, _) = one.sweep(SECOND).await;
        assert_eq!(names(&swept.escaped), ["sleep"]);
        let escaped = swept.escaped[0].pid;
        let (swept, _) = other.sweep(SECOND).await;
        assert_eq!(names(&swept.escaped), ["sleep"]);
        assert_ne!(swept.escaped[0].pid, escaped);
    });
}

#[test]
fn a_living_server_is_killed_by_a_sweep_or_when_it_is_dropped() {
    watching("a_living_server_is_killed_by_a_sweep_or_when_it_is_dropped", async |launcher| {
        let script = "trap '' TERM; setsid sleep 100 & sleep 100 & echo; sleep 100 & wait";
        let child = launcher.launch(&sh(script)).unwrap();
        said(&child, "\n").await;
        settle(3, 0);
        let (swept, _) = child.sweep(Duration::from_millis(50)).await;
        assert_eq!(swept.survivors, []);
        assert!(names(&swept.escaped).contains(&"sleep"), "{swept:?}");
        let child = launcher.launch(&sh(script)).unwrap();
        said(&child, "\n").await;
        settle(3, 0);
        drop(child);
        let rest = children();
        // The guard.
        assert_eq!(rest.len(), 1);
        // In the middle of a sweep.
        let child = launcher.launch(&sh(script)).unwrap();
        said(&child, "\n").await;
        settle(3, 0);
        assert!(timeout(Duration::from_millis(40), child.sweep(SECOND)).await.is_err());
        assert_eq!(children(), rest);
    });
}

#[test]
fn what_was_used_is_added_up() {
    watching("what_was_used_is_added_up", async |launcher| {
        let (_, _, _, usage) = whole(&launcher, &sh("exit 0")).await;
        assert_eq!(usage.max_rss, None);
        let idle = usage.cpu;
        let burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        // Its own, a reaped child's, and that of one that has come to us.
        for script in [burn.to_owned(), format!("({burn}); true"), format!("({burn}; sleep 0.01) & sleep 0.001")] {
            let (_, _, _, usage) = whole(&launcher, &sh(&script)).await;
            assert!(usage.cpu > idle + Duration::from_millis(5), "{script}: {:?}", usage.cpu);
        }
        let one = launcher.launch(&sh("echo; exec cat")).unwrap();
        let two = launcher.launch(&sh("exec 3<&0; cat <&3 & echo; exec cat")).unwrap();
        let mut peaks = Vec::new();
        for child in [one, two] {
            said(&child, "\n").await;
            // All have become `cat`, and wait for input: what it takes to run is in memory.
            let all = || descendants(child.pid()).into_iter().chain([child.pid()]);
            let waits = |pid| fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(" (cat) S "));
            until("cat", || all().all(waits));
            child.measure();
            peaks.push(child.sweep(SECOND).await.1.max_rss.unwrap());
        }
        assert!(peaks[1] > peaks[0] * 3 / 2, "{peaks:?}");
    });
}

#[test]
fn a_thousand_launches_leave_nothing() {
    watching("a_thousand_launches_leave_nothing", async |launcher| {
        let before = (children(), descriptors());
        for n in 0..1000 {
            let script = if n % 10 == 0 { "setsid sleep 100 >/dev/null 2>&1 & exit 1" } else { "exit 1" };
            let child = launcher.launch(&sh(script)).unwrap();
            assert_eq!(output(&child).await, (String::new(), Exit::Code(1)));
            child.sweep(SECOND).await;
        }
        assert_eq!((children(), descriptors()), before);
    });
}

// The main thread, and PID 1.

#[test]
fn all_of_it_works_on_the_main_thread() {
    alone("all_of_it_works_on_the_main_thread", || {
        here(async |launcher| {
            let strangers = || children().len();
            let mut other = Command::new("/bin/sleep").arg("100").spawn().unwrap();
            for script in ["exit 0", "setsid sleep 100 >/dev/null 2>&1 & exit 0"] {
                let (_, exit, swept, _) = whole(&launcher, &sh(script)).await;
                assert_eq!(exit, Exit::Code(0));
                assert_eq!(swept.escaped.len(), usize::from(script.starts_with("setsid")));
            }
            launcher.reap_adopted();
            assert_eq!(strangers(), 2);
            other.kill().unwrap();
            other.wait().unwrap();
        });
    });
}

#[test]
fn as_pid_1_strangers_are_reaped_and_not_killed() {
    let test = "as_pid_1_strangers_are_reaped_and_not_killed";
    if std::env::var_os(ALONE).is_some() {
        assert_eq!(std::process::id(), 1);
        return std::thread::spawn(|| here(pid_1)).join().unwrap();
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    if !unshare.arg("true").status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: a pid namespace takes privileges");
        return;
    }
    let inner = again(test);
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).arg(inner.get_program()).args(inner.get_args());
    let output = unshare.env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

async fn pid_1(launcher: Launcher) {
    let brief = "setsid sh -c 'exec sleep 2' >/dev/null 2>&1 & exit 0";
    assert!(Command::new("/bin/sh").args(["-c", brief]).env_clear().status().unwrap().success());
    let strangers = || children().into_iter().filter(|pid| lives(*pid)).count();
    until("adopted", || strangers() == 2);
    let script = "env -i setsid /bin/sleep 2 </dev/null >/dev/null 2>&1 & setsid sleep 100 </dev/null >/dev/null 2>&1 & exec cat";
    let mut child = launcher.launch(&sh(script)).unwrap();
    settle(3, 0);
    child.close_stdin();
    child.exited().await;
    let (swept, _) = child.sweep(SECOND).await;
    assert_eq!(swept.escaped.len(), 1);
    assert_eq!(strangers(), 3);
    until("reaped", || {
        launcher.reap_adopted();
        children().len() == 1
    });
}

// The guard.

/// What the sidecar to be killed launches; it says the pids of all that is to die with it.
const STUBBORN: &str = "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; echo $$; sleep 100' & \
    (sleep 100 & echo $!); sh -c 'echo $$; sleep 100 & wait' & \
    env -i sh -c 'echo $$; sleep 100 & wait' & echo $$; wait";

/// Run as a test of itself: a server that leaves its process group for the one of who launched it.
#[test]
#[ignore = "a helper of others"]
fn wanderer() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let parent = rustix::process::getppid();
    let group = rustix::process::getpgid(parent).unwrap();
    rustix::process::setpgid(None, Some(group)).unwrap();
    pause(LONG * 3);
}

#[test]
fn a_server_that_has_left_its_group_is_signalled_all_the_same() {
    watching("a_server_that_has_left_its_group_is_signalled_all_the_same", async |launcher| {
        let program = std::env::current_exe().unwrap();
        let args = ["--exact", "wanderer", "--ignored", "--test-threads=1"];
        let env = vec![(ALONE.to_owned(), "1".to_owned())];
        let child = launcher.launch(&LaunchSpec { env, ..spec(program.to_str().unwrap(), &args) }).unwrap();
        let pid = rustix::process::Pid::from_raw(child.pid().cast_signed()).unwrap();
        until("it has left its group", || rustix::process::getpgid(Some(pid)).is_ok_and(|group| group != pid));
        child.signal_group(Signal::Term).unwrap();
        assert_eq!(child.exited().await, Exit::Signal(15));
        child.sweep(SECOND).await;
    });
}

/// Run as a test of itself: a sidecar that launches, says what, and waits to be killed.
#[test]
#[ignore = "a helper of others"]
fn sidecar() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let launcher = Launcher::start(guard()).unwrap();
        launcher.guard_running().unwrap();
        let one = launcher.launch(&sh(STUBBORN)).unwrap();
        let other = launcher.launch(&LaunchSpec { stdio: StdioKind::Socketpair, ..sh(STUBBORN) }).unwrap();
        let mut pids = Vec::new();
        let (mut a, mut b) = ([0; 256], [0; 256]);
        while pids.len() < 10 {
            let text = tokio::select! {
                len = one.read_stdout(&mut a) => String::from_utf8_lossy(&a[..len.unwrap()]).into_owned(),
                len = other.read_stdout(&mut b) => String::from_utf8_lossy(&b[..len.unwrap()]).into_owned(),
                _ = one.exited() => panic!(),
                _ = other.exited() => panic!(),
            };
            pids.extend(text.split_whitespace().map(str::to_owned));
        }
        println!("tree {}", pids.join(" "));
        match std::env::var("THEN").unwrap().as_str() {
            "wait" => std::future::pending().await,
            "launch" => loop {
                drop(launcher.launch(&sh("exec sleep 100")));
            },
            // When it is told to.
            _ => drop(io::stdin().read_line(&mut String::new())),
        }
    });
}

/// The helper above, running; killed should the test fail.
struct Sidecar(std::process::Child);

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the helper above, and says what it has launched.
fn start_sidecar(then: &str) -> (Sidecar, Vec<u32>) {
    use std::io::BufRead as _;
    let mut sidecar = again("sidecar");
    sidecar.arg("--ignored").env("THEN", then).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut sidecar = Sidecar(sidecar.spawn().unwrap());
    let lines = io::BufReader::new(sidecar.0.stdout.take().unwrap()).lines();
    let line = lines.map_while(Result::ok).find_map(|line| Some(line.split_once("tree ")?.1.to_owned())).unwrap();
    // Without the shells that only start another.
    pause(Duration::from_millis(200));
    let mut pids: Vec<u32> = line.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| lives(*pid)), "{pids:?}");
    pids.extend(descendants(sidecar.0.id()));
    pids.sort_unstable();
    pids.dedup();
    (sidecar, pids)
}

fn descendants(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let own: Vec<u32> = lists.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()).collect();
    own.iter().flat_map(|pid| descendants(*pid)).chain(own.iter().copied()).collect()
}

#[test]
fn nothing_outlives_a_sidecar_that_is_killed() {
    for then in ["wait", "launch"] {
        let (sidecar, pids) = start_sidecar(then);
        // Two trees of eight, the guard, and it may be one just launched.
        assert!(pids.len() == 17 || then == "launch", "{pids:?}");
        let begun = Instant::now();
        drop(sidecar);
        until("all dead", || !pids.iter().any(|pid| lives(*pid)));
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}

#[test]
fn a_sidecar_that_ends_takes_everything_along() {
    let (mut sidecar, pids) = start_sidecar("end");
    let begun = Instant::now();
    drop(sidecar.0.stdin.take());
    sidecar.0.wait().unwrap();
    until("all dead", || !pids.iter().any(|pid| lives(*pid)));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn the_guard_is_out_of_the_way_and_is_replaced() {
    watching("the_guard_is_out_of_the_way_and_is_replaced", async |launcher| {
        let find = || {
            let all = children();
            assert_eq!(all.len(), 1, "{all:?}");
            all.into_iter().next().unwrap()
        };
        let guard = find();
        let read = |file: &str| fs::read(format!("/proc/{guard}/{file}")).unwrap();
        until("its own name", || read("comm") == b"mcp-guard\n");
        assert!(read("environ").is_empty());
        let stat = String::from_utf8(read("stat")).unwrap();
        assert_eq!(stat.rsplit_once(") ").unwrap().1.split(' ').nth(2), Some(guard.to_string().as_str()));
        let links = fs::read_dir(format!("/proc/{guard}/fd")).unwrap().flatten();
        let links: Vec<_> = links.map(|fd| fs::read_link(fd.path()).unwrap().display().to_string()).collect();
        assert_eq!(links.len(), 3 + inherited(), "{links:?}");
        assert_eq!(links.iter().filter(|link| link.starts_with("/memfd:")).count(), 1, "{links:?}");
        let status = String::from_utf8(read("status")).unwrap();
        let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        let own: u64 = own.trim().trim_end_matches(" kB").parse().unwrap();
        // Most of it is what the loader relocates, which in a debug build is some 0.6 MiB and grows with it.
        assert!(own < 1280, "{own} kB");
        // It dies; the next launch replaces it.
        let pid = rustix::process::Pid::from_raw(i32::try_from(guard).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        until("dead", || state(guard) == Some('Z'));
        whole(&launcher, &sh("exit 0")).await;
        assert_ne!(find(), guard);
        assert_eq!(state(guard), None);
    });
}

#[test]
fn a_launcher_without_a_guard_launches() {
    alone("a_launcher_without_a_guard_launches", || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let launcher = Launcher::start(GuardCommand::new("/no/such/guard", ["guard"])).unwrap();
            assert_eq!(launcher.guard_running().unwrap_err().kind(), io::ErrorKind::NotFound);
            assert_eq!(whole(&launcher, &sh("exit 0")).await.1, Exit::Code(0));
        });
    });
}

#[test]
fn a_sidecar_that_was_started_with_sigchld_ignored_sees_exits() {
    let test = "a_sidecar_that_was_started_with_sigchld_ignored_sees_exits";
    if std::env::var_os(ALONE).is_some() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
        assert_ne!(u64::from_str_radix(ignored, 16).unwrap() & (1 << 16), 0);
        return here(async |launcher| assert_eq!(whole(&launcher, &sh("exit 5")).await.1, Exit::Code(5)));
    }
    let inner = again(test);
    let mut perl = Command::new("perl");
    perl.args(["-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV"]).arg(inner.get_program()).args(inner.get_args());
    let Ok(output) = perl.env(ALONE, "1").output() else {
        eprintln!("skipped: it takes perl");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn leftovers_may_be_left_alone() {
    watching("leftovers_may_be_left_alone", async |launcher| {
        let mut child = launcher.launch(&sh("setsid sleep 2 >&- 2>&- & sleep 2 >&- 2>&- & exec cat")).unwrap();
        settle(2, 0);
        child.close_stdin();
        output(&child).await;
        let (swept, _) = child.survey().await;
        assert_eq!((names(&swept.in_group), names(&swept.escaped)), (vec!["sleep"], vec!["sleep"]));
        let (in_group, escaped) = (swept.in_group[0].pid, swept.escaped[0].pid);
        assert!(lives(in_group) && lives(escaped));
        // Nor does another one's sweep end them.
        assert_eq!(whole(&launcher, &sh("exit 0")).await.2, Swept::default());
        assert!(lives(in_group) && lives(escaped));
        until("reaped", || {
            launcher.reap_adopted();
            state(in_group).is_none() && state(escaped).is_none()
        });
    });
}
