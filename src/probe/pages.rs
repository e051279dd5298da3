//! The list pages of one probe, for the next one to know again.
//!
//! A server's lists hardly ever change, and its replies are then the same bytes: ids are given out in the
//! same order in every probe. So of each reply that holds a page, and with which nothing is wrong, what
//! was made of it is kept by the SHA-256 of its line. The same line in the same place costs the next
//! probe one hash, and neither reading nor checking nor digesting.
//!
//! This must never show. What is kept is everything that reading the line gives ([`ListPage`], flaws
//! included); it is looked for only where the line would be taken for the answer that is waited for: to
//! the same question, in the same era, under the same id, with the same secrets to mask. Everything else
//! is read.

use std::sync::Arc;

use super::observation::Asked;
use crate::protocol::Era;
use crate::protocol::mcp::{Item, ListKind, ListPage};
use crate::protocol::wire::Id;
use crate::words::{Digest, Redactor};

/// How much is kept of one probe, in bytes. What does not fit is read again each time.
const MAX_WEIGHT: usize = 4 << 20;
/// A cursor longer than this is not worth keeping, in bytes: a hundred pages would have a hundred of them.
const MAX_CURSOR: usize = 4 << 10;

/// The pages of one probe. Handed from one probe of a server to the next.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    kept: Vec<Arc<Kept>>,
    /// About what they take, in bytes.
    weight: usize,
    /// How many of them were known from the probe before.
    pub recalled: usize,
    redactor: Arc<Redactor>,
}

/// One page, and what it is known by.
#[derive(Debug)]
struct Kept {
    kind: ListKind,
    era: Era,
    id: Id,
    /// The length of its line, in bytes.
    length: usize,
    digest: Digest,
    page: ListPage,
}

/// What a line has to be the answer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'q> {
    pub(super) asked: Asked,
    pub(super) era: Era,
    pub(super) id: &'q Id,
}

impl Pages {
    /// None yet, of a probe in which `redactor` masks.
    pub(super) fn new(redactor: Arc<Redactor>) -> Pages {
        Pages { redactor, ..Pages::default() }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether a line of this length may be known as the answer: only then is it worth its hash.
    pub(super) fn may_know(&self, question: Question<'_>, line: &[u8], redactor: &Redactor) -> bool {
        *self.redactor == *redactor && self.kept.iter().any(|kept| kept.answers(question, line))
    }

    /// Takes over the page that a line of this digest holds, from the probe before, if it is known and there is room for it;
    /// and says what is on it.
    pub(super) fn recall(&mut self, before: &Pages, question: Question<'_>, line: &[u8], digest: Digest, room: usize) -> Option<ListPage> {
        let known = before.kept.iter().find(|kept| kept.answers(question, line) && kept.digest == digest && kept.page.weight() <= room)?;
        self.recalled += 1;
        self.add(Arc::clone(known));
        Some(known.page.clone())
    }

    /// Keeps the page that `line` holds. What is on it and on a page of the probe `before`, or earlier in
    /// this one, is held only once from now on.
    pub(super) fn keep(&mut self, before: &Pages, question: Question<'_>, line: &[u8], digest: Digest, page: &mut ListPage) {
        let Asked::List(kind) = question.asked else { return };
        if page.cut || page.next.as_ref().is_some_and(|cursor| cursor.len() > MAX_CURSOR) {
            return;
        }
        let alike = self.kept.iter().chain(&before.kept).filter(|kept| kept.kind == kind);
        alike.for_each(|kept| share(&mut page.items, &kept.page.items));
        self.add(Arc::new(Kept { kind, era: question.era, id: question.id.clone(), length: line.len(), digest, page: page.clone() }));
    }

    fn add(&mut self, kept: Arc<Kept>) {
        let weight = self.weight + kept.weight();
        if weight <= MAX_WEIGHT {
            self.weight = weight;
            self.kept.push(kept);
        }
    }
}

impl Kept {
    fn answers(&self, question: Question<'_>, line: &[u8]) -> bool {
        question.asked == Asked::List(self.kind) && self.era == question.era && self.id == *question.id && self.length == line.len()
    }

    fn weight(&self) -> usize {
        size_of::<Kept>() + self.page.weight()
    }
}

/// Makes `items` hold the canonical forms that `others` hold at the same places, where they are the same.
fn share(items: &mut [Item], others: &[Item]) {
    // Pages that do not even begin alike are not worth the walk.
    if items.first().map(|item| item.digest) != others.first().map(|item| item.digest) {
        return;
    }
    for (item, other) in items.iter_mut().zip(others) {
        if item.digest == other.digest && item.canonical == other.canonical {
            item.canonical = Arc::clone(&other.canonical);
        }
    }
}
