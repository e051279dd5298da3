//! The thread on which every server is launched.
//!
//! A launch stalls the thread that makes it until the new program runs (`vfork`): 0.2 ms alone,
//! tens of milliseconds on a busy host. So it has a thread and a runtime of its own, and a scrape
//! never waits for it. That nobody else launches anything has a second use: the children of the
//! main thread are the adopted orphans, and nothing else (see [`process`](crate::outside::process)).

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::LocalSet;
use tokio::time::sleep;

use super::ground::{Course, Ground, Host};
use super::known_pages::KnownPages;
use super::onlooker::Onlooker;
use crate::judge::{Accepted, Given, Listing, Reference, Report, Rules, Verdict, judge};
use crate::outside::clock;
use crate::outside::process::{GuardCommand, LaunchSpec, Launcher};
use crate::probe::{Machine, Plan, Recording, Reel, Tape};
use crate::words::{Redactor, ServerName};

/// How long a launch keeps others from starting, if no reply comes before. The start-up time of a
/// server is only honest while no more servers start than there are cores; one that hangs must not
/// keep the others waiting for it.
const LAUNCH_HOLD: Duration = Duration::from_millis(250);

/// How much of stdout is recorded of a probe that is looked at once and not kept, in bytes.
const RECORDED: usize = 256 << 10;

/// One probe to make.
pub struct Job {
    /// The server's name.
    pub name: ServerName,
    /// How to launch it.
    pub spec: Arc<LaunchSpec>,
    /// How to probe it.
    pub plan: Plan,
    /// How to judge it.
    pub rules: Arc<Rules>,
    /// What its lists are compared with, unless an errand says that.
    pub accepted: Option<Accepted>,
    /// Record it.
    pub record: bool,
    /// A probe has succeeded beside a live copy of the server before.
    pub coexists: bool,
    /// Who looks on.
    pub onlooker: Onlooker,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// What the lists held, if they were read to their end.
    pub listed: Option<Listing>,
    /// The recording, if it was asked for.
    pub recording: Option<Recording>,
    /// How it began and ended, of a probe that is one of many and that was neither well nor cancelled.
    pub reel: Option<Reel>,
}

/// What a probe that is one of many has, besides its job.
pub struct Errand {
    /// When this becomes true, or is dropped, the probe is cancelled; one that still waits for its turn
    /// launches nothing.
    pub stop: watch::Receiver<bool>,
    /// Called, on the launching thread, when it is the probe's turn to launch.
    pub launched: Box<dyn FnOnce() + Send>,
    /// Called there when the probe has ended: what its lists are compared with then. A person may have accepted others since
    /// it began.
    pub accepted: Box<dyn FnOnce() -> Option<Accepted> + Send>,
}

enum Message {
    Probe(Box<Job>, Option<Errand>, oneshot::Sender<Outcome>),
    /// Nobody watches this server any more.
    Forget(ServerName),
    /// Answered at once, if the loop goes round.
    AreYouThere(oneshot::Sender<()>),
}

/// The launching thread, from outside.
#[derive(Debug)]
pub struct Launchpad {
    messages: Option<mpsc::UnboundedSender<Message>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Launchpad {
    /// Starts the thread. When `stop` becomes true, every probe is cancelled.
    ///
    /// # Errors
    ///
    /// When the thread, its runtime or the guard cannot be had.
    pub fn start(guard: GuardCommand, stop: watch::Receiver<bool>) -> io::Result<Launchpad> {
        let (messages, inbox) = mpsc::unbounded_channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = thread::Builder::new().name("launchpad".to_owned()).spawn(move || run(guard, stop, inbox, &ready))?;
        is_ready.recv().map_err(|_| io::Error::other("the launching thread ended"))??;
        Ok(Launchpad { messages: Some(messages), thread: Some(thread) })
    }

    /// Makes a probe. `None` if the thread is gone.
    pub async fn probe(&self, job: Job) -> Option<Outcome> {
        self.make(job, None).await
    }

    /// Makes a probe that can be stopped by itself. It is ended politely then, as all of them are when
    /// the sidecar stops; what is recorded of it is no more than is worth a look. `None` if the thread is
    /// gone, or if it was stopped before it was its turn.
    pub async fn probe_on(&self, job: Job, errand: Errand) -> Option<Outcome> {
        self.make(job, Some(errand)).await
    }

    async fn make(&self, job: Job, errand: Option<Errand>) -> Option<Outcome> {
        let (answer, outcome) = oneshot::channel();
        self.messages.as_ref()?.send(Message::Probe(Box::new(job), errand, answer)).ok()?;
        outcome.await.ok()
    }

    /// Lets go of all that is kept of a server which nobody watches any more.
    pub fn forget(&self, name: &ServerName) {
        if let Some(messages) = &self.messages {
            let _ = messages.send(Message::Forget(name.clone()));
        }
    }

    /// Resolves when the thread's loop has gone round; never if it is gone.
    pub async fn is_alive(&self) -> bool {
        let (answer, alive) = oneshot::channel();
        let sent = self.messages.as_ref().is_some_and(|m| m.send(Message::AreYouThere(answer)).is_ok());
        sent && alive.await.is_ok()
    }
}

#[cfg(test)]
impl Launchpad {
    /// One that has no thread and launches nothing: it probes what is on `ground`, in the task that what is
    /// returned is run in. So many may be starting at the same time, each with one of these permits.
    pub(super) fn on<G: Ground + 'static>(
        ground: G,
        stop: watch::Receiver<bool>,
        launches: usize,
    ) -> (Launchpad, impl Future<Output = ()>, Arc<Semaphore>) {
        let (messages, inbox) = mpsc::unbounded_channel();
        let pad = Rc::new(Pad::new(ground, stop, launches));
        let permits = Arc::clone(&pad.permits);
        (Launchpad { messages: Some(messages), thread: None }, serve(pad, inbox), permits)
    }
}

impl Drop for Launchpad {
    /// Waits for the probes that are running.
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread: gets ready, says so, and makes probes until nobody can ask for one any more and the
/// last one is over.
fn run(guard: GuardCommand, stop: watch::Receiver<bool>, inbox: mpsc::UnboundedReceiver<Message>, ready: &std::sync::mpsc::Sender<io::Result<()>>) {
    let prepared = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| Launcher::start(guard).map(|launcher| (runtime, launcher)));
    match prepared {
        Ok((runtime, launcher)) => {
            let _ = ready.send(Ok(()));
            let local = LocalSet::new();
            let pad = Rc::new(Pad::new(Host::new(launcher), stop, cores()));
            local.spawn_local(serve(pad, inbox));
            runtime.block_on(local);
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    }
}

/// What the probes of the thread share.
struct Pad<G> {
    ground: G,
    stop: watch::Receiver<bool>,
    /// One for each server that may be starting at the same time.
    permits: Arc<Semaphore>,
    /// The servers' lists as they were last read. Never borrowed across a wait.
    pages: RefCell<KnownPages>,
}

async fn serve<G: Ground + 'static>(pad: Rc<Pad<G>>, mut inbox: mpsc::UnboundedReceiver<Message>) {
    while let Some(message) = inbox.recv().await {
        match message {
            Message::Probe(job, errand, answer) => {
                let pad = Rc::clone(&pad);
                tokio::task::spawn_local(async move {
                    if let Some(outcome) = pad.probe(*job, errand).await {
                        let _ = answer.send(outcome);
                    }
                });
            }
            Message::Forget(name) => pad.ground.forget(&name),
            Message::AreYouThere(answer) => {
                pad.ground.tidy();
                let _ = answer.send(());
            }
        }
    }
}

impl<G: Ground> Pad<G> {
    fn new(ground: G, stop: watch::Receiver<bool>, launches: usize) -> Pad<G> {
        Pad { ground, stop, permits: Arc::new(Semaphore::new(launches)), pages: RefCell::default() }
    }

    async fn probe(&self, job: Job, errand: Option<Errand>) -> Option<Outcome> {
        let is_one_of_many = errand.is_some();
        let (stop, mut permit, room, accepted) = match errand {
            None => {
                let accepted = job.accepted;
                (self.stop.clone(), self.turn().await, usize::MAX, Box::new(|| accepted) as Box<dyn FnOnce() -> _ + Send>)
            }
            Some(mut errand) => {
                let permit = tokio::select! {
                    biased;
                    _ = errand.stop.wait_for(|stop| *stop) => return None,
                    permit = self.turn() => permit,
                };
                (errand.launched)();
                (errand.stop, permit, RECORDED, errand.accepted)
            }
        };
        let kin = self.ground.before(&job.name, &job.spec);
        let started = clock::now();
        let plan = Arc::new(Plan { pages: self.pages.borrow().of(&job.name, &job.spec), ..job.plan });
        let Onlooker { mut waits, hears } = job.onlooker;
        let mut tape = (job.record || hears.is_some() || is_one_of_many)
            .then(|| Tape::with_room(Arc::clone(&plan.redactor), room).heard_by(hears, job.record).with_reel(is_one_of_many));
        let look = |machine: &Machine, now| {
            // Its start-up time is no longer at stake.
            if machine.has_reply() {
                permit.take();
            }
            if let (Some(waits), Some(pending)) = (&mut waits, machine.pending()) {
                waits(now, pending);
            }
        };
        let course = Course { name: &job.name, spec: &job.spec, plan: Arc::clone(&plan), stop, tape: tape.as_mut() };
        let (mut observation, kin) = self.ground.observe(course, look, kin).await;
        if let Some(launch) = observation.judged() {
            self.pages.borrow_mut().keep(&job.name, &job.spec, &launch.pages);
        }
        observation.peers = self.ground.peers(&job.name, kin, job.coexists).await;
        let (environment, accepted) = (job.spec.configured(&job.name), accepted());
        let reference = Reference { accepted: accepted.as_ref(), environment: &environment, redactor: &plan.redactor };
        let judged = |observation: &_| judge(&job.name, started.rfc3339(), observation, &job.rules, reference);
        let mut report = judged(&observation);
        if report.verdict == Verdict::Fail && !job.coexists {
            // A copy that was started since the last look may be why.
            observation.peers.live = self.ground.again(&job.name, started.up);
            report = judged(&observation);
        }
        report.given = Some(given(&job.spec, &plan.redactor));
        report.name_withheld(|name| std::env::var_os(name).is_some());
        let mut listed = observation.judged().and_then(|launch| Listing::of(launch, &environment));
        if let Some(listed) = &mut listed {
            // What is the same as before was looked through then.
            let known = accepted.as_ref().filter(|accepted| accepted.listing.digest == listed.digest);
            listed.secret = known.map_or_else(|| listed.secret_in(&plan.redactor), |accepted| accepted.listing.secret.clone());
        }
        let is_worth_a_look = !report.verdict.is_up() && !observation.cancelled;
        let reel = tape.as_mut().and_then(Tape::take_reel).filter(|_| is_worth_a_look);
        let peers = observation.peers;
        let recording =
            tape.filter(|_| job.record).map(|tape| Recording::new(report.server.clone(), report.started_at.clone(), Plan::clone(&plan), peers, tape));
        Some(Outcome { report, listed, recording, reel })
    }

    /// Waits for this probe's turn to launch.
    async fn turn(&self) -> Option<Held> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        Some(Held::new(permit))
    }
}

/// A permit that is given back when dropped, or when its time is up.
struct Held(tokio::task::JoinHandle<()>);

impl Held {
    fn new(permit: OwnedSemaphorePermit) -> Held {
        Held(tokio::task::spawn_local(async move {
            sleep(LAUNCH_HOLD).await;
            drop(permit);
        }))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What of a launch may be shown.
fn given(spec: &LaunchSpec, redactor: &Redactor) -> Given {
    Given {
        env_mode: spec.env_mode.as_str().to_owned(),
        env: spec.environment_names(),
        cwd: spec.cwd.as_ref().map(|dir| redactor.printable(&dir.to_string_lossy(), 300)),
        stdio: spec.stdio.as_str().to_owned(),
    }
}

/// The cores that we may use (affinity and cgroup quota).
fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
