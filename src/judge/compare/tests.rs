use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::ChangeClass::{Breaking, Compatible, Description};
use super::{Change, ChangeClass, ITEM_RULES, SCHEMA_RULES, compare};
use crate::protocol::json::{Doc, write_canonical};
use crate::protocol::mcp::ListKind;

mod pairs;
mod soundness;

fn canonical(text: &str) -> Vec<u8> {
    let doc = Doc::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}: {text}"));
    let mut out = Vec::new();
    write_canonical(doc.root(), &[], &mut out);
    out
}

fn items(kind: ListKind, old: &str, new: &str) -> Vec<Change> {
    compare(kind, &canonical(old), &canonical(new))
}

fn schemas(member: &str, old: &str, new: &str) -> Vec<Change> {
    let tool = |schema: &str| format!(r#"{{"name":"t","{member}":{schema}}}"#);
    let mut changes = items(ListKind::Tools, &tool(old), &tool(new));
    for change in &mut changes {
        change.path = change.path.strip_prefix(&format!("/{member}")).unwrap_or(&change.path).to_owned();
    }
    changes
}

fn sorted(mut told: Vec<(String, ChangeClass)>) -> Vec<(String, ChangeClass)> {
    told.sort();
    told
}

fn places(changes: &[Change]) -> Vec<(String, ChangeClass)> {
    sorted(changes.iter().map(|c| (c.path.clone(), c.class)).collect())
}

#[test]
fn the_pairs_have_the_changes_they_should_have() {
    let mut wrong = String::new();
    for (name, old, new, wanted, _) in pairs::SCHEMA_PAIRS {
        let input = sorted(wanted.iter().map(|(path, class, _)| ((*path).to_owned(), *class)).collect());
        let output = sorted(wanted.iter().map(|(path, _, class)| ((*path).to_owned(), *class)).collect());
        for (member, wanted) in [("inputSchema", input), ("outputSchema", output)] {
            let changes = schemas(member, old, new);
            if places(&changes) != wanted {
                let _ = writeln!(wrong, "{name}, {member}: {wanted:#?} is wanted, not {changes:#?}");
            }
        }
    }
    for (name, kind, old, new, wanted, _) in pairs::ITEM_PAIRS {
        let changes = items(*kind, old, new);
        if places(&changes) != sorted(wanted.iter().map(|(path, class)| ((*path).to_owned(), *class)).collect()) {
            let _ = writeln!(wrong, "{name}: {wanted:#?} is wanted, not {changes:#?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_rule_has_a_pair() {
    let mut told = BTreeSet::new();
    let mut input = BTreeSet::new();
    let mut output = BTreeSet::new();
    for (_, old, new, _, _) in pairs::SCHEMA_PAIRS {
        input.extend(schemas("inputSchema", old, new).iter().map(|c| (c.what, c.class)));
        output.extend(schemas("outputSchema", old, new).iter().map(|c| (c.what, c.class)));
    }
    for (_, kind, old, new, _, _) in pairs::ITEM_PAIRS {
        told.extend(items(*kind, old, new).iter().map(|c| (c.what, c.class)));
    }
    // This one takes a megabyte: see below.
    told.insert((super::rules::TOO_MUCH.input.what, Breaking));
    for rule in SCHEMA_RULES {
        assert!(input.contains(&(rule.input.what, rule.input.class)), "no pair of inputs for {rule:?}");
        assert!(output.contains(&(rule.output.what, rule.output.class)), "no pair of outputs for {rule:?}");
    }
    for rule in ITEM_RULES {
        assert!(told.contains(&(rule.input.what, rule.input.class)), "no pair for {rule:?}");
    }
}

#[test]
fn a_change_says_what_stood_there() {
    let changes = schemas("inputSchema", r#"{"properties":{"a/b":{"description":"x\ny"}}}"#, r#"{"properties":{"a/b":{"description":"z"},"c":{}}}"#);
    let told: Vec<_> = changes.iter().map(|c| (c.path.as_str(), c.old.as_deref(), c.new.as_deref())).collect();
    assert_eq!(told, [("/properties/a~1b/description", Some(r#""x\ny""#), Some(r#""z""#)), ("/properties/c", None, Some("{}"))]);
}

#[test]
fn the_worst_changes_are_told_and_that_there_are_more() {
    let properties = |kind: &str, text: &str| {
        let each: Vec<String> = (0..500).map(|n| format!(r#""p{n}":{{"description":"{text}"}}"#)).collect();
        format!(r#"{{"properties":{{{},"z":{{"type":"{kind}"}}}}}}"#, each.join(","))
    };
    let changes = schemas("inputSchema", &properties("string", "a"), &properties("integer", "b"));
    assert_eq!(changes.len(), 201);
    assert_eq!(changes.iter().filter(|c| c.class == Breaking).map(|c| c.path.as_str()).collect::<Vec<_>>(), ["/properties/z/type"]);
    let last = changes.last().unwrap();
    assert_eq!((last.path.as_str(), last.class, last.what), ("", Description, super::rules::MORE));
}

/// A schema of about this many levels, and what lies at the bottom.
fn deep(open: &str, close: &str, levels: usize, bottom: &str) -> String {
    format!("{}{bottom}{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn depth_costs_no_stack() {
    for (open, close) in [
        (r#"{"properties":{"a":"#, "}}"),
        (r#"{"not":"#, "}"),
        (r#"{"anyOf":["#, "]}"),
        (r#"{"allOf":["#, "]}"),
        (r#"{"items":["#, "]}"),
        (r#"{"default":["#, "]}"),
    ] {
        let changes = schemas("inputSchema", &deep(open, close, 8_000, r#"{"type":"string"}"#), &deep(open, close, 8_000, r#"{"type":"integer"}"#));
        assert!(!changes.is_empty(), "{open}");
        assert!(open.contains("default") || changes.iter().any(|c| c.class == Breaking), "{open}: {changes:?}");
        assert!(changes.iter().all(|c| c.path.len() < 5000));
    }
}

#[test]
fn many_parameters_are_all_looked_at() {
    let many = |kind: &str| {
        let each: Vec<String> = (0..8_000).map(|n| format!(r##""p{n}":{{"$ref":"#/$defs/d{n}"}}"##)).collect();
        let definitions: Vec<String> = (0..8_000).map(|n| format!(r#""d{n}":{{"type":"string","maxLength":{n}}}"#)).collect();
        format!(r#"{{"properties":{{{},"z":{{"type":"{kind}"}}}},"$defs":{{{}}}}}"#, each.join(","), definitions.join(","))
    };
    let changes = schemas("inputSchema", &many("number"), &many("integer"));
    assert_eq!(places(&changes), [("/properties/z/type".to_owned(), Breaking)]);
}

#[test]
fn references_that_multiply_end() {
    // Each definition refers to the next one twice: 2^40 ways to the last.
    let chain = |last: &str| {
        let links = (0..40).map(|n| {
            let next = n + 1;
            format!(r##""d{n}":{{"properties":{{"a":{{"$ref":"#/$defs/d{next}"}},"b":{{"$ref":"#/$defs/d{next}"}}}}}}"##)
        });
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d40":{{"type":"{last}"}}}}}}"##, links.collect::<Vec<_>>().join(","))
    };
    let changes = schemas("inputSchema", &chain("string"), &chain("integer"));
    assert_eq!(places(&changes), [("/$defs/d40/type".to_owned(), Breaking)]);
    // The same in alternatives, which are looked at together.
    let bomb = |last: &str| {
        let links = (0..40).map(|n| format!(r##""d{n}":{{"anyOf":[{{"$ref":"#/$defs/d{m}"}},{{"$ref":"#/$defs/d{m}"}}]}}"##, m = n + 1));
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d40":{{"type":"{last}"}}}}}}"##, links.collect::<Vec<_>>().join(","))
    };
    let changes = schemas("inputSchema", &bomb("string"), &bomb("integer"));
    assert!(changes.iter().any(|c| c.class == Breaking && c.what == super::rules::TOO_MUCH.input.what), "{changes:?}");
}

#[test]
fn what_is_no_json_is_told_as_a_whole() {
    let changes = compare(ListKind::Tools, b"{", b"{}");
    assert_eq!(
        changes,
        [Change { path: String::new(), class: Breaking, what: "it cannot be compared", old: Some("{".into()), new: Some("{}".into()) }]
    );
    assert_eq!(compare(ListKind::Tools, b"{", b"{"), []);
    // Not canonical: the same in other bytes.
    assert_eq!(compare(ListKind::Tools, b"{}", b"{ }").iter().map(|c| c.class).collect::<Vec<_>>(), [Compatible]);
}

/// Any JSON, with names that mean something.
fn json() -> impl Strategy<Value = serde_json::Value> {
    const NAMES: [&str; 40] = [
        "name",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "arguments",
        "execution",
        "taskSupport",
        "uri",
        "mimeType",
        "type",
        "enum",
        "const",
        "nullable",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "items",
        "prefixItems",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "$ref",
        "$defs",
        "$id",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "contains",
        "dependentRequired",
        "default",
        "x-a",
        "a",
        "b",
    ];
    const WORDS: [&str; 10] = ["string", "null", "integer", "object", "#", "#/$defs/a", "#/properties/a", "#/inputSchema", "required", "a"];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        (-3i64..3).prop_map(serde_json::Value::from),
        prop::sample::select(WORDS.to_vec()).prop_map(serde_json::Value::from),
        "\\PC{0,3}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(6, 60, 5, |inner| {
        let name = prop_oneof![9 => prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,3}"];
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            3 => prop::collection::vec((name, inner), 0..6).prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A tool with a schema on either side, and now and then a part of the one in the other.
fn tool() -> impl Strategy<Value = String> {
    (json(), json(), json()).prop_map(|(input, output, other)| {
        serde_json::json!({"name": "t", "inputSchema": input, "outputSchema": output, "description": other}).to_string()
    })
}

fn kinds() -> impl Strategy<Value = ListKind> {
    prop::sample::select(ListKind::ALL.to_vec())
}

proptest! {
    #[test]
    fn any_two_items_differ_in_something_or_are_the_same(kind in kinds(), old in json(), new in json(), a in tool(), b in tool()) {
        for (old, new) in [(old.to_string(), new.to_string()), (a.clone(), b), (a, new.to_string())] {
            let (old, new) = (canonical(&old), canonical(&new));
            prop_assert_eq!(compare(kind, &old, &new).is_empty(), old == new);
            prop_assert!(compare(kind, &old, &old).is_empty());
        }
    }

    #[test]
    fn any_bytes_end_in_an_answer(kind in kinds(), old in prop::collection::vec(any::<u8>(), 0..60), new in "[\\[\\]{}\",:a0 ]{0,60}") {
        prop_assert_eq!(compare(kind, &old, new.as_bytes()).is_empty(), old == new.as_bytes());
    }
}

/// Pairs of schemas of which the second accepts more, and nothing else has changed.
fn widening() -> impl Strategy<Value = (String, String)> {
    let simple = prop_oneof![
        Just((r#"{"type":"integer"}"#, r#"{"type":"number"}"#)),
        Just((r#"{"type":"string"}"#, r#"{"type":["string","null"]}"#)),
        Just((r#"{"enum":["a"]}"#, r#"{"enum":["a","b"]}"#)),
        Just((r#"{"minimum":3}"#, r#"{"minimum":2}"#)),
        Just((r#"{"type":"string","maxLength":3}"#, r#"{"type":"string"}"#)),
        Just((r#"{"type":"object","required":["a"]}"#, r#"{"type":"object"}"#)),
        Just((r#"{"additionalProperties":false}"#, r#"{"additionalProperties":true}"#)),
    ];
    let both = |(a, b): (&str, &str)| (a.to_owned(), b.to_owned());
    simple.prop_map(both).prop_recursive(6, 10, 1, |inner| {
        let shells = [
            "{\"properties\":{\"p\":@}}",
            "{\"items\":@}",
            "{\"anyOf\":[@,{\"type\":\"boolean\"}]}",
            "{\"allOf\":[@]}",
            "{\"additionalProperties\":@}",
        ];
        (inner, prop::sample::select(shells.to_vec())).prop_map(|((a, b), shell)| (shell.replace('@', &a), shell.replace('@', &b)))
    })
}

proptest! {
    #[test]
    fn what_widens_one_way_breaks_the_other((narrow, wide) in widening()) {
        let breaks = |member, old: &str, new: &str| schemas(member, old, new).iter().any(|c| c.class == Breaking);
        prop_assert!(!breaks("inputSchema", &narrow, &wide));
        prop_assert!(breaks("inputSchema", &wide, &narrow));
        prop_assert!(breaks("outputSchema", &narrow, &wide));
        prop_assert!(!breaks("outputSchema", &wide, &narrow));
    }
}
