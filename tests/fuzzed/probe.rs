//! The probe's machine against a server that does what the input says: it ends in time, it launches and sweeps in turn,
//! and its recording, replayed, shows the same.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use stdiowatch::judge::{Reference, Rules, judge};
use stdiowatch::probe::{
    Call, Effect, EraChoice, Excess, Exit, Input, LaunchError, Leftover, Limits, Machine, Observation, Peers, Plan, Recording, Swept, Taken, Tape,
    Times, Usage,
};
use stdiowatch::protocol::Era;
use stdiowatch::words::{At, ServerName};

use super::Bytes;

/// Who drives the machine tells it that it came too late if it is later than this.
const OVERSLEPT: Duration = Duration::from_secs(1);

/// The first byte says how the server is probed; the rest is what happens, one thing after the other.
pub fn run(data: &[u8]) {
    let mut script = Bytes::new(data);
    let plan = Arc::new(plan(script.byte()));
    let mut world = World {
        machine: Machine::new(Arc::clone(&plan), At::START),
        tape: Tape::new(Arc::default()),
        now: At::START,
        state: State::Nothing,
        asked: Vec::new(),
        launches: 0,
        stalled: Duration::ZERO,
        cancelled: false,
    };
    world.run(&mut script);
    let (machine, tape) = (world.machine, world.tape);
    let observation = machine.into_observation();
    is_sound(&observation, &plan, world.launches, world.stalled);
    let report = judge(&ServerName::new("a").expect("a name"), String::new(), &observation, &Rules::default(), Reference::nothing());
    serde_json::to_string(&report).expect("a report is JSON");
    let recording = Recording::new("a".to_owned(), String::new(), Plan::clone(&plan), Peers::default(), tape);
    let again = Recording::from_lines(&recording.to_lines()).expect("what was written is read").replay();
    assert_eq!(super::everything(&again), super::everything(&observation), "replayed");
}

fn plan(how: u8) -> Plan {
    let era = match how & 3 {
        0 => EraChoice::Auto { remembered: None },
        1 => EraChoice::Auto { remembered: Some(Era::Modern) },
        2 => EraChoice::Auto { remembered: Some(Era::Legacy) },
        _ => EraChoice::Fixed(Era::Legacy),
    };
    let call = Call { tool: "a".to_owned(), arguments: "{}".to_owned(), contains: Some("x".to_owned()), equals: Vec::new(), insist: false };
    let limits = Limits { line: 1000, output: 5000, pages: 3, stderr_tail: 100 };
    Plan { era, limits, call: (how & 4 > 0).then_some(call), list_twice: how & 8 > 0, ..Plan::new() }
}

fn is_sound(observation: &Observation, plan: &Plan, launches: usize, stalled: Duration) {
    let Times { total, .. } = plan.times;
    assert!(observation.total <= total + stalled + Duration::from_secs(5), "{:?}, of which {stalled:?} were ours", observation.total);
    assert!((1..=3).contains(&launches) && observation.launches.len() == launches, "{launches} launches");
    for launch in &observation.launches {
        assert!(launch.end.is_some() != launch.failure.is_some(), "{launch:?}");
        assert!(launch.seen.iter().all(|seen| seen.at >= launch.started && seen.times >= 1), "{launch:?}");
    }
}

/// What there is of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Nothing,
    Launching,
    Alive,
    Exited,
    Sweeping,
}

struct World {
    machine: Machine,
    tape: Tape,
    now: At,
    state: State,
    /// Requests without a reply, the last one last.
    asked: Vec<Value>,
    launches: usize,
    /// How long we did not come to look.
    stalled: Duration,
    cancelled: bool,
}

impl World {
    fn run(&mut self, script: &mut Bytes<'_>) {
        for _ in 0..20_000 {
            while let Some(effect) = self.machine.poll() {
                self.carry_out(&effect);
            }
            if self.machine.is_done() {
                assert_eq!(self.state, State::Nothing, "it ends with nothing left");
                return;
            }
            self.happen(script);
        }
        panic!("no end: {:?} {:?}", self.state, self.machine.deadline());
    }

    fn carry_out(&mut self, effect: &Effect) {
        self.tape.effect(self.now, effect);
        match effect {
            Effect::Spawn => {
                assert_eq!(self.state, State::Nothing, "one process at a time");
                (self.state, self.launches) = (State::Launching, self.launches + 1);
                self.asked.clear();
            }
            Effect::Write(bytes) => {
                let message: Value = serde_json::from_slice(bytes).expect("we send JSON, a line each");
                if message.get("id").is_some() && message.get("method").is_some() {
                    self.asked.push(message);
                }
            }
            Effect::CloseStdin | Effect::Terminate => {}
            // Nobody survives this.
            Effect::Kill if self.state == State::Alive => self.exit(Exit::Signal(9)),
            Effect::Kill => {}
            Effect::Sweep => {
                assert!(matches!(self.state, State::Exited | State::Alive), "{:?} is swept", self.state);
                self.state = State::Sweeping;
            }
        }
    }

    /// What comes next: what the script says, or the time that the machine waits for.
    fn happen(&mut self, script: &mut Bytes<'_>) {
        match self.state {
            State::Nothing => panic!("nothing is launched, nothing is over"),
            State::Launching if script.byte() == 255 => {
                self.state = State::Nothing;
                self.tell(Input::SpawnFailed(LaunchError::NotFound { command: script.text(), searched: None }));
            }
            State::Launching => {
                self.state = State::Alive;
                self.tell(Input::Spawned);
            }
            State::Sweeping => {
                self.state = State::Nothing;
                let in_group = if script.byte() == 255 { vec![Leftover { pid: 7, name: "sleep".to_owned() }] } else { Vec::new() };
                self.tell(Input::Swept(Swept { in_group, ..Swept::default() }, Usage::default()));
            }
            State::Alive | State::Exited if script.is_empty() => self.wait(),
            State::Alive | State::Exited => self.act(script),
        }
    }

    fn act(&mut self, script: &mut Bytes<'_>) {
        let alive = self.state == State::Alive;
        match script.byte() % 16 {
            0 => self.wait(),
            1 => self.pass(Duration::from_millis(u64::from(script.byte()))),
            2 => self.pass(Duration::from_millis(u64::from(script.byte()) * 200)),
            said @ 3..=8 => self.say(said, script),
            9 => self.tell(Input::StdoutClosed),
            10 => self.tell(Input::StdinBroken),
            11 if alive => {
                let code = script.byte();
                self.exit(if code > 128 { Exit::Signal(i32::from(code - 128)) } else { Exit::Code(i32::from(code)) });
            }
            12 => self.oversleep(Duration::from_millis(u64::from(script.byte()) * 100), script),
            13 if alive => self.tell(Input::TookTooMuch(Excess { of: Taken::Memory, figure: 2, limit: 1, processes: 1 })),
            14 => self.tell(Input::Stderr(script.piece())),
            15 if !self.cancelled && script.byte() > 128 => {
                self.cancelled = true;
                self.tape.cancel(self.now);
                self.machine.cancel(self.now);
            }
            15 => self.tell(Input::BrowserCalled { at: self.now, origin: "https://a".to_owned() }),
            _ => {}
        }
    }

    /// What the server says on stdout, in one of six ways.
    fn say(&mut self, how: u8, script: &mut Bytes<'_>) {
        match how {
            3 => self.tell(Input::Stdout(script.piece())),
            4 => self.tell(Input::Stdout(b"\n")),
            7 => {
                let result = serde_json::from_slice(script.piece()).unwrap_or(Value::Null);
                self.reply(&|request| json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
            }
            8 => {
                let code = -32_000 - i32::from(script.byte());
                self.reply(&|request| json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": "no" } }));
            }
            _ => self.reply(&right),
        }
    }

    fn reply(&mut self, made: &dyn Fn(&Value) -> Value) {
        if let Some(request) = self.asked.pop() {
            let line = format!("{}\n", made(&request));
            self.tell(Input::Stdout(line.as_bytes()));
        }
    }

    fn exit(&mut self, exit: Exit) {
        self.state = State::Exited;
        self.tell(Input::Exited(exit));
    }

    /// Lets time go by, but not past what the machine waits for.
    fn pass(&mut self, time: Duration) {
        let then = self.now + time;
        match self.machine.deadline() {
            Some(due) if due <= then => self.wait(),
            Some(_) | None => self.now = then,
        }
    }

    fn wait(&mut self) {
        let due = self.machine.deadline().unwrap_or_else(|| panic!("nothing will ever happen again: {:?}", self.state));
        self.now = self.now.max(due);
        self.time_is_up();
    }

    fn time_is_up(&mut self) {
        if self.machine.deadline().is_some_and(|due| due <= self.now) {
            self.tape.time_is_up(self.now);
            self.machine.handle_timeout(self.now);
        }
    }

    /// We come to look this long after what the machine waits for was due. What has come by then has come in time.
    fn oversleep(&mut self, late: Duration, script: &mut Bytes<'_>) {
        let Some(due) = self.machine.deadline() else { return };
        self.stalled += late;
        self.now = self.now.max(due + late);
        for _ in 0..script.byte() % 4 {
            let said = 3 + script.byte() % 6;
            self.say(said, script);
        }
        if late > OVERSLEPT {
            self.tell(Input::Overslept(late));
        }
        self.time_is_up();
    }

    fn tell(&mut self, input: Input<'_>) {
        self.tape.input(self.now, &input);
        self.machine.handle(self.now, input);
    }
}

/// What a sound server answers.
fn right(request: &Value) -> Value {
    let tool = json!({ "name": "a", "description": "d", "inputSchema": { "type": "object" } });
    let result = match request["method"].as_str() {
        Some("initialize") => {
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {}, "prompts": {} }, "serverInfo": { "name": "s", "version": "1" } })
        }
        Some("server/discover") => {
            json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "public", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
        }
        Some("tools/list") => json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "public", "tools": [tool] }),
        Some("tools/call") => json!({ "content": [{ "type": "text", "text": "x" }] }),
        _ => json!({ "prompts": [] }),
    };
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}
