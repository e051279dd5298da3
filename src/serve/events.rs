//! `/events`: tells pages that something has changed, as server-sent events (HTML standard, 9.2).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::unfold;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::sleep;

use super::access::Rules;
use super::connection::Stopping;
use super::routes::{Sources, plain};

/// Who listens at once; the others ask again and again, as those without this do.
const SEATS: usize = 64;
/// Two messages are at least this far apart, however much changes.
const APART: Duration = Duration::from_secs(1);
/// A stream in which nothing happens is not idle: this often it says so, well within `Limits::idle`.
const ALIVE: Duration = Duration::from_secs(20);
/// When a lost connection is to be made again, in milliseconds.
const RETRY: u32 = 3000;
/// nginx would keep what is said until there is more of it.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The route.
pub(super) fn routes() -> Router<Sources> {
    let seats = Arc::new(Semaphore::new(SEATS));
    Router::new().route("/events", get(move |sources, stopping, rules| events(sources, stopping, rules, seats)))
}

async fn events(
    State(sources): State<Sources>,
    stopping: Option<Extension<Stopping>>,
    rules: Option<Extension<Rules>>,
    seats: Arc<Semaphore>,
) -> Response {
    let Ok(seat) = seats.try_acquire_owned() else {
        let mut refused = plain(StatusCode::SERVICE_UNAVAILABLE, "too many listen already\n");
        refused.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
        return refused;
    };
    let revisions = sources.hub.revisions();
    let (stopping, rules) = (stopping.map(|Extension(stopping)| stopping), rules.map(|Extension(rules)| rules));
    let listener = Listener { sources, revisions, stopping, rules, told: false, _seat: seat };
    let body = Body::from_stream(unfold(listener, Listener::next));
    ([(CONTENT_TYPE, HeaderValue::from_static("text/event-stream")), (UNBUFFERED, HeaderValue::from_static("no"))], body).into_response()
}

/// Somebody who listens.
struct Listener {
    sources: Sources,
    revisions: watch::Receiver<u64>,
    stopping: Option<Stopping>,
    /// By which it was let in.
    rules: Option<Rules>,
    /// Something was said before.
    told: bool,
    _seat: OwnedSemaphorePermit,
}

impl Listener {
    /// What is said next; `None` when stdiowatch is stopped, or others may listen from now on.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Listener)> {
        if !self.told {
            // A page may have become old while it was on its way.
            self.told = true;
            let text = format!("retry: {RETRY}\n{}", self.change());
            return Some((Ok(text.into()), self));
        }
        let (mut stopping, mut rules) = (self.stopping.clone(), self.rules.clone());
        let text = tokio::select! {
            () = stopped(&mut stopping) => return None,
            () = replaced(&mut rules) => return None,
            text = self.wait() => text?,
        };
        Some((Ok(text.into()), self))
    }

    async fn wait(&mut self) -> Option<String> {
        sleep(APART).await;
        tokio::select! {
            changed = self.revisions.changed() => changed.ok().map(|()| self.change()),
            () = sleep(ALIVE) => Some(":\n\n".to_owned()),
        }
    }

    fn change(&mut self) -> String {
        let revision = *self.revisions.borrow_and_update();
        format!("event: change\ndata: {}\n\n", self.sources.revision(revision))
    }
}

async fn stopped(stopping: &mut Option<Stopping>) {
    match stopping {
        Some(stopping) => stopping.stopped().await,
        None => std::future::pending().await,
    }
}

async fn replaced(rules: &mut Option<Rules>) {
    match rules {
        Some(rules) => rules.replaced().await,
        None => std::future::pending().await,
    }
}
