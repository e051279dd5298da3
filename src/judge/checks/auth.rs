//! What a server wants of a person.

use super::super::case::{Case, Check, Found};
use super::super::verdict::Severity::Unknown;
use crate::probe::What;

pub(super) const CHECKS: &[Check] = &[Check {
    code: "auth.browser",
    severity: Unknown,
    about: "The server tried to open a browser, mostly to have somebody log in. None was opened: the probe gives it a BROWSER that does nothing. What it does without a login says nothing about how it serves somebody who is logged in.",
    mend: "Log in once with the command by hand, as the user that stdiowatch runs as and with the same HOME, or give the server a token by its environment. A server that has its own BROWSER among its variables keeps it.",
    run: browser,
}];

/// On whichever launch it was.
fn browser(case: Case<'_>) -> Option<Found> {
    case.seen_anywhere(|what| match what {
        What::Browser { origin } => Some(format!("the server tried to open a browser, at {origin}")),
        _ => None,
    })
}
