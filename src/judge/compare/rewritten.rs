//! What differs in the writing of two items and has not been told: it means the same, or it is a
//! text that nothing refers to.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use crate::protocol::json::{Kind, Value};

use super::found::{Place, Sense, Side, Work};
use super::matching::match_in_order;
use super::rules;
use super::view::{Role as KeywordRole, role};

/// What a value's place makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Item,
    /// An array of items: the arguments of a prompt.
    Items,
    Schema,
    /// An object whose values are schemas.
    Named,
    /// An array of schemas whose order says nothing.
    Several,
    /// An array of schemas, each for its position.
    Tuple,
    Text,
    Data,
}

impl Role {
    /// What a member of such a value is.
    fn of_member(self, key: &str, value: Option<Value<'_>>) -> Role {
        match self {
            Role::Item => match key {
                "inputSchema" | "outputSchema" => Role::Schema,
                "title" | "description" => Role::Text,
                "arguments" => Role::Items,
                _ => Role::Data,
            },
            Role::Schema => match key {
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies" => Role::Named,
                "anyOf" | "oneOf" | "allOf" => Role::Several,
                "prefixItems" => Role::Tuple,
                "items" if value.is_some_and(|v| v.kind() == Kind::Array) => Role::Tuple,
                "items"
                | "additionalProperties"
                | "additionalItems"
                | "unevaluatedProperties"
                | "unevaluatedItems"
                | "propertyNames"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contentSchema" => Role::Schema,
                "default" | "deprecated" | "readOnly" | "writeOnly" => Role::Data,
                note if role(note) == KeywordRole::Note => Role::Text,
                _ => Role::Data,
            },
            Role::Named => Role::Schema,
            Role::Items | Role::Several | Role::Tuple | Role::Text | Role::Data => Role::Data,
        }
    }

    fn of_element(self) -> Role {
        match self {
            Role::Several | Role::Tuple => Role::Schema,
            Role::Items => Role::Item,
            Role::Item | Role::Schema | Role::Named | Role::Text | Role::Data => Role::Data,
        }
    }
}

/// A difference that is still to be looked at.
#[derive(Clone, Copy)]
struct Difference<'d> {
    old: Option<Value<'d>>,
    new: Option<Value<'d>>,
    place: Place,
    role: Role,
    /// It lies in a schema of which nothing can be shown.
    is_unsure: bool,
    /// It lies in a definition.
    is_definition: bool,
    /// It was told as part of something else, but for its texts.
    is_told: bool,
}

/// Keywords in whose values a change is told.
const HOLDERS: [&str; 9] =
    ["properties", "patternProperties", "required", "enum", "anyOf", "oneOf", "allOf", "dependentRequired", "dependentSchemas"];

/// Tells what differs between two items and has not been told yet.
pub(super) fn tell_the_rest<'d>(work: &mut Work<'d>, old: Value<'d>, new: Value<'d>) {
    let told: HashSet<Place> = work.found.iter().map(|found| found.place).collect();
    let mut above = HashSet::new();
    let mut beside = HashSet::new();
    for place in &told {
        let parent = work.places.parent(*place);
        // `required/0` and `properties/a` lie beside the other keywords as `type` does.
        let holder = parent.filter(|parent| HOLDERS.iter().any(|keyword| work.places.is_at(*parent, keyword)));
        beside.extend(parent.into_iter().chain(holder.and_then(|parent| work.places.parent(parent))));
        let mut at = *place;
        while let Some(parent) = work.places.parent(at).filter(|parent| above.insert(*parent)) {
            at = parent;
        }
    }
    let known = Known { told, above, beside, of_old: work.numbers.old.iter().collect(), of_new: work.numbers.new.iter().collect() };
    let whole =
        Difference { old: Some(old), new: Some(new), place: Place::ITEM, role: Role::Item, is_unsure: false, is_definition: false, is_told: false };
    let mut todo = vec![whole];
    while let Some(difference) = todo.pop() {
        work.spend(1);
        if work.is_spent() {
            return;
        }
        let is_same = work.is_same(difference.old, difference.new);
        if !is_same && !known.told.contains(&difference.place) {
            look(work, &known, difference, &mut todo);
        }
    }
}

/// What has been told, and what there is.
struct Known {
    told: HashSet<Place>,
    /// The places that a told one lies in.
    above: HashSet<Place>,
    /// The places that a told one lies in directly.
    beside: HashSet<Place>,
    /// The numbers of all values of either side.
    of_old: HashSet<u32>,
    of_new: HashSet<u32>,
}

fn look<'d>(work: &mut Work<'d>, known: &Known, mut difference: Difference<'d>, todo: &mut Vec<Difference<'d>>) {
    difference.is_unsure |= work.unsure.contains(&difference.place);
    let kinds = (difference.old.map(Value::kind), difference.new.map(Value::kind));
    match kinds {
        (Some(Kind::Object), Some(Kind::Object)) if difference.role != Role::Text => members(work, difference, todo),
        (Some(Kind::Array), Some(Kind::Array)) if difference.role == Role::Tuple => elements(work, difference, todo),
        (Some(Kind::Array), Some(Kind::Array)) if matches!(difference.role, Role::Several | Role::Items) => {
            // Where something has been told, they were matched by what they are like, here they are in order.
            difference.is_told |= known.above.contains(&difference.place);
            if several(work, difference, todo) {
                leaf(work, known, difference);
            }
        }
        // A whole in which something has been told: what else is in it is looked at part by part.
        (None, Some(_)) | (Some(_), None) if known.above.contains(&difference.place) && difference.role != Role::Text => {
            difference.is_told = true;
            members(work, difference, todo);
            elements(work, difference, todo);
        }
        _ => leaf(work, known, difference),
    }
}

fn members<'d>(work: &mut Work<'d>, whole: Difference<'d>, todo: &mut Vec<Difference<'d>>) {
    let mut both: BTreeMap<Cow<'d, str>, (Option<Value<'d>>, Option<Value<'d>>)> = BTreeMap::new();
    let mut count = (0, 0);
    for (key, value) in whole.old.into_iter().flat_map(Value::members) {
        both.entry(key.text().unwrap_or_default()).or_default().0 = Some(value);
        count.0 += 1;
    }
    for (key, value) in whole.new.into_iter().flat_map(Value::members) {
        both.entry(key.text().unwrap_or_default()).or_default().1 = Some(value);
        count.1 += 1;
    }
    work.spend(count.0 + count.1);
    let distinct = (both.values().filter(|v| v.0.is_some()).count(), both.values().filter(|v| v.1.is_some()).count());
    if count != distinct {
        // Which of two members with one key counts is up to the reader.
        work.tell(rules::UNSURE, Sense::Input, whole.place, whole.old, whole.new);
        return;
    }
    for (key, (old, new)) in both {
        let role = whole.role.of_member(&key, new.or(old));
        let is_definition = whole.is_definition || (whole.role == Role::Schema && matches!(key.as_ref(), "$defs" | "definitions"));
        let place = work.places.step(whole.place, key);
        todo.push(Difference { old, new, place, role, is_definition, ..whole });
    }
}

fn elements<'d>(work: &mut Work<'d>, whole: Difference<'d>, todo: &mut Vec<Difference<'d>>) {
    let mut old = whole.old.into_iter().flat_map(Value::elements);
    let mut new = whole.new.into_iter().flat_map(Value::elements);
    for n in 0.. {
        let (old, new) = (old.next(), new.next());
        if old.is_none() && new.is_none() {
            return;
        }
        work.spend(1);
        let place = work.places.step(whole.place, n.to_string());
        todo.push(Difference { old, new, place, role: whole.role.of_element(), ..whole });
    }
}

/// Pairs the elements of two arrays whose order says nothing; true if nothing but that differs.
fn several<'d>(work: &mut Work<'d>, whole: Difference<'d>, todo: &mut Vec<Difference<'d>>) -> bool {
    let (Some(old), Some(new)) = (whole.old, whole.new) else { return false };
    let (old, new): (Vec<_>, Vec<_>) = (old.elements().collect(), new.elements().collect());
    work.spend(old.len() + new.len());
    let numbers = |side, values: &[Value<'d>]| values.iter().map(|v| work.number(side, *v)).collect::<Vec<_>>();
    let matched = match_in_order(&numbers(Side::Old, &old), &numbers(Side::New, &new));
    let pairs = matched.pairs.into_iter().map(|(a, b)| (Some(old[a]), Some(new[b]), b));
    let gone = matched.gone.into_iter().map(|a| (Some(old[a]), None, a));
    let added = matched.added.into_iter().map(|b| (None, Some(new[b]), b));
    let mut is_order = true;
    for (old, new, n) in pairs.chain(gone).chain(added).collect::<Vec<_>>() {
        if !work.is_same(old, new) {
            is_order = false;
            let place = work.places.step(whole.place, n.to_string());
            todo.push(Difference { old, new, place, role: whole.role.of_element(), ..whole });
        }
    }
    is_order
}

fn leaf<'d>(work: &mut Work<'d>, known: &Known, difference: Difference<'d>) {
    let Difference { old, new, place, .. } = difference;
    if difference.is_unsure && difference.role != Role::Text {
        work.tell(rules::UNSURE, Sense::Input, place, old, new);
        return;
    }
    let is_replaced = difference.role == Role::Text && old.is_some() && new.is_some() && !difference.is_told;
    let is_told = difference.is_told || work.places.parent(place).is_some_and(|parent| known.beside.contains(&parent));
    if is_replaced || has_unknown_text(work, known, difference) {
        work.tell(rules::UNUSED_TEXT, Sense::Input, place, old, new);
    } else if !is_told && !known.above.contains(&place) {
        let rule = if difference.is_definition { rules::DEFINITION } else { rules::REWRITTEN };
        work.tell(rule, Sense::Input, place, old, new);
    }
}

/// Whether one side has a text there that is nowhere on the other.
fn has_unknown_text<'d>(work: &mut Work<'d>, known: &Known, difference: Difference<'d>) -> bool {
    for (side, value, others) in [(Side::Old, difference.old, &known.of_new), (Side::New, difference.new, &known.of_old)] {
        let mut todo: Vec<(Value<'d>, Role)> = value.into_iter().map(|value| (value, difference.role)).collect();
        while let Some((value, role)) = todo.pop() {
            work.spend(1);
            if work.is_spent() {
                return true;
            }
            match role {
                Role::Text if !others.contains(&work.number(side, value)) => return true,
                Role::Text | Role::Data => {}
                Role::Item | Role::Items | Role::Schema | Role::Named | Role::Several | Role::Tuple => {
                    let members = value.members().map(|(key, inner)| (inner, role.of_member(&key.text().unwrap_or_default(), Some(inner))));
                    todo.extend(members);
                    todo.extend(value.elements().map(|inner| (inner, role.of_element())));
                }
            }
        }
    }
    false
}
