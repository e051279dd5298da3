//! What a server may take, what becomes of what it leaves, and what it does not inherit: real processes.
//!
//! Who adopts orphans is one for a whole process, so each test runs in a process of its own, as those of
//! `process.rs` do: this binary again, for that one test.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stdiowatch::judge::{Reason, Report, Rules, Verdict};
use stdiowatch::outside::process::{GuardCommand, LaunchSpec, Launcher, Leftovers, Resources};
use stdiowatch::probe::EndedBy;
use stdiowatch::protocol::Era;
use stdiowatch::running::{Job, Known, Launchpad, Onlooker, Watched};
use stdiowatch::words::ServerName;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Says to this binary that it is to run a test, and not to launch itself for it.
const ALONE: &str = "STDIOWATCH_TEST_ALONE";
/// Longer than anything takes that works.
const LONG: Duration = Duration::from_secs(20);
/// What a helper does that bothers nobody.
const QUIET: &str = "</dev/null >/dev/null 2>&1";

fn guard() -> GuardCommand {
    GuardCommand::new(env!("CARGO_BIN_EXE_stdiowatch"), ["guard"])
}

/// Runs `body` in a process of its own.
fn alone(test: &str, body: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    passes(again(test));
}

fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(ALONE, "1");
    command
}

/// Runs one test of this binary, in a way of its own.
fn passes(mut command: Command) {
    let output = command.env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The sidecar, as far as it is needed to probe.
struct Sidecar {
    launchpad: Launchpad,
    runtime: Runtime,
    _stop: watch::Sender<bool>,
}

impl Sidecar {
    fn start() -> Sidecar {
        let (stop, stopped) = watch::channel(false);
        Sidecar { launchpad: Launchpad::start(guard(), stopped).unwrap(), runtime: runtime(), _stop: stop }
    }

    /// Probes what `script` starts, where `$LIAR` is a server.
    fn probe(&self, script: &str, leftovers: Leftovers, resources: Resources) -> Report {
        self.probe_spec(LaunchSpec { leftovers, resources, ..sh(script) })
    }

    fn probe_spec(&self, spec: LaunchSpec) -> Report {
        self.runtime.block_on(self.probing("s", spec, Duration::from_secs(10)))
    }

    /// A probe in which each answer may take `request`.
    async fn probing(&self, name: &str, spec: LaunchSpec, request: Duration) -> Report {
        let mut server = Watched::new(ServerName::new(name).unwrap(), spec, Duration::from_secs(60));
        server.times.startup = Duration::from_secs(10);
        server.times.request = request;
        server.times.eof_grace = Duration::from_millis(500);
        server.times.term_grace = Duration::from_millis(500);
        let job = Job {
            name: server.name.clone(),
            spec: Arc::clone(&server.spec),
            plan: server.plan(Known { era: Some(Era::Legacy), launched: true, ..Known::default() }, false),
            rules: Arc::new(Rules::default()),
            accepted: None,
            record: false,
            coexists: false,
            onlooker: Onlooker::default(),
        };
        self.launchpad.probe(job).await.unwrap().report
    }

    fn limited(&self, script: &str, resources: Resources) -> Report {
        self.probe(script, Leftovers::Kill, resources)
    }
}

fn sh(script: &str) -> LaunchSpec {
    let env = vec![("LIAR".to_owned(), liar())];
    LaunchSpec { command: "/bin/sh".to_owned(), args: vec!["-c".to_owned(), script.to_owned()], env, ..LaunchSpec::default() }
}

/// The example server: cargo builds it for the tests.
fn liar() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_stdiowatch")).with_file_name("examples").join("liar");
    assert!(program.exists(), "cargo build --examples makes {}", program.display());
    program.to_str().unwrap().to_owned()
}

fn memory(mib: u64) -> Resources {
    Resources { memory: Some(mib << 20), ..Resources::default() }
}

fn processes(most: u64) -> Resources {
    Resources { processes: Some(most), ..Resources::default() }
}

fn codes(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|f| f.code).collect()
}

/// What a launcher's thread and the main one have for children, and these in turn, if they live.
fn descendants(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let own: Vec<u32> = lists.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()).collect();
    own.iter().flat_map(|pid| descendants(*pid)).chain(own.iter().copied().filter(|pid| lives(*pid))).collect()
}

/// The guard aside, nothing that we have started lives: within a moment, as what has come to us dies last.
fn nothing_is_left() {
    let left = || descendants(std::process::id()).into_iter().map(name).filter(|name| name != "mcp-guard").collect::<Vec<String>>();
    let end = Instant::now() + Duration::from_secs(5);
    while !left().is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(left(), Vec::<String>::new());
}

fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LONG, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// The pids that are named in some finding's evidence.
fn told(report: &Report, code: &str) -> Vec<u32> {
    let evidence = report.findings.iter().filter(|f| f.code == code).map(|f| f.evidence.as_str());
    let words = evidence.flat_map(|evidence| evidence.split("(pid ").skip(1));
    words.map(|word| word.split(')').next().unwrap().parse().unwrap()).collect()
}

/// Killed over a limit, told as that, and as nothing else that weighs.
fn is_over(report: &Report, code: &str) {
    let heavy: Vec<_> = report.findings.iter().filter(|f| f.severity.as_str() == "fail").map(|f| f.code).collect();
    assert_eq!(heavy, [code], "{report:#?}");
    assert_eq!((report.verdict, report.reason), (Verdict::Fail, Some(Reason::Policy)));
    assert_eq!(report.shutdown.as_ref().unwrap().ended_by, EndedBy::Sigkill, "{report:#?}");
    assert!(!codes(report).contains(&"shutdown.needed_kill"));
    nothing_is_left();
}

// What it may take.

#[test]
fn a_server_with_too_much_memory_is_killed() {
    alone("a_server_with_too_much_memory_is_killed", || {
        let sidecar = Sidecar::start();
        let sound = sidecar.limited("exec $LIAR 'take 20'", memory(400));
        assert_eq!((sound.verdict, codes(&sound)), (Verdict::Pass, vec![]));
        // At its start; in a request, of which that phase is told; in a helper that has left its group.
        let start = sidecar.limited("exec $LIAR 'take 80\nhang'", memory(40));
        is_over(&start, "limit.memory");
        assert_eq!(start.findings[0].phase.as_str(), "handshake");
        assert!(start.findings[0].message.ends_with(" MiB resident, with a limit of 40.0 MiB"), "{:?}", start.findings[0]);
        let list = sidecar.limited("exec $LIAR 'before tools/list: take 80'", memory(40));
        is_over(&list, "limit.memory");
        assert_eq!(list.findings[0].phase.as_str(), "list");
        let helper = sidecar.limited(&format!("setsid $LIAR 'take 80\nhang' {QUIET} & exec $LIAR 'before tools/list: hang'"), memory(40));
        is_over(&helper, "limit.memory");
        assert!(helper.findings[0].message.contains(" processes of the server had "), "{:?}", helper.findings[0]);
        let end = sidecar.limited("exec $LIAR 'on eof: take 80\non eof: hang'", memory(40));
        is_over(&end, "limit.memory");
        assert_eq!(end.findings[0].phase.as_str(), "shutdown");
    });
}

#[test]
fn memory_that_forks_share_counts_once() {
    alone("memory_that_forks_share_counts_once", || {
        let sidecar = Sidecar::start();
        // Eight shells with the same 8 MiB, some 64 MiB in plain sum.
        let fork = format!("(read never <&3) {QUIET} &");
        let script = format!(
            "exec 3<&0; x=$(head -c 8388608 /dev/zero | tr '\\0' x); {} exec 3<&-; exec $LIAR 'before tools/list: sleep 300ms'",
            fork.repeat(8)
        );
        let shared = sidecar.limited(&script, memory(50));
        assert!(!codes(&shared).contains(&"limit.memory"), "{shared:#?}");
        is_over(&sidecar.limited(&script, memory(8)), "limit.memory");
    });
}

#[test]
fn a_server_with_too_many_processes_is_killed() {
    alone("a_server_with_too_many_processes_is_killed", || {
        let sidecar = Sidecar::start();
        let some = format!("sleep 100 {QUIET} & setsid sleep 100 {QUIET} & exec $LIAR 'before tools/list: sleep 300ms'");
        let sound = sidecar.limited(&some, processes(3));
        assert_eq!(codes(&sound), ["shutdown.left_group", "shutdown.left_escaped"]);
        let over = sidecar.limited(&some, processes(2));
        is_over(&over, "limit.processes");
        assert_eq!(over.findings[0].message, "the server had 3 processes or more, with a limit of 2");
        // Those too whose parents are gone.
        let orphans = format!("(setsid sleep 100 {QUIET} &); (setsid sleep 100 {QUIET} &); exec $LIAR hang");
        is_over(&sidecar.limited(&orphans, processes(2)), "limit.processes");
        // And though they are to be left alone.
        is_over(&sidecar.probe(&some, Leftovers::Report, processes(2)), "limit.processes");
    });
}

#[test]
fn a_server_with_too_much_cpu_time_is_killed() {
    alone("a_server_with_too_much_cpu_time_is_killed", || {
        let sidecar = Sidecar::start();
        let cpu = |ms| Resources { cpu: Some(Duration::from_millis(ms)), ..Resources::default() };
        let sound = sidecar.limited("exec $LIAR ''", cpu(5000));
        assert_eq!((sound.verdict, codes(&sound)), (Verdict::Pass, vec![]));
        let start = sidecar.limited("while :; do :; done", cpu(200));
        is_over(&start, "limit.cpu");
        assert!(start.findings[0].message.ends_with(" s of CPU time, with a limit of 0.20 s"), "{:?}", start.findings[0]);
        // A helper's is the server's, and so is what helpers had that have ended.
        is_over(&sidecar.limited(&format!("(while :; do :; done) {QUIET} & exec $LIAR hang"), cpu(200)), "limit.cpu");
        is_over(&sidecar.limited("while :; do /bin/sh -c 'i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done'; done", cpu(200)), "limit.cpu");
    });
}

#[test]
fn who_ends_over_a_limit_of_the_kernels_has_not_crashed() {
    alone("who_ends_over_a_limit_of_the_kernels_has_not_crashed", || {
        let sidecar = Sidecar::start();
        let ended = |script: &str, code: &str| {
            let report = sidecar.limited(script, Resources { file_size: Some(64 << 10), ..Resources::default() });
            assert_eq!((codes(&report), report.reason), (vec![code], Some(Reason::Policy)), "{report:#?}");
            report
        };
        let file = std::env::temp_dir().join(format!("stdiowatch-test-large-{}", std::process::id()));
        // The limit is set from outside, a moment after the start.
        let large = |how: &str| format!("sleep 0.2; {how} head -c 100000 /dev/zero >{}", file.display());
        let report = ended(&large("exec"), "limit.file_size");
        assert!(report.findings[0].evidence.contains("SIGXFSZ"), "{:?}", report.findings[0]);
        assert_eq!(fs::metadata(&file).unwrap().len(), 64 << 10);
        // As a shell tells of it; and who ignores the signal has an error.
        ended(&format!("{}; exit $?", large("")), "limit.file_size");
        ended(&format!("trap '' XFSZ; {{ {}; }} || exit 1", large("")), "limit.file_size");
        fs::remove_file(&file).unwrap();
        // Over a limit of somebody else's.
        ended("kill -XCPU $$", "limit.cpu");
        // A pipe is no file, and a server that has an error like that and lives has not ended.
        let lives = sidecar.limited("echo 'x: File too large' >&2; exec $LIAR ''", Resources { file_size: Some(0), ..Resources::default() });
        assert_eq!(codes(&lives), Vec::<&str>::new(), "{lives:#?}");
    });
}

/// Doubles, each in a session of its own, up to some thousands if nobody stops it.
const BOMB: &str = r#"export B='trap "" TERM; if [ $1 -gt 0 ]; then for i in 1 2; do setsid -f sh -c "$B" x $(($1-1)); done; fi; exec sleep 100'; setsid -f sh -c "$B" x 10 </dev/null >/dev/null 2>&1"#;

#[test]
fn processes_that_multiply_are_ended_over_the_limit() {
    alone("processes_that_multiply_are_ended_over_the_limit", || {
        let sidecar = Sidecar::start();
        let begun = Instant::now();
        is_over(&sidecar.limited(&format!("{BOMB}; exec $LIAR hang"), processes(20)), "limit.processes");
        assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
    });
}

#[test]
fn processes_that_multiply_are_ended_beside_others() {
    alone("processes_that_multiply_are_ended_beside_others", || {
        // Off the main thread, where orphans are.
        std::thread::spawn(|| {
            runtime().block_on(async {
                let launcher = Launcher::start(guard()).unwrap();
                let mut other = launcher.launch(&sh("exec cat")).unwrap();
                let child = launcher.launch(&sh(&format!("{BOMB}; exec sleep 100"))).unwrap();
                until("many", || child.excess(&processes(20)).is_some());
                let (swept, _) = child.end().await;
                assert_eq!(swept.survivors, []);
                let names = || descendants(std::process::id()).into_iter().map(name).filter(|name| name != "mcp-guard").collect::<Vec<_>>();
                assert_eq!(names(), ["cat"]);
                other.close_stdin();
                other.end().await;
                assert_eq!(names(), Vec::<String>::new());
            });
        })
        .join()
        .unwrap();
    });
}

#[test]
fn descriptors_and_core_dumps_are_limited_by_the_kernel() {
    alone("descriptors_and_core_dumps_are_limited_by_the_kernel", || {
        let said = |resources| {
            output(&LaunchSpec {
                resources,
                ..sh("sleep 0.1; sh -c 'ulimit -n; ulimit -Hn; grep core /proc/self/limits; grep -i -e cpu.time -e ^Max.file.size /proc/self/limits'")
            })
        };
        let limited = said(Resources { open_files: Some(77), ..Resources::default() });
        let lines: Vec<&str> = limited.lines().collect();
        assert_eq!(lines[..2], ["77", "77"]);
        let all = said(Resources { cpu: Some(Duration::from_millis(1500)), file_size: Some(4096), ..Resources::default() });
        let words: Vec<String> = all.lines().skip(3).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(words, ["Max cpu time 3 4 seconds", "Max file size 4096 4096 bytes"]);
        let core: Vec<&str> = lines[2].split_whitespace().collect();
        assert!(core[4] == "1" || core[4] == "0", "{core:?}");
        let own = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let free = said(Resources::default());
        assert_eq!(free.lines().next().unwrap(), own.current.map_or("unlimited".to_owned(), |n| n.to_string()));
        assert!(free.lines().nth(2).unwrap().split_whitespace().nth(4).unwrap().len() == 1, "{free}");
        // More than there is cannot be given.
        let most = said(Resources { open_files: Some(u64::MAX - 1), ..Resources::default() });
        assert_eq!(most.lines().nth(1).unwrap(), own.maximum.map_or("unlimited".to_owned(), |n| n.to_string()));
    });
}

/// All that a program writes to stdout.
fn output(spec: &LaunchSpec) -> String {
    let runtime = runtime();
    runtime.block_on(async {
        let launcher = Launcher::start(guard()).unwrap();
        let mut child = launcher.launch(spec).unwrap();
        child.close_stdin();
        let (mut said, mut chunk) = (Vec::new(), [0; 4096]);
        while let Ok(length @ 1..) = child.read_stdout(&mut chunk).await {
            said.extend_from_slice(&chunk[..length]);
        }
        child.exited().await;
        child.sweep(Duration::from_secs(1)).await;
        String::from_utf8(said).unwrap()
    })
}

// As whom, and where.

/// As `nobody`, where we may do that.
fn as_nobody(spec: LaunchSpec) -> LaunchSpec {
    LaunchSpec { user: Some("65534:65534".parse().unwrap()), no_new_privs: true, ..spec }
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: it takes root");
    }
    root
}

/// What a server sees of itself.
const SELF: &str = "tr '\\0' '\\n' </proc/self/environ | sort; tr '\\0' ' ' </proc/self/cmdline; echo; echo $0; pwd; ls /proc/self/fd; \
    grep -E '^(Uid|Gid|Groups|NoNewPrivs|CapPrm|CapEff|CapAmb|SigIgn|SigBlk)' /proc/self/status; ulimit -Sn; ulimit -Hn";

#[test]
fn another_user_is_all_that_differs() {
    alone("another_user_is_all_that_differs", || {
        if !is_root() {
            return;
        }
        let here = std::env::temp_dir().canonicalize().unwrap();
        let spec = LaunchSpec { cwd: Some(here), resources: Resources { open_files: Some(77), ..Resources::default() }, ..sh(SELF) };
        let (ours, theirs) = (output(&spec), output(&as_nobody(spec)));
        let id = |status: &str, key: &str| status.lines().find_map(|l| Some(l.strip_prefix(key)?.split_whitespace().collect::<Vec<_>>().join(" ")));
        for (key, value) in [
            ("Uid:", "65534 65534 65534 65534"),
            ("Gid:", "65534 65534 65534 65534"),
            ("Groups:", "65534"),
            ("NoNewPrivs:", "1"),
            ("CapPrm:", "0000000000000000"),
            ("CapEff:", "0000000000000000"),
            ("CapAmb:", "0000000000000000"),
        ] {
            assert_eq!(id(&theirs, key).as_deref(), Some(value), "{key} in {theirs}");
        }
        // Environment, arguments, name, directory, descriptors, signals and limits are what they are without.
        let same = |said: &str| {
            let differs = ["Uid:", "Gid:", "Groups:", "NoNewPrivs:", "Cap", "STDIOWATCH_TREE=", "BROWSER="];
            said.lines().filter(|line| !differs.iter().any(|d| line.starts_with(d))).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(same(&theirs), same(&ours));
        assert!(theirs.ends_with("\n77\n77\n"), "{theirs}");
    });
}

#[test]
fn a_server_of_another_users_is_probed_and_ended_as_any_other() {
    alone("a_server_of_another_users_is_probed_and_ended_as_any_other", || {
        if !is_root() {
            return;
        }
        // Where everybody can reach it.
        let liar = std::env::temp_dir().join(format!("stdiowatch-liar-{}", std::process::id()));
        fs::copy(self::liar(), &liar).unwrap();
        let sidecar = Sidecar::start();
        let probe = |script: &str, resources| {
            let script = script.replace("$LIAR", liar.to_str().unwrap());
            sidecar.probe_spec(as_nobody(LaunchSpec { resources, ..sh(&script) }))
        };
        let sound = probe("exec $LIAR ''", Resources::default());
        assert_eq!((sound.verdict, codes(&sound)), (Verdict::Pass, vec![]), "{sound:#?}");
        let left = probe(&format!("setsid sleep 100 {QUIET} & exec $LIAR 'on eof: hang'"), Resources::default());
        assert_eq!(codes(&left), ["shutdown.needed_term", "shutdown.left_escaped"], "{left:#?}");
        nothing_is_left();
        is_over(&probe("exec $LIAR 'take 80\nhang'", memory(40)), "limit.memory");
        is_over(&probe("while :; do :; done", Resources { cpu: Some(Duration::from_millis(200)), ..Resources::default() }), "limit.cpu");
        fs::remove_file(liar).unwrap();
    });
}

#[test]
fn a_launch_as_another_user_fails_as_any_other() {
    alone("a_launch_as_another_user_fails_as_any_other", || {
        if !is_root() {
            return;
        }
        let dir = std::env::temp_dir().join(format!("stdiowatch-shim-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let file = |name: &str, text: &str, mode: u32| {
            let path = dir.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let commands = [
            ("/no/such/file".to_owned(), "spawn.not_found"),
            ("no-such-command".to_owned(), "spawn.not_found"),
            (file("script", "#!/no/interpreter\n", 0o755), "spawn.interpreter_missing"),
            (file("text", "exit 0\n", 0o755), "spawn.exec_format"),
            (file("no-x", "#!/bin/sh\n", 0o644), "spawn.permission"),
            // Which only root may.
            (file("ours", "#!/bin/sh\n", 0o700), "spawn.permission"),
            (dir.to_str().unwrap().to_owned(), "spawn.permission"),
        ];
        let sidecar = Sidecar::start();
        for (command, code) in commands {
            let report = sidecar.probe_spec(as_nobody(LaunchSpec { command: command.clone(), ..LaunchSpec::default() }));
            assert_eq!((codes(&report), report.verdict), (vec![code], Verdict::Fail), "{command}: {report:#?}");
            nothing_is_left();
        }
        let nemo = sidecar.probe_spec(LaunchSpec { user: Some("no-such-user".parse().unwrap()), ..sh("exec cat") });
        assert_eq!(codes(&nemo), ["spawn.failed"]);
        assert_eq!(nemo.findings[0].evidence, "there is no user \"no-such-user\" in /etc/passwd");
        fs::remove_dir_all(dir).unwrap();
    });
}

#[test]
fn who_may_not_become_another_user_says_so() {
    let test = "who_may_not_become_another_user_says_so";
    if std::env::var_os(ALONE).is_some() {
        let sidecar = Sidecar::start();
        let other = sidecar.probe_spec(as_nobody(sh("exec cat")));
        assert_eq!(codes(&other), ["spawn.failed"]);
        assert!(other.findings[0].evidence.contains("needs CAP_SETUID, CAP_SETGID and CAP_KILL"), "{other:#?}");
        // As whom it runs anyway it runs.
        let own = format!("{}:{}", rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let own = sidecar.probe_spec(LaunchSpec { user: Some(own.parse().unwrap()), no_new_privs: true, ..sh("exec $LIAR ''") });
        assert_eq!(codes(&own), Vec::<&str>::new(), "{own:#?}");
        return;
    }
    if !is_root() {
        return passes(again(test));
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("skipped: it takes setpriv");
        return;
    }
    let inner = again(test);
    let mut outer = Command::new("setpriv");
    outer.args(["--bounding-set=-all", "--inh-caps=-all"]).arg(inner.get_program()).args(inner.get_args());
    passes(outer);
}

#[test]
fn no_new_privileges_alone_take_no_privileges() {
    alone("no_new_privileges_alone_take_no_privileges", || {
        let said = |no_new_privs| output(&LaunchSpec { no_new_privs, ..sh("grep NoNewPrivs /proc/self/status") });
        assert_eq!((said(true).as_str(), said(false).as_str()), ("NoNewPrivs:\t1\n", "NoNewPrivs:\t0\n"));
    });
}

#[test]
fn a_private_directory_goes_with_the_server() {
    alone("a_private_directory_goes_with_the_server", || {
        let sidecar = Sidecar::start();
        let note = std::env::temp_dir().join(format!("stdiowatch-note-{}", std::process::id()));
        let script = |then: &str| {
            format!("echo $TMPDIR $TMP $TEMP >{}; mkdir -p $TMPDIR/a/b; touch $TMPDIR/a/b/c; ln -s / $TMPDIR/root; {then}", note.display())
        };
        let noted = || {
            let said = fs::read_to_string(&note).unwrap();
            let words: Vec<&str> = said.split_whitespace().collect();
            assert!(words.len() == 3 && words.iter().all(|word| *word == words[0]), "{said}");
            words[0].to_owned()
        };
        let mut seen = Vec::new();
        for (then, wanted) in [
            ("exec $LIAR ''", vec![]),
            ("exec $LIAR 'exit 3'", vec!["exit.before_reply"]),
            (
                "setsid sh -c 'while :; do echo x >$TMPDIR/$$; done' </dev/null >/dev/null 2>&1 & exec $LIAR 'before initialize: sleep 300ms'",
                vec!["shutdown.left_escaped"],
            ),
        ] {
            let report = sidecar.probe_spec(LaunchSpec { private_tmp: true, ..sh(&script(then)) });
            assert_eq!(codes(&report), wanted, "{report:#?}");
            let dir = noted();
            assert!(!Path::new(&dir).exists() && !seen.contains(&dir), "{dir}");
            seen.push(dir);
            assert!(report.given.unwrap().env.contains(&"TMPDIR".to_owned()));
        }
        if is_root() {
            let own = output(&as_nobody(LaunchSpec { private_tmp: true, ..sh("touch $TMPDIR/x && stat -c '%U %a' $TMPDIR; echo $TMPDIR") }));
            let (mode, dir) = own.trim().split_once('\n').unwrap();
            assert_eq!((mode, Path::new(dir).exists()), ("nobody 700", false));
        }
        fs::remove_file(note).unwrap();
    });
}

/// Run as a test of itself: a sidecar that has a server with a directory of its own.
#[test]
#[ignore = "a helper of another"]
fn sidecar_with_a_private_directory() {
    if std::env::var_os(ALONE).is_some() {
        let sidecar = Sidecar::start();
        let script = "echo \"tmp $TMPDIR\" >/proc/$PPID/fd/1; touch $TMPDIR/x; exec $LIAR 'before initialize: sleep 8000ms'";
        sidecar.probe_spec(LaunchSpec { private_tmp: true, ..sh(script) });
    }
}

#[test]
fn a_private_directory_that_a_killed_sidecar_left_is_removed_by_the_next() {
    let test = "a_private_directory_that_a_killed_sidecar_left_is_removed_by_the_next";
    alone(test, || {
        let mut killed = again("sidecar_with_a_private_directory").arg("--ignored").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(killed.stdout.take().unwrap()).lines().map_while(Result::ok);
        let left: String = lines.find_map(|line| Some(line.split_once("tmp ")?.1.to_owned())).unwrap();
        until("it is in use", || Path::new(&left).join("x").exists());
        let sidecar = Sidecar::start();
        let next = || sidecar.probe_spec(LaunchSpec { private_tmp: true, ..sh("exec $LIAR ''") });
        next();
        assert!(Path::new(&left).join("x").exists(), "of one that lives");
        killed.kill().unwrap();
        killed.wait().unwrap();
        assert!(Path::new(&left).exists());
        next();
        assert!(!Path::new(&left).exists());
    });
}

// What we hold of what it writes.

#[test]
fn a_server_that_finds_no_room_waits_and_is_not_blamed() {
    alone("a_server_that_finds_no_room_waits_and_is_not_blamed", || {
        let note = std::env::temp_dir().join(format!("stdiowatch-room-{}", std::process::id()));
        let sidecar = Sidecar::start();
        let script = |script: &str| LaunchSpec { command: liar(), args: vec![script.to_owned()], ..LaunchSpec::default() };
        // A line of six megabytes that does not end; all but what is in the pipe is read when the note is there.
        let hog = script(&format!("on tools/list: write $repeat(6000000,x)\non tools/list: spawn touch {}\non tools/list: hang", note.display()));
        let large = script(r#"on tools/list: result {"tools":[{"name":"a","description":"$repeat(5000000,x)","inputSchema":{"type":"object"}}]}"#);
        let small = script("");
        let all = || {
            sidecar.runtime.block_on(async {
                let others = async {
                    while !note.exists() {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                    let (large, small) = (large.clone(), small.clone());
                    tokio::join!(sidecar.probing("large", large, Duration::from_secs(2)), sidecar.probing("small", small, Duration::from_secs(2)))
                };
                let (first, (second, third)) = tokio::join!(sidecar.probing("hog", hog.clone(), Duration::from_secs(8)), others);
                fs::remove_file(&note).unwrap();
                (first, second, third)
            })
        };
        // Where other tests leave us no core for a second, nobody is blamed: once more then.
        let was_busy = |first: &Report| codes(first).contains(&"probe.host_busy");
        let (first, second, third) = (0..5).map(|_| all()).find(|(first, ..)| !was_busy(first)).expect("the machine is not always busy");
        assert_eq!((first.verdict, first.reason), (Verdict::Fail, Some(Reason::Timeout)), "{first:#?}");
        assert_eq!((second.verdict, codes(&second).contains(&"probe.host_busy")), (Verdict::Unknown, true), "{second:#?}");
        assert_eq!(third.verdict, Verdict::Pass, "a little is free: {third:#?}");
        let again = sidecar.runtime.block_on(sidecar.probing("large", large, Duration::from_secs(10)));
        assert_eq!((again.verdict, codes(&again)), (Verdict::Pass, vec![]), "{again:#?}");
    });
}

// A control group of its own.

/// Our own control group, if groups can be made in it; said where not.
fn groups() -> Option<std::path::PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let dir =
        ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].iter().map(|mount| Path::new(mount).join(&own)).find(|dir| dir.join("cgroup.procs").exists());
    let trial = dir.as_ref().map(|dir| dir.join(format!("stdiowatch-trial-{}", std::process::id())));
    let can = trial.is_some_and(|trial| fs::create_dir(&trial).is_ok() && trial.join("cgroup.kill").exists() && fs::remove_dir(trial).is_ok());
    if !can {
        eprintln!("skipped: no control groups can be made here");
    }
    dir.filter(|_| can)
}

fn in_group(script: &str) -> LaunchSpec {
    LaunchSpec { cgroup: true, ..sh(script) }
}

#[test]
fn a_server_has_a_control_group_of_its_own_where_one_can_be_made() {
    alone("a_server_has_a_control_group_of_its_own_where_one_can_be_made", || {
        let (group, groups) = (|spec: &LaunchSpec| output(spec).trim().to_owned(), groups());
        let own = group(&in_group("grep ^0:: /proc/self/cgroup"));
        if let Some(groups) = groups {
            let name = own.rsplit('/').next().unwrap();
            assert!(name.starts_with(&format!("stdiowatch-{}-", std::process::id())), "{own}");
            assert!(!groups.join(name).exists(), "removed after the probe");
            assert_ne!(group(&in_group("grep ^0:: /proc/self/cgroup")), own);
            let nobody = group(&as_nobody(in_group("grep ^0:: /proc/self/cgroup; id -u")));
            assert!(nobody.contains("/stdiowatch-") && nobody.ends_with("\n65534"), "{nobody}");
        } else {
            assert!(!own.contains("stdiowatch-"), "launched without");
        }
        assert!(!group(&sh("grep ^0:: /proc/self/cgroup")).contains("stdiowatch-"));
        let sidecar = Sidecar::start();
        assert_eq!(codes(&sidecar.probe_spec(in_group("exec $LIAR ''"))), Vec::<&str>::new());
    });
}

#[test]
fn a_control_group_holds_what_hides_and_multiplies() {
    alone("a_control_group_holds_what_hides_and_multiplies", || {
        let Some(groups) = groups() else { return };
        let left = || {
            fs::read_dir(&groups)
                .unwrap()
                .flatten()
                .filter(|e| e.file_name().to_string_lossy().starts_with(&format!("stdiowatch-{}-", std::process::id())))
                .count()
        };
        let sidecar = Sidecar::start();
        let hides =
            format!("(env -i setsid /bin/sh -c '/bin/sleep 100 & exec /bin/sleep 100') {QUIET} & exec $LIAR 'before initialize: sleep 100ms'");
        let report = sidecar.probe_spec(in_group(&hides));
        assert_eq!(told(&report, "shutdown.left_escaped").len(), 2, "{report:#?}");
        assert!(told(&report, "shutdown.left_escaped").into_iter().all(|pid| !lives(pid)));
        // One that makes a group below its own, and goes there.
        let deeper = format!(
            "g={}$(sed -n 's/^0:://p' /proc/self/cgroup)/deeper; mkdir $g && (echo 0 >$g/cgroup.procs; exec setsid sleep 100) {QUIET} & exec $LIAR 'before initialize: sleep 100ms'",
            mount(&groups)
        );
        let report = sidecar.probe_spec(in_group(&deeper));
        assert_eq!(told(&report, "shutdown.left_escaped").len(), 1, "{report:#?}");
        assert_eq!(left(), 0);
        // What hides counts.
        let crowd = format!("i=0; while [ $i -lt 30 ]; do env -i setsid -f /bin/sleep 100 {QUIET}; i=$((i+1)); done; exec $LIAR hang");
        is_over(&sidecar.probe_spec(LaunchSpec { resources: processes(20), ..in_group(&crowd) }), "limit.processes");
        let begun = Instant::now();
        is_over(&sidecar.probe_spec(LaunchSpec { resources: processes(20), ..in_group(&format!("{BOMB}; exec $LIAR hang")) }), "limit.processes");
        assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
        // What is to live on keeps its group; the next probe removes it when that is dead.
        let spared = sidecar.probe_spec(LaunchSpec {
            leftovers: Leftovers::Report,
            ..in_group(&format!("setsid sleep 100 {QUIET} & exec $LIAR 'before initialize: sleep 100ms'"))
        });
        let pids = told(&spared, "shutdown.left_escaped");
        assert!(pids.len() == 1 && lives(pids[0]) && left() == 1, "{spared:#?}");
        rustix::process::kill_process(rustix::process::Pid::from_raw(pids[0] as i32).unwrap(), rustix::process::Signal::KILL).unwrap();
        until("it is dead", || !lives(pids[0]));
        until("its group is removed", || {
            sidecar.probe_spec(in_group("exec $LIAR ''"));
            left() == 0
        });
    });
}

/// Run as a test of itself: a sidecar with a server in a group, which hides a helper in a group below.
#[test]
#[ignore = "a helper of another"]
fn sidecar_with_a_control_group() {
    if let (Some(_), Some(groups)) = (std::env::var_os(ALONE), groups()) {
        let below = format!("g={}$(sed -n 's/^0:://p' /proc/self/cgroup)", mount(&groups));
        let hides = format!("mkdir $g/below; (echo 0 >$g/below/cgroup.procs; exec env -i setsid /bin/sleep 100) {QUIET} &");
        let script = format!("out=/proc/$PPID/fd/1; {below}; {hides} echo \"left $! $g\" >$out; exec $LIAR 'before initialize: sleep 8000ms'");
        Sidecar::start().probe_spec(in_group(&script));
    }
}

#[test]
fn what_a_killed_sidecar_left_in_a_control_group_is_ended_by_the_next() {
    alone("what_a_killed_sidecar_left_in_a_control_group_is_ended_by_the_next", || {
        if groups().is_none() {
            return;
        }
        let mut killed = again("sidecar_with_a_control_group").arg("--ignored").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(killed.stdout.take().unwrap()).lines().map_while(Result::ok);
        let left: String = lines.find_map(|line| Some(line.split_once("left ")?.1.to_owned())).unwrap();
        let (pid, group) = left.split_once(' ').unwrap();
        let pid = pid.parse().unwrap();
        until("it hides", || fs::read_to_string(Path::new(group).join("below/cgroup.procs")).is_ok_and(|members| !members.is_empty()));
        let sidecar = Sidecar::start();
        let next = || sidecar.probe_spec(in_group("exec $LIAR ''"));
        next();
        assert!(lives(pid) && Path::new(group).exists(), "of one that lives");
        killed.kill().unwrap();
        killed.wait().unwrap();
        until("it is ended, and its group removed", || {
            next();
            !lives(pid) && !Path::new(group).exists()
        });
    });
}

/// Where control groups are mounted, of which `groups` is one.
fn mount(groups: &Path) -> &'static str {
    if groups.starts_with("/sys/fs/cgroup/unified") { "/sys/fs/cgroup/unified" } else { "/sys/fs/cgroup" }
}

// What it leaves.

#[test]
fn what_is_to_be_left_alone_outlives_probe_and_sidecar() {
    alone("what_is_to_be_left_alone_outlives_probe_and_sidecar", || {
        let sidecar = Sidecar::start();
        let script = format!(
            "sleep 100 {QUIET} & setsid sleep 100 {QUIET} & env -i setsid /bin/sleep 100 {QUIET} & exec $LIAR 'before initialize: sleep 100ms'"
        );
        let mut all = Vec::new();
        for _ in 0..3 {
            let report = sidecar.probe(&script, Leftovers::Report, Resources::default());
            let left = [told(&report, "shutdown.left_group"), told(&report, "shutdown.left_escaped")];
            assert_eq!((left[0].len(), left[1].len()), (1, 2), "each its own, and no other's: {report:#?}");
            assert!(report.findings.iter().all(|f| f.evidence.ends_with("; left alone")), "{report:#?}");
            assert_eq!(report.peers.live, Vec::<u32>::new());
            all.extend(left.concat());
            assert!(all.iter().all(|pid| lives(*pid)), "{all:?}");
        }
        // A server whose leftovers are ended takes none of them along.
        let other = sidecar.probe(&format!("setsid sleep 100 {QUIET} & exec $LIAR ''"), Leftovers::Kill, Resources::default());
        assert_eq!(told(&other, "shutdown.left_escaped").len(), 1);
        // What dies is reaped; the rest outlives the sidecar.
        kill(all[0]);
        until("reaped", || {
            sidecar.runtime.block_on(sidecar.launchpad.is_alive());
            !Path::new(&format!("/proc/{}", all[0])).exists()
        });
        drop(sidecar);
        assert!(all[1..].iter().all(|pid| lives(*pid)), "{all:?}");
        all[1..].iter().for_each(|pid| kill(*pid));
    });
}

#[test]
fn who_is_left_alone_and_holds_stdout_holds_nobody_up() {
    alone("who_is_left_alone_and_holds_stdout_holds_nobody_up", || {
        let sidecar = Sidecar::start();
        let begun = Instant::now();
        let report = sidecar.probe("sleep 100 & exec $LIAR ''", Leftovers::Report, Resources::default());
        assert_eq!(codes(&report), ["shutdown.left_group", "shutdown.pipe_held"]);
        assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
        let left = told(&report, "shutdown.left_group");
        assert!(lives(left[0]));
        kill(left[0]);
    });
}

/// Run as a test of itself: a sidecar that has left something alone, and has a server running.
#[test]
#[ignore = "a helper of others"]
fn sparing_sidecar() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let sidecar = Sidecar::start();
    let script = format!("setsid sleep 100 {QUIET} & exec $LIAR ''");
    let report = sidecar.probe(&script, Leftovers::Report, Resources::default());
    println!("left {}", told(&report, "shutdown.left_escaped")[0]);
    let held = format!("setsid sleep 100 {QUIET} & echo running >&2; echo $$ > $LIAR.$PPID; exec $LIAR 'before initialize: sleep 8000ms'");
    sidecar.probe(&held, Leftovers::Report, Resources::default());
}

#[test]
fn a_killed_sidecars_guard_ends_what_runs_and_spares_what_was_left_alone() {
    let mut sidecar = again("sparing_sidecar").arg("--ignored").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(sidecar.stdout.take().unwrap()).lines().map_while(Result::ok);
    let left: u32 = lines.find_map(|line| line.split_once("left ")?.1.parse().ok()).unwrap();
    let note = format!("{}.{}", liar(), sidecar.id());
    let mut server = 0;
    until("the second server runs", || {
        server = fs::read_to_string(&note).ok().and_then(|pid| pid.trim().parse().ok()).unwrap_or(0);
        server != 0
    });
    let running: Vec<u32> = descendants(sidecar.id()).into_iter().filter(|pid| *pid != left).collect();
    assert!(running.contains(&server) && running.len() >= 2, "{running:?}");
    sidecar.kill().unwrap();
    sidecar.wait().unwrap();
    until("what ran is dead", || !running.iter().any(|pid| lives(*pid)));
    assert!(lives(left));
    kill(left);
    fs::remove_file(note).unwrap();
}

// What it does not inherit.

#[test]
fn a_server_gets_no_signals_or_descriptors_that_were_handed_to_us() {
    let test = "a_server_gets_no_signals_or_descriptors_that_were_handed_to_us";
    if std::env::var_os(ALONE).is_some() {
        nix::sys::signal::SigSet::from(nix::sys::signal::Signal::SIGUSR1).thread_block().unwrap();
        let status = fs::read_to_string("/proc/self/status").unwrap();
        assert_eq!(mask(&status, "SigIgn") & 0b111, 0b111, "HUP, INT and QUIT");
        assert!(Path::new("/proc/self/fd/9").exists());
        let said = output(&sh("grep ^Sig /proc/self/status; ls /proc/self/fd"));
        assert_eq!(mask(&said, "SigBlk"), 0);
        // Above the 31 of old, glibc has two of its own (32 and 33) ignored by whatever it spawns.
        assert_eq!(mask(&said, "SigIgn") & 0x7fff_ffff, 0, "{said}");
        // Its own three, and the directory that is being listed.
        assert!(said.ends_with("\n0\n1\n2\n3\n"), "{said}");
        return;
    }
    let inner = again(test);
    let mut outer = Command::new("/bin/sh");
    outer.args(["-c", "trap '' HUP INT QUIT; exec 9</dev/null; exec \"$@\"", "sh"]).arg(inner.get_program()).args(inner.get_args());
    passes(outer);
}

/// A mask of signals, as /proc/PID/status has it.
fn mask(status: &str, which: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix(which)?.strip_prefix(":\t")).unwrap();
    u64::from_str_radix(mask, 16).unwrap()
}

// How it is launched.

#[test]
fn limits_do_not_take_a_launch_to_the_fork_path() {
    let test = "limits_do_not_take_a_launch_to_the_fork_path";
    if std::env::var_os(ALONE).is_some() {
        let resources = Resources {
            memory: Some(1 << 30),
            processes: Some(9),
            open_files: Some(99),
            cpu: Some(Duration::from_secs(9)),
            file_size: Some(1 << 20),
        };
        let here = std::env::temp_dir();
        output(&LaunchSpec { command: "/bin/cat".to_owned(), resources, leftovers: Leftovers::Report, cwd: Some(here), ..LaunchSpec::default() });
        output(&LaunchSpec { no_new_privs: true, private_tmp: true, ..sh("exit 0") });
        if is_root() {
            output(&as_nobody(sh("exit 0")));
        }
        return;
    }
    let inner = again(test);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=clone,clone3,fork,vfork", "-o", "/dev/stderr"]).arg(inner.get_program()).args(inner.get_args());
    let Ok(output) = strace.env(ALONE, "1").output() else {
        eprintln!("skipped: it takes strace");
        return;
    };
    let trace = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && trace.contains("ptrace") {
        eprintln!("skipped: tracing is not allowed here");
        return;
    }
    let calls: Vec<&str> =
        trace.lines().filter(|line| line.contains("fork(") || line.contains("clone")).filter(|line| !line.contains("CLONE_THREAD")).collect();
    // The guard and the server.
    let launches = calls.iter().filter(|line| line.contains("CLONE_VFORK")).count();
    assert!(launches >= 2, "{trace}");
    assert!(calls.iter().all(|line| line.contains("CLONE_VFORK") || line.contains("resumed")), "{calls:#?}");
}

#[test]
fn who_finds_no_process_left_is_not_blamed_where_others_have_them() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    alone("who_finds_no_process_left_is_not_blamed_where_others_have_them", || {
        if !is_root() {
            return;
        }
        let sidecar = Sidecar::start();
        // More of them than its user may have, whose other ones are few or none.
        let crowd = "for n in 1 2 3 4 5 6 7 8 9; do sleep 100 & done; exit 1";
        let usual = getrlimit(Resource::Nproc);
        let may_have = |most: Option<u64>| {
            setrlimit(Resource::Nproc, Rlimit { current: most, maximum: usual.maximum }).unwrap();
            sidecar.probe_spec(as_nobody(sh(crowd)))
        };
        let starved = may_have(Some(4));
        assert_eq!((starved.verdict, starved.findings[0].code), (Verdict::Unknown, "exit.before_reply"), "{starved:#?}");
        let evidence = &starved.findings.iter().find(|f| f.code == "probe.resources").unwrap().evidence;
        assert!(evidence.contains("fork") && evidence.contains("of 4 processes and threads left"), "{evidence}");
        // The same exit where nothing was missing, and where it has limited itself.
        let enough = may_have(usual.current);
        assert_eq!((enough.verdict, enough.findings[0].code), (Verdict::Fail, "exit.before_reply"), "{enough:#?}");
        let own = sidecar.probe_spec(as_nobody(sh(&format!("ulimit -p 4 2>/dev/null || ulimit -u 4; {crowd}"))));
        assert_eq!((own.verdict, own.findings[0].code), (Verdict::Fail, "exit.before_reply"), "{own:#?}");
        assert!(own.findings[0].evidence.contains("ulimit -u"), "{own:#?}");
        nothing_is_left();
    });
}
