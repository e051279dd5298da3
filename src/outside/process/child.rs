//! A launched server: its three streams and its end, all to be waited for in one `select!`.

use std::future::{pending, poll_fn};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::Shutdown;
use tokio::io::Interest;
use tokio::time::{Sleep, sleep};

use super::browser::{BrowserCall, Calls};
use super::container::{Container, Ended};
use super::launch::Launcher;
use super::leader::Signal;
use super::private_tmp::PrivateTmp;
use super::spec::{LaunchSpec, Resources, StdioKind};
use super::stdio::Watched;
use super::sweep::Tree;
use crate::probe::{Excess, Exit, LeftContainer, Swept, Usage};

/// A launched server. Every wait can be dropped and begun again without losing anything; all of them
/// belong in one task.
///
/// To be ended by [`sweep`](Child::sweep). Dropped without it, its whole tree is killed and reaped on
/// the spot, which may stall the thread for some milliseconds.
pub struct Child {
    stdin: Stdin,
    stdout: Watched,
    stderr: Watched,
    quick: Quick,
    tree: Tree,
    /// What it runs, if it is an engine's client.
    container: Option<Container>,
    /// Where its calls for a browser arrive.
    calls: Option<Arc<Calls>>,
    /// We have sent it a signal.
    signalled: AtomicBool,
    /// For its temporary files: gone when all of its tree is, so last.
    tmp: Option<PrivateTmp>,
}

impl Child {
    pub(super) fn new(
        ours: [OwnedFd; 3],
        kind: StdioKind,
        mut tree: Tree,
        container: Option<Container>,
        calls: Option<Arc<Calls>>,
        tmp: Option<PrivateTmp>,
    ) -> io::Result<Child> {
        let [stdin, stdout, stderr] = ours;
        let (stdout, stderr) = (Watched::new(stdout), Watched::new(stderr));
        stdout.watch(Interest::READABLE)?;
        if container.is_some() {
            tree.lingers();
        }
        let signalled = AtomicBool::new(false);
        Ok(Child { stdin: Stdin::new(stdin, kind), stdout, stderr, quick: Quick::new(), tree, container, calls, signalled, tmp })
    }

    /// The pid, which is the number of its process group too.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.tree.leader().id()
    }

    /// Reads from stdout; 0 is its end.
    ///
    /// # Errors
    ///
    /// As read(2).
    pub async fn read_stdout(&self, into: &mut [u8]) -> io::Result<usize> {
        self.quick.noted(self.stdout.read(into).await)
    }

    /// Reads from stderr; 0 is its end. Begins [a moment](LATE) after the launch.
    ///
    /// # Errors
    ///
    /// As read(2).
    pub async fn read_stderr(&self, into: &mut [u8]) -> io::Result<usize> {
        self.quick.over().await;
        self.quick.noted(self.stderr.read(into).await)
    }

    /// Reads what is in stdout at this moment.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where that is nothing; else as read(2).
    pub fn try_read_stdout(&self, into: &mut [u8]) -> io::Result<usize> {
        self.stdout.try_read(into)
    }

    /// Reads what is in stderr at this moment.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where that is nothing; else as read(2).
    pub fn try_read_stderr(&self, into: &mut [u8]) -> io::Result<usize> {
        self.stderr.try_read(into)
    }

    /// Writes to stdin what fits; says how much that was.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` where nobody reads it any more, or it was closed; else as write(2).
    pub async fn write_stdin(&self, bytes: &[u8]) -> io::Result<usize> {
        self.quick.noted(self.stdin.write(bytes).await)
    }

    /// Waits until nobody can read stdin any more. Never comes after [`close_stdin`](Child::close_stdin).
    pub async fn stdin_broken(&self) {
        self.quick.over().await;
        self.stdin.broken().await;
        self.quick.end();
    }

    /// Ends the server's input.
    pub fn close_stdin(&mut self) {
        self.stdin.close();
    }

    /// Waits for the end of the launched process. It is left a zombie, so that its pid and its group
    /// stay its own; its streams may have more to read, and be held open by others.
    pub async fn exited(&self) -> Exit {
        self.quick.over().await;
        if self.quick.ended.swap(false, Relaxed)
            && let Some(exit) = self.dying()
        {
            return exit;
        }
        self.tree.guard();
        self.tree.leader().exited().await
    }

    /// The end of the launched process, if that has come by now, whether or not the runtime has heard of it.
    #[must_use]
    pub fn seen_dead(&self) -> Option<Exit> {
        self.tree.leader().seen_dead()
    }

    /// The end of a process whose streams have just ended. Woken by these we run where it ran, and it
    /// is dead as soon as it has run on: to let it is cheaper than to have the runtime wait.
    fn dying(&self) -> Option<Exit> {
        for _ in 0..2 {
            if let Some(exit) = self.tree.leader().seen_dead() {
                return Some(exit);
            }
            rustix::thread::sched_yield();
        }
        None
    }

    /// Signals the server's process group.
    ///
    /// # Errors
    ///
    /// As kill(2): `PermissionDenied` where all of it has become another user's.
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        self.signalled.store(true, Relaxed);
        Ok(self.tree.leader().signal_group(signal)?)
    }

    /// Looks at the memory of the server and its descendants, for [`Usage::max_rss`], and notes who
    /// these are. To be called while they live, so before stdin is closed. Costs some 40 µs for each (the
    /// kernel makes up `/proc/PID` anew for each pid), half of what a whole short probe costs.
    pub fn measure(&self) {
        self.tree.measure();
    }

    /// Notes who the server's descendants are, where those that hide (by another environment, in another
    /// group) could not be told from somebody else's otherwise. To be called before stdin is closed, unless it
    /// is [measured](Child::measure).
    pub fn note(&self) {
        self.tree.note();
    }

    /// What of `limits` the server and its descendants have too much of at this moment. Costs some 60 µs
    /// for each of them.
    #[must_use]
    pub fn excess(&self, limits: &Resources) -> Option<Excess> {
        self.tree.excess(limits)
    }

    /// How long the server had to wait for a core so far: the one of its processes that
    /// [`measure`](Child::measure) saw, that waited longest. Zero where the kernel does not tell.
    #[must_use]
    pub fn queued(&self) -> Duration {
        self.tree.queued()
    }

    /// The calls for a browser that it has made and that were not asked for yet.
    #[must_use]
    pub fn browser_calls(&self) -> Vec<BrowserCall> {
        self.calls.as_ref().map(|calls| calls.read(self.tree.mark())).unwrap_or_default()
    }

    /// Where the launched process is an engine's client (`docker run`): removes what its container left,
    /// and says what that was. To be called before [`sweep`](Child::sweep), with what it was launched by;
    /// a client that lives is killed first.
    ///
    /// Takes no time for other processes, nor where nothing can be left; else one or more runs of the
    /// client's program.
    pub async fn clear_container(&self, launcher: &Launcher, spec: &LaunchSpec) -> Vec<LeftContainer> {
        let Some(container) = &self.container else { return Vec::new() };
        self.tree.end_leader().await;
        let ended = Ended { exit: self.tree.leader().seen_dead(), signalled: self.signalled.load(Relaxed) };
        container.clear(launcher, spec, ended).await
    }

    /// Ends whatever has outlived the launched process, reaps all of it, and says what that was; or lets
    /// it live on where its [`Leftovers`](super::Leftovers) are only told. A launched process that lives is
    /// killed first.
    ///
    /// Takes no time where nothing is left; else up to 25 ms for what is just ending, `term_grace` (1 s
    /// at the most) from SIGTERM to SIGKILL, and 2 s after that.
    pub async fn sweep(self, term_grace: Duration) -> (Swept, Usage) {
        let (tree, tmp) = self.into_tree();
        let swept = tree.sweep(term_grace).await;
        remove(tmp).await;
        swept
    }

    /// Kills the launched process and all of its tree: nothing is asked to end before, nor spared.
    pub async fn end(self) -> (Swept, Usage) {
        let (tree, tmp) = self.into_tree();
        let swept = tree.end().await;
        remove(tmp).await;
        swept
    }

    /// Closes the streams.
    fn into_tree(self) -> (Tree, Option<PrivateTmp>) {
        (self.tree, self.tmp)
    }
}

/// Removes it on another thread: there may be a million files in it, and other servers are waiting for this one.
async fn remove(tmp: Option<PrivateTmp>) {
    if let Some(tmp) = tmp {
        // Where the runtime is being shut down it is removed by being dropped.
        let _ = tokio::task::spawn_blocking(move || tmp.remove()).await;
    }
}

/// How long a server is given to be quick: to answer and be gone without anything but its stdout
/// having been watched. Then its exit, its stderr and the other end of its stdin are watched too, or as
/// soon as one of its streams ends, by which most exits are seen. A server that fills the 64 KiB of its
/// stderr meanwhile waits for the rest of it.
///
/// What is saved is a third of what a probe of a quick server costs us.
const LATE: Duration = Duration::from_millis(20);

/// Whether a server may still be quick.
struct Quick {
    over: AtomicBool,
    /// A stream has come to its end, and nobody has looked yet whether the process has.
    ended: AtomicBool,
    /// One timer for all waits, however often these are begun again.
    timer: Mutex<Pin<Box<Sleep>>>,
}

impl Quick {
    fn new() -> Quick {
        Quick { over: AtomicBool::new(false), ended: AtomicBool::new(false), timer: Mutex::new(Box::pin(sleep(LATE))) }
    }

    /// Waits until it is not quick any more.
    async fn over(&self) {
        poll_fn(|context| {
            if self.over.load(Relaxed) || self.timer.lock().as_mut().poll(context).is_ready() {
                self.over.store(true, Relaxed);
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }

    /// Notes that a stream has come to its end.
    fn end(&self) {
        self.ended.store(true, Relaxed);
        self.over.store(true, Relaxed);
    }

    /// Notes the end of a stream, if `done` is one.
    fn noted(&self, done: io::Result<usize>) -> io::Result<usize> {
        if !matches!(done, Ok(1..)) {
            self.end();
        }
        done
    }
}

/// The writing end of a server's stdin.
struct Stdin {
    kind: StdioKind,
    /// Watched for its end only: were it watched for room too, each read by the server would wake us.
    stream: Option<Watched>,
    /// The same, when its writing direction has been shut down.
    shut: Option<Watched>,
    /// A second descriptor of it, watched for room: made when it has been full once.
    room: OnceLock<Watched>,
}

impl Stdin {
    fn new(stream: OwnedFd, kind: StdioKind) -> Stdin {
        Stdin { kind, stream: Some(Watched::new(stream)), shut: None, room: OnceLock::new() }
    }

    async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let Some(stream) = &self.stream else { return Err(Errno::PIPE.into()) };
        match rustix::io::retry_on_intr(|| rustix::io::write(stream.fd(), bytes)) {
            Err(Errno::AGAIN) => {}
            written => return Ok(written?),
        }
        if self.room.get().is_none() {
            let _ = self.room.set(Watched::new(stream.fd().try_clone()?));
        }
        let Some(room) = self.room.get() else { return Err(Errno::PIPE.into()) };
        let watched = room.watch(Interest::WRITABLE)?;
        loop {
            let mut ready = watched.writable().await?;
            match rustix::io::write(room.fd(), bytes) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }

    async fn broken(&self) {
        // A descriptor that cannot be watched: the next write will tell.
        let end = self.stream.as_ref().and_then(|stream| stream.watch(Interest::READABLE).ok());
        let Some(end) = end else { return pending().await };
        loop {
            // A pipe's last reader is gone: EPOLLERR; a socket's peer: EPOLLHUP.
            let Ok(mut ready) = end.ready(Interest::READABLE | Interest::ERROR).await else { return };
            let state = ready.ready();
            if state.is_error() || state.is_read_closed() || state.is_write_closed() {
                return;
            }
            // A server that writes to its stdin, which as a socket it can.
            ready.clear_ready();
        }
    }

    /// As the clients do: those that have pipes close theirs, those that have sockets (Node's
    /// `stdin.end()`) shut down one direction and hold on to them until the server is gone.
    fn close(&mut self) {
        self.room.take();
        let stream = self.stream.take();
        if let (Some(stream), StdioKind::Socketpair) = (stream, self.kind) {
            let _ = rustix::net::shutdown(stream.fd(), Shutdown::Write);
            self.shut = Some(stream);
        }
    }
}
