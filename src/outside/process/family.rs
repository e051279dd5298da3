//! All that this sidecar has launched and not reaped yet: whose is a process that turns up?

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use parking_lot::Mutex;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions};

use super::environment::MARKER;
use super::proc_fs::{self, Stat};
use super::spec::Leftovers;

/// What the ledger begins with, then the sidecar's id, then one slot for each tree.
pub(super) const LEDGER_MAGIC: &[u8; 8] = b"mcptree1";
/// The length of a sidecar's id.
pub(super) const ID_LEN: usize = 16;
/// The length of a slot: the pid of a leader, or zero; the number of its tree, where that matters, or
/// zero. Both little-endian.
pub(super) const SLOT_LEN: usize = 8;
/// At the end of the mark of a tree whose leftovers are spared. The guard leaves them alone once their tree
/// is not in the ledger any more.
pub(super) const SPARED: &str = "s";
/// Where the slots begin.
pub(super) const SLOTS_AT: usize = LEDGER_MAGIC.len() + ID_LEN;

/// What is launched by one [`Launcher`](super::Launcher).
pub(super) struct Family {
    /// Marks everything that we launch, and nothing else: random, so that no other sidecar has it.
    id: String,
    /// The trees that we are in ourselves.
    outer: Option<String>,
    /// Our own pid, which is the main thread's too.
    main: u32,
    /// The main thread's list of children: that is where the kernel puts what we adopt
    /// (`find_new_reaper`, kernel/exit.c). `None` where it keeps no such list.
    adopted: Option<OwnedFd>,
    /// Our launches go on another thread's list, so the main one's holds adopted orphans only.
    off_main: bool,
    /// The groups to end when we are gone: written by us, read by the guard, which a write to a file
    /// does not wake as one to a pipe would.
    ledger: OwnedFd,
    roll: Mutex<Roll>,
}

#[derive(Default)]
struct Roll {
    launches: u32,
    /// By their slot in the ledger.
    leaders: Vec<Option<Leads>>,
    guard: Option<u32>,
    /// Those that would not die in time (state `D`), to be reaped when they do.
    abandoned: Vec<Slot>,
    /// Adopted leftovers that are left alone, by pid: theirs until we reap them. Whether they carry a mark.
    spared: BTreeMap<u32, bool>,
}

/// A launched process that has not been reaped.
struct Leads {
    /// Zero until it has been launched.
    pid: u32,
    /// The number of its tree, where its leftovers are spared.
    spares: Option<u32>,
    guarded: bool,
}

impl Roll {
    fn leads(&self, pid: u32) -> bool {
        self.leaders.iter().flatten().any(|leads| leads.pid == pid)
    }
}

/// What tells a tree from others.
pub(super) struct Mark {
    /// The value of the marker variable, without those of the trees that we are in.
    pub(super) text: String,
    number: u32,
    pub(super) spares: bool,
}

/// A place in the family.
#[derive(Debug)]
pub(super) struct Slot(usize);

impl Family {
    pub(super) fn new() -> io::Result<Family> {
        let id = format!("{:016x}", RandomState::new().build_hasher().finish());
        let main = std::process::id();
        let ledger = memory_file()?;
        let mut head = LEDGER_MAGIC.to_vec();
        head.extend_from_slice(id.as_bytes());
        rustix::io::pwrite(&ledger, &head, 0)?;
        Ok(Family {
            id,
            outer: std::env::var(MARKER).ok().filter(|outer| outer.len() < 1024),
            main,
            adopted: proc_fs::open(&format!("/proc/self/task/{main}/children")).ok(),
            off_main: rustix::thread::gettid() != rustix::process::getpid(),
            ledger,
            roll: Mutex::default(),
        })
    }

    /// What all marks of its trees begin with, up to a dot.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn ledger(&self) -> BorrowedFd<'_> {
        self.ledger.as_fd()
    }

    /// A mark for the next tree.
    pub(super) fn next_mark(&self, leftovers: Leftovers) -> Mark {
        let mut roll = self.roll.lock();
        roll.launches = roll.launches.wrapping_add(1);
        let number = roll.launches;
        match leftovers {
            Leftovers::Kill => Mark { text: format!("{}.{number}", self.id), number, spares: false },
            Leftovers::Report => Mark { text: format!("{}.{number}.{SPARED}", self.id), number, spares: true },
        }
    }

    /// The marker variable's value for a tree: those of the trees that we are in come first, so that
    /// their sidecars find what is ours.
    pub(super) fn marker(&self, mark: &str) -> String {
        self.outer.as_ref().map_or_else(|| mark.to_owned(), |outer| format!("{outer},{mark}"))
    }

    /// Makes a place for a tree that is about to be launched. The guard is told at once of one whose
    /// leftovers are spared: it would spare all of it.
    pub(super) fn enrol(&self, mark: &Mark) -> Slot {
        let mut roll = self.roll.lock();
        let slot = roll.leaders.iter().position(Option::is_none).unwrap_or_else(|| {
            roll.leaders.push(None);
            roll.leaders.len() - 1
        });
        let leads = Leads { pid: 0, spares: mark.spares.then_some(mark.number), guarded: mark.spares };
        if leads.guarded {
            self.write(slot, &leads);
        }
        roll.leaders[slot] = Some(leads);
        Slot(slot)
    }

    /// Its leader was launched.
    pub(super) fn set_leader(&self, slot: &Slot, pid: u32) {
        if let Some(leads) = &mut self.roll.lock().leaders[slot.0] {
            leads.pid = pid;
            if leads.guarded {
                self.write(slot.0, leads);
            }
        }
    }

    /// Tells the guard of a leader's group, once.
    pub(super) fn guard(&self, slot: &Slot) {
        if let Some(leads) = &mut self.roll.lock().leaders[slot.0]
            && !std::mem::replace(&mut leads.guarded, true)
        {
            self.write(slot.0, leads);
        }
    }

    /// Tells the guard that a group is not ours any more: before its leader is reaped, since from then
    /// on its number may be anybody's.
    pub(super) fn unguard(&self, slot: &Slot) {
        if let Some(leads) = &mut self.roll.lock().leaders[slot.0]
            && std::mem::take(&mut leads.guarded)
        {
            self.write(slot.0, &Leads { pid: 0, spares: None, guarded: false });
        }
    }

    /// Lets go of a leader that has been reaped, or was never launched.
    pub(super) fn leave(&self, slot: Slot) {
        self.unguard(&slot);
        self.roll.lock().leaders[slot.0] = None;
    }

    /// Whether nothing launched is left.
    pub(super) fn is_empty(&self) -> bool {
        self.roll.lock().leaders.iter().all(Option::is_none)
    }

    /// Keeps a leader for later that is dying and not dead; it stays enrolled.
    pub(super) fn abandon(&self, slot: Slot) {
        self.roll.lock().abandoned.push(slot);
    }

    /// A page that is there can be written, so there is nothing to do about an error.
    fn write(&self, slot: usize, leads: &Leads) {
        let [pid, number] = [leads.pid, leads.spares.unwrap_or(0)].map(u32::to_le_bytes);
        let _ = rustix::io::pwrite(&self.ledger, &[pid, number].concat(), (SLOTS_AT + slot * SLOT_LEN) as u64);
    }

    pub(super) fn set_guard(&self, guard: Option<u32>) {
        self.roll.lock().guard = guard;
    }

    /// Leaves what has come to us of a tree alone from now on.
    pub(super) fn spare(&self, left: &[Stat]) {
        let ours: Vec<_> =
            left.iter().filter(|stat| self.is_child(stat)).map(|stat| (stat.pid, proc_fs::env_of(stat.pid, MARKER).is_some())).collect();
        self.roll.lock().spared.extend(ours);
    }

    /// Whether a child of ours is left alone.
    pub(super) fn spares(&self, pid: u32) -> bool {
        self.roll.lock().spared.contains_key(&pid)
    }

    /// The children of ours that were neither launched by us nor are left alone.
    pub(super) fn adopted(&self) -> Vec<u32> {
        let children = match &self.adopted {
            Some(list) => proc_fs::parse_pids(&proc_fs::read_open(list).unwrap_or_default()),
            None => self.by_parent(),
        };
        if children.is_empty() {
            return children;
        }
        let roll = self.roll.lock();
        let known = |pid: &u32| roll.leads(*pid) || roll.guard == Some(*pid) || roll.spared.contains_key(pid);
        children.into_iter().filter(|pid| !known(pid)).collect()
    }

    fn by_parent(&self) -> Vec<u32> {
        proc_fs::everyone().into_iter().filter(|stat| stat.parent == self.main).map(|stat| stat.pid).collect()
    }

    /// Whether there is no `/proc` to see by who is left, as in an empty chroot.
    pub(super) fn is_blind(&self) -> bool {
        self.adopted.is_none() && proc_fs::stat(self.main).is_none()
    }

    /// Whether `stat` is a child of ours, so that its pid is its own until we reap it.
    pub(super) fn is_child(&self, stat: &Stat) -> bool {
        stat.parent == self.main
    }

    /// Whether an adopted process is in the tree `mark`, by what it still carries of it.
    pub(super) fn owner(&self, pid: u32, mark: &str) -> Owner {
        let Some(marker) = proc_fs::env_of(pid, MARKER) else { return Owner::Unknown };
        if marker.split(',').any(|one| one == mark) { Owner::Asked } else { Owner::Another }
    }

    /// Whether an adopted process that carries no marker can only be of a tree that there is: nobody
    /// else's orphans come to us unless we are PID 1, and none of an earlier tree has been left alone that may
    /// have orphans of that kind.
    pub(super) fn adopts_only_ours(&self) -> bool {
        self.main != 1 && self.off_main && self.roll.lock().spared.values().all(|marked| *marked)
    }

    /// Whether what comes to us can only be of the tree of this leader: no other one is there, and nothing
    /// that was left alone.
    pub(super) fn has_only(&self, leader: u32) -> bool {
        self.adopts_only_ours() && self.roll.lock().spared.is_empty() && self.others(leader).is_empty()
    }

    /// The leaders besides this one.
    pub(super) fn others(&self, leader: u32) -> Vec<u32> {
        self.roll.lock().leaders.iter().flatten().map(|leads| leads.pid).filter(|pid| *pid != leader).collect()
    }

    /// Reaps adopted zombies of no tree that is still to be swept, and abandoned leaders.
    pub(super) fn reap_strangers(&self) {
        let spared: Vec<u32> = self.roll.lock().spared.keys().copied().collect();
        for pid in spared.into_iter().filter(|pid| reap(*pid)) {
            self.roll.lock().spared.remove(&pid);
        }
        for pid in self.adopted() {
            if let Some(stat) = proc_fs::stat(pid)
                && stat.dead
                && !self.leads(stat.group)
            {
                reap(pid);
            }
        }
        let abandoned = std::mem::take(&mut self.roll.lock().abandoned);
        for slot in abandoned {
            let pid = self.roll.lock().leaders[slot.0].as_ref().map(|leads| leads.pid);
            // Its group was killed, so that only a number is left to be taken off the ledger.
            self.unguard(&slot);
            if pid.is_none_or(reap) {
                self.leave(slot);
            } else {
                self.abandon(slot);
            }
        }
    }

    /// Whether `group` is that of a tree which is still to be swept.
    pub(super) fn leads(&self, group: u32) -> bool {
        self.roll.lock().leads(group)
    }
}

/// Whose an adopted process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Asked,
    Another,
    Unknown,
}

/// Reaps one child if it is dead; says whether it is gone. By its own pid: waiting for any child would
/// take the status of one that somebody else waits for.
pub(super) fn reap(pid: u32) -> bool {
    let Some(pid) = proc_fs::target(pid) else { return true };
    loop {
        match rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(None) => return false,
            Err(Errno::INTR) => {}
            Ok(Some(_)) | Err(_) => return true,
        }
    }
}

/// A file that is on no disk, and is not executable where the kernel can say so (Linux 6.3).
fn memory_file() -> Result<OwnedFd, Errno> {
    let named = |flags| rustix::fs::memfd_create("mcp-trees", MemfdFlags::CLOEXEC | flags);
    named(MemfdFlags::NOEXEC_SEAL).or_else(|_| named(MemfdFlags::empty()))
}
