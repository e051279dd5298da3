//! The launched process itself, which leads its group: watched, signalled, reaped.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::family;
use super::stdio::watched;
use crate::probe::Exit;

/// What the shutdown ladder sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGTERM`.
    Term,
    /// `SIGKILL`.
    Kill,
}

impl From<Signal> for rustix::process::Signal {
    fn from(signal: Signal) -> rustix::process::Signal {
        match signal {
            Signal::Term => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        }
    }
}

/// A process that was just started, and must not be lost.
pub(super) struct Newborn(Option<Pid>);

impl Newborn {
    pub(super) fn new(child: &std::process::Child) -> Newborn {
        Newborn(Some(Pid::from_child(child)))
    }

    /// Has the runtime watch it.
    pub(super) fn watch(mut self) -> io::Result<Leader> {
        let pid = self.0.ok_or(Errno::CHILD)?;
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        let pidfd = watched(pidfd, Interest::READABLE)?;
        self.0 = None;
        Ok(Leader { pid, pidfd, exit: OnceLock::new() })
    }
}

impl Drop for Newborn {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
            let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
        }
    }
}

/// A launched process, not reaped.
pub(super) struct Leader {
    pid: Pid,
    pidfd: AsyncFd<OwnedFd>,
    exit: OnceLock<Exit>,
}

impl Leader {
    pub(super) fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Signals its whole group. The number is its own as long as it is not reaped.
    pub(super) fn signal_group(&self, signal: Signal) -> Result<(), Errno> {
        rustix::process::kill_process_group(self.pid, signal.into())
    }

    /// Waits for its end, and leaves it a zombie.
    pub(super) async fn exited(&self) -> Exit {
        loop {
            if let Some(exit) = self.exit.get() {
                return *exit;
            }
            // The runtime is being shut down where this is an error.
            let Ok(mut ready) = self.pidfd.readable().await else { return std::future::pending().await };
            if let Some(exit) = self.seen_dead() {
                return exit;
            }
            ready.clear_ready();
        }
    }

    /// Its end, if that has come. A leader of which some thread lives on is not dead.
    pub(super) fn seen_dead(&self) -> Option<Exit> {
        if let Some(exit) = self.exit.get() {
            return Some(*exit);
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let look = || rustix::process::waitid(WaitId::PidFd(self.pidfd.get_ref().as_fd()), options);
        let exit = match rustix::io::retry_on_intr(look) {
            Ok(status) => exit(&status?),
            // Somebody has taken its status from us.
            Err(_) => Exit::Code(-1),
        };
        Some(*self.exit.get_or_init(|| exit))
    }

    /// Reaps it if it is dead; says whether it is gone.
    pub(super) fn reap(&self) -> bool {
        family::reap(self.id())
    }
}

fn exit(status: &WaitIdStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (_, Some(signal)) => Exit::Signal(signal),
        (code, None) => Exit::Code(code.unwrap_or(-1)),
    }
}
