use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::account::User;
use super::environment::Environment;
use crate::judge;
use crate::words::{Digest, ServerName, printable};

/// Which of our environment a server is given, before its own entries are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnvMode {
    /// What the MCP SDKs' clients pass on: HOME, LOGNAME, PATH, SHELL, TERM, USER, and of these none
    /// whose value is a shell function (`getDefaultEnvironment` of the TypeScript SDK).
    #[default]
    Sdk,
    /// All of it.
    Inherit,
    /// Nothing.
    Clean,
}

/// What a server's stdin, stdout and stderr are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StdioKind {
    /// Pipes, as from Python, Go, Rust and a shell.
    #[default]
    Pipe,
    /// Unix stream sockets, as from Node, and so from most editors.
    Socketpair,
}

/// A server, as it is to be launched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchSpec {
    /// A path (anything with a slash in it), or a name to look for on the server's PATH.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Which of our environment it gets.
    pub env_mode: EnvMode,
    /// Its own entries, which win.
    pub env: Vec<(String, String)>,
    /// Its working directory; `None` for ours.
    pub cwd: Option<PathBuf>,
    /// What it is connected by.
    pub stdio: StdioKind,
    /// What becomes of its descendants that outlive it.
    pub leftovers: Leftovers,
    /// What it may take.
    pub resources: Resources,
    /// As whom it runs; `None` for us.
    pub user: Option<User>,
    /// Whether no program that it executes gives it privileges (setuid, file capabilities).
    pub no_new_privs: bool,
    /// Whether it gets a directory of its own for temporary files, which is removed after the probe.
    pub private_tmp: bool,
    /// Whether it gets a control group of its own, where one can be made.
    pub cgroup: bool,
}

/// What becomes of descendants that outlive a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leftovers {
    /// They are ended.
    #[default]
    Kill,
    /// They are told of, and left alone: somebody wants them.
    Report,
}

/// What a server and its descendants may take; `None` for as much as they like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Resident memory of all its processes together, in bytes.
    pub memory: Option<u64>,
    /// Processes, itself included.
    pub processes: Option<u64>,
    /// Open descriptors of each process.
    pub open_files: Option<u64>,
    /// CPU time of all its processes together, in one launch.
    pub cpu: Option<Duration>,
    /// The largest file that each process may write, in bytes.
    pub file_size: Option<u64>,
}

impl EnvMode {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EnvMode::Sdk => "sdk",
            EnvMode::Inherit => "inherit",
            EnvMode::Clean => "clean",
        }
    }
}

impl StdioKind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            StdioKind::Pipe => "pipe",
            StdioKind::Socketpair => "socketpair",
        }
    }
}

impl Leftovers {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Leftovers::Kill => "kill",
            Leftovers::Report => "report",
        }
    }
}

impl LaunchSpec {
    /// The names of the variables that the server gets, sorted; never their values.
    #[must_use]
    pub fn environment_names(&self) -> Vec<String> {
        Environment::of(self).names()
    }

    /// What its lists may depend on of what it is configured with, without a value: the fingerprint has
    /// 20 bits, enough to tell that a value is another one and too few to find a good secret by trying.
    /// It is keyed with the server's name, so that the same secret looks different elsewhere.
    #[must_use]
    pub fn configured(&self, name: &ServerName) -> judge::Environment {
        // The last entry of a name is the one that counts.
        let own: BTreeMap<&str, &str> = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let pieces = ["stdiowatch environment", name.as_str()].into_iter().chain(own.iter().flat_map(|(name, value)| [*name, *value]));
        let digest = Digest::of_pieces(pieces.map(str::as_bytes));
        judge::Environment {
            mode: self.env_mode.as_str().to_owned(),
            names: own.keys().map(|name| printable(name, 100)).collect(),
            fingerprint: digest.to_string()[..5].to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_is_told_without_its_values() {
        let name = |name: &str| ServerName::new(name).unwrap();
        let spec = |value: &str| LaunchSpec {
            env: vec![("B".into(), "old".into()), ("A".into(), "x".into()), ("B".into(), value.into())],
            ..LaunchSpec::default()
        };
        let seen = spec("secret").configured(&name("a"));
        assert_eq!((seen.mode.as_str(), seen.names.clone(), seen.fingerprint.len()), ("sdk", vec!["A".to_owned(), "B".to_owned()], 5));
        assert_eq!(spec("secret").configured(&name("a")), seen);
        assert_ne!(spec("other").configured(&name("a")).fingerprint, seen.fingerprint);
        assert_ne!(spec("secret").configured(&name("b")).fingerprint, seen.fingerprint);
    }
}
