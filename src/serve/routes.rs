//! What is answered, all but `/probe` from the last snapshot:
//!
//! | path | answer |
//! |---|---|
//! | `/`, `/servers/NAME` | pages for people; they load `/page.css`, `/page.js` and `/icon.svg` |
//! | `/health` | 200 while every server is up, or else 503; `?verbose`, `?exclude=NAME` (again and again), `?format=text` |
//! | `/health/NAME` | the same for one server; 404 if there is none of this name |
//! | `/livez` | 200 while the scheduler's loop goes round, or else 503; says nothing of the servers |
//! | `/readyz` | 200 once every server has been probed, or else 503 |
//! | `/events` | tells a page that it is out of date, as server-sent events |
//! | `/metrics` | Prometheus text 0.0.4, or OpenMetrics 1.0.0; packed with gzip where that is asked for |
//! | `/probe?target=NAME` | one server's series after a probe now; `&debug=true` |
//! | `/api/v1/servers`, `/api/v1/servers/NAME` | verdicts; the last report, without what is private |
//! | `/api/v1/servers/NAME/history` | what its probes came to |
//! | `/badge/NAME.svg`, `/badge/NAME.json` | a badge, as a picture and for shields.io |
//! | `POST /-/accept/NAME` | what that server lists is accepted from now on |
//! | `POST /-/reload` | the configuration is read again; 400 if it is refused, 409 if there is none |
//! | `POST /-/resume/NAME` | that server is probed again, if probing it was held; see [`actions`](super::actions) |
//!
//! HEAD is answered as GET is, without the body. OPTIONS is answered with 204 and `Allow` on every
//! path, also on those that are none: HAProxy's `option httpchk` asks `OPTIONS / HTTP/1.0`. Any
//! other method is refused with 405 and `Allow`. Nothing is redirected, and no `Accept` refused.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use super::access::{self, Caller, Guard};
use super::actions::{self, Actions};
use super::own::Own;
use super::{accept, badges, events, metrics_body, on_demand, pages};
use crate::running::Fleet;
use crate::running::hub::Hub;
use crate::running::reload::Reloader;
use crate::show::api;
use crate::show::health::{self, Answer, HEALTH_JSON, Question};
use crate::show::scrape::Scrape;
use crate::words::{Moment, ServerName, printable_lines};

/// What is allowed on a path that says nothing of it.
const VIEW: &str = "GET,HEAD";

pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// Where the answers come from.
#[derive(Clone)]
pub struct Sources {
    /// What is known of the servers and of the scheduler.
    pub hub: Arc<Hub>,
    /// What is measured of the process.
    pub own: Arc<Own>,
    /// What time it is.
    pub now: fn() -> Moment,
    /// Whether anything may be done, and not only seen.
    pub actions: Actions,
    /// Whom to ask for a probe; `None` where nothing is probed.
    pub fleet: Option<Arc<Fleet>>,
    /// Who reads the configuration again; `None` where there is none.
    pub reloader: Option<Arc<Reloader>>,
    /// Evidence, stderr, versions and what servers are given are shown to whoever asks, or to nobody; where it is not said,
    /// to who has authenticated.
    pub show_private: Option<bool>,
}

impl Sources {
    /// Whether this caller sees what is private.
    pub(super) fn shows_private(&self, caller: Caller) -> bool {
        self.show_private.unwrap_or(caller.sees_private)
    }

    /// A revision of the hub, so that it is none of another process' too.
    pub(super) fn revision(&self, revision: u64) -> String {
        format!("{:x}-{revision}", self.hub.snapshot().sidecar.started.unix_ms)
    }
}

/// The routes above. More may be merged into them; [`with_manners`] then makes a service of all.
pub fn routes(sources: Sources) -> Router {
    Router::new()
        .route("/health", get(health_of_all))
        .route("/health/{name}", get(health_of_one))
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/probe", get(on_demand::probe))
        .route("/api/v1/servers", get(api_servers))
        .route("/api/v1/servers/{name}", get(api_server))
        .route("/-/reload", post(reload))
        .route("/-/resume/{name}", post(resume))
        .route("/-/accept/{name}", post(accept_schema))
        .route("/api/v1/servers/{name}/history", get(api_history))
        .merge(pages::routes())
        .merge(events::routes())
        .merge(badges::routes())
        .fallback(unknown)
        .with_state(sources)
}

/// What holds for every answer: OPTIONS, the headers that keep browsers and caches out of trouble,
/// and 500 for a panic (only where panics unwind; in a release build one ends the process).
pub fn with_manners(router: Router) -> Router {
    manners(sound(router))
}

/// The same for those whom `guard` lets in; everybody else is refused with the same headers.
pub fn with_guard(router: Router, guard: Arc<Guard>) -> Router {
    manners(access::guarded(sound(router), guard))
}

/// What every answer of `router` has but headers.
fn sound(router: Router) -> Router {
    // A router's own layers run inside of what makes its 405 and `Allow`: these have to be outside.
    Router::new().fallback_service(router).layer(from_fn(allow)).layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
        plain(StatusCode::INTERNAL_SERVER_ERROR, "this should not have happened\n")
    }))
}

fn manners(router: Router) -> Router {
    let always = |name: HeaderName, value: &'static str| SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value));
    Router::new()
        .fallback_service(router)
        .layer(always(CACHE_CONTROL, "no-store"))
        .layer(always(X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(always(REFERRER_POLICY, "no-referrer"))
        .layer(always(CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"))
}

/// Answers OPTIONS, and completes `Allow` (RFC 9110, 9.3.7 and 15.5.6).
async fn allow(request: Request, next: Next) -> Response {
    let asked = request.method() == Method::OPTIONS;
    let response = next.run(request).await;
    let refused = response.status() == StatusCode::METHOD_NOT_ALLOWED;
    if !asked && !refused {
        return response;
    }
    let methods = response.headers().get(ALLOW).and_then(|methods| methods.to_str().ok()).unwrap_or(VIEW);
    let methods = format!("{},OPTIONS", methods).replace(',', ", ");
    let answer =
        if asked { StatusCode::NO_CONTENT.into_response() } else { plain(StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed here\n") };
    ([(ALLOW, methods)], answer).into_response()
}

async fn health_of_all(State(sources): State<Sources>, Query(query): Query<Pairs>) -> Response {
    answered(health::all(&sources.hub.snapshot(), (sources.now)(), &question(query)))
}

async fn health_of_one(State(sources): State<Sources>, uri: Uri, Query(query): Query<Pairs>) -> Response {
    // The name is only ever looked up: what does not decode is the name of no server.
    let name = uri.path().strip_prefix("/health/").and_then(decoded);
    let snapshot = sources.hub.snapshot();
    let name = name.unwrap_or_default();
    match health::one(&snapshot, (sources.now)(), &name, &question(query)) {
        Some(answer) => answered(answer),
        None => (StatusCode::NOT_FOUND, [(CONTENT_TYPE, HEALTH_JSON)], health::no_such_server(&snapshot, &name)).into_response(),
    }
}

async fn api_servers(State(sources): State<Sources>) -> Response {
    json(StatusCode::OK, &api::servers(&sources.hub.snapshot(), (sources.now)()))
}

async fn api_server(State(sources): State<Sources>, caller: Caller, uri: Uri) -> Response {
    let snapshot = sources.hub.snapshot();
    let name = uri.path().strip_prefix("/api/v1/servers/").and_then(decoded);
    match name.and_then(|name| snapshot.server(&name).cloned()) {
        None => json(StatusCode::NOT_FOUND, &json!({ "error": "there is no server of this name" })),
        Some(server) => match api::report(&server, sources.shows_private(caller)) {
            None => json(StatusCode::NOT_FOUND, &json!({ "error": "this server has not been probed yet" })),
            Some(report) => json(StatusCode::OK, &report),
        },
    }
}

async fn api_history(State(sources): State<Sources>, uri: Uri) -> Response {
    let snapshot = sources.hub.snapshot();
    let name = uri.path().strip_prefix("/api/v1/servers/").and_then(|rest| rest.strip_suffix("/history")).and_then(decoded);
    match name.and_then(|name| snapshot.server(&name).cloned()) {
        None => json(StatusCode::NOT_FOUND, &json!({ "error": "there is no server of this name" })),
        Some(server) => json(StatusCode::OK, &api::history(&server, (sources.now)())),
    }
}

fn json(status: StatusCode, value: &serde_json::Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], format!("{value}\n")).into_response()
}

async fn livez(State(sources): State<Sources>) -> Response {
    match sources.hub.snapshot().sidecar.stalled((sources.now)()) {
        None => plain(StatusCode::OK, "ok\n"),
        Some(age) => again_later(format!("the scheduler has not run for {} s\n", age.as_secs())),
    }
}

async fn readyz(State(sources): State<Sources>) -> Response {
    let snapshot = sources.hub.snapshot();
    if snapshot.sidecar.first_round_done {
        return plain(StatusCode::OK, "ok\n");
    }
    let probed = snapshot.servers.iter().filter(|s| s.is_settled()).count();
    again_later(format!("the first round is not done: {probed} of {} servers probed\n", snapshot.servers.len()))
}

async fn metrics(State(sources): State<Sources>, headers: HeaderMap) -> Response {
    let format = accept::format(headers.get_all(ACCEPT).iter().filter_map(|field| field.to_str().ok()));
    let scrape = Scrape::new(sources.hub.snapshot(), (sources.now)(), sources.own.gather(), format);
    let gzip = accept::gzip(headers.get_all(ACCEPT_ENCODING).iter().filter_map(|field| field.to_str().ok()));
    let headers = [(CONTENT_TYPE, format.content_type()), (VARY, "Accept, Accept-Encoding")];
    let mut response = (headers, metrics_body::body(scrape, gzip)).into_response();
    if gzip {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

async fn resume(State(sources): State<Sources>, caller: Caller, uri: Uri, headers: HeaderMap) -> Response {
    if let Err(why) = sources.actions.permit(caller, &headers) {
        return plain(StatusCode::FORBIDDEN, why);
    }
    let name = uri.path().strip_prefix(actions::RESUME).and_then(decoded).and_then(|name| ServerName::new(&name).ok());
    match name.and_then(|name| sources.hub.resume(&name, (sources.now)())) {
        Some(true) => plain(StatusCode::OK, "probing is resumed\n"),
        Some(false) => plain(StatusCode::OK, "probing was not held\n"),
        None => plain(StatusCode::NOT_FOUND, "no server has this name\n"),
    }
}

async fn accept_schema(State(sources): State<Sources>, caller: Caller, uri: Uri, headers: HeaderMap) -> Response {
    if let Err(why) = sources.actions.permit(caller, &headers) {
        return plain(StatusCode::FORBIDDEN, why);
    }
    let name = uri.path().strip_prefix(actions::ACCEPT).and_then(decoded).and_then(|name| ServerName::new(&name).ok());
    match name.and_then(|name| sources.hub.accept(&name)) {
        Some(Ok(true)) => plain(StatusCode::OK, "what was listed last is accepted\n"),
        Some(Ok(false)) => plain(StatusCode::OK, "it was accepted already\n"),
        Some(Err(why)) => plain(StatusCode::CONFLICT, format!("{why}\n")),
        None => plain(StatusCode::NOT_FOUND, "no server has this name\n"),
    }
}

async fn reload(State(sources): State<Sources>, caller: Caller, headers: HeaderMap) -> Response {
    if let Err(why) = sources.actions.permit(caller, &headers) {
        return plain(StatusCode::FORBIDDEN, why);
    }
    let Some(reloader) = sources.reloader else {
        return plain(StatusCode::CONFLICT, "there is nothing to read again, since the servers were given on the command line\n");
    };
    let (status, text) = match reloader.reload("POST /-/reload").await {
        Ok(changes) => (StatusCode::OK, format!("the configuration was read again: {changes}\n")),
        Err(why) => (StatusCode::BAD_REQUEST, format!("refused; what was read before stays in use\n{}\n", printable_lines(&why))),
    };
    (status, [(CONTENT_TYPE, TEXT)], text).into_response()
}

async fn unknown() -> Response {
    plain(
        StatusCode::NOT_FOUND,
        "nothing is here; there are /, /servers/NAME, /health, /health/NAME, /livez, /readyz, /metrics, /probe?target=NAME, /events, \
         /api/v1/servers, /api/v1/servers/NAME, /api/v1/servers/NAME/history, /badge/NAME.svg and /badge/NAME.json\n",
    )
}

/// The pairs of a query, in order, the same name as often as it stands there.
pub(super) type Pairs = Vec<(String, String)>;

/// Whether a switch is on that has this value.
pub(super) fn is_set(value: &str) -> bool {
    !matches!(value, "0" | "false" | "no")
}

/// What a query asks for. What it does not know it passes over: monitors add what they like.
fn question(query: Pairs) -> Question {
    let mut question = Question::default();
    for (name, value) in query {
        match name.as_str() {
            "verbose" => question.verbose = is_set(&value),
            "format" => question.text = value == "text",
            "exclude" => question.exclude.push(value),
            _ => {}
        }
    }
    question
}

fn answered(answer: Answer) -> Response {
    let status = if answer.healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut response = (status, [(CONTENT_TYPE, answer.content_type)], answer.body).into_response();
    if let Some(seconds) = answer.retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

pub(super) fn again_later(why: String) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(CONTENT_TYPE, TEXT), (RETRY_AFTER, "1")], why).into_response()
}

pub(super) fn plain(status: StatusCode, text: impl Into<Body>) -> Response {
    (status, [(CONTENT_TYPE, TEXT)], text.into()).into_response()
}

/// A percent-decoded segment of a path (RFC 3986, 2.1); `None` if it is no UTF-8 then.
pub(super) fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2).and_then(hexadecimal)).flatten();
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0, |n, digit| Some(n << 4 | u8::try_from(char::from(*digit).to_digit(16)?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_decoded_once_and_what_is_no_escape_stays() {
        for (segment, name) in
            [("a%20b", "a b"), ("%2541", "%41"), ("100%", "100%"), ("%zz%4", "%zz%4"), ("%e6%97%a5", "日"), ("a+b", "a+b"), ("", "")]
        {
            assert_eq!(decoded(segment).as_deref(), Some(name), "{segment}");
        }
        assert_eq!(decoded("%ff"), None);
    }

    #[test]
    fn a_query_is_read_leniently() {
        let pairs = |pairs: &[(&str, &str)]| question(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect());
        assert_eq!(pairs(&[("cb", "17")]), Question::default());
        assert!(pairs(&[("verbose", "")]).verbose);
        assert!(!pairs(&[("verbose", "false")]).verbose);
        assert!(pairs(&[("format", "text")]).text);
        assert!(!pairs(&[("format", "xml")]).text);
        assert_eq!(pairs(&[("exclude", "a"), ("exclude", "b")]).exclude, ["a", "b"]);
    }
}
