//! What schemas say about objects and arrays.
//!
//! What is not declared is not sent: a property that nothing names counts as absent, although a
//! schema without `additionalProperties` would take it. Otherwise every new optional parameter
//! would be one that might refuse what somebody sent under that name before.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::json::{Kind, Value};

use super::found::{Sense, Side};
use super::leaf::Pair;
use super::rules::{self, Rule};
use super::view::{Leaf, Schema, Word};
use super::walk::{Form, Task, Walk};

/// Whether a schema takes whatever there is.
fn says_nothing(schema: Option<Word<'_>>) -> bool {
    schema.is_none_or(|schema| schema.value.boolean() == Some(true) || schema.value.kind() == Kind::Object && schema.value.members().next().is_none())
}

/// What one side says about objects.
struct Object<'d> {
    properties: BTreeMap<Cow<'d, str>, Word<'d>>,
    patterns: BTreeMap<Cow<'d, str>, Word<'d>>,
    required: BTreeMap<Cow<'d, str>, Word<'d>>,
    others: Option<Word<'d>>,
}

impl<'d> Object<'d> {
    /// Whether nothing is taken that is not named.
    fn is_closed(&self) -> bool {
        self.patterns.is_empty() && self.others.is_some_and(|others| others.value.boolean() == Some(false))
    }

    /// The schema of what is not named, if there is one and it is the same for all names.
    fn others(&self, side: Side) -> Option<Schema<'d>> {
        let others = self.others.filter(|others| self.patterns.is_empty() && others.value.kind() == Kind::Object)?;
        Some(Schema { side, value: others.value, place: others.place })
    }
}

impl<'d> Walk<'_, 'd> {
    /// Compares `properties`, `patternProperties`, `additionalProperties` and `required`.
    pub(super) fn objects(&mut self, old: &Leaf<'d>, new: &Leaf<'d>, sense: Sense) {
        let mut is_wrong = false;
        for (keyword, kinds) in [
            ("properties", &[Kind::Object][..]),
            ("patternProperties", &[Kind::Object]),
            ("additionalProperties", &[Kind::Object, Kind::Bool]),
            ("required", &[Kind::Array]),
        ] {
            let pair = Pair::of(old, new, keyword);
            if !pair.are(kinds) {
                self.other(rules::MALFORMED, pair, sense);
                is_wrong = true;
            }
        }
        if is_wrong {
            return;
        }
        let (before, after) = (self.object(old), self.object(new));
        let names: BTreeSet<&Cow<'d, str>> = before.properties.keys().chain(after.properties.keys()).collect();
        let mut told = BTreeSet::new();
        for name in names {
            let pair = Pair { old: before.properties.get(name).copied(), new: after.properties.get(name).copied() };
            let is_told = match (pair.old, pair.new) {
                (Some(_), None) => self.member_gone(name, pair, &before, &after, sense),
                (None, Some(_)) => self.member_new(name, pair, &before, &after, sense),
                _ => {
                    self.schemas(pair, sense, Form::Schema);
                    false
                }
            };
            if is_told {
                told.insert(name);
            }
        }
        let required: BTreeSet<&Cow<'d, str>> = before.required.keys().chain(after.required.keys()).filter(|name| !told.contains(name)).collect();
        for name in required {
            let pair = Pair { old: before.required.get(name).copied(), new: after.required.get(name).copied() };
            if pair.old.is_none() || pair.new.is_none() {
                self.come_or_gone(pair, [rules::REQUIRED_NEW, rules::REQUIRED_GONE], sense);
            }
        }
        self.patterns(&before, &after, sense);
        self.schemas(Pair { old: before.others, new: after.others }, sense, Form::Others);
    }

    fn object(&mut self, leaf: &Leaf<'d>) -> Object<'d> {
        let side = leaf.home.side;
        let mut members = |keyword: &str| {
            let word = leaf.words.get(keyword);
            word.map(|w| self.members(Schema { side, value: w.value, place: w.place })).unwrap_or_default()
        };
        let (properties, patterns) = (members("properties"), members("patternProperties"));
        let list = leaf.words.get("required").map(|word| self.elements(side, *word)).unwrap_or_default();
        let required = list.into_iter().map(|s| (s.value.text().unwrap_or_default(), Word { value: s.value, place: s.place })).collect();
        Object { properties, patterns, required, others: leaf.words.get("additionalProperties").copied() }
    }

    /// Whether it was told.
    fn member_new(&mut self, name: &str, pair: Pair<'d>, before: &Object<'d>, after: &Object<'d>, sense: Sense) -> bool {
        let is_required = after.required.contains_key(name);
        if let Some(others) = before.others(Side::Old) {
            // What was taken under this name before is known.
            let (_, new) = pair.as_schemas();
            self.push(Task { old: Some(others), new, sense, form: Form::Schema });
            return false;
        }
        let rule = if !before.patterns.is_empty() {
            rules::NAME_PATTERN
        } else if before.is_closed() && (sense == Sense::Output || !is_required) {
            rules::MEMBER_NEW_CLOSED
        } else if is_required && !before.required.contains_key(name) {
            rules::MEMBER_NEW_REQUIRED
        } else if sense != Sense::Output && !says_nothing(pair.new) && (before.required.contains_key(name) || self.may_be_named(Side::Old, name)) {
            // It was sent, although nothing here said what it is.
            rules::UNSURE
        } else {
            rules::MEMBER_NEW
        };
        self.other(rule, pair, sense);
        // It was required already, although nothing said what it is.
        !before.required.contains_key(name)
    }

    /// Whether it was told.
    fn member_gone(&mut self, name: &str, pair: Pair<'d>, before: &Object<'d>, after: &Object<'d>, sense: Sense) -> bool {
        let was_required = before.required.contains_key(name);
        let rule = if sense == Sense::Output && was_required {
            rules::MEMBER_GONE_REQUIRED
        } else if after.is_closed() {
            rules::MEMBER_GONE_CLOSED
        } else if sense == Sense::Output && !after.patterns.is_empty() {
            rules::NAME_PATTERN
        } else if let (Sense::Output, Some(others)) = (sense, after.others(Side::New)) {
            let (old, _) = pair.as_schemas();
            self.push(Task { old, new: Some(others), sense, form: Form::Schema });
            return false;
        } else if was_required {
            rules::MEMBER_GONE_REQUIRED
        } else if sense == Sense::Output && !says_nothing(pair.old) && (after.required.contains_key(name) || self.may_be_named(Side::New, name)) {
            // It is still there, although nothing here says what it is.
            rules::UNSURE
        } else {
            rules::MEMBER_GONE
        };
        self.other(rule, pair, sense);
        // It must still be there, although nothing says what it is.
        !after.required.contains_key(name)
    }

    fn patterns(&mut self, before: &Object<'d>, after: &Object<'d>, sense: Sense) {
        let patterns: BTreeSet<&Cow<'d, str>> = before.patterns.keys().chain(after.patterns.keys()).collect();
        for pattern in patterns {
            let pair = Pair { old: before.patterns.get(pattern).copied(), new: after.patterns.get(pattern).copied() };
            if pair.old.is_some() && pair.new.is_some() {
                self.schemas(pair, sense, Form::Schema);
            } else {
                self.other(rules::NAME_PATTERN, pair, sense);
            }
        }
    }

    /// Has two schemas compared; where there is none, everything is taken.
    pub(super) fn schemas(&mut self, pair: Pair<'d>, sense: Sense, form: Form) {
        let (old, new) = pair.as_schemas();
        if old.is_some() || new.is_some() {
            self.push(Task { old, new, sense, form });
        }
    }

    /// Compares `items`, `prefixItems` and `additionalItems`.
    pub(super) fn arrays(&mut self, old: &Leaf<'d>, new: &Leaf<'d>, sense: Sense) {
        let prefix = Pair::of(old, new, "prefixItems");
        if !prefix.are(&[Kind::Array]) {
            self.other(rules::MALFORMED, prefix, sense);
            return;
        }
        let (before, rest_before) = self.array(old);
        let (after, rest_after) = self.array(new);
        for n in 0..before.len().max(after.len()) {
            let (old, new) = (before.get(n).copied().or(rest_before), after.get(n).copied().or(rest_after));
            if old.is_some() || new.is_some() {
                self.push(Task { old, new, sense, form: Form::Schema });
            }
        }
        if rest_before.is_some() || rest_after.is_some() {
            self.push(Task { old: rest_before, new: rest_after, sense, form: Form::Schema });
        }
    }

    /// The schemas of the first elements, and that of the rest.
    fn array(&mut self, leaf: &Leaf<'d>) -> (Vec<Schema<'d>>, Option<Schema<'d>>) {
        let side = leaf.home.side;
        let schema = |word: &Word<'d>| Schema { side, value: word.value, place: word.place };
        let items = leaf.words.get("items");
        // Before 2020-12, `items` was what `prefixItems` is now, and `additionalItems` the rest.
        match (leaf.words.get("prefixItems"), items) {
            (None, Some(first)) if first.value.kind() == Kind::Array => (self.elements(side, *first), leaf.words.get("additionalItems").map(schema)),
            (Some(first), rest) => (self.elements(side, *first), rest.map(schema)),
            (None, rest) => (Vec::new(), rest.map(schema)),
        }
    }

    /// Every one of these has to hold if the property is there.
    pub(super) fn dependent_schemas(&mut self, pair: Pair<'d>, sense: Sense) {
        self.by_name(pair, [rules::CONDITION_NEW, rules::CONDITION_GONE], sense, |walk, pair| walk.schemas(pair, sense, Form::Schema));
    }

    pub(super) fn dependent_required(&mut self, pair: Pair<'d>, sense: Sense) {
        let both = [rules::DEPENDENCY_NEW, rules::DEPENDENCY_GONE];
        self.by_name(pair, both, sense, |walk, pair| {
            if !pair.are(&[Kind::Array]) {
                walk.other(rules::MALFORMED, pair, sense);
                return;
            }
            let mut names = |side, word: Option<Word<'d>>| {
                let list = word.map(|word| walk.elements(side, word)).unwrap_or_default();
                list.into_iter().map(|s| (s.value.raw(), Word { value: s.value, place: s.place })).collect::<BTreeMap<_, _>>()
            };
            let (before, after) = (names(Side::Old, pair.old), names(Side::New, pair.new));
            let names: BTreeSet<&[u8]> = before.keys().chain(after.keys()).copied().collect();
            for name in names {
                let pair = Pair { old: before.get(name).copied(), new: after.get(name).copied() };
                if pair.old.is_none() || pair.new.is_none() {
                    walk.come_or_gone(pair, both, sense);
                }
            }
        });
    }

    /// Compares two objects member by member: one of two rules for those that came or went.
    fn by_name(&mut self, pair: Pair<'d>, [added, gone]: [Rule; 2], sense: Sense, mut compare: impl FnMut(&mut Self, Pair<'d>)) {
        if !pair.are(&[Kind::Object]) {
            self.other(rules::MALFORMED, pair, sense);
            return;
        }
        let mut members =
            |side, word: Option<Word<'d>>| word.map(|w: Word<'d>| self.members(Schema { side, value: w.value, place: w.place })).unwrap_or_default();
        let (before, after) = (members(Side::Old, pair.old), members(Side::New, pair.new));
        let names: BTreeSet<&Cow<'d, str>> = before.keys().chain(after.keys()).collect();
        for name in names {
            let pair = Pair { old: before.get(name).copied(), new: after.get(name).copied() };
            match (pair.old, pair.new) {
                (Some(_), Some(_)) => compare(self, pair),
                (None, _) => self.other(added, pair, sense),
                (_, None) => self.other(gone, pair, sense),
            }
        }
    }
}

/// Whether a value is `true`.
pub(super) fn is_true(word: Option<Word<'_>>) -> bool {
    word.map(|w| w.value).and_then(Value::boolean) == Some(true)
}
