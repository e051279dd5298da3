//! What may be done over HTTP, and not only seen: off unless it was asked for, since a probe that was
//! stopped for doing harm would do it again.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

use super::access::Caller;

/// Where a server is resumed; its name follows.
pub(super) const RESUME: &str = "/-/resume/";

/// Where what a server lists is accepted; its name follows.
pub(super) const ACCEPT: &str = "/-/accept/";

/// Whether anything may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actions {
    /// It was not asked for.
    Off,
    /// It was, but others than this machine's users can call: by who says who it is.
    NotHere,
    /// By whoever can call.
    On,
}

impl Actions {
    /// `enabled` as configured; `loopback` if only this machine can call.
    #[must_use]
    pub const fn new(enabled: bool, loopback: bool) -> Actions {
        match (enabled, loopback) {
            (false, _) => Actions::Off,
            (true, false) => Actions::NotHere,
            (true, true) => Actions::On,
        }
    }

    /// Lets a request with these headers do something.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(super) fn permit(self, caller: Caller, headers: &HeaderMap) -> Result<(), &'static str> {
        if self == Actions::Off {
            return Err("actions are off: start stdiowatch as `serve --enable-actions`\n");
        }
        // Browsers send the one with every POST, and the other one with everything, also for a page of somebody else's:
        // with the password that its user once gave, and with the certificate that it has.
        // What somebody typed is of no page.
        if headers.contains_key(ORIGIN) || headers.get(FETCH_SITE).is_some_and(|site| site != "none") {
            return Err("actions are refused to pages in a browser: use curl -X POST, or the like\n");
        }
        if caller.authenticated {
            return Ok(());
        }
        // A path that is for everybody: who says nothing there is nobody, wherever it asks from.
        if caller.asked {
            return Err("this is for who has authenticated: see docs/security.md\n");
        }
        if self == Actions::NotHere {
            return Err("actions are refused on an address that is no loopback one, but to who has authenticated: see docs/security.md\n");
        }
        // A page of somebody else's whose name was made to point here is of the same origin to a browser,
        // and may read the answer. It cannot give another name than its own.
        let is_ours = headers.get_all(HOST).iter().all(|host| host.to_str().is_ok_and(is_loopback));
        if is_ours { Ok(()) } else { Err("this is for who asks 127.0.0.1, [::1] or localhost, by that name\n") }
    }
}

/// Which page asks, to a browser (Fetch Metadata Request Headers, 2.3).
const FETCH_SITE: &str = "sec-fetch-site";

/// Whether a `Host` field names this machine's own loopback.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_done_unless_asked_for_and_on_loopback_or_by_somebody_known_and_by_no_page() {
        let (none, anybody) = (HeaderMap::new(), Caller::default());
        let known = Caller { authenticated: true, ..anybody };
        assert!(Actions::new(false, true).permit(known, &none).unwrap_err().contains("--enable-actions"));
        assert!(Actions::new(true, false).permit(anybody, &none).unwrap_err().contains("loopback"));
        assert_eq!(Actions::new(true, true).permit(anybody, &none), Ok(()));
        let silent = Caller { asked: true, ..anybody };
        assert!(Actions::new(true, true).permit(silent, &none).unwrap_err().contains("authenticated"), "on a path for everybody");
        assert_eq!(Actions::new(true, true).permit(Caller { authenticated: true, ..silent }, &none), Ok(()));
        assert_eq!(Actions::new(true, false).permit(known, &none), Ok(()));
        let typed = [("sec-fetch-site".parse().unwrap(), "none".parse().unwrap())].into_iter().collect();
        assert_eq!(Actions::On.permit(anybody, &typed), Ok(()));
        for (name, value) in [("origin", "http://localhost:10779"), ("origin", "null"), ("sec-fetch-site", "same-origin")] {
            let page: HeaderMap = [(name.parse().unwrap(), value.parse().unwrap())].into_iter().collect();
            for (actions, caller) in [(Actions::On, anybody), (Actions::On, known), (Actions::NotHere, known)] {
                assert!(actions.permit(caller, &page).unwrap_err().contains("browser"), "{name}: {value}");
            }
        }
    }

    #[test]
    fn nothing_is_done_for_a_page_under_any_name() {
        let told = |host: &str| Actions::On.permit(Caller::default(), &[(HOST, host.parse().unwrap())].into_iter().collect()).is_ok();
        for host in ["127.0.0.1", "127.0.0.1:10779", "localhost:1", "LocalHost", "[::1]", "[::1]:80", "127.1.2.3:9"] {
            assert!(told(host), "{host}");
        }
        for host in ["evil.example", "evil.example:10779", "127.0.0.1.evil.example:10779", "10.0.0.1", "", "[::2]:1", "localhost.evil:1"] {
            assert!(!told(host), "{host}");
        }
        assert!(Actions::On.permit(Caller::default(), &HeaderMap::new()).is_ok(), "HTTP/1.0, no browser");
        let mut two: HeaderMap = [(HOST, "localhost".parse().unwrap())].into_iter().collect();
        two.append(HOST, "evil.example".parse().unwrap());
        assert!(Actions::On.permit(Caller::default(), &two).is_err());
    }
}
