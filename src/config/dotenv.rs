//! `.env` files, lines `NAME=VALUE`, in the two ways that they are read here.
//!
//! In both, empty lines and comments are passed over, and `export` before a name is too. They differ in this, and on purpose:
//! a file that one of our keys names is read strictly, a client's as its client reads it, whatever that makes of it.
//!
//! | | [`read`]: our `env_from_file` | [`variables`]: a client's `envFile` |
//! |---|---|---|
//! | like | Docker Compose and the dotenv libraries | VS Code (`parseEnvFile` in `src/vs/base/common/envfile.ts`) |
//! | a line that is none | refused, with its place | passed over |
//! | between name and value | `=` | `=` or `:` |
//! | quotes | `"`, `'`, with nothing but a comment behind them | those and a backtick, around the whole value |
//! | escapes in double quotes | `\n` `\r` `\t` `\"` `\\` `\$` | `\n` `\r` |
//! | a comment behind a value without quotes | from ` #` on | from `#` on |
//! | a comment behind `export` | passed over, as by shells and dotenv (Compose refuses it) | none: `#` begins a name |
//! | a line ends with | `\n`, `\r\n` | those and `\r` |
//!
//! Nothing is expanded, and a value stands on one line.

use super::tree::{Place, Problem};

/// Reads the lines of a `.env` file that is ours, in their order.
///
/// # Errors
///
/// The first line that is none, with its place.
pub fn read(text: &str) -> Result<Vec<(String, String)>, Problem> {
    let mut variables = Vec::new();
    for (line, text) in (1u32..).zip(text.lines()) {
        let Some(text) = statement(text).filter(|text| !text.starts_with('#')) else { continue };
        variables.push(assignment(text).map_err(|message| Problem { at: Place { line, column: 1 }, message })?);
    }
    Ok(variables)
}

/// The variables of a `.env` file that a client's file names, in their order.
#[must_use]
pub fn variables(text: &str) -> Vec<(String, String)> {
    text.split(['\n', '\r']).filter_map(statement).filter_map(as_vs_code).collect()
}

/// What a line says, without `export`; nothing, if it is empty or a comment.
fn statement(line: &str) -> Option<&str> {
    let line = line.trim();
    let text = line.strip_prefix("export").filter(|rest| rest.starts_with(char::is_whitespace)).map_or(line, str::trim_start);
    (!line.is_empty() && !line.starts_with('#')).then_some(text)
}

fn assignment(line: &str) -> Result<(String, String), String> {
    let (name, value) = line.split_once('=').ok_or("there is no = in it; a line is NAME=VALUE")?;
    let name = name.trim_end();
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '\0') {
        // It may be a line of a secret.
        return Err("what stands before the = is no name of a variable".to_owned());
    }
    let value = value.trim_start();
    let value = match value.chars().next() {
        Some('"') => double_quoted(&value[1..])?,
        Some('\'') => {
            let (inside, rest) = value[1..].split_once('\'').ok_or("the quote is not closed")?;
            nothing_more(rest)?;
            inside.to_owned()
        }
        _ => value.split_once(" #").map_or(value, |(value, _)| value).trim_end().to_owned(),
    };
    if value.contains('\0') {
        return Err("a value cannot contain a NUL byte".to_owned());
    }
    Ok((name.to_owned(), value))
}

fn double_quoted(text: &str) -> Result<String, String> {
    let mut value = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                nothing_more(chars.as_str())?;
                return Ok(value);
            }
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some(c @ ('"' | '\\' | '$')) => value.push(c),
                Some(c) => value.extend(['\\', c]),
                None => break,
            },
            c => value.push(c),
        }
    }
    Err("the quote is not closed".to_owned())
}

fn nothing_more(rest: &str) -> Result<(), String> {
    let rest = rest.trim_start();
    if rest.is_empty() || rest.starts_with('#') { Ok(()) } else { Err("something stands behind the quoted value".to_owned()) }
}

/// An assignment, in VS Code's way.
fn as_vs_code(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_at(outside_quotes(line, &['=', ':'])?);
    let value = value[1..].trim();
    let value = outside_quotes(value, &['#']).map_or(value, |comment| value[..comment].trim());
    let name = name.trim();
    (!name.is_empty()).then(|| (name.to_owned(), unquoted(value)))
}

fn unquoted(value: &str) -> String {
    for quote in ['"', '\'', '`'] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return if quote == '"' { inner.replace("\\n", "\n").replace("\\r", "\r") } else { inner.to_owned() };
        }
    }
    value.to_owned()
}

/// The offset of the first of `wanted` that stands in no quotes.
fn outside_quotes(text: &str, wanted: &[char]) -> Option<usize> {
    let mut open = None;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match open {
            Some(quote) if c == quote && before != '\\' => open = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'' | '`') => open = Some(c),
            None if wanted.contains(&c) => return Some(at),
            None => {}
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn a_clients_file_is_read_as_vs_code_reads_it() {
        let text = "# a comment\r\nA=1\nexport B = two words # not this\nC: \"x # \\\"y\\\" \\n\"\nD='#\\n'\nE=\nF=\"\nno pair\n=x\nA=2\n";
        let wanted = [("A", "1"), ("B", "two words"), ("C", "x # \\\"y\\\" \n"), ("D", "#\\n"), ("E", ""), ("F", "\""), ("A", "2")];
        assert_eq!(variables(text), own(&wanted));
    }

    #[test]
    fn what_stands_behind_export_may_be_a_comment() {
        assert_eq!(
            read("export #x=1\nexport # nothing\nexport\tA=1\nexport=2\nexported=3"),
            Ok(own(&[("A", "1"), ("export", "2"), ("exported", "3")]))
        );
        assert_eq!(variables("export #x=1\nexport\tA=1\n"), own(&[("#x", "1"), ("A", "1")]));
        assert!(read("export").unwrap_err().message.contains("no = in it"));
    }

    #[test]
    fn lines_are_names_and_values() {
        let text = "# comment\n\nA=1\nexport B = two words # comment\nC='a # $b\\n'\nD=\"a\\n\\\"b\\\" # \\$\" # comment\nE=\r\nF=a=b#c\n";
        let wanted = own(&[("A", "1"), ("B", "two words"), ("C", "a # $b\\n"), ("D", "a\n\"b\" # $"), ("E", ""), ("F", "a=b#c")]);
        assert_eq!(read(text).unwrap(), wanted);
    }

    #[test]
    fn a_line_that_is_none_is_told_without_its_value() {
        for (text, line, word) in [
            ("A=1\nnonsense", 2, "no = in it"),
            ("=x", 1, "no name"),
            ("a b=x", 1, "no name"),
            ("A=\"x", 1, "not closed"),
            ("A='x", 1, "not closed"),
            ("A='x' y", 1, "behind"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.at.line == line && problem.message.contains(word), "{text}: {problem:?}");
        }
    }
}
