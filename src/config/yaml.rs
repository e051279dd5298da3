//! YAML 1.2 by the core schema into a tree with places.
//!
//! The parser gives events; what they make is put together here, so that aliases cannot multiply
//! without bounds, keys that stand twice are seen, and nothing goes deeper than it should.

mod compose;
mod scalar;

use saphyr_parser::{Parser, ScanError};

use super::tree::{Node, Place, Problem};
use compose::Composer;

pub(super) use scalar::plain;

/// Reads one document. What is wrong is told, all of it up to the place from which on nothing can be
/// read; the tree is there if the document could be read to its end.
///
/// Refused, besides what is not YAML: several documents, duplicate keys, tags other than the core
/// schema's, aliases that would make the document large, more than 64 levels, control characters.
#[must_use]
pub fn read(text: &str) -> (Option<Node>, Vec<Problem>) {
    if let Some(problem) = control_character(text) {
        return (None, vec![problem]);
    }
    let mut composer = Composer::default();
    for event in Parser::new_from_str(text) {
        let fine = match event {
            Ok((event, span)) => composer.take(event, place(&span.start)),
            Err(error) => Err(not_yaml(text, &error)),
        };
        if let Err(problem) = fine {
            composer.problems.push(problem);
            return (None, composer.problems);
        }
    }
    composer.finish()
}

/// The parser counts columns from 0.
fn place(mark: &saphyr_parser::Marker) -> Place {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Place { line: number(mark.line()).max(1), column: number(mark.col()).saturating_add(1) }
}

/// YAML allows none but the tab and the ends of lines; terminals obey some of them.
fn control_character(text: &str) -> Option<Problem> {
    let wrong = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    let (line, rest) = (1u32..).zip(text.split('\n')).find(|(_, line)| line.contains(wrong))?;
    let (column, c) = (1u32..).zip(rest.chars()).find(|(_, c)| wrong(*c))?;
    let message =
        format!("a control character (U+{:04X}) may not stand in YAML; in double quotes it is written \\x{:02x}", u32::from(c), u32::from(c));
    Some(Problem { at: Place { line, column }, message })
}

/// What the parser says, with what is meant by it where people run into it.
fn not_yaml(text: &str, error: &ScanError) -> Problem {
    let at = place(error.marker());
    let said = crate::words::printable(error.info(), 120);
    let line = text.lines().nth(usize::try_from(at.line.saturating_sub(1)).unwrap_or(usize::MAX)).unwrap_or_default();
    let hint = if said.contains("tab") {
        Some("YAML is indented with spaces, never with tabs")
    } else if line.contains("${") && said.contains("flow") {
        Some("inside of { } and [ ] write \"${NAME}\" in quotes")
    } else {
        HINTS.iter().find(|(part, _)| said.contains(part)).map(|(_, hint)| *hint)
    };
    Problem { at, message: hint.map_or_else(|| format!("not YAML: {said}"), |hint| format!("not YAML: {said}; {hint}")) }
}

/// Parts of what the parser says, and what to do then.
const HINTS: [(&str, &str); 8] = [
    ("mapping values are not allowed", "a text with \": \" in it has to stand in quotes, and keys of one mapping below each other"),
    ("unexpected character", "a text that begins with it has to stand in quotes"),
    ("unexpected end of stream", "a quote is not closed"),
    ("unknown anchor", "no anchor with this name stands before it; a text that begins with * has to stand in quotes"),
    ("unknown escape", "in double quotes a backslash is written twice"),
    ("escape code", "in double quotes a backslash is written twice, and a character beyond U+FFFF \\U0001F600"),
    (
        "block mapping, did not find expected key",
        "keys of one mapping stand right below each other: this line may be indented by too much or too little",
    ),
    ("did not find expected '-'", "the lines of one list stand below each other"),
];
