//! What of a command line is likely to be a secret.

/// What a word of an option's name is, begins with or ends with whose value is a secret.
const WORDS: [&str; 3] = ["auth", "bearer", "pat"];
const BEGINNINGS: [&str; 3] = ["passw", "credential", "authoriz"];
const ENDINGS: [&str; 3] = ["key", "token", "secret"];
/// The last word of a name all the same where the value only tells of a secret.
const HARMLESS: [&str; 9] = ["file", "path", "dir", "limit", "limits", "url", "type", "id", "count"];

/// The values in a command line's arguments that should not surface: those of `--api-key=VALUE`,
/// `--token VALUE`, `API_KEY=VALUE`, `--header "Authorization: Bearer VALUE"`, and of the password in a URL.
pub(super) fn of_args(args: &[String]) -> Vec<&str> {
    let mut secrets = Vec::new();
    let mut before = "";
    for arg in args {
        let named = before.starts_with('-') && !before.contains('=') && !arg.starts_with('-') && is_secret(before);
        if named {
            secrets.push(arg.as_str());
        }
        secrets.extend(arg.split_once('=').filter(|(name, _)| is_secret(name)).map(|(_, value)| value));
        secrets.extend(arg.split_once(": ").filter(|(name, _)| is_secret(name)).map(|(_, value)| credentials(value)));
        secrets.extend(password(arg));
        before = arg;
    }
    secrets
}

/// Whether a name says that its value is a secret: by its words, so that `--keyboard` does not.
fn is_secret(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase();
    if name.len() > 60 || name.contains(|c: char| c.is_whitespace() || c == '/') {
        return false;
    }
    let words: Vec<&str> = name.split(['-', '_', '.', ':']).filter(|word| !word.is_empty()).collect();
    let says = |word: &str| WORDS.contains(&word) || BEGINNINGS.iter().any(|b| word.starts_with(b)) || ENDINGS.iter().any(|e| word.ends_with(e));
    words.iter().any(|word| says(word)) && !words.last().is_some_and(|last| HARMLESS.contains(last))
}

/// What follows the scheme in the value of a header.
fn credentials(value: &str) -> &str {
    value.trim().rsplit(' ').next().unwrap_or_default()
}

/// The password of `scheme://user:password@host`.
pub(super) fn password(arg: &str) -> Option<&str> {
    let (_, rest) = arg.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_likely_a_secret_is_found() {
        let found = |line: &[&str]| {
            let args: Vec<String> = line.iter().map(|arg| (*arg).to_owned()).collect();
            of_args(&args).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        for (line, wanted) in [
            (&["-y", "pkg", "--api-key=abcd"][..], &["abcd"][..]),
            (&["--api-key", "abcd", "more"], &["abcd"]),
            (&["--accessToken", "abcd"], &["abcd"]),
            (&["--access-token", "abcd"], &["abcd"]),
            (&["--password=p", "--auth-token=q"], &["p", "q"]),
            (&["run", "-e", "GITHUB_TOKEN=ghp_1", "-e", "DEBUG=1"], &["ghp_1"]),
            (&["--header", "Authorization: Bearer abcd"], &["abcd"]),
            (&["postgres://user:hunter2@db/x", "https://a.b/c@d"], &["hunter2"]),
            (&["--token-limit=1000", "--key-file", "/run/k", "--keyboard=de", "--token", "--verbose"], &[]),
            (&["--path=/a/b", "--monkey=x"], &["x"]),
        ] {
            assert_eq!(found(line), wanted, "{line:?}");
        }
    }
}
