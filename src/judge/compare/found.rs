//! Where one is in an item, and what was found there.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use crate::protocol::json::{Numbers, Value, push_token};

use super::rules::{MORE, Rule, TOO_MUCH};
use super::{Change, ChangeClass};

/// The most changes of one item that are told.
pub(super) const MAX_CHANGES: usize = 200;

/// The most changes that are looked at to choose those from.
const MAX_FOUND: usize = 20_000;

/// The work that one comparison may take, in values looked at.
const MAX_STEPS: usize = 1_000_000;

/// A pointer longer than this, in bytes, ends early: at a value that holds the place.
const MAX_POINTER: usize = 4096;

/// One of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    /// What was accepted.
    Old,
    /// What is there now.
    New,
}

/// One thing for each side.
#[derive(Debug)]
pub(super) struct Both<T> {
    pub(super) old: T,
    pub(super) new: T,
}

impl<T> Both<T> {
    pub(super) fn of(&self, side: Side) -> &T {
        match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        }
    }

    pub(super) fn of_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Old => &mut self.old,
            Side::New => &mut self.new,
        }
    }
}

/// A place in an item: what a JSON pointer names, in four bytes. The same pointer is the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place(u32);

impl Place {
    /// The item itself.
    pub(super) const ITEM: Place = Place(0);
}

/// All places that were named.
#[derive(Debug, Default)]
pub(super) struct Places<'d> {
    /// The place it is in, and the token; the item itself has none.
    steps: Vec<(Place, Cow<'d, str>)>,
    known: HashMap<(Place, Cow<'d, str>), Place>,
}

impl<'d> Places<'d> {
    /// The place `token` in the place `from`.
    pub(super) fn step(&mut self, from: Place, token: impl Into<Cow<'d, str>>) -> Place {
        let key = (from, token.into());
        if let Some(place) = self.known.get(&key) {
            return *place;
        }
        self.steps.push(key.clone());
        let place = Place(u32::try_from(self.steps.len()).unwrap_or(u32::MAX));
        self.known.insert(key, place);
        place
    }

    /// The place it is in.
    pub(super) fn parent(&self, place: Place) -> Option<Place> {
        Some(self.step_to(place)?.0)
    }

    /// Whether its last token is this one.
    pub(super) fn is_at(&self, place: Place, token: &str) -> bool {
        self.step_to(place).is_some_and(|(_, last)| last == token)
    }

    fn step_to(&self, place: Place) -> Option<&(Place, Cow<'d, str>)> {
        self.steps.get((place.0 as usize).checked_sub(1)?)
    }

    /// Its JSON pointer.
    fn pointer(&self, mut place: Place) -> String {
        let mut tokens = Vec::new();
        while let Some((parent, token)) = self.step_to(place) {
            tokens.push(token);
            place = *parent;
        }
        let mut pointer = String::new();
        for token in tokens.iter().rev() {
            if pointer.len() + token.len() > MAX_POINTER {
                break;
            }
            push_token(&mut pointer, token);
        }
        pointer
    }
}

/// A change that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'d> {
    pub(super) place: Place,
    class: ChangeClass,
    what: &'static str,
    old: Option<Value<'d>>,
    new: Option<Value<'d>>,
}

/// Which way a schema faces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sense {
    /// It says what may be sent: accepting less breaks.
    Input,
    /// It says what may come back: accepting more breaks.
    Output,
    /// It is part of a condition: any change breaks.
    Unclear,
}

/// One comparison: what both sides are made of, and what has been found so far.
#[derive(Debug)]
pub(super) struct Work<'d> {
    pub(super) numbers: Both<Numbers>,
    pub(super) places: Places<'d>,
    pub(super) found: Vec<Found<'d>>,
    /// The schemas of which nothing can be shown.
    pub(super) unsure: Vec<Place>,
    /// The worst class of what was found beyond [`MAX_FOUND`].
    beyond: Option<ChangeClass>,
    steps: usize,
}

impl<'d> Work<'d> {
    pub(super) fn new(numbers: Both<Numbers>) -> Work<'d> {
        Work { numbers, places: Places::default(), found: Vec::new(), unsure: Vec::new(), beyond: None, steps: 0 }
    }

    /// Takes note of `steps` of work.
    pub(super) fn spend(&mut self, steps: usize) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// Takes note that no more work may be done.
    pub(super) fn give_up(&mut self) {
        self.steps = usize::MAX;
    }

    /// Whether there was more to do than may be done.
    pub(super) fn is_spent(&self) -> bool {
        self.steps > MAX_STEPS
    }

    /// The number of a value of that side.
    pub(super) fn number(&self, side: Side, value: Value<'_>) -> u32 {
        self.numbers.of(side).of(value)
    }

    /// Whether they are the same value, or both nothing.
    pub(super) fn is_same(&self, old: Option<Value<'_>>, new: Option<Value<'_>>) -> bool {
        match (old, new) {
            (Some(old), Some(new)) => self.number(Side::Old, old) == self.number(Side::New, new),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Takes down a change at a place.
    pub(super) fn tell(&mut self, rule: Rule, sense: Sense, place: Place, old: Option<Value<'d>>, new: Option<Value<'d>>) {
        let meaning = match sense {
            Sense::Output => rule.output,
            Sense::Unclear if rule.constrains => super::rules::INSIDE.input,
            Sense::Input | Sense::Unclear => rule.input,
        };
        if self.found.len() < MAX_FOUND {
            self.found.push(Found { place, class: meaning.class, what: meaning.what, old, new });
        } else {
            self.beyond = self.beyond.max(Some(meaning.class));
        }
    }

    /// What was found: the worst of it if it is too much, in the order of the paths.
    pub(super) fn finish(mut self) -> Vec<Change> {
        if self.is_spent() {
            self.tell(TOO_MUCH, Sense::Input, Place::ITEM, None, None);
        }
        // A definition that is used twice is told once.
        let mut once = BTreeMap::new();
        for (n, found) in self.found.iter().enumerate() {
            once.entry((std::cmp::Reverse(found.class), found.what != TOO_MUCH.input.what, found.place, found.what)).or_insert(n);
        }
        let mut kept: Vec<usize> = once.into_values().collect();
        let beyond = kept.get(MAX_CHANGES).map(|n| self.found[*n].class).max(self.beyond);
        kept.truncate(MAX_CHANGES);
        let text = |value: Option<Value<'d>>| value.map(|v| String::from_utf8_lossy(v.raw()).into_owned());
        let told = kept.into_iter().map(|n| self.found[n]);
        let mut changes: Vec<Change> =
            told.map(|f| Change { path: self.places.pointer(f.place), class: f.class, what: f.what, old: text(f.old), new: text(f.new) }).collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes.extend(beyond.map(|class| Change { path: String::new(), class, what: MORE, old: None, new: None }));
        changes
    }
}
