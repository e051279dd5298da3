//! How a schema differs from the accepted one, line by line, with a bound.

use std::cmp::Reverse;

use super::told::bounded;
use crate::judge::{Changed, Drift, DriftStatus};

/// How many entries are told. A server that renamed everything has hundreds.
const MAX_ENTRIES: usize = 20;
/// The longest name or path of an entry, and the longest text before and after, in characters.
const MAX_NAME: usize = 200;
const MAX_TEXT: usize = 200;

/// One difference.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry<'d> {
    /// An item is gone.
    Removed(&'d str),
    /// An item is not the same.
    Changed(&'d Changed),
    /// An item is new.
    Added(&'d str),
}

impl Entry<'_> {
    /// In one line: `- NAME`, `! NAME PATH: what (class): old → new`, `+ NAME`, the signs of a context diff.
    pub(super) fn line(self) -> String {
        match self {
            Entry::Removed(name) => format!("- {}", bounded(name, MAX_NAME)),
            Entry::Added(name) => format!("+ {}", bounded(name, MAX_NAME)),
            Entry::Changed(change) => {
                let (old, new) = (side(change.old.as_deref()), side(change.new.as_deref()));
                let texts = if change.old.is_none() && change.new.is_none() { String::new() } else { format!(": {old} → {new}") };
                format!("! {}{texts}", head(change))
            }
        }
    }
}

/// What changed where: `NAME PATH: what (class)`.
pub(super) fn head(change: &Changed) -> String {
    let (tool, path) = (bounded(&change.tool, MAX_NAME), bounded(&change.path, MAX_NAME));
    format!("{tool} {path}: {} ({})", bounded(&change.what, MAX_NAME), change.class.as_str())
}

fn side(text: Option<&str>) -> String {
    text.map_or_else(|| "nothing".to_owned(), |text| bounded(text, MAX_TEXT))
}

/// The differences that are told, the gravest first, and how many more there are.
pub(super) fn entries(drift: &Drift) -> (Vec<Entry<'_>>, usize) {
    match drift.status {
        DriftStatus::Differs => {}
        DriftStatus::NoBaseline | DriftStatus::Same | DriftStatus::Order | DriftStatus::NotComparable => return (Vec::new(), 0),
    }
    let mut changed: Vec<&Changed> = drift.changed.iter().collect();
    changed.sort_by_key(|change| Reverse(change.class));
    let all = drift.removed.len() + changed.len() + drift.added.len();
    let removed = drift.removed.iter().map(|name| Entry::Removed(name));
    let added = drift.added.iter().map(|name| Entry::Added(name));
    let told = removed.chain(changed.into_iter().map(Entry::Changed)).chain(added).take(MAX_ENTRIES);
    (told.collect(), all.saturating_sub(MAX_ENTRIES))
}

/// The same in lines, the last of which says how many more there are.
pub(super) fn lines(drift: &Drift) -> Vec<String> {
    let (entries, more) = entries(drift);
    let told = entries.into_iter().map(Entry::line);
    told.chain((more > 0).then(|| format!("and {more} more"))).collect()
}

/// The lines of what a finding with this code is about.
pub(super) fn lines_of(drift: &Drift, code: &str) -> Vec<String> {
    let mut part = Drift { status: drift.status, ..Drift::default() };
    match code {
        "drift.added" => part.added.clone_from(&drift.added),
        "drift.removed" => part.removed.clone_from(&drift.removed),
        "drift.changed" => part.changed.clone_from(&drift.changed),
        _ => {}
    }
    lines(&part)
}
