//! A container whose stdiowatch has been killed: removed by the guard.
//!
//! What it takes is all in the client, as long as that lives: its program, its environment, its
//! global flags and the mark on the label. So the guard reads it before it kills. A container whose
//! client had ended before is not found, as after `run -d`, or without `--rm` where the server ends in the
//! moment before the guard looks; nothing keeps a list of them.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::super::proc_fs;
use super::flags::{engine, read};
use super::{LABEL, line, look_words, remove_words};

/// The waits before looks: the client may have asked for it a moment before.
const LOOKS: [Duration; 3] = [Duration::ZERO, Duration::from_millis(200), Duration::from_millis(500)];
/// How long one run of an engine may take.
const MOST: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(10);

/// A container that is about to have no client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Orphan {
    engine: &'static str,
    program: PathBuf,
    globals: Vec<String>,
    mark: String,
    environment: Vec<(OsString, OsString)>,
    dir: PathBuf,
}

/// The container that the process `pid` is the client of, for the sidecar `id`.
pub(in super::super) fn orphan(pid: u32, id: &str) -> Option<Orphan> {
    let line = proc_fs::read(&format!("/proc/{pid}/cmdline")).ok()?;
    let (engine, script, globals, mark) = client(&line, id)?;
    // A script is named by its path; a program may be named by anything, and may have been replaced.
    let program = match script {
        Some(path) => PathBuf::from(path),
        None => std::fs::read_link(format!("/proc/{pid}/exe")).ok()?,
    };
    let environ = proc_fs::read(&format!("/proc/{pid}/environ")).ok()?;
    let entries = environ.split(|b| *b == 0).filter_map(|entry| {
        let equals = entry.iter().position(|b| *b == b'=').filter(|at| *at > 0)?;
        Some((OsStr::from_bytes(&entry[..equals]).to_owned(), OsStr::from_bytes(&entry[equals + 1..]).to_owned()))
    });
    let dir = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    Some(Orphan { engine, program, globals, mark, environment: entries.collect(), dir })
}

/// Reads a client's command line: the engine, the path if it is a script, its global flags, the mark.
fn client(line: &[u8], id: &str) -> Option<(&'static str, Option<String>, Vec<String>, String)> {
    let line = String::from_utf8_lossy(line);
    let mut words: Vec<String> = line.trim_end_matches('\0').split('\0').map(str::to_owned).collect();
    // A script's interpreter, and perhaps one argument of its own, come first.
    let at = words.iter().take(3).position(|word| engine(word).is_some())?;
    let args = words.split_off(at + 1);
    let program = words.pop()?;
    let client = read(&program, &args)?;
    let mark = args.get(client.run_at)?.strip_prefix("--label=")?.strip_prefix(LABEL)?.strip_prefix('=')?;
    (mark.split('.').next() == Some(id)).then_some(())?;
    Some((engine(&program)?, (at > 0).then(|| program.clone()), client.globals, mark.to_owned()))
}

impl Orphan {
    /// Removes it; says which ids it has had.
    pub(in super::super) fn remove(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for (look, pause) in LOOKS.into_iter().enumerate() {
            std::thread::sleep(pause);
            let Some(said) = self.run(look_words(&self.mark)) else { continue };
            let last = look + 1 == LOOKS.len();
            // Podman removes one that is just being started without ending it.
            let settled = said.lines().filter_map(line).filter(|(.., state)| last || !is_starting(state));
            let settled: Vec<&str> = settled.map(|(id, ..)| id).collect();
            if !settled.is_empty() {
                self.run(remove_words(self.engine, settled));
            }
            ids.extend(said.lines().filter_map(line).map(|(id, ..)| id.to_owned()));
        }
        ids
    }

    /// Runs the engine as the client was; what it says, if it succeeds in time.
    #[expect(clippy::disallowed_methods, reason = "the guard launches nothing else, and waits for it here")]
    fn run(&self, words: Vec<String>) -> Option<String> {
        let mut command = Command::new(&self.program);
        command.args(&self.globals).args(words).env_clear().current_dir(&self.dir);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut waited = Duration::ZERO;
        while child.try_wait().ok()?.is_none() && waited < MOST {
            std::thread::sleep(POLL);
            waited += POLL;
        }
        let _ = child.kill();
        let output = child.wait_with_output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn is_starting(state: &str) -> bool {
    state.starts_with("Created") || state.starts_with("Initialized")
}

/// Whether a process is the monitor of one of these containers: podman's has the id among its arguments.
pub(in super::super) fn is_monitor(pid: u32, ids: &BTreeSet<String>) -> bool {
    let line = proc_fs::read(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = line.split(|b| *b == 0);
    let is_conmon = words.next().is_some_and(|program| program.ends_with(b"conmon"));
    is_conmon && words.any(|word| std::str::from_utf8(word).is_ok_and(|word| ids.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_read_from_its_command_line() {
        let read = |line: &str| client(line.replace(' ', "\0").as_bytes(), "id");
        let mark = || "id.7".to_owned();
        let root = || vec!["--root".to_owned(), "/r".to_owned()];
        assert_eq!(read("podman --root /r run --label=stdiowatch.tree=id.7 -i x "), Some(("podman", None, root(), mark())));
        let script = Some("/b/docker".to_owned());
        assert_eq!(read("/bin/sh /b/docker run --label=stdiowatch.tree=id.7 x"), Some(("docker", script, vec![], mark())));
        assert_eq!(read("docker run --label=stdiowatch.tree=other.7 x"), None);
        assert_eq!(read("docker run -i --label=stdiowatch.tree=id.7 x"), None);
        assert_eq!(read("docker ps"), None);
        assert_eq!(read(""), None);
    }
}
