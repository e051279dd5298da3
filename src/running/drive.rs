//! One probe: the machine, and a process for it to work on.
//!
//! This is the only place where the two meet. It carries out what the machine says, tells it what
//! happened, and decides nothing.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::room::{Places, ROOM};
use super::stopwatch::{OVERSLEPT, Stopwatch};
use crate::outside::process::{Child, Kin, LaunchSpec, Launcher, Resources, Signal};
use crate::probe::{Effect, Excess, Input, Machine, Observation, Plan, Swept, Tape, Usage};
use crate::words::At;

/// How much is read from stdout at once. A pipe holds no more.
const STDOUT_CHUNK: usize = 64 << 10;
const STDERR_CHUNK: usize = 8 << 10;
/// A probe that takes longer than this is worth a look at whether the host was busy.
const SLOW: Duration = Duration::from_secs(1);
/// How often a server is looked at that may take only so much. What it can take between two looks it can
/// have too much.
const WATCH: Duration = Duration::from_millis(50);
/// The shortest time between two looks, where it shows that it has come to something.
const WATCH_AGAIN: Duration = Duration::from_millis(10);
/// Reads after an exit: a pipe's content several times over. Who holds the pipe may go on writing.
const DRAIN_READS: usize = 64;

/// Probes the server `spec` by `plan`. When `stop` becomes true, the probe is cancelled: the server
/// is ended politely, and the observation says so. `look` is called each time before something is
/// waited for, with the machine and the time. What happens is written on `tape`, if there is one.
/// `kin` sees what the launched trees run as.
pub async fn drive(
    launcher: &Launcher,
    plan: Arc<Plan>,
    spec: &LaunchSpec,
    mut stop: watch::Receiver<bool>,
    tape: Option<&mut Tape>,
    mut look: impl FnMut(&Machine, At),
    kin: &mut Kin,
) -> Observation {
    let mut probe = Probe {
        stopwatch: Stopwatch::start(),
        machine: Machine::new(Arc::clone(&plan), At::START),
        process: None,
        tape,
        plan,
        places: ROOM.places(),
        full: None,
        waited: Waited::default(),
    };
    let mut stdout = vec![0; STDOUT_CHUNK];
    let mut stderr = vec![0; STDERR_CHUNK];
    let mut stopping = false;
    loop {
        while let Some(effect) = probe.machine.poll() {
            probe.carry_out(effect, launcher, spec, kin).await;
        }
        probe.with_process(Process::flush);
        if probe.machine.is_done() {
            return probe.machine.into_observation();
        }
        let now = probe.now();
        look(&probe.machine, now);
        let has_room = probe.has_room();
        let wake = probe.stopwatch.wake(probe.machine.deadline());
        let Some(process) = &mut probe.process else { continue };
        let look = process.watched.as_ref().map(Watched::due);
        let happened = tokio::select! {
            biased;
            () = sleep_until(wake) => Happened::Due,
            _ = stop.wait_for(|stop| *stop), if !stopping => Happened::Stop,
            () = sleep_until(look.unwrap_or(wake)), if look.is_some() => Happened::Watch,
            () = probe.places.wait(), if !has_room => Happened::Nothing,
            happened = process.next(&mut stdout, &mut stderr, probe.machine.wants_stdout(), has_room) => happened,
        };
        let spoke = matches!(happened, Happened::Stdout(_) | Happened::Stderr(_));
        match happened {
            Happened::Due => {
                if !probe.is_time_up() {
                    continue;
                }
                // What has come by now has come in time, even if we were kept from reading it.
                if has_room {
                    probe.drain(&mut stdout, &mut stderr);
                    probe.see_exit(&mut stdout, &mut stderr);
                }
                let (still, kept) = (probe.stood_still(), probe.kept_waiting());
                if (still > OVERSLEPT || kept > OVERSLEPT || !has_room) && probe.is_time_up() {
                    probe.tell(Input::Overslept(still + kept));
                }
                probe.time_is_up();
            }
            Happened::Stop => {
                stopping = true;
                probe.cancel();
            }
            Happened::Watch => probe.watch(),
            Happened::Stdout(length) => {
                // Before that, so that it is told of the phase in which it was so.
                probe.watch();
                probe.tell(Input::Stdout(&stdout[..length]));
            }
            Happened::Stderr(length) => probe.tell(Input::Stderr(&stderr[..length])),
            Happened::StdoutClosed => probe.tell(Input::StdoutClosed),
            Happened::StdinBroken => probe.tell(Input::StdinBroken),
            Happened::Exited(exit) => {
                probe.drain(&mut stdout, &mut stderr);
                probe.tell(Input::Exited(exit));
            }
            Happened::Nothing => {}
        }
        // Only now, so that no time that was noted has this in it.
        if spoke && let Some(process) = &probe.process {
            kin.look(&process.child);
        }
    }
}

/// What a process did, or what is due.
enum Happened {
    /// Something may be.
    Due,
    Stop,
    Watch,
    Stdout(usize),
    Stderr(usize),
    StdoutClosed,
    StdinBroken,
    Exited(crate::probe::Exit),
    Nothing,
}

struct Probe<'t> {
    stopwatch: Stopwatch,
    machine: Machine,
    process: Option<Process>,
    tape: Option<&'t mut Tape>,
    plan: Arc<Plan>,
    places: Places<'static>,
    /// There is no place for what comes next, since then.
    full: Option<Instant>,
    waited: Waited,
}

/// How long a server was not read because there was no room, and how long we stood still.
#[derive(Default)]
struct Waited {
    /// In this probe, up to what is waited for now.
    before: Duration,
    /// Since then.
    now: Duration,
    /// For how long we had stood still before that.
    stood_still: Duration,
    /// When that began to be waited for.
    since: Option<At>,
}

impl Probe<'_> {
    /// Whether more of stdout may be read: there is a place for what is held. A server that is told to go needs none: what is
    /// long is not held any more, and its end is to be seen when it comes.
    fn has_room(&mut self) -> bool {
        let (held, is_leaving) = (self.machine.held(), self.machine.is_leaving());
        let since = self.machine.pending().map(|pending| pending.since);
        if std::mem::replace(&mut self.waited.since, since) != since {
            self.waited.before += std::mem::take(&mut self.waited.now);
            self.waited.stood_still = self.stopwatch.stood_still();
        }
        if is_leaving {
            self.places.give_back(held);
        }
        let has_room = is_leaving || self.places.suffice(held);
        if has_room {
            self.waited.now += self.full.take().map_or(Duration::ZERO, |since| since.elapsed());
        } else {
            self.full.get_or_insert_with(Instant::now);
        }
        has_room
    }

    /// How much of the time that is up now the server was not read for: of that for its answer, or, where that of the whole
    /// probe is up, of all of it.
    fn kept_waiting(&mut self) -> Duration {
        let at = self.now().elapsed();
        let (times, Waited { before, now, .. }) = (&self.plan.times, &self.waited);
        let now = *now + self.full.map_or(Duration::ZERO, |since| since.elapsed());
        let ends = times.total.saturating_sub(times.eof_grace + times.term_grace);
        if at >= ends { *before + now } else { now }
    }

    /// For how long we stood still in what is waited for now.
    fn stood_still(&self) -> Duration {
        self.stopwatch.stood_still() - self.waited.stood_still
    }

    /// Whether what is waited for has had its time.
    fn is_time_up(&mut self) -> bool {
        let now = self.now();
        self.machine.deadline().is_some_and(|due| due <= now)
    }

    /// Tells the machine, and the tape.
    fn tell(&mut self, input: Input<'_>) {
        let now = self.now();
        if let Some(tape) = &mut self.tape {
            tape.input(now, &input);
        }
        self.machine.handle(now, input);
    }

    /// Tells the machine that its time is up, unless what it waited for has come by now.
    fn time_is_up(&mut self) {
        let now = self.now();
        if self.machine.deadline().is_some_and(|due| due <= now) {
            if let Some(tape) = &mut self.tape {
                tape.time_is_up(now);
            }
            self.machine.handle_timeout(now);
        }
    }

    fn cancel(&mut self) {
        let now = self.now();
        if let Some(tape) = &mut self.tape {
            tape.cancel(now);
        }
        self.machine.cancel(now);
    }

    /// Looks whether the server has more of something than it may, unless that was just looked at.
    fn watch(&mut self) {
        if let Some(excess) = self.process.as_mut().and_then(Process::excess) {
            self.tell(Input::TookTooMuch(excess));
        }
    }

    fn now(&mut self) -> At {
        self.stopwatch.now()
    }

    async fn carry_out(&mut self, effect: Effect, launcher: &Launcher, spec: &LaunchSpec, kin: &mut Kin) {
        let now = self.now();
        if let Some(tape) = &mut self.tape {
            tape.effect(now, &effect);
        }
        if !matches!(effect, Effect::Write(_)) {
            self.with_process(Process::flush);
        }
        match effect {
            Effect::Spawn => {
                let launched = launcher.launch(spec);
                // A file that is slow to be read is nobody's standstill.
                self.stopwatch.worked();
                match launched {
                    Ok(child) => {
                        // Before that: how long it takes to look is no part of the launch.
                        self.tell(Input::Spawned);
                        kin.launched(&child);
                        self.process = Some(Process::new(child, spec.resources));
                    }
                    Err(error) => self.tell(Input::SpawnFailed(error.masked(&self.plan.redactor))),
                }
            }
            Effect::Write(bytes) => self.with_process(|process| process.write(bytes)),
            Effect::CloseStdin => {
                self.watch();
                let measure = self.plan.measure;
                self.with_process(|process| {
                    kin.last_look(&process.child);
                    process.close_stdin(measure, now.elapsed() > SLOW);
                });
            }
            Effect::Terminate => self.with_process(|process| process.signal(Signal::Term)),
            Effect::Kill => self.with_process(|process| process.signal(Signal::Kill)),
            Effect::Sweep => {
                if let Some(process) = self.process.take() {
                    let (queued, ended) = (process.queued, process.took_too_much);
                    let now = self.now();
                    for call in process.child.browser_calls() {
                        let at = At::after(now.elapsed().saturating_sub(call.ago));
                        self.tell(Input::BrowserCalled { at, origin: call.origin });
                    }
                    let grace = self.plan.times.term_grace;
                    let sweep = async {
                        let containers = process.child.clear_container(launcher, spec).await;
                        let (swept, usage) = if ended { process.child.end().await } else { process.child.sweep(grace).await };
                        (containers, swept, usage)
                    };
                    let (containers, swept, usage) = self.stopwatch.during(sweep).await;
                    let swept = Swept { containers, ..swept };
                    let usage = Usage { queued, ..usage };
                    self.tell(Input::Swept(swept, usage));
                }
            }
        }
    }

    /// Tells of an exit, if there has been one.
    fn see_exit(&mut self, stdout: &mut [u8], stderr: &mut [u8]) {
        let Some(process) = self.process.as_mut().filter(|process| process.running) else { return };
        if let Some(exit) = process.child.seen_dead() {
            process.running = false;
            self.drain(stdout, stderr);
            self.tell(Input::Exited(exit));
        }
    }

    fn with_process(&mut self, f: impl FnOnce(&mut Process)) {
        if let Some(process) = &mut self.process {
            f(process);
        }
    }

    /// Reads what the process wrote before it exited. What is still open afterwards is held by
    /// somebody else: a process' descriptors are closed before its exit is seen.
    fn drain(&mut self, stdout: &mut [u8], stderr: &mut [u8]) {
        for _ in 0..DRAIN_READS {
            let Some(process) = self.process.as_mut().filter(|p| p.stderr_open) else { break };
            match process.child.try_read_stderr(stderr) {
                Ok(0) => process.stderr_open = false,
                Ok(length) => self.tell(Input::Stderr(&stderr[..length])),
                Err(_) => break,
            }
        }
        for _ in 0..DRAIN_READS {
            let wanted = self.machine.wants_stdout();
            let Some(process) = self.process.as_mut().filter(|p| p.stdout_open && wanted) else { break };
            match process.child.try_read_stdout(stdout) {
                Ok(length @ 1..) => self.tell(Input::Stdout(&stdout[..length])),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(0) | Err(_) => {
                    process.stdout_open = false;
                    self.tell(Input::StdoutClosed);
                }
            }
        }
    }
}

/// A launched process, and how far its pipes are.
struct Process {
    child: Child,
    unwritten: Vec<u8>,
    /// Some of it has not been tried yet.
    fresh: bool,
    stdin_open: bool,
    stdout_open: bool,
    stderr_open: bool,
    running: bool,
    /// How long the server had waited for a core when its stdin was closed.
    queued: Duration,
    /// What it has to be looked at for; not any more when it has had too much of it.
    watched: Option<Watched>,
    took_too_much: bool,
}

/// A server that may take only so much of what the kernel does not limit.
struct Watched {
    limits: Resources,
    launched: Instant,
    last: Option<Instant>,
}

impl Watched {
    fn due(&self) -> Instant {
        self.last.unwrap_or(self.launched) + WATCH
    }

    fn was_just_looked_at(&self) -> bool {
        self.last.is_some_and(|last| last.elapsed() < WATCH_AGAIN)
    }
}

impl Process {
    fn new(child: Child, limits: Resources) -> Process {
        Process {
            child,
            unwritten: Vec::new(),
            fresh: false,
            stdin_open: true,
            stdout_open: true,
            stderr_open: true,
            running: true,
            queued: Duration::ZERO,
            watched: limits.are_watched().then(|| Watched { limits, launched: Instant::now(), last: None }),
            took_too_much: false,
        }
    }

    /// What it has too much of, said once; `None` where it was looked at just before.
    fn excess(&mut self) -> Option<Excess> {
        let watched = self.watched.as_mut().filter(|watched| !watched.was_just_looked_at())?;
        let excess = self.child.excess(&watched.limits);
        watched.last = Some(Instant::now());
        if excess.is_some() {
            (self.watched, self.took_too_much) = (None, true);
        }
        excess
    }

    /// Waits for the next thing to happen. What there is no room for is not read, and its writer's end not seen before it is.
    async fn next(&mut self, stdout: &mut [u8], stderr: &mut [u8], wants_stdout: bool, has_room: bool) -> Happened {
        let Process { child, unwritten, .. } = self;
        let happened = tokio::select! {
            biased;
            read = child.read_stdout(stdout), if self.stdout_open && wants_stdout && has_room => match read {
                Ok(length @ 1..) => Happened::Stdout(length),
                // A socket whose other end died with bytes unread says so by an error.
                Ok(0) | Err(_) => Happened::StdoutClosed,
            },
            read = child.read_stderr(stderr), if self.stderr_open => match read {
                Ok(length @ 1..) => Happened::Stderr(length),
                Ok(0) | Err(_) => {
                    self.stderr_open = false;
                    Happened::Nothing
                }
            },
            written = child.write_stdin(unwritten), if self.stdin_open && !unwritten.is_empty() => match written {
                Ok(length) => {
                    unwritten.drain(..length);
                    Happened::Nothing
                }
                Err(_) => Happened::StdinBroken,
            },
            () = child.stdin_broken(), if self.stdin_open => Happened::StdinBroken,
            exit = child.exited(), if self.running && has_room => Happened::Exited(exit),
            else => std::future::pending().await,
        };
        match happened {
            Happened::StdoutClosed => self.stdout_open = false,
            Happened::StdinBroken => self.stdin_open = false,
            Happened::Exited(_) => self.running = false,
            Happened::Due | Happened::Stop | Happened::Watch | Happened::Stdout(_) | Happened::Stderr(_) | Happened::Nothing => {}
        }
        happened
    }

    /// To be written with what comes next: each write wakes the server.
    fn write(&mut self, bytes: Vec<u8>) {
        if self.unwritten.is_empty() {
            self.unwritten = bytes;
        } else {
            self.unwritten.extend_from_slice(&bytes);
        }
        self.fresh = true;
    }

    /// Writes at once what is new and fits: what is closed next must not have overtaken it.
    fn flush(&mut self) {
        if !std::mem::take(&mut self.fresh) {
            return;
        }
        while self.stdin_open && !self.unwritten.is_empty() {
            match now_or_never(self.child.write_stdin(&self.unwritten)) {
                Some(Ok(length)) => {
                    self.unwritten.drain(..length);
                }
                // The server does not read, or is gone: waiting for it finds out which.
                Some(Err(_)) | None => return,
            }
        }
    }

    /// Ends the server's input. Requests that it has not read die with it.
    fn close_stdin(&mut self, measure: bool, slow: bool) {
        if slow || measure && !self.took_too_much {
            self.child.measure();
        } else {
            self.child.note();
        }
        if slow {
            self.queued = self.child.queued();
        }
        self.stdin_open = false;
        self.unwritten = Vec::new();
        self.child.close_stdin();
    }

    fn signal(&mut self, signal: Signal) {
        // The group may be gone already: then there is nothing left to signal.
        let _ = self.child.signal_group(signal);
    }
}

/// What `future` has to say without waiting.
fn now_or_never<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
