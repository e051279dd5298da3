//! `/badge/NAME.svg`, and `/badge/NAME.json` for shields.io.

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::routes::{Sources, decoded, plain};
use crate::show::badge::Badge;

/// The route.
pub(super) fn routes() -> Router<Sources> {
    Router::new().route("/badge/{file}", get(badge))
}

async fn badge(State(sources): State<Sources>, uri: Uri) -> Response {
    let file = uri.path().strip_prefix("/badge/").and_then(decoded).unwrap_or_default();
    let Some((name, kind)) = file.rsplit_once('.').filter(|(_, kind)| ["svg", "json"].contains(kind)) else {
        return plain(StatusCode::NOT_FOUND, "a badge is /badge/NAME.svg or /badge/NAME.json\n");
    };
    let snapshot = sources.hub.snapshot();
    let (status, badge) = match snapshot.server(name) {
        Some(server) => (StatusCode::OK, Badge::of(server, (sources.now)())),
        None => (StatusCode::NOT_FOUND, Badge::no_such_server()),
    };
    let (content_type, body) = if kind == "svg" { ("image/svg+xml", badge.svg()) } else { ("application/json", badge.json()) };
    (status, [(CONTENT_TYPE, content_type)], body).into_response()
}
