//! One process: opened, spoken to, ended. See [`Machine`](super::Machine) for what is around it.
//!
//! Split by what happens: [`reading`](super::reading) takes what comes over stdout, this file
//! everything else.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::call::Near;
use super::ladder::{Ladder, Step};
use super::lists::{Lists, Next, Noted};
use super::log::Log;
use super::machine::{Effect, Input, Pending, Wait};
use super::observation::{Asked, End, EndedBy, Io, Launch, Limit, Phase, Timeout, What};
use super::pages::Pages;
use super::plan::Plan;
use super::process::{Excess, Exit, LaunchError, Swept, Usage};
use super::reading::Heard;
use crate::protocol::mcp::{Asker, Greeting};
use crate::protocol::wire::{Framing, Id, Place};
use crate::protocol::{Era, LATEST_MODERN};
use crate::words::{At, Digest, printable_lines};

/// How long a process that closed stdout, or whose stdin broke, may take to be seen to exit.
const EXIT_WAIT: Duration = Duration::from_secs(1);

/// The longest JSON pointer that is told, in characters.
const MAX_POINTER: usize = 300;

/// The limits of one launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// From the launch to the first reply.
    pub(super) startup: Duration,
    /// After end-of-file.
    pub(super) eof_grace: Duration,
    /// Nothing is waited for any more from here on; what is left of the time is the ladder's.
    pub(super) cut: At,
    /// The end of the whole probe.
    pub(super) end: At,
}

/// What an opening came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// It was answered, well or badly, in the era it was opened in; or it was not, and no other
    /// way is worth a try.
    Settled,
    /// The server did not speak: it exited, or said nothing in time.
    Unanswered {
        /// It exited.
        exited: bool,
    },
    /// It was given up, and then answered, as a server of this era would: it only needs more time.
    Late,
    /// It answered that it does not know this way of opening.
    Refused {
        /// It named versions of the other era.
        names_other: bool,
    },
}

#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) asked: Asked,
    pub(super) id: Id,
    pub(super) since: At,
    pub(super) until: At,
    /// Lines that had come when it was asked.
    pub(super) lines: u64,
}

#[derive(Debug)]
pub(super) enum Stage {
    Launching,
    /// A request is out.
    Waiting(Waiting),
    /// The tool list is empty, and is given until then.
    AwaitingTools(At),
    /// On the way down.
    Leaving(Ladder),
    /// The process is gone; what it left is being cleared away.
    Sweeping,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stdin {
    Open,
    /// The server closed it.
    Broken,
    /// We closed it.
    Closed(At),
}

pub(super) struct Session {
    pub(super) plan: Arc<Plan>,
    bounds: Bounds,
    /// Which era this launch is for.
    pub(super) opening: Era,
    pub(super) asker: Asker,
    pub(super) framing: Framing,
    pub(super) stage: Stage,
    pub(super) lists: Lists,
    /// What is listed and called nearly as the tool to call.
    pub(super) near: Near,
    pub(super) pages: Pages,
    /// The line that was hashed last, and its digest.
    pub(super) hashed: Option<(u64, Digest)>,
    /// The last line on which a fault was found.
    pub(super) faulty_line: u64,
    pub(super) log: Log,
    pub(super) answered: Vec<Id>,
    /// A request that went unanswered until we gave up.
    pub(super) given_up: Option<(Asked, Id)>,
    pub(super) io: Io,
    pub(super) lines: u64,
    pub(super) first_reply: Option<At>,
    pub(super) first_reply_line: Option<u64>,
    pub(super) ready: Option<At>,
    pub(super) version: Option<String>,
    pub(super) greeting: Greeting,
    /// `notifications/initialized` went out.
    pub(super) notified: bool,
    /// An answer came when the launched process had exited.
    pub(super) was_detached: bool,
    pub(super) outcome: Opening,
    started: At,
    spawned: Option<At>,
    failure: Option<LaunchError>,
    listed: Option<At>,
    called: Option<At>,
    stdin: Stdin,
    stdout_open: bool,
    /// A signal of ours was sent: from here on stdout is not judged.
    signalled: bool,
    over_limit: bool,
    /// The process has closed stdout or its stdin and is expected to exit by then.
    exit_by: Option<At>,
    exit: Option<(At, Exit)>,
    ended: Option<(At, EndedBy)>,
    pipe_held: bool,
    stderr_tail: Vec<u8>,
    end: Option<End>,
}

impl Session {
    pub(super) fn begin(plan: &Arc<Plan>, opening: Era, bounds: Bounds, asker: Asker, now: At, effects: &mut VecDeque<Effect>) -> Session {
        effects.push_back(Effect::Spawn);
        Session {
            bounds,
            opening,
            asker,
            framing: Framing::new(plan.limits.line),
            stage: Stage::Launching,
            lists: Lists::default(),
            near: Near::default(),
            pages: Pages::new(Arc::clone(&plan.redactor)),
            hashed: None,
            faulty_line: 0,
            log: Log::default(),
            answered: Vec::new(),
            given_up: None,
            io: Io::default(),
            lines: 0,
            first_reply: None,
            first_reply_line: None,
            ready: None,
            version: None,
            greeting: Greeting::default(),
            notified: false,
            was_detached: false,
            outcome: Opening::Settled,
            started: now,
            spawned: None,
            failure: None,
            listed: None,
            called: None,
            stdin: Stdin::Open,
            stdout_open: true,
            signalled: false,
            over_limit: false,
            exit_by: None,
            exit: None,
            ended: None,
            pipe_held: false,
            stderr_tail: Vec::new(),
            end: None,
            plan: Arc::clone(plan),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Whether stdout is still to be read. A server over its limit is left to block on its pipe,
    /// where it costs its neighbours nothing.
    pub(super) fn wants_stdout(&self) -> bool {
        !self.over_limit
    }

    /// About how much memory it takes to hold what the server has written, in bytes.
    pub(super) fn held(&self) -> usize {
        self.framing.held() + self.lists.held()
    }

    /// Whether what comes over stdout says something about the server.
    pub(super) fn judges_stdout(&self) -> bool {
        !self.signalled
    }

    pub(super) const fn has_exited(&self) -> bool {
        self.exit.is_some()
    }

    pub(super) fn stdin_is_closed(&self) -> bool {
        matches!(self.stdin, Stdin::Closed(_))
    }

    pub(super) fn handle(&mut self, now: At, input: Input<'_>, effects: &mut VecDeque<Effect>) {
        match input {
            Input::Spawned => self.spawned(now, effects),
            Input::SpawnFailed(error) => {
                self.failure = Some(error);
                self.stage = Stage::Over;
            }
            Input::Stdout(bytes) => self.stdout(now, bytes, effects),
            Input::Stderr(bytes) => self.stderr(bytes),
            Input::StdoutClosed => self.stdout_closed(now, effects),
            Input::StdinBroken => self.stdin_broken(now),
            Input::Overslept(by) => self.overslept(now, by),
            Input::TookTooMuch(excess) => self.took_too_much(now, excess, effects),
            Input::Exited(exit) => self.exited(now, exit, effects),
            Input::BrowserCalled { at, origin } => {
                let bytes = origin.clone().into_bytes();
                self.note_in(at.min(now), self.phase_at(at), None, What::Browser { origin }, &bytes);
            }
            Input::Swept(swept, usage) => self.swept(now, swept, usage),
        }
    }

    /// What was waited for has had its time, and we did not look. What comes next still gets all of its own: the whole
    /// probe takes so much longer.
    fn overslept(&mut self, now: At, by: Duration) {
        (self.bounds.cut, self.bounds.end) = (self.bounds.cut + by, self.bounds.end + by);
        // Only of a wait for an answer: a late rung of the ladder explains no silence before it.
        if let Stage::Waiting(_) = self.stage
            && self.deadline().is_some_and(|due| due <= now)
        {
            self.note(now, What::Overslept { by }, &[]);
        }
    }

    /// When [`Session::tick`] is due.
    pub(super) fn deadline(&self) -> Option<At> {
        let own = match &self.stage {
            Stage::Waiting(waiting) => waiting.until,
            Stage::AwaitingTools(until) => *until,
            Stage::Leaving(ladder) => return Some(ladder.until()),
            Stage::Launching | Stage::Sweeping | Stage::Over => return None,
        };
        Some(own.min(self.bounds.cut).min(self.exit_by.unwrap_or(own)))
    }

    /// What is being waited for.
    pub(super) fn pending(&self) -> Option<Pending> {
        let until = self.deadline()?;
        let (wait, since) = match &self.stage {
            // As its time is measured.
            Stage::Waiting(waiting) if waiting.asked.phase() == Phase::Handshake => (Wait::Reply(waiting.asked), self.started),
            Stage::Waiting(waiting) => (Wait::Reply(waiting.asked), waiting.since),
            Stage::AwaitingTools(until) => (Wait::Tools, At::after(until.elapsed().saturating_sub(self.plan.times.late_tools))),
            Stage::Leaving(ladder) => match self.stdin {
                Stdin::Closed(closed) => (Wait::End(ladder.ended_by()), closed),
                Stdin::Open | Stdin::Broken => return None,
            },
            Stage::Launching | Stage::Sweeping | Stage::Over => return None,
        };
        Some(Pending { wait, since, until })
    }

    /// Does what is due at `now`.
    pub(super) fn tick(&mut self, now: At, effects: &mut VecDeque<Effect>) {
        if self.deadline().is_none_or(|due| now < due) {
            return;
        }
        match &mut self.stage {
            Stage::Waiting(_) => self.waited_too_long(now, effects),
            Stage::AwaitingTools(_) => {
                self.lists.ask_for_tools_again();
                self.go_on(now, effects);
            }
            // The process is long gone, and something it started holds on: a sweep finds it.
            Stage::Leaving(_) if self.exit.is_some() => self.gone(now, effects),
            Stage::Leaving(ladder) => match ladder.climb(now) {
                Step::Term => self.signal(Effect::Terminate, effects),
                Step::Kill => self.signal(Effect::Kill, effects),
                Step::GiveUp => self.gone(now, effects),
            },
            Stage::Launching | Stage::Sweeping | Stage::Over => {}
        }
    }

    fn signal(&mut self, effect: Effect, effects: &mut VecDeque<Effect>) {
        self.signalled = true;
        effects.push_back(effect);
    }

    fn spawned(&mut self, now: At, effects: &mut VecDeque<Effect>) {
        self.spawned = Some(now);
        let (asked, (id, line)) = match self.opening {
            Era::Modern => (Asked::Discover, self.asker.discover(LATEST_MODERN)),
            Era::Legacy => (Asked::Initialize, self.asker.initialize()),
        };
        // Start-up is measured, and limited, from the launch.
        self.ask(now, asked, id, line, self.started + self.bounds.startup, effects);
    }

    /// Sends a request. What is waited for is noted before a byte of it is written: a fast server's
    /// reply may be there at once.
    fn ask(&mut self, now: At, asked: Asked, id: Id, line: Vec<u8>, until: At, effects: &mut VecDeque<Effect>) {
        self.stage = Stage::Waiting(Waiting { asked, id, since: now, until, lines: self.lines });
        if self.stdin == Stdin::Broken {
            self.exit_by.get_or_insert(now + EXIT_WAIT);
        } else {
            effects.push_back(Effect::Write(line));
        }
    }

    /// Sends what needs no reply, as long as it can be sent.
    pub(super) fn tell(&self, line: Option<Vec<u8>>, effects: &mut VecDeque<Effect>) {
        if let (Stdin::Open, Some(line)) = (self.stdin, line) {
            effects.push_back(Effect::Write(line));
        }
    }

    /// The handshake is complete.
    pub(super) fn ready(&mut self, now: At, version: String, greeting: Greeting, effects: &mut VecDeque<Effect>) {
        self.ready = Some(now);
        self.version = Some(version);
        let plan = &self.plan;
        self.lists = Lists::new(&greeting, plan.list_twice, plan.limits.pages, plan.times.late_tools);
        self.greeting = greeting;
        self.go_on(now, effects);
    }

    /// Asks for what is to be asked next, or leaves.
    pub(super) fn go_on(&mut self, now: At, effects: &mut VecDeque<Effect>) {
        match self.lists.next() {
            Next::Ask(kind, cursor) => {
                let version = self.version.clone().unwrap_or_default();
                let (id, line) = self.asker.list(kind, self.opening, &version, cursor.as_deref());
                self.ask(now, Asked::List(kind), id, line, now + self.plan.times.request, effects);
            }
            // A second look at an empty list is for when there is time for it.
            Next::AwaitTools(wait) if now + wait >= self.bounds.cut => self.go_on(now, effects),
            Next::AwaitTools(wait) => self.stage = Stage::AwaitingTools(now + wait),
            Next::Done => {
                self.listed = Some(now);
                self.call(now, effects);
            }
        }
    }

    /// Makes the canary call, if there is one to make, or leaves.
    fn call(&mut self, now: At, effects: &mut VecDeque<Effect>) {
        let Some(call) = self.plan.call.clone() else { return self.leave(now, effects) };
        // What stands on a page that was not read may be there, and may be destructive: nothing is said of it.
        if self.lists.tool(&call.tool).is_none() && self.lists.hides_tools() {
            return self.leave(now, effects);
        }
        if let Some(why) = call.objection(self.lists.tool(&call.tool), &self.near, &self.plan.redactor) {
            let tool = self.plan.redactor.printable(&call.tool, 100);
            self.note_in(now, Phase::Call, None, What::CallFailed { tool, why }, &[]);
            return self.leave(now, effects);
        }
        let version = self.version.clone().unwrap_or_default();
        let (id, line) = self.asker.call(&call.tool, &call.arguments, self.opening, &version);
        self.ask(now, Asked::Call, id, line, now + self.plan.times.request, effects);
    }

    /// The canary call was answered.
    pub(super) fn called(&mut self, heard: Heard<'_>, why: Option<String>, effects: &mut VecDeque<Effect>) {
        self.called = Some(heard.now);
        if let (Some(call), Some(why)) = (&self.plan.call, why) {
            let tool = self.plan.redactor.printable(&call.tool, 100);
            self.note_heard(heard, What::CallFailed { tool, why });
        }
        self.leave(heard.now, effects);
    }

    /// Nothing more is asked: the way down begins.
    pub(super) fn leave(&mut self, now: At, effects: &mut VecDeque<Effect>) {
        match &self.stage {
            Stage::Leaving(_) | Stage::Sweeping | Stage::Over => return,
            Stage::Waiting(waiting) if !self.answered.contains(&waiting.id) => self.given_up = Some((waiting.asked, waiting.id.clone())),
            Stage::Launching | Stage::Waiting(_) | Stage::AwaitingTools(_) => {}
        }
        if let Some((at, _)) = self.exit
            && !self.stdout_open
        {
            self.ended = Some((at, EndedBy::Itself));
            self.stage = Stage::Sweeping;
            effects.push_back(Effect::Sweep);
            return;
        }
        self.stdin = Stdin::Closed(now);
        self.framing.drop_long_lines();
        effects.push_back(Effect::CloseStdin);
        // One that has answered has long been installed.
        let usual = self.plan.times.eof_grace;
        let eof_grace = if self.first_reply.is_some() { usual.min(self.bounds.eof_grace) } else { self.bounds.eof_grace };
        self.stage = Stage::Leaving(Ladder::begin(now, eof_grace, self.plan.times.term_grace, self.bounds.end));
    }

    /// The probe is to end soon: leaves, and gives no more than the usual grace.
    pub(super) fn cancel(&mut self, now: At, effects: &mut VecDeque<Effect>) {
        self.leave(now, effects);
        if let Stage::Leaving(ladder) = &mut self.stage {
            ladder.hurry(now + self.plan.times.eof_grace);
        }
    }

    /// The server has ended, as far as it ever will.
    fn gone(&mut self, now: At, effects: &mut VecDeque<Effect>) {
        let by = match &self.stage {
            Stage::Leaving(ladder) => ladder.ended_by(),
            Stage::Launching | Stage::Waiting(_) | Stage::AwaitingTools(_) => EndedBy::Itself,
            Stage::Sweeping | Stage::Over => return,
        };
        self.ended = Some((now, by));
        self.pipe_held = self.stdout_open;
        self.stage = Stage::Sweeping;
        effects.push_back(Effect::Sweep);
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.io.stderr_bytes += bytes.len() as u64;
        // A secret that straddles the cut must still be found whole.
        let keep = self.plan.limits.stderr_tail + self.plan.redactor.longest();
        let bytes = &bytes[bytes.len().saturating_sub(keep)..];
        let excess = (self.stderr_tail.len() + bytes.len()).saturating_sub(keep);
        if excess > keep / 2 || self.stderr_tail.len() + bytes.len() > 2 * keep {
            self.stderr_tail.drain(..excess.min(self.stderr_tail.len()));
        }
        self.stderr_tail.extend_from_slice(bytes);
    }

    fn stdout_closed(&mut self, now: At, effects: &mut VecDeque<Effect>) {
        self.stdout_open = false;
        self.flush_open_message(now, effects);
        if !self.stdin_is_closed()
            && let Some(tail) = self.framing.tail()
        {
            let (place, length, bytes) = (tail.place, tail.length, tail.bytes.to_vec());
            self.note_at(now, Some(place), What::Unterminated { length }, &bytes);
        }
        match (&self.stage, self.exit) {
            (Stage::Waiting(_) | Stage::AwaitingTools(_), Some((_, exit))) => self.ended_early(now, exit, false, effects),
            // A detached server's end is the end of its pipe.
            (Stage::Leaving(_), Some(_)) => self.gone(now, effects),
            (Stage::Waiting(_) | Stage::AwaitingTools(_), None) => self.exit_by = Some(now + EXIT_WAIT),
            _ => {}
        }
    }

    fn stdin_broken(&mut self, now: At) {
        if self.stdin == Stdin::Open {
            self.stdin = Stdin::Broken;
            // It may have read all that it was asked before it closed: its time stays its time,
            // unless there is something that it was never sent.
            if matches!(self.stage, Stage::AwaitingTools(_)) {
                self.exit_by = Some(now + EXIT_WAIT);
            }
        }
    }

    /// The process exited. What it wrote before that has been read.
    fn exited(&mut self, now: At, exit: Exit, effects: &mut VecDeque<Effect>) {
        self.exit = Some((now, exit));
        match &self.stage {
            Stage::Waiting(_) | Stage::AwaitingTools(_) => match exit {
                // `setsid -f` and the like: the leader goes at once, and the server answers on.
                Exit::Code(0) if self.stdout_open => {}
                Exit::Code(_) | Exit::Signal(_) => self.ended_early(now, exit, self.stdout_open, effects),
            },
            Stage::Leaving(_) => self.gone(now, effects),
            Stage::Launching | Stage::Sweeping | Stage::Over => {}
        }
    }

    /// The process ended, by itself, before we were done.
    fn ended_early(&mut self, now: At, exit: Exit, held: bool, effects: &mut VecDeque<Effect>) {
        self.flush_open_message(now, effects);
        if let Stage::Waiting(waiting) = &self.stage {
            let asked = waiting.asked;
            let after_reply = self.first_reply.is_some();
            self.settle_unanswered(asked, true);
            self.note(now, What::Exited { asked, exit, after_reply, held }, &[]);
        }
        self.gone(now, effects);
    }

    fn waited_too_long(&mut self, now: At, effects: &mut VecDeque<Effect>) {
        self.flush_open_message(now, effects);
        let Stage::Waiting(Waiting { asked, since, until, lines, .. }) = self.stage else {
            return;
        };
        if now >= self.bounds.cut && self.lists.is_repeating() {
            // What had to be read has been; the repetition was for when there is time for it.
            return self.leave(now, effects);
        }
        let limit = if now >= self.bounds.cut && now < until { Limit::Total } else { Limit::Phase };
        let what = match self.exit {
            Some((_, exit)) => What::Exited { asked, exit, after_reply: self.first_reply.is_some(), held: true },
            None if !self.stdout_open => What::StdoutClosed { asked },
            None if self.stdin == Stdin::Broken => What::StdinClosed { asked },
            None => {
                let from = if asked.phase() == Phase::Handshake { self.started } else { since };
                let tail = self.framing.tail();
                What::Timeout(Timeout {
                    asked,
                    limit,
                    waited: now - from,
                    lines: self.lines - lines,
                    unfinished: tail.as_ref().map_or(0, |t| t.length),
                    newline_missing: tail.is_some_and(|t| t.is_message),
                })
            }
        };
        self.settle_unanswered(asked, self.exit.is_some());
        let tail = self.framing.tail().map_or(&[][..], |tail| tail.bytes);
        self.log.add(now, asked.phase(), None, what, tail, &self.plan.redactor);
        if let Asked::List(_) = asked {
            self.lists.refused();
        }
        self.leave(now, effects);
    }

    fn settle_unanswered(&mut self, asked: Asked, exited: bool) {
        if matches!(asked, Asked::Discover | Asked::Initialize) {
            self.outcome = Opening::Unanswered { exited };
        }
    }

    /// All of stdout together is over `limit`.
    pub(super) fn over_limit(&mut self, now: At, limit: What, effects: &mut VecDeque<Effect>) {
        self.over_limit = true;
        self.note(now, limit, &[]);
        self.leave(now, effects);
    }

    /// It has more of something than it may: what is sound about it does not matter any more, and to ask
    /// it to end would give it the time to take more.
    fn took_too_much(&mut self, now: At, excess: Excess, effects: &mut VecDeque<Effect>) {
        if matches!(self.stage, Stage::Launching | Stage::Sweeping | Stage::Over) {
            return;
        }
        self.note(now, What::TookTooMuch(excess), &[]);
        self.leave(now, effects);
        if let Stage::Leaving(ladder) = &mut self.stage {
            ladder.jump(now);
            self.signal(Effect::Kill, effects);
            // What it has started is not all in its group; a sweep finds the rest.
            if self.exit.is_some() {
                self.gone(now, effects);
            }
        }
    }

    fn swept(&mut self, now: At, swept: Swept, usage: Usage) {
        let (at, by) = self.ended.unwrap_or((now, EndedBy::Sigkill));
        let closed = match self.stdin {
            Stdin::Closed(at) => Some(at),
            Stdin::Open | Stdin::Broken => None,
        };
        let left = !(swept.in_group.is_empty() && swept.escaped.is_empty());
        self.pipe_held &= left;
        let exit = self.exit.map(|(_, exit)| exit);
        self.end = Some(End { closed, at, by, exit, swept, pipe_held: self.pipe_held, usage });
        self.stage = Stage::Over;
    }

    /// The phase that is on.
    pub(super) fn phase(&self) -> Phase {
        match &self.stage {
            Stage::Launching => Phase::Spawn,
            Stage::Waiting(waiting) => waiting.asked.phase(),
            Stage::AwaitingTools(_) => Phase::List,
            Stage::Leaving(_) | Stage::Sweeping | Stage::Over => Phase::Shutdown,
        }
    }

    /// The phase that was on at an earlier moment.
    fn phase_at(&self, at: At) -> Phase {
        let leaving = match self.stdin {
            Stdin::Closed(closed) => at >= closed,
            Stdin::Open | Stdin::Broken => false,
        };
        match self.ready {
            _ if leaving => Phase::Shutdown,
            Some(ready) if at >= ready => Phase::List,
            Some(_) | None => Phase::Handshake,
        }
    }

    pub(super) fn note(&mut self, now: At, what: What, bytes: &[u8]) {
        self.note_at(now, None, what, bytes);
    }

    pub(super) fn note_heard(&mut self, heard: Heard<'_>, what: What) {
        self.note_at(heard.now, Some(heard.place), what, heard.bytes);
    }

    fn note_at(&mut self, now: At, place: Option<Place>, what: What, bytes: &[u8]) {
        self.note_in(now, self.phase(), place, what, bytes);
    }

    fn note_in(&mut self, now: At, phase: Phase, place: Option<Place>, what: What, bytes: &[u8]) {
        self.log.add(now, phase, place, what, bytes, &self.plan.redactor);
    }

    pub(super) fn note_all(&mut self, now: At, noted: Vec<Noted>) {
        for (mut what, bytes) in noted {
            if let What::Volatile { pointer, .. } = &mut what {
                *pointer = self.plan.redactor.printable(pointer, MAX_POINTER);
            }
            self.note_in(now, Phase::List, None, what, &bytes);
        }
    }

    /// What was seen, and the asker for the next launch.
    pub(super) fn into_launch(mut self, now: At) -> (Launch, Asker) {
        let mut noted = Vec::new();
        let lists = std::mem::take(&mut self.lists).into_seen(&mut noted);
        self.note_all(now, noted.into_iter().map(|what| (what, Arc::default())).collect());
        let launch = Launch {
            opening: self.opening,
            fetches: self.plan.fetches,
            started: self.started,
            spawned: self.spawned,
            failure: self.failure,
            first_reply: self.first_reply,
            first_reply_line: self.first_reply_line,
            ready: self.ready,
            listed: self.listed,
            called: self.called,
            version: self.version,
            greeting: self.greeting,
            lists,
            pages: Arc::new(self.pages),
            seen: self.log.into_seen(),
            io: self.io,
            stderr_tail: stderr_text(&self.stderr_tail, self.io.stderr_bytes, &self.plan),
            end: self.end,
        };
        (launch, self.asker)
    }
}

/// The end of stderr, whose last bytes are `tail`: secrets masked first, then cut to its limit, from a line's beginning.
/// What it comes to does not depend on how stderr was read.
fn stderr_text(tail: &[u8], written: u64, plan: &Plan) -> String {
    let (limit, longest) = (plan.limits.stderr_tail, plan.redactor.longest());
    let tail = &tail[tail.len().saturating_sub(limit + longest)..];
    let is_cut = tail.len() as u64 != written;
    let masked = plan.redactor.redact_end(tail, if is_cut { longest } else { 0 });
    let mut text = &masked[masked.len().saturating_sub(limit)..];
    if (is_cut || text.len() < masked.len())
        && let Some(end) = memchr::memchr(b'\n', text)
        && end + 1 < text.len()
    {
        text = &text[end + 1..];
    }
    printable_lines(&String::from_utf8_lossy(text))
}
