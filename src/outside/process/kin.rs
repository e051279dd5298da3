//! What a launched tree is seen to run as: the command lines by which other copies of it are told.
//!
//! A client that starts the same server starts the same command, but what then runs may be called
//! otherwise: a `#!` line puts an interpreter in front, a shell executes something else in its place,
//! `npx` has a child. So the tree is looked at while it lives, now and then.

use std::collections::BTreeSet;

use rustix::fs::{CWD, readlinkat};

use super::child::Child;
use super::proc_fs;

/// As much of a command line as is compared; class paths take kilobytes.
pub(in crate::outside) const MOST_LINE: usize = 16 << 10;
/// Looks in one probe, the last one (before the end of stdin) aside.
const MOST_LOOKS: u32 = 8;
/// Members of the tree that are looked at.
const MOST_MEMBERS: usize = 64;

/// A process' arguments, as `/proc/PID/cmdline` has them, without the NULs at the end.
pub(in crate::outside) type CommandLine = Vec<u8>;

/// The command lines seen in the tree of one probe.
#[derive(Debug, Default)]
pub struct Kin {
    wanted: bool,
    looks: u32,
    complete: bool,
    lines: BTreeSet<CommandLine>,
}

impl Kin {
    /// Nothing seen yet; if it is not `wanted`, nothing ever will be: to look costs some 50 µs.
    #[must_use]
    pub fn new(wanted: bool) -> Kin {
        Kin { wanted, ..Kin::default() }
    }

    /// To be called right after the launch: what was executed, its `#!` line resolved.
    pub fn launched(&mut self, child: &Child) {
        if self.wanted {
            self.lines.extend(command_line(child.pid()));
        }
    }

    /// To be called when the server shows that it has come to something: a wrapper's child that stops
    /// over a lock says so, and is gone a moment later.
    pub fn look(&mut self, child: &Child) {
        if self.wanted && self.looks < MOST_LOOKS {
            self.looks += 1;
            self.lines.extend(of_tree(child.pid()));
        }
    }

    /// To be called before stdin is closed, when all of it has been started.
    pub fn last_look(&mut self, child: &Child) {
        if self.wanted {
            self.complete = true;
            self.lines.extend(of_tree(child.pid()));
        }
    }

    /// Everything seen, and whether that was to the end.
    pub(in crate::outside) fn into_lines(self) -> (BTreeSet<CommandLine>, bool) {
        (self.lines, self.complete)
    }
}

/// The command lines of the leader, as it is now, and of its descendants that read the same stdin:
/// those may be the server, other ones are its helpers, of which anybody may have some (`sleep 60`).
/// What has but one word is no more than a name that anything may have (`cat`, `node`).
fn of_tree(leader: u32) -> BTreeSet<CommandLine> {
    let mut lines = BTreeSet::new();
    let stdin = stdin_of(leader);
    let mut next = vec![leader];
    let mut looked_at = 0;
    while let Some(pid) = next.pop()
        && looked_at < MOST_MEMBERS
    {
        looked_at += 1;
        next.extend(proc_fs::children(pid));
        if pid == leader || stdin.is_some() && stdin_of(pid) == stdin {
            lines.extend(command_line(pid).filter(|line| line.iter().any(|byte| matches!(byte, 0 | b' '))));
        }
    }
    lines
}

/// What a process' stdin is, as `pipe:[number]`.
fn stdin_of(pid: u32) -> Option<Vec<u8>> {
    Some(readlinkat(CWD, format!("/proc/{pid}/fd/0"), Vec::new()).ok()?.into_bytes())
}

/// The arguments of a process; `None` if it has none (a zombie, a thread of the kernel) or is gone.
pub(in crate::outside) fn command_line(pid: u32) -> Option<CommandLine> {
    let mut line = Vec::with_capacity(MOST_LINE);
    read_line(pid, &mut line)?;
    line.shrink_to_fit();
    Some(line)
}

/// The same, into a buffer that can be used again.
pub(in crate::outside) fn read_line(pid: u32, line: &mut CommandLine) -> Option<()> {
    let file = proc_fs::open(&format!("/proc/{pid}/cmdline")).ok()?;
    line.clear();
    line.reserve(MOST_LINE);
    // The kernel gives all that there is room for at once.
    rustix::io::pread(&file, rustix::buffer::spare_capacity(line), 0).ok()?;
    line.truncate(MOST_LINE);
    trim(line);
    (!line.is_empty()).then_some(())
}

/// Cuts off the NULs at the end: one closes the last argument, more are left of a longer line that was
/// overwritten by a title.
pub(in crate::outside) fn trim(line: &mut CommandLine) {
    let end = line.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    line.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_command_line_can_be_read() {
        let mut own: CommandLine = std::env::args().flat_map(|arg| [arg.into_bytes(), vec![0]].concat()).collect();
        trim(&mut own);
        assert_eq!(command_line(std::process::id()), Some(own));
        assert_eq!(command_line(u32::MAX), None);
    }

    #[test]
    fn what_a_title_left_behind_is_cut_off() {
        let mut line = b"npm exec x\0\0\0\0".to_vec();
        trim(&mut line);
        assert_eq!(line, b"npm exec x");
        let mut none = b"\0\0".to_vec();
        trim(&mut none);
        assert!(none.is_empty());
    }
}
