//! The three streams between us and a server.

use std::io;
use std::os::fd::OwnedFd;

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
        let (our_in, their_in) = to_server(kind)?;
        let (our_out, their_out) = from_server(kind)?;
        let (our_err, their_err) = from_server(kind)?;
        Ok(Stdio { ours: [our_in, our_out, our_err], theirs: [their_in, their_out, their_err] })
    }
}

/// Our end, then the server's.
fn to_server(kind: StdioKind) -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = pair(kind)?;
    rustix::io::ioctl_fionbio(&write, true)?;
    Ok((write, read))
}

/// Our end, then the server's.
fn from_server(kind: StdioKind) -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = pair(kind)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}

/// The end to read from, then the end to write to.
fn pair(kind: StdioKind) -> Result<(OwnedFd, OwnedFd), Errno> {
    match kind {
        StdioKind::Pipe => rustix::pipe::pipe_with(PipeFlags::CLOEXEC),
        StdioKind::Socketpair => {
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        }
    }
}

/// Has the runtime watch a descriptor.
#[expect(deprecated, reason = "what replaces it is unsafe, for types that may give another descriptor each time; an OwnedFd gives one, open as long as it lives")]
pub(super) fn watched(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}
