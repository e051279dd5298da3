//! TOML into a tree.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::lines::Lines;
use crate::config::tree::{Member, Node, Problem, Value};
use crate::words::printable;

/// Reads `text`.
///
/// # Errors
///
/// The first thing that is no TOML: a key that stands twice and nesting deeper than the reader's 80
/// are such things.
pub(super) fn read(text: &str) -> Result<Node, Problem> {
    let lines = Lines::of(text);
    let table = DeTable::parse(text).map_err(|error| {
        let at = lines.at(error.span().map_or(0, |span| span.start));
        Problem { at, message: format!("this is no TOML: {}", what(error.message())) }
    })?;
    let at = lines.at(table.span().start);
    Ok(Node { at, value: map(table.into_inner(), &lines) })
}

/// The reader's message in one line. A word without quotes is taken for a number or a truth value, and
/// told of as such.
fn what(message: &str) -> String {
    if ["`nan`", "`inf`", "`true`", "`false`"].iter().any(|word| message.ends_with(&format!("expected {word}"))) {
        return "string values must be quoted".to_owned();
    }
    printable(&message.replace('\n', ", "), 200)
}

/// A table, in the order in which it is written: the reader sorts by name.
fn map(table: DeTable<'_>, lines: &Lines<'_>) -> Value {
    let mut members: Vec<(Spanned<DeString<'_>>, Spanned<DeValue<'_>>)> = table.into_iter().collect();
    members.sort_by_key(|(key, _)| key.span().start);
    let member = |(key, value): (Spanned<DeString<'_>>, Spanned<DeValue<'_>>)| {
        let at = lines.at(key.span().start);
        Member { key: key.into_inner().into_owned(), at, value: node(value, lines) }
    };
    Value::Map(members.into_iter().map(member).collect())
}

/// The same value with its places. As deep as the reader let it be, so that recursion is bounded.
fn node(value: Spanned<DeValue<'_>>, lines: &Lines<'_>) -> Node {
    let at = lines.at(value.span().start);
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => Value::Number(number.to_string()),
        DeValue::Float(number) => Value::Number(number.to_string()),
        DeValue::Boolean(truth) => Value::Bool(truth),
        DeValue::Datetime(moment) => Value::Text(moment.to_string()),
        DeValue::Array(list) => Value::List(list.into_iter().map(|element| node(element, lines)).collect()),
        DeValue::Table(table) => map(table, lines),
    };
    Node { at, value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree::Place;

    #[test]
    fn everything_has_its_place_and_its_order() {
        let root = read("z = \"é\"\na = [1, 2.5, 0x1f]\n\n[t.u] # c\nb = true\n").unwrap();
        let Value::Map(members) = root.value else { panic!("no map") };
        let keys: Vec<(&str, Place)> = members.iter().map(|m| (m.key.as_str(), m.at)).collect();
        let place = |line, column| Place { line, column };
        assert_eq!(keys, [("z", place(1, 1)), ("a", place(2, 1)), ("t", place(4, 2))]);
        assert_eq!(members[0].value, Node { at: place(1, 5), value: Value::Text("é".into()) });
        let Value::List(list) = &members[1].value.value else { panic!("no list") };
        let numbers: Vec<&Value> = list.iter().map(|n| &n.value).collect();
        assert_eq!(numbers, [&Value::Number("1".into()), &Value::Number("2.5".into()), &Value::Number("0x1f".into())]);
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_place() {
        for (text, wanted) in [
            ("a = 1\na = 2\n", "2:1 this is no TOML: duplicate key"),
            ("[a]\nb = \n", "2:5 this is no TOML: string values must be quoted, expected literal string"),
            ("a = npx\n", "1:5 this is no TOML: string values must be quoted"),
            ("a = true_\n", "1:5 this is no TOML: string values must be quoted"),
            ("[a\n", "1:3 this is no TOML: unclosed table, expected `]`"),
        ] {
            let problem = read(text).unwrap_err();
            assert_eq!(format!("{} {}", problem.at, problem.message), wanted, "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        assert!(read(&format!("a = {}{}", "[".repeat(200_000), "]".repeat(200_000))).is_err());
        assert!(read(&format!("a = {}", "{b=".repeat(200_000))).is_err());
        assert!(read(&format!("{}b = 1", "a.".repeat(200_000))).is_err());
    }
}
