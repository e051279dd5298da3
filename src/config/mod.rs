//! Floor 7: configuration files, ours and those of MCP clients, into servers to watch.

use std::fmt;
use std::path::PathBuf;

use self::tree::{Place, Problem};
use crate::running::Watched;

pub mod clients;
pub mod tree;

/// One server that can be watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Configured {
    /// The server.
    pub watched: Watched,
    /// The file that it stands in.
    pub file: PathBuf,
    /// Where its entry begins.
    pub at: Place,
}

/// An entry that cannot be watched, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its name, escaped.
    pub name: String,
    /// The file that it stands in.
    pub file: PathBuf,
    /// Where the reason stands.
    pub at: Place,
    /// The reason, as a lower-case sentence.
    pub why: String,
    /// It is wrong, and not only of another kind.
    pub broken: bool,
}

/// What is wrong, with its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// The file.
    pub file: PathBuf,
    /// What is wrong in it.
    pub problem: Problem,
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.problem.at, self.problem.message)
    }
}
