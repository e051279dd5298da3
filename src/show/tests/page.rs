use super::fixture::*;
use crate::judge::{Severity, Verdict};
use crate::ledger::{ServerState, Snapshot};
use crate::show::page::{Page, View};
use crate::words::Moment;

fn view(snapshot: &Snapshot, now: Moment) -> View<'_> {
    View { snapshot, revision: "0-0", now, show_private: false }
}

fn overview(servers: Vec<ServerState>, now: Moment) -> String {
    Page::overview(view(&snapshot(servers), now)).html
}

/// The main part of a server's page.
fn page(server: ServerState, now: Moment, show_private: bool) -> String {
    let snapshot = snapshot(vec![server]);
    let html = Page::server(View { show_private, ..view(&snapshot, now) }, &snapshot.servers[0]).html;
    html.split("<main").nth(1).unwrap().split("</main>").next().unwrap().to_owned()
}

fn unknown(name: &str) -> ServerState {
    let mut server = passing(name);
    probe(&mut server, Verdict::Unknown, vec![finding("probe.host_busy", Severity::Unknown, "the host was saturated")], "echo", 60);
    server
}

#[test]
fn the_page_of_a_server_in_each_state() {
    let held = {
        let mut server = unknown("held");
        server.held = Some(crate::ledger::Held { since: at(60), why: "pid 7 died".to_owned() });
        server
    };
    for (state, server, now) in [
        ("passing", passing("files"), at(30)),
        ("warning", warning("files"), at(30)),
        ("failing", failing("files"), at(90)),
        ("unknown", unknown("files"), at(90)),
        ("stale", passing("files"), at(100_000)),
        ("held", held, at(90)),
        ("unprobed", unprobed("files"), at(0)),
    ] {
        insta::assert_snapshot!(format!("page_of_{state}"), page(server, now, false));
    }
}

#[test]
fn the_overview_tells_every_state_in_words() {
    let html = overview(vec![passing("a"), warning("b"), failing("c"), unprobed("d"), unknown("e")], at(61));
    for told in [
        "2 of 5 MCP servers up",
        "<strong>up</strong> for 61 s",
        "<strong>up, with a warning</strong>",
        "<strong>down</strong> for 1 s",
        "<strong>unprobed</strong></p>",
        "<strong>unknown</strong>",
        "not probed yet",
        "stdout.noise",
        "1 end-of-file",
    ] {
        assert!(html.contains(told), "{told} in {html}");
    }
    let places: Vec<_> = ["c", "d", "e", "b", "a"].into_iter().map(|name| html.find(&format!("<bdi>{name}</bdi>")).unwrap()).collect();
    assert!(places.is_sorted(), "what needs a look comes first");
    let stale = overview(vec![passing("a")], at(100_000));
    assert!(stale.contains("<strong>stale</strong></p>") && stale.contains("0 of 1"), "{stale}");
    assert!(overview(vec![], at(0)).contains("No server is configured."));
}

#[test]
fn a_failure_is_told_after_it_has_been_mended() {
    let mut server = failing("a");
    assert!(!page(server.clone(), at(90), false).contains("Last failure"));
    probe(&mut server, Verdict::Pass, vec![], "other", 120);
    let html = page(server, at(130), false);
    let (last, failure) = html.split_once("Last failure").unwrap();
    assert!(last.contains("It found nothing to mend.") && failure.contains("A line that fails to be JSON"), "{last}\n{failure}");
    assert!(failure.contains("What to do:"));
}

#[test]
fn what_is_private_needs_leave() {
    let html = page(failing("a"), at(90), false);
    for secret in ["secret-evidence", "secret-stderr", "1.2.3"] {
        assert!(!html.contains(secret), "{secret}");
        assert!(page(failing("a"), at(90), true).contains(secret), "{secret}");
    }
}

#[test]
fn nothing_a_server_says_becomes_markup() {
    let mut server = unprobed("<script>alert('x')<b>&\"");
    let message = "<img src=x onerror=alert(1)>";
    probe(&mut server, Verdict::Fail, vec![finding("stdout.noise", Severity::Fail, message)], "echo", 0);
    let html = overview(vec![server.clone()], at(1));
    assert!(html.contains("servers/%3Cscript%3Ealert%28%27x%27%29%3Cb%3E%26%22\""), "{html}");
    for html in [html.split("<main").nth(1).unwrap().to_owned(), page(server, at(1), true)] {
        assert!(!html.contains("<script") && !html.contains("<img") && html.contains("&lt;img src=x"), "{html}");
    }
}
