//! When each server is probed.
//!
//! Each server has a task of its own, so its probes never overlap. They fall on a grid: a phase,
//! given by a hash of the name, plus a multiple of the interval. Restarted fleets do not fire in
//! step, and the probes of one process are spread evenly. A point of the grid that passes while a
//! probe is still running is skipped, and counted.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{info, warn};

use super::hub::Hub;
use super::launchpad::{Job, Launchpad, Outcome};
use super::watched::{Known, Watched};
use crate::judge::{DriftStatus, Report, Severity, Verdict};
use crate::ledger::{Fact, ServerState, Skip};
use crate::outside::clock;
use crate::words::{Digest, Moment, printable};

/// How often the scheduler shows that it lives.
const TICK: Duration = Duration::from_secs(1);
/// The first probes of many servers begin this far apart.
const FIRST_SPREAD: Duration = Duration::from_millis(25);
/// A server that keeps failing is left alone for at most this many intervals, or [`BACKOFF_CAP`].
const BACKOFF_FACTOR: u32 = 8;
const BACKOFF_CAP: Duration = Duration::from_secs(600);
/// Failures in a row before the back-off begins.
const PATIENCE: u32 = 3;
/// So many probes of a server look at its memory first, and then one in so many.
const MEASURED_FIRST: u64 = 3;
const MEASURED_EVERY: u64 = 10;
/// By how much a probe is put off at random, as a part of the interval: a hundredth.
const JITTER: u32 = 100;

/// Probes `servers` until `stop` becomes true, and returns when the last probe is over.
pub async fn watch(servers: Vec<Watched>, hub: Arc<Hub>, launchpad: Arc<Launchpad>, stop: watch::Receiver<bool>) {
    let mut tasks = JoinSet::new();
    let count = servers.len();
    for (n, server) in servers.into_iter().enumerate() {
        let first = FIRST_SPREAD * u32::try_from(n).unwrap_or(u32::MAX);
        let watcher = Watcher { server, hub: Arc::clone(&hub), launchpad: Arc::clone(&launchpad), stop: stop.clone() };
        tasks.spawn_local(watcher.run(first));
    }
    tasks.spawn_local(tick(hub, launchpad, stop, count));
    while tasks.join_next().await.is_some() {}
}

/// Shows that this loop and the launching thread's go round.
async fn tick(hub: Arc<Hub>, launchpad: Arc<Launchpad>, mut stop: watch::Receiver<bool>, servers: usize) {
    loop {
        if launchpad.is_alive().await {
            hub.update(|snapshot| {
                let sidecar = &mut snapshot.sidecar;
                sidecar.last_tick = clock::up();
                if let Some(kept) = hub.kept() {
                    (sidecar.kept, sidecar.keep_failures) = (kept.is_whole(), kept.failures());
                }
                sidecar.first_round_done |= servers > 0 && snapshot.servers.iter().all(|s| s.last.is_some());
            });
        }
        tokio::select! {
            () = sleep(TICK) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Probes one server, again and again.
struct Watcher {
    server: Watched,
    hub: Arc<Hub>,
    launchpad: Arc<Launchpad>,
    stop: watch::Receiver<bool>,
}

impl Watcher {
    async fn run(mut self, first: Duration) {
        let mut due = clock::up() + first;
        let mut point = first_point(&self.server, due);
        loop {
            if self.stopped_before(due).await {
                return;
            }
            if self.is_held() {
                let Some(next) = self.pass_over(point).await else { return };
                (due, point) = next;
                continue;
            }
            let Some(next) = self.probe(due, point).await else { return };
            point = next;
            due = point + jitter(&self.server, point);
        }
    }

    fn is_held(&self) -> bool {
        self.hub.snapshot().server(self.server.name.as_str()).is_some_and(|state| state.held.is_some())
    }

    /// Passes over the points of the grid while probing is held; then the next probe is due at once.
    /// Returns when, and for which point; `None` if the sidecar is asked to stop.
    async fn pass_over(&mut self, mut point: Duration) -> Option<(Duration, Duration)> {
        let interval = self.server.interval;
        loop {
            let (next, more) = next_point(point, clock::up(), interval);
            self.hub.update_server(&self.server.name, |state| (0..=more).for_each(|_| state.skip(Skip::PeerHarmed)));
            while clock::up() < next {
                let hub = Arc::clone(&self.hub);
                tokio::select! {
                    stopped = self.stopped_before(next) => if stopped { return None },
                    () = hub.resumed() => {}
                }
                if !self.is_held() {
                    info!(server = self.server.name.as_str(), "probing is resumed");
                    return Some((clock::up(), next.saturating_sub(interval)));
                }
            }
            point = next;
        }
    }

    /// Waits until `due`; true if the sidecar is asked to stop before that.
    async fn stopped_before(&mut self, due: Duration) -> bool {
        loop {
            let left = due.saturating_sub(clock::up());
            if left.is_zero() {
                return *self.stop.borrow();
            }
            // In short steps: a timer's clock stands still while the machine is suspended.
            tokio::select! {
                () = sleep(left.min(Duration::from_secs(5))) => {}
                _ = self.stop.wait_for(|stop| *stop) => return true,
            }
        }
    }

    /// Makes one probe, which is due at `due` for the point of the grid `point`, and says which is the
    /// next one; `None` if there is none.
    async fn probe(&mut self, due: Duration, point: Duration) -> Option<Duration> {
        let job = self.job()?;
        self.hub.update(|snapshot| {
            snapshot.sidecar.in_flight += 1;
            snapshot.sidecar.lag = clock::up().saturating_sub(due);
        });
        let outcome = self.launchpad.probe(job).await;
        self.hub.update(|snapshot| snapshot.sidecar.in_flight -= 1);
        let outcome = outcome?;
        if *self.stop.borrow() {
            return None;
        }
        Some(self.record(outcome, point))
    }

    fn job(&self) -> Option<Job> {
        let snapshot = self.hub.snapshot();
        let state = snapshot.server(self.server.name.as_str())?;
        // Listing twice finds what is volatile: once at the start, and when something moved.
        let moved = state.schema.changed.is_some() && state.schema.changed == state.last.as_ref().map(|(at, _)| *at);
        let list_twice = state.probes == 0 || moved;
        let known = Known { era: state.era, launched: state.last_success.is_some(), patience: state.patience() };
        let mut plan = self.server.plan(known, list_twice);
        plan.measure = list_twice || is_to_be_measured(state);
        Some(Job {
            name: self.server.name.clone(),
            spec: Arc::clone(&self.server.spec),
            plan,
            rules: Arc::clone(&self.server.rules),
            accepted: self.server.locked().or_else(|| state.schema.accepted.clone()),
            record: false,
            coexists: state.coexists,
        })
    }

    /// Takes the outcome into what is known; returns the next point of the grid.
    fn record(&self, outcome: Outcome, point: Duration) -> Duration {
        let now = clock::now();
        let interval = self.server.interval;
        let report = Arc::new(outcome.report);
        self.hub
            .update_server(&self.server.name, |state| {
                let failures = match report.verdict {
                    Verdict::Fail => state.consecutive_failures + 1,
                    Verdict::Pass | Verdict::Warn => 0,
                    Verdict::Unknown => state.consecutive_failures + state.cold_starts,
                };
                let backoff = backoff(interval, failures);
                let (next, skipped) = next_point(point + backoff, now.up, interval);
                (0..skipped).for_each(|_| state.skip(Skip::Overlap));
                let next_in = next.saturating_sub(now.up);
                let first = state.probes == 0;
                let code_before = state.history.entries().last().and_then(|e| e.code);
                let change = state.apply(Fact { report: Arc::clone(&report), at: now, listed: outcome.listed, next_in, backoff });
                let code = state.history.entries().last().and_then(|e| e.code);
                match change {
                    Some(before) => tell(state, before.map_or("not probed", Verdict::as_str), &report, now),
                    // The same verdict for another reason is news too.
                    None if code != code_before && !report.verdict.is_up() => tell(state, report.verdict.as_str(), &report, now),
                    None => {}
                }
                if state.schema.changed == Some(now) || (first && report.drift.status == DriftStatus::Differs) {
                    tell_drift(state, &report);
                }
                if let Some(held) = &state.held {
                    warn!(
                        server = state.name.as_str(),
                        why = held.why,
                        "probing is held, since it may be what ended a live copy; \
                         to resume it: restart, or POST /-/resume/{} (serve --enable-actions)",
                        state.name
                    );
                }
                next
            })
            .unwrap_or(now.up + interval)
    }
}

/// Whether the next probe looks at the server's memory. The first ones do, so that soon a typical figure is
/// known, and those of a server that is not well.
fn is_to_be_measured(state: &ServerState) -> bool {
    state.probes < MEASURED_FIRST || state.probes.is_multiple_of(MEASURED_EVERY) || state.report().is_none_or(|report| !report.verdict.is_up())
}

/// The last point of the server's grid that leaves half an interval between the first probe, at
/// `first`, and the point after it. Where the grid lies depends on the server's name alone.
fn first_point(server: &Watched, first: Duration) -> Duration {
    let interval = server.interval.as_nanos().max(1);
    let hash = Digest::of(server.name.as_str().as_bytes()).first_48_bits();
    let phase = (u128::from(hash) * interval) >> 48;
    let earliest = first.as_nanos() + interval / 2;
    let after = phase + (earliest.saturating_sub(phase)).div_ceil(interval) * interval;
    Duration::from_nanos(u64::try_from(after).unwrap_or(u64::MAX)).saturating_sub(server.interval)
}

/// The next point of the grid after `now`, and how many were passed over.
fn next_point(point: Duration, now: Duration, interval: Duration) -> (Duration, u32) {
    let mut next = point + interval;
    let mut skipped = 0;
    if next <= now {
        let behind = (now - next).as_nanos() / interval.as_nanos().max(1) + 1;
        skipped = u32::try_from(behind).unwrap_or(u32::MAX);
        next += interval.saturating_mul(skipped);
    }
    (next, skipped)
}

/// By how much the next probe of a server with so many failures in a row is put off.
fn backoff(interval: Duration, failures: u32) -> Duration {
    if failures <= PATIENCE {
        return Duration::ZERO;
    }
    let factor = 2u32.saturating_pow(failures - PATIENCE).min(BACKOFF_FACTOR);
    let longest = BACKOFF_CAP.max(interval);
    (interval * factor).min(longest).saturating_sub(interval)
}

/// A small delay that differs from probe to probe and from server to server.
fn jitter(server: &Watched, point: Duration) -> Duration {
    let hash = Digest::of_pieces([server.name.as_str().as_bytes(), &point.as_nanos().to_be_bytes()]);
    let share = u32::try_from(hash.first_48_bits() % 1000).unwrap_or(0);
    server.interval / JITTER * share / 1000
}

/// One line in the log for each change of what a server counts as, or of why it is not up.
fn tell(state: &ServerState, was: &str, report: &Report, now: Moment) {
    let verdict = state.health(now).verdict().as_str();
    let server = state.name.as_str();
    let worst = report.findings.iter().filter(|f| f.severity > Severity::Info).max_by_key(|f| f.severity);
    match worst {
        None => info!(server, verdict, "{server}: {was} → {verdict}"),
        Some(f) if report.verdict.is_up() => {
            info!(server, verdict, code = f.code, "{server}: {was} → {verdict}: {}", f.message);
        }
        Some(f) => {
            let evidence = printable(&f.evidence, 400);
            warn!(server, verdict, code = f.code, evidence, "{server}: {was} → {verdict}: {}", f.message);
        }
    }
}

/// One line in the log for each change of what a server lists.
fn tell_drift(state: &ServerState, report: &Report) {
    let drift = &report.drift;
    let sha256 = state.schema.listed.as_ref().map(|listed| listed.digest.to_string());
    let classes: Vec<&str> = drift.classes.keys().map(|class| class.as_str()).collect();
    let bounded = |names: Vec<&str>| printable(&names.join(", "), 400);
    let mut changed: Vec<&str> = drift.changed.iter().map(|c| c.tool.as_str()).collect();
    changed.dedup();
    warn!(
        server = state.name.as_str(),
        sha256,
        status = drift.status.as_str(),
        classes = classes.join(", "),
        added = bounded(drift.added.iter().map(String::as_str).collect()),
        removed = bounded(drift.removed.iter().map(String::as_str).collect()),
        changed = bounded(changed),
        upgrade = drift.upgrade,
        "{}: what it lists has changed",
        state.name
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn probes_fall_on_a_grid_and_late_points_are_skipped() {
        assert_eq!(next_point(s(100), s(101), s(60)), (s(160), 0));
        assert_eq!(next_point(s(100), s(160), s(60)), (s(220), 1));
        assert_eq!(next_point(s(100), s(345), s(60)), (s(400), 4));
        // A machine that was suspended for a day goes on at once, on the same grid.
        assert_eq!(next_point(s(100), s(86_500), s(60)).0, s(86_560));
    }

    #[test]
    fn the_grid_lies_where_the_name_says_and_leaves_room_after_the_first_probe() {
        for (n, first) in [100, 130, 155, 170].into_iter().enumerate() {
            let server =
                Watched::new(crate::words::ServerName::of_command(&format!("server-{n}")), crate::outside::process::LaunchSpec::default(), s(60));
            let second = first_point(&server, s(first)) + s(60);
            assert!(second >= s(first + 30) && second < s(first + 90), "{second:?}");
            assert_eq!(first_point(&server, s(first)), first_point(&server, s(first + 600)) - s(600));
        }
    }

    #[test]
    fn a_failing_server_is_left_alone_for_longer_and_not_for_ever() {
        let waits: Vec<u64> = (0..9).map(|n| backoff(s(60), n).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 60, 180, 420, 420, 420]);
        assert_eq!(backoff(s(3600), 9), s(0), "an interval longer than the cap is long enough");
        assert_eq!(backoff(s(120), 9), s(480));
    }
}
