//! What is called harmless is held against a validator: of many schemas and many values, whatever
//! the one schema accepts the other has to accept.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::ChangeClass::Breaking;
use super::schemas;

/// Whether `schema` accepts `value`: JSON Schema 2020-12 as far as [`pair`] writes it, and `nullable`.
fn accepts(root: &Value, schema: &Value, value: &Value) -> bool {
    let Value::Object(words) = schema else { return schema == &Value::Bool(true) };
    let all = |list: &Value, value: &Value| list.as_array().unwrap().iter().filter(|s| accepts(root, s, value)).count();
    words.iter().all(|(keyword, word)| match keyword.as_str() {
        "type" => {
            let nullable = words.get("nullable") == Some(&Value::Bool(true)) && value.is_null();
            nullable || word.as_array().cloned().unwrap_or_else(|| vec![word.clone()]).iter().any(|name| is_type(value, name.as_str().unwrap()))
        }
        "enum" => word.as_array().unwrap().iter().any(|listed| alike(listed, value)),
        "const" => alike(word, value),
        "minimum" => value.as_f64().is_none_or(|n| n >= word.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|n| n <= word.as_f64().unwrap()),
        "exclusiveMinimum" => value.as_f64().is_none_or(|n| n > word.as_f64().unwrap()),
        "multipleOf" => value.as_f64().is_none_or(|n| n % word.as_f64().unwrap() == 0.0),
        "minLength" => value.as_str().is_none_or(|s| s.len() as u64 >= word.as_u64().unwrap()),
        "maxLength" => value.as_str().is_none_or(|s| s.len() as u64 <= word.as_u64().unwrap()),
        "minItems" => value.as_array().is_none_or(|a| a.len() as u64 >= word.as_u64().unwrap()),
        "uniqueItems" => {
            let differ = |a: &Vec<Value>| a.iter().enumerate().all(|(n, x)| a[..n].iter().all(|y| !alike(x, y)));
            word == &Value::Bool(false) || value.as_array().is_none_or(differ)
        }
        "prefixItems" => value.as_array().is_none_or(|a| a.iter().zip(word.as_array().unwrap()).all(|(v, s)| accepts(root, s, v))),
        "items" => {
            let first = words.get("prefixItems").map_or(0, |p| p.as_array().unwrap().len());
            value.as_array().is_none_or(|a| a.iter().skip(first).all(|v| accepts(root, word, v)))
        }
        "contains" => value.as_array().is_none_or(|a| a.iter().any(|v| accepts(root, word, v))),
        "properties" => value.as_object().is_none_or(|o| o.iter().all(|(k, v)| word.get(k).is_none_or(|s| accepts(root, s, v)))),
        "additionalProperties" => {
            let named = |k: &str| words.get("properties").is_some_and(|p| p.get(k).is_some());
            value.as_object().is_none_or(|o| o.iter().all(|(k, v)| named(k) || accepts(root, word, v)))
        }
        "required" => value.as_object().is_none_or(|o| word.as_array().unwrap().iter().all(|k| o.contains_key(k.as_str().unwrap()))),
        "propertyNames" => value.as_object().is_none_or(|o| o.keys().all(|k| accepts(root, word, &json!(k)))),
        "dependentRequired" => value.as_object().is_none_or(|o| {
            let mut rules = word.as_object().unwrap().iter();
            rules.all(|(k, needs)| !o.contains_key(k) || needs.as_array().unwrap().iter().all(|n| o.contains_key(n.as_str().unwrap())))
        }),
        "anyOf" => all(word, value) > 0,
        "oneOf" => all(word, value) == 1,
        "allOf" => all(word, value) == word.as_array().unwrap().len(),
        "not" => !accepts(root, word, value),
        "if" => {
            let branch = if accepts(root, word, value) { "then" } else { "else" };
            words.get(branch).is_none_or(|s| accepts(root, s, value))
        }
        "$ref" => accepts(root, root.pointer(word.as_str().unwrap().strip_prefix('#').unwrap()).unwrap(), value),
        "then" | "else" | "nullable" | "$defs" | "description" => true,
        other => panic!("{other}"),
    })
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        other => panic!("{other}"),
    }
}

fn alike(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a == b)
}

/// Values small enough to be all of them.
fn values() -> Vec<Value> {
    let scalars = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(2),
        json!(4),
        json!(1.5),
        json!(""),
        json!("a"),
        json!("bb"),
        json!("ccc"),
    ];
    let mut values: Vec<Value> = scalars.to_vec();
    values.push(json!([]));
    values.push(json!({}));
    for a in &scalars {
        values.push(json!([a]));
        values.push(json!({ "a": a }));
        values.push(json!({ "b": a }));
        values.push(json!({"c": a}));
        values.push(json!({"a": {"a": a}}));
        values.push(json!({"a": [a], "b": 1}));
        for b in &scalars {
            values.push(json!([a, b]));
            values.push(json!({"a": a, "b": b}));
        }
    }
    values
}

type Two = (Value, Value);

/// Twice the same, or two of them.
fn maybe_two(one: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = Two> + Clone {
    prop_oneof![3 => one.clone().prop_map(|v| (v.clone(), v)), 1 => (one.clone(), one)]
}

fn word(keyword: &'static str, one: impl Strategy<Value = Value> + Clone + 'static) -> BoxedStrategy<(&'static str, Option<Value>, Option<Value>)> {
    let both = maybe_two(one);
    let some = prop_oneof![6 => Just((true, true)), 1 => Just((true, false)), 1 => Just((false, true))];
    (both, some).prop_map(move |((a, b), (old, new))| (keyword, old.then_some(a), new.then_some(b))).boxed()
}

fn words(inner: &BoxedStrategy<Two>) -> BoxedStrategy<(&'static str, Option<Value>, Option<Value>)> {
    let types = prop::sample::subsequence(vec!["null", "boolean", "object", "array", "number", "string", "integer"], 1..4);
    let types = types.prop_map(|names| if names.len() == 1 { json!(names[0]) } else { json!(names) });
    let listed = vec![json!(null), json!(true), json!(false), json!(1), json!(1.5), json!("a"), json!("bb"), json!({}), json!([])];
    let count = (0..3u32).prop_map(|n| json!(n));
    let names = prop::sample::subsequence(vec!["a", "b", "c"], 0..3).prop_map(|names| json!(names));
    let some = prop_oneof![6 => Just((true, true)), 1 => Just((true, false)), 1 => Just((false, true))];
    let schema = |keyword: &'static str| {
        (inner.clone(), some.clone()).prop_map(move |((a, b), (old, new))| (keyword, old.then_some(a), new.then_some(b))).boxed()
    };
    let list = |keyword: &'static str| {
        let members = prop::collection::vec((inner.clone(), some.clone()), 1..4);
        (members, any::<bool>()).prop_map(move |(members, turned)| {
            let side = |old: bool| {
                let kept = members.iter().filter(|(_, is)| if old { is.0 } else { is.1 });
                let mut list: Vec<Value> = kept.map(|(two, _)| if old { two.0.clone() } else { two.1.clone() }).collect();
                if turned && !old {
                    list.reverse();
                }
                (!list.is_empty()).then_some(Value::Array(list))
            };
            (keyword, side(true), side(false))
        })
    };
    let properties = prop::collection::vec((prop::sample::select(vec!["a", "b"]), inner.clone(), some.clone()), 1..3).prop_map(|members| {
        let (mut old, mut new) = (Map::new(), Map::new());
        for (name, two, is) in members {
            is.0.then(|| old.insert(name.to_owned(), two.0));
            is.1.then(|| new.insert(name.to_owned(), two.1));
        }
        ("properties", Some(Value::Object(old)), Some(Value::Object(new)))
    });
    prop_oneof![
        4 => word("type", types),
        1 => word("nullable", any::<bool>().prop_map(Value::Bool)),
        2 => word("enum", prop::sample::subsequence(listed.clone(), 1..4).prop_map(Value::Array)),
        1 => word("const", prop::sample::select(listed)),
        1 => word("minimum", count.clone()),
        1 => word("exclusiveMinimum", count.clone()),
        1 => word("maximum", count.clone()),
        1 => word("multipleOf", (1..5u32).prop_map(|n| json!(n))),
        1 => word("minLength", count.clone()),
        1 => word("maxLength", count.clone()),
        1 => word("minItems", count),
        1 => word("uniqueItems", any::<bool>().prop_map(Value::Bool)),
        2 => word("required", names.clone()),
        1 => word("dependentRequired", names.prop_map(|names| json!({"a": names}))),
        1 => word("additionalProperties", any::<bool>().prop_map(Value::Bool)),
        1 => word("description", prop::sample::select(vec![json!("x"), json!("y")])),
        1 => word("$ref", prop::sample::select(vec![json!("#/$defs/D"), json!("#/$defs/E")])),
        4 => properties,
        1 => schema("items"),
        1 => schema("additionalProperties"),
        1 => schema("contains"),
        1 => schema("propertyNames"),
        1 => schema("not"),
        1 => schema("if"),
        1 => schema("then"),
        1 => schema("else"),
        1 => list("prefixItems"),
        3 => list("anyOf"),
        2 => list("oneOf"),
        2 => list("allOf"),
    ]
    .boxed()
}

fn object(words: Vec<(&'static str, Option<Value>, Option<Value>)>) -> Two {
    let (mut old, mut new) = (Map::new(), Map::new());
    for (keyword, a, b) in words {
        a.map(|a| old.insert(keyword.to_owned(), a));
        b.map(|b| new.insert(keyword.to_owned(), b));
    }
    (Value::Object(old), Value::Object(new))
}

/// Two schemas that are more or less alike.
fn pair(depth: u32) -> BoxedStrategy<Two> {
    let plain = prop::sample::select(vec![
        json!({}),
        json!(true),
        json!(false),
        json!({"type": "string"}),
        json!({"type": "null"}),
        json!({"type": "integer"}),
    ]);
    let plain = maybe_two(plain).boxed();
    (0..depth).fold(plain, |inner, _| {
        let one = words(&inner);
        prop_oneof![1 => inner, 4 => prop::collection::vec(one, 1..4).prop_map(object)].boxed()
    })
}

/// The same, with definitions. None of those refers to another, so that every reference ends.
fn whole() -> impl Strategy<Value = Two> {
    let without_references = |(a, b): &Two| !a.to_string().contains("$ref") && !b.to_string().contains("$ref");
    let definition = pair(1).prop_filter("refers", without_references);
    (pair(3), definition.clone(), definition).prop_map(|((mut old, mut new), d, e)| {
        for (schema, d, e) in [(&mut old, d.0, e.0), (&mut new, d.1, e.1)] {
            let definitions = json!({"D": d, "E": e});
            match schema.as_object_mut() {
                Some(words) => drop(words.insert("$defs".to_owned(), definitions)),
                None => *schema = json!({"allOf": [schema.clone()], "$defs": definitions}),
            }
        }
        (old, new)
    })
}

/// What rests on that nothing is sent that is not declared.
const CONVENTIONS: [&str; 2] = [super::super::rules::MEMBER_NEW.input.what, super::super::rules::MEMBER_GONE.output.what];

fn is_harmless(member: &str, old: &Value, new: &Value) -> bool {
    let changes = schemas(member, &old.to_string(), &new.to_string());
    !changes.iter().any(|c| c.class == Breaking || CONVENTIONS.contains(&c.what))
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_harmless_refuses_nothing_that_was_accepted((old, new) in whole()) {
        let harmless = (is_harmless("inputSchema", &old, &new), is_harmless("outputSchema", &old, &new));
        for value in values() {
            let (before, after) = (accepts(&old, &old, &value), accepts(&new, &new, &value));
            prop_assert!(!harmless.0 || !before || after, "{old} accepts {value}, {new} does not");
            prop_assert!(!harmless.1 || !after || before, "{new} accepts {value}, {old} does not");
        }
    }
}
