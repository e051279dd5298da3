//! What a schema says, in a form in which those that mean the same look the same.
//!
//! References are followed, `allOf` and what stands beside a reference are put together, `anyOf`
//! becomes a list of alternatives, and alternatives that only take values by their type or one by
//! one become one [`Domain`]. So `type: [string, null]`, `nullable: true` and
//! `anyOf: [{type: string}, {type: null}]` are the same.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use crate::protocol::json::{Kind, Value};

use super::domain::{Domain, Types, spoken_of};
use super::found::{Place, Side};
use super::walk::Walk;

/// Schemas that are put together to one, and alternatives: more of them are too much.
const MAX_PARTS: usize = 512;

/// A schema, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema<'d> {
    pub(super) side: Side,
    pub(super) value: Value<'d>,
    pub(super) place: Place,
}

/// The value of a keyword, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'d> {
    pub(super) value: Value<'d>,
    pub(super) place: Place,
}

/// A keyword that constrains nothing: its name, and what it says.
pub(super) type Note<'d> = (Cow<'d, str>, Word<'d>);

/// What a schema says, if it is no list of alternatives.
#[derive(Debug)]
pub(super) struct Leaf<'d> {
    /// The schema it was read from.
    pub(super) home: Schema<'d>,
    pub(super) domain: Domain<'d>,
    /// The keyword that names types.
    pub(super) type_at: Option<Word<'d>>,
    /// The keyword that lists values.
    pub(super) list_at: Option<Word<'d>>,
    /// The other keywords that constrain.
    pub(super) words: BTreeMap<Cow<'d, str>, Word<'d>>,
    /// Schemas that hold as well and could not be put together with the rest.
    pub(super) also: Vec<Schema<'d>>,
    pub(super) notes: Vec<Note<'d>>,
}

/// A schema as a list of alternatives.
#[derive(Debug)]
pub(super) struct View<'d> {
    pub(super) notes: Vec<Note<'d>>,
    /// The keyword that lists the alternatives.
    pub(super) told: Option<Word<'d>>,
    /// The alternatives that only take values by their type or one by one, in one.
    pub(super) plain: Leaf<'d>,
    pub(super) others: Vec<Leaf<'d>>,
}

impl<'d> Leaf<'d> {
    pub(super) fn new(home: Schema<'d>, domain: Domain<'d>) -> Leaf<'d> {
        Leaf { home, domain, type_at: None, list_at: None, words: BTreeMap::new(), also: Vec::new(), notes: Vec::new() }
    }

    /// The types of which its keywords speak.
    fn spoken_of(&self) -> Types {
        let also = if self.also.is_empty() { Types::NONE } else { Types::ANY };
        self.words.keys().fold(also, |all, keyword| all.or(spoken_of(keyword)))
    }
}

impl<'d> View<'d> {
    /// Adds an alternative. What no keyword of it speaks of belongs to the plain one.
    fn add(&mut self, mut leaf: Leaf<'d>) {
        let types = leaf.domain.types();
        leaf.words.retain(|keyword, _| spoken_of(keyword) == Types::ANY || spoken_of(keyword).meets(types));
        let spoken_of = leaf.spoken_of();
        let untouched = leaf.domain.split(spoken_of);
        self.plain.domain.unite(untouched);
        self.plain.type_at = self.plain.type_at.or(leaf.type_at);
        self.plain.list_at = self.plain.list_at.or(leaf.list_at);
        if spoken_of.is_none() {
            self.plain.notes.append(&mut leaf.notes);
        } else {
            self.others.push(leaf);
        }
    }

    /// Whether all alternatives can be said as one: if no keyword of one speaks of another's values.
    pub(super) fn is_one(&self) -> bool {
        let types: Vec<Types> = self.others.iter().map(|leaf| leaf.domain.types()).collect();
        self.others.iter().enumerate().all(|(n, leaf)| {
            let others = types.iter().enumerate().filter(|(m, _)| *m != n).map(|(_, types)| *types);
            !leaf.spoken_of().meets(others.fold(self.plain.domain.types(), Types::or))
        })
    }

    /// All alternatives as one.
    pub(super) fn into_one(mut self) -> Leaf<'d> {
        let mut one = self.plain;
        for leaf in self.others {
            one.domain.unite(leaf.domain);
            one.words.extend(leaf.words);
            one.also.extend(leaf.also);
            one.notes.extend(leaf.notes);
            one.type_at = one.type_at.or(leaf.type_at);
            one.list_at = one.list_at.or(leaf.list_at);
        }
        if let Some(told) = self.told {
            one.type_at = Some(told);
            one.list_at = one.list_at.and(Some(told));
        }
        self.notes.append(&mut one.notes);
        one.notes = self.notes;
        one
    }
}

/// An alternative that is still to be looked at.
struct Branch<'d> {
    schema: Schema<'d>,
    /// What lies around it takes no more than this.
    within: Domain<'d>,
    notes: Vec<Note<'d>>,
    /// The lists of alternatives it lies in: in the same one again, it adds nothing.
    trail: Vec<u32>,
}

impl<'d> Walk<'_, 'd> {
    /// What a schema says.
    pub(super) fn view(&mut self, schema: Schema<'d>) -> View<'d> {
        let mut leaf = self.gather(schema);
        let mut view = View { notes: std::mem::take(&mut leaf.notes), told: None, plain: Leaf::new(schema, Domain::default()), others: Vec::new() };
        match self.alternatives(&leaf) {
            None => view.add(leaf),
            Some(list) => {
                view.told = Some(list);
                self.expand(schema.side, list, &leaf.domain, &mut view);
            }
        }
        view
    }

    /// What a list of alternatives says.
    pub(super) fn view_of_list(&mut self, list: Schema<'d>) -> View<'d> {
        let told = Word { value: list.value, place: list.place };
        let mut view = View { notes: Vec::new(), told: Some(told), plain: Leaf::new(list, Domain::default()), others: Vec::new() };
        self.expand(list.side, told, &Domain::everything(), &mut view);
        view
    }

    fn expand(&mut self, side: Side, list: Word<'d>, within: &Domain<'d>, view: &mut View<'d>) {
        let mut todo = Vec::new();
        self.branch(side, list, within, &[], &[], &mut todo);
        while let Some(branch) = todo.pop() {
            if self.work.is_spent() || view.others.len() > MAX_PARTS || branch.trail.len() > 64 {
                self.work.give_up();
                return;
            }
            let mut leaf = self.gather(branch.schema);
            leaf.domain.intersect(&branch.within);
            leaf.notes.splice(0..0, branch.notes);
            match self.alternatives(&leaf) {
                None => view.add(leaf),
                Some(list) if branch.trail.contains(&list.value.index()) => {}
                Some(list) => self.branch(side, list, &leaf.domain, &leaf.notes, &branch.trail, &mut todo),
            }
        }
    }

    fn branch(&mut self, side: Side, list: Word<'d>, within: &Domain<'d>, notes: &[Note<'d>], trail: &[u32], todo: &mut Vec<Branch<'d>>) {
        let trail: Vec<u32> = trail.iter().copied().chain([list.value.index()]).collect();
        let from = todo.len();
        for (n, value) in list.value.elements().enumerate() {
            self.work.spend(1 + within.listed.len() + notes.len() + trail.len());
            if self.work.is_spent() {
                return;
            }
            let schema = Schema { side, value, place: self.work.places.step(list.place, n.to_string()) };
            // What is said of all of them is told with the first.
            let notes = if n == 0 { notes.to_vec() } else { Vec::new() };
            todo.push(Branch { schema, within: within.clone(), notes, trail: trail.clone() });
        }
        todo[from..].reverse();
    }

    /// The list of alternatives that is all that a leaf says besides types and values.
    fn alternatives(&mut self, leaf: &Leaf<'d>) -> Option<Word<'d>> {
        let (keyword, word) = leaf.words.first_key_value()?;
        let is_list = word.value.kind() == Kind::Array && word.value.elements().next().is_some();
        if leaf.words.len() > 1 || !leaf.also.is_empty() || !is_list {
            return None;
        }
        match keyword.as_ref() {
            "anyOf" => Some(*word),
            "oneOf" => self.are_exclusive(leaf.home.side, *word).then_some(*word),
            _ => None,
        }
    }

    /// Whether no value can match two of these schemas: then `oneOf` is `anyOf`. They differ in type,
    /// or they are objects that differ in a required property with listed values.
    fn are_exclusive(&mut self, side: Side, list: Word<'d>) -> bool {
        let mut leaves = Vec::new();
        for (n, value) in list.value.elements().enumerate() {
            let place = self.work.places.step(list.place, n.to_string());
            leaves.push(self.gather(Schema { side, value, place }));
            if self.work.is_spent() {
                return false;
            }
        }
        if are_apart(leaves.iter().map(|leaf| leaf.domain.clone())) {
            return true;
        }
        if leaves.iter().any(|leaf| leaf.domain.types() != Types::OBJECT) {
            return false;
        }
        let marks: Vec<String> = leaves.first().map(|leaf| required_in(leaf).collect()).unwrap_or_default();
        marks.iter().take(16).any(|mark| {
            let values: Option<Vec<Domain<'d>>> = leaves.iter().map(|leaf| self.values_of(leaf, mark)).collect();
            values.is_some_and(|values| are_apart(values.into_iter()))
        })
    }

    /// What a property takes that a leaf requires.
    fn values_of(&mut self, leaf: &Leaf<'d>, name: &str) -> Option<Domain<'d>> {
        required_in(leaf).find(|required| required == name)?;
        let word = leaf.words.get("properties")?;
        let value = word.value.get(name)?;
        let place = self.work.places.step(word.place, name.to_owned());
        Some(self.gather(Schema { side: leaf.home.side, value, place }).domain)
    }

    /// A schema, and what it refers to and what must hold too, put together.
    pub(super) fn gather(&mut self, schema: Schema<'d>) -> Leaf<'d> {
        let mut leaf = Leaf::new(schema, Domain::everything());
        let mut seen: Vec<u32> = Vec::new();
        let mut todo = VecDeque::from([schema]);
        while let Some(part) = todo.pop_front() {
            if seen.contains(&part.value.index()) {
                continue;
            }
            seen.push(part.value.index());
            if seen.len() > MAX_PARTS || self.work.is_spent() {
                self.work.give_up();
                break;
            }
            match part.value.kind() {
                Kind::Bool if part.value.boolean() == Some(true) => {}
                Kind::Bool => leaf.domain = Domain::default(),
                Kind::Object => self.absorb(part, &mut leaf, &mut todo),
                Kind::Null | Kind::Number | Kind::NonFinite | Kind::String | Kind::Array => {
                    leaf.words.insert(Cow::Borrowed(""), Word { value: part.value, place: part.place });
                }
            }
        }
        leaf
    }

    /// Puts one object's keywords to the leaf; or, where that has some of them already, the whole of it beside.
    fn absorb(&mut self, part: Schema<'d>, leaf: &mut Leaf<'d>, todo: &mut VecDeque<Schema<'d>>) {
        let members = self.members(part);
        let taken: Vec<&str> = leaf.words.keys().map(|keyword| group(keyword)).collect();
        self.work.spend(members.len() * taken.len() / 16);
        let clashes = |keyword: &str| role(keyword) == Role::Constraint && taken.contains(&group(keyword));
        if members.keys().any(|keyword| clashes(keyword)) {
            leaf.also.push(part);
            return;
        }
        let mut nullable = false;
        let mut types = None;
        let mut inner = Vec::new();
        for (keyword, word) in members {
            let target = if keyword == "$ref" { self.resolve(part.side, word.value) } else { None };
            match (role(&keyword), keyword.as_ref()) {
                (Role::Note, _) => leaf.notes.push((keyword, word)),
                (Role::Structure, _) => {}
                (Role::Domain, "type") if Types::named(word.value).is_some() => {
                    leaf.type_at = leaf.type_at.or(Some(word));
                    types = Types::named(word.value);
                }
                (Role::Domain, "nullable") if word.value.boolean().is_some() => nullable = word.value.boolean() == Some(true),
                (Role::Domain, "enum") if word.value.kind() == Kind::Array => {
                    let values = word.value.elements().enumerate();
                    let each: Vec<_> = values.map(|(n, value)| Word { value, place: self.work.places.step(word.place, n.to_string()) }).collect();
                    self.list(part.side, word, &each, leaf);
                }
                (Role::Domain, "const") => self.list(part.side, word, &[word], leaf),
                (Role::Constraint, "$ref") if target.is_some() => inner.extend(target),
                (Role::Constraint, "allOf") if word.value.kind() == Kind::Array => {
                    for (n, value) in word.value.elements().enumerate() {
                        self.work.spend(1);
                        inner.push(Schema { side: part.side, value, place: self.work.places.step(word.place, n.to_string()) });
                    }
                }
                (Role::Domain | Role::Constraint, _) => {
                    leaf.words.insert(keyword, word);
                }
            }
        }
        if let Some(types) = types {
            let null = if nullable { Types::NULL } else { Types::NONE };
            leaf.domain.intersect(&Domain { open: types.or(null), listed: BTreeMap::new() });
        }
        // What a reference says comes before what is further away.
        for schema in inner.into_iter().rev() {
            todo.push_front(schema);
        }
    }

    /// Takes no more than these values.
    fn list(&mut self, side: Side, at: Word<'d>, values: &[Word<'d>], leaf: &mut Leaf<'d>) {
        self.work.spend(values.len());
        let mut domain = Domain::default();
        for word in values {
            domain.list(self.work.number(side, word.value), word.value, word.place);
        }
        leaf.list_at = leaf.list_at.or(Some(at));
        leaf.domain.intersect(&domain);
    }
}

fn are_apart<'d>(domains: impl Iterator<Item = Domain<'d>>) -> bool {
    let mut all = Domain::default();
    for domain in domains {
        if all.meets(&domain) {
            return false;
        }
        all.unite(domain);
    }
    true
}

/// The names of the properties that a leaf requires.
pub(super) fn required_in<'d>(leaf: &Leaf<'d>) -> impl Iterator<Item = String> + use<'d> {
    let word = leaf.words.get("required").map(|word| word.value);
    word.into_iter().flat_map(Value::elements).filter_map(|name| Some(name.text()?.into_owned()))
}

/// What a keyword is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Which values are taken, by type or one by one.
    Domain,
    /// What else is accepted.
    Constraint,
    /// What a reader makes of it.
    Note,
    /// Where things are.
    Structure,
}

/// What a keyword is for.
pub(super) fn role(keyword: &str) -> Role {
    match keyword {
        "type" | "enum" | "const" | "nullable" => Role::Domain,
        "$defs" | "definitions" | "$id" | "$schema" | "$anchor" => Role::Structure,
        "title"
        | "description"
        | "$comment"
        | "examples"
        | "example"
        | "default"
        | "deprecated"
        | "readOnly"
        | "writeOnly"
        | "markdownDescription"
        | "enumNames"
        | "enumDescriptions"
        | "markdownEnumDescriptions" => Role::Note,
        extension if extension.starts_with("x-") => Role::Note,
        _ => Role::Constraint,
    }
}

/// Keywords that say something only together, by one name.
fn group(keyword: &str) -> &str {
    match keyword {
        "patternProperties" | "additionalProperties" | "unevaluatedProperties" => "properties",
        "prefixItems" | "additionalItems" | "unevaluatedItems" => "items",
        "minContains" | "maxContains" => "contains",
        "then" | "else" => "if",
        "exclusiveMinimum" => "minimum",
        "exclusiveMaximum" => "maximum",
        other => other,
    }
}
