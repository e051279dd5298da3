//! What a server may take: set on it where the kernel knows such a limit, looked at where it does not.
//!
//! | limit | how |
//! |---|---|
//! | core dumps | none, ever: they would hold the secrets of its environment |
//! | `open_files` | `RLIMIT_NOFILE` of the launched process, inherited by its descendants |
//! | `memory` | the tree is looked at; `RLIMIT_AS` would count what is only reserved, and node reserves gigabytes |
//! | `processes` | the tree is looked at; `RLIMIT_NPROC` counts all that its user runs |
//!
//! Limits are set by prlimit(2) from outside as soon as the program has been executed, a few microseconds
//! after its start, since a hook in the child would make std fork. What it has opened by then stays open,
//! and what a program that changes its user (`sudo`) makes of its limits is not ours to say.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::proc_fs::{self, Stat};
use super::spec::Resources;
use crate::probe::{Excess, Taken};

/// Less than any file that is dumped, and what keeps the kernel from calling a program that collects dumps:
/// that it does at 0 (fs/coredump.c, `core_pattern` with a pipe).
const NO_CORE: u64 = 1;

/// Sets what can be set on a process that was just launched.
pub(super) fn confine(pid: Pid, resources: &Resources) {
    if prlimit(Some(pid), Resource::Core, both(NO_CORE)).is_err() {
        // Its highest one is lower.
        let _ = prlimit(Some(pid), Resource::Core, both(0));
    }
    if let Some(files) = resources.open_files {
        // Its highest one too: node and Java raise theirs to that.
        let highest = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let _ = prlimit(Some(pid), Resource::Nofile, both(files.min(highest)));
    }
}

fn both(limit: u64) -> Rlimit {
    Rlimit { current: Some(limit), maximum: Some(limit) }
}

impl Resources {
    /// Whether a running server has to be looked at for them.
    #[must_use]
    pub const fn are_watched(&self) -> bool {
        self.memory.is_some() || self.processes.is_some()
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
        crowd.or_else(|| self.memory.and_then(|limit| excess(Taken::Memory, memory(members, limit), limit)))
    }
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
        let limits = |memory, processes| Resources { memory, processes, open_files: None };
        assert_eq!(limits(Some(u64::MAX), Some(1)).excess(&[own()]), None);
        let memory = limits(Some(4096), Some(1)).excess(&[own()]).unwrap();
        assert_eq!((memory.of, memory.limit, memory.processes), (Taken::Memory, 4096, 1));
        assert!(memory.figure > 100_000);
        let crowd = limits(Some(4096), Some(1)).excess(&[own(), own()]).unwrap();
        assert_eq!(crowd, Excess { of: Taken::Processes, figure: 2, limit: 1, processes: 2 });
        assert_eq!(limits(None, None).excess(&[own()]), None);
    }

    #[test]
    fn no_more_is_counted_than_needed() {
        let most = |processes| Resources { processes, ..Resources::default() }.most_counted(10);
        assert_eq!((most(None), most(Some(3)), most(Some(100)), most(Some(0)), most(Some(u64::MAX))), (10, 4, 10, 1, 10));
    }
}
