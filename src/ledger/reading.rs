//! What came of reading the configuration.

use serde::Serialize;

use crate::words::Moment;

/// An entry of a client's file that is not watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unwatched {
    /// Its name, as the file has it: neither escaped nor bounded.
    pub name: String,
    /// The file, for people.
    pub file: String,
    /// Where it stands in there, from 1.
    pub line: u32,
    /// The same.
    pub column: u32,
    /// Why, in a lower-case sentence. It may quote what the entry holds.
    pub why: String,
    /// It is wrong, so that no client can use it either; and not only remote, switched off or of another kind.
    pub broken: bool,
}

/// What came of reading the configuration, as far as it is to be seen afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The entries that are not watched, of the configuration that is used.
    pub unwatched: Vec<Unwatched>,
    /// When another one was refused since, and why.
    pub refused: Option<(Moment, String)>,
}

impl Reading {
    /// Why the server `name` is not watched, in a sentence that quotes nothing of the configuration.
    #[must_use]
    pub fn why_nobody(&self, name: &str) -> &'static str {
        match self.unwatched.iter().find(|entry| entry.name == name) {
            None => "no server has this name",
            Some(entry) if entry.broken => "this server is in the configuration, and is broken: `stdiowatch config check` says why",
            Some(_) => "this server is in the configuration, and is switched off, remote or of another kind: `stdiowatch config check` says which",
        }
    }

    /// How many entries are broken, or are not.
    #[must_use]
    pub fn count(&self, broken: bool) -> usize {
        self.unwatched.iter().filter(|entry| entry.broken == broken).count()
    }
}
