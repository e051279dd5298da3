//! What changed from one form of an item to another.

use stdiowatch::judge::compare::compare;
use stdiowatch::protocol::json::Doc;
use stdiowatch::protocol::mcp::{Item, ListKind, read_item};

const KINDS: [ListKind; 4] = [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates];

/// The first byte says what kind of list it is; then two items on two lines.
pub fn run(data: &[u8]) {
    let [kind, text @ ..] = data else { return };
    let kind = KINDS[usize::from(*kind) % KINDS.len()];
    let mut lines = text.splitn(2, |byte| *byte == b'\n');
    let Some((old, new)) = lines.next().zip(lines.next()) else { return };
    let _ = compare(kind, old, new);
    let Some((old, new)) = item(kind, old).zip(item(kind, new)) else { return };
    assert!(compare(kind, &old.canonical, &old.canonical).is_empty());
    for (old, new) in [(&old, &new), (&new, &old)] {
        let changes = compare(kind, &old.canonical, &new.canonical);
        assert_eq!(changes.is_empty(), old.canonical == new.canonical);
        assert!(changes.len() <= 201, "{}", changes.len());
    }
}

fn item(kind: ListKind, text: &[u8]) -> Option<Item> {
    let doc = Doc::parse(text).ok()?;
    read_item(kind, doc.root())
}
