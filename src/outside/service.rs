//! The service manager that has started us: systemd, or whatever else speaks as `sd_notify(3)` and
//! `sd_listen_fds(3)` have it.
//!
//! It speaks to us through variables of our environment, and means nobody else: no server gets them.

use std::env;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;

/// The variables by which a service manager speaks to a process that it has started.
pub const VARIABLES: [&str; 7] = [SOCKET, WATCHDOG_PID, WATCHDOG_USEC, LISTEN_PID, LISTEN_FDS, "LISTEN_FDNAMES", "LISTEN_PIDFDID"];

const SOCKET: &str = "NOTIFY_SOCKET";
const WATCHDOG_PID: &str = "WATCHDOG_PID";
const WATCHDOG_USEC: &str = "WATCHDOG_USEC";
const LISTEN_PID: &str = "LISTEN_PID";
const LISTEN_FDS: &str = "LISTEN_FDS";

/// Where the service manager wants to be told how we are; `None` if nobody does.
///
/// # Errors
///
/// When there is nothing at the address, or it is of a kind that nothing can be sent to from here.
pub fn notify_socket() -> io::Result<Option<UnixDatagram>> {
    let Some(address) = env::var_os(SOCKET) else { return Ok(None) };
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(&address)?,
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{SOCKET} is neither a path nor an abstract address: {address:?}"))),
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address)?;
    Ok(Some(socket))
}

/// How long the service manager waits for a sign of life before it ends us; `None` if it waits for none.
#[must_use]
pub fn watchdog() -> Option<Duration> {
    let within: u64 = env::var(WATCHDOG_USEC).ok()?.parse().ok()?;
    // Without a process' number it is meant for whoever reads it.
    let ours = env::var(WATCHDOG_PID).map_or(true, |pid| is_ours(&pid));
    (ours && within > 0).then_some(Duration::from_micros(within))
}

/// Why what was handed over cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum HandedError {
    /// None, or several, or no number of them.
    #[error("the service manager hands over {LISTEN_FDS}={count:?} sockets; one is wanted, to listen on")]
    Count {
        /// As it was given.
        count: String,
    },
    /// It is of another kind.
    #[error("what the service manager hands over is no TCP socket that listens (ListenStream=HOST:PORT, Accept=no): {cause}")]
    Kind {
        /// What is wrong.
        cause: io::Error,
    },
}

/// The socket to listen on that the service manager has opened for us; `None` if it has opened none. To be
/// called once, while there is one thread.
///
/// # Errors
///
/// When it is not one TCP socket that listens.
pub fn handed_over() -> Result<Option<TcpListener>, HandedError> {
    // Without a process' number the sockets are somebody else's, who started us.
    let (Ok(pid), Ok(count)) = (env::var(LISTEN_PID), env::var(LISTEN_FDS)) else { return Ok(None) };
    if !is_ours(&pid) {
        return Ok(None);
    }
    if count.trim() != "1" {
        return Err(HandedError::Count { count });
    }
    let kind = |cause| HandedError::Kind { cause };
    let listener = ListenFd::from_env().take_tcp_listener(0).map_err(kind)?;
    match listener.as_ref().map(socket_acceptconn) {
        Some(Ok(false)) => Err(kind(io::Error::other("it does not listen"))),
        Some(Err(error)) => Err(kind(error.into())),
        Some(Ok(true)) | None => Ok(listener),
    }
}

fn is_ours(pid: &str) -> bool {
    pid.parse() == Ok(std::process::id())
}
