//! One connection: served, and cut when its client keeps it for nothing.
//!
//! hyper's own time limit on a request's head also runs between requests, so it cannot both let a
//! scraper keep its connection for a minute and cut who dribbles. The two limits are kept here.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt as _;

use super::access::{Guard, Line, NO_TLS, Peer};
use crate::outside::tls::Answering;

/// The most that the head of a request may have, in bytes and in fields.
const MAX_HEAD: usize = 16 << 10;
const MAX_FIELDS: usize = 64;
/// For a deadline that never comes.
const NEVER: Duration = Duration::from_secs(86_400);

/// How long a client may keep a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// From the first byte of a request to the end of its head.
    pub(super) head: Duration,
    /// Without a byte in either direction.
    pub(super) idle: Duration,
}

/// Handed to what answers a request: an answer without end has to end when everything does.
#[derive(Clone, Debug)]
pub(super) struct Stopping(watch::Receiver<bool>);

impl Stopping {
    /// Resolves when stdiowatch is stopped.
    pub(super) async fn stopped(&mut self) {
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// What a connection was last seen to do; shared with who may have to end it.
#[derive(Debug)]
pub(super) struct Activity {
    seen: Mutex<Seen>,
    evicted: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    /// When a byte last went in either direction.
    progress: Instant,
    /// When the head began that is being read.
    head: Option<Instant>,
    /// A request is being answered.
    busy: bool,
    /// A request was answered before.
    served: bool,
}

impl Activity {
    pub(super) fn new() -> Activity {
        let seen = Seen { progress: Instant::now(), head: None, busy: false, served: false };
        Activity { seen: Mutex::new(seen), evicted: Notify::new() }
    }

    /// Since when nothing has happened; `None` while a request is being answered.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let seen = *self.seen.lock();
        (!seen.busy).then_some(seen.progress)
    }

    /// Since when a handshake or a request's head has been under way, after whether any request was answered before;
    /// `None` if none is.
    pub(super) fn unfinished_since(&self) -> Option<(bool, Instant)> {
        let seen = *self.seen.lock();
        seen.head.filter(|_| !seen.busy).map(|since| (seen.served, since))
    }

    /// Ends the connection.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    fn progressed(&self, read: bool) {
        let mut seen = self.seen.lock();
        let now = Instant::now();
        seen.progress = now;
        if read && !seen.busy {
            seen.head.get_or_insert(now);
        }
    }

    fn set_busy(&self, busy: bool) {
        let mut seen = self.seen.lock();
        *seen = Seen { progress: Instant::now(), head: None, busy, served: seen.served || !busy };
    }

    fn deadline(&self, patience: Patience) -> Instant {
        let seen = *self.seen.lock();
        match (seen.busy, seen.head) {
            (true, _) => seen.progress + NEVER,
            (false, Some(began)) => began + patience.head,
            (false, None) => seen.progress + patience.idle,
        }
    }
}

/// Serves `stream` until its client ends it, is cut, or `stop` becomes true and what is in flight
/// is answered. With TLS, where `guard` says so: a handshake takes no longer than a request's head, and with the first
/// one both together do not.
pub(super) async fn serve(
    stream: TcpStream,
    router: Router,
    guard: Option<Arc<Guard>>,
    patience: Patience,
    activity: Arc<Activity>,
    mut stop: watch::Receiver<bool>,
) {
    // Answers are whole: waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let peer = stream.peer_addr().ok().map(|address| Peer(address.ip().to_canonical()));
    let stream = Watched { stream, activity: Arc::clone(&activity) };
    let tls = guard.and_then(|guard| guard.access().tls.clone());
    let mut opening = pin!(open(stream, tls));
    let opened = tokio::select! {
        opened = in_time(opening.as_mut(), &activity, patience) => opened.flatten(),
        () = activity.evicted.notified() => return,
        _ = stop.wait_for(|stop| *stop) => return,
    };
    let Some((stream, line)) = opened else { return };
    let service = Requests { router, activity: Arc::clone(&activity), line, peer, stopping: Stopping(stop.clone()) };
    let mut connection = pin!(http().serve_connection(TokioIo::new(stream), service));
    let mut stopping = false;
    while !stopping {
        tokio::select! {
            _ = in_time(connection.as_mut(), &activity, patience) => return,
            () = activity.evicted.notified() => return,
            _ = stop.wait_for(|stop| *stop) => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
    in_time(connection, &activity, patience).await;
}

/// Answers what comes over `stream`, without TLS and without limits of time, until its client ends it, or `stop` becomes
/// true and what is in flight is answered.
pub(super) async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router, mut stop: watch::Receiver<bool>) {
    let service = Requests { router, activity: Arc::new(Activity::new()), line: Line::Plain, peer: None, stopping: Stopping(stop.clone()) };
    let mut connection = pin!(http().serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stop.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// HTTP/1 as it is spoken here.
fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.header_read_timeout(None).half_close(true).max_buf_size(MAX_HEAD).max_headers(MAX_FIELDS);
    http
}

/// What answers the requests of one connection.
struct Requests {
    router: Router,
    activity: Arc<Activity>,
    line: Line,
    peer: Option<Peer>,
    stopping: Stopping,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let (router, activity) = (self.router.clone(), Arc::clone(&self.activity));
        request.extensions_mut().insert(self.stopping.clone());
        request.extensions_mut().insert(self.line.clone());
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        Box::pin(async move {
            activity.set_busy(true);
            let response = router.oneshot(request).await;
            activity.set_busy(false);
            response
        })
    }
}

/// The stream that requests come over, and how it came about; `None` if none ever will.
async fn open(mut stream: Watched, tls: Option<Answering>) -> Option<(Stream, Line)> {
    let Some(Answering { config, clients, .. }) = tls else { return Some((Stream::Plain(stream), Line::Plain)) };
    let mut first = [0];
    if stream.stream.peek(&mut first).await.ok()? == 0 {
        return None;
    }
    if first[0] != HANDSHAKE {
        refuse_plain(&mut stream).await;
        return None;
    }
    let stream = match TlsAcceptor::from(config).accept(stream).await {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(%error, "a TLS handshake failed");
            return None;
        }
    };
    let certificates =
        stream.get_ref().1.peer_certificates().unwrap_or_default().iter().map(|certificate| certificate.clone().into_owned()).collect();
    Some((Stream::Tls(Box::new(stream)), Line::Tls { certificates, by: clients }))
}

/// The type of a TLS record that a handshake begins with (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;

/// Tells who speaks plain HTTP where TLS is spoken, in plain HTTP; and reads on until it has heard that, since what is
/// closed with something unread is reset.
async fn refuse_plain(stream: &mut Watched) {
    let answer = format!(
        "HTTP/1.0 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{NO_TLS}",
        NO_TLS.len()
    );
    if stream.write_all(answer.as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        let mut unheard = [0; 1024];
        while matches!(stream.read(&mut unheard).await, Ok(1..)) {}
    }
}

/// Drives what goes over a connection until it ends or its client's time is up.
async fn in_time<C: Future>(mut connection: Pin<&mut C>, activity: &Activity, patience: Patience) -> Option<C::Output> {
    let mut timer = pin!(sleep_until(activity.deadline(patience)));
    poll_fn(|cx| {
        if let Poll::Ready(output) = connection.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        let deadline = activity.deadline(patience);
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        timer.as_mut().poll(cx).map(|()| None)
    })
    .await
}

/// A stream that notes when something went through it.
struct Watched {
    stream: TcpStream,
    activity: Arc<Activity>,
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.activity.progressed(true);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.activity.progressed(false);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, pieces: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, pieces))?;
        self.activity.progressed(false);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// What requests come over. One type for both, so that all that speaks HTTP is there once.
enum Stream {
    Plain(Watched),
    Tls(Box<TlsStream<Watched>>),
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, pieces: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
