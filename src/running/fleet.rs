//! All servers that are watched. The set may change while it is watched: those that stay the same do
//! not notice.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::desk::{Desk, End, Step};
use super::holds::Holds;
use super::hub::Hub;
use super::lag::Lag;
use super::launchpad::Launchpad;
use super::telling::{News, tell_held};
use super::watched::Watched;
use super::watcher::{Orders, Watcher};
use crate::judge::Accepted;
use crate::ledger::{Held, Record, ServerState, Snapshot};
use crate::outside::clock;
use crate::probe::Recording;
use crate::words::{Moment, ServerName};

/// How often the fleet shows that it lives.
const TICK: Duration = Duration::from_secs(1);
/// The first probes of many servers begin this far apart.
const FIRST_SPREAD: Duration = Duration::from_millis(25);
/// A probe that was asked for is not launched sooner after the last one than this, or the interval.
const FLOOR: Duration = Duration::from_secs(5);
/// Probes in flight, however many descriptors there are.
const MOST_PLACES: usize = 256;
/// Clients that wait for probes, however many descriptors there are.
const MOST_SEATS: usize = 128;
/// Descriptors that one probe needs: three streams, a pidfd, a socket for browsers, and some for a moment.
const DESCRIPTORS: usize = 8;
/// Descriptors for everything else but HTTP, which takes half of them up to 512.
const OTHERS: usize = 64;

/// The servers that are watched.
pub struct Fleet {
    pub(super) hub: Arc<Hub>,
    pub(super) launchpad: Arc<Launchpad>,
    pub(super) lag: Arc<Lag>,
    /// One for each probe in flight, given out in the order they are asked for.
    pub(super) places: Arc<Semaphore>,
    /// One for each who may wait for a probe at the same time.
    seats: Semaphore,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    by_name: BTreeMap<ServerName, Member>,
    /// Those that were taken out, and may still have a probe that is being ended.
    leaving: BTreeMap<ServerName, Weak<tokio::sync::Mutex<()>>>,
    /// What servers are held for, those too that were taken out.
    holds: Holds,
    tasks: JoinSet<()>,
    stopped: bool,
}

struct Member {
    orders: watch::Sender<Orders>,
    stop: watch::Sender<bool>,
    desk: Arc<Desk>,
    alone: Arc<tokio::sync::Mutex<()>>,
}

/// What a new set of servers changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Servers that were not watched before.
    pub added: Vec<ServerName>,
    /// Servers that are not watched any more.
    pub removed: Vec<ServerName>,
    /// Servers that are watched in another way.
    pub changed: Vec<ServerName>,
    /// How many are watched as before.
    pub kept: usize,
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (added, removed, changed) = (self.added.len(), self.removed.len(), self.changed.len());
        write!(f, "{added} added, {removed} removed, {changed} changed, {} unchanged", self.kept)
    }
}

/// What comes of asking for a probe.
#[derive(Clone, Debug)]
pub enum Asked {
    /// There is no such server.
    Nobody,
    /// A probe ended; what is known is published. With its recording, if that was asked for.
    Probed(Option<Arc<Recording>>),
    /// The last one ended so little ago that none was launched.
    Again {
        /// How long ago.
        age: Duration,
    },
    /// None is launched until a person resumes it.
    Held,
    /// None has ended in time. It goes on, and will be published.
    Late,
    /// So many wait for probes that no more can.
    Crowded,
    /// The sidecar is about to end.
    Ending,
}

impl Fleet {
    /// A fleet without a server, publishing through `hub`. What the hub knows of a server already is taken
    /// on when the server is.
    #[must_use]
    pub fn new(hub: Arc<Hub>, launchpad: Arc<Launchpad>) -> Arc<Fleet> {
        let descriptors = getrlimit(Resource::Nofile).current.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
        let places = Arc::new(Semaphore::new(places(descriptors)));
        let seats = Semaphore::new(seats(descriptors));
        Arc::new(Fleet { hub, launchpad, lag: Arc::default(), places, seats, members: Mutex::default() })
    }

    /// Watches these servers from now on, and no others. One change for whoever looks:
    ///
    /// - what is new is probed soon, many of them one after another;
    /// - what is the same goes on as if nothing had been said;
    /// - what is watched in another way keeps what was counted, and is probed soon; of one that is launched
    ///   in another way all that was learnt of its start is forgotten, and a probe that is being made is ended politely and
    ///   comes to nothing;
    /// - of what is taken out nothing is known any more; its probe is ended politely, and comes to nothing;
    /// - what is held stays so, under another name too, and when it is put back after it was taken out; unless it says that
    ///   harm is not to hold it.
    ///
    /// Of several with one name the last one counts.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn replace(self: &Arc<Fleet>, servers: Vec<Watched>) -> Changes {
        let wanted: BTreeMap<ServerName, Arc<Watched>> = servers.into_iter().map(|server| (server.name.clone(), Arc::new(server))).collect();
        let mut members = self.members.lock();
        if members.stopped {
            return Changes::default();
        }
        while members.tasks.try_join_next().is_some() {}
        let now = clock::now();
        let changes = members.changes(&wanted);
        let before = self.hub.snapshot();
        members.see_holds(&before);
        members.dismiss(&changes.removed);
        let kept: BTreeMap<_, _> = changes.added.iter().map(|name| (name.clone(), self.hub.kept_of(name))).collect();
        let spread = FIRST_SPREAD * u32::try_from(changes.changed.len()).unwrap_or(u32::MAX);
        self.hub.update(|snapshot| {
            changes.removed.iter().filter_map(|name| snapshot.server(name.as_str())).for_each(|state| self.hub.keep_last_record(state));
            members.publish(snapshot, &wanted, kept, now, spread);
        });
        let snapshot = self.hub.snapshot();
        for name in changes.added.iter().chain(&changes.changed) {
            let (Some(state), Some(server)) = (snapshot.server(name.as_str()), wanted.get(name)) else { continue };
            let is_new = before.server(name.as_str()).is_none_or(|before| before.held != state.held);
            if is_new && state.held.is_some() {
                self.hub.keep_record(state, now);
                tell_held(state, self.hub.keeps());
            }
            if state.held.is_some() || !server.is_held_by_harm() {
                members.holds.hand_over(server);
            }
        }
        let mut first = now.up;
        for name in changes.changed.iter().chain(&changes.added) {
            let Some(server) = wanted.get(name).map(Arc::clone) else { continue };
            let orders = Orders { server, first };
            first += FIRST_SPREAD;
            match members.by_name.get(name) {
                Some(member) => drop(member.orders.send_replace(orders)),
                None => self.enrol(&mut members, name, orders),
            }
        }
        changes
    }

    fn enrol(self: &Arc<Fleet>, members: &mut Members, name: &ServerName, orders: Orders) {
        let alone = members.leaving.remove(name).and_then(|alone| alone.upgrade()).unwrap_or_default();
        let (orders, ordered) = watch::channel(orders);
        let (stop, stopped) = watch::channel(false);
        let desk = Arc::new(Desk::new());
        let watcher = Watcher {
            fleet: Arc::clone(self),
            name: name.clone(),
            orders: ordered,
            stop: stopped,
            desk: Arc::clone(&desk),
            alone: Arc::clone(&alone),
            news: News::default(),
        };
        members.tasks.spawn(watcher.run());
        members.by_name.insert(name.clone(), Member { orders, stop, desk, alone });
    }

    /// A probe by orders that hold no longer has ended a live copy: who is launched as it was is held, now or when it is
    /// watched again. Nobody is, where it says that harm is not to hold it; nor when all of us ends, and perhaps the host.
    pub(super) fn harmed(&self, server: &Watched, held: &Held) {
        let mut members = self.members.lock();
        if members.stopped {
            return;
        }
        let now = clock::now();
        let mut is_handed_over = false;
        for (name, member) in &members.by_name {
            let watched = Arc::clone(&member.orders.borrow().server);
            let is_alike = watched.spec == server.spec;
            is_handed_over |= is_alike;
            if !watched.is_held_by_harm() || *name != server.name && !is_alike {
                continue;
            }
            self.hub.update_server(name, |state| {
                state.held.get_or_insert_with(|| held.clone());
                self.hub.keep_record(state, now);
            });
            if let Some(state) = self.hub.snapshot().server(name.as_str()) {
                tell_held(state, self.hub.keeps());
            }
        }
        if !is_handed_over {
            members.holds.add(server, held);
        }
    }

    /// A watcher has ended. What was kept for a server that is watched no longer is let go of.
    pub(super) fn left(&self, name: &ServerName) {
        let members = self.members.lock();
        if !members.by_name.contains_key(name) {
            self.launchpad.forget(name);
        }
    }

    /// Watches until `stop` becomes true; then ends what is running, and returns when it has ended.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                () = self.tick() => {}
            }
        }
        let mut tasks = {
            let mut members = self.members.lock();
            members.stopped = true;
            for (_, member) in std::mem::take(&mut members.by_name) {
                member.stop.send_replace(true);
            }
            std::mem::take(&mut members.tasks)
        };
        while tasks.join_next().await.is_some() {}
    }

    /// Shows that this loop and the launching thread's go round, and waits until it is to be shown again.
    async fn tick(&self) {
        if self.hub.is_had_late() {
            self.take_up();
        }
        if self.launchpad.is_alive().await {
            let lag = self.lag.largest(Instant::now());
            self.hub.update(|snapshot| {
                let sidecar = &mut snapshot.sidecar;
                (sidecar.last_tick, sidecar.lag) = (clock::up(), lag);
                if let Some(kept) = self.hub.kept() {
                    (sidecar.kept, sidecar.keep_failures) = (kept.is_whole(), kept.failures());
                }
                // Once it is, servers that are added later change nothing about it.
                sidecar.first_round_done = sidecar.first_round_done || snapshot.servers.iter().all(|s| s.is_settled());
            });
        }
        sleep(TICK).await;
    }

    /// Takes up what an earlier process has kept of the servers, in a directory that could not be had before.
    fn take_up(&self) {
        let members = self.members.lock();
        for (name, member) in &members.by_name {
            let (accepted, record) = self.hub.kept_of(name);
            let is_held_by_harm = member.orders.borrow().server.is_held_by_harm();
            self.hub.update(|snapshot| {
                let Some(state) = snapshot.server_mut(name.as_str()) else { return };
                let was_held = state.held.is_some();
                state.take_up(accepted, record);
                if !is_held_by_harm {
                    state.held = None;
                }
                if !was_held {
                    tell_held(state, self.hub.keeps());
                }
            });
        }
        self.hub.taken_up(clock::now());
    }

    /// Asks for a probe of the server `name`, and waits for its end, for as long as `within`. One that is
    /// running already will do; with `record`, only one that is recorded.
    pub async fn ask(&self, name: &str, record: bool, within: Duration) -> Asked {
        let Ok(name) = ServerName::new(name) else { return Asked::Nobody };
        let Ok(_seat) = self.seats.try_acquire() else { return Asked::Crowded };
        timeout(within, self.asked(&name, record)).await.unwrap_or(Asked::Late)
    }

    async fn asked(&self, name: &ServerName, record: bool) -> Asked {
        loop {
            let (step, mut ends, server) = {
                let members = self.members.lock();
                let Some(member) = members.by_name.get(name) else { return if members.stopped { Asked::Ending } else { Asked::Nobody } };
                if self.hub.snapshot().server(name.as_str()).is_some_and(|state| state.held.is_some()) {
                    return Asked::Held;
                }
                let ends = member.desk.ends();
                let server = Arc::clone(&member.orders.borrow().server);
                (member.desk.ask(record, FLOOR.min(server.interval), clock::up()), ends, server)
            };
            match step {
                Step::Again(age) => return Asked::Again { age },
                Step::Rest(left) => sleep(left).await,
                // It was taken out; or put back meanwhile.
                Step::Wait if ends.changed().await.is_err() => {}
                Step::Wait => {
                    let end = ends.borrow_and_update().clone();
                    match end {
                        End::TurnedAway => return Asked::Held,
                        End::Probed { server: probed, recording } => {
                            if (recording.is_some() || !record) && self.members.lock().will_do(&probed, &server) {
                                return Asked::Probed(recording);
                            }
                        }
                        End::NotYet => {}
                    }
                }
            }
        }
    }
}

impl Members {
    /// Whether a probe of this will do for who asked when `asked` was watched: it is that, or what is watched now.
    fn will_do(&self, probed: &Arc<Watched>, asked: &Arc<Watched>) -> bool {
        probed == asked || self.by_name.get(&probed.name).is_some_and(|member| member.orders.borrow().server == *probed)
    }

    fn changes(&self, wanted: &BTreeMap<ServerName, Arc<Watched>>) -> Changes {
        let mut changes = Changes::default();
        for (name, server) in wanted {
            match self.by_name.get(name) {
                None => changes.added.push(name.clone()),
                Some(member) if member.orders.borrow().server == *server => changes.kept += 1,
                Some(_) => changes.changed.push(name.clone()),
            }
        }
        changes.removed = self.by_name.keys().filter(|name| !wanted.contains_key(name)).cloned().collect();
        changes
    }

    /// Who is held by now, and who is not any more.
    fn see_holds(&mut self, snapshot: &Snapshot) {
        for (name, member) in &self.by_name {
            if let Some(state) = snapshot.server(name.as_str()) {
                self.holds.see(&member.orders.borrow().server, state);
            }
        }
    }

    fn dismiss(&mut self, names: &[ServerName]) {
        self.leaving.retain(|_, alone| alone.strong_count() > 0);
        for name in names {
            if let Some(member) = self.by_name.remove(name) {
                member.stop.send_replace(true);
                self.leaving.insert(name.clone(), Arc::downgrade(&member.alone));
            }
        }
    }

    /// What is known of the wanted servers: of those that were there before, what was known; of the others
    /// what was `kept`. Who is watched in another way is probed within `spread` after `now`.
    fn publish(
        &self,
        snapshot: &mut Snapshot,
        wanted: &BTreeMap<ServerName, Arc<Watched>>,
        mut kept: BTreeMap<ServerName, (Option<Accepted>, Option<Record>)>,
        now: Moment,
        spread: Duration,
    ) {
        let states = wanted.iter().map(|(name, server)| {
            let Some(known) = snapshot.server(name.as_str()) else {
                let mut state = ServerState::new(name.clone(), server.terms());
                let (accepted, record) = kept.remove(name).unwrap_or_default();
                state.schema.accepted = accepted;
                if let Some(record) = record {
                    state.restore(record);
                }
                state.held = state.held.take().or_else(|| self.holds.of_added(server));
                if !server.is_held_by_harm() {
                    state.held = None;
                }
                return Arc::new(state);
            };
            let mut state = Arc::clone(known);
            let before = self.by_name.get(name).map(|member| Arc::clone(&member.orders.borrow().server));
            if before.as_ref() != Some(server) {
                let state = Arc::make_mut(&mut state);
                state.set_terms(server.terms(), now, spread);
                if before.is_some_and(|before| server.is_launched_unlike(&before)) {
                    state.forget_launch();
                    state.held = state.held.take().or_else(|| self.holds.of_launch(server));
                }
                if !server.is_held_by_harm() {
                    state.resume(now);
                }
            }
            state
        });
        let states = states.collect();
        snapshot.set_servers(states);
    }
}

/// How many probes may be in flight with so many descriptors.
fn places(descriptors: usize) -> usize {
    let left = descriptors.saturating_sub(OTHERS + (descriptors / 2).min(512));
    (left / DESCRIPTORS).clamp(1, MOST_PLACES)
}

/// How many may wait for probes: a quarter of those who may be connected, so that they keep nobody out.
fn seats(descriptors: usize) -> usize {
    (descriptors / 8).clamp(1, MOST_SEATS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_leave_descriptors_for_everything_else() {
        assert_eq!([usize::MAX, 1 << 20, 4096, 1024, 256, 64].map(places), [256, 256, 256, 56, 8, 1]);
        assert_eq!([usize::MAX, 1024, 256, 4].map(seats), [128, 128, 32, 1]);
    }
}
