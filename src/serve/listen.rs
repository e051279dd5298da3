//! Listening, and keeping what connects in bounds: `axum::serve` has neither a limit on the time a
//! client takes nor one on how many there are.

use std::io;
use std::net::{TcpListener as StdListener, ToSocketAddrs as _};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::access::Guard;
use super::connection::{Activity, Patience, answer, serve};

/// How long to wait when a connection could not be accepted for want of something.
const BACK_OFF: Duration = Duration::from_millis(100);
/// How long to say nothing more of such trouble once it has been said.
const QUIET: Duration = Duration::from_secs(30);
/// A connection that did something this recently is not ended for the sake of a new one.
const IN_USE: Duration = Duration::from_secs(1);

/// What clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. One more takes the place of the one that has been idle longest, so that
    /// nobody can keep a health check out by keeping connections; if none is idle, of the one that has been
    /// longest at a request's head or a handshake, those first that have not been answered yet; if there is
    /// none of these either, it is refused.
    pub connections: usize,
    /// From the first byte of a request to the end of its head.
    pub head: Duration,
    /// Without a byte in either direction: more than the usual scrape interval of a minute.
    pub idle: Duration,
    /// From the order to stop to the last answer.
    pub drain: Duration,
}

impl Default for Limits {
    /// 512 connections, or half of our descriptors where that is less: probes need some as well.
    fn default() -> Limits {
        let descriptors = getrlimit(Resource::Nofile).current.and_then(|n| usize::try_from(n).ok());
        let connections = descriptors.map_or(512, |n| (n / 2).clamp(1, 512));
        Limits { connections, head: Duration::from_secs(5), idle: Duration::from_secs(75), drain: Duration::from_secs(5) }
    }
}

/// Why nothing can be heard at an address.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// It is no address.
    #[error("cannot listen on {address:?}: an address is HOST:PORT, as in 127.0.0.1:10779, [::1]:10779, or :10779 for every interface")]
    NoAddress {
        /// As it was given.
        address: String,
    },
    /// Its host is not known.
    #[error("cannot listen on {address}: the host is not known: {cause}")]
    Unknown {
        /// As it was given.
        address: String,
        /// What the resolver says.
        cause: io::Error,
    },
    /// It cannot be had.
    #[error("cannot listen on {address}: {}", why(.cause))]
    Taken {
        /// As it was given.
        address: String,
        /// What the system says.
        cause: io::Error,
    },
}

fn why(cause: &io::Error) -> String {
    let known = [
        (io::ErrorKind::AddrInUse, "address already in use; something else listens there, and `ss -ltnp` says what"),
        (io::ErrorKind::AddrNotAvailable, "this machine has no such address"),
        (io::ErrorKind::PermissionDenied, "permission denied; ports below 1024 need CAP_NET_BIND_SERVICE"),
    ];
    let words = known.into_iter().find(|(kind, _)| *kind == cause.kind()).map(|(_, words)| words.to_owned());
    words.unwrap_or_else(|| cause.to_string())
}

/// Listens on `address`: `HOST:PORT`, or `:PORT` for every interface. From here on clients can
/// connect, and wait for [`run`].
///
/// # Errors
///
/// When it is no address, or cannot be had.
pub fn bind(address: &str) -> Result<StdListener, BindError> {
    let no_address = || BindError::NoAddress { address: address.to_owned() };
    let taken = |cause| BindError::Taken { address: address.to_owned(), cause };
    let (host, port) = address.rsplit_once(':').ok_or_else(no_address)?;
    let port: u16 = port.parse().map_err(|_| no_address())?;
    // A bare IPv6 address, whose last group is not a port.
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err(no_address());
    }
    if host.is_empty() {
        // Where there is no IPv6, the second one is tried.
        return StdListener::bind(&[([0_u16; 8], port).into(), ([0_u8; 4], port).into()][..]).map_err(taken);
    }
    let unknown = |cause| BindError::Unknown { address: address.to_owned(), cause };
    let addresses: Vec<_> = address.to_socket_addrs().map_err(unknown)?.collect();
    StdListener::bind(&addresses[..]).map_err(taken)
}

/// Serves `router` on `listener` until `shutdown` is ready; then accepts nothing more, answers what
/// is in flight, for as long as `limits.drain` at the most, and closes everything.
///
/// # Errors
///
/// When the runtime does not take the listener. An error of one connection ends that connection.
pub async fn run(listener: StdListener, router: Router, limits: Limits, shutdown: impl Future<Output = ()>) -> io::Result<()> {
    run_with(listener, router, None, limits, shutdown).await
}

/// The same with TLS, where `guard` says so when somebody connects.
///
/// # Errors
///
/// The same.
pub async fn run_with(
    listener: StdListener,
    router: Router,
    guard: Option<Arc<Guard>>,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let mut house = House { router, guard, limits, guests: Vec::new(), tasks: JoinSet::new(), stop: watch::Sender::new(false), complained: None };
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            () = house.accept(&listener) => {}
        }
    }
    drop(listener);
    house.close().await;
    Ok(())
}

/// Answers what comes over one connection that somebody else has accepted, without TLS: until its client ends it, or
/// `shutdown` is ready and what is in flight is answered.
pub async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router, shutdown: impl Future<Output = ()>) {
    let stop = watch::Sender::new(false);
    let order = async {
        shutdown.await;
        stop.send_replace(true);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = answer(stream, router, stop.subscribe()) => {}
        () = order => {}
    }
}

/// Everything that is connected.
struct House {
    router: Router,
    guard: Option<Arc<Guard>>,
    limits: Limits,
    guests: Vec<Weak<Activity>>,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    complained: Option<Instant>,
}

impl House {
    /// Takes in one connection, or waits for better times.
    async fn accept(&mut self, listener: &TcpListener) {
        match listener.accept().await {
            Ok((stream, _)) => {
                if !self.make_room() {
                    return;
                }
                let activity = Arc::new(Activity::new());
                self.guests.push(Arc::downgrade(&activity));
                let patience = Patience { head: self.limits.head, idle: self.limits.idle };
                self.tasks.spawn(serve(stream, self.router.clone(), self.guard.clone(), patience, activity, self.stop.subscribe()));
            }
            // The client's, and over already (accept(2)).
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if self.complained.is_none_or(|at| at.elapsed() > QUIET) {
                    self.complained = Some(Instant::now());
                    tracing::warn!(%error, connections = self.guests.len(), "cannot accept a connection; trying on");
                }
                self.end_one();
                sleep(BACK_OFF).await;
            }
        }
    }

    /// Whether there is room for one more, made if need be.
    fn make_room(&mut self) -> bool {
        while self.tasks.try_join_next().is_some() {}
        self.guests.retain(|guest| guest.strong_count() > 0);
        self.guests.len() < self.limits.connections || self.end_one()
    }

    /// Ends the connection that has been idle longest, or else the one that has been beginning longest: who sends a byte now
    /// and then is never idle. Says whether there was one.
    fn end_one(&mut self) -> bool {
        let idle_since = |guest: &Weak<Activity>| guest.upgrade()?.idle_since().filter(|since| since.elapsed() >= IN_USE);
        let idle = self.guests.iter().enumerate().filter_map(|(at, guest)| Some((idle_since(guest)?, at)));
        let unfinished = || {
            let guests = self.guests.iter().enumerate();
            guests.filter_map(|(at, guest)| Some((guest.upgrade()?.unfinished_since()?, at))).min().map(|(_, at)| at)
        };
        let Some(at) = idle.min().map(|(_, at)| at).or_else(unfinished) else { return false };
        if let Some(guest) = self.guests.swap_remove(at).upgrade() {
            guest.evict();
        }
        true
    }

    /// Answers what is in flight, and closes everything.
    async fn close(mut self) {
        self.stop.send_replace(true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(self.limits.drain, all).await.is_err() {
            tracing::warn!(connections = self.tasks.len(), "closed with requests unanswered");
        }
    }
}
