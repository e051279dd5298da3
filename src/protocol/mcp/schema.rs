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

pub(super) fn check_tool(tool: Value<'_>, era: Era, redactor: &Redactor) -> Vec<ToolFlaw> {
    let mut flaws = Vec::new();
    // The root of an outputSchema may be anything from 2026-07-28 on.
    for (member, object_root) in [("inputSchema", true), ("outputSchema", era == Era::Legacy)] {
        let Some(schema) = tool.get(member).filter(|s| s.kind() == Kind::Object) else { continue };
        let is_object = schema.get("type").and_then(Value::text).is_some_and(|t| t == "object");
        if object_root && !is_object {
            flaws.push(ToolFlaw::Invalid { pointer: format!("/{member}/type"), wanted: "\"object\"" });
        }
        let walk = Walk { root: schema, member, flaws: &mut flaws, references: HashSet::new(), redactor, todo: Vec::new(), places: Vec::new() };
        walk.run();
    }
    flaws
}

struct Walk<'w, 'd> {
    root: Value<'d>,
    member: &'static str,
    flaws: &'w mut Vec<ToolFlaw>,
    references: HashSet<String>,
    redactor: &'w Redactor,
    todo: Vec<Todo<'d>>,
    /// How each of them, and of those that are done, is reached: the place that it is in, and the step
    /// from there. The root is not among them.
    places: Vec<(Place, Step<'d>)>,
}

/// An index into `Walk::places`; `None` is the root.
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

impl<'d> Walk<'_, 'd> {
    fn run(mut self) {
        self.todo.push(Todo { value: self.root, role: Role::Schema, place: None, depth: 1 });
        let mut too_deep = false;
        while let Some(Todo { value, role, place, depth }) = self.todo.pop() {
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
            self.flaws.push(ToolFlaw::TooDeep);
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
            let name = key.text().unwrap_or_default();
            if let Some(wanted) = wrong_type(&name, value) {
                self.invalid(place, Some(Step::Key(key)), wanted);
                continue;
            }
            if name == "$ref" {
                self.references.extend(value.text().map(Into::into));
            }
            if let Some(role) = role_of(&name, value) {
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
        self.places.push((place, step));
        self.todo.push(Todo { value, role, place: Some(self.places.len() - 1), depth });
    }

    /// The JSON pointer of what is one `step` from `place`, bounded and escaped. Made only for what is told.
    fn pointer(&self, place: Place, step: Option<Step<'d>>) -> String {
        let mut steps: Vec<Step<'d>> = step.into_iter().collect();
        let mut at = place;
        while let Some((outer, step)) = at.map(|n| self.places[n]) {
            steps.push(step);
            at = outer;
        }
        let mut pointer = format!("/{}", self.member);
        for step in steps.into_iter().rev() {
            if pointer.len() > 300 {
                break;
            }
            let token = match step {
                Step::Key(key) => self.redactor.redact_str(&key.text().unwrap_or_default()).replace('~', "~0").replace('/', "~1"),
                Step::Element(n) => n.to_string(),
            };
            pointer.push('/');
            pointer.push_str(&printable(&token, 60));
        }
        pointer
    }

    fn invalid(&mut self, place: Place, step: Option<Step<'d>>, wanted: &'static str) {
        let told = self.flaws.iter().filter(|f| matches!(f, ToolFlaw::Invalid { .. })).count();
        if told < MAX_FLAWS {
            self.flaws.push(ToolFlaw::Invalid { pointer: self.pointer(place, step), wanted });
        }
    }

    /// Only references into the same document are looked at, and only where no `$id` moves their base.
    fn dead_references(&mut self) {
        let mut references: Vec<&String> = self.references.iter().filter(|r| r.starts_with('#')).collect();
        references.sort_unstable();
        let mut anchors = None;
        for reference in references {
            let fragment = percent_decoded(&reference[1..]);
            let alive = if fragment.is_empty() || fragment.starts_with('/') {
                self.root.at(&fragment).is_some()
            } else {
                anchors.get_or_insert_with(|| anchors_in(self.root)).contains(&fragment)
            };
            let told = self.flaws.iter().filter(|f| matches!(f, ToolFlaw::DeadRef { .. })).count();
            if !alive && told < MAX_FLAWS && !has_inner_id(self.root) {
                self.flaws.push(ToolFlaw::DeadRef { reference: self.redactor.printable(reference, 120) });
            }
        }
    }
}

/// What the keyword `key` wants, if `value` is not it.
fn wrong_type(key: &str, value: Value<'_>) -> Option<&'static str> {
    let kind = value.kind();
    let strings = |v: Value<'_>| v.kind() == Kind::Array && v.elements().all(|e| e.kind() == Kind::String);
    let (right, wanted) = match key {
        "type" => (is_type(value), "a JSON Schema type, or an array of them"),
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => (kind == Kind::Object, "an object"),
        "required" => (strings(value), "an array of strings"),
        "enum" | "examples" => (kind == Kind::Array, "an array"),
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => (kind == Kind::Array && value.elements().next().is_some(), "an array of at least one schema"),
        "description" | "title" | "$ref" | "$schema" | "$id" | "$anchor" | "pattern" | "format" => (kind == Kind::String, "a string"),
        "minimum" | "maximum" | "multipleOf" => (kind == Kind::Number, "a number"),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            (kind == Kind::Number && !value.raw().starts_with(b"-"), "an integer of 0 or more")
        }
        _ => return None,
    };
    (!right).then_some(wanted)
}

fn is_type(value: Value<'_>) -> bool {
    const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];
    let is_name = |v: Value<'_>| v.text().is_some_and(|t| TYPES.contains(&t.as_ref()));
    is_name(value) || (value.kind() == Kind::Array && value.elements().all(is_name))
}

/// Where the keyword `key` holds schemas.
fn role_of(key: &str, value: Value<'_>) -> Option<Role> {
    match key {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => Some(Role::Named),
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => Some(Role::Several),
        "items" if value.kind() == Kind::Array => Some(Role::Several),
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
        | "else" => Some(Role::Schema),
        _ => None,
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
