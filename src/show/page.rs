//! `/`: an overview for people. One self-contained document without a script: what it may load is
//! nothing, and [`Page::policy`] says so.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::time::Duration;

use super::state::{sentence, word};
use crate::ledger::{Health, ServerState, Snapshot};
use crate::words::{Digest, Moment};

/// Colours have a contrast of at least 4.5 : 1 in both schemes, and no state is told by colour alone.
const STYLE: &str = "\
:root{color-scheme:light dark;--up:#0a6b2d;--attention:#8a5000;--down:#b00020;--muted:#595959;--line:#d0d0d0}
@media(prefers-color-scheme:dark){:root{--up:#5fd68b;--attention:#f0b13c;--down:#ff8a8a;--muted:#a8a8a8;--line:#444}}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}
h1{font-size:1.4rem}h2{font-size:1rem;margin:0}p{margin:.25rem 0}
ul{list-style:none;padding:0}li{border-top:1px solid var(--line);padding:.75rem 0}
li p{color:var(--muted)}nav a{display:inline-block;padding:.25rem .75rem .25rem 0}
.up{color:var(--up)}.attention{color:var(--attention)}.down{color:var(--down)}
";

/// The overview.
#[derive(Clone, Debug)]
pub struct Page {
    /// The document.
    pub html: String,
}

impl Page {
    /// The overview at `now`.
    #[must_use]
    pub fn of(snapshot: &Snapshot, now: Moment) -> Page {
        Page { html: document(snapshot, now) }
    }

    /// The `Content-Security-Policy` to serve it with: no source for anything but its own style,
    /// which is named by its digest (CSP level 3, "hash-source").
    #[must_use]
    pub fn policy() -> String {
        let style = base64(Digest::of(STYLE.as_bytes()).bytes());
        format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    }
}

fn document(snapshot: &Snapshot, now: Moment) -> String {
    let up = snapshot.servers.iter().filter(|s| s.health(now).is_up()).count();
    let all = snapshot.servers.len();
    let mut worst_first: Vec<_> = snapshot.servers.iter().collect();
    worst_first.sort_by_key(|server| Reverse(server.health(now).verdict()));
    let servers: String = worst_first.into_iter().map(|server| item(server, now)).collect();
    let servers = if servers.is_empty() { "<p>No server is configured.</p>\n".to_owned() } else { format!("<ul>\n{servers}</ul>\n") };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{up} of {all} up: stdiowatch</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <main>\n<h1>{up} of {all} MCP servers up</h1>\n<p>As of {at}.</p>\n{servers}</main>\n\
         <nav aria-label=\"Machine-readable\"><a href=\"/health?verbose\">/health?verbose</a>\
         <a href=\"/health?format=text\">/health?format=text</a><a href=\"/metrics\">/metrics</a>\
         <a href=\"/readyz\">/readyz</a><a href=\"/livez\">/livez</a></nav>\n</body>\n</html>\n",
        at = now.rfc3339(),
    )
}

fn item(server: &ServerState, now: Moment) -> String {
    let health = server.health(now);
    let (class, shape, said) = look(health);
    let name = escaped(server.name.as_str());
    let mut out = format!("<li><h2>{name}</h2><p class=\"{class}\">");
    let _ = write!(out, "<span aria-hidden=\"true\">{shape}</span> {said}");
    if let Some(since) = server.since.filter(|_| matches!(health, Health::Known(_))) {
        let _ = write!(out, " for {}", span(now.since(since)));
    }
    out.push_str("</p>");
    if let Some(sentence) = sentence(server, now) {
        let _ = write!(out, "<p>{}</p>", escaped(&sentence));
    }
    if let Some((at, report)) = &server.last {
        let _ = write!(out, "<p>Last probe {} ago", span(now.since(*at)));
        if let Some(startup) = report.timings.startup_ms {
            let _ = write!(out, ", start-up {startup:.0} ms");
        }
        if let Some(tools) = report.lists.tools {
            let _ = write!(out, ", {tools} {}", if tools == 1 { "tool" } else { "tools" });
        }
        let _ = write!(out, ", <a href=\"/health/{}?verbose\" aria-label=\"details of {name}\">details</a></p>", segment(server.name.as_str()));
    }
    out.push_str("</li>\n");
    out
}

/// A state's class, shape and word.
fn look(health: Health) -> (&'static str, &'static str, &'static str) {
    use crate::judge::Verdict::{Fail, Pass, Unknown, Warn};
    match health {
        Health::Known(Pass) => ("up", "●", word(health)),
        Health::Known(Warn) => ("attention", "▲", "up, with a warning"),
        Health::Known(Fail) => ("down", "✖", word(health)),
        Health::Known(Unknown) => ("attention", "?", word(health)),
        Health::NotProbed | Health::Stale { .. } => ("attention", "◌", word(health)),
    }
}

/// A length of time, to its greatest unit.
fn span(duration: Duration) -> String {
    match duration.as_secs() {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{} min", s / 60),
        s @ 7200..172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86400),
    }
}

/// `text` as it may stand in an element.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// `text` as one segment of a path (RFC 3986, 3.3): only unreserved characters stay.
fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Base64 with padding (RFC 4648, 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let group = [0, 1, 2].iter().fold(0usize, |n, at| n << 8 | usize::from(chunk.get(*at).copied().unwrap_or_default()));
        for (position, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            out.push(if position <= chunk.len() { char::from(ALPHABET[group >> shift & 63]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_one_of_rfc_4648() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn a_name_is_text_in_the_page_and_one_segment_in_a_link() {
        assert_eq!(escaped("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
        assert_eq!(segment("a b?#%\"é.x"), "a%20b%3F%23%25%22%C3%A9.x");
    }

    #[test]
    fn a_span_is_told_in_its_greatest_unit() {
        for (seconds, told) in [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_800, "2 days")] {
            assert_eq!(span(Duration::from_secs(seconds)), told);
        }
    }
}
