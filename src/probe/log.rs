//! Notes what is seen, and no more of each kind than is of use.

use std::mem::{Discriminant, discriminant};

use super::observation::{Phase, Seen, What};
use crate::protocol::mcp::{RefusedBy, ToolFlaw};
use crate::protocol::wire::{Fault, Place};
use crate::words::{At, Redactor};

/// How many of one kind are kept; the rest is counted.
const KEPT: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Log {
    seen: Vec<Seen>,
}

impl Log {
    /// Notes `what`, shown by `bytes`.
    pub(super) fn add(&mut self, at: At, phase: Phase, place: Option<Place>, what: What, bytes: &[u8], redactor: &Redactor) {
        let kind = Key::of(&what);
        let mut alike = self.seen.iter_mut().filter(|seen| Key::of(&seen.what) == kind);
        match alike.by_ref().nth(KEPT - 1) {
            Some(last) => last.times += 1,
            None => {
                let excerpt = if let What::Line(Fault::NonFinite { at } | Fault::LoneSurrogate { at }) = &what {
                    redactor.excerpt_at(bytes, *at)
                } else {
                    redactor.excerpt(bytes)
                };
                self.seen.push(Seen { at, phase, place, what, excerpt, times: 1 });
            }
        }
    }

    /// What was noted, in order of time.
    pub(super) fn into_seen(self) -> Vec<Seen> {
        self.seen
    }
}

/// Faults of lines, of schemas and of results are told apart: a thousand blank lines must not hide the first line of noise.
#[derive(PartialEq)]
enum Key {
    Line(Discriminant<Fault>),
    Tool(Discriminant<ToolFlaw>),
    /// Whether all clients mind.
    Flawed(bool),
    Other(Discriminant<What>),
}

impl Key {
    fn of(what: &What) -> Key {
        if let What::Line(fault) = what {
            Key::Line(discriminant(fault))
        } else if let What::Tool { flaw, .. } = what {
            Key::Tool(discriminant(flaw))
        } else if let What::Flawed { flaw, .. } = what {
            Key::Flawed(flaw.by == RefusedBy::All)
        } else {
            Key::Other(discriminant(what))
        }
    }
}
