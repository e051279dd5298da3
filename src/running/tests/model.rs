//! What should be known of each server, told anew from its probes, and what may never be.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::world::{Known, Went};
use crate::judge::Verdict;
use crate::ledger::{ServerState, Skip, Snapshot};
use crate::running::watched::Watched;
use crate::words::{Moment, ServerName};

/// An interval that is left alone for as long as it gets.
const LONGEST_REST: Duration = Duration::from_secs(600);
/// A server whose start was never seen gets up to eight times its time.
const PATIENCE: u32 = 8;
/// Until a probe that was due is launched, where nobody is in its way.
const LAG: Duration = Duration::from_secs(3);
/// For so long it is told how late a probe was launched; and what kept it back may have lasted.
const LAG_IS_TOLD: Duration = Duration::from_secs(100);

/// One server as it should be.
struct Server {
    watched: Arc<Watched>,
    verdicts: u64,
    failed: u64,
    silent: u64,
    row: (u32, u32),
    known: Option<Verdict>,
    standing: Option<Verdict>,
    /// On the clock that no suspension and no stall moves: since when a probe has been due at all.
    waits_since: Duration,
    /// On the clock of verdicts.
    last: Option<Duration>,
    /// The longest interval since the last verdict, and the longest that a probe could take.
    interval: Duration,
    longest: Duration,
    /// Other terms hold than those of the last verdict.
    renewed: bool,
    state: Option<Arc<ServerState>>,
}

impl Server {
    fn stand(&mut self, verdict: Verdict) {
        let (failures, successes) = (self.watched.thresholds.failure, self.watched.thresholds.success);
        let counts = match verdict {
            Verdict::Unknown => false,
            Verdict::Fail => self.known.is_none_or(|known| !known.is_up()) || self.row.0 >= failures,
            Verdict::Pass | Verdict::Warn => self.known.is_none_or(Verdict::is_up) || self.row.1 >= successes,
        };
        if counts {
            self.known = Some(verdict);
        }
        self.standing = if verdict == Verdict::Unknown { Some(verdict) } else { self.known };
    }
}

/// All of them.
pub(super) struct Model {
    servers: BTreeMap<ServerName, Server>,
    began: Instant,
    /// So long stood everything still that the clocks went on.
    pub(super) stalled: Duration,
    pub(super) stalled_last: Instant,
    /// There were more who want to be probed than places, now or when somebody looked last.
    crowded_last: Option<Instant>,
    /// Probes that may run at the same time, and launches.
    places: u32,
    launches: u32,
    pub(super) verdicts: BTreeMap<&'static str, u64>,
    pub(super) held: u64,
}

impl Model {
    pub(super) fn new(places: u32, launches: u32) -> Model {
        let now = Instant::now();
        Model {
            servers: BTreeMap::new(),
            began: now,
            stalled: Duration::ZERO,
            stalled_last: now,
            crowded_last: None,
            places,
            launches,
            verdicts: BTreeMap::new(),
            held: 0,
        }
    }

    fn steady(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.stalled)
    }

    /// These are watched from now on.
    pub(super) fn replaced(&mut self, servers: &[Watched]) {
        let (wanted, now): (BTreeMap<_, _>, _) = (servers.iter().map(|s| (s.name.clone(), Arc::new(s.clone()))).collect(), self.steady());
        self.servers.retain(|name, _| wanted.contains_key(name));
        for (name, watched) in wanted {
            let interval = watched.interval;
            let server = self.servers.entry(name).or_insert_with(|| Server {
                watched: Arc::clone(&watched),
                verdicts: 0,
                failed: 0,
                silent: 0,
                row: (0, 0),
                known: None,
                standing: None,
                waits_since: now,
                last: None,
                interval,
                longest: longest_probe(&watched, 1),
                renewed: false,
                state: None,
            });
            if server.watched != watched {
                server.longest = server.longest.max(longest_probe(&watched, 1));
                server.watched = watched;
                server.interval = server.interval.max(interval);
                server.renewed = true;
                server.waits_since = now;
                if let Some(verdict) = server.state.as_ref().and_then(|s| s.report()).map(|report| report.verdict) {
                    server.stand(verdict);
                }
            }
        }
    }

    /// A person has resumed it.
    pub(super) fn resumed(&mut self, name: &ServerName) {
        let now = self.steady();
        if let Some(server) = self.servers.get_mut(name) {
            server.waits_since = now;
        }
    }

    pub(super) fn is_watched(&self, name: &ServerName) -> bool {
        self.servers.contains_key(name)
    }

    /// Takes in a probe that has ended since the last look.
    fn take(&mut self, state: &Arc<ServerState>, went: Option<Went>, wrong: &mut Vec<String>) {
        let name = &state.name;
        let now = self.steady();
        let Some(server) = self.servers.get_mut(name) else { return };
        let Some((at, report)) = &state.last else { return };
        if state.probes == server.verdicts {
            return;
        }
        let verdict = report.verdict;
        *self.verdicts.entry(verdict.as_str()).or_default() += 1;
        server.last = Some(at.up);
        (server.interval, server.longest, server.renewed) = (server.watched.interval, longest_probe(&server.watched, 1), false);
        server.waits_since = now;
        server.verdicts += 1;
        match verdict {
            Verdict::Pass | Verdict::Warn => server.row = (0, server.row.1 + 1),
            Verdict::Fail => (server.row, server.failed) = ((server.row.0 + 1, 0), server.failed + 1),
            Verdict::Unknown => server.silent += 1,
        }
        server.stand(verdict);
        let Some(went) = went else {
            wrong.push(format!("{name} has a report without a probe"));
            return;
        };
        self.held += u64::from(went.harmed);
        // That we stood still excuses who did not answer, and is nothing to who did.
        let came_between = went.harmed || went.beside_peer || went.cancelled || went.overslept && went.mode.may_fail();
        let is_right = went.mode.may_be(verdict) || verdict == Verdict::Unknown && came_between || verdict == Verdict::Fail && went.mode.may_fail();
        // What came between is never blamed on the server; what it did itself before that may be.
        if !is_right {
            wrong.push(format!("{name} was {went:?}, and its verdict is {}: {:?}", verdict.as_str(), report.findings));
        }
    }

    /// Everything that may never be, at `now`.
    pub(super) fn hold(&mut self, snapshot: &Snapshot, known: &Known, now: Moment) -> Vec<String> {
        let mut wrong = known.wrong.clone();
        for state in snapshot.servers.iter() {
            if state.held.is_some() && !known.harmed.contains(&state.name) {
                wrong.push(format!("{} is held for nothing", state.name));
            }
            self.take(state, known.went.get(&state.name).copied(), &mut wrong);
        }
        let names: Vec<&ServerName> = snapshot.servers.iter().map(|s| &s.name).collect();
        if !names.iter().copied().eq(self.servers.keys()) {
            wrong.push(format!("{names:?} are shown, and {:?} watched", self.servers.keys()));
        }
        let running = known.running.len();
        if running > snapshot.sidecar.in_flight || snapshot.sidecar.in_flight > self.places as usize {
            wrong.push(format!("{running} probes run, in {} places, and {} are told of", self.places, snapshot.sidecar.in_flight));
        }
        let many = u32::try_from(self.servers.len()).unwrap_or(u32::MAX);
        // Who was taken out keeps the place until the probe has ended.
        let leaving = known.running.keys().filter(|name| !self.servers.contains_key(*name)).count();
        if self.servers.len() + leaving > self.places as usize {
            self.crowded_last = Some(Instant::now());
        }
        let is_over = |last: Instant| last.elapsed() > LAG_IS_TOLD;
        let has_room = is_over(self.stalled_last) && self.crowded_last.is_none_or(is_over);
        let most = LAG + Duration::from_millis(250) * (many / self.launches + 1);
        if has_room && snapshot.sidecar.lag > most {
            wrong.push(format!("probes are launched {:?} late, though there is room", snapshot.sidecar.lag));
        }
        let (steady, places) = (self.steady(), self.places);
        for state in snapshot.servers.iter() {
            if let Some(server) = self.servers.get_mut(&state.name) {
                hold_one(server, state, now, steady, many.div_ceil(places), &mut wrong);
                server.state = Some(Arc::clone(state));
            }
        }
        wrong
    }
}

/// The longest that one of its probes can take, when so many have to take their turn.
fn longest_probe(watched: &Watched, turns: u32) -> Duration {
    (watched.times.total + watched.times.eof_grace + watched.times.term_grace) * PATIENCE * turns
}

fn hold_one(server: &Server, state: &Arc<ServerState>, now: Moment, steady: Duration, turns: u32, wrong: &mut Vec<String>) {
    let name = &state.name;
    let mut is = |right: bool, what: &dyn Fn() -> String| {
        if !right {
            wrong.push(format!("{name}: {}", what()));
        }
    };
    let failed: u64 = state.failures.values().sum();
    is((state.probes, failed, state.unknown) == (server.verdicts, server.failed, server.silent), &|| {
        format!("{:?} are counted, and {:?} were made", (state.probes, failed, state.unknown), (server.verdicts, server.failed, server.silent))
    });
    is(state.standing == server.standing, &|| format!("it counts as {:?}, and its reports come to {:?}", state.standing, server.standing));
    if let Some(before) = &server.state {
        is(has_grown(before, state), &|| "a counter went back".to_owned());
    }
    let health = state.health(now);
    let shown = state.held.as_ref().map_or(server.standing, |_| Some(Verdict::Unknown));
    is(health.verdict() == Verdict::Unknown || Some(health.verdict()) == shown, &|| format!("it is shown as {health:?}"));
    // As long as all is well the next probe is an interval and a half away at the most, and then may take its time.
    let overdue = server.interval * 3 + server.longest + Duration::from_secs(5);
    // Other terms begin a new wait, once.
    let overdue = if server.renewed { overdue * 2 } else { overdue };
    is(!health.is_up() || server.last.is_some_and(|last| now.up.saturating_sub(last) <= overdue), &|| {
        format!("it is shown as {health:?}, by a report from {:?} before {:?}, and may be for {overdue:?}", server.last, now.up)
    });
    let rest = server.interval.max(LONGEST_REST.min(server.interval * 8)).max(server.interval * 2);
    let most = rest * 2 + longest_probe(&server.watched, turns) + Duration::from_secs(20);
    let waits = steady.saturating_sub(server.waits_since);
    is(state.held.is_some() || waits <= most, &|| format!("nobody has probed it for {waits:?}, and {most:?} would be long"));
}

fn has_grown(before: &ServerState, now: &ServerState) -> bool {
    let skipped = |state: &ServerState| Skip::ALL.map(|why| state.skipped.get(&why).copied().unwrap_or(0));
    let (skips, skips_now) = (skipped(before), skipped(now));
    let ended = |state: &ServerState| state.ended_by.values().sum::<u64>();
    before.probes <= now.probes
        && before.failures.iter().all(|(reason, n)| now.failures.get(reason) >= Some(n))
        && before.findings.iter().all(|(code, n)| now.findings.get(code) >= Some(n))
        && skips[0] <= skips_now[0]
        && skips[1] <= skips_now[1]
        && ended(before) <= ended(now)
        && before.stdout_bytes <= now.stdout_bytes
        && before.schema.changes.iter().zip(now.schema.changes).all(|(before, now)| *before <= now)
}
