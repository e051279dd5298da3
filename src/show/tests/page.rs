use super::fixture::*;
use crate::show::page::Page;

#[test]
fn the_page_tells_every_state_in_words() {
    let html = Page::of(&snapshot(vec![passing("a"), warning("b"), failing("c"), unprobed("d")]), at(61)).html;
    for told in [
        "2 of 4 MCP servers up",
        "</span> up for 61 s",
        "up, with a warning",
        "</span> down for 1 s",
        "</span> unprobed",
        "not probed yet",
        "stdout.noise",
    ] {
        assert!(html.contains(told), "{told} in {html}");
    }
    let places: Vec<_> = ["<h2>c<", "<h2>d<", "<h2>b<", "<h2>a<"].into_iter().map(|name| html.find(name).unwrap()).collect();
    assert!(places.is_sorted(), "what needs a look comes first");
    let stale = Page::of(&snapshot(vec![passing("a")]), at(100_000)).html;
    assert!(stale.contains("</span> stale</p>") && stale.contains("0 of 1"), "{stale}");
    assert!(Page::of(&snapshot(vec![]), at(0)).html.contains("No server is configured."));
}

#[test]
fn nothing_a_server_says_becomes_markup() {
    let mut server = unprobed("<script>alert('x')<b>&\"");
    let message = "<img src=x onerror=alert(1)>".to_owned();
    let finding = finding("stdout.noise", crate::judge::Severity::Fail, &message);
    probe(&mut server, crate::judge::Verdict::Fail, vec![finding], "echo", 0);
    let html = Page::of(&snapshot(vec![server]), at(1)).html;
    assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
    assert!(html.contains("/health/%3Cscript%3Ealert%28%27x%27%29%3Cb%3E%26%22?verbose"), "{html}");
}

#[test]
fn the_page_loads_nothing_and_says_so() {
    let html = Page::of(&snapshot(vec![failing("a")]), at(61)).html;
    for loads in ["src=", "url(", "@import", "<script", "<link", "style="] {
        assert!(!html.contains(loads), "{loads}");
    }
    let policy = Page::policy();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
}
