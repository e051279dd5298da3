//! HTTP: a connection with all routes behind it, in memory; with and without users.

use std::sync::Arc;

use stdiowatch::outside::clock;
use stdiowatch::running::hub::Hub;
use stdiowatch::serve::access::{Access, Guard};
use stdiowatch::serve::actions::Actions;
use stdiowatch::serve::listen::converse;
use stdiowatch::serve::own::Own;
use stdiowatch::serve::routes::{Sources, routes, with_guard, with_manners};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;

#[path = "../gallery/made_up.rs"]
#[allow(dead_code, unreachable_pub, reason = "others use the rest")]
mod made_up;

/// How often the tasks take turns before everything is stopped: an answer without end has to end.
const TURNS: usize = 60;

/// The input is what a client sends.
pub fn run(data: &[u8]) {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        static SOURCES: Sources = sources();
    }
    let sources = SOURCES.with(Clone::clone);
    let open = with_manners(routes(sources.clone()));
    let heard = RUNTIME.with(|runtime| runtime.block_on(asked(open, data)));
    is_sound(&heard);
    // Nobody is let in by a header that is not right: there is no user whose password anybody knows.
    let users = [("u".to_owned(), "$2b$04$......................................................".to_owned())].into();
    let excluded = ["/livez".to_owned()].into();
    let guard = Guard::new(Access { users, excluded, ..Access::default() });
    if !data.windows(9).any(|word| word.eq_ignore_ascii_case(b"authoriza")) {
        let heard = RUNTIME.with(|runtime| runtime.block_on(asked(with_guard(routes(sources), guard), data)));
        is_sound(&heard);
        assert!(!contains(&heard, b"stdiowatch_up"), "a metric without a password");
    }
}

fn sources() -> Sources {
    let now = clock::now();
    let hub = Arc::new(Hub::new(made_up::servers(made_up::KINDS.len(), now)));
    let own = Arc::new(Own::new(now).expect("metrics"));
    Sources { hub, own, now: clock::now, actions: Actions::Off, fleet: None, reloader: None, show_private: None }
}

/// All that is answered until the client has said everything and everything is stopped.
async fn asked(router: axum::Router, data: &[u8]) -> Vec<u8> {
    let (client, server) = tokio::io::duplex(1 << 16);
    let (mut hearing, mut saying) = tokio::io::split(client);
    let (stop, stopped) = oneshot::channel::<()>();
    let mut heard = Vec::new();
    let all = async {
        tokio::join!(
            converse(server, router, async { drop(stopped.await) }),
            async {
                // Who is refused may not be heard out.
                let _ = saying.write_all(data).await;
                let _ = saying.shutdown().await;
                for _ in 0..TURNS {
                    tokio::task::yield_now().await;
                }
                drop(stop);
            },
            async { drop(hearing.read_to_end(&mut heard).await) }
        )
    };
    all.await;
    heard
}

/// Whatever was asked, what is answered is HTTP, and nothing has gone wrong here.
fn is_sound(heard: &[u8]) {
    assert!(heard.is_empty() || heard.starts_with(b"HTTP/1."), "{:?}", String::from_utf8_lossy(heard));
    assert!(!contains(heard, b" 500 Internal"), "{:?}", String::from_utf8_lossy(heard));
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|there| there == word)
}
