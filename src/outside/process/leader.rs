//! The launched process itself, which leads its group: watched, signalled, reaped.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus};
use tokio::io::Interest;
use tokio::time::sleep;

use super::family;
use super::stdio::Watched;
use crate::probe::Exit;

/// How often a process is looked at that cannot be watched for want of a descriptor.
const POLL: Duration = Duration::from_millis(10);

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

/// A launched process, not reaped.
pub(super) struct Leader {
    pid: Pid,
    /// Made when it has to be waited for (a descriptor, an inode, an entry in the runtime: a tenth of
    /// what a short probe costs): where it is `None` there was no descriptor to be had.
    pidfd: OnceLock<Option<Watched>>,
    exit: OnceLock<Exit>,
    /// SIGKILL was sent to its group: nothing in that lives on, though it may take time to die.
    killed: AtomicBool,
}

impl Leader {
    pub(super) fn new(child: &std::process::Child) -> Leader {
        Leader { pid: Pid::from_child(child), pidfd: OnceLock::new(), exit: OnceLock::new(), killed: AtomicBool::new(false) }
    }

    pub(super) fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Signals its whole group, and itself if it has left that (`setpgid`). The number is its own, as
    /// a process' and as a group's, as long as it is not reaped.
    pub(super) fn signal_group(&self, signal: Signal) -> Result<(), Errno> {
        let group = rustix::process::kill_process_group(self.pid, signal.into());
        self.killed.fetch_or(signal == Signal::Kill, Relaxed);
        match rustix::process::getpgid(Some(self.pid)) {
            Ok(now) if now != self.pid => rustix::process::kill_process(self.pid, signal.into()),
            Ok(_) | Err(_) => group,
        }
    }

    /// Whether SIGKILL was sent to its group.
    pub(super) fn is_group_killed(&self) -> bool {
        self.killed.load(Relaxed)
    }

    /// Signals it, and nobody else of its group.
    pub(super) fn signal_alone(&self, signal: Signal) -> Result<(), Errno> {
        rustix::process::kill_process(self.pid, signal.into())
    }

    /// Waits for its end, and leaves it a zombie.
    pub(super) async fn exited(&self) -> Exit {
        let pidfd = self.pidfd.get_or_init(|| self.watch()).as_ref();
        let watched = pidfd.and_then(|pidfd| pidfd.watch(Interest::READABLE).ok());
        loop {
            if let Some(exit) = self.exit.get() {
                return *exit;
            }
            let Some(watched) = watched else {
                if let Some(exit) = self.seen_dead() {
                    return exit;
                }
                sleep(POLL).await;
                continue;
            };
            // The runtime is being shut down where this is an error.
            let Ok(mut ready) = watched.readable().await else { return std::future::pending().await };
            if let Some(exit) = self.seen_dead() {
                return exit;
            }
            ready.clear_ready();
        }
    }

    fn watch(&self) -> Option<Watched> {
        let pidfd = Watched::new(rustix::process::pidfd_open(self.pid, PidfdFlags::empty()).ok()?);
        pidfd.watch(Interest::READABLE).is_ok().then_some(pidfd)
    }

    /// Its end, if that has come. A leader of which some thread lives on is not dead.
    pub(super) fn seen_dead(&self) -> Option<Exit> {
        if let Some(exit) = self.exit.get() {
            return Some(*exit);
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let look = || rustix::process::waitid(WaitId::Pid(self.pid), options);
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
