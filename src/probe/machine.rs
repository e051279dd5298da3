//! The probe as a state machine, without I/O.
//!
//! It is told what happened ([`Machine::handle`]) and that time went by
//! ([`Machine::handle_timeout`]), and says what to do ([`Machine::poll`], until it returns `None`)
//! and when it wants to be called again at the latest ([`Machine::deadline`]). Whoever drives it
//! does the doing, in order, and supplies the time, which may be virtual.
//!
//! A probe is one or more launches. The era of a server is a property of its configuration, but
//! asking in the wrong one can kill the process, or spoil it for the other. So each way of opening
//! gets a process of its own:
//!
//! | opening | answer | then |
//! |---|---|---|
//! | `server/discover` | a DiscoverResult with a version of ours | the lists, in the same process |
//! | | another error, silence, or an exit | a new process, `initialize` |
//! | `initialize` | a result | the lists, in the same process |
//! | | an error that names modern versions | a new process, `server/discover`, with all the time there is |
//!
//! A server whose era is known is opened in it at once, so that its start-up time is the real one;
//! the other way is tried only when it answers that it does not know this one, or (modern) exits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::observation::{Asked, EndedBy, Launch, Observation, Peers, What};
use super::plan::{EraChoice, Fetches, Plan};
use super::process::{Excess, Exit, LaunchError, Swept, Usage};
use super::session::{Bounds, Opening, Session};
use crate::protocol::Era;
use crate::protocol::mcp::Asker;
use crate::words::At;

/// Something that happened.
#[derive(Debug)]
pub enum Input<'b> {
    /// The process is there.
    Spawned,
    /// It could not be launched.
    SpawnFailed(LaunchError),
    /// It wrote this to stdout.
    Stdout(&'b [u8]),
    /// It wrote this to stderr.
    Stderr(&'b [u8]),
    /// Stdout has ended: nobody holds it open any more.
    StdoutClosed,
    /// Nobody holds the other end of its stdin any more.
    StdinBroken,
    /// So much of what is waited for was not the server's time: we did not come to look, or did not read. What has come
    /// meanwhile has been handed in.
    Overslept(Duration),
    /// It has more of something than it may.
    TookTooMuch(Excess),
    /// It exited. Everything that it wrote before has been handed in.
    Exited(Exit),
    /// It had called for a browser.
    BrowserCalled {
        /// When.
        at: At,
        /// Scheme and host of the page.
        origin: String,
    },
    /// What it left was cleared away, and it was reaped.
    Swept(Swept, Usage),
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Launch the server. Answer with `Spawned` or `SpawnFailed`.
    Spawn,
    /// Write this to its stdin, after what was written before.
    Write(Vec<u8>),
    /// Close its stdin, once everything is written or cannot be.
    CloseStdin,
    /// Send SIGTERM to its group.
    Terminate,
    /// Send SIGKILL to its group.
    Kill,
    /// End and reap whatever is left of it. Answer with `Swept`.
    Sweep,
}

/// What a probe waits for, and how long it will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// What.
    pub wait: Wait,
    /// Since when, as the time for it is measured.
    pub since: At,
    /// Until when at the latest.
    pub until: At,
}

/// Something that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The reply to this request.
    Reply(Asked),
    /// Tools on a list that was empty.
    Tools,
    /// The server's end, after this was done to end it.
    End(EndedBy),
}

/// One probe.
pub struct Machine {
    plan: Arc<Plan>,
    session: Option<Session>,
    launches: Vec<Launch>,
    effects: VecDeque<Effect>,
    cancelled: bool,
    started: At,
    /// For so long in all we did not come to look when we should have.
    overslept: Duration,
    finished: Option<At>,
}

impl Machine {
    /// A probe that begins at `now`.
    #[must_use]
    pub fn new(plan: Arc<Plan>, now: At) -> Machine {
        let mut machine = Machine {
            plan,
            session: None,
            launches: Vec::new(),
            effects: VecDeque::new(),
            cancelled: false,
            started: now,
            overslept: Duration::ZERO,
            finished: None,
        };
        let opening = match machine.plan.era {
            EraChoice::Fixed(era) | EraChoice::Auto { remembered: Some(era) } => era,
            EraChoice::Auto { remembered: None } => Era::Modern,
        };
        machine.launch(opening, Asker::default(), now);
        machine
    }

    /// Takes what happened at `now`.
    pub fn handle(&mut self, now: At, input: Input<'_>) {
        if let Input::Overslept(by) = input {
            self.overslept += by;
        }
        if let Some(session) = &mut self.session {
            session.handle(now, input, &mut self.effects);
            self.after(now);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: At) {
        if let Some(session) = &mut self.session {
            session.tick(now, &mut self.effects);
            self.after(now);
        }
    }

    /// Ends the probe as soon as the server can be ended politely.
    pub fn cancel(&mut self, now: At) {
        self.cancelled = true;
        if let Some(session) = &mut self.session {
            session.cancel(now, &mut self.effects);
            self.after(now);
        }
    }

    /// The next thing to do, if there is any.
    pub fn poll(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`Machine::handle_timeout`] is to be called, if nothing happens before.
    #[must_use]
    pub fn deadline(&self) -> Option<At> {
        self.session.as_ref().and_then(Session::deadline)
    }

    /// What is being waited for; `None` during a launch, while something is cleared away, and at the end.
    #[must_use]
    pub fn pending(&self) -> Option<Pending> {
        self.session.as_ref().and_then(Session::pending)
    }

    /// Whether stdout is to be read: not once it is over its limit.
    #[must_use]
    pub fn wants_stdout(&self) -> bool {
        self.session.as_ref().is_some_and(Session::wants_stdout)
    }

    /// About how much memory it takes to hold what the server has written, in bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.session.as_ref().map_or(0, Session::held)
    }

    /// Whether nothing more is asked of the server: it has been told to go.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.session.as_ref().is_none_or(Session::stdin_is_closed)
    }

    /// Whether the launch that is on has had its first valid reply.
    #[must_use]
    pub fn has_reply(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.first_reply.is_some())
    }

    /// Whether the probe is over.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.finished.is_some()
    }

    /// Everything that was seen.
    #[must_use]
    pub fn into_observation(self) -> Observation {
        let judged = self.judged();
        let total = self.finished.unwrap_or(self.started) - self.started;
        Observation {
            launches: self.launches,
            judged,
            total,
            cancelled: self.cancelled,
            peers: Peers::default(),
            container: self.plan.container.clone(),
        }
    }

    fn after(&mut self, now: At) {
        if self.session.as_ref().is_some_and(Session::is_over)
            && let Some(session) = self.session.take()
        {
            let outcome = session.outcome;
            let (launch, asker) = session.into_launch(now);
            let next = self.next_opening(&launch, outcome);
            self.launches.push(launch);
            match next {
                Some(opening) if !self.cancelled => self.launch(opening, asker, now),
                _ => self.finished = Some(now),
            }
        }
    }

    /// The era to try next, if the launch that has just ended leaves it open.
    fn next_opening(&self, last: &Launch, outcome: Opening) -> Option<Era> {
        let EraChoice::Auto { remembered } = self.plan.era else { return None };
        let first = self.launches.is_empty();
        let tried = |era: Era| self.launches.iter().any(|l| l.opening == era);
        match (last.opening, outcome) {
            (_, Opening::Settled) => None,
            // Silence from a server that is known to be modern is no news about its era.
            (Era::Modern, Opening::Unanswered { exited: false }) if remembered.is_some() => None,
            (era, Opening::Late) if first => Some(era),
            (Era::Modern, _) if first => Some(Era::Legacy),
            (Era::Legacy, Opening::Refused { names_other: true }) if !self.discover_was_refused() => Some(Era::Modern),
            (Era::Legacy, Opening::Refused { names_other: false }) if !tried(Era::Modern) => Some(Era::Modern),
            _ => None,
        }
    }

    /// A launch was answered that it does not know `server/discover`.
    fn discover_was_refused(&self) -> bool {
        self.launches.iter().any(|l| l.opening == Era::Modern && l.first_reply.is_some())
    }

    /// The launch on which the server is judged: the last one, unless it was only a try at another
    /// era than the known one, and came to nothing by the server's own doing. Where it was our trouble, the
    /// refusal before says nothing: the server may have become one of the other era.
    fn judged(&self) -> usize {
        let last = self.launches.len().saturating_sub(1);
        let in_vain = |launch: &Launch| launch.ready.is_none() && !was_our_trouble(launch);
        match self.plan.era {
            EraChoice::Auto { remembered: Some(_) } if self.launches.last().is_some_and(in_vain) => 0,
            EraChoice::Auto { .. } | EraChoice::Fixed(_) => last,
        }
    }

    fn launch(&mut self, opening: Era, asker: Asker, now: At) {
        let times = &self.plan.times;
        let end = self.started + times.total + self.overslept;
        let graces = (times.eof_grace + times.term_grace).min(times.total / 2);
        let looking = self.launches.is_empty() && self.plan.era == EraChoice::Auto { remembered: None };
        let fetches = self.plan.fetches != Fetches::Nothing;
        let startup = match (looking, fetches) {
            (true, _) => times.discovery,
            (false, true) => times.startup.max(times.cold_start),
            (false, false) => times.startup,
        };
        // A launcher that may be installing is given the time for it after end-of-file, which it
        // does not see before it is done.
        let eof_grace = if looking && fetches { times.eof_grace.max(times.cold_start) } else { times.eof_grace };
        let cut = At::after(end.elapsed().saturating_sub(graces));
        let bounds = Bounds { startup, eof_grace, cut, end };
        self.session = Some(Session::begin(&self.plan, opening, bounds, asker, now, &mut self.effects));
    }
}

/// Whether it came to nothing because we had nothing to launch it with, or did not come to look.
fn was_our_trouble(launch: &Launch) -> bool {
    matches!(launch.failure, Some(LaunchError::Resources { .. })) || launch.seen.iter().any(|seen| matches!(seen.what, What::Overslept { .. }))
}
