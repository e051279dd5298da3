//! Two schemas, keyword by keyword.

use std::collections::BTreeSet;

use crate::protocol::json::{Kind, Value};

use super::domain::{Share, Types, spoken_of};
use super::found::{Sense, Side};
use super::matching::match_in_order;
use super::rules::{self, Rule};
use super::view::{Leaf, Schema, Word};
use super::walk::{At, Form, Task, Walk};

/// A keyword on both sides.
#[derive(Clone, Copy)]
pub(super) struct Pair<'d> {
    pub(super) old: Option<Word<'d>>,
    pub(super) new: Option<Word<'d>>,
}

impl<'d> Pair<'d> {
    pub(super) fn of(old: &Leaf<'d>, new: &Leaf<'d>, keyword: &str) -> Pair<'d> {
        Pair { old: old.words.get(keyword).copied(), new: new.words.get(keyword).copied() }
    }

    pub(super) fn values(self) -> (Option<Value<'d>>, Option<Value<'d>>) {
        (self.old.map(|w| w.value), self.new.map(|w| w.value))
    }

    /// Whether what is there on either side is of that kind.
    pub(super) fn are(self, kinds: &[Kind]) -> bool {
        [self.old, self.new].into_iter().flatten().all(|word| kinds.contains(&word.value.kind()))
    }

    pub(super) fn as_schemas(self) -> (Option<Schema<'d>>, Option<Schema<'d>>) {
        let schema = |side, word: Option<Word<'d>>| word.map(|w| Schema { side, value: w.value, place: w.place });
        (schema(Side::Old, self.old), schema(Side::New, self.new))
    }
}

impl<'d> Walk<'_, 'd> {
    /// Compares two schemas that are no lists of alternatives.
    pub(super) fn leaves(&mut self, old: &Leaf<'d>, new: &Leaf<'d>, at: At<'d>, sense: Sense) {
        self.notes(&old.notes, &new.notes);
        let unevaluated = |leaf: &Leaf<'d>| leaf.words.contains_key("unevaluatedProperties") || leaf.words.contains_key("unevaluatedItems");
        // What these refuse depends on everything beside them.
        let sense = if unevaluated(old) || unevaluated(new) { Sense::Unclear } else { sense };
        self.domains(old, new, at, sense);
        self.also(old, new, sense);
        // A type that one side refuses has been told, and its keywords with it.
        let common = old.domain.types().and(new.domain.types());
        let keywords: BTreeSet<&str> = old.words.keys().chain(new.words.keys()).map(AsRef::as_ref).collect();
        let speaks = |keyword: &&str| spoken_of(keyword) == Types::ANY || spoken_of(keyword).meets(common);
        let families: BTreeSet<&str> = keywords.into_iter().filter(speaks).map(family).collect();
        for family in families {
            self.family(family, old, new, sense);
        }
    }

    /// Compares a keyword, with those that say something only together with it.
    fn family(&mut self, family: &str, old: &Leaf<'d>, new: &Leaf<'d>, sense: Sense) {
        let pair = Pair::of(old, new, family);
        match family {
            "properties" => self.objects(old, new, sense),
            "items" => self.arrays(old, new, sense),
            "minimum" => self.limit(old, new, ["minimum", "exclusiveMinimum"], sense),
            "maximum" => self.limit(old, new, ["maximum", "exclusiveMaximum"], sense),
            "minLength" | "minItems" | "minProperties" => self.count(pair, true, sense),
            "maxLength" | "maxItems" | "maxProperties" => self.count(pair, false, sense),
            "multipleOf" => self.step(pair, sense),
            "pattern" => self.text(pair, [rules::PATTERN_NEW, rules::PATTERN_GONE, rules::PATTERN_OTHER], sense),
            "format" => self.text(pair, [rules::FORMAT_NEW, rules::FORMAT_GONE, rules::FORMAT_OTHER], sense),
            "uniqueItems" => self.unique(pair, sense),
            "contentEncoding" | "contentMediaType" | "contentSchema" => self.other(rules::CONTENT_OTHER, pair, sense),
            "propertyNames" => self.condition(pair, sense, sense),
            "not" | "unevaluatedProperties" | "unevaluatedItems" => self.condition(pair, sense, Sense::Unclear),
            "contains" => self.contains(old, new, sense),
            "if" => self.conditional(old, new, sense),
            "anyOf" => self.any_of(pair, sense),
            "oneOf" => self.one_of(pair, sense),
            "dependentSchemas" => self.dependent_schemas(pair, sense),
            "dependentRequired" => self.dependent_required(pair, sense),
            "$ref" => self.other(rules::REFERENCE, pair, sense),
            "type" | "enum" | "nullable" | "allOf" | "" => self.other(rules::MALFORMED, pair, sense),
            _ => self.other(rules::UNKNOWN, pair, sense),
        }
    }

    /// Tells that a keyword is not the same, if it is not.
    pub(super) fn other(&mut self, rule: Rule, pair: Pair<'d>, sense: Sense) {
        let (old, new) = pair.values();
        if let Some(at) = At::of(pair.old, pair.new).filter(|_| !self.work.is_same(old, new)) {
            self.work.tell(rule, sense, at.place, old, new);
        }
    }

    /// Tells one of two rules, for what was added and for what went away.
    pub(super) fn come_or_gone(&mut self, pair: Pair<'d>, [added, gone]: [Rule; 2], sense: Sense) {
        let rule = if pair.old.is_none() { added } else { gone };
        self.other(rule, pair, sense);
    }

    /// A keyword whose schema has to hold.
    fn condition(&mut self, pair: Pair<'d>, sense: Sense, inside: Sense) {
        if pair.old.is_some() && pair.new.is_some() {
            let (old, new) = pair.as_schemas();
            self.push(Task { old, new, sense: inside, form: Form::Schema });
        } else {
            self.come_or_gone(pair, [rules::CONDITION_NEW, rules::CONDITION_GONE], sense);
        }
    }

    /// What must hold besides.
    fn also(&mut self, old: &Leaf<'d>, new: &Leaf<'d>, sense: Sense) {
        let numbers = |schemas: &[Schema<'d>]| schemas.iter().map(|s| self.work.number(s.side, s.value)).collect::<Vec<_>>();
        let matched = match_in_order(&numbers(&old.also), &numbers(&new.also));
        let word = |schema: Schema<'d>| Some(Word { value: schema.value, place: schema.place });
        for (a, b) in matched.pairs {
            self.push(Task { old: Some(old.also[a]), new: Some(new.also[b]), sense, form: Form::Schema });
        }
        for n in matched.gone {
            self.other(rules::CONDITION_GONE, Pair { old: word(old.also[n]), new: None }, sense);
        }
        for n in matched.added {
            self.other(rules::CONDITION_NEW, Pair { old: None, new: word(new.also[n]) }, sense);
        }
    }

    fn any_of(&mut self, pair: Pair<'d>, sense: Sense) {
        if !pair.are(&[Kind::Array]) {
            self.other(rules::MALFORMED, pair, sense);
        } else if pair.old.is_some() && pair.new.is_some() {
            let (old, new) = pair.as_schemas();
            self.push(Task { old, new, sense, form: Form::List });
        } else {
            self.come_or_gone(pair, [rules::CONDITION_NEW, rules::CONDITION_GONE], sense);
        }
    }

    /// Several of these may match, so that a new alternative can refuse what another took.
    fn one_of(&mut self, pair: Pair<'d>, sense: Sense) {
        let (Some(old), Some(new), true) = (pair.old, pair.new, pair.are(&[Kind::Array])) else {
            self.other(rules::ONE_OF_OTHER, pair, sense);
            return;
        };
        let before = self.elements(Side::Old, old);
        let after = self.elements(Side::New, new);
        let numbers = |schemas: &[Schema<'d>]| schemas.iter().map(|s| self.work.number(s.side, s.value)).collect::<Vec<_>>();
        let matched = match_in_order(&numbers(&before), &numbers(&after));
        for (a, b) in matched.pairs {
            self.push(Task { old: Some(before[a]), new: Some(after[b]), sense: Sense::Unclear, form: Form::Schema });
        }
        for schema in matched.gone.into_iter().map(|n| before[n]) {
            self.work.tell(rules::ONE_OF_OTHER, sense, schema.place, Some(schema.value), None);
        }
        for schema in matched.added.into_iter().map(|n| after[n]) {
            self.work.tell(rules::ONE_OF_OTHER, sense, schema.place, None, Some(schema.value));
        }
    }

    /// The elements of an array, with their places.
    pub(super) fn elements(&mut self, side: Side, list: Word<'d>) -> Vec<Schema<'d>> {
        let mut elements = Vec::new();
        for (n, value) in list.value.elements().enumerate() {
            self.work.spend(1);
            elements.push(Schema { side, value, place: self.work.places.step(list.place, n.to_string()) });
        }
        elements
    }

    /// `if` alone says nothing.
    fn conditional(&mut self, old: &Leaf<'d>, new: &Leaf<'d>, sense: Sense) {
        let [condition, then, otherwise] = ["if", "then", "else"].map(|keyword| Pair::of(old, new, keyword));
        let before = condition.old.is_some() && (then.old.is_some() || otherwise.old.is_some());
        let after = condition.new.is_some() && (then.new.is_some() || otherwise.new.is_some());
        match (before, after) {
            (false, false) => {}
            (true, true) => {
                for pair in [condition, then, otherwise] {
                    let (old, new) = pair.as_schemas();
                    self.push(Task { old, new, sense: Sense::Unclear, form: Form::Schema });
                }
            }
            (false, true) => self.other(rules::CONDITION_NEW, Pair { old: None, ..condition }, sense),
            (true, false) => self.other(rules::CONDITION_GONE, Pair { new: None, ..condition }, sense),
        }
    }

    fn contains(&mut self, old: &Leaf<'d>, new: &Leaf<'d>, sense: Sense) {
        let [contains, least, most] = ["contains", "minContains", "maxContains"].map(|keyword| Pair::of(old, new, keyword));
        // Without `contains` the others say nothing.
        let counts = [least, most].into_iter().any(|pair| pair.old.is_some() || pair.new.is_some());
        let inside = if counts { Sense::Unclear } else { sense };
        match (contains.old, contains.new) {
            (None, None) => {}
            (Some(_), Some(_)) => {
                self.condition(contains, sense, inside);
                self.other(rules::INSIDE, least, sense);
                self.other(rules::INSIDE, most, sense);
            }
            _ => self.condition(contains, inside, inside),
        }
    }

    /// Compares which values are taken by their type or one by one.
    fn domains(&mut self, old: &Leaf<'d>, new: &Leaf<'d>, at: At<'d>, sense: Sense) {
        let singles = Types::NULL.or(Types::BOOLEAN);
        let is_list = |leaf: &Leaf<'d>| leaf.list_at.is_some() && leaf.domain.open.without(singles).is_none();
        if is_list(old) && is_list(new) {
            self.values(old, new, Types::ALL, at, sense);
            return;
        }
        let [mut lost, mut gained, mut listed, mut freed] = [Types::NONE; 4];
        for class in Types::CLASSES {
            match (old.domain.share(class), new.domain.share(class)) {
                (Share::None, Share::None) | (Share::All, Share::All) => {}
                (Share::Some | Share::All, Share::None) => lost = lost.or(class),
                (Share::None, Share::Some | Share::All) => gained = gained.or(class),
                (Share::All, Share::Some) => listed = listed.or(class),
                (Share::Some, Share::All) => freed = freed.or(class),
                (Share::Some, Share::Some) => self.values(old, new, class, at, sense),
            }
        }
        // `{}` that becomes `const: 1` is one change, and so is `number` that becomes `enum: [1]`.
        if !listed.is_none() && (new.type_at.is_none() || listed.meets(Types::NUMBER) && Types::NUMBER.has(lost)) {
            lost = Types::NONE;
        }
        if !freed.is_none() && (old.type_at.is_none() || freed.meets(Types::NUMBER) && Types::NUMBER.has(gained)) {
            gained = Types::NONE;
        }
        let by_type = At::of(old.type_at.or(old.list_at), new.type_at.or(new.list_at)).unwrap_or(at);
        let by_list = At::of(old.list_at.or(old.type_at), new.list_at.or(new.type_at)).unwrap_or(at);
        let by_list = At { place: new.list_at.or(old.list_at).map_or(by_list.place, |word| word.place), ..by_list };
        let rule = match (lost.is_none(), gained.is_none()) {
            (true, true) => None,
            (false, true) => Some(if lost == Types::NULL { rules::NULL_GONE } else { rules::TYPE_NARROWER }),
            (true, false) => Some(if gained == Types::NULL { rules::NULL_NEW } else { rules::TYPE_WIDER }),
            (false, false) => Some(rules::TYPE_OTHER),
        };
        let told = [
            (rule, by_type),
            ((!listed.is_none()).then_some(rules::LISTED_ONLY), by_list),
            ((!freed.is_none()).then_some(rules::UNLISTED_TOO), by_list),
        ];
        for (rule, at) in told {
            if let Some(rule) = rule {
                self.work.tell(rule, sense, at.place, at.old, at.new);
            }
        }
    }

    /// Compares the listed values of a type.
    fn values(&mut self, old: &Leaf<'d>, new: &Leaf<'d>, class: Types, at: At<'d>, sense: Sense) {
        let at = At::of(old.list_at.or(old.type_at), new.list_at.or(new.type_at)).unwrap_or(at);
        let gone = old.domain.open.without(new.domain.open).and(class);
        let added = new.domain.open.without(old.domain.open).and(class);
        for (types, null, one) in [(gone, rules::NULL_GONE, rules::VALUE_GONE), (added, rules::NULL_NEW, rules::VALUE_NEW)] {
            if types.meets(Types::NULL) {
                self.work.tell(null, sense, at.place, at.old, at.new);
            }
            if types.meets(Types::BOOLEAN) {
                self.work.tell(one, sense, at.place, at.old, at.new);
            }
        }
        for listed in old.domain.beyond(&new.domain, class) {
            self.work.tell(rules::VALUE_GONE, sense, listed.place, Some(listed.value), None);
        }
        for listed in new.domain.beyond(&old.domain, class) {
            self.work.tell(rules::VALUE_NEW, sense, listed.place, None, Some(listed.value));
        }
    }
}

/// Keywords that are compared together, by one name.
fn family(keyword: &str) -> &str {
    match keyword {
        "patternProperties" | "additionalProperties" | "required" => "properties",
        "prefixItems" | "additionalItems" => "items",
        "minContains" | "maxContains" => "contains",
        "then" | "else" => "if",
        "exclusiveMinimum" => "minimum",
        "exclusiveMaximum" => "maximum",
        other => other,
    }
}
