//! The tree of a launched process: measured while it lives, and ended when its leader is dead.
//!
//! The order is what makes it safe: the leader is seen dead and left a zombie, what is left of its
//! tree is looked for and ended, then the leader is reaped. Reaped first, its number could be given
//! to somebody else, whose group a later signal would reach.
//!
//! What is left has come to us, the subreaper, or descends from something that has. So in the usual
//! case one read of the list of adopted processes says that nothing is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use parking_lot::Mutex;
use rustix::process::{PidfdFlags, Signal as Number};
use tokio::time::{sleep, timeout};

use super::cgroup::Group;
use super::family::{self, Family, Mark, Owner, Slot};
use super::leader::{Leader, Signal};
use super::proc_fs::{self, Stat};
use super::scarce;
use super::spec::Resources;
use crate::probe::{Excess, Exit, Leftover, Swept, Usage};
use crate::words::printable;

/// How long what is left may take to end by itself: a helper that sees its own end-of-file at the
/// same time as the server is no leftover.
/// The runtime adds up to a millisecond to each, which makes 25 in all.
const GRACE: [Duration; 6] = [ms(1), ms(2), ms(3), ms(4), ms(5), ms(5)];
/// The same for an engine's client: the monitor of its container removes that after the client's end,
/// and is not the server's.
const LINGER: usize = 80;
const LINGER_PAUSE: Duration = ms(25);
/// The longest time from SIGTERM to SIGKILL.
const MOST_TERM: Duration = Duration::from_secs(1);
/// How long the dying may take to be dead.
const MOST_KILL: Duration = Duration::from_secs(2);
/// The same where the whole tree is ended: it may be one that multiplies.
const MOST_END: Duration = Duration::from_secs(10);
/// So many looks that find nothing are enough to believe it.
const ENOUGH: u32 = 2;
/// So many looks go without a pause while something new may still be born.
const HASTE: u32 = 16;
/// More processes than this are not walked through in one look.
const MOST: usize = 10_000;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A launched process and all that descends from it.
pub(super) struct Tree {
    family: Arc<Family>,
    leader: Leader,
    slot: Option<Slot>,
    mark: Mark,
    cpu: Duration,
    seen: Mutex<Seen>,
    lingers: bool,
    /// What it was launched in, if it has one of its own.
    group: Option<Group>,
}

/// What was seen of the tree.
#[derive(Default)]
struct Seen {
    peak: Option<u64>,
    /// By pid and start time.
    members: Vec<(u32, u64)>,
}

impl Tree {
    /// `slot` is where it was enrolled, `group` what it was launched in.
    pub(super) fn new(family: Arc<Family>, leader: Leader, slot: Slot, mark: Mark, group: Option<Group>) -> Tree {
        family.set_leader(&slot, leader.id());
        Tree { family, leader, slot: Some(slot), mark, cpu: Duration::ZERO, seen: Mutex::default(), lingers: false, group }
    }

    /// Says so if the leader, which is executed by now, is not in the group that it was to enter.
    pub(super) fn expect_in_group(&self) {
        if self.group.as_ref().is_some_and(|group| !group.members().contains(&self.leader.id())) && self.leader.seen_dead().is_none() {
            tracing::warn!("a server could not enter its control group, and runs without");
        }
    }

    /// What is left is given much longer to end by itself.
    pub(super) fn lingers(&mut self) {
        self.lingers = true;
    }

    pub(super) fn leader(&self) -> &Leader {
        &self.leader
    }

    /// By which what is in it can be told.
    pub(super) fn mark(&self) -> &str {
        &self.mark.text
    }

    /// Has the guard end its group should we be killed. Its marker tells the guard of it anyway, unless
    /// it has overwritten that, for which it needs a moment.
    pub(super) fn guard(&self) {
        if let Some(slot) = &self.slot {
            self.family.guard(slot);
        }
    }

    /// Sums up the peak memory of every living member, and notes who they are.
    pub(super) fn measure(&self) {
        let Some((mut sum, threads)) = proc_fs::peak_memory(self.leader.id()) else { return };
        let mut seen = self.seen.lock();
        let mut next =
            if threads == 1 { proc_fs::children_of_thread(self.leader.id(), self.leader.id()) } else { proc_fs::children(self.leader.id()) };
        seen.members.clear();
        while let Some(pid) = next.pop()
            && seen.members.len() < MOST
        {
            if let Some(stat) = proc_fs::stat(pid) {
                sum += proc_fs::peak_memory(pid).map_or(0, |(peak, _)| peak);
                seen.members.push((pid, stat.started));
                next.extend(proc_fs::children(pid));
            }
        }
        seen.peak = seen.peak.max(Some(sum));
    }

    /// Notes who the members are, where an orphan without a marker could be somebody else's.
    pub(super) fn note(&self) {
        if self.family.adopts_only_ours() && self.family.others(self.leader.id()).is_empty() {
            return;
        }
        let mut members = Vec::new();
        if let Some(leader) = proc_fs::stat(self.leader.id()) {
            self.walk(leader, &mut members, MOST);
        }
        self.seen.lock().members = members.iter().skip(1).map(|stat| (stat.pid, stat.started)).collect();
    }

    /// What of `limits` it has too much of at this moment.
    pub(super) fn excess(&self, limits: &Resources) -> Option<Excess> {
        let mut members = Vec::new();
        let adopted = self.family.adopted().into_iter().filter_map(proc_fs::stat).filter(|stat| self.owns(stat));
        let leader = proc_fs::stat(self.leader.id());
        let most = limits.most_counted(MOST);
        for root in leader.into_iter().chain(adopted).filter(|stat| !stat.dead) {
            self.walk(root, &mut members, most);
        }
        self.add_grouped(&mut members, most);
        limits.excess(&members)
    }

    /// How long the one among leader and members, as noted by [`measure`](Tree::measure), that had to
    /// wait longest for a core did so.
    pub(super) fn queued(&self) -> Duration {
        let seen = self.seen.lock();
        let members = seen.members.iter().map(|(pid, _)| *pid);
        members.chain([self.leader.id()]).filter_map(proc_fs::queued).max().unwrap_or_default()
    }

    /// See [`Child::sweep`](super::Child::sweep).
    pub(super) async fn sweep(mut self, term_grace: Duration) -> (Swept, Usage) {
        let ended_badly = self.leader.seen_dead() != Some(Exit::Code(0));
        let owner = if ended_badly { proc_fs::owner(self.leader.id()) } else { None };
        let (mut swept, left) = self.find().await;
        if self.mark.spares {
            self.family.spare(&left);
            swept.spared = !left.is_empty();
        } else if !left.is_empty() {
            let _ = timeout(term_grace.min(MOST_TERM), self.ask(left)).await;
            let _ = timeout(MOST_KILL, self.kill()).await;
            swept.survivors = self.look().iter().map(leftover).collect();
        }
        let (mut swept, usage) = self.close(swept);
        // What it leaves, and is left alone, is not what others have taken.
        swept.scarce = owner.filter(|_| !swept.spared).map(|(uid, _)| scarce::look(uid)).unwrap_or_default();
        (swept, usage)
    }

    /// See [`Child::end`](super::Child::end).
    pub(super) async fn end(mut self) -> (Swept, Usage) {
        self.end_leader().await;
        let _ = timeout(MOST_END, self.kill()).await;
        let left = self.look();
        // What was killed with the server has not outlived it.
        let mut swept = self.told(&left);
        swept.survivors = left.iter().map(leftover).collect();
        self.close(swept)
    }

    /// Kills the leader unless it is dead, and waits for its end, though not for ever.
    pub(super) async fn end_leader(&self) {
        if self.leader.seen_dead().is_none() {
            let _ = self.leader.signal_group(Signal::Kill);
            let _ = timeout(MOST_KILL, self.leader.exited()).await;
        }
    }

    /// Waits for what is just ending, and finds the rest.
    async fn find(&mut self) -> (Swept, Vec<Stat>) {
        self.end_leader().await;
        let mut left = self.look();
        let longer = std::iter::repeat_n(LINGER_PAUSE, if self.lingers { LINGER } else { 0 });
        for pause in GRACE.into_iter().chain(longer) {
            if left.is_empty() {
                break;
            }
            sleep(pause).await;
            left = self.look();
        }
        if self.leader.is_group_killed() {
            left = timeout(MOST_KILL, self.group_dead()).await.unwrap_or(left);
        }
        (self.told(&left), left)
    }

    /// Waits until nothing is in the group any more, to which SIGKILL was sent: what was killed with the server
    /// has not outlived it, however long a busy host takes over that. Returns what is left besides.
    async fn group_dead(&mut self) -> Vec<Stat> {
        loop {
            let left = self.look();
            if !left.iter().any(|stat| self.in_group(stat)) {
                return left;
            }
            sleep(ms(1)).await;
        }
    }

    fn told(&self, left: &[Stat]) -> Swept {
        let mut swept = Swept::default();
        for stat in left {
            let place = if self.in_group(stat) { &mut swept.in_group } else { &mut swept.escaped };
            place.push(leftover(stat));
        }
        swept
    }

    /// Lets go of the leader, and adds up.
    fn close(&mut self, mut swept: Swept) -> (Swept, Usage) {
        if !self.part() {
            let leader = proc_fs::stat(self.leader.id());
            swept.survivors.extend(leader.as_ref().map(leftover));
        }
        let seen = self.seen.lock();
        let processes = if seen.peak.is_some() { seen.members.len() + 1 } else { 0 };
        (swept, Usage { max_rss: seen.peak, cpu: self.cpu, processes, queued: Duration::ZERO })
    }

    /// Sends SIGTERM, once to each, until all are gone.
    async fn ask(&mut self, mut left: Vec<Stat>) {
        let mut asked = Vec::new();
        for pause in [1, 2, 3, 4].into_iter().chain(std::iter::repeat(5)).map(ms) {
            if left.is_empty() {
                return;
            }
            left.retain(|stat| !asked.contains(&(stat.pid, stat.started)));
            self.signal(&left, Signal::Term);
            asked.extend(left.iter().map(|stat| (stat.pid, stat.started)));
            sleep(pause).await;
            left = self.look();
        }
    }

    /// Sends SIGKILL until all are gone, those too that are born meanwhile.
    async fn kill(&mut self) {
        let mut others = BTreeSet::new();
        let mut empty = 0;
        for look in 0u32.. {
            empty = if self.cull(&mut others) { 0 } else { empty + 1 };
            // The kernel's list may be incomplete while what is on it dies (proc_pid_task_children(5)).
            if empty == ENOUGH {
                return;
            }
            if look < HASTE {
                tokio::task::yield_now().await;
            } else {
                sleep(ms(1)).await;
            }
        }
    }

    /// Kills what has come to us of the tree, and reaps what of it is dead; says whether anything was there:
    /// also of what is dead now, descendants may have come to us since.
    /// Descendants come to us when their parents die. Who is of another tree is noted in `others`.
    ///
    /// Some multiply, and have more of the cores than we do, so nothing is read of any before all are kept
    /// from going on.
    fn cull(&mut self, others: &mut BTreeSet<u32>) -> bool {
        let send = |pid: u32, signal| proc_fs::target(pid).map(|pid| rustix::process::kill_process(pid, signal));
        let only = self.family.has_only(self.leader.id());
        let all: Vec<u32> = self.family.adopted().into_iter().filter(|pid| !others.contains(pid)).collect();
        let _ = self.leader.signal_group(Signal::Kill);
        if let Some(group) = &self.group {
            group.kill();
        }
        // They are children of ours, so each number is its own until it is reaped.
        for pid in &all {
            send(*pid, if only { Number::KILL } else { Number::STOP });
        }
        let mut found = false;
        for pid in all {
            if only {
                let (_, cpu) = counted(|| family::reap(pid));
                self.cpu += cpu;
                found = true;
                continue;
            }
            let owner = self.family.owner(pid, &self.mark.text);
            let stat = if owner == Owner::Asked { None } else { proc_fs::stat(pid) };
            if let Some(dead) = stat.as_ref().filter(|stat| stat.dead) {
                found |= self.bury(dead);
            } else if owner == Owner::Asked || stat.is_some_and(|stat| self.owns(&stat)) {
                send(pid, Number::KILL);
                found = true;
            } else {
                send(pid, Number::CONT);
                // One that is being executed has no environment for a moment.
                if owner == Owner::Another {
                    others.insert(pid);
                }
            }
        }
        found
    }

    /// Signals the group if one of `left` is in it, and each of the others.
    fn signal(&self, left: &[Stat], signal: Signal) {
        if left.iter().any(|stat| self.in_group(stat)) {
            let _ = self.leader.signal_group(signal);
        }
        for stat in left.iter().filter(|stat| !self.in_group(stat)) {
            self.signal_one(stat, signal.into());
        }
    }

    /// Signals one process, and nobody who has its number by now.
    fn signal_one(&self, stat: &Stat, signal: Number) {
        let Some(pid) = proc_fs::target(stat.pid) else { return };
        if self.family.is_child(stat) {
            let _ = rustix::process::kill_process(pid, signal);
        } else if let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty())
            && proc_fs::stat(stat.pid).is_some_and(|now| now.started == stat.started)
        {
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
        }
    }

    fn in_group(&self, stat: &Stat) -> bool {
        stat.group == self.leader.id()
    }

    /// The living members of the tree, its leader aside. Reaps the dead ones that have come to us.
    fn look(&mut self) -> Vec<Stat> {
        let mut living = Vec::new();
        for pid in self.family.adopted() {
            let Some(stat) = proc_fs::stat(pid) else { continue };
            if stat.dead {
                self.bury(&stat);
            } else if self.owns(&stat) {
                self.walk(stat, &mut living, MOST);
            }
        }
        self.add_grouped(&mut living, MOST);
        living.retain(|stat| stat.pid != self.leader.id());
        let members = living.iter().map(|stat| (stat.pid, stat.started));
        let seen = self.seen.get_mut();
        let new: Vec<_> = members.filter(|member| !seen.members.contains(member)).collect();
        seen.members.extend(new);
        living
    }

    /// Adds those in its control group that are not among `living` yet: they may hide, or have a parent that is not ours.
    fn add_grouped(&self, living: &mut Vec<Stat>, most: usize) {
        let Some(group) = &self.group else { return };
        let known: BTreeSet<u32> = living.iter().map(|stat| stat.pid).collect();
        let others = group.members().into_iter().filter(|pid| !known.contains(pid)).filter_map(proc_fs::stat).filter(|stat| !stat.dead);
        living.extend(others.take(most.saturating_sub(known.len())));
    }

    /// `root` and its living descendants, as long as they are not more than `most`.
    fn walk(&self, root: Stat, living: &mut Vec<Stat>, most: usize) {
        let mut next = vec![root];
        while let Some(stat) = next.pop()
            && living.len() < most
        {
            next.extend(proc_fs::children_of(&stat).into_iter().filter_map(proc_fs::stat).filter(|stat| !stat.dead));
            living.push(stat);
        }
    }

    /// Whether an adopted process is of this tree.
    fn owns(&self, stat: &Stat) -> bool {
        if self.in_group(stat) || self.knows(stat) {
            return true;
        }
        match self.family.owner(stat.pid, &self.mark.text) {
            Owner::Asked => true,
            Owner::Another => false,
            // Older than every other tree that there is: then it can be of no other.
            Owner::Unknown => {
                let started = |leader: u32| proc_fs::stat(leader).map(|leader| leader.started);
                let of_no_other = || self.family.others(self.leader.id()).into_iter().all(|other| started(other).is_none_or(|s| s > stat.started));
                self.family.adopts_only_ours() && started(self.leader.id()).is_some_and(|s| s <= stat.started) && of_no_other()
            }
        }
    }

    fn knows(&self, stat: &Stat) -> bool {
        self.seen.lock().members.contains(&(stat.pid, stat.started))
    }

    /// Reaps an adopted zombie, unless it is in the group of another tree, which will do it; says whether it did.
    fn bury(&mut self, stat: &Stat) -> bool {
        if self.in_group(stat) || self.knows(stat) {
            let (gone, cpu) = counted(|| family::reap(stat.pid));
            self.cpu += cpu;
            gone
        } else {
            !self.family.leads(stat.group) && family::reap(stat.pid)
        }
    }

    /// Lets go of the group, reaps the leader; says whether it was dead.
    fn part(&mut self) -> bool {
        let Some(slot) = self.slot.take() else { return true };
        if self.leader.seen_dead().is_none() {
            self.family.abandon(slot);
            return false;
        }
        if self.family.is_blind() && !self.mark.spares {
            let _ = self.leader.signal_group(Signal::Kill);
        }
        self.family.unguard(&slot);
        let ((), cpu) = counted(|| {
            self.leader.reap();
        });
        self.family.leave(slot);
        self.cpu += cpu;
        true
    }
}

impl Drop for Tree {
    /// A tree that nobody has swept: killed here and now, within some 50 ms.
    fn drop(&mut self) {
        if self.slot.is_none() {
            return;
        }
        if let Some(group) = self.group.as_ref().filter(|_| !self.mark.spares) {
            group.kill();
        }
        let _ = if self.mark.spares { self.leader.signal_alone(Signal::Kill) } else { self.leader.signal_group(Signal::Kill) };
        for _ in 0..50 {
            let left = if self.mark.spares { Vec::new() } else { self.look() };
            if left.is_empty() && self.leader.seen_dead().is_some() {
                break;
            }
            self.signal(&left, Signal::Kill);
            std::thread::sleep(ms(1));
        }
        self.part();
    }
}

/// Runs what reaps one of our children, and says what that child and its own had used.
fn counted<T>(reaping: impl FnOnce() -> T) -> (T, Duration) {
    let before = children_cpu();
    let done = reaping();
    (done, children_cpu().saturating_sub(before))
}

/// The processor time of all children that were reaped so far.
fn children_cpu() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Duration::ZERO };
    let time = |value: nix::sys::time::TimeVal| Duration::from_micros((value.tv_sec() * 1_000_000 + value.tv_usec()).try_into().unwrap_or(0));
    time(usage.user_time()) + time(usage.system_time())
}

fn leftover(stat: &Stat) -> Leftover {
    Leftover { pid: stat.pid, name: printable(&stat.comm, 64) }
}
