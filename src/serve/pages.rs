//! The pages for people, and what they load.

use axum::Router;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::access::Caller;
use super::routes::{Sources, decoded};
use crate::ledger::Snapshot;
use crate::show::page::{ICON, POLICY, Page, SCRIPT, STYLE, View};

/// What the pages load changes with the program only, and their addresses with it.
const KEPT: &str = "public, max-age=86400";

/// The routes of the pages.
pub(super) fn routes() -> Router<Sources> {
    Router::new()
        .route("/", get(overview))
        .route("/servers/{name}", get(server))
        .route("/page.css", get(|| async { loaded("text/css; charset=utf-8", STYLE) }))
        .route("/page.js", get(|| async { loaded("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/icon.svg", get(|| async { loaded("image/svg+xml", ICON) }))
}

async fn overview(State(sources): State<Sources>, caller: Caller) -> Response {
    shown(&sources, caller, |view| (StatusCode::OK, Page::overview(view)))
}

async fn server(State(sources): State<Sources>, caller: Caller, uri: Uri) -> Response {
    // What does not decode is the name of no server.
    let name = uri.path().strip_prefix("/servers/").and_then(decoded).unwrap_or_default();
    shown(&sources, caller, |view| match view.snapshot.server(&name) {
        Some(server) => (StatusCode::OK, Page::server(view, server)),
        None => (StatusCode::NOT_FOUND, Page::no_such_server(view, &name)),
    })
}

fn shown(sources: &Sources, caller: Caller, page: impl for<'v> FnOnce(View<'v>) -> (StatusCode, Page)) -> Response {
    // The revision first: a page may be newer than it says, and is then fetched once too often.
    let revision = sources.revision(sources.hub.revision());
    let snapshot = sources.hub.snapshot();
    let snapshot: &Snapshot = &snapshot;
    let (status, page) = page(View { snapshot, revision: &revision, now: (sources.now)(), show_private: sources.shows_private(caller) });
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)], page.html).into_response()
}

fn loaded(content_type: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, content_type), (CACHE_CONTROL, KEPT)], text).into_response()
}
