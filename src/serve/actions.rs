//! What may be done over HTTP, and not only seen: off unless it was asked for, since a probe that was
//! stopped for doing harm would do it again.

use axum::http::HeaderMap;
use axum::http::header::ORIGIN;

/// Where a server is resumed; its name follows.
pub(super) const RESUME: &str = "/-/resume/";

/// Where what a server lists is accepted; its name follows.
pub(super) const ACCEPT: &str = "/-/accept/";

/// Whether anything may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actions {
    /// It was not asked for.
    Off,
    /// It was, but others than this machine's users can call, and nobody says who is calling.
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
    pub(super) fn permit(self, headers: &HeaderMap) -> Result<(), &'static str> {
        match self {
            Actions::Off => Err("actions are off: start stdiowatch as `serve --enable-actions`\n"),
            Actions::NotHere => {
                Err("actions are refused on an address that is no loopback one: listen on 127.0.0.1, or restart stdiowatch to resume\n")
            }
            // Browsers send it with every POST, also for a page of somebody else's.
            Actions::On if headers.contains_key(ORIGIN) => Err("actions are refused to pages in a browser: use curl -X POST, or the like\n"),
            Actions::On => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_done_unless_asked_for_and_on_loopback_and_by_no_page() {
        let none = HeaderMap::new();
        assert!(Actions::new(false, true).permit(&none).unwrap_err().contains("--enable-actions"));
        assert!(Actions::new(true, false).permit(&none).unwrap_err().contains("loopback"));
        assert_eq!(Actions::new(true, true).permit(&none), Ok(()));
        let page = [(ORIGIN, "http://localhost:10779".parse().unwrap())].into_iter().collect();
        assert!(Actions::On.permit(&page).is_err());
    }
}
