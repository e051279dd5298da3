//! JSON for people and for `diff`: one member or element a line.

use super::{Kind, Value};

/// What is deeper than this stands on its line as a whole. Indented, a schema that is all brackets would be
/// as many times as long as it is deep: a megabyte of it would be written as hundreds of gigabytes.
const DEEPEST: usize = 64;

/// What is still to be written.
enum Step<'d> {
    Value(Value<'d>),
    /// The rest of an object or an array, last first: its members, or elements without keys.
    Rest(Vec<(Option<Value<'d>>, Value<'d>)>, u8, bool),
}

/// Appends `value` to `out` with everything as it was written but the white space: one line for each
/// member and element, indented by two spaces a level, `levels` of them to begin with. From the 65th level
/// on there are no more lines.
pub fn write_pretty(value: Value<'_>, levels: usize, out: &mut Vec<u8>) {
    let mut depth = levels;
    let mut steps = vec![Step::Value(value)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Value(value) => match open(value, out) {
                None => out.extend_from_slice(value.raw()),
                Some(rest) => {
                    depth += 1;
                    steps.push(rest);
                }
            },
            Step::Rest(mut rest, close, first) => match rest.pop() {
                None => {
                    depth -= 1;
                    new_line(depth, out);
                    out.push(close);
                }
                Some((key, value)) => {
                    if !first {
                        out.push(b',');
                    }
                    new_line(depth, out);
                    if let Some(key) = key {
                        out.extend_from_slice(key.raw());
                        out.extend_from_slice(b": ");
                    }
                    steps.push(Step::Rest(rest, close, false));
                    steps.push(Step::Value(value));
                }
            },
        }
    }
}

/// Opens an object or an array that is not empty; `None` for everything else, and `{}` and `[]` are
/// what is written of the empty ones.
fn open<'d>(value: Value<'d>, out: &mut Vec<u8>) -> Option<Step<'d>> {
    let (mut rest, brackets): (Vec<_>, [u8; 2]) = match value.kind() {
        Kind::Object => (value.members().map(|(key, value)| (Some(key), value)).collect(), *b"{}"),
        Kind::Array => (value.elements().map(|value| (None, value)).collect(), *b"[]"),
        Kind::Null | Kind::Bool | Kind::Number | Kind::NonFinite | Kind::String => return None,
    };
    if rest.is_empty() {
        return None;
    }
    rest.reverse();
    out.push(brackets[0]);
    Some(Step::Rest(rest, brackets[1], true))
}

fn new_line(depth: usize, out: &mut Vec<u8>) {
    if depth > DEEPEST {
        return;
    }
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

#[cfg(test)]
mod tests {
    use super::super::Doc;
    use super::*;

    fn pretty(text: &str) -> String {
        let mut out = Vec::new();
        write_pretty(Doc::parse(text.as_bytes()).unwrap().root(), 1, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_line_for_each_thing() {
        assert_eq!(
            pretty(r#"{"a":[1,{"b":"x"}],"c":{},"d":[]}"#),
            "{\n    \"a\": [\n      1,\n      {\n        \"b\": \"x\"\n      }\n    ],\n    \"c\": {},\n    \"d\": []\n  }"
        );
        assert_eq!(pretty("1e0"), "1e0");
    }

    #[test]
    fn depth_is_no_trouble() {
        let text = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
        let pretty = pretty(&text);
        assert!(pretty.trim_end().ends_with(']') && pretty.len() < 1_010_000, "{}", pretty.len());
        assert_eq!(pretty.lines().count(), 2 * DEEPEST, "each level that has lines has two");
    }
}
