//! The guard, seen from the sidecar: one small process that outlives us, whatever ends us.
//!
//! It sleeps in a read of its stdin until our end of that pipe is closed, which the kernel does for
//! us. A parent-death signal would need code in the child, and reaches the leader alone.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

use super::family::Family;

/// What the guard is called in a list of processes. Not like us, so that `pkill -9 stdiowatch` does
/// not take it too.
pub(super) const NAME: &std::ffi::CStr = c"mcp-guard";

/// What says on the pipe that this end is an orderly one.
pub(super) const GOODBYE: &[u8] = b"q";

/// How the guard is started.
#[derive(Clone, Debug)]
pub struct GuardCommand {
    program: PathBuf,
    args: Vec<OsString>,
}

impl GuardCommand {
    /// This program again, even when its file has been replaced since.
    #[must_use]
    pub fn own() -> GuardCommand {
        GuardCommand::new("/proc/self/exe", ["guard"])
    }

    /// The program.
    pub(super) fn program(&self) -> &std::path::Path {
        &self.program
    }

    /// Another program that runs [`guard_main`](super::guard_main).
    #[must_use]
    pub fn new<A: Into<OsString>>(program: impl Into<PathBuf>, args: impl IntoIterator<Item = A>) -> GuardCommand {
        GuardCommand { program: program.into(), args: args.into_iter().map(Into::into).collect() }
    }
}

/// The guard of a family.
pub(super) struct Guard {
    command: GuardCommand,
    running: Mutex<Option<Running>>,
}

struct Running {
    pid: u32,
    pidfd: OwnedFd,
    /// Nothing is written but the goodbye; its end is what counts.
    pipe: OwnedFd,
}

impl Guard {
    pub(super) fn new(command: GuardCommand) -> Guard {
        Guard { command, running: Mutex::new(None) }
    }

    /// Starts a guard unless there is one that lives.
    pub(super) fn ensure(&self, family: &Family) -> io::Result<()> {
        let mut running = self.running.lock();
        if let Some(guard) = &*running {
            if !guard.ended() {
                return Ok(());
            }
            *running = None;
            family.set_guard(None);
        }
        let guard = self.start(family)?;
        family.set_guard(Some(guard.pid));
        *running = Some(guard);
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "one of the two places that launch: nothing is there to reap but this")]
    fn start(&self, family: &Family) -> io::Result<Running> {
        let (read, pipe) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let ledger = family.ledger().try_clone_to_owned()?;
        // Its stderr is an end that cannot be written to: ours would be held open after our death,
        // and /dev/null is not everywhere.
        let mute = read.try_clone()?;
        let mut command = Command::new(&self.command.program);
        command.args(&self.command.args).arg0(NAME.to_string_lossy().as_ref()).env_clear().process_group(0);
        let child = command.stdin(Stdio::from(read)).stdout(Stdio::from(ledger)).stderr(Stdio::from(mute)).spawn()?;
        let held = Pid::from_child(&child);
        match rustix::process::pidfd_open(held, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Running { pid: child.id(), pidfd, pipe }),
            Err(errno) => {
                let _ = rustix::process::kill_process(held, Signal::KILL);
                let _ = rustix::process::waitid(WaitId::Pid(held), WaitIdOptions::EXITED);
                Err(errno.into())
            }
        }
    }
}

impl Running {
    /// Whether it has ended; it is reaped then.
    fn ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        !matches!(rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), options), Ok(None))
    }
}

impl Guard {
    /// Sends it home, and waits for a moment. With a goodbye it has nothing to do.
    pub(super) fn dismiss(&mut self, orderly: bool) {
        let Some(Running { pidfd, pipe, .. }) = self.running.get_mut().take() else { return };
        if orderly {
            let _ = rustix::io::write(&pipe, GOODBYE);
        }
        drop(pipe);
        let moment = Timespec { tv_sec: 1, tv_nsec: 0 };
        let _ = rustix::event::poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&moment));
        let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
        let _ = rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
    }
}
