//! What a configuration takes for granted: files and programs that are not part of it.
//!
//! What may be there where the servers are to run is a warning; what makes `serve` and `check` refuse the configuration
//! wherever it is read is a mistake.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::lockfile::{self, shown};
use crate::config::tree::{Place, Problem};
use crate::config::{Configured, FileProblem};
use crate::judge::{LockError, LockFile};
use crate::outside::process::{User, obstacle};
use crate::outside::vault::read_file;
use crate::probe::LaunchError;
use crate::words::printable;

/// The longest path that is quoted in a message, in characters.
const QUOTED: usize = 300;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What may be otherwise elsewhere.
    pub(super) warnings: Vec<FileProblem>,
    /// What is wrong.
    pub(super) mistakes: Vec<FileProblem>,
    locks: BTreeMap<PathBuf, Lock>,
}

/// A lock file that was looked at.
#[derive(Debug)]
enum Lock {
    Missing,
    Unreadable(String),
    Broken,
    Read(LockFile),
}

impl Found {
    /// Looks at what a server needs.
    pub(super) fn look(&mut self, server: &Configured) {
        let spec = &server.watched.spec;
        if let Some(obstacle) = obstacle(spec) {
            // Who runs it may do what we may not, and the other way round.
            let is_about_us = spec.user.is_some() && matches!(obstacle, LaunchError::Permission { .. });
            let is_of_cwd = match &obstacle {
                LaunchError::CwdMissing { .. } => true,
                LaunchError::Permission { path, .. } => spec.cwd.as_ref() == Some(path),
                LaunchError::NotFound { .. }
                | LaunchError::InterpreterMissing { .. }
                | LaunchError::ExecFormat { .. }
                | LaunchError::Failed { .. }
                | LaunchError::Resources { .. } => false,
            };
            if let Some(message) = told(&obstacle).filter(|_| !is_about_us) {
                let at = if is_of_cwd { server.places.cwd } else { server.places.command };
                self.warnings.push(problem(server, at, &server.watched.redactor().redact_str(&message)));
            }
        }
        if let Some(Err(why)) = spec.user.as_ref().map(User::look_up) {
            self.warnings.push(problem(server, server.places.user, &format!("`user`: {why} (on this host)")));
        }
        if let Some(path) = &server.watched.schema.lock {
            self.lock(server, path);
        }
    }

    fn lock(&mut self, server: &Configured, path: &Path) {
        if !self.locks.contains_key(path) {
            let lock = self.read(path);
            self.locks.insert(path.to_owned(), lock);
        }
        let (at, shown) = (server.places.lock, shown(path));
        match self.locks.get(path) {
            Some(Lock::Missing) => {
                let message = format!(
                    "there is no lock file {shown}, without which `serve` and `check` refuse to start; `stdiowatch lock --config FILE NAME` writes it"
                );
                self.warnings.push(problem(server, at, &message));
            }
            Some(Lock::Unreadable(why)) => self.warnings.push(problem(server, at, &format!("the lock file {shown} cannot be read: {why}"))),
            Some(Lock::Read(lock)) if !lock.servers.contains_key(&server.watched.name) => {
                self.mistakes.push(problem(server, at, &lockfile::says_nothing_of(path, &server.watched.name, lock)));
            }
            Some(Lock::Read(_) | Lock::Broken) | None => {}
        }
    }

    /// Reads a lock file; what is wrong inside of it has its place there.
    fn read(&mut self, path: &Path) -> Lock {
        let text = match read_file(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Lock::Missing,
            Err(error) => return Lock::Unreadable(error.to_string()),
        };
        match LockFile::parse(&text) {
            Ok(lock) => Lock::Read(lock),
            Err(LockError { line, column, message }) => {
                let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
                let at = Place { line: number(line), column: number(column) };
                self.mistakes.push(FileProblem { file: path.to_owned(), problem: Problem { at, message } });
                Lock::Broken
            }
        }
    }
}

fn problem(server: &Configured, at: Place, message: &str) -> FileProblem {
    FileProblem { file: server.file.clone(), problem: Problem { at, message: message.to_owned() } }
}

/// What would keep a server from being launched, in a sentence; nothing of our own trouble.
fn told(obstacle: &LaunchError) -> Option<String> {
    let path = |path: &Path| printable(&path.to_string_lossy(), QUOTED);
    Some(match obstacle {
        LaunchError::NotFound { command, searched: Some(searched) } => {
            format!("the command \"{command}\" is not on the PATH that the server would get here: {}", printable(searched, QUOTED))
        }
        LaunchError::NotFound { command, searched: None } => format!("there is no file \"{command}\" here"),
        LaunchError::InterpreterMissing { program, interpreter } => {
            format!("the interpreter \"{}\" of {} is missing here", printable(interpreter, QUOTED), path(program))
        }
        LaunchError::CwdMissing { cwd, not_a_directory: true } => format!("{} is no directory", path(cwd)),
        LaunchError::CwdMissing { cwd, not_a_directory: false } => format!("there is no directory {} here", path(cwd)),
        LaunchError::Permission { path: file, what } => format!("{} {what}", path(file)),
        LaunchError::ExecFormat { program } => format!("{} is no program, and has no #! line", path(program)),
        LaunchError::Failed { error } => printable(error, QUOTED),
        LaunchError::Resources { .. } => return None,
    })
}
