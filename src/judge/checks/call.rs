//! The canary call.

use super::super::case::Check;
use super::super::verdict::Severity::Fail;
use crate::probe::What;

pub(super) const CHECKS: &[Check] = &[Check {
    code: "call.failed",
    severity: Fail,
    about: "The canary call returned an error, or not what was expected, or could not be made.",
    mend: "A server can list its tools and still fail every call: look at what the tool needs (a database, a token, a network).",
    run: |case| {
        case.seen(|what| match what {
            What::CallFailed { tool, why } => Some(format!("the call of \"{tool}\" failed: {why}")),
            _ => None,
        })
    },
}];
