//! The JSON Schema beside the reader: it refuses nothing that is read, and what it cannot say is listed here.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::super::tree::{Node, Value};
use super::super::{schema, yaml};
use super::read;
use super::values::EVERYTHING;

fn validator() -> &'static jsonschema::Validator {
    static VALIDATOR: LazyLock<jsonschema::Validator> = LazyLock::new(|| jsonschema::draft202012::new(&schema()).unwrap());
    &VALIDATOR
}

/// What an editor's YAML reader makes of a tree.
fn json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(yes) => json!(yes),
        Value::Number(text) => {
            let radix = |prefix, radix| text.strip_prefix(prefix).and_then(|digits| u64::from_str_radix(digits, radix).ok());
            let whole = radix("0x", 16)
                .or_else(|| radix("0o", 8))
                .map(|n| json!(n))
                .or_else(|| text.trim_start_matches('+').parse::<i64>().ok().map(|n| json!(n)));
            whole.or_else(|| text.parse::<f64>().ok().map(|n| json!(n))).unwrap_or(json!(0.5))
        }
        Value::Text(text) => json!(text),
        Value::List(nodes) => nodes.iter().map(json).collect(),
        Value::Map(members) => members.iter().map(|member| (member.key.clone(), json(&member.value))).collect(),
    }
}

/// What the reader and the schema say of a document; nothing if it cannot be parsed.
fn verdicts(text: &str) -> Option<(bool, bool)> {
    let (root, problems) = yaml::read(text);
    let root = root.filter(|_| problems.is_empty())?;
    Some((read(text).is_ok(), validator().is_valid(&json(&root))))
}

#[test]
fn the_schema_is_one_and_has_every_key_described() {
    assert!(jsonschema::draft202012::meta::is_valid(&schema()));
    let text = schema().to_string();
    assert!(text.contains("\"additionalProperties\":false") && text.matches("\"description\"").count() > 60, "{text}");
}

#[test]
fn the_schema_takes_what_is_read() {
    let root = yaml::read(EVERYTHING).0.unwrap();
    let errors: Vec<String> = validator().iter_errors(&json(&root)).map(|error| format!("{} {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Mistakes that no schema sees, because they are about texts' meaning, other values or the world.
const BEYOND: [(&str, &str); 15] = [
    ("a\\tb", "the characters of a name, beyond the slash"),
    ("99999\n", "how high a port is"),
    ("::1:80", "brackets"),
    ("${NONE", "variables that are not set"),
    ("${API_KEY", "what a variable holds"),
    ("${env:", "what is no variable"),
    ("N}0", "what two variables come to"),
    ("\\0", "bytes that no argument can hold"),
    ("/nonexistent", "files"),
    ("500ms", "the shortest interval"),
    ("99999h", "the longest duration"),
    ("total", "sums"),
    ("startup: 5m", "sums with what is not said"),
    (".inf", "what JSON cannot say"),
    ("2GiB", "sizes with a unit"),
];

#[test]
fn the_schema_refuses_what_is_refused_but_for_what_it_cannot_know() {
    let mut held = 0;
    let mut beyond = std::collections::BTreeSet::new();
    for text in super::errors::texts() {
        let Some((is_read, is_valid)) = verdicts(&text) else { continue };
        assert!(!is_read, "{text}");
        if is_valid {
            let why = BEYOND.iter().find(|(part, _)| text.contains(part));
            beyond.insert(why.unwrap_or_else(|| panic!("the schema takes {text}")));
        } else {
            held += 1;
        }
    }
    assert!(held > 60, "{held}");
    assert_eq!(beyond.len(), BEYOND.len(), "the schema sees more than is said: {beyond:?}");
}

/// Values that stand somewhere in a mutated document.
const VALUES: [&str; 30] = [
    "",
    "~",
    "true",
    "no",
    "0",
    "1",
    "3",
    "100",
    "101",
    "-1",
    "1.5",
    "0x10",
    "5s",
    "0s",
    "500ms",
    "1.h",
    ".5m",
    "16MiB",
    "1",
    "x",
    "''",
    "[]",
    "[a]",
    "[5, x]",
    "{}",
    "{a: b}",
    "${N}",
    "$$",
    "\"${NONE:-5s}\"",
    "/a",
];

proptest! {
    #[test]
    fn whatever_is_read_the_schema_takes(at in 0usize..80, value in prop::sample::select(&VALUES[..])) {
        let text = with_value(at, value);
        if let Some((true, is_valid)) = verdicts(&text) {
            prop_assert!(is_valid, "the schema refuses {}", text);
        }
    }

    #[test]
    fn nothing_that_is_written_makes_the_reader_panic(text in "\\PC{0,80}|[-:{}\\[\\],&*!|>'\"%@`#?<$ \n\ta-c0-9.~]{0,120}") {
        let _ = read(&text);
        let _ = super::super::call(&text);
    }

    #[test]
    fn a_document_with_a_slip_is_read_or_refused(at in 0usize..2000, what in "\\PC|[-:{}\\[\\],&*!|>'\"%@`#?<$ \n\t]", drop in 0usize..3) {
        let chars: Vec<char> = EVERYTHING.chars().collect();
        let at = at % chars.len();
        let text: String = chars[..at].iter().copied().chain(what.chars()).chain(chars[(at + drop).min(chars.len())..].iter().copied()).collect();
        if let Some((true, is_valid)) = verdicts(&text) {
            prop_assert!(is_valid, "the schema refuses {}", text);
        }
    }

    #[test]
    fn bytes_are_no_trouble(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&String::from_utf8_lossy(&bytes));
    }
}

/// The complete document with another value for its `at`th plain key.
fn with_value(at: usize, value: &str) -> String {
    let places: Vec<usize> = EVERYTHING.match_indices(": ").map(|(at, _)| at + 2).collect();
    let begin = places[at % places.len()];
    let rest = &EVERYTHING[begin..];
    let mut depth = 0i32;
    let end = rest.find(|c| {
        depth += i32::from(matches!(c, '{' | '[')) - i32::from(matches!(c, '}' | ']'));
        c == '\n' || depth < 0 || c == ',' && depth == 0
    });
    format!("{}{value}{}", &EVERYTHING[..begin], &rest[end.unwrap_or(rest.len())..])
}
