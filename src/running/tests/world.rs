//! Servers that are made up, and the ground that they run on.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::dice::Dice;
use crate::judge::Verdict;
use crate::outside::process::LaunchSpec;
use crate::probe::tests::world::{Act, Later, Modern, Server, World, error, initialize_result, ms, result, sound, tool};
use crate::probe::{Launch, LaunchError, Machine, Observation, Peers, Plan, Recording, Tape};
use crate::running::ground::{Course, Ground};
use crate::words::{At, ServerName};

/// One probe in so many is recorded and replayed.
const TAPED: u64 = 8;
/// What is later than this was not merely put off.
const STANDSTILL: Duration = Duration::from_millis(350);

/// What a server is like for as long as one probe takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    Sound,
    Modern,
    /// Sound, and every reply takes a while.
    Slow,
    /// Another list each time.
    Drifts,
    /// It lives on after the end of its input, or after SIGTERM too.
    Clings(bool),
    Noisy,
    /// It answers until it is asked for its tools.
    Hangs,
    Mute,
    ExitsAtOnce,
    ExitsMidway,
    Refuses,
    Gone,
    /// The host has no descriptors, memory or processes left.
    NoRoom,
    /// The host has none left after the first launch of a probe.
    NoMoreRoom,
}

impl Mode {
    const ALL: [Mode; 15] = [
        Mode::Sound,
        Mode::Modern,
        Mode::Slow,
        Mode::Drifts,
        Mode::Clings(false),
        Mode::Clings(true),
        Mode::Noisy,
        Mode::Hangs,
        Mode::Mute,
        Mode::ExitsAtOnce,
        Mode::ExitsMidway,
        Mode::Refuses,
        Mode::Gone,
        Mode::NoRoom,
        Mode::NoMoreRoom,
    ];

    pub(super) fn random(dice: &mut Dice) -> Mode {
        if dice.once_in(2) { dice.one_of(&[Mode::Sound, Mode::Modern, Mode::Slow]) } else { dice.one_of(&Mode::ALL) }
    }

    /// Whether a report may say this of such a server, if nothing came between.
    pub(super) fn may_be(self, verdict: Verdict) -> bool {
        match self {
            Mode::Sound | Mode::Modern | Mode::Slow | Mode::Drifts | Mode::Clings(_) => verdict.is_up(),
            Mode::Noisy | Mode::Hangs | Mode::Mute | Mode::ExitsAtOnce | Mode::ExitsMidway | Mode::Refuses | Mode::Gone => verdict == Verdict::Fail,
            Mode::NoRoom => verdict == Verdict::Unknown,
            // A server whose era is known takes one launch.
            Mode::NoMoreRoom => verdict != Verdict::Fail,
        }
    }

    /// Whether a server like this may ever be said to have failed.
    pub(super) fn may_fail(self) -> bool {
        self.may_be(Verdict::Fail)
    }
}

/// How one probe went, for the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Went {
    pub(super) mode: Mode,
    pub(super) harmed: bool,
    pub(super) beside_peer: bool,
    pub(super) cancelled: bool,
    pub(super) overslept: bool,
}

/// What the ground and its onlooker both know.
#[derive(Default)]
pub(super) struct Known {
    pub(super) modes: BTreeMap<ServerName, Mode>,
    /// Those that are probed at this moment.
    pub(super) running: BTreeMap<ServerName, Went>,
    /// How each server's last probe went.
    pub(super) went: BTreeMap<ServerName, Went>,
    /// Chances in a thousand that a live copy is there, and that it dies.
    pub(super) peers: (u64, u64),
    /// Servers of which a live copy died, and that nobody has resumed since.
    pub(super) harmed: BTreeSet<ServerName>,
    pub(super) wrong: Vec<String>,
    pub(super) most_running: usize,
    pub(super) forgotten: u64,
}

pub(super) type Shared = Rc<RefCell<Known>>;

/// Whether a server is held at the moment.
pub(super) type IsHeld = Box<dyn Fn(&ServerName) -> bool>;

/// Where there are no processes.
pub(super) struct Scripted {
    known: Shared,
    dice: RefCell<Dice>,
    is_held: IsHeld,
    probes: Cell<u64>,
}

impl Scripted {
    pub(super) fn new(known: Shared, dice: Dice, is_held: IsHeld) -> Scripted {
        Scripted { known, dice: RefCell::new(dice), is_held, probes: Cell::new(0) }
    }
}

impl Ground for Scripted {
    type Kin = ();

    fn before(&self, name: &ServerName, _: &Arc<LaunchSpec>) {
        let mut known = self.known.borrow_mut();
        if (self.is_held)(name) || known.harmed.contains(name) {
            known.wrong.push(format!("{name} is held, and probed"));
        }
        let mode = known.modes.get(name).copied().unwrap_or(Mode::Sound);
        let chance = |thousandths| self.dice.borrow_mut().number(0..1000) < thousandths;
        let beside_peer = chance(known.peers.0);
        let went = Went { mode, harmed: beside_peer && chance(known.peers.1), beside_peer, cancelled: false, overslept: false };
        if known.running.insert(name.clone(), went).is_some() {
            known.wrong.push(format!("two probes of {name} at once"));
        }
        known.most_running = known.most_running.max(known.running.len());
    }

    async fn observe(&self, course: Course<'_>, mut look: impl FnMut(&Machine, At), (): ()) -> (Observation, ()) {
        let Course { name, plan, mut stop, .. } = course;
        let mode = self.known.borrow().running[name].mode;
        let (began, mut lost) = (Instant::now(), Duration::ZERO);
        let (mut launches, mut dice) = (0, self.dice.borrow_mut().split());
        let mut launch = || {
            launches += 1;
            server(mode, launches, &mut dice)
        };
        let mut world = World::new(Plan::clone(&plan), &mut launch).untraced();
        self.probes.set(self.probes.get() + 1);
        if self.probes.get().is_multiple_of(TAPED) {
            world = world.taped();
        }
        let mut stopping = false;
        let observation = loop {
            if let Some(observation) = world.settle() {
                break observation;
            }
            let next = world.next();
            look(world.machine(), At::after(began.elapsed() - lost));
            let stopped = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop), if !stopping => true,
                () = sleep_until(began + lost + next.elapsed()) => false,
            };
            // As a probe's stopwatch has it: all stood still together, and nothing that is late is so by itself.
            let late = (began.elapsed() - lost).saturating_sub(next.elapsed());
            let stood_still = if late > STANDSTILL { late } else { Duration::ZERO };
            lost += stood_still;
            let now = At::after(began.elapsed() - lost);
            if stood_still > Duration::ZERO {
                self.known.borrow_mut().running.get_mut(name).expect("it runs").overslept = true;
            }
            if stopped {
                stopping = true;
                world.cancel(now);
            } else {
                world.advance_after_standstill(now, stood_still);
            }
        };
        let mut known = self.known.borrow_mut();
        if let Some(tape) = world.tape.take()
            && let Some(wrong) = replayed_otherwise(&plan, tape, &observation)
        {
            known.wrong.push(format!("{name}, {mode:?}: {wrong}"));
        }
        known.running.get_mut(name).expect("it runs").cancelled = observation.cancelled;
        (observation, ())
    }

    async fn peers(&self, name: &ServerName, (): (), coexists: bool) -> Peers {
        let mut known = self.known.borrow_mut();
        let went = known.running.remove(name).expect("it runs");
        known.went.insert(name.clone(), went);
        if went.harmed {
            known.harmed.insert(name.clone());
        }
        let copies = |is_there: bool| if is_there { vec![4711] } else { Vec::new() };
        Peers { looked: true, live: copies(went.beside_peer && !went.harmed), died: copies(went.harmed), coexists }
    }

    fn again(&self, name: &ServerName, _: Duration) -> Vec<u32> {
        let beside_peer = self.known.borrow().went.get(name).is_some_and(|went| went.beside_peer && !went.harmed);
        if beside_peer { vec![4711] } else { Vec::new() }
    }

    fn forget(&self, _: &ServerName) {
        self.known.borrow_mut().forgotten += 1;
    }

    fn tidy(&self) {}
}

/// What the recording of a probe shows, replayed, that is not what the probe saw.
fn replayed_otherwise(plan: &Plan, tape: Tape, seen: &Observation) -> Option<String> {
    let recording = Recording::new("s".to_owned(), String::new(), plan.clone(), Peers::default(), tape);
    let told = |observation: Observation| {
        let launches = observation.launches.into_iter().map(|launch| Launch { pages: Arc::default(), ..launch }).collect();
        format!("{:?}", Observation { launches, ..observation })
    };
    let (seen, shown) = (told(seen.clone()), told(recording.replay()));
    (seen != shown).then(|| format!("replayed it shows {shown}, and it was {seen}"))
}

/// A server that is like this in its probe's launch of this number.
fn server(mode: Mode, launch: u32, dice: &mut Dice) -> Box<dyn Server> {
    let mut private = dice.split();
    match mode {
        Mode::Sound => Box::new(sound(|_: &Value, _: &mut Later| false)),
        Mode::Modern => Box::new(Modern(|_: &Value, _: &mut Later| false)),
        Mode::Slow => Box::new(sound(move |line: &Value, later: &mut Later| answer_late(line, later, private.number(50..2000)))),
        Mode::Drifts => Box::new(sound(move |line: &Value, later: &mut Later| lists(line, later, &format!("tool-{}", private.number(0..4))))),
        Mode::Clings(to_the_end) => Box::new(Odd { to_the_end, clings: true, refuses: None, does: Does::Serve }),
        Mode::Noisy => Box::new(odd(Does::Noise)),
        Mode::Hangs => Box::new(odd(Does::Ignore("tools/list"))),
        Mode::Mute => Box::new(odd(Does::Ignore(""))),
        Mode::ExitsAtOnce => Box::new(odd(Does::ExitAtOnce)),
        Mode::ExitsMidway => Box::new(odd(Does::ExitOn("tools/list"))),
        Mode::Refuses => Box::new(sound(|line: &Value, later: &mut Later| {
            let is_asked = line.get("id").is_some();
            if is_asked {
                later.send(2, &error(line, -32603));
            }
            is_asked
        })),
        Mode::Gone => Box::new(refusing(LaunchError::NotFound { command: "gone".to_owned(), searched: None })),
        Mode::NoRoom => Box::new(refusing(no_room(dice))),
        Mode::NoMoreRoom if launch > 1 => Box::new(refusing(no_room(dice))),
        Mode::NoMoreRoom => Box::new(sound(|_: &Value, _: &mut Later| false)),
    }
}

fn no_room(dice: &mut Dice) -> LaunchError {
    let error = dice.one_of(&["EMFILE", "ENFILE", "ENOMEM", "EAGAIN"]).to_owned();
    LaunchError::Resources { error }
}

fn answer_late(line: &Value, later: &mut Later, delay: u64) -> bool {
    let reply = match line["method"].as_str() {
        Some("initialize") => result(line, initialize_result(&json!({ "tools": {} }))),
        Some("tools/list") => result(line, json!({ "tools": [tool("a")] })),
        _ => return false,
    };
    later.send(delay, &reply);
    true
}

fn lists(line: &Value, later: &mut Later, name: &str) -> bool {
    let is_asked = line["method"] == "tools/list";
    if is_asked {
        later.send(3, &result(line, json!({ "tools": [tool(name)] })));
    }
    is_asked
}

enum Does {
    Serve,
    Noise,
    Ignore(&'static str),
    ExitAtOnce,
    ExitOn(&'static str),
}

/// A server with one thing that is wrong.
struct Odd {
    does: Does,
    clings: bool,
    to_the_end: bool,
    refuses: Option<LaunchError>,
}

fn odd(does: Does) -> Odd {
    Odd { does, clings: false, to_the_end: false, refuses: None }
}

fn refusing(error: LaunchError) -> Odd {
    Odd { refuses: Some(error), ..odd(Does::Serve) }
}

impl Server for Odd {
    fn start(&mut self, later: &mut Later) {
        match self.does {
            Does::Noise => later.say(1, "Starting…\n"),
            Does::ExitAtOnce => later.after(ms(2), Act::Exit(1)),
            Does::Serve | Does::Ignore(_) | Does::ExitOn(_) => {}
        }
    }

    fn line(&mut self, line: &Value, later: &mut Later) {
        let method = line["method"].as_str().unwrap_or_default();
        match self.does {
            Does::Ignore(what) if what.is_empty() || what == method => {}
            Does::ExitOn(what) if what == method => later.after(ms(1), Act::Exit(1)),
            Does::Serve | Does::Noise | Does::Ignore(_) | Does::ExitAtOnce | Does::ExitOn(_) => {
                sound(|_: &Value, _: &mut Later| false).line(line, later)
            }
        }
    }

    fn eof(&mut self, later: &mut Later) {
        if !self.clings {
            later.after(ms(5), Act::Exit(0));
        }
    }

    fn term(&mut self, later: &mut Later) {
        if !self.to_the_end {
            later.after(ms(1), Act::Crash(15));
        }
    }

    fn refuses_to_start(&self) -> Option<LaunchError> {
        self.refuses.clone()
    }
}
