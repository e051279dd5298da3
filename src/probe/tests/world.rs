//! A world of scripted servers in virtual time, for the machine to run in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::probe::{Effect, Exit, Input, LaunchError, Leftover, Machine, Observation, Plan, Swept, Tape, Usage};
use crate::words::At;

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What a server does, and how long after it was provoked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    Say(Vec<u8>),
    CloseStdout,
    CloseStdin,
    Exit(i32),
    Crash(i32),
}

/// A scripted server process.
pub(crate) trait Server {
    fn start(&mut self, _do_later: &mut Later) {}
    fn line(&mut self, line: &Value, do_later: &mut Later);
    fn eof(&mut self, do_later: &mut Later) {
        do_later.after(ms(5), Act::Exit(0));
    }
    fn term(&mut self, do_later: &mut Later) {
        do_later.after(ms(1), Act::Crash(15));
    }
    fn leftovers(&self) -> Swept {
        Swept::default()
    }
    fn refuses_to_start(&self) -> Option<LaunchError> {
        None
    }
}

#[derive(Default)]
pub(crate) struct Later(Vec<(Duration, Act)>);

impl Later {
    pub(crate) fn after(&mut self, delay: Duration, act: Act) {
        self.0.push((delay, act));
    }

    pub(crate) fn say(&mut self, delay: u64, text: impl Into<Vec<u8>>) {
        self.after(ms(delay), Act::Say(text.into()));
    }

    pub(crate) fn send(&mut self, delay: u64, message: &Value) {
        self.say(delay, format!("{message}\n"));
    }
}

/// A legacy server that knows what it is doing, and a hook that knows better.
pub(crate) struct Sound<H> {
    pub(crate) tools: Vec<Value>,
    pub(crate) capabilities: Value,
    pub(crate) hook: H,
}

/// Returns whether it has dealt with the line.
pub(crate) trait Hook: FnMut(&Value, &mut Later) -> bool {}
impl<F: FnMut(&Value, &mut Later) -> bool> Hook for F {}

pub(crate) fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "d", "inputSchema": { "type": "object" } })
}

pub(crate) fn sound<H: Hook>(hook: H) -> Sound<H> {
    Sound { tools: vec![tool("a"), tool("b")], capabilities: json!({ "tools": {} }), hook }
}

pub(crate) fn result(request: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}

pub(crate) fn error(request: &Value, code: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": "no" } })
}

pub(crate) fn initialize_result(capabilities: &Value) -> Value {
    json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": { "name": "s", "version": "1" } })
}

pub(crate) fn discover_result() -> Value {
    json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "public", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
}

impl<H: Hook> Server for Sound<H> {
    fn line(&mut self, line: &Value, later: &mut Later) {
        if (self.hook)(line, later) || line.get("id").is_none() {
            return;
        }
        let reply = match line["method"].as_str() {
            Some("initialize") => result(line, initialize_result(&self.capabilities)),
            Some("tools/list") => result(line, json!({ "tools": self.tools })),
            _ => error(line, -32601),
        };
        later.send(3, &reply);
    }
}

/// A modern server, as sound as the legacy one.
pub(crate) struct Modern<H>(pub(crate) H);

impl<H: Hook> Server for Modern<H> {
    fn line(&mut self, line: &Value, later: &mut Later) {
        if (self.0)(line, later) || line.get("id").is_none() {
            return;
        }
        let reply = match line["method"].as_str() {
            Some("server/discover") => result(line, discover_result()),
            Some("tools/list") => result(line, json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "public", "tools": [tool("a")] })),
            Some("initialize") => json!({ "jsonrpc": "2.0", "id": line["id"], "error": { "code": -32022, "message": "modern only",
                "data": { "supported": ["2026-07-28"], "requested": line["params"]["protocolVersion"] } } }),
            _ => error(line, -32601),
        };
        later.send(3, &reply);
    }
}

/// How the bytes of a server reach the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    Whole,
    Every(usize),
}

/// One run: the machine against fresh processes made by `launch`.
pub(crate) struct World<'l> {
    machine: Machine,
    launch: &'l mut dyn FnMut() -> Box<dyn Server>,
    process: Option<Process>,
    now: At,
    sequence: u64,
    cut: Cut,
    /// Everything the machine did, with the time: to look at.
    pub(crate) trace: Vec<String>,
    is_traced: bool,
    pub(crate) tape: Option<Tape>,
    pub(crate) cancel_at: Option<At>,
    /// For how long we stood still while what began then was waited for.
    stood_still: (Option<At>, Duration),
}

struct Process {
    server: Box<dyn Server>,
    coming: BinaryHeap<Reverse<(At, u64, Act)>>,
    alive: bool,
    stdout_open: bool,
    written: Vec<u8>,
}

impl<'l> World<'l> {
    pub(crate) fn new(plan: Plan, launch: &'l mut dyn FnMut() -> Box<dyn Server>) -> World<'l> {
        let machine = Machine::new(Arc::new(plan), At::START);
        let (process, cut, trace) = (None, Cut::Whole, Vec::new());
        World {
            machine,
            launch,
            process,
            now: At::START,
            sequence: 0,
            cut,
            trace,
            is_traced: true,
            tape: None,
            cancel_at: None,
            stood_still: (None, Duration::ZERO),
        }
    }

    /// For who makes many and looks at none.
    pub(crate) fn untraced(mut self) -> Self {
        self.is_traced = false;
        self
    }

    pub(crate) fn taped(mut self) -> Self {
        self.tape = Some(Tape::new(Arc::default()));
        self
    }

    pub(crate) fn cut(mut self, cut: Cut) -> Self {
        self.cut = cut;
        self
    }

    /// Runs to the end, and returns what was seen.
    pub(crate) fn run(mut self) -> Observation {
        self.run_traced().0
    }

    pub(crate) fn run_traced(&mut self) -> (Observation, Vec<String>) {
        for _ in 0..200_000 {
            if let Some(observation) = self.settle() {
                return (observation, std::mem::take(&mut self.trace));
            }
            self.advance();
        }
        panic!("no end after 200,000 steps: {:#?}", &self.trace[self.trace.len().saturating_sub(20)..]);
    }

    /// Has the machine do what it wants to do now; what it saw, if that was all.
    pub(crate) fn settle(&mut self) -> Option<Observation> {
        while let Some(effect) = self.machine.poll() {
            if self.is_traced {
                self.trace.push(format!("{} {}", self.now, name(&effect)));
            }
            if let Some(tape) = &mut self.tape {
                tape.effect(self.now, &effect);
            }
            self.carry_out(effect);
        }
        self.machine.is_done().then(|| std::mem::replace(&mut self.machine, Machine::new(Arc::new(Plan::new()), At::START)).into_observation())
    }

    /// For who looks on.
    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// When something will happen next.
    pub(crate) fn next(&self) -> At {
        let next = [self.coming(), self.machine.deadline(), self.cancel_at].into_iter().flatten().min();
        next.unwrap_or_else(|| panic!("nothing will ever happen again: {:#?}", self.trace))
    }

    fn coming(&self) -> Option<At> {
        self.process.as_ref().and_then(|p| p.coming.peek()).map(|Reverse((at, ..))| *at)
    }

    /// It is `now`, perhaps later than what is next: what has come by now has come in time, but we were late
    /// to look.
    pub(crate) fn advance_late(&mut self, now: At) {
        let late = self.machine.deadline().map(|due| now - due).unwrap_or_default();
        self.now = self.now.max(now);
        if late <= ms(1000) {
            return self.advance();
        }
        while self.coming().is_some_and(|at| at <= now) {
            self.let_server_act();
        }
        self.tell(Input::Overslept(late));
        self.time_is_up();
    }

    /// It is `now`, on a clock that stood still with us: so much has just been lost.
    pub(crate) fn advance_after_standstill(&mut self, now: At, lost: Duration) {
        let since = self.machine.pending().map(|pending| pending.since);
        if self.stood_still.0 != since {
            self.stood_still = (since, Duration::ZERO);
        }
        self.stood_still.1 += if lost > ms(1000) { lost } else { Duration::ZERO };
        self.now = self.now.max(now);
        let is_up = self.coming().is_none_or(|at| at > now) && self.machine.deadline().is_some_and(|due| due <= now);
        if is_up && self.stood_still.1 > ms(1000) {
            self.tell(Input::Overslept(self.stood_still.1));
        }
        self.advance();
    }

    /// Somebody stops the probe.
    pub(crate) fn cancel(&mut self, now: At) {
        self.now = self.now.max(now);
        if let Some(tape) = &mut self.tape {
            tape.cancel(self.now);
        }
        self.machine.cancel(self.now);
    }

    /// Tells the machine, and the tape, what happens now.
    fn tell(&mut self, input: Input<'_>) {
        if let Some(tape) = &mut self.tape {
            tape.input(self.now, &input);
        }
        self.machine.handle(self.now, input);
    }

    fn time_is_up(&mut self) {
        if self.machine.deadline().is_some_and(|due| due <= self.now) {
            if let Some(tape) = &mut self.tape {
                tape.time_is_up(self.now);
            }
            self.machine.handle_timeout(self.now);
        }
    }

    /// Goes to whatever is next, and lets it happen.
    fn advance(&mut self) {
        let coming = self.coming();
        self.now = self.now.max(self.next());
        if self.cancel_at.is_some_and(|at| at <= self.now) {
            self.cancel_at = None;
            self.cancel(self.now);
        } else if coming.is_some_and(|at| at <= self.now) {
            self.let_server_act();
        } else {
            self.time_is_up();
        }
    }

    fn let_server_act(&mut self) {
        let Some(process) = &mut self.process else { return };
        let Some(Reverse((_, _, act))) = process.coming.pop() else { return };
        if !process.alive && !matches!(act, Act::Say(_) | Act::CloseStdout) {
            return;
        }
        match act {
            Act::Say(bytes) if process.stdout_open => {
                let chunk = match self.cut {
                    Cut::Whole => bytes.len().max(1),
                    Cut::Every(n) => n,
                };
                bytes.chunks(chunk).for_each(|chunk| self.tell(Input::Stdout(chunk)));
            }
            Act::Say(_) => {}
            Act::CloseStdout => {
                process.stdout_open = false;
                self.tell(Input::StdoutClosed);
            }
            Act::CloseStdin => self.tell(Input::StdinBroken),
            Act::Exit(code) => self.exit(Exit::Code(code)),
            Act::Crash(signal) => self.exit(Exit::Signal(signal)),
        }
    }

    fn exit(&mut self, exit: Exit) {
        let Some(process) = &mut self.process else { return };
        process.alive = false;
        let swept = process.server.leftovers();
        // What helpers hold stays open.
        let held = !(swept.in_group.is_empty() && swept.escaped.is_empty());
        if process.stdout_open && !held {
            process.stdout_open = false;
            self.tell(Input::StdoutClosed);
        }
        self.tell(Input::Exited(exit));
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Spawn => self.spawn(),
            Effect::Write(bytes) => self.write(&bytes),
            Effect::CloseStdin => self.provoke(|server, later| server.eof(later)),
            Effect::Terminate => self.provoke(|server, later| server.term(later)),
            Effect::Kill => self.provoke(|_, later| later.after(ms(0), Act::Crash(9))),
            Effect::Sweep => {
                let swept = self.process.take().map(|p| p.server.leftovers()).unwrap_or_default();
                self.tell(Input::Swept(swept, Usage::default()));
            }
        }
    }

    fn spawn(&mut self) {
        assert!(self.process.is_none(), "two processes at once");
        let server = (self.launch)();
        if let Some(error) = server.refuses_to_start() {
            self.tell(Input::SpawnFailed(error));
            return;
        }
        self.process = Some(Process { server, coming: BinaryHeap::new(), alive: true, stdout_open: true, written: Vec::new() });
        self.tell(Input::Spawned);
        self.provoke(|server, later| server.start(later));
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(process) = &mut self.process else { return };
        process.written.extend_from_slice(bytes);
        while let Some(end) = self.process.as_ref().and_then(|p| p.written.iter().position(|b| *b == b'\n')) {
            let Some(process) = &mut self.process else { return };
            let line: Vec<u8> = process.written.drain(..=end).collect();
            let line: Value = serde_json::from_slice(&line).expect("we send JSON lines");
            self.provoke(|server, later| server.line(&line, later));
        }
    }

    fn provoke(&mut self, f: impl FnOnce(&mut dyn Server, &mut Later)) {
        let Some(process) = &mut self.process else { return };
        if !process.alive {
            return;
        }
        let mut later = Later::default();
        f(process.server.as_mut(), &mut later);
        for (delay, act) in later.0 {
            self.sequence += 1;
            process.coming.push(Reverse((self.now + delay, self.sequence, act)));
        }
    }
}

fn name(effect: &Effect) -> String {
    match effect {
        Effect::Write(bytes) => {
            let message: Value = serde_json::from_slice(bytes).unwrap_or_default();
            message["method"].as_str().map_or_else(|| format!("reply to {}", message["id"]), str::to_owned)
        }
        Effect::Spawn | Effect::CloseStdin | Effect::Terminate | Effect::Kill | Effect::Sweep => format!("{effect:?}"),
    }
}

pub(crate) fn leftover(pid: u32) -> Leftover {
    Leftover { pid, name: "sleep".to_owned() }
}
