//! What takes longer than a test should: run by CI, with `cargo test --test endurance -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use parking_lot::Mutex;
use stdiowatch::judge::{LockFile, Rules, Verdict};
use stdiowatch::ledger::Record;
use stdiowatch::outside::process::{GuardCommand, LaunchSpec};
use stdiowatch::running::{Job, Known, Launchpad, Onlooker, Watched};
use stdiowatch::words::{Digest, Moment, ServerName};
use tokio::sync::watch;

/// One test at a time: what one holds for a moment would be another's growth.
static ALONE: Mutex<()> = Mutex::new(());

/// Resident memory in KiB, open descriptors, and children that are dead and not reaped.
fn used() -> (u64, usize, usize) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let rss = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    let rss = rss.split_whitespace().next().unwrap().parse().unwrap();
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let children: String = tasks.map(|t| fs::read_to_string(t.path().join("children")).unwrap_or_default()).collect();
    let is_zombie = |pid: &&str| fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    (rss, fs::read_dir("/proc/self/fd").unwrap().count(), children.split_whitespace().filter(is_zombie).count())
}

fn job(kind: &str) -> Job {
    let spec = LaunchSpec { command: PROGRAM.into(), args: vec!["sample-server".into(), kind.into()], ..LaunchSpec::default() };
    let mut server = Watched::new(ServerName::new(kind).unwrap(), spec, Duration::from_secs(60));
    if kind == "ignore-sigterm" {
        // It uses them up; to who ends by itself a busy machine may not give any time for as long.
        server.times.eof_grace = Duration::from_millis(100);
        server.times.term_grace = Duration::from_millis(100);
    }
    Job {
        name: server.name.clone(),
        spec: Arc::clone(&server.spec),
        plan: server.plan(Known { era: Some(stdiowatch::protocol::Era::Legacy), launched: true, ..Known::default() }, false),
        rules: Arc::new(Rules::default()),
        accepted: None,
        record: false,
        coexists: false,
        onlooker: Onlooker::default(),
    }
}

#[test]
#[ignore = "takes a minute"]
fn a_thousand_probes_one_after_another_leave_nothing() {
    let _alone = ALONE.lock();
    // `helper` leaves a process behind each time, `ignore-sigterm` has to be killed.
    for (kind, count, verdict) in [("sound", 1000, Verdict::Pass), ("helper", 200, Verdict::Warn), ("ignore-sigterm", 50, Verdict::Warn)] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (_stop, stopped) = watch::channel(false);
        let launchpad = Launchpad::start(GuardCommand::new(PROGRAM, ["guard"]), stopped).unwrap();
        let probe = || runtime.block_on(launchpad.probe(job(kind))).unwrap().report;
        (0..count / 10).for_each(|_| drop(probe()));
        let before = used();
        let began = Instant::now();
        for n in 0..count {
            let report = probe();
            assert_eq!(report.verdict, verdict, "{kind}, probe {n}: {report:#?}");
        }
        let took = began.elapsed().as_secs_f64() * 1e3 / f64::from(count);
        let after = used();
        println!("{kind}: {count} probes, {took:.1} ms each; (KiB, descriptors, zombies) before {before:?}, after {after:?}");
        assert_eq!((before.1, before.2), (after.1, after.2), "{kind}");
        assert!(after.0 < before.0 + 1024, "{kind}");
    }
}

/// Sidecars that are killed; more of them with `STDIOWATCH_KILLS`.
const KILLS: usize = 50;
/// Those that are killed at the same time: so there is load.
const WORKERS: usize = 3;

#[test]
#[ignore = "takes a minute"]
fn killed_sidecars_leave_nothing_and_damage_nothing() {
    let _alone = ALONE.lock();
    let kills = std::env::var("STDIOWATCH_KILLS").map_or(KILLS, |n| n.parse().unwrap());
    let killer = |worker: usize| {
        let (scratch, mut worst, mut kept) = (Scratch::new(), Duration::ZERO, 0);
        for n in (worker..kills).step_by(WORKERS) {
            worst = worst.max(kill_one(n, &scratch.path("state")));
            kept += intact(&scratch.0.join("state"));
        }
        (worst, kept)
    };
    let figures: Vec<(Duration, usize)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|worker| scope.spawn(move || killer(worker))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let (worst, kept) = figures.into_iter().fold((Duration::ZERO, 0), |(worst, kept), (w, k)| (worst.max(w), kept + k));
    println!("{kills} sidecars killed: all of their servers were gone after {worst:?} at the most; {kept} state files were read, none was damaged");
}

/// Kills a sidecar of many servers; how long it took until nothing of it was left.
fn kill_one(n: usize, state: &str) -> Duration {
    let run = Run::new();
    let mut serving = Serving::start(&run, &["--demo", "--interval", "1s", "--state-dir", state]);
    // From 0 to 3 s, in steps that have nothing to do with the servers' own times.
    let until = Instant::now() + Duration::from_millis(n as u64 * 1237 % 3000);
    poll(LONG, || (Instant::now() >= until).then_some(()));
    serving.signal("KILL");
    serving.wait();
    let killed = Instant::now();
    run.leaves_nothing(Duration::from_secs(1));
    killed.elapsed()
}

/// Every file that is kept there is what was written, and none was ever set aside; how many there are.
fn intact(state: &Path) -> usize {
    let mut files = 0;
    // One that was killed at once has not even made the directory.
    for entry in fs::read_dir(state).into_iter().flatten().flatten() {
        let (path, bytes) = (entry.path(), fs::read(entry.path()).unwrap());
        let name = path.file_name().unwrap().to_str().unwrap();
        // What it was killed in the middle of is no file yet.
        if name == "in-use" || name.ends_with(".partial") {
            continue;
        }
        let at = bytes.windows(9).rposition(|window| window == b"\n#sha256:").unwrap_or_else(|| panic!("{name} has no digest"));
        let (bytes, digest) = (&bytes[..at], String::from_utf8_lossy(&bytes[at + 9..]).trim_end().to_owned());
        assert_eq!(Digest::of(bytes).to_string(), digest, "{name}");
        let value: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let read = match value["server"].as_str() {
            Some(server) => {
                Record::parse(bytes, &ServerName::new(server).unwrap(), Moment { up: LONG, unix_ms: i64::MAX }).err().map(|e| e.to_string())
            }
            None => LockFile::parse(bytes).err().map(|e| e.to_string()),
        };
        assert_eq!(read, None, "{name}");
        assert!(name.ends_with(".json"), "{name}");
        files += 1;
    }
    files
}
