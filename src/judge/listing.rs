//! What a server's lists held, whole and under which conditions; and what was accepted of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::report::ServerIdentity;
use crate::probe::{Launch, What};
use crate::protocol::Era;
use crate::protocol::mcp::{Item, ListKind, set_digest};
use crate::words::{Digest, Redactor};

/// The client capabilities that are declared in a probe. Servers list other tools for other ones, so
/// lists taken under another profile do not compare.
pub const PROFILE: &str = "none";

/// What a server was configured with, as far as its lists may depend on it. Never a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Which of our environment it gets: `sdk`, `inherit` or `clean`.
    pub mode: String,
    /// The names of the variables that are configured for it, sorted.
    pub names: Vec<String>,
    /// A short keyed hash of their names and values: another one says that a value is another.
    pub fingerprint: String,
}

/// The conditions under which lists were taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// The era that the server was spoken to in.
    pub era: Era,
    /// The version that was agreed on.
    pub protocol_version: Option<String>,
    /// How the server called itself.
    pub server: Option<ServerIdentity>,
    /// The names of its capabilities, sorted.
    pub capabilities: Vec<String>,
    /// What was declared of the client; see [`PROFILE`].
    pub profile: String,
    /// What it was configured with.
    pub environment: Environment,
}

impl Conditions {
    /// Why lists taken under `other` say nothing about lists taken under these; `None` if they do.
    #[must_use]
    pub fn differ(&self, other: &Conditions) -> Option<String> {
        let (then, now) = (&self.environment, &other.environment);
        if self.era != other.era {
            Some(format!("{} era then, {} now", self.era, other.era))
        } else if self.profile != other.profile {
            Some(format!("client profile {} then, {} now", self.profile, other.profile))
        } else if then.mode != now.mode {
            Some(format!("environment mode {} then, {} now", then.mode, now.mode))
        } else if then.names != now.names {
            Some(format!("configured variables then: {}; now: {}", or_none(&then.names), or_none(&now.names)))
        } else if then.fingerprint != now.fingerprint && now.names.is_empty() {
            // It is keyed with the name, and there is no value that could be another one.
            Some("it was locked under another name: the fingerprint of its environment is another one, and no variable is configured".to_owned())
        } else if then.fingerprint != now.fingerprint {
            Some(format!("a configured variable has another value ({})", or_none(&now.names)))
        } else {
            None
        }
    }
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Everything that was listed in a probe, each list read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Under which conditions.
    pub conditions: Conditions,
    /// The digest of all lists together.
    pub digest: Digest,
    /// Why it may not be accepted, in words; `None` if it may.
    pub unfit: Option<String>,
    /// The name of an item that holds something that must not surface, if one does: then it is not for the disk.
    pub secret: Option<String>,
    /// The lists that were offered, also those without items.
    pub lists: Vec<ListKind>,
    /// The items by list and name.
    pub(super) items: BTreeMap<Key, Named>,
    /// The names in the order they were listed.
    pub(super) order: Vec<Key>,
}

/// A list, and the digest of an item's name.
pub(super) type Key = (ListKind, Digest);

/// What stands under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// The name, as it is shown.
    pub(super) name: String,
    /// Canonical forms; several where the name stands twice.
    pub(super) forms: Vec<Arc<[u8]>>,
}

impl Listing {
    /// What a launch has listed; `None` if one of its lists is not known to its end.
    #[must_use]
    pub fn of(launch: &Launch, environment: &Environment) -> Option<Listing> {
        if launch.listed.is_none() || launch.lists.iter().any(|l| !l.complete) {
            return None;
        }
        let mut capabilities = launch.greeting.capabilities.clone();
        capabilities.sort();
        let server = launch.greeting.server.as_ref();
        let conditions = Conditions {
            era: launch.opening,
            protocol_version: launch.version.clone().filter(|v| !v.is_empty()),
            server: server.map(|s| ServerIdentity { name: s.name.clone(), version: s.version.clone() }),
            capabilities,
            profile: PROFILE.to_owned(),
            environment: environment.clone(),
        };
        let lists = launch.lists.iter().map(|l| l.kind).collect();
        let mut listing = Listing::from_items(conditions, lists, all_items(launch));
        listing.unfit = volatile(launch).or(listing.unfit);
        Some(listing)
    }

    /// A listing of these items.
    pub(super) fn from_items<'i>(
        conditions: Conditions,
        lists: Vec<ListKind>,
        listed: impl Iterator<Item = (ListKind, &'i Item)> + Clone,
    ) -> Listing {
        let mut items: BTreeMap<Key, Named> = BTreeMap::new();
        let mut order = Vec::new();
        for (kind, item) in listed.clone() {
            let key = (kind, item.identity);
            let named = items.entry(key).or_insert_with(|| Named { name: item.name.clone(), forms: Vec::new() });
            named.forms.push(Arc::clone(&item.canonical));
            order.push(key);
        }
        let unfit = twice(&items).or_else(|| listed.clone().find_map(odd));
        Listing { conditions, digest: set_digest(listed), unfit, secret: None, lists, items, order }
    }

    /// Each item: its list, its name as it is shown, its canonical form.
    pub fn items(&self) -> impl Iterator<Item = (ListKind, &str, &[u8])> {
        self.items.iter().flat_map(|((kind, _), named)| named.forms.iter().map(move |form| (*kind, named.name.as_str(), &form[..])))
    }

    /// How many items a list has; `None` if it was not offered.
    #[must_use]
    pub fn count(&self, list: ListKind) -> Option<usize> {
        let count = || self.items().filter(|(kind, ..)| *kind == list).count();
        self.lists.contains(&list).then(count)
    }

    /// The name of an item that holds something that must not surface, if one does.
    #[must_use]
    pub fn secret_in(&self, redactor: &Redactor) -> Option<String> {
        self.items().find(|(_, _, form)| redactor.redact(form) != *form).map(|(kind, name, _)| label(kind, &redactor.redact_str(name)))
    }
}

/// Every item of every list.
pub(super) fn all_items(launch: &Launch) -> impl Iterator<Item = (ListKind, &Item)> + Clone {
    launch.lists.iter().flat_map(|list| list.items.iter().map(|item| (list.kind, item)))
}

/// A tool's name; with the list's in front for anything else.
pub(super) fn label(kind: ListKind, name: &str) -> String {
    if kind == ListKind::Tools { name.to_owned() } else { format!("{}/{name}", kind.word()) }
}

fn volatile(launch: &Launch) -> Option<String> {
    launch.seen.iter().find_map(|seen| {
        let What::Volatile { list, item, .. } = &seen.what else { return None };
        Some(format!("{} differs between two listings of one session", label(*list, item)))
    })
}

fn twice(items: &BTreeMap<Key, Named>) -> Option<String> {
    let ((kind, _), Named { name, forms }) = items.iter().find(|(_, named)| named.forms.len() > 1)?;
    let same = forms.windows(2).all(|pair| pair[0] == pair[1]);
    let how = if same { "is listed twice" } else { "is listed twice, and not the same both times" };
    Some(format!("{} {how}", label(*kind, name)))
}

/// Why two readers of an item may see two different things.
fn odd((kind, item): (ListKind, &Item)) -> Option<String> {
    Some(format!("there is {} in {}", item.odd?, label(kind, &item.name)))
}

/// Where a schema was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// In a lock file, by people.
    Lock,
    /// By stdiowatch itself: what it saw first, or was told to accept.
    Seen,
}

/// A schema that was accepted: what later ones are compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// What it holds.
    pub listing: Arc<Listing>,
    /// Where it was accepted.
    pub source: Source,
}
