//! The canary call.

use super::super::case::{Case, Check};
use super::super::verdict::Severity::Fail;
use crate::probe::{NO_SUCH_TOOL, What};
use crate::protocol::mcp::ListKind;

pub(super) const CHECKS: &[Check] = &[Check {
    code: "call.failed",
    severity: Fail,
    about: "The canary call returned an error, or not what was expected, or could not be made.",
    mend: "If it was not made: name a tool that the server lists, and one that only reads; what is marked as destructive is called with `\"insist\": true` alone. If it was, look at what the tool needs (a database, a token, a network): a server can list its tools and still fail every call.",
    run: |case| {
        case.seen(|what| match what {
            What::CallFailed { tool, why } if why == NO_SUCH_TOOL => Some(format!("the call of \"{tool}\" failed: {why}{}", there(case))),
            What::CallFailed { tool, why } => Some(format!("the call of \"{tool}\" failed: {why}")),
            _ => None,
        })
    },
}];

/// So many tools are named, so long at the most, in characters.
const NAMED: usize = 10;
const LONGEST: usize = 60;

/// Which tools there are instead.
fn there(case: Case<'_>) -> String {
    let tools = case.launch.lists.iter().find(|list| list.kind == ListKind::Tools && list.complete).map_or(&[][..], |list| &list.items);
    let named: Vec<String> = tools.iter().take(NAMED).map(|tool| case.redactor.printable(&tool.name, LONGEST)).collect();
    match (named.is_empty(), tools.len().saturating_sub(NAMED)) {
        (true, _) => String::new(),
        (false, 0) => format!("; there are: {}", named.join(", ")),
        (false, more) => format!("; there are: {}, and {more} more", named.join(", ")),
    }
}
