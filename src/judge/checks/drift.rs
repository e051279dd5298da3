//! How the lists differ from what was accepted.

use super::super::baseline::Baseline;
use super::super::case::{Case, Check, Found};
use super::super::report::{Drift, DriftStatus};
use super::super::verdict::Severity::{Info, Warn};
use crate::probe::Phase;
use crate::words::printable;

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "drift.added",
        severity: Warn,
        about: "There are items that the accepted schema does not have.",
        mend: "If the change is meant, restart stdiowatch, which accepts what it then finds; if not, something other than before is running.",
        run: |case| drift(case, DriftStatus::Differs, |drift| named("new since the schema was accepted", &drift.added)),
    },
    Check {
        code: "drift.removed",
        severity: Warn,
        about: "Items of the accepted schema are gone.",
        mend: "If the change is meant, restart stdiowatch; if not, look for missing credentials: servers list less without them.",
        run: |case| drift(case, DriftStatus::Differs, |drift| named("gone since the schema was accepted", &drift.removed)),
    },
    Check {
        code: "drift.changed",
        severity: Warn,
        about: "Items are not what they were when the schema was accepted. A changed description counts: a model reads it.",
        mend: "Read the change. If it is meant, restart stdiowatch.",
        run: |case| {
            drift(case, DriftStatus::Differs, |drift| {
                let changes: Vec<String> = drift.changed.iter().map(|c| format!("{} at {} ({})", c.tool, c.path, c.class.as_str())).collect();
                named("changed since the schema was accepted", &changes)
            })
        },
    },
    Check {
        code: "drift.order",
        severity: Info,
        about: "The same items in another order.",
        mend: "Nothing has to be done; a steady order helps prompt caches.",
        run: |case| {
            drift(case, DriftStatus::Order, |_| {
                Some(("the items are the same, in another order".to_owned(), "the digest ignores the order".to_owned()))
            })
        },
    },
    Check {
        code: "drift.not_comparable",
        severity: Info,
        about: "The accepted schema was taken in another era, so a difference says nothing.",
        mend: "Restart stdiowatch, which accepts what it then finds.",
        run: |case| {
            drift(case, DriftStatus::NotComparable, |_| {
                let before = case.baseline.map_or("another", |b| b.era.as_str());
                Some(("the accepted schema was taken under other conditions".to_owned(), format!("{before} era then, {} now", case.launch.opening)))
            })
        },
    },
];

fn drift(case: Case<'_>, status: DriftStatus, words: impl Fn(&Drift) -> Option<(String, String)>) -> Option<Found> {
    let drift = case.baseline?.drift(&Baseline::of(case.launch)?);
    if drift.status != status {
        return None;
    }
    let (message, evidence) = words(&drift)?;
    Some(Found::once(case.launch.listed?, Phase::List, message, evidence))
}

fn named(what: &str, items: &[String]) -> Option<(String, String)> {
    let count = items.len();
    let shown: Vec<String> = items.iter().take(10).map(|item| printable(item, 120)).collect();
    let more = if count > shown.len() { format!(", and {} more", count - shown.len()) } else { String::new() };
    (count > 0).then(|| (format!("{count} {} {what}", if count == 1 { "item is" } else { "items are" }), format!("{}{more}", shown.join(", "))))
}
