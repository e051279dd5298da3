//! What is wrong with a tool's JSON Schemas, as far as it can be told without a validator: types of
//! keywords, references that resolve to nothing, depth. Remote references are never fetched, and
//! recursion is legal.

use std::collections::HashSet;

use crate::protocol::Era;
use crate::protocol::json::{Kind, Value, percent_decoded};
use crate::words::{Redactor, printable};

/// The deepest schema that is no finding. Several clients' libraries stop at 128.
pub const MAX_DEPTH: usize = 100;

/// Something wrong with a tool's `inputSchema` or `outputSchema`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolFlaw {
    /// A keyword of the wrong type, or a root that is not `type: object`.
    Invalid {
        /// Where: JSON pointer within the tool, bounded and escaped.
        pointer: String,
        /// What should be there.
        wanted: &'static str,
    },
    /// A local `$ref` to something that is not there.
    DeadRef {
        /// The reference.
        reference: String,
    },
    /// Deeper than [`MAX_DEPTH`].
    TooDeep,
}

/// Flaws of one kind in one tool that are told; more of them say nothing new.
const MAX_FLAWS: usize = 2;

/// Checks the tools of one page, one after the other.
pub(super) struct ToolChecker<'w, 'd> {
    redactor: &'w Redactor,
    flaws: Vec<ToolFlaw>,
    references: HashSet<String>,
    todo: Vec<Todo<'d>>,
    /// How each of them, and of those that are done, is reached: the place that it is in, and the step
    /// from there. The root is not among them.
    places: Vec<(Place, Step<'d>)>,
}

impl<'w, 'd> ToolChecker<'w, 'd> {
    pub(super) fn new(redactor: &'w Redactor) -> ToolChecker<'w, 'd> {
        ToolChecker { redactor, flaws: Vec::new(), references: HashSet::new(), todo: Vec::new(), places: Vec::new() }
    }

    /// What is wrong with the schemas of `tool`.
    pub(super) fn check(&mut self, tool: Value<'d>, era: Era) -> Vec<ToolFlaw> {
        let [input, output] = tool.get_each(["inputSchema", "outputSchema"]);
        // The root of an outputSchema may be anything from 2026-07-28 on.
        for (schema, member, object_root) in [(input, "inputSchema", true), (output, "outputSchema", era == Era::Legacy)] {
            let Some(root) = schema.filter(|s| s.kind() == Kind::Object) else { continue };
            let is_object = root.get("type").is_some_and(|t| t.means("object"));
            if object_root && !is_object {
                self.flaws.push(ToolFlaw::Invalid { pointer: format!("/{member}/type"), wanted: "\"object\"" });
            }
            self.places.clear();
            self.references.clear();
            Walk { root, member, checker: self }.run();
        }
        std::mem::take(&mut self.flaws)
    }
}

/// A walk through one schema.
struct Walk<'c, 'w, 'd> {
    root: Value<'d>,
    member: &'static str,
    checker: &'c mut ToolChecker<'w, 'd>,
}

/// An index into `ToolChecker::places`; `None` is the root.
type Place = Option<usize>;

/// A step of a JSON pointer.
#[derive(Clone, Copy)]
enum Step<'d> {
    Key(Value<'d>),
    Element(usize),
}

struct Todo<'d> {
    value: Value<'d>,
    role: Role,
    place: Place,
    depth: usize,
}

/// What a value's place in a schema makes of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Schema,
    /// An object whose values are schemas.
    Named,
    /// An array whose elements are schemas.
    Several,
}

impl<'d> Walk<'_, '_, 'd> {
    fn run(mut self) {
        self.checker.todo.push(Todo { value: self.root, role: Role::Schema, place: None, depth: 1 });
        let mut too_deep = false;
        while let Some(Todo { value, role, place, depth }) = self.checker.todo.pop() {
            if depth > MAX_DEPTH {
                too_deep = true;
                continue;
            }
            match role {
                Role::Schema => self.schema(value, place, depth),
                Role::Named => value.members().for_each(|(key, value)| self.later(value, Role::Schema, place, Step::Key(key), depth)),
                Role::Several => value.elements().enumerate().for_each(|(n, value)| self.later(value, Role::Schema, place, Step::Element(n), depth)),
            }
        }
        if too_deep {
            self.checker.flaws.push(ToolFlaw::TooDeep);
        }
        self.dead_references();
    }

    fn schema(&mut self, schema: Value<'d>, place: Place, depth: usize) {
        if schema.kind() == Kind::Bool {
            return;
        }
        if schema.kind() != Kind::Object {
            self.invalid(place, None, "a schema: an object, true or false");
            return;
        }
        for (key, value) in schema.members() {
            let Some(keyword) = keyword(&key.text_bytes().unwrap_or_default()) else { continue };
            if let Some(wanted) = wrong_type(keyword, value) {
                self.invalid(place, Some(Step::Key(key)), wanted);
                continue;
            }
            if keyword == Keyword::Reference {
                self.checker.references.extend(value.text().map(Into::into));
            }
            if let Some(role) = role_of(keyword, value) {
                self.later(value, role, place, Step::Key(key), depth);
            }
        }
    }

    /// Looks at `value`, one step from `place`, later.
    fn later(&mut self, value: Value<'d>, role: Role, place: Place, step: Step<'d>, depth: usize) {
        let depth = depth + 1;
        // There is nothing to see in true and false, but how deep they are.
        if value.kind() == Kind::Bool && depth <= MAX_DEPTH && role == Role::Schema {
            return;
        }
        self.checker.places.push((place, step));
        self.checker.todo.push(Todo { value, role, place: Some(self.checker.places.len() - 1), depth });
    }

    /// The JSON pointer of what is one `step` from `place`, bounded and escaped. Made only for what is told.
    fn pointer(&self, place: Place, step: Option<Step<'d>>) -> String {
        let mut steps: Vec<Step<'d>> = step.into_iter().collect();
        let mut at = place;
        while let Some((outer, step)) = at.map(|n| self.checker.places[n]) {
            steps.push(step);
            at = outer;
        }
        let mut pointer = format!("/{}", self.member);
        for step in steps.into_iter().rev() {
            if pointer.len() > 300 {
                break;
            }
            let token = match step {
                Step::Key(key) => self.checker.redactor.redact_str(&key.text().unwrap_or_default()).replace('~', "~0").replace('/', "~1"),
                Step::Element(n) => n.to_string(),
            };
            pointer.push('/');
            pointer.push_str(&printable(&token, 60));
        }
        pointer
    }

    fn invalid(&mut self, place: Place, step: Option<Step<'d>>, wanted: &'static str) {
        let told = self.checker.flaws.iter().filter(|f| matches!(f, ToolFlaw::Invalid { .. })).count();
        if told < MAX_FLAWS {
            self.checker.flaws.push(ToolFlaw::Invalid { pointer: self.pointer(place, step), wanted });
        }
    }

    /// Only references into the same document are looked at, and only where no `$id` moves their base.
    fn dead_references(&mut self) {
        let mut references: Vec<&String> = self.checker.references.iter().filter(|r| r.starts_with('#')).collect();
        references.sort_unstable();
        let mut anchors = None;
        for reference in references {
            let fragment = percent_decoded(&reference[1..]);
            let alive = if fragment.is_empty() || fragment.starts_with('/') {
                self.root.at(&fragment).is_some()
            } else {
                anchors.get_or_insert_with(|| anchors_in(self.root)).contains(&fragment)
            };
            let told = self.checker.flaws.iter().filter(|f| matches!(f, ToolFlaw::DeadRef { .. })).count();
            if !alive && told < MAX_FLAWS && !has_inner_id(self.root) {
                self.checker.flaws.push(ToolFlaw::DeadRef { reference: self.checker.redactor.printable(reference, 120) });
            }
        }
    }
}

/// What a keyword holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyword {
    Type,
    /// An object of schemas.
    Schemas,
    /// An array of at least one schema.
    SchemaList,
    Schema,
    /// A schema, or an array of them.
    Items,
    Strings,
    Array,
    Text,
    Reference,
    Number,
    Count,
}

/// What the keyword `key` holds; `None` if it is none, or may hold anything. By its length first, so that
/// most keys are compared with a few words, and not with forty.
fn keyword(key: &[u8]) -> Option<Keyword> {
    Some(match key.len() {
        2 if key == b"if" => Keyword::Schema,
        3 => match key {
            b"$id" => Keyword::Text,
            b"not" => Keyword::Schema,
            _ => return None,
        },
        4 => match key {
            b"type" => Keyword::Type,
            b"enum" => Keyword::Array,
            b"$ref" => Keyword::Reference,
            b"then" | b"else" => Keyword::Schema,
            _ => return None,
        },
        5 => match key {
            b"items" => Keyword::Items,
            b"title" => Keyword::Text,
            b"$defs" => Keyword::Schemas,
            b"anyOf" | b"oneOf" | b"allOf" => Keyword::SchemaList,
            _ => return None,
        },
        6 if key == b"format" => Keyword::Text,
        7 => match key {
            b"minimum" | b"maximum" => Keyword::Number,
            b"pattern" | b"$schema" | b"$anchor" => Keyword::Text,
            _ => return None,
        },
        8 => match key {
            b"required" => Keyword::Strings,
            b"minItems" | b"maxItems" => Keyword::Count,
            b"examples" => Keyword::Array,
            b"contains" => Keyword::Schema,
            _ => return None,
        },
        9 if key == b"minLength" || key == b"maxLength" => Keyword::Count,
        10 => match key {
            b"properties" => Keyword::Schemas,
            b"multipleOf" => Keyword::Number,
            _ => return None,
        },
        11 => match key {
            b"description" => Keyword::Text,
            b"definitions" => Keyword::Schemas,
            b"prefixItems" => Keyword::SchemaList,
            _ => return None,
        },
        13.. => return long_keyword(key),
        _ => return None,
    })
}

fn long_keyword(key: &[u8]) -> Option<Keyword> {
    Some(match key {
        b"minProperties" | b"maxProperties" => Keyword::Count,
        b"dependentSchemas" | b"patternProperties" => Keyword::Schemas,
        b"propertyNames" | b"additionalItems" | b"unevaluatedItems" | b"additionalProperties" | b"unevaluatedProperties" => Keyword::Schema,
        _ => return None,
    })
}

/// What should be there, if `value` is not what `keyword` holds.
fn wrong_type(keyword: Keyword, value: Value<'_>) -> Option<&'static str> {
    let kind = value.kind();
    let (right, wanted) = match keyword {
        Keyword::Type => (is_type(value), "a JSON Schema type, or an array of them"),
        Keyword::Schemas => (kind == Kind::Object, "an object"),
        Keyword::Strings => (kind == Kind::Array && value.elements().all(|e| e.kind() == Kind::String), "an array of strings"),
        Keyword::Array => (kind == Kind::Array, "an array"),
        Keyword::SchemaList => (kind == Kind::Array && value.elements().next().is_some(), "an array of at least one schema"),
        Keyword::Text | Keyword::Reference => (kind == Kind::String, "a string"),
        Keyword::Number => (kind == Kind::Number, "a number"),
        Keyword::Count => (kind == Kind::Number && !value.raw().starts_with(b"-"), "an integer of 0 or more"),
        // Looked at as what they are.
        Keyword::Schema | Keyword::Items => return None,
    };
    (!right).then_some(wanted)
}

fn is_type(value: Value<'_>) -> bool {
    let is_name = |v: Value<'_>| {
        v.text_bytes().is_some_and(|text| matches!(text.as_ref(), b"string" | b"object" | b"number" | b"integer" | b"boolean" | b"array" | b"null"))
    };
    is_name(value) || (value.kind() == Kind::Array && value.elements().all(is_name))
}

/// Where `keyword` holds schemas.
fn role_of(keyword: Keyword, value: Value<'_>) -> Option<Role> {
    match keyword {
        Keyword::Schemas => Some(Role::Named),
        Keyword::SchemaList => Some(Role::Several),
        Keyword::Items if value.kind() == Kind::Array => Some(Role::Several),
        Keyword::Items | Keyword::Schema => Some(Role::Schema),
        Keyword::Type | Keyword::Strings | Keyword::Array | Keyword::Text | Keyword::Reference | Keyword::Number | Keyword::Count => None,
    }
}

/// Every value in `root`, however deep, with the key it is a member by.
fn all_members<'d>(root: Value<'d>) -> impl Iterator<Item = (Value<'d>, Value<'d>)> {
    let mut todo = vec![root];
    let mut found: Vec<(Value<'d>, Value<'d>)> = Vec::new();
    std::iter::from_fn(move || {
        while found.is_empty() {
            let value = todo.pop()?;
            todo.extend(value.elements());
            found.extend(value.members());
            todo.extend(found.iter().map(|(_, v)| *v));
        }
        found.pop()
    })
}

fn anchors_in(root: Value<'_>) -> HashSet<String> {
    all_members(root)
        .filter(|(key, _)| key.text().is_some_and(|k| matches!(k.as_ref(), "$anchor" | "$dynamicAnchor" | "$id" | "id")))
        .filter_map(|(_, value)| value.text())
        .map(|name| name.trim_start_matches('#').to_owned())
        .collect()
}

/// Whether a schema inside of `root` has an `$id` of its own, which moves the base of references.
fn has_inner_id(root: Value<'_>) -> bool {
    root.members().flat_map(|(_, v)| all_members(v)).any(|(key, value)| value.kind() == Kind::String && key.text().is_some_and(|k| k == "$id"))
}
