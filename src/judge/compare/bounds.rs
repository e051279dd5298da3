//! Keywords with a number, a text or a truth value.

use std::cmp::Ordering;

use crate::protocol::json::{Kind, Value};

use super::domain::Types;
use super::found::Sense;
use super::leaf::Pair;
use super::objects::is_true;
use super::rules::{self, Rule};
use super::view::{Leaf, Word};
use super::walk::{At, Walk};

/// A limit of numbers on one side.
#[derive(Clone, Copy)]
struct Limit<'d> {
    word: Word<'d>,
    excludes: bool,
}

impl<'d> Limit<'d> {
    /// The tighter one of `minimum` and `exclusiveMinimum`, or of the two for the maximum.
    /// `exclusiveMinimum: true` is what draft 4 has.
    fn of(leaf: &Leaf<'d>, [plain, exclusive]: [&str; 2]) -> Option<Limit<'d>> {
        let get = |keyword: &str| leaf.words.get(keyword).copied();
        let number = |keyword: &str| get(keyword).filter(|word| word.value.kind() == Kind::Number);
        let plain_limit = number(plain).map(|word| Limit { word, excludes: is_true(get(exclusive)) });
        let strict_limit = number(exclusive).map(|word| Limit { word, excludes: true });
        match (plain_limit, strict_limit) {
            (Some(a), Some(b)) => Some(if a.tightness(b, plain == "minimum", false) == Ordering::Greater { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    /// The limit as an inclusive one if only integers are in question.
    fn of_integers(self, is_lower: bool) -> Option<i64> {
        let limit = self.word.value.integer()?;
        match (self.excludes, is_lower) {
            (false, _) => Some(limit),
            (true, true) => limit.checked_add(1),
            (true, false) => limit.checked_sub(1),
        }
    }

    /// How tight it is beside another.
    fn tightness(self, other: Limit<'d>, is_lower: bool, integers: bool) -> Ordering {
        let inclusive = if integers { self.of_integers(is_lower).zip(other.of_integers(is_lower)) } else { None };
        let order = match inclusive {
            Some((a, b)) => a.cmp(&b),
            None => self.word.value.cmp_number(other.word.value).unwrap_or(Ordering::Equal),
        };
        let order = if is_lower { order } else { order.reverse() };
        if inclusive.is_some() { order } else { order.then(self.excludes.cmp(&other.excludes)) }
    }
}

impl<'d> Walk<'_, 'd> {
    /// `minimum` and `exclusiveMinimum`, or the two for the maximum.
    pub(super) fn limit(&mut self, old: &Leaf<'d>, new: &Leaf<'d>, keywords: [&str; 2], sense: Sense) {
        let [plain, exclusive] = keywords.map(|keyword| Pair::of(old, new, keyword));
        if !plain.are(&[Kind::Number]) || !exclusive.are(&[Kind::Number, Kind::Bool]) {
            self.other(rules::MALFORMED, plain, sense);
            self.other(rules::MALFORMED, exclusive, sense);
            return;
        }
        let integers = !old.domain.types().and(new.domain.types()).meets(Types::FRACTION);
        let (before, after) = (Limit::of(old, keywords), Limit::of(new, keywords));
        let tighter = match (before, after) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(before), Some(after)) => after.tightness(before, keywords[0] == "minimum", integers),
        };
        self.bound(tighter, before.map(|l| l.word), after.map(|l| l.word), sense);
    }

    /// A bound of a length or a count; without one, the least is 0.
    pub(super) fn count(&mut self, pair: Pair<'d>, is_lower: bool, sense: Sense) {
        if !pair.are(&[Kind::Number]) {
            self.other(rules::MALFORMED, pair, sense);
            return;
        }
        let zero = |word: Option<Word<'d>>| word.is_none_or(|w| w.value.raw() == b"0");
        let tighter = match pair.values() {
            _ if is_lower && zero(pair.old) && zero(pair.new) => Ordering::Equal,
            (Some(old), Some(new)) => {
                let order = new.cmp_number(old).unwrap_or(Ordering::Equal);
                if is_lower { order } else { order.reverse() }
            }
            (old, new) => new.is_some().cmp(&old.is_some()),
        };
        self.bound(tighter, pair.old, pair.new, sense);
    }

    fn bound(&mut self, tighter: Ordering, old: Option<Word<'d>>, new: Option<Word<'d>>, sense: Sense) {
        let rule = match tighter {
            Ordering::Equal => return,
            Ordering::Greater => rules::BOUND_TIGHTER,
            Ordering::Less => rules::BOUND_LOOSER,
        };
        if let Some(at) = At::of(old, new) {
            self.work.tell(rule, sense, at.place, at.old, at.new);
        }
    }

    /// `multipleOf`
    pub(super) fn step(&mut self, pair: Pair<'d>, sense: Sense) {
        let whole = |value: Value<'d>| value.integer().filter(|n| *n > 0);
        let rule = match pair.values() {
            (Some(old), Some(new)) => match (whole(old), whole(new)) {
                (Some(old), Some(new)) if new % old == 0 => rules::BOUND_TIGHTER,
                (Some(old), Some(new)) if old % new == 0 => rules::BOUND_LOOSER,
                _ => rules::STEP_OTHER,
            },
            (None, _) => rules::BOUND_TIGHTER,
            (_, None) => rules::BOUND_LOOSER,
        };
        self.other(if pair.are(&[Kind::Number]) { rule } else { rules::MALFORMED }, pair, sense);
    }

    /// A text that binds: one of three rules for a new one, one that is gone, and another.
    pub(super) fn text(&mut self, pair: Pair<'d>, [added, gone, another]: [Rule; 3], sense: Sense) {
        let rule = match (pair.old, pair.new) {
            _ if !pair.are(&[Kind::String]) => rules::MALFORMED,
            (None, _) => added,
            (_, None) => gone,
            _ => another,
        };
        self.other(rule, pair, sense);
    }

    /// `uniqueItems`
    pub(super) fn unique(&mut self, pair: Pair<'d>, sense: Sense) {
        if !pair.are(&[Kind::Bool]) {
            self.other(rules::MALFORMED, pair, sense);
            return;
        }
        match (is_true(pair.old), is_true(pair.new)) {
            (false, true) => self.other(rules::UNIQUE_NEW, pair, sense),
            (true, false) => self.other(rules::UNIQUE_GONE, pair, sense),
            (true, true) | (false, false) => {}
        }
    }
}
