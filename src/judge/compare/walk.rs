//! The way through two schemas at once.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::protocol::json::{Kind, Value, percent_decoded, pointer_tokens};

use super::domain::{Domain, Types};
use super::found::{Both, Place, Sense, Side, Work};
use super::matching::{Traits, match_up};
use super::rules::{self, Rule};
use super::view::{Leaf, Note, Role, Schema, View, Word, role};

/// Two schemas that are to be compared; none is one that takes everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'d> {
    pub(super) old: Option<Schema<'d>>,
    pub(super) new: Option<Schema<'d>>,
    pub(super) sense: Sense,
    pub(super) form: Form,
}

/// What stands where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    Schema,
    /// The schema of properties that are not named.
    Others,
    /// A list of alternatives.
    List,
}

/// Where a pair stands and what it is, if nothing in it says it better.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'d> {
    pub(super) place: Place,
    pub(super) old: Option<Value<'d>>,
    pub(super) new: Option<Value<'d>>,
}

impl<'d> At<'d> {
    /// `None` if nothing stands there on either side.
    pub(super) fn of(old: Option<Word<'d>>, new: Option<Word<'d>>) -> Option<At<'d>> {
        Some(At { place: new.or(old)?.place, old: old.map(|w| w.value), new: new.map(|w| w.value) })
    }
}

/// A container's members or elements by their token.
type Members<'d> = HashMap<Cow<'d, str>, Value<'d>>;

/// What a note said before, and what it says now.
type Said<'d> = (Option<Value<'d>>, Option<Value<'d>>);

/// The comparison of two schemas.
pub(super) struct Walk<'w, 'd> {
    pub(super) work: &'w mut Work<'d>,
    roots: Both<Schema<'d>>,
    /// The keys of references, in the order they stand.
    references: Both<Vec<u32>>,
    /// Whether what is referred to is the same on both sides wherever both refer to it.
    targets_are_same: bool,
    members: Both<HashMap<u32, Members<'d>>>,
    resolved: Both<HashMap<Cow<'d, str>, Option<Schema<'d>>>>,
    todo: Vec<Task<'d>>,
    seen: HashSet<(Option<u32>, Option<u32>, Sense, Form)>,
    /// The names of properties of each side, where what one schema does not name another one may.
    names: Both<HashSet<Cow<'d, str>>>,
}

/// What is found in a schema before it is compared.
#[derive(Default)]
struct Survey<'d> {
    references: Vec<u32>,
    targets: Vec<Value<'d>>,
    /// It has what is not followed here.
    is_unsure: bool,
    /// It has what means different things in different dialects.
    depends_on_dialect: bool,
    /// The names of properties that stand anywhere in it.
    names: HashSet<Cow<'d, str>>,
    /// Several of its schemas may speak of the same object.
    overlaps: bool,
}

impl<'w, 'd> Walk<'w, 'd> {
    /// Compares two schemas.
    pub(super) fn run(work: &'w mut Work<'d>, old: Schema<'d>, new: Schema<'d>, sense: Sense) {
        let surveys = Both { old: survey(old.value), new: survey(new.value) };
        let is_unsure = surveys.old.is_unsure || surveys.new.is_unsure;
        if is_unsure {
            work.unsure.push(new.place);
        }
        let depends = surveys.old.depends_on_dialect || surveys.new.depends_on_dialect;
        let targets: Vec<Value<'d>> = surveys.old.targets.iter().chain(&surveys.new.targets).copied().collect();
        let mut walk = Walk {
            work,
            roots: Both { old, new },
            references: Both { old: surveys.old.references, new: surveys.new.references },
            targets_are_same: false,
            members: Both { old: HashMap::new(), new: HashMap::new() },
            resolved: Both { old: HashMap::new(), new: HashMap::new() },
            todo: Vec::new(),
            seen: HashSet::new(),
            names: Both {
                old: if surveys.old.overlaps { surveys.old.names } else { HashSet::new() },
                new: if surveys.new.overlaps { surveys.new.names } else { HashSet::new() },
            },
        };
        walk.targets_are_same = targets.iter().all(|reference| walk.is_same_target(*reference));
        walk.dialect(sense, depends);
        let sense = if is_unsure { Sense::Unclear } else { sense };
        walk.push(Task { old: Some(old), new: Some(new), sense, form: Form::Schema });
        while let Some(task) = walk.todo.pop() {
            walk.work.spend(1);
            if walk.work.is_spent() {
                return;
            }
            let index = |schema: Option<Schema<'d>>| schema.map(|s| s.value.index());
            if walk.seen.insert((index(task.old), index(task.new), task.sense, task.form)) && !walk.means_the_same(task.old, task.new) {
                walk.compare(task);
            }
        }
    }

    /// Whether another schema of this side may speak of a property that this one does not name.
    pub(super) fn may_be_named(&self, side: Side, name: &str) -> bool {
        match side {
            Side::Old => self.names.old.contains(name),
            Side::New => self.names.new.contains(name),
        }
    }

    /// Takes note of two schemas that are still to be compared.
    pub(super) fn push(&mut self, task: Task<'d>) {
        self.todo.push(task);
    }

    fn is_same_target(&mut self, reference: Value<'d>) -> bool {
        let old = self.resolve(Side::Old, reference);
        let new = self.resolve(Side::New, reference);
        self.work.is_same(old.map(|s| s.value), new.map(|s| s.value))
    }

    /// Whether they are written the same and refer to the same.
    fn means_the_same(&self, old: Option<Schema<'d>>, new: Option<Schema<'d>>) -> bool {
        let (old, new) = (old.map(|s| s.value), new.map(|s| s.value));
        self.work.is_same(old, new) && (self.targets_are_same || old.is_none_or(|old| !self.refers(old)))
    }

    /// Whether there is a reference in a value of the old side.
    fn refers(&self, value: Value<'d>) -> bool {
        let last = value.within().next_back().map_or(value.index(), Value::index);
        let from = self.references.old.partition_point(|index| *index < value.index());
        self.references.old.get(from).is_some_and(|index| *index <= last)
    }

    fn dialect(&mut self, sense: Sense, depends: bool) {
        let at = |schema: Schema<'d>| schema.value.get("$schema");
        let (old, new) = (at(self.roots.old), at(self.roots.new));
        let (before, after) = (dialect(old), dialect(new));
        if before == after {
            return;
        }
        let place = self.work.places.step(self.roots.new.place, "$schema");
        let alike = !depends && COUSINS.contains(&before.as_str()) && COUSINS.contains(&after.as_str());
        self.work.tell(if alike { rules::DIALECT_ALIKE } else { rules::DIALECT_OTHER }, sense, place, old, new);
    }

    /// What a reference of that side refers to, if it is in the same schema.
    pub(super) fn resolve(&mut self, side: Side, reference: Value<'d>) -> Option<Schema<'d>> {
        let text = reference.text()?;
        if let Some(known) = self.resolved.of(side).get(&text) {
            return *known;
        }
        let target = self.follow(side, &text);
        self.resolved.of_mut(side).insert(text, target);
        target
    }

    fn follow(&mut self, side: Side, reference: &str) -> Option<Schema<'d>> {
        let pointer = percent_decoded(reference.strip_prefix('#')?);
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return None;
        }
        let mut schema = *self.roots.of(side);
        for token in pointer_tokens(&pointer) {
            self.work.spend(1);
            let members = self.members.of_mut(side).entry(schema.value.index()).or_insert_with(|| members_of(schema.value));
            schema.value = *members.get(&token)?;
            schema.place = self.work.places.step(schema.place, token.into_owned());
        }
        Some(schema)
    }

    /// The members of an object, by their keys; the last of those with the same one.
    pub(super) fn members(&mut self, schema: Schema<'d>) -> BTreeMap<Cow<'d, str>, Word<'d>> {
        let mut members = BTreeMap::new();
        for (key, value) in schema.value.members() {
            self.work.spend(1);
            let key = key.text().unwrap_or_default();
            let place = self.work.places.step(schema.place, key.clone());
            members.insert(key, Word { value, place });
        }
        members
    }

    fn compare(&mut self, task: Task<'d>) {
        let word = |schema: Option<Schema<'d>>| schema.map(|s| Word { value: s.value, place: s.place });
        let (Some(at), Some(some)) = (At::of(word(task.old), word(task.new)), task.new.or(task.old)) else { return };
        let mut view = |schema: Option<Schema<'d>>| match schema {
            None => View::of_everything(some),
            Some(schema) if task.form == Form::List => self.view_of_list(schema),
            Some(schema) => self.view(schema),
        };
        let (old, new) = (view(task.old), view(task.new));
        if self.work.is_spent() {
            return;
        }
        if task.form == Form::Others && old.is_nothing() != new.is_nothing() {
            let rule = if new.is_nothing() { rules::OTHERS_REFUSED } else { rules::OTHERS_ALLOWED };
            self.work.tell(rule, task.sense, at.place, at.old, at.new);
        } else if old.is_one() && new.is_one() {
            let (old, new) = (old.into_one(), new.into_one());
            self.leaves(&old, &new, at, task.sense);
        } else {
            self.notes(&old.notes, &new.notes);
            let at = At::of(old.told, new.told).unwrap_or(at);
            self.leaves(&old.plain, &new.plain, at, task.sense);
            self.alternatives_of(&old.others, &new.others, task.sense);
        }
    }

    /// Compares two lists of which one has to match.
    fn alternatives_of(&mut self, old: &[Leaf<'d>], new: &[Leaf<'d>], sense: Sense) {
        let before: Vec<Traits<'d>> = old.iter().map(|leaf| self.traits(leaf)).collect();
        let after: Vec<Traits<'d>> = new.iter().map(|leaf| self.traits(leaf)).collect();
        let matched = match_up(self.work, &before, &after);
        for (a, b) in matched.pairs {
            let (old, new) = (&old[a], &new[b]);
            let at = At { place: new.home.place, old: Some(old.home.value), new: Some(new.home.value) };
            self.leaves(old, new, at, sense);
        }
        for home in matched.gone.into_iter().map(|n| old[n].home) {
            self.work.tell(rules::ALTERNATIVE_GONE, sense, home.place, Some(home.value), None);
        }
        for home in matched.added.into_iter().map(|n| new[n].home) {
            self.work.tell(rules::ALTERNATIVE_NEW, sense, home.place, None, Some(home.value));
        }
    }

    fn traits(&mut self, leaf: &Leaf<'d>) -> Traits<'d> {
        let side = leaf.home.side;
        let properties = leaf.words.get("properties").map(|word| word.value);
        let members = properties.into_iter().flat_map(Value::members);
        let members: Vec<_> = members.map(|(key, value)| (key.text().unwrap_or_default(), self.work.number(side, value))).collect();
        self.work.spend(members.len());
        Traits { number: self.work.number(side, leaf.home.value), types: leaf.domain.types(), members }
    }

    /// Compares what constrains nothing.
    pub(super) fn notes(&mut self, old: &[Note<'d>], new: &[Note<'d>]) {
        self.work.spend(old.len() + new.len());
        let mut common: HashMap<(&str, u32), usize> = HashMap::new();
        for (keyword, word) in new {
            *common.entry((keyword, self.work.number(Side::New, word.value))).or_default() += 1;
        }
        let mut here: BTreeMap<(&str, Place), Said<'d>> = BTreeMap::new();
        let mut kept: HashMap<(&str, u32), usize> = HashMap::new();
        for (keyword, word) in old {
            let key = (keyword.as_ref(), self.work.number(Side::Old, word.value));
            match common.get_mut(&key) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    *kept.entry(key).or_default() += 1;
                }
                _ => here.entry((keyword, word.place)).or_default().0 = Some(word.value),
            }
        }
        for (keyword, word) in new {
            match kept.get_mut(&(keyword.as_ref(), self.work.number(Side::New, word.value))) {
                Some(count) if *count > 0 => *count -= 1,
                _ => here.entry((keyword, word.place)).or_default().1 = Some(word.value),
            }
        }
        for ((keyword, place), (old, new)) in here {
            self.work.tell(rule_of_note(keyword), Sense::Input, place, old, new);
        }
    }
}

impl<'d> View<'d> {
    /// What a schema says that takes everything.
    fn of_everything(home: Schema<'d>) -> View<'d> {
        View { notes: Vec::new(), told: None, plain: Leaf::new(home, Domain::everything()), others: Vec::new() }
    }

    /// Whether it takes nothing at all.
    fn is_nothing(&self) -> bool {
        self.others.is_empty() && self.plain.domain.types() == Types::NONE
    }
}

/// The rule for a keyword that constrains nothing.
fn rule_of_note(keyword: &str) -> Rule {
    match keyword {
        "title" => rules::SCHEMA_TITLE,
        "description" => rules::SCHEMA_TEXT,
        "$comment" => rules::COMMENT,
        "examples" | "example" => rules::EXAMPLES,
        "default" => rules::DEFAULT,
        "deprecated" | "readOnly" | "writeOnly" => rules::MARK,
        _ => rules::EXTENSION,
    }
}

/// A container's members or elements by their token.
fn members_of<'d>(container: Value<'d>) -> Members<'d> {
    let elements = container.elements().enumerate().map(|(n, value)| (Cow::Owned(n.to_string()), value));
    let members = container.members().map(|(key, value)| (key.text().unwrap_or_default(), value));
    elements.chain(members).collect()
}

/// The dialect of a schema that says none (MCP 2025-11-25, basic/index, JSON Schema usage).
const DEFAULT_DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Dialects that agree but for the keywords that [`survey`] looks for.
const COUSINS: [&str; 3] = [DEFAULT_DIALECT, "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft-07/schema"];

fn dialect(keyword: Option<Value<'_>>) -> String {
    match keyword {
        None => DEFAULT_DIALECT.to_owned(),
        Some(value) => {
            let text = String::from_utf8_lossy(value.raw());
            text.trim_matches('"').trim_end_matches('#').replace("http://", "https://")
        }
    }
}

fn survey(root: Value<'_>) -> Survey<'_> {
    let mut survey = Survey::default();
    for object in root.within().filter(|value| value.kind() == Kind::Object) {
        let mut refers = false;
        let mut has_more = false;
        for (key, value) in object.members() {
            let is_text = value.kind() == Kind::String;
            let key = match key.raw() {
                br#""$ref""# => {
                    survey.references.push(key.index());
                    Cow::Borrowed("$ref")
                }
                _ => key.text().unwrap_or_default(),
            };
            match key.as_ref() {
                "$ref" if is_text => {
                    refers = true;
                    survey.targets.push(value);
                    let text = value.text().unwrap_or_default();
                    survey.is_unsure |= text.starts_with('#') && text.len() > 1 && !text.starts_with("#/");
                    // It may lead back to here, by way of the root's own name.
                    survey.is_unsure |= !text.starts_with('#') && root.get("$id").is_some();
                    survey.overlaps = true;
                }
                "$dynamicRef" | "$recursiveRef" => survey.is_unsure = true,
                "$id" | "id" => survey.is_unsure |= is_text && object.index() != root.index(),
                "unevaluatedItems" | "unevaluatedProperties" => {
                    survey.depends_on_dialect = true;
                    survey.is_unsure = true;
                }
                "properties" => survey.names.extend(value.members().filter_map(|(name, _)| name.text())),
                "required" => survey.names.extend(value.elements().filter_map(Value::text)),
                "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" => survey.overlaps = true,
                "items" => survey.depends_on_dialect |= value.kind() == Kind::Array,
                "additionalItems" | "prefixItems" | "minContains" | "maxContains" => survey.depends_on_dialect = true,
                "dependencies" | "dependentRequired" | "dependentSchemas" => {
                    survey.depends_on_dialect = true;
                    survey.overlaps = true;
                    let parts = value.members().flat_map(|(name, value)| std::iter::once(name).chain(value.elements()));
                    survey.names.extend(parts.filter_map(Value::text));
                }
                other => has_more |= matches!(role(other), Role::Constraint | Role::Domain),
            }
        }
        survey.depends_on_dialect |= refers && has_more;
    }
    // What is here is read as the newest dialect has it.
    let is_older = root.get("$schema").and_then(Value::text).is_some_and(|dialect| !dialect.contains("2020-12"));
    survey.is_unsure |= is_older && survey.depends_on_dialect;
    survey
}
