//! `GET /probe?target=NAME`: probe now, and answer with that server's series.
//!
//! The only GET that launches anything. HEAD does not.

use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::header::{ACCEPT, AGE, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};

use super::accept;
use super::access::Caller;
use super::routes::{Pairs, Sources, TEXT, again_later, is_set, plain};
use crate::running::Asked;
use crate::show::on_demand::{Came, debug, series};

/// How long the one who asks will wait, in seconds; Prometheus sends it with every scrape.
const SCRAPE_TIMEOUT: &str = "x-prometheus-scrape-timeout-seconds";
/// How much sooner than that is answered, so that the answer is there in time.
const MARGIN: Duration = Duration::from_millis(500);
/// How long is waited for a probe when nothing is said of it, and at the most.
const LONGEST: Duration = Duration::from_secs(120);

/// What a query asks for. What it does not know it passes over.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    target: Option<String>,
    debug: bool,
}

impl Wanted {
    fn of(query: Pairs) -> Wanted {
        let mut wanted = Wanted::default();
        for (name, value) in query {
            match name.as_str() {
                "target" => wanted.target = wanted.target.or(Some(value)),
                "debug" => wanted.debug = is_set(&value),
                _ => {}
            }
        }
        wanted
    }
}

pub(super) async fn probe(
    State(sources): State<Sources>,
    caller: Caller,
    method: Method,
    headers: HeaderMap,
    Query(query): Query<Pairs>,
) -> Response {
    let wanted = Wanted::of(query);
    let Some(target) = wanted.target else { return plain(StatusCode::BAD_REQUEST, "no target: ask /probe?target=NAME\n") };
    if wanted.debug
        && let Err(why) = may_debug(&sources, caller, &headers)
    {
        return plain(StatusCode::FORBIDDEN, why);
    }
    let within = patience(&headers);
    let asked = match &sources.fleet {
        Some(fleet) if method == Method::GET => fleet.ask(&target, wanted.debug, within).await,
        Some(_) | None => Asked::Late,
    };
    let (came, age, recording) = match asked {
        Asked::Probed(recording) => (Came::Probed, None, recording),
        Asked::Again { age } => (Came::Again, Some(age), None),
        Asked::Held => (Came::Held, None, None),
        Asked::Late => (Came::Late { waited: within }, None, None),
        Asked::Nobody => return nobody(),
        Asked::Crowded => return again_later("too many wait for probes\n".to_owned()),
        Asked::Ending => return again_later("stdiowatch is about to end\n".to_owned()),
    };
    let snapshot = sources.hub.snapshot();
    let Some(server) = snapshot.server(&target) else { return nobody() };
    let now = (sources.now)();
    let mut response = if wanted.debug {
        ([(CONTENT_TYPE, TEXT)], debug(server, came, recording.as_deref(), now)).into_response()
    } else {
        let format = accept::format(headers.get_all(ACCEPT).iter().filter_map(|field| field.to_str().ok()));
        ([(CONTENT_TYPE, format.content_type()), (VARY, "Accept")], series(server, came, now, format)).into_response()
    };
    if let Some(age) = age {
        response.headers_mut().insert(AGE, age.as_secs().into());
    }
    response
}

/// Whether this caller is shown a transcript: as what is private is, and to who may do something.
fn may_debug(sources: &Sources, caller: Caller, headers: &HeaderMap) -> Result<(), &'static str> {
    match sources.show_private {
        Some(false) => Err("transcripts are shown to nobody: `show_private` is false\n"),
        Some(true) | None if sources.shows_private(caller) => Ok(()),
        Some(true) | None => sources.actions.permit(caller, headers),
    }
}

fn nobody() -> Response {
    plain(StatusCode::NOT_FOUND, "no server has this name\n")
}

/// How long the one who asks can be kept waiting.
fn patience(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(SCRAPE_TIMEOUT).and_then(|field| field.to_str().ok()?.trim().parse::<f64>().ok());
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    timeout.map_or(LONGEST, |timeout| timeout.saturating_sub(MARGIN).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_is_answered_before_it_gives_up() {
        let kept = |field: &str| {
            let headers: HeaderMap = [(SCRAPE_TIMEOUT.parse().unwrap(), field.parse().unwrap())].into_iter().collect();
            patience(&headers).as_secs_f64()
        };
        for (field, seconds) in
            [("10", 9.5), ("0.7", 0.2), ("0.5", 0.0), ("0", 0.0), (" 3.5 ", 3.0), ("1e9", 120.0), ("NaN", 120.0), ("-4", 120.0), ("soon", 120.0)]
        {
            assert!((kept(field) - seconds).abs() < 1e-6, "{field}: {}", kept(field));
        }
        assert_eq!(patience(&HeaderMap::new()), LONGEST);
    }

    #[test]
    fn a_query_names_a_target() {
        let of = |pairs: &[(&str, &str)]| Wanted::of(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect());
        assert_eq!(of(&[("module", "x")]), Wanted::default());
        assert_eq!(of(&[("target", "a"), ("target", "b"), ("debug", "true")]), Wanted { target: Some("a".to_owned()), debug: true });
        assert!(!of(&[("debug", "false")]).debug);
    }
}
