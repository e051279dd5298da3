//! From a command to the file that is executed, or to the mistake in it.
//!
//! The kernel says ENOENT to a missing file, a missing interpreter and a missing directory alike, so
//! each is looked at by itself: before the launch what costs little and what the kernel would not
//! tell (`#!/usr/bin/env NAME`), after a refusal the rest. Where the two differ the kernel is right.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, Stat, StatVfsMountFlags};
use rustix::io::Errno;

use super::binaries::Binaries;
use super::format::{self, HEAD};
use super::spec::LaunchSpec;
use crate::probe::LaunchError;
use crate::words::printable;

/// How deep `#!` interpreters that are scripts themselves go (`exec_binprm`, fs/exec.c).
const NESTING: u32 = 5;

/// The longest name or path that is quoted in a message, in characters.
const QUOTED: usize = 240;

/// Where a server runs: what a relative path in its command, its PATH or a `#!` line starts from.
pub(super) struct Place<'a> {
    dir: BorrowedFd<'a>,
    cwd: Option<&'a Path>,
    path: &'a OsStr,
    binaries: &'a Binaries,
}

/// Opens a working directory, and sees that it may be entered.
pub(super) fn open_cwd(cwd: &Path) -> Result<OwnedFd, LaunchError> {
    let permission = |what| LaunchError::Permission { path: cwd.to_owned(), what };
    let opened = rustix::fs::open(cwd, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let dir = opened.map_err(|errno| match errno {
        Errno::NOENT => LaunchError::CwdMissing { cwd: cwd.to_owned(), not_a_directory: false },
        // Also where a file stands on the way: then there is nothing at the path itself.
        Errno::NOTDIR => LaunchError::CwdMissing { cwd: cwd.to_owned(), not_a_directory: rustix::fs::stat(cwd).is_ok() },
        Errno::ACCESS => permission("a directory on the way to the working directory may not be searched".into()),
        errno => failed(errno),
    })?;
    match rustix::fs::accessat(&dir, ".", Access::EXEC_OK, AtFlags::EACCESS) {
        Err(Errno::ACCESS) => Err(permission("the working directory may not be entered".into())),
        Ok(()) | Err(_) => Ok(dir),
    }
}

impl<'a> Place<'a> {
    /// In `cwd`, opened as `dir`, or in our own directory; with the server's PATH.
    pub(super) fn new(cwd: Option<(&'a Path, &'a OwnedFd)>, path: &'a OsStr, binaries: &'a Binaries) -> Place<'a> {
        let dir = cwd.map_or(CWD, |(_, dir)| dir.as_fd());
        Place { dir, cwd: cwd.map(|(cwd, _)| cwd), path, binaries }
    }

    /// The file of `command`: a path with a slash in it, to be executed from this place.
    pub(super) fn resolve(&self, command: &str) -> Result<PathBuf, LaunchError> {
        if !command.contains('/') {
            return self.search(command);
        }
        // Whether it may be executed the launch will tell, but for a script, of which the interpreter's
        // absence must not be told first.
        let file = Path::new(command);
        match self.script(file) {
            None => Ok(file.to_owned()),
            Some(obstacle) => Err(match self.executable(file) {
                Ok(()) => obstacle,
                Err(errno) => self.explain(errno, command, file),
            }),
        }
    }

    /// Along the PATH, as `execvp` goes: what may not be executed, or whose interpreter is missing, is
    /// passed over for a later one, and remembered. Directories of the command's name are none.
    fn search(&self, command: &str) -> Result<PathBuf, LaunchError> {
        let mut remembered = None;
        for file in self.candidates(OsStr::new(command)) {
            let obstacle = match self.executable(&file) {
                Ok(()) => match self.script(&file) {
                    None => return Ok(file),
                    obstacle => obstacle,
                },
                // Where a directory of the PATH may not be searched, nothing is known to be there.
                Err(Errno::ACCESS) if rustix::fs::statat(self.dir, &file, AtFlags::empty()).is_ok_and(|stat| is_file(&stat)) => {
                    Some(self.forbidden(&file))
                }
                Err(_) => None,
            };
            let better = matches!(obstacle, Some(LaunchError::InterpreterMissing { .. }));
            if remembered.is_none() || (better && matches!(remembered, Some(LaunchError::Permission { .. }))) {
                remembered = obstacle.or(remembered);
            }
        }
        Err(remembered.unwrap_or_else(|| self.not_found(command)))
    }

    /// Every place on the PATH for `name`; an empty entry is the working directory (execvp(3)).
    fn candidates(&self, name: &OsStr) -> impl Iterator<Item = PathBuf> {
        let name = if name.is_empty() { None } else { Some(name.to_owned()) };
        let entries = self.path.as_bytes().split(|b| *b == b':');
        entries.filter_map(move |entry| {
            let dir = if entry.is_empty() { b"." } else { entry };
            Some(Path::new(OsStr::from_bytes(dir)).join(name.as_ref()?))
        })
    }

    /// Whether we may execute `file`; a directory or a device is refused as by `execve`.
    fn executable(&self, file: &Path) -> Result<(), Errno> {
        rustix::fs::accessat(self.dir, file, Access::EXEC_OK, AtFlags::EACCESS)?;
        if is_file(&rustix::fs::statat(self.dir, file, AtFlags::empty())?) { Ok(()) } else { Err(Errno::ACCESS) }
    }

    /// The interpreter that `file`'s `#!` line names and that is not there, if any.
    fn script(&self, file: &Path) -> Option<LaunchError> {
        let stat = rustix::fs::statat(self.dir, file, AtFlags::empty()).ok()?;
        // What is no file is not even opened: that alone does something to a device.
        if !is_file(&stat) || self.binaries.has(&stat) {
            return None;
        }
        let head = self.head::<HEAD>(file)?;
        if !head.starts_with(b"#!") {
            self.binaries.insert(&stat);
        }
        self.interpreter(file, &head, 0).map(|obstacle| obstacle.of(self.shown(file)))
    }

    /// What is wrong with the interpreter that `head` asks for, or with that one's own.
    fn interpreter(&self, file: &Path, head: &[u8], depth: u32) -> Option<Obstacle> {
        let line = format::shebang(head)?;
        let interpreter = Path::new(line.interpreter);
        match self.executable(interpreter) {
            Ok(()) => {}
            Err(Errno::NOENT | Errno::NOTDIR) => return Some(Obstacle::Missing(quoted(line.interpreter))),
            Err(Errno::ACCESS) => return Some(Obstacle::Forbidden(self.shown(interpreter))),
            Err(_) => return None,
        }
        if let Some(name) = line.env_program() {
            return (!self.exists(name)).then(|| Obstacle::Missing(quoted(name)));
        }
        if depth == NESTING || interpreter == file {
            return None;
        }
        self.interpreter(interpreter, &self.head::<HEAD>(interpreter)?, depth + 1)
    }

    /// Whether `env` would find `name`.
    fn exists(&self, name: &OsStr) -> bool {
        let there = |file: &Path| rustix::fs::accessat(self.dir, file, Access::EXISTS, AtFlags::empty()).is_ok();
        if name.as_bytes().contains(&b'/') {
            return there(Path::new(name));
        }
        self.candidates(name).any(|file| there(&file))
    }

    /// The first bytes of `file`, where it may be read (it need not be, to be executed).
    fn head<const N: usize>(&self, file: &Path) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let open = rustix::fs::openat(self.dir, file, flags, Mode::empty()).ok()?;
        let mut head = [0; N];
        let len = rustix::io::read(&open, &mut head).ok()?;
        Some(head[..len].to_vec())
    }

    /// Whether the kernel will find no format that `file` is in. Only where it cannot be asked.
    pub(super) fn is_no_program(&self, file: &Path) -> bool {
        let Some(head) = self.head::<HEAD>(file) else { return false };
        let misc = || std::fs::read_dir("/proc/sys/fs/binfmt_misc").is_ok_and(|entries| entries.count() > 2);
        !head.starts_with(b"\x7fELF") && format::shebang(&head).is_none() && !misc()
    }

    /// Why `file`, the one that `command` was resolved to, could not be executed, as far as that can be said without trying.
    pub(super) fn refusal(&self, command: &str, file: &Path) -> Option<LaunchError> {
        match self.executable(file) {
            Err(errno) => Some(self.explain(errno, command, file)),
            Ok(()) => self.is_no_program(file).then(|| self.explain(Errno::NOEXEC, command, file)),
        }
    }

    /// Why `file`, the one that `command` was resolved to, cannot be executed: the kernel said `errno`.
    pub(super) fn explain(&self, errno: Errno, command: &str, file: &Path) -> LaunchError {
        match errno {
            Errno::NOENT | Errno::NOTDIR => self.missing(command, file),
            Errno::ACCESS | Errno::PERM => self.forbidden(file),
            Errno::NOEXEC => LaunchError::ExecFormat { program: self.shown(file) },
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => resources(errno),
            errno => failed(errno),
        }
    }

    /// ENOENT: the file, its interpreter, or the loader that it, or its interpreter, is linked against.
    fn missing(&self, command: &str, file: &Path) -> LaunchError {
        if rustix::fs::statat(self.dir, file, AtFlags::empty()).is_err() {
            return self.not_found(command);
        }
        if let Some(obstacle) = self.script(file) {
            return obstacle;
        }
        let mut last = file.to_owned();
        for _ in 0..NESTING {
            let Some(head) = self.head::<HEAD>(&last) else { break };
            let Some(line) = format::shebang(&head) else { break };
            last = PathBuf::from(line.interpreter);
        }
        // Linkers put the name of the loader right behind the headers.
        let head = self.head::<4096>(&last).unwrap_or_default();
        match format::elf_loader(&head) {
            Some(loader) => LaunchError::InterpreterMissing { program: self.shown(file), interpreter: quoted(loader) },
            None => failed(Errno::NOENT),
        }
    }

    /// EACCES: what is not allowed.
    fn forbidden(&self, file: &Path) -> LaunchError {
        let what = match rustix::fs::statat(self.dir, file, AtFlags::empty()) {
            Err(_) => "a directory on the way may not be searched",
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => "is a directory",
            Ok(stat) if !is_file(&stat) => "is no regular file",
            Ok(stat) if stat.st_mode & 0o111 == 0 => "has no execute permission",
            Ok(_) if self.mounted_noexec(file) => "is on a filesystem that is mounted noexec",
            Ok(_) => "may not be executed by this user",
        };
        LaunchError::Permission { path: self.shown(file), what: what.into() }
    }

    fn mounted_noexec(&self, file: &Path) -> bool {
        let open = rustix::fs::openat(self.dir, file, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let flags = open.and_then(rustix::fs::fstatvfs).map(|fs| fs.f_flag);
        flags.is_ok_and(|flags| flags.contains(StatVfsMountFlags::NOEXEC))
    }

    fn not_found(&self, command: &str) -> LaunchError {
        let searched = (!command.contains('/')).then(|| printable(&self.path.to_string_lossy(), QUOTED * 8));
        LaunchError::NotFound { command: printable(command, QUOTED), searched }
    }

    /// A path for people: from the working directory, where it is relative.
    fn shown(&self, file: &Path) -> PathBuf {
        self.cwd.map_or_else(|| file.to_owned(), |cwd| cwd.join(file))
    }
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// What stands between a script and its interpreter.
enum Obstacle {
    Missing(String),
    Forbidden(PathBuf),
}

impl Obstacle {
    fn of(self, program: PathBuf) -> LaunchError {
        match self {
            Obstacle::Missing(interpreter) => LaunchError::InterpreterMissing { program, interpreter },
            Obstacle::Forbidden(path) => LaunchError::Permission { path, what: "the interpreter may not be executed".into() },
        }
    }
}

/// An error that is the server's or its configuration's.
pub(super) fn failed(errno: Errno) -> LaunchError {
    LaunchError::Failed { error: words_of(errno) }
}

/// The launched process could not become what it is to be.
pub(super) fn not_allowed(errno: Errno, spec: &LaunchSpec) -> LaunchError {
    let user = spec.user.as_ref().map_or_else(|| "with no_new_privs".to_owned(), |user| format!("as {user}"));
    let needs = if errno == Errno::PERM { "; stdiowatch needs CAP_SETUID and CAP_SETGID for that, as root has them" } else { "" };
    LaunchError::Failed { error: format!("{}: it could not be run {user}{needs}", words_of(errno)) }
}

/// An error that is ours.
pub(super) fn resources(errno: Errno) -> LaunchError {
    LaunchError::Resources { error: words_of(errno) }
}

/// An error with its name, which is what people search for.
fn words_of(errno: Errno) -> String {
    let known = nix::errno::Errno::from_raw(errno.raw_os_error());
    format!("{known:?}: {}", known.desc())
}

fn quoted(name: &OsStr) -> String {
    printable(&name.to_string_lossy(), QUOTED)
}

#[cfg(test)]
mod tests;
