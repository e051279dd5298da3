//! Serves the pages of made-up servers: `gallery ADDRESS COUNT [private]`. A POST to `/-/flip` makes the
//! first one fail, or well again: to see whether a page notices. For `tests/real/page.py`, and for eyes.
#![allow(clippy::unwrap_used, reason = "a program for tests may give up")]

mod made_up;

use std::sync::Arc;

use stdiowatch::outside::clock;
use stdiowatch::running::hub::Hub;
use stdiowatch::serve::actions::Actions;
use stdiowatch::serve::listen::{Limits, bind, run};
use stdiowatch::serve::own::Own;
use stdiowatch::serve::routes::{Sources, routes, with_manners};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let now = clock::now();
    let hub = Arc::new(Hub::new(made_up::servers(args[2].parse().unwrap(), now)));
    hub.update(|snapshot| {
        snapshot.sidecar.started = now;
        snapshot.sidecar.first_round_done = true;
        // One server alone is a first look, as most have it: all is well with what it is configured by.
        if snapshot.servers.len() > 1 {
            snapshot.read(made_up::unwatched());
            snapshot.refuse(now, made_up::REFUSED.to_owned());
        }
    });
    let show_private = args.get(3).is_some_and(|word| word == "private");
    let sources = Sources {
        hub: Arc::clone(&hub),
        own: Arc::new(Own::new(now).unwrap()),
        now: clock::now,
        actions: Actions::Off,
        fleet: None,
        reloader: None,
        show_private: Some(show_private),
    };
    let flip = axum::Router::new().route("/-/flip", axum::routing::post(move || async move { flip(&hub) }));
    let listener = bind(&args[1]).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(listener, with_manners(routes(sources).merge(flip)), Limits::default(), std::future::pending())).unwrap();
}

fn flip(hub: &Hub) -> &'static str {
    let name = hub.snapshot().servers[0].name.clone();
    hub.update_server(&name, |state| {
        let up = state.standing.is_some_and(stdiowatch::judge::Verdict::is_up);
        let (kind, n) = if up { (made_up::Kind::Down, 74) } else { (made_up::Kind::Well, 0) };
        made_up::apply(state, kind, n, 74, 0, clock::now());
    });
    "flipped\n"
}
