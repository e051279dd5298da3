//! What a check is given, and what it gives.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use super::compare::ChangeClass;
use super::drift::Drift;
use super::listing::Source;
use super::verdict::{Reason, Severity};
use crate::probe::{Launch, Observation, Phase, Seen, What};
use crate::words::{At, Redactor};

/// What an objective can be set for.
pub const OBJECTIVES: [&str; 4] = ["startup", "list", "call", "shutdown"];

/// How a server's observations are judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Severities other than the checks' own, by code.
    pub severity: BTreeMap<String, Severity>,
    /// How long a phase may take before it is called slow.
    pub objectives: BTreeMap<&'static str, Duration>,
    /// Classes of changes of the schema that are told, and weigh nothing.
    pub allowed: BTreeSet<ChangeClass>,
}

/// What is judged.
#[derive(Clone, Copy)]
pub struct Case<'c> {
    /// Everything that was seen.
    pub observation: &'c Observation,
    /// The launch on which the server is judged.
    pub launch: &'c Launch,
    /// The rules.
    pub rules: &'c Rules,
    /// How the lists differ from those that were accepted.
    pub drift: &'c Drift,
    /// What must not surface.
    pub redactor: &'c Redactor,
}

impl<'c> Case<'c> {
    /// The severity of the findings of `check`, here.
    #[must_use]
    pub fn severity_of(self, check: &Check) -> Severity {
        self.rules.severity.get(check.code).copied().unwrap_or_else(|| self.default_severity(check))
    }

    /// The same, unless the rules say otherwise: what differs from a lock file differs from what people
    /// have agreed on.
    #[must_use]
    pub fn default_severity(self, check: &Check) -> Severity {
        let locked = self.drift.against.as_ref().is_some_and(|a| a.source == Source::Lock);
        if locked && check.is_drift() { Severity::Fail } else { check.severity }
    }

    /// What was seen on the judged launch and `wanted` makes something of, as one finding: the
    /// message is the first one's, the evidence tells of all.
    pub fn seen(self, wanted: impl Fn(&What) -> Option<String>) -> Option<Found> {
        found(self.launch.seen.iter(), wanted)
    }

    /// The same, over all launches.
    pub fn seen_anywhere(self, wanted: impl Fn(&What) -> Option<String>) -> Option<Found> {
        found(self.observation.launches.iter().flat_map(|l| &l.seen), wanted)
    }
}

fn found<'s>(seen: impl Iterator<Item = &'s Seen>, wanted: impl Fn(&What) -> Option<String>) -> Option<Found> {
    let mut found: Option<Found> = None;
    let mut more = 0;
    // Several things may be wrong with one line, and one thing in several.
    let mut told = BTreeSet::new();
    for seen in seen {
        let Some(message) = wanted(&seen.what) else { continue };
        let evidence = evidence(seen);
        more += seen.times - 1;
        match &mut found {
            None => {
                told.extend([message.clone(), evidence.clone()]);
                found = Some(Found { times: seen.times, line: seen.place.map(|p| p.line), ..Found::once(seen.at, seen.phase, message, evidence) })
            }
            Some(found) => {
                found.times += seen.times;
                for text in [message, evidence] {
                    if told.insert(text.clone()) {
                        found.evidence.push_str(&format!("; {text}"));
                    }
                }
            }
        }
    }
    if let Some(found) = &mut found
        && more > 0
    {
        found.evidence.push_str(&format!("; and {more} more"));
    }
    found
}

/// Where and when something was seen, and the bytes that show it.
fn evidence(seen: &Seen) -> String {
    let place = match seen.place {
        Some(place) => format!("stdout line {}, byte {}, at {}", place.line, place.offset, seen.at),
        None => format!("at {}", seen.at),
    };
    if seen.excerpt.is_empty() { place } else { format!("{place}: {}", seen.excerpt) }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// When it was first seen.
    pub at: At,
    /// In which phase.
    pub phase: Phase,
    /// For people: what is wrong, in one sentence.
    pub message: String,
    /// What shows it, escaped and bounded. Never empty.
    pub evidence: String,
    /// How often it was seen.
    pub times: u64,
    /// The line of stdout on which it was first seen.
    pub line: Option<u64>,
    /// The rules allow it: it is told, and weighs nothing.
    pub allowed: bool,
}

impl Found {
    /// Something found once.
    #[must_use]
    pub fn once(at: At, phase: Phase, message: impl Into<String>, evidence: impl Into<String>) -> Found {
        Found { at, phase, message: message.into(), evidence: evidence.into(), times: 1, line: None, allowed: false }
    }
}

/// One thing that is looked for. The table of them is the source of the documentation's table, of
/// the configuration's keys and of the metric's labels.
#[derive(Debug)]
pub struct Check {
    /// Its stable name.
    pub code: &'static str,
    /// How much its findings weigh by default.
    pub severity: Severity,
    /// What a finding means.
    pub about: &'static str,
    /// What to do about it.
    pub mend: &'static str,
    /// Looks for it.
    pub run: fn(Case<'_>) -> Option<Found>,
}

impl Check {
    /// Whether it says that the schema is another one.
    fn is_drift(&self) -> bool {
        ["drift.added", "drift.removed", "drift.changed"].contains(&self.code)
    }

    /// Why a probe failed whose first failure is a finding of this check, which weighs `default` unless
    /// the rules say otherwise.
    #[must_use]
    pub fn reason(&self, default: Severity) -> Reason {
        if default != Severity::Fail {
            return Reason::Policy;
        }
        let family = self.code.split('.').next().unwrap_or_default();
        match (family, self.code) {
            ("spawn", _) => Reason::SpawnFailed,
            ("exit", _) => Reason::Exited,
            ("timeout", _) => Reason::Timeout,
            ("stdout", _) => Reason::StdoutViolation,
            (_, "rpc.error") => Reason::RpcError,
            ("rpc" | "mcp", _) => Reason::ProtocolViolation,
            ("version", _) => Reason::VersionMismatch,
            ("drift", _) => Reason::SchemaDrift,
            ("call", _) => Reason::CallFailed,
            _ => Reason::Policy,
        }
    }
}

/// One thing seen, with a stable name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check's name.
    pub code: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// In which phase it was seen.
    #[serde(serialize_with = "phase_word")]
    pub phase: Phase,
    /// For people: what is wrong, in one sentence.
    pub message: String,
    /// What shows it, escaped and bounded.
    pub evidence: String,
    /// How often it was seen.
    pub times: u64,
}

fn phase_word<S: serde::Serializer>(phase: &Phase, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(phase.as_str())
}
