//! What is wrong with a tool's JSON Schemas, as far as it can be told without a validator: types of
//! keywords, references that resolve to nothing, depth. Remote references are never fetched, and
//! recursion is legal.

use std::collections::{BTreeSet, HashMap};

use crate::protocol::Era;
use crate::protocol::json::{Children, Kind, Value, percent_decoded};
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

/// References of one schema that are looked at; nobody has more, and each may cost a walk.
const MAX_REFERENCES: usize = 1000;

/// Checks the tools of one page, one after the other.
pub(super) struct ToolChecker<'w, 'd> {
    redactor: &'w Redactor,
    flaws: Vec<ToolFlaw>,
    /// Those into the same document.
    references: BTreeSet<String>,
    /// What is being walked through, outermost first.
    open: Vec<Frame<'d>>,
}

impl<'w, 'd> ToolChecker<'w, 'd> {
    pub(super) fn new(redactor: &'w Redactor) -> ToolChecker<'w, 'd> {
        ToolChecker { redactor, flaws: Vec::new(), references: BTreeSet::new(), open: Vec::new() }
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
            self.references.clear();
            Walk { root, member, too_deep: false, checker: self }.run();
        }
        std::mem::take(&mut self.flaws)
    }
}

/// A walk through one schema, in the order it was written. What it holds grows with the depth of the schema alone, and that is bounded.
struct Walk<'c, 'w, 'd> {
    root: Value<'d>,
    member: &'static str,
    too_deep: bool,
    checker: &'c mut ToolChecker<'w, 'd>,
}

/// A container in a schema, and what in it is still to be looked at.
struct Frame<'d> {
    rest: Children<'d>,
    role: Role,
    /// The elements of it that were looked at.
    count: usize,
    /// How it is reached from the one that it is in; none is the root.
    step: Option<Step<'d>>,
}

/// A step of a JSON pointer.
#[derive(Clone, Copy)]
enum Step<'d> {
    Key(Value<'d>),
    Element(usize),
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
        self.enter(self.root, Role::Schema, None);
        while let Some(frame) = self.checker.open.last_mut() {
            let Some(first) = frame.rest.next() else {
                self.checker.open.pop();
                continue;
            };
            match frame.role {
                Role::Several => {
                    frame.count += 1;
                    let step = Step::Element(frame.count - 1);
                    self.enter(first, Role::Schema, Some(step));
                }
                Role::Named => {
                    if let Some(value) = frame.rest.next() {
                        self.enter(value, Role::Schema, Some(Step::Key(first)));
                    }
                }
                Role::Schema => {
                    if let Some(value) = frame.rest.next() {
                        self.keyword(first, value);
                    }
                }
            }
        }
        if self.too_deep {
            self.checker.flaws.push(ToolFlaw::TooDeep);
        }
        self.dead_references();
    }

    /// Goes on with `value`, one step from the innermost container, and with what is in it.
    fn enter(&mut self, value: Value<'d>, role: Role, step: Option<Step<'d>>) {
        if self.checker.open.len() >= MAX_DEPTH {
            self.too_deep = true;
        } else if role == Role::Schema && value.kind() != Kind::Object {
            if value.kind() != Kind::Bool {
                self.invalid(step, "a schema: an object, true or false");
            }
        } else {
            self.checker.open.push(Frame { rest: value.inner(), role, count: 0, step });
        }
    }

    /// Looks at a member of the innermost schema.
    fn keyword(&mut self, key: Value<'d>, value: Value<'d>) {
        let Some(keyword) = keyword(&key.text_bytes().unwrap_or_default()) else { return };
        let step = Some(Step::Key(key));
        if let Some(wanted) = wrong_type(keyword, value) {
            return self.invalid(step, wanted);
        }
        if keyword == Keyword::Reference {
            // Remote ones are never fetched.
            let local = value.text().filter(|text| text.starts_with('#'));
            let references = &mut self.checker.references;
            references.extend(local.filter(|_| references.len() < MAX_REFERENCES).map(Into::into));
        }
        if let Some(role) = role_of(keyword, value) {
            self.enter(value, role, step);
        }
    }

    /// The JSON pointer of what is one `step` from the innermost container, bounded and escaped. Made only for what is told.
    fn pointer(&self, step: Option<Step<'d>>) -> String {
        let mut pointer = format!("/{}", self.member);
        for step in self.checker.open.iter().filter_map(|frame| frame.step).chain(step) {
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

    fn invalid(&mut self, step: Option<Step<'d>>, wanted: &'static str) {
        let told = self.checker.flaws.iter().filter(|f| matches!(f, ToolFlaw::Invalid { .. })).count();
        if told < MAX_FLAWS {
            let flaw = ToolFlaw::Invalid { pointer: self.pointer(step), wanted };
            self.checker.flaws.push(flaw);
        }
    }

    /// Only references into the same document are looked at, and only where no `$id` moves their base.
    fn dead_references(&mut self) {
        let references = std::mem::take(&mut self.checker.references);
        let (mut dead, mut anchors) = (Vec::new(), HashMap::new());
        for reference in &references {
            let fragment = percent_decoded(&reference[1..]);
            if !fragment.is_empty() && !fragment.starts_with('/') {
                anchors.insert(fragment, reference);
            } else if self.root.at(&fragment).is_none() {
                dead.push(reference);
            }
        }
        drop_anchors(self.root, &mut anchors);
        dead.extend(anchors.into_values());
        if dead.is_empty() || has_inner_id(self.root) {
            return;
        }
        dead.sort_unstable();
        for reference in dead {
            let told = self.checker.flaws.iter().filter(|f| matches!(f, ToolFlaw::DeadRef { .. })).count();
            if told < MAX_FLAWS {
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

/// Every member in `root`, however deep.
fn all_members<'d>(root: Value<'d>) -> impl Iterator<Item = (Value<'d>, Value<'d>)> {
    root.within().filter(|value| value.kind() == Kind::Object).flat_map(Value::members)
}

/// Takes out of `wanted` what `root` has an anchor for.
fn drop_anchors<R>(root: Value<'_>, wanted: &mut HashMap<String, R>) {
    if wanted.is_empty() {
        return;
    }
    let anchors = all_members(root).filter(|(key, _)| ["$anchor", "$dynamicAnchor", "$id", "id"].iter().any(|name| key.means(name)));
    for name in anchors.filter_map(|(_, value)| value.text()) {
        wanted.remove(name.trim_start_matches('#'));
    }
}

/// Whether a schema inside of `root` has an `$id` of its own, which moves the base of references.
fn has_inner_id(root: Value<'_>) -> bool {
    root.members().flat_map(|(_, v)| all_members(v)).any(|(key, value)| value.kind() == Kind::String && key.means("$id"))
}
