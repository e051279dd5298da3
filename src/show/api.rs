//! The JSON interface: reports, as far as they may be shown to whoever asks.

use serde::Serialize;
use serde_json::Value;

use super::state;
use crate::judge::{Report, Verdict};
use crate::ledger::{Entry, ServerState, Snapshot};
use crate::words::Moment;

/// One server in the list of all.
#[derive(Debug, Serialize)]
struct Listed<'s> {
    server: &'s str,
    /// What it counts as now: `unknown` when it is overdue or was never probed.
    verdict: Verdict,
    /// Since when it has counted as that.
    since: Option<String>,
    last_probe: Option<String>,
    /// Null unless the verdict is `fail`.
    reason: Option<&'static str>,
}

/// All servers, in one line each.
#[must_use]
pub fn servers(snapshot: &Snapshot, now: Moment) -> Value {
    let servers: Vec<Listed<'_>> = snapshot.servers.iter().map(|server| listed(server, now)).collect();
    serde_json::json!({ "format": 1, "servers": servers })
}

fn listed(server: &ServerState, now: Moment) -> Listed<'_> {
    Listed {
        server: server.name.as_str(),
        verdict: server.health(now).verdict(),
        since: state::since(server, now).map(Moment::rfc3339),
        last_probe: server.last.as_ref().map(|(at, _)| at.rfc3339()),
        reason: state::reason(server, now),
    }
}

/// The last report of one server; `None` if it has not been probed yet.
#[must_use]
pub fn report(server: &ServerState, show_private: bool) -> Option<Value> {
    let report = server.report()?;
    Some(if show_private { serde_json::to_value(report).unwrap_or_default() } else { public(report) })
}

/// One probe of the history.
#[derive(Debug, Serialize)]
struct Probe {
    at: String,
    verdict: Verdict,
    reason: Option<&'static str>,
    code: Option<&'static str>,
    startup_ms: Option<f64>,
}

/// What the probes of one server came to, oldest first, those of an earlier process too.
#[must_use]
pub fn history(server: &ServerState, now: Moment) -> Value {
    let probe = |entry: Entry| Probe {
        at: entry.at.rfc3339(),
        verdict: entry.verdict,
        reason: entry.reason.map(|r| r.as_str()),
        code: entry.code,
        startup_ms: entry.startup_ms,
    };
    let (troubles, recent): (Vec<_>, Vec<_>) = (server.history.troubles().map(probe).collect(), server.history.recent().map(probe).collect());
    serde_json::json!({
        "format": 1,
        "server": server.name.as_str(),
        "verdict": server.health(now).verdict(),
        "since": state::since(server, now).map(Moment::rfc3339),
        "last_success": server.succeeded().map(Moment::rfc3339),
        "schema_changed": server.schema.changed.map(Moment::rfc3339),
        "troubles": troubles,
        "recent": recent,
    })
}

/// A report without what only its owner should see: what the server wrote to stderr, what it was
/// given, its version, and evidence, which quotes all of these; so does why a schema does not compare.
fn public(report: &Report) -> Value {
    let mut report = serde_json::to_value(report).unwrap_or_default();
    report["stderr_tail"] = Value::Null;
    report["given"] = Value::Null;
    report["drift"]["why"] = Value::Null;
    if let Some(info) = report["server_info"].as_object_mut() {
        info.insert("version".to_owned(), Value::Null);
    }
    if let Some(against) = report["drift"]["against"].as_object_mut()
        && let Some(info) = against.get_mut("server_info").and_then(Value::as_object_mut)
    {
        info.insert("version".to_owned(), Value::Null);
    }
    for finding in report["findings"].as_array_mut().into_iter().flatten() {
        finding["evidence"] = Value::Null;
    }
    report
}
