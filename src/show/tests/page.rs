use super::fixture::*;
use crate::judge::{Severity, Verdict};
use crate::ledger::{ServerState, Snapshot, Unwatched};
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
    for secret in ["secret-evidence", "secret-stderr", "secret-transcript", "1.2.3"] {
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

#[test]
fn the_transcript_of_the_last_trouble_stays_when_all_is_well_again() {
    let mut server = failing("a");
    probe(&mut server, Verdict::Pass, vec![], "other", 120);
    let html = page(server.clone(), at(130), true);
    let transcript = html.split("class=\"transcript\"").nth(1).and_then(|rest| rest.split("</pre>").next()).unwrap();
    for line in
        ["    0.000 s  launching\n", "    0.002 s  → {", "    0.003 s  ← secret-transcript \\x1b[2J&lt;img", "    0.090 s  exited with status 1\n"]
    {
        assert!(transcript.contains(line), "{line} in {transcript}");
    }
    assert!(html.contains("70 s ago</time> with <code>fail</code>"), "{html}");
    let closed = page(server, at(130), false);
    assert!(!closed.contains("secret-transcript") && closed.contains("<code>stdiowatch check -v</code>"), "{closed}");
    assert!(!page(passing("a"), at(30), false).contains("check -v"), "nothing is withheld where nothing is wrong");
}

#[test]
fn what_of_the_configuration_is_not_used_is_told() {
    let entry = |name: &str, broken| Unwatched {
        name: name.to_owned(),
        file: "mcp.json".to_owned(),
        line: 3,
        column: 5,
        why: "secret-why <b>".to_owned(),
        broken,
    };
    let mut snapshot = Snapshot::clone(&snapshot(vec![passing("a")]));
    let html = |snapshot: &Snapshot, show_private| Page::overview(View { show_private, ..view(snapshot, at(90)) }).html;
    assert!(!html(&snapshot, true).contains("Not watched") && !html(&snapshot, true).contains("refused"));
    snapshot.read(vec![entry("far", false), entry("<i>wrong", true)]);
    snapshot.refuse(at(60), "secret-file:3:5: no".to_owned());
    let (open, closed) = (html(&snapshot, true), html(&snapshot, false));
    for told in [
        "<bdi>&lt;i&gt;wrong</bdi> <strong class=\"down\">broken entry</strong>",
        "<bdi>far</bdi> <span class=\"small\">skipped</span>",
        "30 s ago</time>, and refused",
    ] {
        assert!(open.contains(told) && closed.contains(told), "{told} in {closed}");
    }
    assert!(open.contains("mcp.json:3:5: secret-why &lt;b&gt;") && open.contains("secret-file:3:5: no"), "{open}");
    assert!(!closed.contains("secret-") && !closed.contains("mcp.json") && closed.contains("stdiowatch config check"), "{closed}");
}
