//! How lists differ from those that were accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::compare::{ChangeClass, compare};
use super::listing::{Accepted, Key, Listing, Named, Source, label};
use super::report::ServerIdentity;
use crate::protocol::mcp::ListKind;
use crate::words::{Redactor, printable};

/// The longest text of a change that is kept, in bytes.
const MAX_TEXT: usize = 4000;
/// The longest pointer that is kept, in bytes.
const MAX_PATH: usize = 300;
/// The most changes, and the most names of each kind, that are kept.
const MAX_CHANGES: usize = 500;

/// How the schema differs from the accepted one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Whether it does.
    pub status: DriftStatus,
    /// Items that are new. Other lists than the tools have theirs in front: `prompts/NAME`.
    pub added: Vec<String>,
    /// Items that are gone.
    pub removed: Vec<String>,
    /// What changed in the others; several where one item changed in several places.
    pub changed: Vec<Changed>,
    /// Names and changes beyond those that are kept.
    pub omitted: usize,
    /// What it was compared with; `None` where there was nothing.
    pub against: Option<Against>,
    /// Whether the server says that it is another version than the one that was accepted; `None` where
    /// the schema does not differ.
    pub upgrade: Option<bool>,
    /// Why the difference says nothing; `None` unless it is not comparable.
    pub why: Option<String>,
    /// How many differences there are of each class, those included that are omitted.
    pub classes: BTreeMap<ChangeClass, u64>,
    /// Every difference is of a class that the rules allow.
    pub allowed: bool,
}

/// What a schema was compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Against {
    /// Where it was accepted.
    pub source: Source,
    /// Its digest, in hexadecimal.
    pub sha256: String,
    /// How the server called itself then.
    pub server_info: Option<ServerIdentity>,
}

/// Something that is not the same in an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// The item's name.
    pub tool: String,
    /// JSON pointer to what changed, escaped and bounded.
    pub path: String,
    /// What the change means for those who use the item.
    pub class: ChangeClass,
    /// What changed, in a few words.
    pub what: String,
    /// What stood there before: JSON, escaped, bounded; `None` if nothing did.
    pub old: Option<String>,
    /// What stands there now.
    pub new: Option<String>,
}

/// Whether a schema differs from the accepted one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DriftStatus {
    /// Nothing was accepted yet, or nothing was listed.
    #[default]
    NoBaseline,
    /// It is the same.
    Same,
    /// The same items in another order.
    Order,
    /// It differs.
    Differs,
    /// It differs, and the accepted one was taken under other conditions.
    NotComparable,
}

impl DriftStatus {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            DriftStatus::NoBaseline => "no_baseline",
            DriftStatus::Same => "same",
            DriftStatus::Order => "order",
            DriftStatus::Differs => "differs",
            DriftStatus::NotComparable => "not_comparable",
        }
    }
}

impl Accepted {
    /// How `now` differs from this, without what `redactor` knows: listings hold what the server wrote,
    /// as it wrote it. `allowed` are the classes of changes that weigh nothing.
    #[must_use]
    pub fn drift(&self, now: &Listing, allowed: &BTreeSet<ChangeClass>, redactor: &Redactor) -> Drift {
        let then = &self.listing;
        let against = Some(Against { source: self.source, sha256: then.digest.to_string(), server_info: then.conditions.server.clone() });
        if then.digest == now.digest {
            let status = if then.order == now.order || self.source == Source::Lock { DriftStatus::Same } else { DriftStatus::Order };
            return Drift { status, against, ..Drift::default() };
        }
        let why = then.conditions.differ(&now.conditions);
        let status = if why.is_some() { DriftStatus::NotComparable } else { DriftStatus::Differs };
        let upgrade = Some(then.conditions.server != now.conditions.server);
        let mut drift = between(then, now, redactor);
        drift.bound();
        let allowed = drift.classes.keys().all(|class| allowed.contains(class));
        Drift { status, against, upgrade, why, allowed, ..drift }
    }
}

/// What differs between two listings, whatever they were taken for: everything, in the order of the
/// items' names.
#[must_use]
pub fn between(then: &Listing, now: &Listing, redactor: &Redactor) -> Drift {
    let mut drift = Drift::default();
    let name = |(kind, _): &Key, named: &Named| redactor.redact_str(&label(*kind, &named.name)).into_owned();
    for (key, old) in &then.items {
        match now.items.get(key) {
            None => drift.removed.push(name(key, old)),
            Some(new) if new.forms != old.forms => drift.changed.extend(changes(name(key, new), key.0, &old.forms, &new.forms, redactor)),
            Some(_) => {}
        }
    }
    drift.added = now.items.iter().filter(|(key, _)| !then.items.contains_key(*key)).map(|(key, named)| name(key, named)).collect();
    drift.added.sort();
    drift.removed.sort();
    drift.changed.sort_by(|a, b| a.tool.cmp(&b.tool));
    for changed in &drift.changed {
        *drift.classes.entry(changed.class).or_default() += 1;
    }
    // What is new is there for who wants it; what is gone is missed.
    for (class, names) in [(ADDED, &drift.added), (REMOVED, &drift.removed)] {
        if !names.is_empty() {
            *drift.classes.entry(class).or_default() += names.len() as u64;
        }
    }
    drift.status = if drift.classes.is_empty() { DriftStatus::Same } else { DriftStatus::Differs };
    drift
}

/// The class of an item that is new.
pub const ADDED: ChangeClass = ChangeClass::Compatible;
/// The class of an item that is gone.
pub const REMOVED: ChangeClass = ChangeClass::Breaking;

fn changes(tool: String, list: ListKind, old: &[Arc<[u8]>], new: &[Arc<[u8]>], redactor: &Redactor) -> Vec<Changed> {
    let bounded = |text: &str, max| printable(&redactor.redact_str(text), max);
    let pairs = old.iter().zip(new).filter(|(old, new)| old != new);
    let mut changes: Vec<Changed> = pairs
        .flat_map(|(old, new)| compare(list, old, new))
        .map(|c| Changed {
            tool: tool.clone(),
            path: bounded(&c.path, MAX_PATH),
            class: c.class,
            what: c.what.to_owned(),
            old: c.old.map(|t| bounded(&t, MAX_TEXT)),
            new: c.new.map(|t| bounded(&t, MAX_TEXT)),
        })
        .collect();
    if old.len() != new.len() {
        let what = "the name stands on the list more or fewer times than before".to_owned();
        changes.push(Changed { tool, path: String::new(), class: ChangeClass::Breaking, what, old: None, new: None });
    }
    changes
}

impl Drift {
    /// Keeps no more than a report should hold.
    fn bound(&mut self) {
        let mut omitted = 0;
        for names in [&mut self.added, &mut self.removed] {
            omitted += names.len().saturating_sub(MAX_CHANGES);
            names.truncate(MAX_CHANGES);
        }
        omitted += self.changed.len().saturating_sub(MAX_CHANGES);
        // What breaks is not what is left out.
        self.changed.sort_by_key(|c| std::cmp::Reverse(c.class == ChangeClass::Breaking));
        self.changed.truncate(MAX_CHANGES);
        self.omitted = omitted;
    }
}
