//! The three streams between us and a server.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::spec::StdioKind;

/// Both sides of a server's stdin, stdout and stderr. All are closed by an exec, so a server holds
/// nothing but what becomes its 0, 1 and 2. Ours do not block; the server's do, as it expects.
pub(super) struct Stdio {
    pub(super) ours: [OwnedFd; 3],
    pub(super) theirs: [OwnedFd; 3],
}

impl Stdio {
    pub(super) fn new(kind: StdioKind) -> Result<Stdio, Errno> {
        let (their_in, our_in) = pair(kind)?;
        let (our_out, their_out) = pair(kind)?;
        let (our_err, their_err) = pair(kind)?;
        for ours in [&our_in, &our_out, &our_err] {
            rustix::io::ioctl_fionbio(ours, true)?;
        }
        Ok(Stdio { ours: [our_in, our_out, our_err], theirs: [their_in, their_out, their_err] })
    }
}

/// The end to read from, then the end to write to.
fn pair(kind: StdioKind) -> Result<(OwnedFd, OwnedFd), Errno> {
    match kind {
        StdioKind::Pipe => rustix::pipe::pipe_with(PipeFlags::CLOEXEC),
        StdioKind::Socketpair => rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None),
    }
}

/// A descriptor that the runtime watches from the first time on that it has to: to have it do so, and
/// no more, costs more than to read a reply.
pub(super) struct Watched {
    fd: Arc<OwnedFd>,
    registered: OnceLock<AsyncFd<Arc<OwnedFd>>>,
}

impl Watched {
    pub(super) fn new(fd: OwnedFd) -> Watched {
        Watched { fd: Arc::new(fd), registered: OnceLock::new() }
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Has it watched for what there is to read, and for its end.
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe, because of types that may name another descriptor each time; an OwnedFd names one, which stays open as long as it lives"
    )]
    pub(super) fn watch(&self, interest: Interest) -> io::Result<&AsyncFd<Arc<OwnedFd>>> {
        if let Some(registered) = self.registered.get() {
            return Ok(registered);
        }
        let registered = AsyncFd::with_interest(Arc::clone(&self.fd), interest)?;
        Ok(self.registered.get_or_init(|| registered))
    }

    /// Reads what there is at this moment; 0 is the end.
    pub(super) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::read(&self.fd, &mut *into))?)
    }

    /// Reads once there is something to read; 0 is the end.
    pub(super) async fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        if self.registered.get().is_none() {
            match self.try_read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
        let watched = self.watch(Interest::READABLE)?;
        loop {
            let mut ready = watched.readable().await?;
            match self.try_read(into) {
                // A stream that gave less than it was asked for is empty (epoll(7), question 9): the
                // read that would only say EAGAIN is saved. Its end stays known to the runtime.
                Ok(len) if len > 0 && len < into.len() => {
                    ready.clear_ready();
                    return Ok(len);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                read => return read,
            }
        }
    }
}
