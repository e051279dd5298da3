//! What changed between two forms of one item, and what that means for those who use it.
//!
//! `inputSchema` says what callers may send: if it takes less than before, a caller that was right
//! may be wrong. `outputSchema` says what they may be sent: if it takes *more*, a reader that was
//! right may be wrong. So two schemas are compared keyword by keyword, each keyword takes less, more,
//! or nobody can tell ([`rules`]), and only then it matters which way the schema faces. What cannot
//! be shown to be harmless is breaking. `tests/soundness.rs` holds that against a validator.
//!
//! | question | answer | why |
//! |---|---|---|
//! | a new optional parameter | compatible | what is not declared is not sent, though an open schema would take it |
//! | a parameter is gone | breaking | refused if others are (`additionalProperties: false`), else ignored: either way it does not do what it did |
//! | an optional property of a result is gone | compatible | it could always be missing |
//! | another `default` | compatible | every call that was right is right; it may do something else, so it is told |
//! | `format` | binds | 2020-12 does not demand it, yet many validators check it |
//! | `contentEncoding` and the like | breaking | they bind no validator, but every reader |
//! | `allOf` gets or loses a member | less, more | it is told exactly, unless `unevaluated…` looks at it |
//! | `oneOf` | as `anyOf` if no value can match two, else breaking | what one takes more makes another one too many |
//! | inside of `not`, `if`, `then`, `else` | breaking | it may turn the meaning around |
//! | another `$schema` | compatible among draft 7, 2019-09 and 2020-12 if nothing in it depends on it | generators move on |
//! | `$id` inside, `$anchor`, `$dynamicRef`, one key twice | breaking, but for texts | they are not followed here |
//! | a keyword that is not known | breaking; `x-…` is a text | a model may be handed either |
//! | a member of an item that is not known | breaking; `x-…` is a text | a later protocol may bind callers with it |
//! | `annotations` | annotation; `title` and unknown texts are texts | a text is read wherever it stands |
//! | `outputSchema` is new, gone | compatible, breaking | with it a result has `structuredContent` |
//! | `mimeType` is new, another | compatible, breaking | readers choose by it |
//! | `name` of a resource | a text | it is read by its URI |
//! | a definition | is told where it is written, classed where it is used | its text counts even if nothing uses it |

mod bounds;
mod domain;
mod found;
mod item;
mod leaf;
mod matching;
mod objects;
mod rewritten;
mod rules;
mod view;
mod walk;

use serde::{Deserialize, Serialize};

use crate::protocol::json::{Doc, Sameness};
use crate::protocol::mcp::ListKind;

use found::{Both, Work};

pub use rules::{ITEM_RULES, Meaning, Rule, SCHEMA_RULES};

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
    /// Where: a JSON pointer (RFC 6901) into the item, not escaped otherwise. Of what lies deeper than
    /// 4096 bytes of pointer say, the last value that holds it.
    pub path: String,
    /// What it means.
    pub class: ChangeClass,
    /// What changed and why it is of that class, in a few words without the item's own text.
    pub what: &'static str,
    /// What stood there before, as canonical JSON, whole; `None` if nothing did. Where something is
    /// said in another place than before, what stood in that one.
    pub old: Option<String>,
    /// What stands there now.
    pub new: Option<String>,
}

/// What changed from `old` to `new`, two canonical forms of one item of a list of this kind, in the
/// order of their paths. Empty only if they are the same bytes. At most 200 changes are told, the
/// worst ones, and then one more that says so.
#[must_use]
pub fn compare(kind: ListKind, old: &[u8], new: &[u8]) -> Vec<Change> {
    if old == new {
        return Vec::new();
    }
    let whole = |rule: Rule| {
        let text = |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned());
        vec![Change { path: String::new(), class: rule.input.class, what: rule.input.what, old: text(old), new: text(new) }]
    };
    let (Ok(before), Ok(after)) = (Doc::parse(old), Doc::parse(new)) else {
        return whole(rules::UNREADABLE);
    };
    let mut sameness = Sameness::default();
    let numbers = Both { old: sameness.number(&before), new: sameness.number(&after) };
    let mut work = Work::new(numbers);
    item::compare_items(&mut work, kind, before.root(), after.root());
    rewritten::tell_the_rest(&mut work, before.root(), after.root());
    let changes = work.finish();
    // Forms that are not canonical can differ in what is no value.
    if changes.is_empty() { whole(rules::REWRITTEN) } else { changes }
}

#[cfg(test)]
mod tests;
