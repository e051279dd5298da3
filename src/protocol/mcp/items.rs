//! The items of a list: their names, their digests.

use crate::protocol::Era;
use crate::protocol::json::{Kind, Value, write_canonical};
use crate::words::{Digest, Redactor};

use super::ask::ListKind;
use super::schema::{ToolFlaw, check_tool};

/// Names longer than this are cut where they are shown; their digest is that of the whole.
const MAX_NAME: usize = 200;

/// A tool, prompt, resource or resource template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is called by: a tool's or prompt's name, a resource's URI, a template's pattern;
    /// escaped and bounded.
    pub name: String,
    /// The digest of the whole of what it is called by: two names may look alike when cut.
    pub identity: Digest,
    /// The digest of its canonical form.
    pub digest: Digest,
    /// Its canonical form, without what is not schema.
    pub canonical: Vec<u8>,
    /// What is wrong with a tool's schemas.
    pub flaws: Vec<ToolFlaw>,
}

/// Members that say nothing about how an item is used: presentation, bookkeeping, and the size of a
/// resource, which is its content's.
const NOT_SCHEMA: [&str; 2] = ["_meta", "icons"];
const NOT_SCHEMA_OF_RESOURCES: [&str; 3] = ["_meta", "icons", "size"];

/// Reads one item; `None` if it is no object.
#[must_use]
pub fn read_item(kind: ListKind, era: Era, value: Value<'_>, redactor: &Redactor) -> Option<Item> {
    if value.kind() != Kind::Object {
        return None;
    }
    let skip: &[&str] = match kind {
        ListKind::Tools | ListKind::Prompts | ListKind::ResourceTemplates => &NOT_SCHEMA,
        ListKind::Resources => &NOT_SCHEMA_OF_RESOURCES,
    };
    let mut canonical = Vec::with_capacity(value.raw().len());
    write_canonical(value, skip, &mut canonical);
    let name = value.get(kind.identity()).and_then(Value::text).unwrap_or_default();
    Some(Item {
        identity: Digest::of(name.as_bytes()),
        name: redactor.printable(&name, MAX_NAME),
        digest: Digest::of(&canonical),
        flaws: if kind == ListKind::Tools { check_tool(value, era, redactor) } else { Vec::new() },
        canonical,
    })
}

/// The digest of all lists together, whatever the order of their items: the SHA-256 of one line an
/// item, `LIST SHA256\n`, sorted by bytes.
pub fn set_digest<'i>(items: impl IntoIterator<Item = (ListKind, &'i Item)>) -> Digest {
    let mut lines: Vec<String> = items.into_iter().map(|(kind, item)| format!("{} {}\n", kind.word(), item.digest)).collect();
    lines.sort_unstable();
    Digest::of(lines.concat().as_bytes())
}
