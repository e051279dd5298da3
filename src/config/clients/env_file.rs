//! Files that entries point at: `.env` files, and opencode's `{file:…}`.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use crate::outside::vault::open_file;
use crate::words::printable;

/// The largest of them, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The text of the file at `path`.
///
/// # Errors
///
/// What is wrong with it, in a sentence.
pub(super) fn text_of(path: &Path) -> Result<String, String> {
    let shown = printable(&path.to_string_lossy(), 200);
    let cannot = |error: std::io::Error| format!("cannot read {shown}: {error}");
    // A pipe or a device could be read for ever.
    if !fs::metadata(path).map_err(cannot)?.is_file() {
        return Err(format!("{shown} is no regular file"));
    }
    let mut bytes = Vec::new();
    open_file(path).map_err(cannot)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("{shown} is larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8"))
}

/// The variables of a `.env` file, in its order, as VS Code reads them (`parseEnvFile` in
/// `src/vs/base/common/envfile.ts`): a line each, `NAME=value` or `NAME: value`, `export` before it or
/// not, `#` begins a comment outside of quotes, quotes around the whole value are taken off, and `\n`
/// and `\r` mean something in double ones.
#[must_use]
pub fn variables(text: &str) -> Vec<(String, String)> {
    text.split(['\n', '\r']).filter_map(variable).collect()
}

fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let line = line.strip_prefix("export ").map_or(line, str::trim);
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

    #[test]
    fn a_file_is_read_as_vs_code_reads_it() {
        let text = "# a comment\r\nA=1\nexport B = two words # not this\nC: \"x # \\\"y\\\" \\n\"\nD='#\\n'\nE=\nF=\"\nno pair\n=x\nA=2\n";
        let wanted = [("A", "1"), ("B", "two words"), ("C", "x # \\\"y\\\" \n"), ("D", "#\\n"), ("E", ""), ("F", "\""), ("A", "2")];
        let found = variables(text);
        assert_eq!(found.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn what_is_no_file_is_told() {
        assert!(text_of(Path::new("/nowhere/at all")).unwrap_err().starts_with("cannot read /nowhere/at all: No such file"));
        assert_eq!(text_of(Path::new("/dev/zero")), Err("/dev/zero is no regular file".to_owned()));
    }
}
