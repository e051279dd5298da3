//! What has to happen in the launched process before its program runs: another user, no new privileges, a control group.
//!
//! Std's hooks for that make it fork. So this program is launched in the server's place, becomes what the server
//! is to be, and executes that: the same process, so its pid, its group and its streams are the server's from
//! the beginning. It costs another exec, for servers that want it, and no other.
//!
//! Whether the server could be executed is told by a pipe: its end without a word says so, as the exec closes
//! it. Everything else stays as it is without: the environment, `argv[0]`, the errors of a launch.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use nix::unistd::{Gid, Uid};
use rustix::fs::OFlags;
use rustix::io::{Errno, FdFlags};
use rustix::pipe::PipeFlags;
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::account::Account;
use super::confine::confine;
use super::inherit;
use super::spec::{LaunchSpec, Resources};

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "shim";
/// What the shim is called for the moment that it is there.
const NAME: &str = "mcp-launch";
/// In place of a number that is not given.
const NONE: &str = "-";

/// What a server is to become.
pub(super) struct Shim {
    account: Option<Account>,
    no_new_privs: bool,
    /// Where it enters a control group.
    entrance: Option<PathBuf>,
    resources: Resources,
}

/// What did not work in the shim.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// To become what it is to be.
    Become(Errno),
    /// To execute the server.
    Execute(Errno),
}

impl Shim {
    /// What `spec`, and a control group with this `entrance`, take it for; `None` where they take none.
    ///
    /// # Errors
    ///
    /// In words: there is no such user, or we may not end what runs as it.
    pub(super) fn of(spec: &LaunchSpec, entrance: Option<PathBuf>) -> Result<Option<Shim>, String> {
        let account = spec.user.as_ref().map(|user| user.look_up()).transpose()?;
        let ours = |account: &Account| (account.uid, account.gid) == (Uid::effective().as_raw(), Gid::effective().as_raw());
        let account = account.filter(|account| !ours(account));
        if account.as_ref().is_some_and(|account| account.uid != Uid::effective().as_raw()) && !may_end_anybody() {
            return Err(
                "EPERM: what runs as another user could not be ended again; stdiowatch needs CAP_SETUID, CAP_SETGID and CAP_KILL, as root has them"
                    .to_owned(),
            );
        }
        let wanted = account.is_some() || spec.no_new_privs || entrance.is_some();
        Ok(wanted.then_some(Shim { account, no_new_privs: spec.no_new_privs, entrance, resources: spec.resources }))
    }

    /// The user and the group that it becomes.
    pub(super) fn owner(&self) -> Option<(u32, u32)> {
        self.account.as_ref().map(|account| (account.uid, account.gid))
    }

    /// A command for `own`, which is this program, that executes `program`, called `name`; and where it tells of it.
    /// Its arguments are still to be added.
    #[expect(clippy::disallowed_methods, reason = "nothing is launched: the launcher does that")]
    pub(super) fn command(&self, own: &Path, name: &str, program: &Path) -> Result<(Command, Told), Errno> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // For this one launch. No other thread launches anything.
        rustix::io::fcntl_setfd(&write, FdFlags::empty())?;
        let number = |n: Option<u64>| n.map_or_else(|| NONE.to_owned(), |n| n.to_string());
        let mut command = Command::new(own);
        command.arg0(NAME).args([SUBCOMMAND, &write.as_raw_fd().to_string(), &self.account_word()]);
        command.arg(if self.no_new_privs { "1" } else { "0" });
        let Resources { open_files, file_size, cpu, .. } = self.resources;
        command.args([number(open_files), number(file_size), number(cpu.map(|time| time.as_secs()))]);
        command.arg(self.entrance.as_deref().unwrap_or(Path::new(NONE)));
        command.arg(program).arg(name);
        Ok((command, Told { read, write }))
    }

    fn account_word(&self) -> String {
        self.account.as_ref().map_or_else(
            || NONE.to_owned(),
            |account| {
                let groups: Vec<String> = account.groups.iter().map(u32::to_string).collect();
                format!("{}:{}:{}", account.uid, account.gid, groups.join(","))
            },
        )
    }
}

/// Whether we may signal processes of other users.
fn may_end_anybody() -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::KILL))
}

/// The pipe by which a shim tells what did not work.
pub(super) struct Told {
    read: OwnedFd,
    write: OwnedFd,
}

impl Told {
    /// Waits until the server was executed, or could not be.
    pub(super) fn wait(self) -> Result<(), Obstacle> {
        drop(self.write);
        let mut told = Vec::new();
        let read = File::from(self.read).take(5).read_to_end(&mut told);
        let errno = |bytes: &[u8]| Errno::from_raw_os_error(bytes.try_into().map_or(0, i32::from_le_bytes));
        match told.as_slice() {
            // A shim that was killed is a server that was.
            [] if read.is_ok() => Ok(()),
            [b'x', rest @ ..] => Err(Obstacle::Execute(errno(rest))),
            [_, rest @ ..] => Err(Obstacle::Become(errno(rest))),
            [] => Err(Obstacle::Become(Errno::IO)),
        }
    }
}

/// What the hidden `stdiowatch shim` runs, with the arguments that [`Shim::command`] gives it.
#[must_use]
pub fn shim_main() -> ExitCode {
    // What is here for this program alone must not go on to the server; the pipe's end is what tells of the exec.
    close_fds::set_fds_cloexec(3, &[]);
    let args: Vec<OsString> = std::env::args_os().skip(2).collect();
    let Some((pipe, task)) = args.split_first().and_then(|(pipe, rest)| Some((pipe.to_str()?, Task::read(rest)?))) else {
        return ExitCode::from(2);
    };
    // Opened again while we still may.
    let pipe = rustix::fs::open(format!("/proc/self/fd/{pipe}"), OFlags::WRONLY | OFlags::CLOEXEC, rustix::fs::Mode::empty());
    let (stage, errno) = match task.set_up() {
        Err(errno) => (b'b', errno),
        Ok(()) => (b'x', nix::unistd::execv(&task.program, &task.args).err().unwrap_or(nix::errno::Errno::UnknownErrno)),
    };
    if let Ok(pipe) = pipe {
        let _ = File::from(pipe).write_all(&[&[stage], (errno as i32).to_le_bytes().as_slice()].concat());
    }
    ExitCode::from(127)
}

/// What a shim is to do.
struct Task {
    account: Option<Account>,
    no_new_privs: bool,
    resources: Resources,
    entrance: Option<PathBuf>,
    program: CString,
    args: Vec<CString>,
}

impl Task {
    fn read(args: &[OsString]) -> Option<Task> {
        let [account, no_new_privs, open_files, file_size, cpu, entrance, program, args @ ..] = args else { return None };
        let number = |word: &OsString| word.to_str()?.parse::<u64>().ok();
        let text = |word: &OsString| CString::new(word.clone().into_vec()).ok();
        let account = match account.to_str()? {
            NONE => None,
            word => Some(account_of(word)?),
        };
        Some(Task {
            account,
            no_new_privs: no_new_privs == "1",
            resources: Resources {
                open_files: number(open_files),
                file_size: number(file_size),
                cpu: number(cpu).map(Duration::from_secs),
                ..Resources::default()
            },
            entrance: (entrance != NONE).then(|| entrance.into()),
            program: text(program)?,
            args: args.iter().map(text).collect::<Option<_>>()?,
        })
    }

    fn set_up(&self) -> nix::Result<()> {
        // As another user it could not be limited from outside any more, nor go in.
        confine(None, &self.resources);
        if let Some(entrance) = &self.entrance {
            // 0 is who writes it (cgroups(7)). Kept out, it is launched all the same, and the launcher notices.
            let _ = std::fs::write(entrance, "0");
        }
        if let Some(Account { uid, gid, groups }) = &self.account {
            let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
            let groups: Vec<Gid> = groups.iter().copied().map(Gid::from_raw).collect();
            nix::unistd::setgroups(&groups)?;
            nix::unistd::setresgid(gid, gid, gid)?;
            nix::unistd::setresuid(uid, uid, uid)?;
            drop_capabilities().map_err(|errno| nix::errno::Errno::from_raw(errno.raw_os_error()))?;
        }
        if self.no_new_privs {
            rustix::thread::set_no_new_privs(true).map_err(|errno| nix::errno::Errno::from_raw(errno.raw_os_error()))?;
        }
        // Std ignores SIGPIPE in every program of Rust's.
        inherit::hear_broken_pipes().map_err(|_| nix::errno::Errno::EAGAIN)
    }
}

/// One that was no root keeps them otherwise, whoever it becomes.
fn drop_capabilities() -> Result<(), Errno> {
    let none = CapabilitySet::empty();
    rustix::thread::clear_ambient_capability_set()?;
    if Uid::effective().is_root() {
        return Ok(());
    }
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

fn account_of(word: &str) -> Option<Account> {
    let mut parts = word.split(':');
    let (uid, gid) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let groups = parts.next()?.split(',').map(|group| group.parse().ok()).collect::<Option<_>>()?;
    Some(Account { uid, gid, groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &[u8]) -> Result<(), Obstacle> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
        rustix::io::write(&write, words).unwrap();
        Told { read, write }.wait()
    }

    #[test]
    fn what_a_shim_tells_is_what_did_not_work() {
        let errno = |stage: u8, errno: Errno| [&[stage], errno.raw_os_error().to_le_bytes().as_slice()].concat();
        assert_eq!(told(b""), Ok(()));
        assert_eq!(told(&errno(b'x', Errno::NOEXEC)), Err(Obstacle::Execute(Errno::NOEXEC)));
        assert_eq!(told(&errno(b'b', Errno::PERM)), Err(Obstacle::Become(Errno::PERM)));
    }

    #[test]
    fn a_task_is_read_as_it_was_given() {
        let account = Account { uid: 7, gid: 8, groups: vec![8, 9] };
        let resources = Resources { open_files: Some(99), cpu: Some(Duration::from_secs(3)), ..Resources::default() };
        let entrance = Some(PathBuf::from("/cg/procs"));
        let shim = Shim { account: Some(account.clone()), no_new_privs: true, entrance: entrance.clone(), resources };
        let (mut command, told) = shim.command(Path::new("/own"), "name", Path::new("/bin/x")).unwrap();
        command.arg("-a");
        let args: Vec<OsString> = command.get_args().map(Into::into).collect();
        assert_eq!((args[0].to_str(), args[1].to_str()), (Some(SUBCOMMAND), Some(told.write.as_raw_fd().to_string().as_str())));
        let task = Task::read(&args[2..]).unwrap();
        assert_eq!((task.account, task.no_new_privs, task.resources, task.entrance), (Some(account), true, resources, entrance));
        assert_eq!((task.program.to_str(), task.args.len(), task.args[1].to_str()), (Ok("/bin/x"), 2, Ok("-a")));
        assert!(Task::read(&args[3..]).is_none() && Task::read(&[]).is_none());
    }
}
