//! `.env` files: lines `NAME=VALUE`, as Docker Compose and the dotenv libraries read them.

use super::tree::{Place, Problem};

/// Reads the lines of a `.env` file. `export` before a name, empty lines and comments are passed over.
/// In double quotes `\n`, `\r`, `\t`, `\"`, `\\` and `\$` are escapes; in single quotes nothing is; without quotes a
/// comment begins with ` #`. Nothing is expanded, and a value stands on one line.
///
/// # Errors
///
/// The first line that is none, with its place.
pub fn read(text: &str) -> Result<Vec<(String, String)>, Problem> {
    let mut variables = Vec::new();
    for (line, raw) in (1u32..).zip(text.lines()) {
        let trimmed = raw.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        variables.push(assignment(trimmed).map_err(|message| Problem { at: Place { line, column: 1 }, message })?);
    }
    Ok(variables)
}

fn assignment(line: &str) -> Result<(String, String), String> {
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_names_and_values() {
        let text = "# comment\n\nA=1\nexport B = two words # comment\nC='a # $b\\n'\nD=\"a\\n\\\"b\\\" # \\$\" # comment\nE=\r\nF=a=b#c\n";
        let own = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
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
