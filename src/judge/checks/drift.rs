//! How the lists differ from what was accepted.

use std::collections::BTreeSet;

use super::super::case::{Case, Check, Found};
use super::super::compare::ChangeClass;
use super::super::drift::{ADDED, Against, DriftStatus, REMOVED};
use super::super::listing::Source;
use super::super::report::ServerIdentity;
use super::super::verdict::Severity::{Info, Warn};
use crate::probe::Phase;
use crate::words::printable;

/// Names and changes that evidence tells.
const TOLD: usize = 10;

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "drift.added",
        severity: Warn,
        about: "There are items that the accepted schema does not have. It fails against a lock file.",
        mend: "If the change is meant, accept it. With a lock file: write it by `stdiowatch lock`, then have serve read it by a reload (SIGHUP or POST /-/reload; --allow lets classes of changes through). Without one: POST /-/accept/NAME (--enable-actions). If it is not meant, something other than before is running.",
        run: |case| differs(case, ["new since the schema was accepted", "not in the lock file"], &case.drift.added, &[ADDED].into()),
    },
    Check {
        code: "drift.removed",
        severity: Warn,
        about: "Items of the accepted schema are gone: calls to them fail now. It fails against a lock file.",
        mend: "If the change is meant, accept it. With a lock file: write it by `stdiowatch lock`, then have serve read it by a reload (SIGHUP or POST /-/reload). Without one: POST /-/accept/NAME (--enable-actions). If it is not meant, look for missing credentials: servers list less without them.",
        run: |case| differs(case, ["gone since the schema was accepted", "in the lock file and gone"], &case.drift.removed, &[REMOVED].into()),
    },
    Check {
        code: "drift.changed",
        severity: Warn,
        about: "Items are not what they were when the schema was accepted. A changed description counts: a model reads it. It fails against a lock file.",
        mend: "Read the change (`stdiowatch diff OLD NEW`). If it is meant, accept it. With a lock file: write it by `stdiowatch lock`, then have serve read it by a reload (SIGHUP or POST /-/reload; --allow lets classes of changes through). Without one: POST /-/accept/NAME (--enable-actions).",
        run: changed,
    },
    Check {
        code: "drift.order",
        severity: Info,
        about: "The same items in another order.",
        mend: "Nothing has to be done; a steady order helps prompt caches.",
        run: |case| {
            let words = "the items are the same, in another order";
            (case.drift.status == DriftStatus::Order).then(|| Found::once(listed(case), Phase::List, words, "the digest ignores the order"))
        },
    },
    Check {
        code: "drift.not_comparable",
        severity: Info,
        about: "The schema differs, but the accepted one was taken under other conditions: in another era, with another configured environment, or for another client profile. So the difference says nothing.",
        mend: "Where a lock file was written under other conditions, write it under these: `stdiowatch lock`. Without one, the new schema is accepted.",
        run: |case| {
            let why = case.drift.why.as_ref().filter(|_| case.drift.status == DriftStatus::NotComparable)?;
            Some(Found::once(listed(case), Phase::List, "the schema differs from the one accepted under other conditions", why.clone()))
        },
    },
];

/// A finding about the names of items.
fn differs(case: Case<'_>, what: [&str; 2], items: &[String], class: &BTreeSet<ChangeClass>) -> Option<Found> {
    if case.drift.status != DriftStatus::Differs || items.is_empty() {
        return None;
    }
    let word = class.first().map_or("", |class| class.as_str());
    let told = items.iter().map(|item| format!("{} ({word})", printable(item, 120)));
    Some(found(case, items.len(), what, told, class))
}

fn changed(case: Case<'_>) -> Option<Found> {
    let changes = &case.drift.changed;
    if case.drift.status != DriftStatus::Differs || changes.is_empty() {
        return None;
    }
    let classes: BTreeSet<ChangeClass> = changes.iter().map(|c| c.class).collect();
    let weighty: Vec<_> = changes.iter().filter(|c| !case.rules.allowed.contains(&c.class)).collect();
    let counted = if weighty.is_empty() { changes.iter().collect() } else { weighty };
    let items: BTreeSet<&str> = counted.iter().map(|c| c.tool.as_str()).collect();
    let told = counted.iter().map(|c| format!("{} at {} ({}: {})", printable(&c.tool, 120), or_root(&c.path), c.class.as_str(), c.what));
    let what = ["other than when the schema was accepted", "other than in the lock file"];
    let mut found = found(case, items.len(), what, told, &classes);
    found.evidence.push_str(&version(case));
    Some(found)
}

fn or_root(path: &str) -> &str {
    if path.is_empty() { "its root" } else { path }
}

/// Whether the server says that it is another version. Versions are private, and so is evidence.
fn version(case: Case<'_>) -> String {
    let now = case.launch.greeting.server.as_ref().map(|s| s.version.as_str());
    let then = match &case.drift.against {
        Some(Against { server_info: Some(ServerIdentity { version, .. }), .. }) => version.as_str(),
        _ => return String::new(),
    };
    match (now, case.drift.upgrade) {
        (Some(now), Some(true)) if now != then => format!("; the server was {} then, and is {} now", printable(then, 60), printable(now, 60)),
        (_, Some(false)) => format!("; the server still calls itself {}", printable(then, 60)),
        _ => String::new(),
    }
}

/// `what` is said of a schema that was seen and accepted, and of one in a lock file.
fn found(case: Case<'_>, count: usize, what: [&str; 2], told: impl Iterator<Item = String>, classes: &BTreeSet<ChangeClass>) -> Found {
    let told: Vec<String> = told.collect();
    let more = told.len().saturating_sub(TOLD);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let shown: Vec<&str> = told.iter().take(TOLD).map(String::as_str).collect();
    let subject = if count == 1 { "item is" } else { "items are" };
    let what = match case.drift.against.as_ref().map(|a| a.source) {
        Some(Source::Lock) => what[1],
        Some(Source::Seen) | None => what[0],
    };
    let message = format!("{count} {subject} {what}");
    let allowed = classes.is_subset(&case.rules.allowed);
    Found { allowed, ..Found::once(listed(case), Phase::List, message, format!("{}{more}", shown.join(", "))) }
}

fn listed(case: Case<'_>) -> crate::words::At {
    case.launch.listed.unwrap_or_default()
}
