//! What differs between what a server lists and what was accepted.

use crate::judge::{ADDED, ChangeClass, Changed, Drift, DriftStatus, REMOVED, Source};
use crate::words::printable;

/// The most names of each kind, and the most changes, that are shown.
const MAX_SHOWN: usize = 40;
/// The longest name, and the longest text of a change, in characters.
const MAX_NAME: usize = 200;
const MAX_TEXT: usize = 1000;

/// What differs, by item.
pub(super) struct Changes {
    /// What all of it is, in a sentence.
    pub(super) told: String,
    /// Items that are new or gone, or in which something changed.
    pub(super) items: Vec<Item>,
    /// How many differences are not shown.
    pub(super) more: usize,
}

/// An item.
pub(super) struct Item {
    /// `+`, `-` or `~`.
    pub(super) sign: &'static str,
    /// The same in a word.
    pub(super) word: &'static str,
    pub(super) name: String,
    /// What it means, if nothing more is told of it.
    pub(super) class: Option<Class>,
    pub(super) changes: Vec<Change>,
}

/// What a change means to those who call.
pub(super) struct Class {
    pub(super) class: &'static str,
    pub(super) told: &'static str,
}

/// A change in an item.
pub(super) struct Change {
    pub(super) path: String,
    pub(super) what: String,
    pub(super) class: Class,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

impl Changes {
    /// `None` if nothing differs.
    pub(super) fn of(drift: &Drift, show_private: bool) -> Option<Changes> {
        let told = match drift.status {
            DriftStatus::NoBaseline | DriftStatus::Same => return None,
            DriftStatus::Order => "It lists the same as what was accepted, in another order.".to_owned(),
            DriftStatus::Differs => format!("It lists something else than {}.{}", against(drift), allowed(drift)),
            // Why says what it was configured with.
            DriftStatus::NotComparable => match drift.why.as_deref().filter(|_| show_private) {
                Some(why) => format!("It lists something else than {}, under other conditions: {}.", against(drift), printable(why, MAX_TEXT)),
                None => format!("It lists something else than {}, under other conditions.", against(drift)),
            },
        };
        let gone = |name: &String| item("-", "gone", name, Some(REMOVED));
        let new = |name: &String| item("+", "new", name, Some(ADDED));
        let mut items: Vec<Item> = drift.removed.iter().take(MAX_SHOWN).map(gone).collect();
        items.extend(drift.added.iter().take(MAX_SHOWN).map(new));
        let shown = &drift.changed[..drift.changed.len().min(MAX_SHOWN)];
        for changed in shown.chunk_by(|a, b| a.tool == b.tool) {
            items.push(Item { changes: changed.iter().map(change).collect(), ..item("~", "changed", &changed[0].tool, None) });
        }
        let cut = |n: usize| n.saturating_sub(MAX_SHOWN);
        let more = drift.omitted + cut(drift.removed.len()) + cut(drift.added.len()) + cut(drift.changed.len());
        Some(Changes { told, items, more })
    }
}

fn against(drift: &Drift) -> &'static str {
    match drift.against.as_ref().map(|against| against.source) {
        Some(Source::Lock) => "the lock file says",
        Some(Source::Seen) | None => "what was accepted",
    }
}

fn allowed(drift: &Drift) -> &'static str {
    match (drift.allowed, drift.upgrade) {
        (true, _) => " The rules allow all of it.",
        (false, Some(true)) => " It also says that it is another version.",
        (false, Some(false) | None) => "",
    }
}

fn item(sign: &'static str, word: &'static str, name: &str, class: Option<ChangeClass>) -> Item {
    Item { sign, word, name: printable(name, MAX_NAME), class: class.map(Class::from), changes: Vec::new() }
}

fn change(changed: &Changed) -> Change {
    let text = |text: &Option<String>| text.as_deref().map(|text| printable(text, MAX_TEXT));
    Change {
        path: if changed.path.is_empty() { "the whole item".to_owned() } else { printable(&changed.path, MAX_NAME) },
        what: printable(&changed.what, MAX_NAME),
        class: changed.class.into(),
        old: text(&changed.old),
        new: text(&changed.new),
    }
}

impl From<ChangeClass> for Class {
    fn from(class: ChangeClass) -> Class {
        let told = match class {
            ChangeClass::Annotation => "annotation: only what it says of its behaviour",
            ChangeClass::Description => "description: what a model reads, and acts by",
            ChangeClass::Compatible => "compatible: calls that were right still are",
            ChangeClass::Breaking => "breaking: calls that were right may be wrong now",
        };
        Class { class: class.as_str(), told }
    }
}
