//! The files of `/proc` that tell who lives, of whom, and what it takes: proc_pid_stat(5) and others.
//!
//! A process may end between two reads, so each answer is an `Option`, and `None` is no error.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{Access, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

/// As much of one file as is read: an environment may be this large (`MAX_ARG_STRINGS` is no bound,
/// a quarter of the stack limit is: execve(2)).
const MOST: usize = 8 << 20;

/// What the kernel gives of one file at a time.
const PAGE: usize = 4096;

/// One line of `/proc/PID/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::outside) struct Stat {
    pub(in crate::outside) pid: u32,
    /// Up to 15 bytes that the process may choose.
    pub(super) comm: String,
    pub(in crate::outside) parent: u32,
    pub(in crate::outside) group: u32,
    /// In clock ticks after boot: with the pid, it names a process for good.
    pub(in crate::outside) started: u64,
    pub(in crate::outside) dead: bool,
    pub(super) threads: u32,
    /// User and system time in clock ticks, of itself and of the children that it has reaped.
    pub(super) ticks: u64,
}

/// Reads a whole small file.
pub(in crate::outside) fn read(path: &str) -> Result<Vec<u8>, Errno> {
    read_open(&open(path)?)
}

/// Reads an open file from its beginning. A list with many records is given by the page, or by a
/// little less (fs/seq_file.c), so what is much less than that is the end, and no read has to say so.
pub(super) fn read_open(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::with_capacity(PAGE);
    loop {
        let at = bytes.len();
        let len = rustix::io::pread(file, rustix::buffer::spare_capacity(&mut bytes), at as u64)?;
        if len < PAGE / 2 || bytes.len() >= MOST {
            return Ok(bytes);
        }
        bytes.reserve(PAGE);
    }
}

/// Opens a file for reading.
pub(in crate::outside) fn open(path: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// The state of a process, dead or alive.
pub(in crate::outside) fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&read(&format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(line: &[u8]) -> Option<Stat> {
    let line = String::from_utf8_lossy(line);
    // The name stands in parentheses and may hold any of its own: the last one closes it.
    let (pid, rest) = line.split_once(" (")?;
    let (comm, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let threads: u32 = fields.get(17)?.parse().ok()?;
    // A thread leader that has ended shows as a zombie while its other threads run on.
    let dead = matches!(*fields.first()?, "Z" | "X" | "x") && threads <= 1;
    Some(Stat {
        pid: pid.parse().ok()?,
        comm: comm.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        dead,
        threads,
        ticks: fields.get(11..15)?.iter().map_while(|field| field.parse::<u64>().ok()).sum(),
    })
}

/// A list of pids, as `/proc/PID/task/TID/children` has them.
pub(super) fn parse_pids(list: &[u8]) -> Vec<u32> {
    let words = list.split(|b| *b == b' ');
    words.filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok()).collect()
}

/// The living and dead children of a process, of all of its threads.
pub(super) fn children(pid: u32) -> Vec<u32> {
    numbered(&format!("/proc/{pid}/task")).flat_map(|thread| children_of_thread(pid, thread)).collect()
}

/// The same for a process of which more is known: most have one thread, and no list of them is read.
pub(super) fn children_of(stat: &Stat) -> Vec<u32> {
    if stat.threads == 1 { children_of_thread(stat.pid, stat.pid) } else { children(stat.pid) }
}

/// The children that one thread has, or that it inherited from one that ended.
pub(super) fn children_of_thread(pid: u32, thread: u32) -> Vec<u32> {
    let task = format!("/proc/{pid}/task/{thread}");
    match read(&format!("{task}/children")) {
        Ok(list) => parse_pids(&list),
        // A kernel without CONFIG_PROC_CHILDREN: there the first thread stands for all.
        Err(Errno::NOENT) if thread == pid && rustix::fs::access(task, Access::EXISTS).is_ok() => {
            everyone().into_iter().filter(|stat| stat.parent == pid).map(|stat| stat.pid).collect()
        }
        Err(_) => Vec::new(),
    }
}

/// Every process that there is: a millisecond or two, so only where nothing else will do.
pub(super) fn everyone() -> Vec<Stat> {
    numbered("/proc").filter_map(stat).collect()
}

/// The entries of a directory that are numbers.
pub(in crate::outside) fn numbered(path: &str) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Peak resident memory in bytes, and the number of threads.
pub(super) fn peak_memory(pid: u32) -> Option<(u64, u32)> {
    parse_status(&read(&format!("/proc/{pid}/status")).ok()?)
}

fn parse_status(status: &[u8]) -> Option<(u64, u32)> {
    Some((status_field(status, "VmHWM:")? * 1024, u32::try_from(status_field(status, "Threads:")?).ok()?))
}

/// The first number after `name` in `/proc/PID/status`.
fn status_field(status: &[u8], name: &str) -> Option<u64> {
    let status = String::from_utf8_lossy(status);
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The real user of a process, dead or alive, and the number of its threads.
pub(super) fn owner(pid: u32) -> Option<(u32, u64)> {
    let status = read(&format!("/proc/{pid}/status")).ok()?;
    Some((u32::try_from(status_field(&status, "Uid:")?).ok()?, status_field(&status, "Threads:")?))
}

/// Resident memory in bytes, what it shares with others included (/proc/PID/statm).
pub(super) fn resident(pid: u32) -> Option<u64> {
    parse_statm(&read(&format!("/proc/{pid}/statm")).ok()?)
}

fn parse_statm(statm: &[u8]) -> Option<u64> {
    let pages: u64 = std::str::from_utf8(statm).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Resident memory in bytes, of what is shared by so many only so great a part (`Pss` of
/// /proc/PID/smaps_rollup). `None` also for a process of which we may not see that: one that has changed its
/// user.
pub(super) fn proportional(pid: u32) -> Option<u64> {
    parse_rollup(&read(&format!("/proc/{pid}/smaps_rollup")).ok()?)
}

fn parse_rollup(rollup: &[u8]) -> Option<u64> {
    let rollup = std::str::from_utf8(rollup).ok()?;
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(pss.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// How long a process had to wait for a core since its start, though it was ready to run: the thread of it that
/// waited longest (`Documentation/scheduler/sched-stats.rst`, /proc/PID/task/TID/schedstat), and the children that
/// it has reaped. Of these is kept only for how long they ran: they will have waited as it did itself, for each
/// second of that. A shell that starts a server does most of its work by such children.
pub(super) fn queued(pid: u32) -> Option<Duration> {
    let task = format!("/proc/{pid}/task");
    let threads: Vec<_> = numbered(&task).filter_map(|thread| parse_schedstat(&read(&format!("{task}/{thread}/schedstat")).ok()?)).collect();
    let stat = read(&format!("/proc/{pid}/stat")).ok()?;
    queued_of(&threads, parse_reaped(&stat).unwrap_or_default())
}

/// The same of threads that ran and waited for so long, and children that ran for `reaped`.
fn queued_of(threads: &[(Duration, Duration)], reaped: Duration) -> Option<Duration> {
    let longest = threads.iter().map(|(_, waited)| *waited).max()?;
    let ran: Duration = threads.iter().map(|(ran, _)| *ran).sum();
    let waited: Duration = threads.iter().map(|(_, waited)| *waited).sum();
    let ratio = if ran.is_zero() { 0.0 } else { waited.as_secs_f64() / ran.as_secs_f64() };
    Some(longest + reaped.mul_f64(ratio.min(1e3)))
}

/// For how long a thread ran, and how long it waited for a core.
fn parse_schedstat(schedstat: &[u8]) -> Option<(Duration, Duration)> {
    let text = std::str::from_utf8(schedstat).ok()?;
    let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse().ok()).map(Duration::from_nanos);
    Some((numbers.next()?, numbers.next()?))
}

/// For how long the children of a process ran that it has reaped (`cutime`, `cstime`).
fn parse_reaped(stat: &[u8]) -> Option<Duration> {
    let stat = String::from_utf8_lossy(stat);
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields = rest.split_ascii_whitespace().skip(13).take(2);
    let ticks: u64 = fields.map_while(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second()).ok()?)
}

/// The signals that we ignore, by their numbers.
pub(super) fn ignored_signals() -> Vec<i32> {
    read("/proc/self/status").ok().and_then(|status| parse_ignored(&status)).unwrap_or_default()
}

fn parse_ignored(status: &[u8]) -> Option<Vec<i32>> {
    let status = String::from_utf8_lossy(status);
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some((1..=64).filter(|number| mask & (1 << (number - 1)) != 0).collect())
}

/// The value of an environment variable as it was at the process' last exec. `None` also where we
/// may not look: another user's process, or one that overwrote its environment with a title.
pub(super) fn env_of(pid: u32, name: &str) -> Option<String> {
    let environ = read(&format!("/proc/{pid}/environ")).ok()?;
    let mut entries = environ.split(|b| *b == 0);
    let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// A pid that may be signalled: 0 and 1 stand for groups and for everybody in kill(2).
pub(in crate::outside) fn target(pid: u32) -> Option<Pid> {
    if pid < 2 {
        return None;
    }
    Pid::from_raw(i32::try_from(pid).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_through_children_has_waited() {
        let ms = Duration::from_millis;
        assert_eq!(parse_schedstat(b"1000000 7000000 12\n"), Some((ms(1), ms(7))));
        assert_eq!(parse_schedstat(b"1 x"), None);
        let line = b"7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 3 4 120 30 20 0 1 0 5 0 0";
        let second = u32::try_from(rustix::param::clock_ticks_per_second()).unwrap();
        assert_eq!(parse_reaped(line), Some(Duration::from_secs(150) / second));
        // A server that sleeps has waited for nothing; one that ran an eighth of the time has, and so has what it started.
        assert_eq!(queued_of(&[(ms(100), ms(0))], ms(200)), Some(ms(0)));
        assert_eq!(queued_of(&[(ms(100), ms(700))], ms(100)), Some(ms(1400)));
        assert_eq!(queued_of(&[(ms(10), ms(20)), (ms(10), ms(60))], Duration::ZERO), Some(ms(60)));
        assert_eq!((queued_of(&[], ms(1)), queued_of(&[(ms(0), ms(0))], ms(5))), (None, Some(ms(0))));
    }

    #[test]
    fn a_name_may_hold_anything() {
        let line = b"42 (a) R (b) S 7 40 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 99 1 2 3";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.pid, stat.comm.as_str(), stat.parent, stat.group), (42, "a) R (b", 7, 40));
        assert_eq!((stat.started, stat.dead, stat.ticks), (12345, false, 5 + 6 + 7 + 8));
        assert_eq!(parse_stat(b"42 (a"), None);
        assert_eq!(parse_stat(b""), None);
        assert!(parse_stat(b"42 (\xff) S 7 40 40 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 1 9").is_some());
    }

    #[test]
    fn a_zombie_is_dead_unless_threads_of_it_live() {
        let line = |state, threads| format!("42 (a) {state} 7 40 40 0 -1 0 1 2 3 4 5 6 7 8 20 0 {threads} 0 1 9");
        assert!(parse_stat(line("Z", 1).as_bytes()).unwrap().dead);
        assert!(parse_stat(line("X", 0).as_bytes()).unwrap().dead);
        assert!(!parse_stat(line("Z", 2).as_bytes()).unwrap().dead);
        assert!(!parse_stat(line("T", 1).as_bytes()).unwrap().dead);
    }

    #[test]
    fn we_can_be_read_ourselves() {
        let me = std::process::id();
        let stat = stat(me).unwrap();
        assert_eq!(stat.pid, me);
        assert!(!stat.dead && stat.started > 0);
        let (peak, threads) = peak_memory(me).unwrap();
        assert!(peak > 100_000 && threads >= 1);
        let (user, its_threads) = owner(me).unwrap();
        assert!(user == rustix::process::getuid().as_raw() && its_threads >= 1);
        assert!(everyone().iter().any(|other| other.pid == me));
        let (resident, share) = (resident(me).unwrap(), proportional(me).unwrap());
        assert!(share > 100_000 && share <= peak * 2 && resident <= peak * 2, "{share} {resident} {peak}");
        assert_eq!(env_of(me, "NO_SUCH_NAME"), None);
        let path = std::env::var("PATH").ok();
        assert_eq!(env_of(me, "PATH"), path);
    }

    #[test]
    fn ignored_signals_are_read_from_their_mask() {
        assert_eq!(parse_ignored(b"SigBlk:\t0\nSigIgn:\t8000000000010001\nSigCgt:\t0\n"), Some(vec![1, 17, 64]));
        assert_eq!(parse_ignored(b""), None);
        assert!(!ignored_signals().contains(&17));
    }

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(parse_statm(b"7 3 2 1 0 4 0\n"), Some(3 * rustix::param::page_size() as u64));
        assert_eq!(parse_rollup(b"00400000-7ff rw [rollup]\nRss:  2000 kB\nPss:  1000 kB\nPss_Dirty: 1 kB\n"), Some(1_024_000));
        assert_eq!((parse_statm(b""), parse_rollup(b"")), (None, None));
    }

    #[test]
    fn lists_of_pids() {
        assert_eq!(parse_pids(b"1 22 333 "), [1, 22, 333]);
        assert_eq!(parse_pids(b""), [0u32; 0]);
    }

    #[test]
    fn everybody_is_no_target() {
        assert!(target(0).is_none() && target(1).is_none() && target(u32::MAX).is_none());
        assert!(target(2).is_some());
    }
}
