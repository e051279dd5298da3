//! Floor 7: configuration files, ours and those of MCP clients, into servers to watch.

pub mod clients;
pub mod dotenv;
mod expand;
pub mod file;
mod keys;
mod kind;
mod load;
mod ours;
pub mod quantity;
mod read;
mod schema;
mod show;
mod text;
pub mod tree;
pub mod web;
pub mod yaml;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::running::Watched;
use tree::{Place, Problem};

pub use keys::{FILE, INTERVAL, LISTEN};
pub use kind::{Key, Keys, Kind, Names};
pub use load::{load, read};
pub use ours::call;
pub use read::known_code;
pub use schema::schema;
pub use show::show;
pub use text::Texts;

/// Everything that configuration files say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// Where to listen, `HOST:PORT`.
    pub listen: Option<String>,
    /// Where what is remembered is kept.
    pub state_dir: Option<PathBuf>,
    /// The web configuration: who may ask over HTTP. It has not been read.
    pub web_config: Option<PathBuf>,
    /// What is private is shown to everybody, or to nobody; to who has authenticated, where nothing is said.
    pub show_private: Option<bool>,
    /// The servers, in the order they are written; no name occurs twice.
    pub servers: Vec<Configured>,
    /// The entries that cannot be watched.
    pub skipped: Vec<Skipped>,
    /// Keys of clients' files that nobody reads, and what may have been meant.
    pub slips: Vec<FileProblem>,
    /// All files that were read, those with secrets and the lock files included, for watching.
    pub files: Vec<PathBuf>,
}

/// One server that can be watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Configured {
    /// The server.
    pub watched: Watched,
    /// The file that names it.
    pub file: PathBuf,
    /// Where it stands in there.
    pub at: Place,
    /// Where what it needs is named.
    pub places: Places,
}

/// Where a file names what a server needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Its command.
    pub command: Place,
    /// Its working directory; where it stands itself, if that is not said.
    pub cwd: Place,
    /// As whom it runs; where it stands itself, if that is not said.
    pub user: Place,
    /// Its lock file; where it stands itself, if there is none.
    pub lock: Place,
    /// How often it is probed, if that is said.
    pub interval: Option<Place>,
}

/// An entry that cannot be watched, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its name, as it is written: neither escaped nor bounded.
    pub name: String,
    /// The file that names it.
    pub file: PathBuf,
    /// Where it stands in there.
    pub at: Place,
    /// Why, in a lower-case sentence.
    pub why: String,
    /// It is wrong, and not only of another kind.
    pub broken: bool,
}

/// What is wrong, with its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// The file.
    pub file: PathBuf,
    /// What is wrong there.
    pub problem: Problem,
}

impl fmt::Display for FileProblem {
    /// `FILE:LINE:COLUMN: message`, or `FILE: message` where nothing of the file was read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.problem.at == file::NOWHERE {
            return write!(f, "{}: {}", shown(&self.file), self.problem.message);
        }
        write!(f, "{}:{}: {}", shown(&self.file), self.problem.at, self.problem.message)
    }
}

/// An environment: the value of a variable, if it is set.
pub type Env<'e> = &'e dyn Fn(&str) -> Option<String>;

/// A path for people.
fn shown(path: &Path) -> String {
    crate::words::printable(&path.to_string_lossy(), 300)
}

#[cfg(test)]
mod tests;
