//! A launched server: its three streams and its end, all to be waited for in one `select!`.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep, sleep_until};

use super::leader::Signal;
use super::spec::StdioKind;
use super::stdio::watched;
use super::sweep::Tree;
use crate::probe::{Exit, Swept, Usage};

/// A launched server. Every wait can be dropped and begun again without losing anything.
///
/// To be ended by [`sweep`](Child::sweep). Dropped without it, its whole tree is killed and reaped on
/// the spot, which may stall the thread for some milliseconds.
pub struct Child {
    stdin: Stdin,
    stdout: AsyncFd<OwnedFd>,
    stderr: AsyncFd<OwnedFd>,
    /// A stream has come to its end: the process may have, too.
    ended: AtomicBool,
    /// When to have the runtime watch what it need not for a server that is quick: its exit and the
    /// other end of its stdin, both of which are mostly seen as the end of its stdout as well.
    late: Instant,
    tree: Tree,
}

/// See [`Child::late`].
const LATE: Duration = Duration::from_millis(20);

impl Child {
    pub(super) fn new(ours: [OwnedFd; 3], kind: StdioKind, tree: Tree) -> io::Result<Child> {
        let [stdin, stdout, stderr] = ours;
        Ok(Child {
            stdin: Stdin::new(stdin, kind),
            stdout: watched(stdout, Interest::READABLE)?,
            stderr: watched(stderr, Interest::READABLE)?,
            ended: AtomicBool::new(false),
            late: sleep(LATE).deadline(),
            tree,
        })
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
        self.noted(read(&self.stdout, into).await)
    }

    /// Reads from stderr; 0 is its end.
    ///
    /// # Errors
    ///
    /// As read(2).
    pub async fn read_stderr(&self, into: &mut [u8]) -> io::Result<usize> {
        self.noted(read(&self.stderr, into).await)
    }

    /// Reads what is in stdout at this moment.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where that is nothing; else as read(2).
    pub fn try_read_stdout(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::read(self.stdout.get_ref(), &mut *into))?)
    }

    /// Reads what is in stderr at this moment.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where that is nothing; else as read(2).
    pub fn try_read_stderr(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::read(self.stderr.get_ref(), &mut *into))?)
    }

    /// Remembers the end of a stream.
    fn noted(&self, read: io::Result<usize>) -> io::Result<usize> {
        if !matches!(read, Ok(1..)) {
            self.ended.store(true, Relaxed);
        }
        read
    }

    /// Writes to stdin what fits; says how much that was.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` where nobody reads it any more, or it was closed; else as write(2).
    pub async fn write_stdin(&self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stdin.write(bytes).await;
        if written.is_err() {
            self.ended.store(true, Relaxed);
        }
        written
    }

    /// Waits until nobody can read stdin any more. Never comes after [`close_stdin`](Child::close_stdin).
    pub async fn stdin_broken(&self) {
        if !self.ended.load(Relaxed) {
            sleep_until(self.late).await;
        }
        self.stdin.broken().await;
        self.ended.store(true, Relaxed);
    }

    /// Ends the server's input.
    pub fn close_stdin(&mut self) {
        self.stdin.close();
    }

    /// Waits for the end of the launched process. It is left a zombie, so that its pid and its group
    /// stay its own; its streams may have more to read, and be held open by others.
    pub async fn exited(&self) -> Exit {
        if self.ended.load(Relaxed) {
            if let Some(exit) = self.tree.leader().seen_dead() {
                return exit;
            }
        } else {
            sleep_until(self.late).await;
        }
        self.tree.guard();
        self.tree.leader().exited().await
    }

    /// Signals the server's process group.
    ///
    /// # Errors
    ///
    /// As kill(2): `PermissionDenied` where all of it has become another user's.
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        Ok(self.tree.leader().signal_group(signal)?)
    }

    /// Looks at the memory of the server and its descendants, for [`Usage::max_rss`], and notes who
    /// these are. To be called while they live, so before stdin is closed. Costs some 20 µs for each.
    pub fn measure(&self) {
        self.tree.measure();
    }

    /// Ends whatever has outlived the launched process, reaps all of it, and says what that was. A
    /// launched process that lives is killed first.
    ///
    /// Takes no time where nothing is left; else up to 25 ms for what is just ending, `term_grace` (1 s
    /// at the most) from SIGTERM to SIGKILL, and 2 s after that.
    pub async fn sweep(self, term_grace: Duration) -> (Swept, Usage) {
        let Child { stdin, stdout, stderr, tree, .. } = self;
        drop((stdin, stdout, stderr));
        tree.sweep(term_grace).await
    }
}

/// Reads once there is something to read.
async fn read(stream: &AsyncFd<OwnedFd>, into: &mut [u8]) -> io::Result<usize> {
    loop {
        let mut ready = stream.readable().await?;
        match rustix::io::read(stream.get_ref(), &mut *into) {
            // A stream that gave less than it was asked for is empty (epoll(7), question 9): the read
            // that would only say EAGAIN is saved. Its end stays known to the runtime.
            Ok(len) if len > 0 && len < into.len() => {
                ready.clear_ready();
                return Ok(len);
            }
            Ok(len) => return Ok(len),
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// The writing end of a server's stdin.
struct Stdin {
    kind: StdioKind,
    stream: Option<OwnedFd>,
    /// The same, when its writing direction has been shut down.
    shut: Option<OwnedFd>,
    /// A second descriptor of it, watched for its end only: were it watched for room too, each read by
    /// the server would wake us.
    end: OnceLock<AsyncFd<OwnedFd>>,
    /// A third, watched for room: made when it has been full once.
    room: OnceLock<AsyncFd<OwnedFd>>,
}

impl Stdin {
    fn new(stream: OwnedFd, kind: StdioKind) -> Stdin {
        Stdin { kind, stream: Some(stream), shut: None, end: OnceLock::new(), room: OnceLock::new() }
    }

    async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let Some(stream) = &self.stream else { return Err(Errno::PIPE.into()) };
        match rustix::io::retry_on_intr(|| rustix::io::write(stream, bytes)) {
            Err(Errno::AGAIN) => {}
            written => return Ok(written?),
        }
        let room = watch_again(stream, &self.room, Interest::WRITABLE)?;
        loop {
            let mut ready = room.writable().await?;
            match rustix::io::write(stream, bytes) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }

    async fn broken(&self) {
        let end = self.stream.as_ref().and_then(|stream| watch_again(stream, &self.end, Interest::READABLE).ok());
        // A descriptor that cannot be had: the next write will tell.
        let Some(end) = end else { return std::future::pending().await };
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
        self.end.take();
        self.room.take();
        if let Some(stream) = self.stream.take()
            && self.kind == StdioKind::Socketpair
        {
            let _ = rustix::net::shutdown(&stream, rustix::net::Shutdown::Write);
            self.shut = Some(stream);
        }
    }
}

/// A second descriptor of `stream`, watched by the runtime from the first time on that it is asked for.
fn watch_again<'a>(
    stream: &OwnedFd,
    cell: &'a OnceLock<AsyncFd<OwnedFd>>,
    interest: Interest,
) -> io::Result<&'a AsyncFd<OwnedFd>> {
    if let Some(watched) = cell.get() {
        return Ok(watched);
    }
    let second = watched(stream.try_clone()?, interest)?;
    Ok(cell.get_or_init(|| second))
}
