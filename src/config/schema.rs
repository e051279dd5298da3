//! The JSON Schema of a configuration, for editors; from the table of keys.

use serde_json::{Map, Value, json};

use super::keys::FILE;
use super::kind::{Keys, Kind, Names};
use super::quantity::{self, Amount};
use super::text::Texts;
use crate::judge::CHECKS;

/// A text with a variable in it may become anything.
const VARIABLE: &str = r"\$\{";

/// The schema (JSON Schema 2020-12). It refuses nothing that is read; what it cannot say (that one value is
/// shorter than another, that a file exists) it lets pass.
#[must_use]
pub fn schema() -> Value {
    let mut schema = keys(&FILE);
    let head = [("$schema", "https://json-schema.org/draft/2020-12/schema"), ("title", "A configuration of stdiowatch")];
    if let Value::Object(members) = &mut schema {
        for (key, value) in head {
            members.insert(key.to_owned(), value.into());
        }
    }
    schema
}

fn keys(keys: &'static Keys) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in keys.iter() {
        let mut schema = kind(&key.kind);
        if let Value::Object(members) = &mut schema {
            members.insert("description".to_owned(), key.about.into());
            if !key.default.is_empty() {
                members.insert("default".to_owned(), default(key.default));
            }
        }
        properties.insert(key.name.to_owned(), schema);
        if key.required {
            required.push(Value::from(key.name));
        }
    }
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// A default as JSON; all of them are scalars or empty.
fn default(written: &str) -> Value {
    match written {
        "[]" => json!([]),
        "{}" => json!({}),
        "true" | "false" => (written == "true").into(),
        _ => written.parse::<u64>().map_or_else(|_| written.into(), Value::from),
    }
}

fn kind(kind_of: &'static Kind) -> Value {
    match kind_of {
        Kind::Text(Texts::Any | Texts::Header) => json!({"type": "string"}),
        Kind::Text(Texts::Command | Texts::Path | Texts::Tool) => json!({"type": "string", "minLength": 1}),
        Kind::Text(Texts::Route) => json!({"type": "string", "pattern": "^/"}),
        Kind::Text(Texts::Bcrypt) => json!({"type": "string", "pattern": "^\\$2[abxy]\\$"}),
        Kind::Text(Texts::Address) => varying(json!({"type": "string", "pattern": ":[0-9]{1,5}$"})),
        Kind::Text(Texts::User) => varying(json!({"type": "string", "pattern": "^[^:,\\s]+(:[^:,\\s]+)?$"})),
        Kind::Scalar => json!({"type": ["string", "number"]}),
        Kind::Word(words) => varying(json!({"enum": words})),
        Kind::Amount(amount) => self::amount(*amount),
        Kind::Bool => varying(json!({"type": "boolean"})),
        Kind::List(element) => json!({"type": "array", "items": kind(element)}),
        Kind::Keys(of) => keys(of),
        Kind::Named(names, value) => named(*names, value),
        Kind::Json => json!({}),
        Kind::Object => json!({"type": "object"}),
        Kind::Either(kinds) => json!({"anyOf": kinds.iter().map(kind).collect::<Vec<_>>()}),
    }
}

fn amount(amount: Amount) -> Value {
    match amount {
        Amount::Duration(least) if least.is_zero() => varying(json!({"type": "string", "pattern": quantity::DURATION})),
        Amount::Duration(_) => varying(json!({"type": "string", "pattern": quantity::DURATION, "not": {"pattern": "^[0.]+[a-z]+$"}})),
        Amount::Size(least, most) => {
            json!({"anyOf": [{"type": "integer", "minimum": least, "maximum": most}, {"type": "string", "pattern": quantity::SIZE}, variable()]})
        }
        Amount::Count(least, most) => varying(json!({"type": "integer", "minimum": least, "maximum": most})),
    }
}

fn named(names: Names, value: &'static Kind) -> Value {
    let mut schema = json!({"type": "object", "additionalProperties": kind(value)});
    match names {
        Names::Servers => {
            schema["minProperties"] = 1.into();
            schema["propertyNames"] = json!({"minLength": 1, "maxLength": 100, "pattern": "^[^/]*$"});
        }
        Names::Variables => schema["propertyNames"] = json!({"minLength": 1, "pattern": "^[^=]*$"}),
        Names::Codes => schema["propertyNames"] = json!({"enum": CHECKS.iter().map(|check| check.code).collect::<Vec<_>>()}),
        Names::Users => schema["propertyNames"] = json!({"minLength": 1, "pattern": "^[^:]*$"}),
        Names::Pointers => schema["propertyNames"] = json!({"pattern": "^(/|$)"}),
    }
    schema
}

/// A schema, or a text with a variable in it.
fn varying(schema: Value) -> Value {
    json!({"anyOf": [schema, variable()]})
}

fn variable() -> Value {
    json!({"type": "string", "pattern": VARIABLE})
}
