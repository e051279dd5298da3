//! What a server may take: set on it where the kernel knows such a limit, looked at where it does not.
//!
//! | limit | how |
//! |---|---|
//! | core dumps | none, ever: they would hold the secrets of its environment |
//! | `open_files` | `RLIMIT_NOFILE` of the launched process, inherited by its descendants |
//! | `file_size` | `RLIMIT_FSIZE`, the same |
//! | `cpu` | the tree is looked at; `RLIMIT_CPU`, a second later, for each process that nobody looks at any more |
//! | `memory` | the tree is looked at; `RLIMIT_AS` would count what is only reserved, and node reserves gigabytes |
//! | `processes` | the tree is looked at; `RLIMIT_NPROC` counts all that its user runs |
//!
//! Limits are set by prlimit(2) from outside as soon as the program has been executed, a few microseconds
//! after its start, since a hook in the child would make std fork. What it has opened by then stays open,
//! and what a program that changes its user (`sudo`) makes of its limits is not ours to say.

use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::proc_fs::{self, Stat};
use super::spec::Resources;
use crate::probe::{Excess, Taken};

/// Less than any file that is dumped, and what keeps the kernel from calling a program that collects dumps:
/// that it does at 0 (fs/coredump.c, `core_pattern` with a pipe).
const NO_CORE: u64 = 1;

/// How much later than by a look the kernel ends a process for its CPU time, in whole seconds.
const CPU_LATER: u64 = 2;

/// Has this process dump no core: it knows the secrets of all servers.
pub(super) fn dump_no_core(pid: Option<Pid>) {
    if prlimit(pid, Resource::Core, both(NO_CORE)).is_err() {
        // Its highest one is lower.
        let _ = prlimit(pid, Resource::Core, both(0));
    }
}

/// Sets what can be set on a process that was just launched; `None` for this one.
pub(super) fn confine(pid: Option<Pid>, resources: &Resources) {
    dump_no_core(pid);
    if let Some(files) = resources.open_files {
        // Its highest one too: node and Java raise theirs to that.
        let highest = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let _ = prlimit(pid, Resource::Nofile, both(files.min(highest)));
    }
    if let Some(size) = resources.file_size {
        let highest = getrlimit(Resource::Fsize).maximum.unwrap_or(u64::MAX);
        let _ = prlimit(pid, Resource::Fsize, both(size.min(highest)));
    }
    if let Some(cpu) = resources.cpu {
        let highest = getrlimit(Resource::Cpu).maximum.unwrap_or(u64::MAX);
        let seconds = cpu.as_secs() + CPU_LATER;
        // SIGXCPU first, which says what it is for; SIGKILL where that is ignored.
        let limit = Rlimit { current: Some(seconds.min(highest)), maximum: Some((seconds + 1).min(highest)) };
        let _ = prlimit(pid, Resource::Cpu, limit);
    }
}

fn both(limit: u64) -> Rlimit {
    Rlimit { current: Some(limit), maximum: Some(limit) }
}

impl Resources {
    /// Whether a running server has to be looked at for them.
    #[must_use]
    pub const fn are_watched(&self) -> bool {
        self.memory.is_some() || self.processes.is_some() || self.cpu.is_some()
    }

    /// How many processes need to be counted to tell that there are too many.
    pub(super) fn most_counted(&self, most: usize) -> usize {
        self.processes.and_then(|limit| usize::try_from(limit.saturating_add(1)).ok()).map_or(most, |limit| limit.clamp(1, most))
    }

    /// What `members` have too much of.
    pub(super) fn excess(&self, members: &[Stat]) -> Option<Excess> {
        let processes = members.len() as u64;
        let excess = |of, figure, limit| (figure > limit).then_some(Excess { of, figure, limit, processes });
        let crowd = self.processes.and_then(|limit| excess(Taken::Processes, processes, limit));
        let busy = || self.cpu.map(milliseconds).and_then(|limit| excess(Taken::Cpu, milliseconds(cpu(members)), limit));
        crowd.or_else(busy).or_else(|| self.memory.and_then(|limit| excess(Taken::Memory, memory(members, limit), limit)))
    }
}

/// The CPU time of all `members`, and of the children that they have reaped. What an orphan had that has ended
/// is lost.
fn cpu(members: &[Stat]) -> Duration {
    let ticks: u64 = members.iter().map(|stat| stat.ticks).sum();
    Duration::from_millis(ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second().max(1))
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The resident memory of all `members`. What they share (a program's own pages, and after a fork all of
/// its memory) counts once, by each one's proportional share. To find that out the kernel walks through all
/// their pages, so it is asked only where the plain sum, which is never less, is more than `limit`.
fn memory(members: &[Stat], limit: u64) -> u64 {
    let sum = |of: fn(u32) -> Option<u64>| members.iter().filter_map(|stat| of(stat.pid)).sum();
    let most = sum(proc_fs::resident);
    if most > limit { sum(|pid| proc_fs::proportional(pid).or_else(|| proc_fs::resident(pid))) } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Stat {
        proc_fs::stat(std::process::id()).unwrap()
    }

    #[test]
    fn too_much_is_told_with_its_figure() {
        let limits = |memory, processes| Resources { memory, processes, ..Resources::default() };
        assert_eq!(limits(Some(u64::MAX), Some(1)).excess(&[own()]), None);
        let memory = limits(Some(4096), Some(1)).excess(&[own()]).unwrap();
        assert_eq!((memory.of, memory.limit, memory.processes), (Taken::Memory, 4096, 1));
        assert!(memory.figure > 100_000);
        let crowd = limits(Some(4096), Some(1)).excess(&[own(), own()]).unwrap();
        assert_eq!(crowd, Excess { of: Taken::Processes, figure: 2, limit: 1, processes: 2 });
        assert_eq!(limits(None, None).excess(&[own()]), None);
    }

    #[test]
    fn cpu_time_is_that_of_all_together() {
        let busy = |ticks| {
            let mut stat = own();
            stat.ticks = ticks;
            stat
        };
        let limit = Resources { cpu: Some(Duration::from_secs(2)), ..Resources::default() };
        assert!(limit.are_watched());
        assert_eq!(limit.excess(&[busy(100), busy(99)]), None);
        let second = rustix::param::clock_ticks_per_second();
        let over = limit.excess(&[busy(second), busy(second + second / 2)]).unwrap();
        assert_eq!(over, Excess { of: Taken::Cpu, figure: 2500, limit: 2000, processes: 2 });
    }

    #[test]
    fn no_more_is_counted_than_needed() {
        let most = |processes| Resources { processes, ..Resources::default() }.most_counted(10);
        assert_eq!((most(None), most(Some(3)), most(Some(100)), most(Some(0)), most(Some(u64::MAX))), (10, 4, 10, 1, 10));
    }
}
