//! One server's task: waits for what is due or wanted, and has it probed. So its probes never overlap.
//!
//! A point of the server's [`Grid`] that passes while a probe is running, or waits for its turn, is
//! skipped and counted. Points that pass while the machine is suspended are nobody's and not counted.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};
use tracing::info;

use super::desk::Desk;
use super::fleet::Fleet;
use super::launchpad::{Errand, Job, Outcome};
use super::onlooker::Onlooker;
use super::pace::Grid;
use super::telling::{News, tell_held};
use super::watched::{Known, Watched};
use crate::judge::{Accepted, Report};
use crate::ledger::{Fact, Held, ServerState, Skip};
use crate::outside::clock;
use crate::words::ServerName;

/// How long is waited at once: a timer's clock stands still while the machine is suspended.
const STEP: Duration = Duration::from_secs(5);

/// So many probes of a server look at its memory first, and then one in so many.
const MEASURED_FIRST: u64 = 3;
const MEASURED_EVERY: u64 = 10;

/// What a watcher is to watch.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    /// The server.
    pub(super) server: Arc<Watched>,
    /// When to probe it for the first time, since boot.
    pub(super) first: Duration,
}

impl Orders {
    /// The same for who takes them up only now, because a probe by other orders had to end first: that is
    /// nobody's lag.
    fn first_from_now(&self) -> Duration {
        self.first.max(clock::up())
    }
}

/// Watches one server until `stop`.
pub(super) struct Watcher {
    pub(super) fleet: Arc<Fleet>,
    pub(super) name: ServerName,
    pub(super) orders: watch::Receiver<Orders>,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) desk: Arc<Desk>,
    /// Held by who watches a server of this name: one that was taken out and put back may still have a
    /// probe that is being ended.
    pub(super) alone: Arc<Mutex<()>>,
    /// What was told of it.
    pub(super) news: News,
}

/// When the next probe is due.
struct Due {
    /// Since boot.
    at: Duration,
    /// On the clock that stands still while the machine is suspended, as far as can be said: a suspension makes it earlier.
    expected: Instant,
}

impl Due {
    fn at(at: Duration) -> Due {
        Due { at, expected: Instant::now() + at.saturating_sub(clock::up()) }
    }

    /// How long there still is until then.
    fn left(&mut self) -> Duration {
        let left = self.at.saturating_sub(clock::up());
        if !left.is_zero() {
            self.expected = Instant::now() + left;
        }
        left
    }

    /// Since when it has been due. What was slept through is nobody's lag, however often it is asked.
    fn since(&self) -> Instant {
        self.expected.min(Instant::now())
    }
}

/// Why a wait is over.
enum Woken {
    /// Nobody is to watch the server any more.
    Stopped,
    /// There are other orders.
    Ordered,
    /// It was held, and is not any more.
    Resumed,
    /// Somebody asked for a probe.
    Asked,
    /// A probe is due, since then.
    Due(Instant),
}

/// What becomes of a probe that is to be made.
enum Probed {
    /// It is made.
    Well(Box<Outcome>),
    /// It was stopped before it was its turn.
    Stopped,
    /// The server is launched in another way by now, so that what came of it, if anything did, says nothing any more.
    Overtaken(Option<Box<Outcome>>),
}

/// A probe that is made.
struct Made {
    outcome: Outcome,
    server: Arc<Watched>,
    /// When it was to begin, since boot; time in suspension does not count.
    served: Duration,
    /// Nothing regular before that.
    earliest: Duration,
}

impl Watcher {
    pub(super) async fn run(mut self) {
        let alone = Arc::clone(&self.alone);
        let mut stop = self.stop.clone();
        let _alone = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            alone = alone.lock() => alone,
        };
        self.watch().await;
        self.fleet.left(&self.name);
    }

    async fn watch(&mut self) {
        let mut orders = self.orders.borrow_and_update().clone();
        let mut due = Due::at(orders.first_from_now());
        let mut is_first = true;
        loop {
            let woken = self.wait(&mut due).await;
            let since = match woken {
                Woken::Stopped => return,
                Woken::Ordered => {
                    orders = self.orders.borrow_and_update().clone();
                    (due, is_first) = (Due::at(orders.first_from_now()), true);
                    self.desk.renew();
                    continue;
                }
                Woken::Resumed => {
                    info!(server = self.name.as_str(), "probing is resumed");
                    due = Due::at(clock::up());
                    continue;
                }
                Woken::Asked if !self.desk.is_wanted() => continue,
                Woken::Asked => Instant::now(),
                Woken::Due(since) => since,
            };
            let served = clock::up().saturating_sub(since.elapsed());
            // Two clocks are read one after the other: what was due is not served before it was.
            let served = if let Woken::Due(_) = woken { served.max(due.at) } else { served };
            let grid = Grid::of(&self.name, orders.server.interval);
            if self.is_held() {
                self.desk.turn_away();
                if let Woken::Due(_) = woken {
                    due = Due::at(self.pass_over(&grid, served));
                }
                continue;
            }
            let record = self.desk.begin();
            let outcome = match self.probe(&orders.server, since, record).await {
                Probed::Well(outcome) => outcome,
                Probed::Stopped => return,
                Probed::Overtaken(outcome) => {
                    self.drop_outcome(&orders.server, outcome.as_ref().map(|outcome| &outcome.report));
                    self.desk.put_off();
                    due = Due::at(clock::up());
                    continue;
                }
            };
            let earliest = if is_first { served + orders.server.interval / 2 } else { Duration::ZERO };
            let made = Made { outcome: *outcome, server: Arc::clone(&orders.server), served, earliest };
            let Some(next) = self.record(made, &grid) else { return };
            (due, is_first) = (Due::at(next), false);
        }
    }

    fn is_held(&self) -> bool {
        self.fleet.hub.snapshot().server(self.name.as_str()).is_some_and(|state| state.held.is_some())
    }

    /// Waits until `due`, or until something else is to be done.
    async fn wait(&mut self, due: &mut Due) -> Woken {
        let held = self.is_held();
        loop {
            let left = due.left();
            if left.is_zero() {
                // What is to be watched now comes before what was due.
                return match (*self.stop.borrow(), self.orders.has_changed()) {
                    (true, _) | (_, Err(_)) => Woken::Stopped,
                    (false, Ok(true)) => Woken::Ordered,
                    (false, Ok(false)) => Woken::Due(due.since()),
                };
            }
            if held && !self.is_held() {
                return Woken::Resumed;
            }
            tokio::select! {
                biased;
                _ = self.stop.wait_for(|stop| *stop) => return Woken::Stopped,
                changed = self.orders.changed() => return if changed.is_ok() { Woken::Ordered } else { Woken::Stopped },
                () = self.desk.asked() => return Woken::Asked,
                () = self.fleet.hub.resumed(), if held => {}
                () = sleep(left.min(STEP)) => {}
            }
        }
    }

    /// Passes over the point of the grid that was due at `served`, and those that have passed since, because
    /// the server is held; returns when the next one is due.
    fn pass_over(&self, grid: &Grid, served: Duration) -> Duration {
        let now = clock::up();
        self.fleet.hub.update_server(&self.name, |state| state.skip(Skip::PeerHarmed, 1 + grid.between(served, now)));
        grid.jittered(grid.after(now))
    }

    /// Makes one probe, which was due at `due`. It is cancelled when nobody is to watch the server any more, and when it is
    /// launched in another way from then on.
    async fn probe(&mut self, server: &Watched, due: Instant, record: bool) -> Probed {
        let (mut stop, mut orders) = (self.stop.clone(), self.orders.clone());
        let overtaken = async move {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => false,
                ordered = orders.wait_for(|orders| orders.server.is_launched_unlike(server)) => ordered.is_ok(),
            }
        };
        let mut overtaken = pin!(overtaken);
        let waiting = self.fleet.lag.due(due);
        let place = tokio::select! {
            biased;
            is_overtaken = &mut overtaken => return if is_overtaken { Probed::Overtaken(None) } else { Probed::Stopped },
            place = Arc::clone(&self.fleet.places).acquire_owned() => place,
        };
        let (Ok(_place), Some(job)) = (place, self.job(server, record)) else { return Probed::Stopped };
        self.fleet.hub.update(|snapshot| snapshot.sidecar.in_flight += 1);
        let launched = Box::new(move || waiting.launched(Instant::now()));
        let (cancel, cancelled) = watch::channel(false);
        let accepted = self.accepted(server);
        let mut outcome = pin!(self.fleet.launchpad.probe_on(job, Errand { stop: cancelled, launched, accepted }));
        let (outcome, is_overtaken) = tokio::select! {
            biased;
            is_overtaken = &mut overtaken => {
                cancel.send_replace(true);
                (outcome.await, is_overtaken)
            }
            outcome = &mut outcome => (outcome, false),
        };
        if outcome.is_none() || is_overtaken {
            self.fleet.hub.update(|snapshot| snapshot.sidecar.in_flight -= 1);
        }
        match outcome.map(Box::new) {
            outcome if is_overtaken => Probed::Overtaken(outcome),
            Some(outcome) => Probed::Well(outcome),
            None => Probed::Stopped,
        }
    }

    fn job(&self, server: &Watched, record: bool) -> Option<Job> {
        let snapshot = self.fleet.hub.snapshot();
        let state = snapshot.server(self.name.as_str())?;
        // Listing twice finds what is volatile: once at the start, and when something moved.
        let moved = state.schema.changed.is_some() && state.schema.changed == state.last.as_ref().map(|(at, _)| *at);
        let list_twice = state.probes == 0 || moved;
        let known = Known { era: state.era, launched: state.launched, patience: state.patience() };
        let mut plan = server.plan(known, list_twice);
        plan.measure = list_twice || is_to_be_measured(state);
        Some(Job {
            name: self.name.clone(),
            spec: Arc::clone(&server.spec),
            plan,
            rules: Arc::clone(&server.rules),
            accepted: None,
            record,
            coexists: state.coexists,
            onlooker: Onlooker::default(),
        })
    }

    /// What the server's lists are compared with, when that is asked.
    fn accepted(&self, server: &Watched) -> Box<dyn FnOnce() -> Option<Accepted> + Send> {
        let (locked, hub, name) = (server.locked(), Arc::clone(&self.fleet.hub), self.name.clone());
        let seen = move || hub.snapshot().server(name.as_str()).and_then(|state| state.schema.accepted.clone());
        Box::new(|| locked.or_else(seen))
    }

    /// Takes the outcome into what is known; returns when the next probe is due. `None` if nobody is to
    /// watch the server any more: then its outcome is nobody's.
    fn record(&mut self, made: Made, grid: &Grid) -> Option<Duration> {
        let now = clock::now();
        let Outcome { report, listed, recording, reel } = made.outcome;
        let (report, reel) = (Arc::new(report), reel.map(Arc::new));
        let overlaps = grid.between(made.served.max(made.earliest), now.up);
        let recorded = self.fleet.hub.update(|snapshot| {
            snapshot.sidecar.in_flight -= 1;
            if *self.stop.borrow() {
                return None;
            }
            let state = snapshot.server_mut(self.name.as_str())?;
            let accepted = state.schema.accepted.clone();
            let change = state.apply(Fact { report: Arc::clone(&report), at: now, listed, reel });
            let ordered = Arc::clone(&self.orders.borrow().server);
            if ordered.is_launched_unlike(&made.server) {
                state.forget_launch();
            }
            if !ordered.is_held_by_harm() {
                state.held = None;
            }
            self.fleet.hub.keep(state, accepted.as_ref());
            self.fleet.hub.keep_record(state, now);
            let next = grid.next(now.up, state.course(), made.earliest);
            state.expect(now, next.due.saturating_sub(now.up), next.backoff);
            state.skip(Skip::Overlap, overlaps);
            Some((next.due, change))
        });
        let Some((due, change)) = recorded else {
            self.drop_outcome(&made.server, Some(&report));
            return None;
        };
        let is_watched_still = self.orders.borrow().server == made.server;
        self.desk.end(made.server, recording, is_watched_still.then_some(now.up));
        if let Some(state) = self.fleet.hub.snapshot().server(self.name.as_str()) {
            self.news.tell(state, change, &report, now);
            tell_held(state, self.fleet.hub.keeps());
        }
        Some(due)
    }

    /// Nothing of a probe counts that nobody wants any more, but that a live copy died in it.
    fn drop_outcome(&self, server: &Watched, report: Option<&Report>) {
        if let Some(held) = report.and_then(|report| Held::by(report, clock::now())) {
            self.fleet.harmed(server, &held);
        }
    }
}

/// Whether the next probe looks at the server's memory. The first ones do, so that soon a typical figure is
/// known, and those of a server that is not well.
fn is_to_be_measured(state: &ServerState) -> bool {
    state.probes < MEASURED_FIRST || state.probes.is_multiple_of(MEASURED_EVERY) || state.report().is_none_or(|report| !report.verdict.is_up())
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::outside::clock::pretended;
    use crate::words::Moment;

    #[tokio::test(start_paused = true)]
    async fn what_is_slept_through_is_no_lag_and_what_stands_still_is() {
        let seconds = Duration::from_secs;
        let _clocks = pretended::from(Moment { up: seconds(1000), unix_ms: 0 });
        let mut slept = Due::at(seconds(1100));
        assert_eq!(slept.left(), seconds(100));
        pretended::suspend(seconds(500));
        // It is asked again before it is acted on, because somebody woke the watcher for nothing.
        for _ in 0..2 {
            assert_eq!((slept.left(), slept.since().elapsed()), (Duration::ZERO, Duration::ZERO));
        }
        let mut late = Due::at(seconds(1510));
        assert_eq!(late.left(), seconds(10));
        advance(seconds(30)).await;
        assert_eq!((late.left(), late.since().elapsed()), (Duration::ZERO, seconds(20)));
        pretended::suspend(seconds(60));
        assert_eq!((late.left(), late.since().elapsed()), (Duration::ZERO, seconds(20)));
    }
}
