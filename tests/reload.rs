//! A fleet that changes while it is watched, and asks for probes outside of the schedule: in this process,
//! with real servers.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::*;
use stdiowatch::judge::{Severity, Verdict};
use stdiowatch::ledger::{Health, Held, ServerState, Skip, Snapshot, Unwatched};
use stdiowatch::outside::clock;
use stdiowatch::outside::process::{GuardCommand, LaunchSpec};
use stdiowatch::probe::EraChoice;
use stdiowatch::protocol::Era;
use stdiowatch::running::hub::Hub;
use stdiowatch::running::reload::{self, Loaded, Reading, Reloader};
use stdiowatch::running::{Asked, Fleet, Launchpad, Watched};
use stdiowatch::show::exposition::Format;
use stdiowatch::show::scrape::Scrape;
use stdiowatch::words::ServerName;
use tokio::sync::watch;

/// A directory of a test's own, removed with it.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("stdiowatch-reload-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn server(name: &str, command: &str, args: &[&str], interval: u64) -> Watched {
    let spec = LaunchSpec { command: command.to_owned(), args: args.iter().map(|a| (*a).to_owned()).collect(), ..LaunchSpec::default() };
    let mut server = Watched::new(ServerName::new(name).unwrap(), spec, Duration::from_secs(interval));
    server.times.eof_grace = Duration::from_millis(500);
    server.times.term_grace = Duration::from_millis(500);
    server
}

fn sample(name: &str, kind: &str, interval: u64) -> Watched {
    server(name, PROGRAM, &["sample-server", kind], interval)
}

/// A server that writes a line to `log` at each launch, and then is a sample.
fn logging(name: &str, kind: &str, log: &Path, interval: u64) -> Watched {
    let script = format!("echo launched >> {}; exec {PROGRAM} sample-server {kind}", log.display());
    server(name, "sh", &["-c", &script], interval)
}

fn launches(log: &Path) -> usize {
    std::fs::read_to_string(log).unwrap_or_default().lines().count()
}

/// A fleet in this process, and the task that runs it.
struct Running {
    hub: Arc<Hub>,
    fleet: Arc<Fleet>,
    stop: watch::Sender<bool>,
    run: tokio::task::JoinHandle<()>,
}

impl Running {
    fn start() -> Running {
        let (stop, stopped) = watch::channel(false);
        let launchpad = Arc::new(Launchpad::start(GuardCommand::new(PROGRAM, ["guard"]), stopped.clone()).unwrap());
        let hub = Arc::new(Hub::default());
        let fleet = Fleet::new(Arc::clone(&hub), launchpad);
        let run = tokio::spawn({
            let fleet = Arc::clone(&fleet);
            async move { fleet.run(stopped).await }
        });
        Running { hub, fleet, stop, run }
    }

    async fn end(self) {
        self.stop.send_replace(true);
        self.run.await.unwrap();
    }

    fn state(&self, name: &str) -> Arc<ServerState> {
        Arc::clone(self.hub.snapshot().server(name).unwrap_or_else(|| panic!("no server {name}")))
    }

    fn probes(&self, name: &str) -> u64 {
        self.state(name).probes
    }

    fn health(&self, name: &str) -> Health {
        self.state(name).health(clock::now())
    }

    fn series(&self) -> String {
        Scrape::new(self.hub.snapshot(), clock::now(), Vec::new(), Format::Text).text()
    }
}

/// Asks again and again, leaving time to others, until there is an answer.
async fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LONG;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// The servers whose name some series has.
fn named(series: &str) -> BTreeSet<String> {
    series.split("server=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

fn names(list: &[ServerName]) -> Vec<&str> {
    list.iter().map(ServerName::as_str).collect()
}

#[test]
fn what_stays_the_same_notices_nothing_and_what_goes_is_gone_at_once() {
    block_on(async {
        let running = Running::start();
        let first = || vec![sample("a", "sound", 60), sample("b", "sound", 60), sample("c", "sound", 60)];
        let changes = running.fleet.replace(first());
        assert_eq!((names(&changes.added), changes.kept), (vec!["a", "b", "c"], 0));
        assert_eq!(named(&running.series()), ["a", "b", "c"].map(str::to_owned).into(), "they are there at once");
        until("the first round", || ["a", "b", "c"].iter().all(|n| running.probes(n) == 1).then_some(())).await;
        until("readiness", || running.hub.snapshot().sidecar.first_round_done.then_some(())).await;
        let kept = running.state("a");

        // The same text again is no change at all.
        let changes = running.fleet.replace(first());
        assert_eq!((changes.added.len(), changes.removed.len(), changes.changed.len(), changes.kept), (0, 0, 0, 3));
        assert!(Arc::ptr_eq(&kept, &running.state("a")));

        let changes = running.fleet.replace(vec![sample("a", "sound", 60), sample("b", "sound", 3600), sample("d", "sound", 60)]);
        assert_eq!((names(&changes.added), names(&changes.removed), names(&changes.changed), changes.kept), (vec!["d"], vec!["c"], vec!["b"], 1));
        assert_eq!(changes.to_string(), "1 added, 1 removed, 1 changed, 1 unchanged");
        let series = running.series();
        assert_eq!(named(&series), ["a", "b", "d"].map(str::to_owned).into(), "in the same scrape");
        for line in
            ["stdiowatch_interval_seconds{server=\"b\"} 3600", "stdiowatch_probes_total{server=\"b\"} 1", "stdiowatch_probes_total{server=\"d\"} 0"]
        {
            assert!(series.lines().any(|l| l == line), "{line}");
        }
        assert!(Arc::ptr_eq(&kept, &running.state("a")));
        assert!(running.hub.snapshot().sidecar.first_round_done, "it stays ready");
        until("the changed one is probed again, and the new one", || (running.probes("b") == 2 && running.probes("d") == 1).then_some(())).await;
        assert_eq!(running.probes("a"), 1);
        assert_eq!(running.state("b").history.entries().count(), 2);

        running.fleet.replace(Vec::new());
        assert!(named(&running.series()).is_empty());
        let stopped = Instant::now();
        running.end().await;
        assert!(stopped.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn a_fleet_of_none_is_ready() {
    block_on(async {
        let running = Running::start();
        until("readiness", || running.hub.snapshot().sidecar.first_round_done.then_some(())).await;
        running.end().await;
    });
}

#[test]
fn a_server_that_is_taken_out_is_ended_politely_and_its_outcome_dropped() {
    let dir = Dir::new("polite");
    let log = dir.path("log");
    // Says how it was ended.
    let script =
        format!("trap 'echo term >> {log}; exit' TERM; echo up >> {log}; while read -r line; do :; done; echo eof >> {log}", log = log.display());
    block_on(async {
        let running = Running::start();
        let mute = || server("mute", "sh", &["-c", &script], 60);
        let written = || std::fs::read_to_string(&log).unwrap_or_default();
        running.fleet.replace(vec![mute()]);
        until("it runs", || (written() == "up\n").then_some(())).await;
        running.fleet.replace(Vec::new());
        assert!(running.hub.snapshot().servers.is_empty());
        until("it was told by the end of its input", || (written() == "up\neof\n").then_some(())).await;
        until("nothing is in flight", || (running.hub.snapshot().sidecar.in_flight == 0).then_some(())).await;
        // Put back while its last probe is being ended, it waits for that.
        running.fleet.replace(vec![mute()]);
        until("it runs again", || (written() == "up\neof\nup\n").then_some(())).await;
        running.fleet.replace(Vec::new());
        running.fleet.replace(vec![mute()]);
        until("one after the other", || (written() == "up\neof\nup\neof\nup\n").then_some(())).await;
        assert_eq!((running.probes("mute"), running.hub.snapshot().sidecar.in_flight), (0, 1));
        running.end().await;
        assert_eq!(written(), "up\neof\nup\neof\nup\neof\n");
    });
}

#[test]
fn a_server_that_is_launched_in_another_way_keeps_its_counts_and_forgets_its_start() {
    let dir = Dir::new("relaunched");
    let log = dir.path("log");
    block_on(async {
        let running = Running::start();
        running.fleet.replace(vec![logging("mine", "sound", &log, 3600)]);
        until("a probe", || (running.probes("mine") == 1).then_some(())).await;
        let before = running.state("mine");
        assert!(before.launched && before.era.is_some());
        running.fleet.replace(vec![sample("mine", "banner", 3600)]);
        let state = running.state("mine");
        assert_eq!((state.launched, state.era, state.probes), (false, None, 1));
        assert!(running.health("mine").is_up(), "what was known is known until the probe that is coming");
        until("it is probed as it is now", || (running.health("mine") == Health::Known(Verdict::Fail)).then_some(())).await;
        let state = running.state("mine");
        assert_eq!((state.probes, state.history.entries().count(), state.last_success), (2, 2, before.last_success));

        // Changed while it is probed: that probe is ended, and comes to nothing. Who asked meanwhile gets the new one's outcome.
        let mute = Watched { interval: Duration::from_secs(1800), ..logging("mine", "mute", &log, 3600) };
        running.fleet.replace(vec![mute]);
        until("it is being probed", || (launches(&log) > 1).then_some(())).await;
        let ask = || {
            let fleet = Arc::clone(&running.fleet);
            tokio::spawn(async move { fleet.ask("mine", false, LONG).await })
        };
        let began = Instant::now();
        let early = ask();
        // It has asked by the time that somebody looks.
        tokio::task::yield_now().await;
        running.fleet.replace(vec![sample("mine", "sound-modern", 3600)]);
        let late = ask();
        for asked in [early, late] {
            assert!(matches!(asked.await.unwrap(), Asked::Probed(None)));
            assert!(running.state("mine").era.is_some_and(|era| era.as_str() == "modern"), "by the new one");
        }
        assert!(began.elapsed() < Duration::from_secs(25), "not after the old one's time was up: {:?}", began.elapsed());
        let state = running.state("mine");
        assert_eq!((state.probes, state.failures.values().sum::<u64>()), (3, 1), "the banner's alone");
        assert!(state.report().is_some_and(|r| r.era.is_some_and(|era| era.as_str() == "modern")));
        running.end().await;
    });
}

/// What is judged in another way is not asked again: but who asks from then on is answered by that.
#[test]
fn who_asks_after_a_reload_is_answered_by_what_it_says() {
    block_on(async {
        let running = Running::start();
        running.fleet.replace(vec![sample("mine", "slow", 3600)]);
        until("it is being probed", || (running.hub.snapshot().sidecar.in_flight == 1).then_some(())).await;
        let mut rules = (*sample("mine", "slow", 3600).rules).clone();
        rules.objectives.insert("startup", Duration::from_millis(1));
        running.fleet.replace(vec![Watched { rules: Arc::new(rules), ..sample("mine", "slow", 3600) }]);
        assert!(matches!(running.fleet.ask("mine", false, LONG).await, Asked::Probed(None)));
        let state = running.state("mine");
        assert_eq!((state.probes, state.findings.get("latency.slow")), (2, Some(&1)), "the first one counts, and is not the answer");
        running.end().await;
    });
}

/// The probe that a reload brings may take longer than any before it was allowed to.
#[test]
fn what_is_known_lasts_as_long_as_a_probe_may_take_by_a_new_configuration() {
    block_on(async {
        let running = Running::start();
        let brief = || {
            let mut brief = sample("mine", "sound", 2);
            (brief.times.startup, brief.times.total) = (Duration::from_secs(3), Duration::from_secs(4));
            brief
        };
        running.fleet.replace(vec![brief()]);
        until("a probe", || (running.probes("mine") > 0).then_some(())).await;
        running.fleet.replace(vec![Watched { times: sample("mine", "slow", 2).times, ..brief() }]);
        let mut later = clock::now();
        later.up += Duration::from_secs(180);
        assert!(running.state("mine").health(later).is_up());
        later.up += Duration::from_secs(20);
        assert_eq!(running.state("mine").health(later), Health::Stale { was: Verdict::Pass });
        running.end().await;
    });
}

#[test]
fn thresholds_hold_through_a_whole_fleet() {
    let dir = Dir::new("thresholds");
    let broken = dir.path("broken");
    let script = format!("if [ -e {} ]; then exit 7; fi; exec {PROGRAM} sample-server sound", broken.display());
    block_on(async {
        let running = Running::start();
        let mut mine = server("mine", "sh", &["-c", &script], 1);
        mine.thresholds.failure = 3;
        mine.thresholds.success = 2;
        running.fleet.replace(vec![mine.clone()]);
        until("it is well", || running.health("mine").is_up().then_some(())).await;
        std::fs::write(&broken, "").unwrap();
        until("it counts as failing", || {
            let state = running.state("mine");
            let up = state.health(clock::now()).is_up();
            assert_eq!(up, state.consecutive_failures < 3, "{} failures", state.consecutive_failures);
            (!up).then_some(())
        })
        .await;
        std::fs::remove_file(&broken).unwrap();
        until("it counts as well again", || {
            let state = running.state("mine");
            let up = state.health(clock::now()).is_up();
            assert_eq!(up, state.consecutive_successes >= 2, "{} successes", state.consecutive_successes);
            up.then_some(())
        })
        .await;
        running.end().await;
    });
}

#[test]
fn a_server_that_fell_is_tried_again_before_its_interval_is_over() {
    let dir = Dir::new("fell");
    let broken = dir.path("broken");
    let script = format!("if [ -e {} ]; then exit 7; fi; exec {PROGRAM} sample-server sound", broken.display());
    block_on(async {
        let running = Running::start();
        let watched = |interval| server("mine", "sh", &["-c", &script], interval);
        running.fleet.replace(vec![watched(3600)]);
        until("it is well", || running.health("mine").is_up().then_some(())).await;
        std::fs::write(&broken, "").unwrap();
        running.fleet.replace(vec![watched(3601)]);
        until("it fell", || (running.health("mine") == Health::Known(Verdict::Fail)).then_some(())).await;
        let fell = Instant::now();
        std::fs::remove_file(&broken).unwrap();
        until("it is well again", || running.health("mine").is_up().then_some(())).await;
        assert!(fell.elapsed() > Duration::from_secs(9) && fell.elapsed() < Duration::from_secs(25), "{:?}", fell.elapsed());
        running.end().await;
    });
}

#[test]
fn who_asks_shares_one_probe_and_is_answered_again_for_a_while() {
    let dir = Dir::new("asked");
    let log = dir.path("log");
    block_on(async {
        let running = Running::start();
        // In a known era, so that each probe is one launch.
        running.fleet.replace(vec![Watched { era: EraChoice::Fixed(Era::Legacy), ..logging("mine", "sound", &log, 3600) }]);
        let ask = |record| {
            let fleet = Arc::clone(&running.fleet);
            tokio::spawn(async move { fleet.ask("mine", record, LONG).await })
        };
        // Those who ask while it is probed for the first time get that probe.
        let asked: Vec<_> = (0..50).map(|_| ask(false)).collect();
        for asked in asked {
            assert!(matches!(asked.await.unwrap(), Asked::Probed(None)));
        }
        assert_eq!((launches(&log), running.probes("mine")), (1, 1));
        assert!(matches!(ask(false).await.unwrap(), Asked::Again { age } if age < Duration::from_secs(5)));
        assert_eq!(launches(&log), 1);
        // Who wants to see it waits until it may be launched again.
        let began = Instant::now();
        let (one, two) = (ask(true), ask(true));
        let (one, two) = (one.await.unwrap(), two.await.unwrap());
        let (Asked::Probed(Some(one)), Asked::Probed(Some(two))) = (one, two) else { panic!("no recording") };
        assert!(Arc::ptr_eq(&one, &two) && began.elapsed() > Duration::from_secs(3), "{:?}", began.elapsed());
        assert!(one.happenings().count() > 5);
        assert_eq!((launches(&log), running.probes("mine")), (2, 2));
        assert!(matches!(running.fleet.ask("nobody", false, LONG).await, Asked::Nobody));
        assert!(matches!(running.fleet.ask("no/name", false, LONG).await, Asked::Nobody));
        running.end().await;
    });
}

#[test]
fn who_asks_too_impatiently_leaves_a_probe_that_goes_on() {
    block_on(async {
        let running = Running::start();
        running.fleet.replace(vec![sample("slow", "slow", 3600)]);
        assert!(matches!(running.fleet.ask("slow", false, Duration::from_millis(200)).await, Asked::Late));
        assert_eq!(running.probes("slow"), 0);
        until("it ends", || (running.probes("slow") == 1).then_some(())).await;
        // One that is taken out meanwhile is nobody.
        let fleet = Arc::clone(&running.fleet);
        running.fleet.replace(vec![sample("mute", "mute", 3600)]);
        let asked = tokio::spawn(async move { fleet.ask("mute", false, LONG).await });
        until("it runs", || (running.hub.snapshot().sidecar.in_flight == 1).then_some(())).await;
        running.fleet.replace(Vec::new());
        assert!(matches!(asked.await.unwrap(), Asked::Nobody));
        running.end().await;
    });
}

#[test]
fn a_server_that_is_held_stays_so_whoever_asks_and_whatever_is_reloaded() {
    block_on(async {
        let running = Running::start();
        running.fleet.replace(vec![sample("mine", "sound", 1)]);
        until("a probe", || (running.probes("mine") > 0).then_some(())).await;
        let name = ServerName::new("mine").unwrap();
        let hold = |state: &mut ServerState| state.held = Some(Held { since: clock::now(), why: "a test".to_owned() });
        running.hub.update_server(&name, hold);
        let skipped = || running.state("mine").skipped.get(&Skip::PeerHarmed).copied().unwrap_or_default();
        until("a point is passed over", || (skipped() > 0).then_some(())).await;
        let probes = running.probes("mine");
        assert!(matches!(running.fleet.ask("mine", false, LONG).await, Asked::Held));
        running.fleet.replace(vec![sample("mine", "sound-modern", 1)]);
        until("more are", || (skipped() > 2).then_some(())).await;
        assert_eq!((running.probes("mine"), running.health("mine")), (probes, Health::Known(Verdict::Unknown)));
        running.hub.resume(&name, clock::now());
        until("it is probed again", || (running.probes("mine") > probes).then_some(())).await;
        running.end().await;
    });
}

fn passed_over(running: &Running, name: &str) -> u64 {
    running.state(name).skipped.get(&Skip::PeerHarmed).copied().unwrap_or_default()
}

/// Two client files that have a server of one name each have both called something else.
#[test]
fn a_hold_goes_with_the_server_whatever_it_is_called_and_wherever_it_was_meanwhile() {
    let dir = Dir::new("renamed");
    let log = dir.path("log");
    block_on(async {
        let running = Running::start();
        let mine = |name: &str| logging(name, "sound", &log, 1);
        running.fleet.replace(vec![mine("mine")]);
        until("a probe", || (running.probes("mine") > 0).then_some(())).await;
        let hold = |state: &mut ServerState| state.held = Some(Held { since: clock::now(), why: "a test".to_owned() });
        running.hub.update_server(&ServerName::new("mine").unwrap(), hold);
        until("it is passed over", || (passed_over(&running, "mine") > 0).then_some(())).await;
        let before = launches(&log);
        let other = |name: &str| sample(name, "sound-modern", 1);

        running.fleet.replace(vec![mine("mine (cursor)"), other("mine (x)")]);
        assert_eq!(running.state("mine (cursor)").held.as_ref().map(|held| held.why.as_str()), Some("a test"));
        assert_eq!(running.health("mine (cursor)"), Health::Known(Verdict::Unknown));
        until("the other one is probed", || (running.probes("mine (x)") > 0).then_some(())).await;
        // Nothing of it, and then under the name that it had; the same command twice; another command under its name, and it
        // under another; and so again once nothing was there.
        for servers in [vec![], vec![mine("mine")], vec![mine("mine"), mine("twice")], vec![other("mine"), mine("old")], vec![], vec![other("mine")]]
        {
            running.fleet.replace(servers.clone());
            for server in &servers {
                until("it is passed over", || (passed_over(&running, server.name.as_str()) > 0).then_some(())).await;
                assert_eq!(running.probes(server.name.as_str()), 0);
            }
        }
        // A person knows: of this name nothing is held any more, whatever it is launched by.
        running.hub.resume(&ServerName::new("mine").unwrap(), clock::now());
        until("it is probed", || (running.probes("mine") > 0).then_some(())).await;
        assert_eq!(launches(&log), before);
        running.fleet.replace(vec![mine("mine")]);
        until("that is too, but for the hold of the other name", || (running.state("mine").held.is_some()).then_some(())).await;
        running.end().await;
    });
}

/// A live copy of what `script` runs, ended with what holds it.
fn live(script: &str) -> std::process::Child {
    std::process::Command::new("sh").args(["-c", script]).stdin(std::process::Stdio::piped()).spawn().unwrap()
}

/// A server that ends a live copy in its probe, and is replaced by `then` before that is over. What is probed by then is passed
/// over, and not launched.
fn harm_then(of_test: &str, then: impl Fn(&str) -> Vec<Vec<Watched>>) {
    let dir = Dir::new(of_test);
    let (holder, log) = (dir.path("holder"), dir.path("log"));
    let (holder, log_name) = (holder.display(), log.display());
    // Ends who was there before it, and then says nothing.
    let script = format!("[ -e {holder} ] && kill $(cat {holder}); echo $$ > {holder}; echo launched >> {log_name}; while read -r line; do :; done");
    block_on(async {
        let running = Running::start();
        let mut copy = live(&script);
        until("a live copy", || (launches(&log) == 1).then_some(())).await;
        running.fleet.replace(vec![server("mine", "sh", &["-c", &script], 60)]);
        until("a probe", || (launches(&log) == 2).then_some(())).await;
        until("the live copy's end", || copy.try_wait().unwrap().map(|_| ())).await;
        for servers in then(&script) {
            running.fleet.replace(servers.clone());
            until("that probe is over", || (running.hub.snapshot().sidecar.in_flight == 0).then_some(())).await;
            for server in servers {
                until("it is passed over", || (passed_over(&running, server.name.as_str()) > 0).then_some(())).await;
                assert_eq!((launches(&log), running.probes(server.name.as_str())), (2, 0));
            }
        }
        running.end().await;
    });
}

#[test]
fn harm_that_is_done_while_a_server_is_taken_out_holds_it_when_it_is_back() {
    harm_then("out", |script| vec![vec![], vec![server("renamed", "sh", &["-c", script], 1)]]);
}

#[test]
fn harm_that_is_done_while_a_server_is_changed_holds_it() {
    harm_then("changed", |_| vec![vec![sample("mine", "sound", 1)]]);
}

#[test]
fn who_says_that_harm_is_not_to_hold_a_server_resumes_it() {
    block_on(async {
        let running = Running::start();
        running.fleet.replace(vec![sample("mine", "sound", 1)]);
        until("a probe", || (running.probes("mine") > 0).then_some(())).await;
        let hold = |state: &mut ServerState| state.held = Some(Held { since: clock::now(), why: "a test".to_owned() });
        running.hub.update_server(&ServerName::new("mine").unwrap(), hold);
        let skipped = || running.state("mine").skipped.get(&Skip::PeerHarmed).copied().unwrap_or_default();
        until("a point is passed over", || (skipped() > 0).then_some(())).await;
        let (probes, sample) = (running.probes("mine"), sample("mine", "sound", 1));
        let mut rules = (*sample.rules).clone();
        rules.severity.insert("peer.harmed".to_owned(), Severity::Warn);
        running.fleet.replace(vec![Watched { rules: Arc::new(rules), ..sample }]);
        until("it is probed again", || (running.probes("mine") > probes).then_some(())).await;
        assert_eq!(running.state("mine").held, None);
        running.end().await;
    });
}

#[test]
fn how_a_probe_went_that_failed_is_kept_with_its_server() {
    block_on(async {
        let running = Running::start();
        let secret = Watched { secrets: vec!["Sample MCP".to_owned()], ..sample("b", "banner", 3600) };
        running.fleet.replace(vec![sample("a", "sound", 3600), secret]);
        until("both are probed", || (running.probes("a") > 0 && running.probes("b") > 0).then_some(())).await;
        let snapshot = running.hub.snapshot();
        assert!(snapshot.server("a").unwrap().trouble.is_none());
        let (at, verdict, reel) = snapshot.server("b").unwrap().trouble.clone().unwrap();
        assert_eq!((Some(at), verdict), (snapshot.server("b").unwrap().last.as_ref().map(|(at, _)| *at), Verdict::Fail));
        let text = stdiowatch::show::transcript::of_reel(&reel);
        for line in ["launching\n", "  → {\"jsonrpc\"", "  ← [redacted] server on stdio\n", "its stdin is closed\n", "exited with status 0\n"] {
            assert!(text.contains(line), "{line} in {text}");
        }
        running.end().await;
    });
}

fn unwatched() -> Unwatched {
    let (file, why) = ("mcp.json".to_owned(), "it has no `command`".to_owned());
    Unwatched { name: "c".to_owned(), file, line: 3, column: 5, why, broken: true }
}

#[test]
fn a_bad_configuration_is_refused_whole() {
    block_on(async {
        let running = Running::start();
        let told = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let count = Arc::new(AtomicUsize::new(0));
        let load: reload::Load = {
            let count = Arc::clone(&count);
            Arc::new(move || match count.fetch_add(1, Ordering::SeqCst) {
                0 => Ok(Loaded {
                    servers: vec![sample("a", "sound", 60), sample("b", "sound", 60)],
                    unwatched: vec![unwatched()],
                    ..Loaded::default()
                }),
                1 => Err("config.yaml:3:5: unknown key \"intervall\"".to_owned()),
                2 => Ok(vec![sample("a", "sound", 60), sample("a", "sound", 60)].into()),
                _ => Ok(vec![sample("b", "sound", 60)].into()),
            })
        };
        let tell = Arc::clone(&told);
        let reloader = Reloader::new(Arc::clone(&running.fleet), load, Box::new(move |reading| tell.lock().push(reading)));
        assert_eq!(reloader.reload("test").await.unwrap().added.len(), 2);
        let kept = running.hub.snapshot().servers.clone();
        assert!(reloader.reload("test").await.unwrap_err().contains("intervall"));
        let reading = running.hub.snapshot().reading.clone();
        assert!(reading.refused.as_ref().is_some_and(|(_, why)| why.contains("intervall")), "{reading:?}");
        assert_eq!(reading.unwatched, [unwatched()], "what is used is still what was read before");
        assert_eq!(reloader.reload("test").await.unwrap_err(), "two servers are called \"a\"");
        assert!(Arc::ptr_eq(&kept, &running.hub.snapshot().servers), "nothing has changed");
        assert_eq!(names(&reloader.reload("test").await.unwrap().removed), ["a"]);
        assert_eq!(*running.hub.snapshot().reading, Default::default());
        let expected = [true, false, false, true].map(|accepted| [Reading::Begun, Reading::Ended { accepted }]);
        assert_eq!(*told.lock(), expected.as_flattened());
        running.end().await;
    });
}

#[test]
fn a_file_that_is_followed_is_read_again_when_it_changes() {
    let dir = Dir::new("followed");
    let file = dir.path("servers");
    std::fs::write(&file, "a").unwrap();
    block_on(async {
        let running = Running::start();
        let load: reload::Load = {
            let file = file.clone();
            Arc::new(move || {
                Ok(std::fs::read_to_string(&file)
                    .map_err(|e| e.to_string())?
                    .split(' ')
                    .map(|name| sample(name, "sound", 3600))
                    .collect::<Vec<_>>()
                    .into())
            })
        };
        let used = reload::seen(std::slice::from_ref(&file));
        running.fleet.replace(load().unwrap().servers);
        let reloader = Reloader::new(Arc::clone(&running.fleet), load, Box::new(|_| {}));
        let (follow, stopped) = (reload::Follow { files: vec![file.clone()], used: Some(used) }, running.stop.subscribe());
        let following = tokio::spawn(async move { reloader.follow(follow, stopped).await });
        std::fs::write(&file, "a b").unwrap();
        until("the new server", || running.hub.snapshot().server("b").map(|_| ())).await;
        running.end().await;
        following.await.unwrap();
    });
}

/// In virtual time, so that nobody waits for looks at files.
fn block_on_paused(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(test);
}

#[test]
fn what_is_refused_is_tried_again_and_told_once() {
    let dir = Dir::new("refused");
    let (file, late) = (dir.path("servers"), dir.path("late"));
    std::fs::write(&file, "a").unwrap();
    block_on_paused(async {
        let running = Running::start();
        let readings = Arc::new(AtomicUsize::new(0));
        // Another file is needed, which is followed by nobody.
        let load: reload::Load = {
            let (readings, late) = (Arc::clone(&readings), late.clone());
            Arc::new(move || {
                readings.fetch_add(1, Ordering::SeqCst);
                match std::fs::read_to_string(&late) {
                    Ok(text) if text == "x" => Ok(Vec::new().into()),
                    Ok(text) => Err(format!("{text} is wrong")),
                    Err(error) => Err(error.to_string()),
                }
            })
        };
        let told = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        let reloader = Reloader::new(Arc::clone(&running.fleet), load, Box::new(move |reading| tell.lock().push(reading)));
        let (follow, stopped) = (reload::Follow { files: vec![file.clone()], used: None }, running.stop.subscribe());
        let following = tokio::spawn(async move { reloader.follow(follow, stopped).await });
        let at_least = |n| until("it is read again", move || (readings.load(Ordering::SeqCst) >= n).then_some(()));
        let expected = |accepted: &[bool]| accepted.iter().flat_map(|a| [Reading::Begun, Reading::Ended { accepted: *a }]).collect::<Vec<_>>();
        at_least.clone()(5).await;
        assert_eq!(*told.lock(), expected(&[false]), "once");
        // Whole, or not at all.
        let write = |text: &str| {
            std::fs::write(dir.path("new"), text).unwrap();
            std::fs::rename(dir.path("new"), &late).unwrap();
        };
        write("7");
        at_least.clone()(9).await;
        assert_eq!(*told.lock(), expected(&[false, false]), "for another reason");
        write("x");
        until("it is used", || running.hub.snapshot().reading.refused.is_none().then_some(())).await;
        assert_eq!(*told.lock(), expected(&[false, false, true]));
        running.end().await;
        following.await.unwrap();
    });
}

#[test]
fn a_file_that_changes_all_the_time_is_read_all_the_same() {
    let dir = Dir::new("restless");
    let file = dir.path("servers");
    std::fs::write(&file, "0").unwrap();
    block_on_paused(async {
        let running = Running::start();
        let readings = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&readings);
        let load: reload::Load = Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(Vec::new().into())
        });
        let reloader = Reloader::new(Arc::clone(&running.fleet), load, Box::new(|_| {}));
        let (follow, stopped) = (reload::Follow { files: vec![file.clone()], used: None }, running.stop.subscribe());
        let following = tokio::spawn(async move { reloader.follow(follow, stopped).await });
        let writing = tokio::spawn(async move {
            for n in 1.. {
                tokio::time::sleep(Duration::from_millis(200)).await;
                std::fs::write(&file, n.to_string()).unwrap();
            }
        });
        until("it is read", || (readings.load(Ordering::SeqCst) > 0).then_some(())).await;
        writing.abort();
        running.end().await;
        following.await.unwrap();
    });
}

/// Descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
#[ignore = "takes half a minute"]
fn a_fleet_that_changes_all_the_time_loses_nothing() {
    block_on(async {
        let running = Running::start();
        let round = |n: u64| {
            let mut servers = vec![sample("steady", "sound", 1), sample("other", "sound", 1 + n % 2)];
            servers.extend(
                (0..10)
                    .filter(|k| !(k + n).is_multiple_of(3))
                    .map(|k| sample(&format!("s{k}"), if (k + n).is_multiple_of(5) { "mute" } else { "sound" }, 1)),
            );
            servers
        };
        running.fleet.replace(round(0));
        until("the first probe", || (running.probes("steady") > 0).then_some(())).await;
        let (began, before) = (Instant::now(), running.probes("steady"));
        let mut level = 0;
        let mut last = before;
        for n in 0..150 {
            let servers = round(n);
            let wanted: BTreeSet<String> = servers.iter().map(|s| s.name.to_string()).collect();
            running.fleet.replace(servers);
            assert_eq!(named(&running.series()), wanted);
            tokio::time::sleep(Duration::from_millis(137)).await;
            let now = running.probes("steady");
            assert!(now >= last, "a counter went back");
            last = now;
            if n == 20 {
                level = descriptors();
            }
        }
        let seconds = began.elapsed().as_secs();
        let made = running.probes("steady") - before;
        assert!(made + 3 >= seconds && made <= seconds + 3, "{made} probes in {seconds} s");
        assert_eq!(running.state("steady").skipped.values().sum::<u64>(), 0);
        running.fleet.replace(vec![sample("steady", "sound", 1)]);
        until("the others have ended", || (running.hub.snapshot().sidecar.in_flight <= 1).then_some(())).await;
        println!("{made} probes in {seconds} s; descriptors: {level} in the middle of it, {} at the end", descriptors());
        assert!(descriptors() <= level);
        running.end().await;
    });
}

/// Many snapshots may be held at a time, by slow readers; a change copies a list, and never the servers in it.
#[test]
fn a_snapshot_that_is_held_does_not_change() {
    let names = ["a", "b"].map(|n| ServerState::new(ServerName::new(n).unwrap(), sample("x", "sound", 60).terms()));
    let hub = Hub::new(names.into());
    let held: Arc<Snapshot> = hub.snapshot();
    hub.update(|snapshot| snapshot.sidecar.in_flight += 1);
    assert!(Arc::ptr_eq(&held.servers, &hub.snapshot().servers), "the list is shared");
    hub.update_server(&ServerName::new("a").unwrap(), |state| state.probes = 7);
    let now = hub.snapshot();
    assert_eq!((held.servers[0].probes, now.servers[0].probes, held.sidecar.in_flight, now.sidecar.in_flight), (0, 7, 0, 1));
    assert!(Arc::ptr_eq(&held.servers[1], &now.servers[1]));
}

/// A configuration of these servers, each a name, a kind and an interval.
fn configuration(servers: &[(&str, &str, &str)]) -> String {
    let entry = |(name, kind, interval): &(&str, &str, &str)| {
        format!("  {name}: {{command: '{PROGRAM}', args: [sample-server, {kind}], interval: {interval}, shutdown: {{eof: 500ms, term: 500ms}}}}\n")
    };
    format!("servers:\n{}", servers.iter().map(entry).collect::<String>())
}

#[test]
fn the_program_reads_its_configuration_again_when_it_is_told_to() {
    let (run, dir) = (Run::new(), Dir::new("program"));
    let file = dir.path("stdiowatch.yaml");
    let write = |servers: &[(&str, &str, &str)]| std::fs::write(&file, configuration(servers)).unwrap();
    write(&[("kept", "sound", "1s"), ("changed", "sound", "1h"), ("removed", "mute", "1h")]);
    let mut serving = Serving::start(&run, &["--enable-actions", "--config", file.to_str().unwrap()]);
    serving.becomes("/health/kept", 200);
    serving.becomes("/health/changed", 200);
    let reload = || serving.ask("POST", "/-/reload");
    assert_eq!(reload(), (200, "the configuration was read again: 0 added, 0 removed, 0 changed, 3 unchanged\n".to_owned()));
    let loaded = serving.metric("stdiowatch_config_last_reload_success_timestamp_seconds").unwrap();

    std::fs::write(&file, configuration(&[("kept", "sound", "1s")]).replace("interval", "intervall")).unwrap();
    let (status, why) = reload();
    assert!(status == 400 && why.starts_with("refused; what was read before stays in use\n") && why.contains("intervall"), "{status} {why}");
    assert_eq!(serving.metric("stdiowatch_config_last_reload_successful"), Some(0.0));
    assert_eq!(serving.metric("stdiowatch_config_last_reload_success_timestamp_seconds"), Some(loaded));
    assert_eq!(serving.get("/health/removed").0, 503);

    let before = serving.metric("stdiowatch_probes_total{server=\"kept\"}").unwrap();
    write(&[("kept", "sound", "1s"), ("changed", "banner", "1h"), ("added", "sound", "1h")]);
    serving.signal("HUP");
    serving.becomes("/health/added", 200);
    serving.becomes("/health/changed", 503);
    assert_eq!(serving.get("/health/removed").0, 404);
    let (_, metrics) = serving.get("/metrics");
    assert_eq!(named(&metrics), ["kept", "changed", "added"].map(str::to_owned).into());
    assert_eq!(serving.metric("stdiowatch_probes_total{server=\"changed\"}"), Some(2.0));
    assert!(serving.metric("stdiowatch_probes_total{server=\"kept\"}").unwrap() >= before);
    assert_eq!(serving.metric("stdiowatch_config_last_reload_successful"), Some(1.0));
    assert!(serving.metric("stdiowatch_config_last_reload_success_timestamp_seconds").unwrap() > loaded);
    serving.becomes("/readyz", 200);
    serving.signal("TERM");
    assert_eq!(serving.wait().code(), Some(0));
    run.leaves_nothing(Duration::ZERO);
}

#[test]
fn the_program_follows_its_configuration_through_a_link_as_kubernetes_mounts_it() {
    let (run, dir) = (Run::new(), Dir::new("mounted"));
    // A volume: the file is a link through `..data`, which is put in place of the one before.
    let publish = |version: &str, text: &str| {
        std::fs::create_dir_all(dir.path(version)).unwrap();
        std::fs::write(dir.path(version).join("stdiowatch.yaml"), text).unwrap();
        std::os::unix::fs::symlink(version, dir.path("..new")).unwrap();
        std::fs::rename(dir.path("..new"), dir.path("..data")).unwrap();
    };
    publish("v1", &configuration(&[("one", "sound", "1h")]));
    let file = dir.path("stdiowatch.yaml");
    std::os::unix::fs::symlink("..data/stdiowatch.yaml", &file).unwrap();
    let serving = Serving::start(&run, &["--watch-config", "--config", file.to_str().unwrap()]);
    serving.becomes("/health/one", 200);
    publish("v2", &configuration(&[("two", "sound", "1h")]));
    serving.becomes("/health/two", 200);
    assert_eq!(serving.get("/health/one").0, 404);
    publish("v3", "servers: [");
    serving.metric_becomes("stdiowatch_config_last_reload_successful", 0.0);
    assert_eq!(serving.get("/health/two").0, 200);
}

/// A client's file and the files that its entries point at; those that it names only later, too.
#[test]
fn the_program_follows_what_a_clients_file_points_at() {
    let (run, dir) = (Run::new(), Dir::new("pointed"));
    let file = dir.path("mcp.json");
    let write = |env_file: &str| {
        let entry = |more: &str| format!(r#"{{"command": {PROGRAM:?}, "args": ["sample-server", "sound"]{more}}}"#);
        let with = entry(&format!(r#", "envFile": {:?}"#, dir.path(env_file)));
        std::fs::write(&file, format!(r#"{{"mcpServers": {{"plain": {}, "with": {with}}}}}"#, entry(""))).unwrap();
    };
    write("first.env");
    let serving = Serving::start(&run, &["--watch-config", "--config", file.to_str().unwrap()]);
    serving.becomes("/health/plain", 200);
    assert_eq!((serving.get("/health/with").0, serving.metric("stdiowatch_config_entries_broken")), (404, Some(1.0)), "it points at nothing");
    std::fs::write(dir.path("first.env"), "A=1\n").unwrap();
    serving.becomes("/health/with", 200);
    write("second.env");
    serving.becomes("/health/with", 404);
    std::fs::write(dir.path("second.env"), "A=1\n").unwrap();
    serving.becomes("/health/with", 200);
}

/// It is refused as long as a file is missing that it names only now.
#[test]
fn the_program_takes_a_configuration_once_all_that_it_names_is_there() {
    let (run, dir) = (Run::new(), Dir::new("late"));
    let file = dir.path("stdiowatch.yaml");
    let write = |interval: &str| std::fs::write(&file, configuration(&[("mine", "sound", interval)])).unwrap();
    write("1h");
    let serving = Serving::start(&run, &["--watch-config", "--config", file.to_str().unwrap()]);
    serving.becomes("/health/mine", 200);
    write("2h, env_from_file: {TOKEN: token.txt}");
    serving.metric_becomes("stdiowatch_config_last_reload_successful", 0.0);
    std::fs::write(dir.path("token.txt"), "x").unwrap();
    serving.metric_becomes("stdiowatch_config_last_reload_successful", 1.0);
    assert_eq!(serving.metric("stdiowatch_interval_seconds{server=\"mine\"}"), Some(7200.0));
}

#[test]
fn the_last_server_can_be_switched_off() {
    let (run, dir) = (Run::new(), Dir::new("off"));
    let file = dir.path("mcp.json");
    let write = |more: &str| {
        let entry = format!(r#"{{"mcpServers": {{"only": {{"command": {PROGRAM:?}, "args": ["sample-server", "sound"]{more}}}}}}}"#);
        std::fs::write(&file, entry).unwrap();
    };
    write("");
    let serving = Serving::start(&run, &["--watch-config", "--config", file.to_str().unwrap()]);
    serving.becomes("/health/only", 200);
    write(r#", "disabled": true"#);
    serving.becomes("/health/only", 404);
    assert_eq!((serving.get("/readyz").0, serving.get("/health").0), (200, 503));
    assert_eq!(serving.metric("stdiowatch_config_last_reload_successful"), Some(1.0));
    // An entry that is broken is no reason to stop watching.
    write("");
    serving.becomes("/health/only", 200);
    write(r#", "env": 7"#);
    let refused = || serving.metric("stdiowatch_config_last_reload_successful") == Some(0.0);
    assert!(common::poll(LONG, || refused().then_some(())).is_some());
    assert_ne!(serving.get("/health/only").0, 404);
}
