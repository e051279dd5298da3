//! `/health`: draft-inadarei-api-health-check-06, with one entry for each server.
//!
//! What is not known to be well is not healthy: a server that was never probed, whose last verdict
//! is overdue or `unknown`, and also no server at all. The word for the overall state occurs once
//! in the body, and the two others never.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::state::{reason, sentence, since, word};
use super::unmistakable;
use crate::judge::{Finding, Timings, Verdict};
use crate::ledger::{Health, ServerState, Snapshot};
use crate::words::{Moment, printable};

/// When to look again where nothing says when the next verdict is due.
const SOON: Duration = Duration::from_secs(5);
/// The longest message of a finding, in characters.
const MAX_MESSAGE: usize = 300;

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// With each server's findings and timings.
    pub verbose: bool,
    /// As plain text.
    pub text: bool,
    /// Servers to leave out. One that does not exist leaves nothing out, and the answer says so: a
    /// balancer's check must not break because a server was taken out of the configuration.
    pub exclude: Vec<String>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Every server that was looked at is up, and there was one.
    pub healthy: bool,
    /// When to look again, in seconds, if not.
    pub retry_after: Option<u64>,
    /// The `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

/// The health of every server but those excluded.
#[must_use]
pub fn all(snapshot: &Snapshot, now: Moment, question: &Question) -> Answer {
    let excluded = |server: &ServerState| question.exclude.iter().any(|name| name == server.name.as_str());
    let servers: Vec<_> = snapshot.servers.iter().filter(|s| !excluded(s)).collect();
    let unmatched = question.exclude.iter().filter(|name| snapshot.server(name).is_none()).count();
    let mut notes = Vec::new();
    if unmatched > 0 {
        notes.push(format!("names to exclude that no server has: {unmatched}"));
    }
    if servers.is_empty() {
        notes.push("no server was looked at".to_owned());
    }
    answer(&servers, now, question, notes)
}

/// The health of the server `name`; `None` if there is none.
#[must_use]
pub fn one(snapshot: &Snapshot, now: Moment, name: &str, question: &Question) -> Option<Answer> {
    snapshot.server(name).map(|server| answer(&[server], now, question, Vec::new()))
}

/// What is said of a server that is not watched.
#[must_use]
pub fn no_such_server(snapshot: &Snapshot, name: &str) -> String {
    format!("{{\"status\":\"fail\",\"output\":\"{}\"}}\n", snapshot.reading.why_nobody(name))
}

/// The `Content-Type` of the JSON answers.
pub const HEALTH_JSON: &str = "application/health+json";

fn answer(servers: &[&Arc<ServerState>], now: Moment, question: &Question, notes: Vec<String>) -> Answer {
    let overall = overall(servers, now);
    let (content_type, body) = if question.text {
        ("text/plain; charset=utf-8", text(overall, servers, now))
    } else {
        (HEALTH_JSON, json(overall, servers, now, question.verbose, notes))
    };
    let healthy = overall.is_up();
    Answer { healthy, retry_after: (!healthy).then(|| retry_after(servers, now)), content_type, body }
}

/// `Pass`, `Warn` or `Fail`.
fn overall(servers: &[&Arc<ServerState>], now: Moment) -> Verdict {
    let verdicts = servers.iter().map(|s| s.health(now).verdict());
    match verdicts.max() {
        None | Some(Verdict::Unknown | Verdict::Fail) => Verdict::Fail,
        Some(verdict @ (Verdict::Pass | Verdict::Warn)) => verdict,
    }
}

/// Until the first of the servers that are not up may have another verdict, in seconds.
fn retry_after(servers: &[&Arc<ServerState>], now: Moment) -> u64 {
    let until_next = |server: &Arc<ServerState>| match (server.health(now), &server.last) {
        // Nothing changes before somebody does something.
        _ if server.held.is_some() => server.terms.interval,
        (Health::Known(_), Some((at, _))) => (server.terms.interval + server.backoff).saturating_sub(now.since(*at)),
        _ => SOON,
    };
    let waits = servers.iter().filter(|s| !s.health(now).is_up()).map(|s| until_next(s));
    waits.min().unwrap_or(SOON).as_secs().clamp(1, 3600)
}

fn text(overall: Verdict, servers: &[&Arc<ServerState>], now: Moment) -> String {
    let mut out = format!("{overall}\n");
    for server in servers {
        out.push_str(word(server.health(now)));
        out.push(' ');
        out.push_str(&unmistakable::percent(server.name.as_str()));
        out.push('\n');
    }
    out
}

fn json(overall: Verdict, servers: &[&Arc<ServerState>], now: Moment, verbose: bool, notes: Vec<String>) -> String {
    let rest = Rest { checks: Checks { servers, now, verbose }, notes };
    // The ledger's numbers are finite and its keys are strings: this cannot go wrong.
    let rest = serde_json::to_string(&rest).unwrap_or_else(|_| "{\"checks\":{}}".to_owned());
    format!("{{\"status\":\"{overall}\",{}\n", &unmistakable::json(&rest)[1..])
}

/// All of the body but the status, which comes first.
#[derive(Serialize)]
struct Rest<'a> {
    checks: Checks<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

struct Checks<'a> {
    servers: &'a [&'a Arc<ServerState>],
    now: Moment,
    verbose: bool,
}

impl Serialize for Checks<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.servers.iter().map(|server| {
            // The draft: "componentName:measurementName", and an array of what was measured.
            (format!("{}:handshake", server.name), [entry(server, self.now, self.verbose)])
        }))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    component_type: &'static str,
    observed_value: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(flatten)]
    details: Option<Details<'a>>,
}

/// What `?verbose` adds.
#[derive(Serialize)]
struct Details<'a> {
    status: Verdict,
    since: Option<String>,
    reason: Option<&'static str>,
    timings: Option<&'a Timings>,
    findings: Vec<Brief<'a>>,
}

/// A finding without its evidence, which may quote what the server wrote.
#[derive(Serialize)]
struct Brief<'a> {
    code: &'a str,
    severity: &'static str,
    phase: &'static str,
    message: String,
}

impl<'a> From<&'a Finding> for Brief<'a> {
    fn from(finding: &'a Finding) -> Brief<'a> {
        Brief {
            code: finding.code,
            severity: finding.severity.as_str(),
            phase: finding.phase.as_str(),
            message: printable(&finding.message, MAX_MESSAGE),
        }
    }
}

fn entry(server: &ServerState, now: Moment, verbose: bool) -> Entry<'_> {
    let health = server.health(now);
    Entry {
        component_type: "component",
        observed_value: word(health),
        time: server.last.as_ref().map(|(at, _)| at.rfc3339()),
        output: sentence(server, now),
        details: verbose.then(|| details(server, now)),
    }
}

fn details(server: &ServerState, now: Moment) -> Details<'_> {
    let report = server.report();
    Details {
        status: match server.health(now).verdict() {
            // The draft knows three words.
            Verdict::Unknown | Verdict::Fail => Verdict::Fail,
            verdict @ (Verdict::Pass | Verdict::Warn) => verdict,
        },
        since: since(server, now).map(Moment::rfc3339),
        reason: reason(server, now),
        timings: report.map(|r| &r.timings),
        findings: report.map(|r| r.findings.iter().map(Brief::from).collect()).unwrap_or_default(),
    }
}
