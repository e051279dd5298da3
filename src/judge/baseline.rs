//! What the lists held when they were last accepted.

use std::collections::BTreeMap;

use crate::probe::Launch;
use crate::protocol::Era;
use crate::protocol::mcp::{ListKind, set_digest};
use crate::words::{Digest, printable};

use super::compare::compare;
use super::report::{Changed, Drift, DriftStatus};

/// An accepted schema: what later ones are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// The era it was taken in.
    pub era: Era,
    /// The digest of all lists together.
    pub digest: Digest,
    /// The items' canonical forms by list and name; several where a name stands twice.
    items: BTreeMap<Key, Vec<Vec<u8>>>,
    /// The names in the order they were listed.
    order: Vec<Key>,
}

/// A list, and an item's name: as it is shown, and the digest of the whole of it.
type Key = (ListKind, String, Digest);

impl Baseline {
    /// The baseline that a launch would make; `None` if its lists are not complete.
    #[must_use]
    pub fn of(launch: &Launch) -> Option<Baseline> {
        if launch.listed.is_none() || launch.lists.iter().any(|l| !l.complete) {
            return None;
        }
        let mut items: BTreeMap<_, Vec<Vec<u8>>> = BTreeMap::new();
        let mut order = Vec::new();
        for (kind, item) in all_items(launch) {
            let key = (kind, item.name.clone(), item.identity);
            items.entry(key.clone()).or_default().push(item.canonical.to_vec());
            order.push(key);
        }
        Some(Baseline { era: launch.opening, digest: set_digest(all_items(launch)), items, order })
    }

    /// How `now` differs from this.
    #[must_use]
    pub fn drift(&self, now: &Baseline) -> Drift {
        if self.digest == now.digest {
            let status = if self.order == now.order { DriftStatus::Same } else { DriftStatus::Order };
            return Drift { status, ..Drift::default() };
        }
        let mut drift = Drift { status: DriftStatus::Differs, ..Drift::default() };
        for (key, old) in &self.items {
            match now.items.get(key) {
                None => drift.removed.push(label(key)),
                Some(new) if new != old => drift.changed.extend(changes(key, old, new)),
                Some(_) => {}
            }
        }
        drift.added = now.items.keys().filter(|key| !self.items.contains_key(*key)).map(label).collect();
        if self.era != now.era {
            drift.status = DriftStatus::NotComparable;
        }
        drift
    }
}

/// Every item of every list.
pub(super) fn all_items(launch: &Launch) -> impl Iterator<Item = (ListKind, &crate::protocol::mcp::Item)> {
    launch.lists.iter().flat_map(|list| list.items.iter().map(|item| (list.kind, item)))
}

/// A tool's name; with the list's in front for anything else.
fn label((kind, name, _): &Key) -> String {
    if *kind == ListKind::Tools { name.clone() } else { format!("{}/{name}", kind.word()) }
}

/// The longest text of a change that is kept, in bytes.
const MAX_TEXT: usize = 2000;

fn changes(key: &Key, old: &[Vec<u8>], new: &[Vec<u8>]) -> Vec<Changed> {
    let bounded = |text: Option<String>| text.map(|t| printable(&t, MAX_TEXT));
    let pairs = old.iter().zip(new).filter(|(old, new)| old != new);
    let changes = pairs.flat_map(|(old, new)| compare(key.0, old, new));
    changes
        .map(|c| Changed {
            tool: label(key),
            path: printable(&c.path, 300),
            class: c.class,
            what: c.what.to_owned(),
            old: bounded(c.old),
            new: bounded(c.new),
        })
        .collect()
}
