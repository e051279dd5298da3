//! The items of a list: their names, their digests.

use std::sync::Arc;

use crate::protocol::Era;
use crate::protocol::json::{Kind, Oddity, Value, write_canonical};
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
    /// Its canonical form, without what is not schema. Cheap to clone.
    pub canonical: Arc<[u8]>,
    /// What in the canonical form is beyond RFC 8785. Two readers of such an item may see two different
    /// things, so its digest says less than it seems to.
    pub odd: Option<Oddity>,
    /// What is wrong with a tool's schemas.
    pub flaws: Vec<ToolFlaw>,
}

/// Members that say nothing about how an item is used: bookkeeping and pictures.
const NOT_SCHEMA: &[&[&str]] = &[&["_meta"], &["icons"]];
/// And, of what is read, how large it is and when it last changed: its content's, not its own.
const NOT_SCHEMA_OF_RESOURCES: &[&[&str]] = &[&["_meta"], &["icons"], &["size"], &["annotations", "lastModified"]];
const NOT_SCHEMA_OF_TEMPLATES: &[&[&str]] = &[&["_meta"], &["icons"], &["annotations", "lastModified"]];

/// Reads one item; `None` if it is no object. `room` is for its canonical form, so that there has to be
/// room for only one.
pub fn read_item(kind: ListKind, era: Era, value: Value<'_>, redactor: &Redactor, room: &mut Vec<u8>) -> Option<Item> {
    if value.kind() != Kind::Object {
        return None;
    }
    let skip = match kind {
        ListKind::Tools | ListKind::Prompts => NOT_SCHEMA,
        ListKind::Resources => NOT_SCHEMA_OF_RESOURCES,
        ListKind::ResourceTemplates => NOT_SCHEMA_OF_TEMPLATES,
    };
    room.clear();
    let odd = write_canonical(value, skip, room);
    let name = value.get(kind.identity()).and_then(Value::text).unwrap_or_default();
    Some(Item {
        identity: Digest::of(name.as_bytes()),
        name: redactor.printable(&name, MAX_NAME),
        digest: Digest::of(room),
        canonical: Arc::from(room.as_slice()),
        odd,
        flaws: if kind == ListKind::Tools { check_tool(value, era, redactor) } else { Vec::new() },
    })
}

/// The digest of all lists together, whatever the order of their items: the SHA-256 of one line an
/// item, `LIST SHA256\n`, sorted by bytes.
pub fn set_digest<'i>(items: impl IntoIterator<Item = (ListKind, &'i Item)>) -> Digest {
    // No list's word begins another's, so this is the order of the lines.
    let mut lines: Vec<(&str, Digest)> = items.into_iter().map(|(kind, item)| (kind.word(), item.digest)).collect();
    lines.sort_unstable();
    let mut text = Vec::with_capacity(lines.len() * 80);
    for (word, digest) in lines {
        text.extend_from_slice(word.as_bytes());
        text.push(b' ');
        text.extend_from_slice(&digest.hex());
        text.push(b'\n');
    }
    Digest::of(&text)
}
