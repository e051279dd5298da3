//! JSON with comments and trailing commas, as editors write it, into a tree.

use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};

use super::lines::Lines;
use crate::config::tree::{Member, Node, Problem, Value};
use crate::words::printable;

/// Comments and trailing commas, and nothing else that is not JSON: what else a lenient reader takes,
/// the clients do not.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Reads `text`.
///
/// # Errors
///
/// The first thing that is no JSON; nesting deeper than the reader's 512 is one too.
pub(super) fn read(text: &str) -> Result<Node, Problem> {
    let lines = Lines::of(text);
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map_err(|error| {
        let what = error.kind().to_string();
        Problem { at: lines.at(error.range().start), message: format!("this is no JSON: {}", printable(&lower(&what), 200)) }
    })?;
    match parsed.value {
        Some(value) => Ok(node(value, &lines)),
        None => Err(Problem { at: lines.at(0), message: "the file is empty; wanted a JSON object such as {\"mcpServers\": {}}".to_owned() }),
    }
}

/// The same value with its places. As deep as the reader let it be, so that recursion is bounded.
fn node(value: ast::Value<'_>, lines: &Lines<'_>) -> Node {
    let at = lines.at(value.range().start);
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::NumberLit(literal) => Value::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => Value::Text(literal.value.into_owned()),
        ast::Value::Array(array) => Value::List(array.elements.into_iter().map(|element| node(element, lines)).collect()),
        ast::Value::Object(object) => Value::Map(object.properties.into_iter().map(|property| member(property, lines)).collect()),
    };
    Node { at, value }
}

fn member(property: ast::ObjectProp<'_>, lines: &Lines<'_>) -> Member {
    let at = lines.at(property.name.range().start);
    Member { key: property.name.into_string(), at, value: node(property.value, lines) }
}

/// With a small letter at the beginning, as our messages are.
fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree::Place;

    #[test]
    fn everything_has_its_place() {
        let root = read("// a\n{ \"é\": [1, -2.5e3, true, null, \"x\\n\\u00e9\",], /* b */\n  \"é\": {} }\n").unwrap();
        let Value::Map(members) = root.value else { panic!("no map") };
        assert_eq!(root.at, Place { line: 2, column: 1 });
        assert_eq!(members[0].at, Place { line: 2, column: 3 });
        assert_eq!(members[1].at, Place { line: 3, column: 3 });
        assert_eq!(members[1].value, Node { at: Place { line: 3, column: 8 }, value: Value::Map(Vec::new()) });
        let Value::List(list) = &members[0].value.value else { panic!("no list") };
        let wanted = [
            (9, Value::Number("1".into())),
            (12, Value::Number("-2.5e3".into())),
            (20, Value::Bool(true)),
            (26, Value::Null),
            (32, Value::Text("x\né".into())),
        ];
        for (node, (column, value)) in list.iter().zip(wanted) {
            assert_eq!(*node, Node { at: Place { line: 2, column }, value });
        }
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        for (text, wanted) in [
            ("", "1:1 the file is empty; wanted a JSON object such as {\"mcpServers\": {}}"),
            ("{\n  \"a\": 1\n  \"b\": 2\n}", "2:9 this is no JSON: expected comma"),
            ("{\"a\": \"b}", "1:7 this is no JSON: unterminated string literal"),
            ("{a: 1}", "1:2 this is no JSON: expected string for object property"),
            ("{'a': 1}", "1:2 this is no JSON: single-quoted strings are not allowed"),
            ("{} {}", "1:4 this is no JSON: text cannot contain more than one JSON value"),
            ("{\"a\": NaN}", "1:7 this is no JSON: unexpected token"),
            ("[", "1:1 this is no JSON: unterminated array"),
        ] {
            let problem = read(text).unwrap_err();
            assert_eq!(format!("{} {}", problem.at, problem.message), wanted, "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = |n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
            assert!(read(&deep(100)).is_ok());
            assert_eq!(read(&deep(200_000)).unwrap_err().message, "this is no JSON: maximum nesting depth exceeded");
            assert!(read(&open.repeat(200_000)).is_err());
        }
    }
}
