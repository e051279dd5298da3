//! The items of a list: their names, their digests.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::protocol::Era;
use crate::protocol::json::{Canonicalizer, Kind, Oddity, Value};
use crate::words::{Digest, Redactor};

use super::ask::ListKind;
use super::schema::{ToolChecker, ToolFlaw};

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

impl Item {
    /// About how much memory it takes, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        // The last number: what the allocator and the maps of a listing take for it.
        size_of::<Item>() + self.name.len() + self.canonical.len() + self.flaws.len() * (size_of::<ToolFlaw>() + MAX_FLAW) + 100
    }
}

/// The texts of a flaw are no longer than this, in bytes.
const MAX_FLAW: usize = 300;

/// Members that say nothing about how an item is used: bookkeeping and pictures.
const NOT_SCHEMA: &[&[&str]] = &[&["_meta"], &["icons"]];
/// And, of what is read, how large it is and when it last changed: its content's, not its own.
const NOT_SCHEMA_OF_RESOURCES: &[&[&str]] = &[&["_meta"], &["icons"], &["size"], &["annotations", "lastModified"]];
const NOT_SCHEMA_OF_TEMPLATES: &[&[&str]] = &[&["_meta"], &["icons"], &["annotations", "lastModified"]];

/// A canonical form that is longer than this has its memory for itself, in bytes.
const LARGE: usize = 64 << 10;

/// Reads the items of one page, one after the other.
pub(super) struct ItemReader<'w, 'd> {
    kind: ListKind,
    era: Era,
    redactor: &'w Redactor,
    canonicalizer: Canonicalizer,
    /// The canonical form of the item that is being read.
    canonical: Vec<u8>,
    tools: ToolChecker<'w, 'd>,
}

impl<'w, 'd> ItemReader<'w, 'd> {
    pub(super) fn new(kind: ListKind, era: Era, redactor: &'w Redactor) -> ItemReader<'w, 'd> {
        ItemReader { kind, era, redactor, canonicalizer: Canonicalizer::default(), canonical: Vec::new(), tools: ToolChecker::new(redactor) }
    }

    /// Reads one item; `None` if it is no object.
    pub(super) fn read(&mut self, value: Value<'d>) -> Option<Item> {
        if value.kind() != Kind::Object {
            return None;
        }
        let skip = match self.kind {
            ListKind::Tools | ListKind::Prompts => NOT_SCHEMA,
            ListKind::Resources => NOT_SCHEMA_OF_RESOURCES,
            ListKind::ResourceTemplates => NOT_SCHEMA_OF_TEMPLATES,
        };
        self.canonical.clear();
        self.canonical.shrink_to(LARGE);
        let odd = self.canonicalizer.write(value, skip, &mut self.canonical);
        let name = value.get(self.kind.identity()).and_then(Value::text).unwrap_or_default();
        Some(Item {
            identity: Digest::of(name.as_bytes()),
            name: self.redactor.printable(&name, MAX_NAME),
            digest: Digest::of(&self.canonical),
            canonical: Arc::from(self.canonical.as_slice()),
            odd,
            flaws: if self.kind == ListKind::Tools { self.tools.check(value, self.era) } else { Vec::new() },
        })
    }
}

/// Reads one item that was written down before; `None` if it is no object.
#[must_use]
pub fn read_item(kind: ListKind, value: Value<'_>) -> Option<Item> {
    ItemReader::new(kind, Era::Legacy, &Redactor::none()).read(value)
}

/// The digest of all lists together, whatever the order of their items: the SHA-256 of one line an
/// item, `LIST SHA256\n`, sorted by bytes.
pub fn set_digest<'i>(items: impl IntoIterator<Item = (ListKind, &'i Item)>) -> Digest {
    let mut digests: BTreeMap<&str, Vec<Digest>> = BTreeMap::new();
    for (kind, item) in items {
        digests.entry(kind.word()).or_default().push(item.digest);
    }
    // No list's word begins another's, so list by list is the order of the lines.
    let lines = digests.into_iter().flat_map(|(word, mut digests)| {
        digests.sort_unstable();
        digests.into_iter().map(move |digest| (word, digest))
    });
    let mut text = Vec::new();
    for (word, digest) in lines {
        text.extend_from_slice(word.as_bytes());
        text.push(b' ');
        text.extend_from_slice(&digest.hex());
        text.push(b'\n');
    }
    Digest::of(&text)
}
