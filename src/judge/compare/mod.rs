//! What changed between two forms of one item, and what that means for those who use it.

use serde::{Deserialize, Serialize};

use crate::protocol::mcp::ListKind;

/// What a change means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeClass {
    /// What says how an item behaves, and no more (`annotations`).
    Annotation,
    /// What a model or a person reads: another text can make it do other things.
    Description,
    /// What was right before is still right.
    Compatible,
    /// A caller that was right before may be wrong now.
    Breaking,
}

impl ChangeClass {
    /// All of them, the mildest first.
    pub const ALL: [ChangeClass; 4] = [ChangeClass::Annotation, ChangeClass::Description, ChangeClass::Compatible, ChangeClass::Breaking];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ChangeClass::Annotation => "annotation",
            ChangeClass::Description => "description",
            ChangeClass::Compatible => "compatible",
            ChangeClass::Breaking => "breaking",
        }
    }
}

/// One thing that changed in an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where: a JSON pointer (RFC 6901) into the item, neither escaped nor bounded.
    pub path: String,
    /// What it means.
    pub class: ChangeClass,
    /// What changed and why it is of that class, in a few words without the item's own text.
    pub what: &'static str,
    /// What stood there before, as canonical JSON; `None` if nothing did.
    pub old: Option<String>,
    /// What stands there now.
    pub new: Option<String>,
}

/// What changed from `old` to `new`, two canonical forms of one item of a list of this kind, in the
/// order of their paths. Empty only if they are the same bytes.
#[must_use]
pub fn compare(_kind: ListKind, old: &[u8], new: &[u8]) -> Vec<Change> {
    let path = crate::protocol::json::first_difference(old, new);
    let class = if path.ends_with("/description") || path.ends_with("/title") {
        ChangeClass::Description
    } else if path.starts_with("/annotations") {
        ChangeClass::Annotation
    } else {
        ChangeClass::Breaking
    };
    vec![Change { path, class, what: "it is not the same", old: None, new: None }]
}
