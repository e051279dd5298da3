//! Which values a schema takes by their type or because they are listed; and which keywords say
//! anything about values of which type.

use std::collections::BTreeMap;

use crate::protocol::json::{Kind, Value};

use super::found::Place;

/// A set of types. `true` and `false` are types here, and so are numbers with a fraction, so that
/// `boolean` is `enum: [true, false]` and `integer` lies in `number`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Types(u16);

impl Types {
    pub(super) const NONE: Types = Types(0);
    pub(super) const NULL: Types = Types(1);
    pub(super) const TRUE: Types = Types(2);
    pub(super) const FALSE: Types = Types(4);
    pub(super) const BOOLEAN: Types = Types(6);
    pub(super) const OBJECT: Types = Types(8);
    pub(super) const ARRAY: Types = Types(16);
    pub(super) const INTEGER: Types = Types(32);
    pub(super) const FRACTION: Types = Types(64);
    pub(super) const NUMBER: Types = Types(96);
    pub(super) const STRING: Types = Types(128);
    /// All types.
    pub(super) const ALL: Types = Types(255);
    /// All types, and whatever keywords say about values of any type.
    pub(super) const ANY: Types = Types(511);

    /// The types that are told apart where two sets are compared.
    pub(super) const CLASSES: [Types; 7] = [Types::NULL, Types::BOOLEAN, Types::OBJECT, Types::ARRAY, Types::INTEGER, Types::FRACTION, Types::STRING];

    pub(super) const fn and(self, other: Types) -> Types {
        Types(self.0 & other.0)
    }

    pub(super) const fn or(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Types) -> Types {
        Types(self.0 & !other.0)
    }

    pub(super) const fn has(self, other: Types) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn meets(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The type of a value.
    pub(super) fn of(value: Value<'_>) -> Types {
        match value.kind() {
            Kind::Null => Types::NULL,
            Kind::Bool if value.boolean() == Some(true) => Types::TRUE,
            Kind::Bool => Types::FALSE,
            Kind::Number if value.is_integral() => Types::INTEGER,
            Kind::Number | Kind::NonFinite => Types::FRACTION,
            Kind::String => Types::STRING,
            Kind::Array => Types::ARRAY,
            Kind::Object => Types::OBJECT,
        }
    }

    /// The types that the value of a `type` keyword names; `None` if it is malformed.
    pub(super) fn named(keyword: Value<'_>) -> Option<Types> {
        if keyword.kind() == Kind::Array {
            return keyword.elements().try_fold(Types::NONE, |all, name| Some(all.or(Types::by_name(&name.text()?)?)));
        }
        Types::by_name(&keyword.text()?)
    }

    fn by_name(name: &str) -> Option<Types> {
        Some(match name {
            "null" => Types::NULL,
            "boolean" => Types::BOOLEAN,
            "object" => Types::OBJECT,
            "array" => Types::ARRAY,
            "integer" => Types::INTEGER,
            "number" => Types::NUMBER,
            "string" => Types::STRING,
            _ => return None,
        })
    }
}

/// The types about whose values a keyword says anything.
pub(super) fn spoken_of(keyword: &str) -> Types {
    match keyword {
        "minLength" | "maxLength" | "pattern" | "contentEncoding" | "contentMediaType" | "contentSchema" => Types::STRING,
        // `int32` is a format too.
        "format" => Types::STRING.or(Types::NUMBER),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => Types::NUMBER,
        "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" | "minContains"
        | "maxContains" => Types::ARRAY,
        "properties"
        | "patternProperties"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "required"
        | "minProperties"
        | "maxProperties"
        | "propertyNames"
        | "dependentRequired"
        | "dependentSchemas"
        | "dependencies" => Types::OBJECT,
        _ => Types::ANY,
    }
}

/// A value that a schema lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed<'d> {
    pub(super) value: Value<'d>,
    pub(super) place: Place,
    types: Types,
}

/// The values that a schema takes, as far as `type`, `nullable`, `enum` and `const` say it.
#[derive(Clone, Debug, Default)]
pub(super) struct Domain<'d> {
    /// The types all of whose values are taken.
    pub(super) open: Types,
    /// Single values of other types, by their number.
    pub(super) listed: BTreeMap<u32, Listed<'d>>,
}

impl<'d> Domain<'d> {
    /// Every value.
    pub(super) fn everything() -> Domain<'d> {
        Domain { open: Types::ALL, listed: BTreeMap::new() }
    }

    /// Takes another value.
    pub(super) fn list(&mut self, number: u32, value: Value<'d>, place: Place) {
        let types = Types::of(value);
        if types.meets(Types::NULL.or(Types::BOOLEAN)) {
            self.open = self.open.or(types);
        } else if !self.open.has(types) {
            self.listed.entry(number).or_insert(Listed { value, place, types });
        }
    }

    /// The types of which it takes some value.
    pub(super) fn types(&self) -> Types {
        self.listed.values().fold(self.open, |all, listed| all.or(listed.types))
    }

    fn takes(&self, number: u32, types: Types) -> bool {
        self.open.has(types) || self.listed.contains_key(&number)
    }

    /// What both take.
    pub(super) fn intersect(&mut self, other: &Domain<'d>) {
        let of_other = other.listed.iter().filter(|(_, l)| self.open.has(l.types)).map(|(n, l)| (*n, *l));
        let added: Vec<_> = of_other.collect();
        self.listed.retain(|number, listed| other.takes(*number, listed.types));
        self.listed.extend(added);
        self.open = self.open.and(other.open);
    }

    /// What either takes.
    pub(super) fn unite(&mut self, other: Domain<'d>) {
        let open = self.open.or(other.open);
        // Many single values are united one by one.
        if open != self.open {
            self.open = open;
            self.listed.retain(|_, listed| !open.has(listed.types));
        }
        self.listed.extend(other.listed.into_iter().filter(|(_, listed)| !open.has(listed.types)));
    }

    /// Takes away what is of none of these types, and returns it.
    pub(super) fn split(&mut self, types: Types) -> Domain<'d> {
        let (listed, rest) = std::mem::take(&mut self.listed).into_iter().partition(|(_, l)| types.has(l.types));
        self.listed = listed;
        let away = Domain { open: self.open.without(types), listed: rest };
        self.open = self.open.and(types);
        away
    }

    /// Whether some value is taken by both. Quick if the other is small.
    pub(super) fn meets(&self, other: &Domain<'d>) -> bool {
        self.open.meets(other.open)
            || other.listed.iter().any(|(n, l)| self.takes(*n, l.types))
            || (!other.open.is_none() && self.listed.values().any(|l| other.open.has(l.types)))
    }

    /// How many values of a type it takes.
    pub(super) fn share(&self, class: Types) -> Share {
        if self.open.has(class) {
            Share::All
        } else if self.types().meets(class) {
            Share::Some
        } else {
            Share::None
        }
    }

    /// The listed values of a type that the other does not take.
    pub(super) fn beyond(&self, other: &Domain<'d>, class: Types) -> Vec<Listed<'d>> {
        let missing = self.listed.iter().filter(|(number, l)| class.has(l.types) && !other.takes(**number, l.types));
        missing.map(|(_, l)| *l).collect()
    }
}

/// How many values of a type are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    None,
    Some,
    All,
}
