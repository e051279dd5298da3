//! What the outside tells the machine of a process: how it started, ended, and what it left.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::micros;
use crate::words::Redactor;

/// Why a command could not be launched.
///
/// The kernel answers `ENOENT` to three different mistakes, so the program, its interpreter and the
/// working directory are looked at before the launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LaunchError {
    /// The command is nowhere on the PATH that the server would get, or not at its path.
    NotFound {
        /// The command as it was given.
        command: String,
        /// The PATH that was searched; `None` when the command names a path itself.
        searched: Option<String>,
    },
    /// The file is there; the interpreter that its `#!` line names is not.
    InterpreterMissing {
        /// The file.
        program: PathBuf,
        /// What its `#!` line names, as bytes escaped for people (it may end in a `\r`).
        interpreter: String,
    },
    /// The working directory does not exist, or is no directory.
    CwdMissing {
        /// The directory.
        cwd: PathBuf,
        /// It exists, and is something else.
        not_a_directory: bool,
    },
    /// The file is not executable, or we may not reach or run it.
    Permission {
        /// The file, or the directory that may not be entered.
        path: PathBuf,
        /// What is not allowed, in a few words.
        what: Cow<'static, str>,
    },
    /// Neither an executable format nor a `#!` line.
    ExecFormat {
        /// The file.
        program: PathBuf,
    },
    /// Any other error that is the server's or its configuration's (`E2BIG`, `ELOOP`, `ETXTBSY`…).
    Failed {
        /// The error, in words, with its name.
        error: String,
    },
    /// Our own trouble: no descriptors, no memory, no processes (`EMFILE`, `ENFILE`, `ENOMEM`, `EAGAIN`).
    Resources {
        /// The error, in words, with its name.
        error: String,
    },
}

impl LaunchError {
    /// The same without what `redactor` knows.
    #[must_use]
    pub fn masked(self, redactor: &Redactor) -> LaunchError {
        let text = |text: String| masked(&text, redactor);
        let path = |path: PathBuf| PathBuf::from(text(path.to_string_lossy().into_owned()));
        match self {
            LaunchError::NotFound { command, searched } => LaunchError::NotFound { command: text(command), searched: searched.map(text) },
            LaunchError::InterpreterMissing { program, interpreter } => {
                LaunchError::InterpreterMissing { program: path(program), interpreter: text(interpreter) }
            }
            LaunchError::CwdMissing { cwd, not_a_directory } => LaunchError::CwdMissing { cwd: path(cwd), not_a_directory },
            LaunchError::Permission { path: file, what } => LaunchError::Permission { path: path(file), what },
            LaunchError::ExecFormat { program } => LaunchError::ExecFormat { program: path(program) },
            LaunchError::Failed { error } => LaunchError::Failed { error: text(error) },
            LaunchError::Resources { error } => LaunchError::Resources { error: text(error) },
        }
    }
}

/// A text that was cut already may end in half a secret.
fn masked(text: &str, redactor: &Redactor) -> String {
    let whole = text.strip_suffix('…').unwrap_or(text);
    let half = if whole.len() < text.len() { redactor.open_end(whole.as_bytes()) } else { 0 };
    let mut said = redactor.redact_str(whole.get(..whole.len() - half).unwrap_or_default()).into_owned();
    said.push_str(&text[whole.len()..]);
    said
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// A process that outlived the one that was launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Its pid.
    pub pid: u32,
    /// Its name (`comm`), escaped.
    pub name: String,
}

/// What a command that runs a container (`docker run …`) asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerRun {
    /// The engine: `docker`, `podman` or `nerdctl`.
    pub engine: String,
    /// `-i`: our end of stdin reaches the server.
    pub interactive: bool,
    /// `-t`: the server's streams are a terminal.
    pub tty: bool,
    /// `-d`: the command ends as soon as the container runs.
    pub detached: bool,
    /// `--rm`: the container removes itself when it ends.
    pub removes: bool,
    /// `--name`
    pub name: Option<String>,
}

/// A container that outlived the client that ran it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftContainer {
    /// Its id.
    pub id: String,
    /// Its name, escaped.
    pub name: String,
    /// What the engine says of its state, escaped.
    pub state: String,
    /// It is gone now.
    pub removed: bool,
}

/// What a server may have too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// Resident memory of all its processes together, in bytes.
    Memory,
    /// Processes, the launched one included.
    Processes,
    /// User and system time of all its processes together, in milliseconds.
    Cpu,
    /// The size of a file, in bytes: what it is ended for by the kernel, and never told by us.
    FileSize,
}

/// A server has more of something than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excess {
    /// Of what.
    pub of: Taken,
    /// What it had when it was looked at.
    pub figure: u64,
    /// What it may have.
    pub limit: u64,
    /// How many processes it was then, the launched one included.
    pub processes: u64,
}

/// What was found after the launched process was gone, and ended unless it is spared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    /// Descendants in the launched process' own group.
    pub in_group: Vec<Leftover>,
    /// Descendants outside of it (`setsid`, a double fork).
    pub escaped: Vec<Leftover>,
    /// Descendants that were not dead when the sweep gave up.
    pub survivors: Vec<Leftover>,
    /// They were left alone, as the configuration wants it.
    #[serde(default)]
    pub spared: bool,
    /// Containers, which are no descendants.
    #[serde(default)]
    pub containers: Vec<LeftContainer>,
    /// What there was next to nothing left of, where the launched process did not end by itself and well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scarce: Vec<Scarcity>,
}

/// Something that a server shares with others, stdiowatch among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shared {
    /// The processes and threads that its user may have (`RLIMIT_NPROC`, as stdiowatch itself has it).
    UserTasks,
    /// Those that its cgroup may have, or one around that (`pids.max`).
    CgroupTasks,
    /// Those that the host may have (`kernel.threads-max`, `kernel.pid_max`).
    HostTasks,
    /// The files that may be open on the host (`fs.file-max`).
    HostFiles,
}

/// How much there was left of something when a server and all that it had started were gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scarcity {
    /// Of what.
    pub of: Shared,
    /// How much there may be.
    pub limit: u64,
    /// How much more there could be.
    pub left: u64,
}

/// What the server used, its reaped descendants included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Peak resident memory of the launched process and its descendants, in bytes: the sum of each
    /// one's own peak as of the moment before stdin was closed. `None` when it ended before that, or was
    /// not looked at.
    pub max_rss: Option<u64>,
    /// User and system time.
    #[serde(with = "micros")]
    pub cpu: Duration,
    /// How many processes it was then, the launched one included.
    #[serde(default)]
    pub processes: usize,
    /// How long the one of its processes that waited longest was ready to run and had no core, up to
    /// the moment before stdin was closed. Only looked at when the probe was slow.
    #[serde(default, with = "micros")]
    pub queued: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_launch_holds_no_secret_and_no_half_of_one() {
        let redactor = Redactor::new([b"hunter2secret".as_slice()]);
        let of = |command: &str| LaunchError::NotFound { command: command.to_owned(), searched: Some(command.to_owned()) }.masked(&redactor);
        let is = |command: &str| LaunchError::NotFound { command: command.to_owned(), searched: Some(command.to_owned()) };
        assert_eq!(of("/a/hunter2secret/b"), is("/a/[redacted]/b"));
        assert_eq!(of("/a/hunter2s…"), is("/a/…"));
        assert_eq!(of("/a/hunter2s"), is("/a/hunter2s"));
        let cwd = LaunchError::CwdMissing { cwd: "/hunter2secret".into(), not_a_directory: true }.masked(&redactor);
        assert_eq!(cwd, LaunchError::CwdMissing { cwd: "/[redacted]".into(), not_a_directory: true });
    }
}
