//! One run: a fleet, and what people, hosts and servers do to it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, advance, sleep, timeout};

use super::dice::Dice;
use super::model::Model;
use super::world::{Mode, Scripted, Shared};
use crate::outside::clock::{self, pretended};
use crate::outside::process::LaunchSpec;
use crate::running::hub::Hub;
use crate::running::watched::{Thresholds, Watched};
use crate::running::{Asked, Fleet, Launchpad};
use crate::show::exposition::Format;
use crate::show::scrape::Scrape;
use crate::words::{Moment, ServerName};

/// What the fleet is asked for is never refused for less than this.
const FLOOR: Duration = Duration::from_secs(5);
/// Longer than any run.
const FOR_EVER: Duration = Duration::from_secs(1 << 20);
const MS_A_DAY: i64 = 86_400_000;

/// What happened in all runs.
#[derive(Debug, Default)]
pub(super) struct Told {
    happened: BTreeMap<&'static str, u64>,
}

impl Told {
    pub(super) fn add(&mut self, other: Told) {
        other.happened.into_iter().for_each(|(what, n)| *self.happened.entry(what).or_default() += n);
    }

    /// Whether everything has happened that can.
    pub(super) fn is_of_everything(&self) -> bool {
        let all = [
            "pass",
            "warn",
            "fail",
            "unknown",
            "reload",
            "asked",
            "probed",
            "again",
            "held",
            "late",
            "nobody",
            "ending",
            "suspended",
            "stalled",
            "clock set",
            "resumed",
            "harmed",
            "cancelled",
            "scraped",
        ];
        all.iter().all(|what| self.happened.contains_key(what))
    }
}

/// Runs what `seed` says; what was wrong, if anything was.
pub(super) fn run(seed: u64) -> Result<Told, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let mut dice = Dice::new(seed);
        let at_first = Moment { up: dice.ms(1..1_000_000_000), unix_ms: 1_700_000_000_000 };
        let _clocks = pretended::from(at_first);
        Sim::new(dice).live().await
    })
}

struct Sim {
    dice: Dice,
    hub: Arc<Hub>,
    fleet: Arc<Fleet>,
    stop: watch::Sender<bool>,
    known: Shared,
    model: Rc<RefCell<Model>>,
    permits: Arc<Semaphore>,
    places: usize,
    launches: usize,
    servers: BTreeMap<ServerName, Watched>,
    told: Rc<RefCell<Told>>,
    wrong: Rc<RefCell<Vec<String>>>,
    /// Counts whenever a server comes or goes, or is held or resumed.
    changes: Rc<Cell<u64>>,
    unanswered: Rc<Cell<u32>>,
    stopping: Rc<Cell<bool>>,
}

impl Sim {
    fn new(mut dice: Dice) -> Sim {
        let hub = Arc::new(Hub::new(Vec::new()));
        let known: Shared = Shared::default();
        let (stop, stopped) = watch::channel(false);
        let (places, launches) = (dice.one_of(&[1, 2, 4, 64, 64, 64]), dice.one_of(&[1, 2, 8]));
        let of = Arc::clone(&hub);
        let is_held = Box::new(move |name: &ServerName| of.snapshot().server(name.as_str()).is_some_and(|state| state.held.is_some()));
        let ground = Scripted::new(Rc::clone(&known), dice.split(), is_held);
        let (launchpad, serve, permits) = Launchpad::on(ground, stopped, launches);
        spawn_local(serve);
        let mut fleet = Fleet::new(Arc::clone(&hub), Arc::new(launchpad));
        Arc::get_mut(&mut fleet).expect("nobody has it yet").places = Arc::new(Semaphore::new(places));
        let number = |n: usize| u32::try_from(n).expect("small");
        let model = Model::new(number(places), number(launches));
        known.borrow_mut().peers = dice.one_of(&[(0, 0), (0, 0), (200, 50), (900, 300)]);
        Sim {
            dice,
            hub,
            fleet,
            stop,
            known,
            model: Rc::new(RefCell::new(model)),
            permits,
            places,
            launches,
            servers: BTreeMap::new(),
            told: Rc::default(),
            wrong: Rc::default(),
            changes: Rc::default(),
            unanswered: Rc::default(),
            stopping: Rc::default(),
        }
    }

    async fn live(mut self) -> Result<Told, String> {
        let fleet = Arc::clone(&self.fleet);
        let stopped = self.stop.subscribe();
        let running = spawn_local(async move { fleet.run(stopped).await });
        let looking = self.look_on();
        self.reload();
        for _ in 0..self.dice.number(5..40) {
            sleep(self.pause()).await;
            self.happen().await;
            self.hold();
            if !self.wrong.borrow().is_empty() {
                break;
            }
        }
        looking.abort();
        self.end(running).await;
        let wrong = self.wrong.borrow().join("\n  ");
        let mut told = Told::default();
        told.add(std::mem::take(&mut *self.told.borrow_mut()));
        told.happened.extend(self.model.borrow().verdicts.clone());
        told.happened.extend(Some(("harmed", self.model.borrow().held)).filter(|(_, n)| *n > 0));
        if wrong.is_empty() { Ok(told) } else { Err(wrong) }
    }

    /// Looks at everything whenever something about a server changes.
    fn look_on(&self) -> tokio::task::JoinHandle<()> {
        let (hub, known, model, wrong) = (Arc::clone(&self.hub), Rc::clone(&self.known), Rc::clone(&self.model), Rc::clone(&self.wrong));
        spawn_local(async move {
            let mut revisions = hub.revisions();
            while revisions.changed().await.is_ok() {
                wrong.borrow_mut().extend(model.borrow_mut().hold(&hub.snapshot(), &known.borrow(), clock::now()));
            }
        })
    }

    fn hold(&self) {
        let wrong = self.model.borrow_mut().hold(&self.hub.snapshot(), &self.known.borrow(), clock::now());
        self.wrong.borrow_mut().extend(wrong);
    }

    fn tell(&self, what: &'static str) {
        *self.told.borrow_mut().happened.entry(what).or_default() += 1;
    }

    fn pause(&mut self) -> Duration {
        match self.dice.number(0..4) {
            0 => self.dice.ms(0..20),
            1 => self.dice.ms(20..2_000),
            _ => self.dice.ms(1_000..90_000),
        }
    }

    /// One thing of all those that can.
    async fn happen(&mut self) {
        match self.dice.number(0..20) {
            0..3 => self.reload(),
            3..10 => self.ask(),
            10 | 11 => self.resume(),
            12 => {
                let long = self.dice.one_of(&[1_000, 60_000, 3_600_000, 100_000_000]);
                pretended::suspend(self.dice.ms(0..long + 1));
                self.tell("suspended");
            }
            13 => self.stall().await,
            14 => {
                pretended::set_wall_clock(self.dice.one_of(&[-MS_A_DAY, 365 * MS_A_DAY, -3_000, 3_000]));
                self.tell("clock set");
            }
            15 => self.scrape(),
            _ => self.turn(),
        }
    }

    /// Some servers become others.
    fn turn(&mut self) {
        for name in self.servers.keys() {
            if self.dice.once_in(2) {
                self.known.borrow_mut().modes.insert(name.clone(), Mode::random(&mut self.dice));
            }
        }
    }

    /// A new configuration: servers come, go and change.
    fn reload(&mut self) {
        for n in 0..self.dice.number(1..9) {
            let name = ServerName::new(&format!("server-{n}")).expect("a name");
            match self.dice.number(0..4) {
                0 => drop(self.servers.remove(&name)),
                1 if self.servers.contains_key(&name) => {}
                _ => {
                    let server = self.server(name.clone());
                    self.servers.insert(name.clone(), server);
                    self.known.borrow_mut().modes.entry(name).or_insert_with(|| Mode::random(&mut self.dice));
                }
            }
        }
        let servers: Vec<Watched> = self.servers.values().cloned().collect();
        // What has ended until now was published before.
        self.hold();
        let changes = self.fleet.replace(servers.clone());
        self.model.borrow_mut().replaced(&servers);
        if changes.added.len() + changes.changed.len() + changes.kept != servers.len() {
            self.wrong.borrow_mut().push(format!("{changes} is not what has changed"));
        }
        self.changes.set(self.changes.get() + 1);
        self.tell("reload");
        self.hold();
    }

    fn server(&mut self, name: ServerName) -> Watched {
        let dice = &mut self.dice;
        let spec = LaunchSpec { command: dice.one_of(&["one", "other"]).into(), args: vec![name.to_string()], ..LaunchSpec::default() };
        let interval = dice.one_of(&[1_000, 5_000, 30_000, 60_000, 60_000, 300_000]);
        let mut server = Watched::new(name, spec, Duration::from_millis(interval));
        server.thresholds =
            Thresholds { failure: u32::try_from(dice.number(1..4)).expect("small"), success: u32::try_from(dice.number(1..3)).expect("small") };
        server.times.startup = dice.one_of(&[5_000, 10_000].map(Duration::from_millis));
        server.times.request = Duration::from_secs(4);
        server.times.total = Duration::from_secs(40);
        (server.times.eof_grace, server.times.term_grace) = (Duration::from_secs(1), Duration::from_secs(1));
        if dice.once_in(4) {
            server.schema.accept_after = Some(2);
        }
        server
    }

    /// Nobody runs for a while: stdiowatch is stopped, or the host has other things to do.
    async fn stall(&mut self) {
        let long = self.dice.ms(1_000..200_000);
        {
            let mut model = self.model.borrow_mut();
            model.stalled += long;
            // Before that: others run on before we do.
            model.stalled_last = Instant::now() + long;
        }
        advance(long).await;
        self.tell("stalled");
    }

    fn resume(&mut self) {
        let names: Vec<ServerName> = self.servers.keys().cloned().collect();
        for name in names {
            let accepted = self.hub.accept(&name).is_some();
            if self.hub.resume(&name, clock::now()) == Some(true) {
                self.model.borrow_mut().resumed(&name);
                self.known.borrow_mut().harmed.remove(&name);
                self.changes.set(self.changes.get() + 1);
                self.tell("resumed");
            }
            if !accepted {
                self.wrong.borrow_mut().push(format!("{name} is watched, and not known"));
            }
        }
    }

    fn scrape(&mut self) {
        let (snapshot, now) = (self.hub.snapshot(), clock::now());
        let text = Scrape::new(Arc::clone(&snapshot), now, Vec::new(), Format::Text).text();
        let up: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.strip_prefix("stdiowatch_up{server=\"")?.split_once("\"} ")).collect();
        let should: BTreeMap<&str, &str> =
            snapshot.servers.iter().map(|s| (s.name.as_str(), if s.health(now).is_up() { "1" } else { "0" })).collect();
        let strangers = text
            .lines()
            .filter_map(|line| line.split_once("server=\"")?.1.split_once('"'))
            .find(|(name, _)| !self.servers.keys().any(|n| n.as_str() == *name));
        if up != should || strangers.is_some() {
            self.wrong.borrow_mut().push(format!("/metrics says {up:?}, and it should be {should:?}; {strangers:?} is nobody"));
        }
        self.tell("scraped");
    }

    /// Somebody asks for a probe, and waits for it.
    fn ask(&mut self) {
        let name = format!("server-{}", self.dice.number(0..9));
        let (record, within) = (self.dice.once_in(4), self.dice.one_of(&[Duration::from_secs(1), Duration::from_secs(20), FOR_EVER, FOR_EVER]));
        let (fleet, hub, model, told, wrong) =
            (Arc::clone(&self.fleet), Arc::clone(&self.hub), Rc::clone(&self.model), Rc::clone(&self.told), Rc::clone(&self.wrong));
        let (changes, stopping, unanswered) = (Rc::clone(&self.changes), Rc::clone(&self.stopping), Rc::clone(&self.unanswered));
        unanswered.set(unanswered.get() + 1);
        self.tell("asked");
        spawn_local(async move {
            let (began, changed, stalled) = (Instant::now(), changes.get(), model.borrow().stalled);
            let at = clock::up();
            let answer = fleet.ask(&name, record, within).await;
            unanswered.set(unanswered.get() - 1);
            let (waited, stalled) = (began.elapsed(), model.borrow().stalled.saturating_sub(stalled));
            let snapshot = hub.snapshot();
            let state = snapshot.server(&name);
            let watched = ServerName::new(&name).is_ok_and(|name| model.borrow().is_watched(&name));
            let as_before = changed == changes.get();
            let (word, is_right) = match &answer {
                Asked::Nobody => ("nobody", !watched || !as_before),
                Asked::Probed(recording) => {
                    let is_new = state.is_none_or(|s| s.last.as_ref().is_some_and(|(ended, _)| ended.up >= at)) || !as_before;
                    ("probed", is_new && (recording.is_some() || !record))
                }
                Asked::Again { age } => ("again", *age < FLOOR && !record),
                Asked::Held => ("held", !as_before || state.is_some_and(|s| s.held.is_some())),
                Asked::Late => ("late", waited >= within),
                Asked::Crowded => ("crowded", false),
                Asked::Ending => ("ending", stopping.get()),
            };
            if !is_right || waited > within + stalled + Duration::from_millis(1) {
                wrong.borrow_mut().push(format!("{name} was asked for (recorded: {record}) within {within:?}: after {waited:?} it was {word}"));
            }
            *told.borrow_mut().happened.entry(word).or_default() += 1;
        });
    }

    /// The sidecar ends; nothing of what it had is left.
    async fn end(&mut self, running: tokio::task::JoinHandle<()>) {
        if self.known.borrow().running.values().len() > 0 {
            self.tell("cancelled");
        }
        self.stopping.set(true);
        self.stop.send_replace(true);
        let mut wrong = Vec::new();
        // A probe that is cancelled is ended politely.
        if timeout(Duration::from_secs(10), running).await.is_err() {
            wrong.push("it does not end".to_owned());
        }
        // Who wants a recording may have been told to come back after this.
        sleep(FLOOR).await;
        let sidecar = self.hub.snapshot().sidecar;
        let left = (self.fleet.places.available_permits(), self.permits.available_permits(), sidecar.in_flight, self.known.borrow().running.len());
        if left != (self.places, self.launches, 0, 0) {
            wrong.push(format!("(places, launches, in flight, running) are {left:?} at the end, of {:?}", (self.places, self.launches)));
        }
        if self.unanswered.get() > 0 {
            wrong.push(format!("{} who asked got no answer", self.unanswered.get()));
        }
        if Arc::strong_count(&self.fleet) != 1 {
            wrong.push(format!("{} hold the fleet at the end", Arc::strong_count(&self.fleet)));
        }
        self.wrong.borrow_mut().extend(wrong);
    }
}
