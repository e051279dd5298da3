//! What a server that ended badly may not have got: what it shares with all else of its user, its cgroup, its host.
//!
//! Looked at when the whole of its tree is gone, so what is missing then others have taken. Stateless: the kernel keeps
//! no account of whom it refused a thread by `RLIMIT_NPROC`. A host that was full and has emptied meanwhile shows nothing.

use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::proc_fs;
use crate::probe::{Scarcity, Shared};

/// Of what there is more than this left, there is enough to begin with.
const ENOUGH: u64 = 64;
/// Where cgroup v2 is mounted, alone or beside v1.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// Where v1 has its controller of tasks.
const TASKS: [&str; 1] = ["/sys/fs/cgroup/pids"];

/// What there is next to nothing left of, for a server of the user `uid`. Some small files of `/proc` and `/sys`;
/// every process' own only where all tasks of the host together could be too many for one user.
pub(super) fn look(uid: u32) -> Vec<Scarcity> {
    let host = tasks_of_host();
    let all = [host.and_then(|tasks| user(uid, tasks)), cgroup(), host.and_then(host_tasks), host_files()];
    all.into_iter().flatten().collect()
}

fn scarcity(of: Shared, limit: u64, taken: u64) -> Option<Scarcity> {
    let left = limit.saturating_sub(taken);
    (left <= ENOUGH).then_some(Scarcity { of, limit, left })
}

/// Root may have as many as it likes (kernel/fork.c).
fn user(uid: u32, host: u64) -> Option<Scarcity> {
    let limit = getrlimit(Resource::Nproc).current.filter(|_| uid != 0)?;
    // Threads count; so do the dead that nobody has reaped.
    let taken = || proc_fs::numbered("/proc").filter_map(proc_fs::owner).filter(|(owner, _)| *owner == uid).map(|(_, threads)| threads).sum();
    scarcity(Shared::UserTasks, limit, host).and_then(|_| scarcity(Shared::UserTasks, limit, taken()))
}

/// The tightest of our cgroup and those around it: a server begins in ours.
fn cgroup() -> Option<Scarcity> {
    let groups = String::from_utf8(proc_fs::read("/proc/self/cgroup").ok()?).ok()?;
    let of_tasks = groups.lines().filter_map(group_of_tasks);
    let found = of_tasks.flat_map(|(mounts, path)| mounts.iter().flat_map(move |mount| path.ancestors().filter_map(move |at| group(mount, at))));
    found.min_by_key(|scarcity| scarcity.left)
}

/// Where a line of `/proc/self/cgroup` (cgroups(7)) may have its tasks counted.
fn group_of_tasks(line: &str) -> Option<(&'static [&'static str], &Path)> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let mounts: &[&str] = if controllers.is_empty() {
        &UNIFIED
    } else if controllers.split(',').any(|controller| controller == "pids") {
        &TASKS
    } else {
        return None;
    };
    Some((mounts, Path::new(path)))
}

fn group(mount: &str, at: &Path) -> Option<Scarcity> {
    let number = |file: &str| number(&format!("{mount}{}/{file}", at.to_str()?));
    // "max" is no number, and the uppermost group has no such file.
    scarcity(Shared::CgroupTasks, number("pids.max")?, number("pids.current")?)
}

fn host_tasks(taken: u64) -> Option<Scarcity> {
    let limits = ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"].into_iter().filter_map(number);
    scarcity(Shared::HostTasks, limits.min()?, taken)
}

fn host_files() -> Option<Scarcity> {
    let text = String::from_utf8(proc_fs::read("/proc/sys/fs/file-nr").ok()?).ok()?;
    let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse::<u64>().ok());
    let (taken, unused, limit) = (numbers.next()?, numbers.next()?, numbers.next()?);
    scarcity(Shared::HostFiles, limit, taken.saturating_sub(unused))
}

/// All processes and threads of the host (proc_loadavg(5)).
fn tasks_of_host() -> Option<u64> {
    let text = String::from_utf8(proc_fs::read("/proc/loadavg").ok()?).ok()?;
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

fn number(path: &str) -> Option<u64> {
    String::from_utf8(proc_fs::read(path).ok()?).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_enough_or_next_to_nothing() {
        let of = |limit, taken| scarcity(Shared::HostTasks, limit, taken).map(|scarcity| scarcity.left);
        assert_eq!((of(1000, 0), of(1000, 935), of(1000, 936), of(1000, 2000)), (None, None, Some(64), Some(0)));
    }

    #[test]
    fn a_cgroup_is_found_where_either_version_has_it() {
        assert_eq!(group_of_tasks("0::/a/b:c"), Some((&UNIFIED[..], Path::new("/a/b:c"))));
        assert_eq!(group_of_tasks("7:cpu,pids:/x"), Some((&TASKS[..], Path::new("/x"))));
        assert_eq!((group_of_tasks("7:pidstat:/x"), group_of_tasks("7:memory:/x"), group_of_tasks("7")), (None, None, None));
    }

    #[test]
    fn this_host_can_be_read() {
        let tasks = tasks_of_host().unwrap();
        assert!(tasks > 1 && host_tasks(tasks).is_none() && host_files().is_none());
        assert!(host_tasks(u64::MAX).is_some_and(|scarcity| scarcity.left == 0 && scarcity.limit > 100));
    }
}
