//! What servers answer, as results of every kind.

use stdiowatch::protocol::Era;
use stdiowatch::protocol::json::{Doc, write_pretty};
use stdiowatch::protocol::mcp::{ListKind, read_discover, read_initialize, read_list, set_digest};
use stdiowatch::words::{Redactor, is_printable};

const KINDS: [ListKind; 4] = [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates];

/// The input is the result.
pub fn run(data: &[u8]) {
    let Ok(doc) = Doc::parse(data) else { return };
    let redactor = Redactor::default();
    let _ = read_discover(doc.root(), &redactor);
    let _ = read_initialize(doc.root(), &redactor);
    let mut spread = Vec::new();
    write_pretty(doc.root(), 3, &mut spread);
    let spread = Doc::parse(&spread).expect("what is written in many lines is JSON");
    for (kind, era) in KINDS.into_iter().flat_map(|kind| [(kind, Era::Legacy), (kind, Era::Modern)]) {
        let page = read_list(kind, era, doc.root(), &redactor, usize::MAX);
        let same = read_list(kind, era, spread.root(), &redactor, usize::MAX);
        let listed = |page: &'_ [_]| set_digest(page.iter().map(|item| (kind, item)));
        assert_eq!(listed(&page.items), listed(&same.items), "the digest of the same in many lines");
        let turned: Vec<_> = page.items.iter().rev().cloned().collect();
        assert_eq!(listed(&page.items), listed(&turned), "the digest of the same in another order");
        for item in &page.items {
            assert!(item.name.chars().all(is_printable), "{:?}", item.name);
            assert!(Doc::parse(&item.canonical).is_ok());
        }
    }
}
