//! The report of one probe.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::case::{Case, Finding, Rules};
use super::checks::CHECKS;
use super::drift::Drift;
use super::listing::{Accepted, Environment, Listing, all_items};
use super::verdict::{Reason, Severity, Verdict};
use crate::probe::{EndedBy, Exit, Io, Launch, Observation};
use crate::protocol::Era;
use crate::protocol::json::Doc;
use crate::protocol::mcp::{ListKind, set_digest};
use crate::words::{Digest, Redactor, ServerName};

/// How deep the items may be that a report holds. Readers of JSON refuse what is deeper than about 128.
const MAX_ITEM_DEPTH: usize = 100;

/// What one probe came to, as `check --format json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The server's name.
    pub server: String,
    /// When the probe began, RFC 3339.
    pub started_at: String,
    /// What it came to.
    pub verdict: Verdict,
    /// Why it failed; `None` unless it did.
    pub reason: Option<Reason>,
    /// How the server is spoken to; `None` where that was not found out.
    #[serde(serialize_with = "era_word")]
    pub era: Option<Era>,
    /// The version that was agreed on.
    pub protocol_version: Option<String>,
    /// How the server calls itself.
    pub server_info: Option<ServerIdentity>,
    /// The names of its capabilities.
    pub capabilities: Vec<String>,
    /// What the server was given; `None` for a probe of which that is not known.
    pub given: Option<Given>,
    /// How many processes were started.
    pub spawns: usize,
    /// How long it took.
    pub timings: Timings,
    /// How many items its lists have.
    pub lists: Lists,
    /// The digest of all of them; `None` where nothing was listed.
    pub schema: Option<Schema>,
    /// How they differ from what was accepted.
    pub drift: Drift,
    /// How it was ended.
    pub shutdown: Option<Shutdown>,
    /// Live copies of it that others had started.
    pub peers: PeersSeen,
    /// What it used.
    pub usage: Option<UsageSeen>,
    /// What went over its pipes.
    pub io: IoSeen,
    /// The end of what it wrote to stderr, secrets masked.
    pub stderr_tail: String,
    /// What was found, in order of time.
    pub findings: Vec<Finding>,
}

/// What a server was given, as far as it may be shown: names, never values or arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Which of our environment: `sdk`, `inherit` or `clean`.
    pub env_mode: String,
    /// The names of all the variables of its environment.
    pub env: Vec<String>,
    /// Its working directory; `None` for ours.
    pub cwd: Option<String>,
    /// What its stdin and stdout are: `pipe` or `socketpair`.
    pub stdio: String,
}

/// A name and a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerIdentity {
    /// The name.
    pub name: String,
    /// The version; may be empty.
    pub version: String,
}

/// How long the parts of a probe took, in milliseconds; `None` for what was not reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Timings {
    /// Starting the process.
    pub spawn_ms: Option<f64>,
    /// From there to the first valid reply, on the judged launch.
    pub startup_ms: Option<f64>,
    /// Reading the lists.
    pub list_ms: Option<f64>,
    /// The canary call.
    pub call_ms: Option<f64>,
    /// From the end of stdin to the end of the process.
    pub shutdown_ms: Option<f64>,
    /// The whole probe, other launches included.
    pub total_ms: f64,
}

/// How many items each list has; `None` where it is not offered or could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lists {
    /// Tools.
    pub tools: Option<usize>,
    /// Prompts.
    pub prompts: Option<usize>,
    /// Resources.
    pub resources: Option<usize>,
    /// Resource templates.
    pub resource_templates: Option<usize>,
}

impl Lists {
    /// Each list with its count.
    #[must_use]
    pub fn each(&self) -> [(ListKind, Option<usize>); 4] {
        [
            (ListKind::Tools, self.tools),
            (ListKind::Prompts, self.prompts),
            (ListKind::Resources, self.resources),
            (ListKind::ResourceTemplates, self.resource_templates),
        ]
    }
}

/// The digest of all lists together.
#[derive(Clone, Debug, Serialize)]
pub struct Schema {
    /// SHA-256, in hexadecimal.
    #[serde(serialize_with = "digest_hex")]
    pub sha256: Digest,
    /// The size of the canonical forms, in bytes.
    pub bytes: usize,
    /// Every offered list was read to its end.
    pub complete: bool,
    /// Why it may not be accepted, although it is complete; `None` if it may.
    pub unfit: Option<String>,
    /// The items themselves, as a lock file has them; only where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<RawValue>>,
}

/// How the server was ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shutdown {
    /// What it took.
    #[serde(serialize_with = "ended_by_word")]
    pub ended_by: EndedBy,
    /// Its exit status, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Descendants in its process group that outlived it.
    pub leftover_group: usize,
    /// Descendants outside of it that did.
    pub leftover_escaped: usize,
    /// One of them held stdout open.
    pub pipe_held: bool,
}

/// Live copies of the server that others had started, by their pids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PeersSeen {
    /// They were looked for, and could be seen if there were any.
    pub looked: bool,
    /// Those that live.
    pub live: Vec<u32>,
    /// Those that lived before the launch and were dead at the end.
    pub died: Vec<u32>,
}

/// What the server used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UsageSeen {
    /// Peak resident memory, in bytes: the sum of the peaks of its processes before stdin was closed.
    pub max_rss_bytes: Option<u64>,
    /// User and system time, in seconds, its reaped descendants included.
    pub cpu_seconds: f64,
}

/// What went over the server's pipes on the judged launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IoSeen {
    /// Bytes on stdout.
    pub stdout_bytes: u64,
    /// Bytes on stderr.
    pub stderr_bytes: u64,
    /// JSON-RPC messages on stdout.
    pub messages: u64,
}

impl From<Io> for IoSeen {
    fn from(io: Io) -> IoSeen {
        IoSeen { stdout_bytes: io.stdout_bytes, stderr_bytes: io.stderr_bytes, messages: io.messages }
    }
}

impl Report {
    /// Adds to an early exit that its stderr names variables which are set here and were not handed on:
    /// the commonest reason of all. `is_set` says whether a variable is set here.
    pub fn name_withheld(&mut self, is_set: impl Fn(&str) -> bool) {
        let Some(given) = &self.given else { return };
        let is_name = |word: &&str| word.len() > 2 && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        let words = self.stderr_tail.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(is_name);
        let mut withheld: Vec<&str> = words.filter(|name| is_set(name) && !given.env.iter().any(|g| g == name)).collect();
        withheld.sort_unstable();
        withheld.dedup();
        if let (Some(name), Some(finding)) = (withheld.first(), self.findings.iter_mut().find(|f| f.code == "exit.before_reply")) {
            let hint = format!("; hint: {name} is set here, and is not handed on to the server: --env {name} does that");
            finding.evidence.push_str(&hint);
        }
    }
}

/// What a server's lists are compared with.
#[derive(Clone, Copy)]
pub struct Reference<'r> {
    /// What was accepted; `None` where nothing was.
    pub accepted: Option<&'r Accepted>,
    /// What the server was configured with now.
    pub environment: &'r Environment,
    /// Knows what must not surface.
    pub redactor: &'r Redactor,
}

impl Report {
    /// Adds the items that were listed, masked; not those for which a reader might refuse the report: too
    /// deep, or with a number or a string in them that not everybody reads.
    pub fn add_items(&mut self, listing: &Listing, redactor: &Redactor) {
        let text = redactor.redact_str(&listing.lists_json()).into_owned();
        let is_shallow = Doc::parse(text.as_bytes()).is_ok_and(|doc| doc.oddities.depth <= MAX_ITEM_DEPTH);
        let is_readable = is_shallow && serde_json::from_str::<serde_json::Value>(&text).is_ok();
        if let (Some(schema), true) = (&mut self.schema, is_readable) {
            schema.items = RawValue::from_string(text).ok();
        }
    }
}

impl Reference<'static> {
    /// Nothing was accepted, and nothing is known of how the server was configured.
    #[must_use]
    pub fn nothing() -> Reference<'static> {
        static ENVIRONMENT: Environment = Environment { mode: String::new(), names: Vec::new(), fingerprint: String::new() };
        static REDACTOR: Redactor = Redactor::none();
        Reference { accepted: None, environment: &ENVIRONMENT, redactor: &REDACTOR }
    }
}

/// Judges what was seen of the server `name` in a probe that began at `started_at` (RFC 3339).
#[must_use]
pub fn judge(name: &ServerName, started_at: String, observation: &Observation, rules: &Rules, reference: Reference<'_>) -> Report {
    let launch = observation.judged();
    let listed = launch.and_then(|launch| Listing::of(launch, reference.environment));
    let drift = match (reference.accepted, &listed) {
        (Some(accepted), Some(now)) => accepted.drift(now, &rules.allowed, reference.redactor),
        _ => Drift::default(),
    };
    let case = launch.map(|launch| Case { observation, launch, rules, drift: &drift, redactor: reference.redactor });
    let (findings, reason) = case.map_or_else(|| (Vec::new(), None), find);
    let verdict = Verdict::of(findings.iter().map(|f| f.severity).max().unwrap_or(Severity::Info));
    Report {
        server: name.to_string(),
        started_at,
        // No launch, no finding: that is not a healthy server.
        verdict: if launch.is_none() { Verdict::Unknown } else { verdict },
        reason: (verdict == Verdict::Fail).then_some(reason).flatten(),
        era: launch.filter(|l| l.ready.is_some()).map(|l| l.opening),
        protocol_version: launch.and_then(|l| l.version.clone()).filter(|v| !v.is_empty()),
        server_info: launch.and_then(|l| l.greeting.server.as_ref()).map(|s| ServerIdentity { name: s.name.clone(), version: s.version.clone() }),
        capabilities: launch.map(|l| l.greeting.capabilities.clone()).unwrap_or_default(),
        given: None,
        spawns: observation.launches.iter().filter(|l| l.spawned.is_some()).count(),
        timings: timings(observation),
        lists: launch.map(lists).unwrap_or_default(),
        schema: launch.and_then(|launch| schema(launch, listed.as_ref(), reference.redactor)),
        drift,
        shutdown: launch.and_then(shutdown),
        peers: PeersSeen { looked: observation.peers.looked, live: observation.peers.live.clone(), died: observation.peers.died.clone() },
        usage: launch.and_then(usage),
        io: launch.map(|l| l.io.into()).unwrap_or_default(),
        stderr_tail: launch.map(|l| l.stderr_tail.clone()).unwrap_or_default(),
        findings,
    }
}

/// Every finding, in order of time, and the reason that the first failure gives.
fn find(case: Case<'_>) -> (Vec<Finding>, Option<Reason>) {
    let mut found: Vec<_> = CHECKS.iter().filter_map(|check| (check.run)(case).map(|found| (check, found))).collect();
    found.sort_by_key(|(_, found)| found.at);
    // What explains a failure takes its place.
    let explained = found.iter().any(|(check, _)| case.severity_of(check) == Severity::Unknown);
    let mut reason = None;
    let findings = found
        .into_iter()
        .map(|(check, found)| {
            let severity = if found.allowed { Severity::Info } else { case.severity_of(check) };
            let severity = if explained && severity == Severity::Fail { Severity::Unknown } else { severity };
            if severity == Severity::Fail {
                reason.get_or_insert(check.reason(case.default_severity(check)));
            }
            Finding { code: check.code, severity, phase: found.phase, message: found.message, evidence: bounded(found.evidence), times: found.times }
        })
        .collect();
    (findings, reason)
}

/// Evidence is a few excerpts; each is bounded, and so is their sum.
fn bounded(mut evidence: String) -> String {
    const MAX: usize = 2000;
    if evidence.len() > MAX {
        let cut = (0..=MAX).rev().find(|at| evidence.is_char_boundary(*at)).unwrap_or(0);
        evidence.truncate(cut);
        evidence.push('…');
    }
    evidence
}

fn timings(observation: &Observation) -> Timings {
    let launch = observation.judged();
    let between = |from: Option<crate::words::At>, to: Option<crate::words::At>| Some(milliseconds(to? - from?));
    let started = launch.map(|l| l.started);
    Timings {
        spawn_ms: between(started, launch.and_then(|l| l.spawned)),
        startup_ms: between(started, launch.and_then(|l| l.first_reply)),
        list_ms: between(launch.and_then(|l| l.ready), launch.and_then(|l| l.listed)),
        call_ms: between(launch.and_then(|l| l.listed), launch.and_then(|l| l.called)),
        shutdown_ms: launch.and_then(|l| l.end.as_ref()).and_then(|end| between(end.closed, Some(end.at))),
        total_ms: milliseconds(observation.total),
    }
}

/// Milliseconds, to the microsecond.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn lists(launch: &Launch) -> Lists {
    let count = |kind| launch.lists.iter().find(|l| l.kind == kind && !l.unknown).map(|l| l.items.len());
    Lists {
        tools: count(ListKind::Tools),
        prompts: count(ListKind::Prompts),
        resources: count(ListKind::Resources),
        resource_templates: count(ListKind::ResourceTemplates),
    }
}

fn schema(launch: &Launch, listed: Option<&Listing>, redactor: &Redactor) -> Option<Schema> {
    if launch.lists.iter().all(|l| l.unknown) {
        return None;
    }
    Some(Schema {
        sha256: set_digest(all_items(launch)),
        bytes: all_items(launch).map(|(_, item)| item.canonical.len()).sum(),
        complete: launch.listed.is_some() && launch.lists.iter().all(|l| l.complete),
        unfit: listed.and_then(|l| l.unfit.as_ref()).map(|why| redactor.redact_str(why).into_owned()),
        items: None,
    })
}

fn shutdown(launch: &Launch) -> Option<Shutdown> {
    let end = launch.end.as_ref()?;
    let (exit_code, signal) = match end.exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    Some(Shutdown {
        ended_by: end.by,
        exit_code,
        signal,
        leftover_group: end.swept.in_group.len(),
        leftover_escaped: end.swept.escaped.len(),
        pipe_held: end.pipe_held,
    })
}

fn usage(launch: &Launch) -> Option<UsageSeen> {
    let usage = launch.end.as_ref()?.usage;
    Some(UsageSeen { max_rss_bytes: usage.max_rss, cpu_seconds: (usage.cpu.as_secs_f64() * 1e6).round() / 1e6 })
}

fn era_word<S: serde::Serializer>(era: &Option<Era>, serializer: S) -> Result<S::Ok, S::Error> {
    match era {
        Some(era) => serializer.serialize_str(era.as_str()),
        None => serializer.serialize_none(),
    }
}

fn digest_hex<S: serde::Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(digest)
}

fn ended_by_word<S: serde::Serializer>(by: &EndedBy, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(by.as_str())
}
