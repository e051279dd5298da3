//! `${NAME}` and `${NAME:-default}` in texts.

use super::Env;
use crate::words::printable;

/// Variables that are settings of a session and no secrets: masking them everywhere would garble
/// every path.
pub(super) const HARMLESS: [&str; 12] =
    ["HOME", "HOSTNAME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_RUNTIME_DIR"];

/// What became of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Expanded {
    /// The text with the values in it.
    pub(super) text: String,
    /// There was a variable in it.
    pub(super) varies: bool,
    /// The values that came from our environment and may be secrets.
    pub(super) secrets: Vec<String>,
}

/// Puts the values of variables into a text; `$$` becomes a dollar, and any other dollar stays one.
/// A default stands for a variable that is not set or is empty.
///
/// # Errors
///
/// In words: a variable that is not set and has no default, or something after `${` that is neither form.
pub(super) fn expand(text: &str, env: Env<'_>) -> Result<Expanded, String> {
    let mut out = Expanded::default();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(more) = after.strip_prefix('$') {
            out.text.push('$');
            rest = more;
        } else if let Some(inside) = after.strip_prefix('{') {
            let end = inside.find('}').ok_or("${ has no } after it; a dollar that is no variable is written $$")?;
            out.variable(&inside[..end], env)?;
            rest = &inside[end + 1..];
        } else {
            out.text.push('$');
            rest = after;
        }
    }
    out.text.push_str(rest);
    Ok(out)
}

impl Expanded {
    fn variable(&mut self, inside: &str, env: Env<'_>) -> Result<(), String> {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            let shown = printable(inside, 60);
            return Err(format!("${{{shown}}} is no variable; write ${{NAME}} or ${{NAME:-default}}, and $$ for a dollar"));
        }
        if default.is_some_and(|default| default.contains("${")) {
            return Err(format!("the default of ${{{name}}} may not hold another variable"));
        }
        self.varies = true;
        match (env(name), default) {
            (Some(value), default) if default.is_none() || !value.is_empty() => {
                self.text.push_str(&value);
                if !value.is_empty() && !HARMLESS.contains(&name) {
                    self.secrets.push(value);
                }
            }
            (_, Some(default)) => self.text.push_str(default),
            (_, None) => return Err(format!("the variable {name} is not set, and there is no default for it as in ${{{name}:-default}}")),
        }
        Ok(())
    }
}

/// What POSIX calls a name.
fn is_name(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    first && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "TOKEN" => Some("s3cret".to_owned()),
            "EMPTY" => Some(String::new()),
            "HOME" => Some("/home/me".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn variables_become_their_values() {
        for (text, wanted) in [
            ("", ""),
            ("plain", "plain"),
            ("a ${TOKEN} b ${TOKEN}", "a s3cret b s3cret"),
            ("${NONE:-else}", "else"),
            ("${EMPTY:-else}|${EMPTY}|${NONE:-}", "else||"),
            ("$$ $ $HOME $${TOKEN} $1 $", "$ $ $HOME ${TOKEN} $1 $"),
            ("${NONE:-a:-b}", "a:-b"),
        ] {
            assert_eq!(expand(text, &env).unwrap().text, wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_variable_is_refused() {
        for (text, word) in [
            ("${NONE}", "the variable NONE is not set"),
            ("${TOKEN", "no } after it"),
            ("${env:TOKEN}", "${env:TOKEN} is no variable"),
            ("${}", "no variable"),
            ("${TOKEN-x}", "no variable"),
            ("${1A}", "no variable"),
            ("${NONE:-${TOKEN}}", "another variable"),
        ] {
            let error = expand(text, &env).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn values_of_our_environment_may_be_secrets() {
        let secrets = |text| expand(text, &env).unwrap().secrets;
        assert_eq!(secrets("Bearer ${TOKEN}"), ["s3cret"]);
        assert!(secrets("${HOME}/x ${NONE:-8080} ${EMPTY}").is_empty());
        assert!(expand("${NONE:-8080}", &env).unwrap().varies && !expand("$$", &env).unwrap().varies);
    }
}
