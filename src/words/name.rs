use std::fmt;
use std::sync::Arc;

/// The longest server name, in bytes.
const MAX_LEN: usize = 100;

/// The unique name of a configured server: the value of the `server` label, and a path segment.
///
/// 1 to 100 bytes, no control or invisible characters and no `/`, so that it reads as one thing on
/// a page, in a path and in a terminal. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

/// Why a text is no server name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing in it.
    #[error("a server name may not be empty")]
    Empty,
    /// Longer than 100 bytes.
    #[error("a server name may be {MAX_LEN} bytes long at the most, this one has {0}")]
    TooLong(usize),
    /// A character that would not show, or a slash.
    #[error("a server name may not contain {0:?}")]
    Character(char),
}

impl ServerName {
    /// Checks `text` and takes it as a name.
    ///
    /// # Errors
    ///
    /// See [`NameError`].
    pub fn new(text: &str) -> Result<ServerName, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > MAX_LEN {
            return Err(NameError::TooLong(text.len()));
        }
        match text.chars().find(|c| *c == '/' || !super::is_printable(*c)) {
            Some(c) => Err(NameError::Character(c)),
            None => Ok(ServerName(text.into())),
        }
    }

    /// A name for a server that was given as a command: the program's own name, without its
    /// directory, and without what a name may not hold.
    #[must_use]
    pub fn of_command(command: &str) -> ServerName {
        let base = command.rsplit('/').find(|part| !part.is_empty()).unwrap_or("server");
        let mut name = String::new();
        for c in base.chars().filter(|c| super::is_printable(*c)) {
            if name.len() + c.len_utf8() > MAX_LEN {
                break;
            }
            name.push(c);
        }
        if name.is_empty() {
            name.push_str("server");
        }
        ServerName(name.into())
    }

    /// The same, for a command that may be an interpreter or a launcher: then what it runs names the
    /// server, `server.py` of `python3 server.py` and `server-everything` of `npx -y @x/server-everything@1`.
    #[must_use]
    pub fn of_command_line(command: &str, args: &[String]) -> ServerName {
        const RUNNERS: [&str; 15] =
            ["python", "python3", "node", "deno", "bun", "ruby", "php", "perl", "sh", "bash", "npx", "bunx", "pnpx", "uvx", "npm"];
        let base = command.rsplit('/').next().unwrap_or(command);
        let named = args.iter().find(|arg| !arg.starts_with('-') && !matches!(arg.as_str(), "run" | "exec" | "x"));
        let is_script = args.first().is_some_and(|arg| matches!(arg.as_str(), "-c" | "-e" | "--eval" | "-p"));
        match named {
            Some(named) if RUNNERS.contains(&base) && !is_script => {
                let last = named.rsplit('/').next().unwrap_or(named);
                ServerName::of_command(last.split_once('@').map_or(last, |(name, _)| name))
            }
            _ => ServerName::of_command(command),
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        assert!(ServerName::new("files").is_ok());
        assert!(ServerName::new("my files, 日本 \"quoted\"").is_ok());
        assert_eq!(ServerName::new(""), Err(NameError::Empty));
        assert_eq!(ServerName::new("a/b"), Err(NameError::Character('/')));
        assert_eq!(ServerName::new("a\nb"), Err(NameError::Character('\n')));
        assert_eq!(ServerName::new(&"x".repeat(101)), Err(NameError::TooLong(101)));
    }

    #[test]
    fn what_is_run_names_the_server() {
        let name = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            ServerName::of_command_line(&words[0], &words[1..]).as_str().to_owned()
        };
        for (line, wanted) in [
            ("python3 /srv/server.py --x", "server.py"),
            ("npx -y @modelcontextprotocol/server-everything@1.2", "server-everything"),
            ("npm exec some-server", "some-server"),
            ("/usr/bin/node dist/index.js", "index.js"),
            ("python -m my_server", "my_server"),
            ("sh -c x", "sh"),
            ("mcp-server-time --tz UTC", "mcp-server-time"),
        ] {
            assert_eq!(name(line), wanted, "{line}");
        }
    }

    #[test]
    fn a_command_names_itself() {
        assert_eq!(ServerName::of_command("/usr/bin/mcp-time").as_str(), "mcp-time");
        assert_eq!(ServerName::of_command("npx").as_str(), "npx");
        assert_eq!(ServerName::of_command("///").as_str(), "server");
        assert_eq!(ServerName::of_command("bin/\u{1b}").as_str(), "server");
        assert_eq!(ServerName::of_command(&"é".repeat(80)).as_str().len(), 100);
    }
}
