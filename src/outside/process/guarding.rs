//! The guard itself: waits for the end of its sidecar, then ends what that left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Signal;

use super::container::{Orphan, is_monitor, orphan};
use super::environment::MARKER;
use super::family::{ID_LEN, LEDGER_MAGIC, SLOT_LEN, SLOTS_AT, SPARED};
use super::guard::{GOODBYE, NAME};
use super::proc_fs;

/// The waits between looks that find nothing: 300 ms in all. A server that its sidecar's death met
/// between fork and exec carries no marker before it has been executed.
const WAITS: [u64; 8] = [2, 5, 10, 20, 30, 50, 80, 110];

/// At most so many looks, should something be born for each that is killed.
const LOOKS: usize = 2_000;

/// What the hidden `stdiowatch guard` runs: with the pipe from the sidecar as its stdin and the
/// ledger as its stdout. Says nothing, since it has nowhere to say it.
#[must_use]
pub fn guard_main() -> ExitCode {
    let _ = rustix::thread::set_name(NAME);
    // Whatever directory the sidecar was started in may be unmounted.
    let _ = rustix::process::chdir("/");
    let orderly = sidecar_ended();
    let Some(ledger) = ledger() else { return ExitCode::from(2) };
    if !orderly {
        end(&ledger);
    }
    ExitCode::SUCCESS
}

/// Waits for the end of the sidecar; says whether it was an orderly one.
fn sidecar_ended() -> bool {
    let stdin = io::stdin();
    let mut byte = [0; 1];
    let mut orderly = false;
    loop {
        match rustix::io::read(stdin.as_fd(), &mut byte) {
            Ok(0) => return orderly,
            Ok(_) => orderly = byte == GOODBYE,
            Err(Errno::INTR) => {}
            Err(_) => return orderly,
        }
    }
}

/// What the sidecar had not swept.
struct Ledger {
    /// The sidecar's id.
    id: String,
    groups: BTreeSet<u32>,
    /// The numbers of those trees whose leftovers are spared: not yet, as long as they are in here.
    sparing: BTreeSet<u32>,
}

impl Ledger {
    /// Whether a process carries a mark of the sidecar, and is not the leftover of a tree that spares its
    /// own.
    fn marks(&self, pid: u32) -> bool {
        let ours = |mark: &str| {
            let mut parts = mark.split('.');
            let id = parts.next() == Some(&self.id);
            let number = parts.next().and_then(|number| number.parse().ok());
            let spared = parts.next() == Some(SPARED);
            id && (!spared || number.is_none_or(|number| self.sparing.contains(&number)))
        };
        proc_fs::env_of(pid, MARKER).is_some_and(|marker| marker.split(',').any(ours))
    }
}

fn ledger() -> Option<Ledger> {
    let stdout = io::stdout();
    let mut bytes = vec![0; 1 << 16];
    let len = rustix::io::pread(stdout.as_fd(), &mut bytes, 0).ok()?;
    let head = bytes.get(..SLOTS_AT)?.strip_prefix(LEDGER_MAGIC)?;
    let id = std::str::from_utf8(&head[..ID_LEN]).ok()?.to_owned();
    let slots = bytes.get(SLOTS_AT..len).unwrap_or_default().chunks_exact(SLOT_LEN);
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
    let (mut groups, mut sparing): (BTreeSet<u32>, BTreeSet<u32>) =
        slots.map(|slot| slot.split_at(SLOT_LEN / 2)).map(|(pid, tree)| (number(pid), number(tree))).unzip();
    groups.remove(&0);
    sparing.remove(&0);
    Some(Ledger { id, groups, sparing })
}

/// The clients of containers, by their pids. They are ended last: of one that is killed while it makes
/// its container, the half of that may be left which only it knows of.
type Clients = BTreeMap<u32, Orphan>;

/// Kills until nothing is left for a while, and removes the containers of the clients among it.
fn end(ledger: &Ledger) {
    let Ledger { id, groups, .. } = ledger;
    let mut clients: Clients = groups.iter().filter_map(|pid| Some((*pid, orphan(*pid, id)?))).collect();
    // All at once first: no process of a group is born while its group is being killed.
    for group in groups.iter().filter(|pid| !clients.contains_key(pid)).filter_map(|pid| proc_fs::target(*pid)) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    until_quiet(|| kill_all(ledger, &mut clients, false));
    if clients.is_empty() {
        return;
    }
    let mut ids = remove_all(&clients);
    until_quiet(|| kill_all(ledger, &mut clients, true));
    ids.extend(remove_all(&clients));
    // A container that was removed while it started may run on without the engine's knowledge.
    let mut living = proc_fs::everyone();
    living.retain(|stat| !stat.dead && stat.pid > 1);
    let monitors = living.iter().map(|stat| stat.pid).filter(|pid| is_monitor(*pid, &ids)).collect();
    for pid in with_descendants(&living, monitors).into_iter().filter_map(proc_fs::target) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

/// Does it again until there has been nothing to do for a while.
fn until_quiet(mut kill: impl FnMut() -> bool) {
    let mut waits = WAITS.iter();
    for _ in 0..LOOKS {
        if kill() {
            waits = WAITS.iter();
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        let Some(wait) = waits.next() else { return };
        std::thread::sleep(Duration::from_millis(*wait));
    }
}

/// Removes the containers, all at the same time, as an engine may be slow; says which ids they had.
fn remove_all(clients: &Clients) -> BTreeSet<String> {
    std::thread::scope(|scope| {
        let removals: Vec<_> = clients.values().map(|orphan| scope.spawn(|| orphan.remove())).collect();
        removals.into_iter().filter_map(|removal| removal.join().ok()).flatten().collect()
    })
}

/// These processes and all that descends from them.
fn with_descendants(living: &[proc_fs::Stat], mut pids: BTreeSet<u32>) -> BTreeSet<u32> {
    loop {
        let before = pids.len();
        pids.extend(living.iter().filter(|stat| pids.contains(&stat.parent)).map(|stat| stat.pid).collect::<Vec<_>>());
        if pids.len() == before {
            return pids;
        }
    }
}

/// Kills every living process that carries the sidecar's mark or is in one of its groups, and all
/// their descendants; says whether there was one. Notes which of them are clients of containers, and
/// kills these and what they are at work with only `with_clients`.
fn kill_all(ledger: &Ledger, clients: &mut Clients, with_clients: bool) -> bool {
    let me = std::process::id();
    let mut living = proc_fs::everyone();
    living.retain(|stat| !stat.dead && stat.pid > 1 && stat.pid != me);
    let ours = |stat: &proc_fs::Stat| ledger.groups.contains(&stat.group) || ledger.marks(stat.pid);
    let mut condemned = with_descendants(&living, living.iter().filter(|stat| ours(stat)).map(|stat| stat.pid).collect());
    if !with_clients {
        clients.extend(condemned.iter().filter_map(|pid| Some((*pid, orphan(*pid, &ledger.id)?))));
        for spared in with_descendants(&living, clients.keys().copied().collect()) {
            condemned.remove(&spared);
        }
    }
    for pid in condemned.iter().filter_map(|pid| proc_fs::target(*pid)) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    !condemned.is_empty()
}
