//! The live copies of the probed servers that somebody else started: what a probe could harm, and what
//! could keep it from starting.
//!
//! A peer is a living process that has the same arguments as something in the server's launched tree,
//! and does not carry the marker of a launched tree: that would be a probe, ours or another sidecar's.
//! What another user runs is not seen as a peer: whether it carries the marker cannot be read. Nor is
//! what runs in another pid namespace, such as another container.
//!
//! All servers share one table of what runs. It is made when a server is probed for the first time,
//! when a probe has failed, and when the last one is old; what was started since is added more often. A
//! peer that was found is watched by a pidfd, so that a probe finds out for one system call whether it
//! lives. Where there is none, a probe costs none.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::PidfdFlags;

use super::clock;
use super::process::environment::MARKER;
use super::process::kin::{self, CommandLine};
use super::process::{Kin, LaunchSpec, Launcher, proc_fs};
use crate::words::ServerName;

/// How old the table may be when a probe begins. A little less than the usual interval of a minute, so
/// that a lone server's probes each find what runs as something else since the last one.
const TABLE_LASTS: Duration = Duration::from_secs(50);
/// How long ago what was started meanwhile may have been looked for: a copy that is started again each time
/// that a probe has ended it must not be younger than that each time.
const NEWS_LASTS: Duration = Duration::from_secs(5);
/// The same for a server's first probe, so that one table does for many servers that begin together.
const TABLE_LASTS_FIRST: Duration = Duration::from_secs(1);
/// How long what a server runs as is held for known: an update may run as something else.
const KIN_LASTS: Duration = Duration::from_secs(600);
/// Processes in the table; more are not looked at.
const MOST_PROCESSES: usize = 32_768;
/// Copies of one server that are watched, and others that may turn out to be peers.
const MOST_PEERS: usize = 64;
/// Command lines of one server, those of former versions included.
const MOST_LINES: usize = 16;
/// The shortest word that tells a server from others.
const TELLING: usize = 4;

/// Knows the live copies of every server that was probed.
#[derive(Debug, Default)]
pub struct PeerWatch {
    table: Table,
    servers: BTreeMap<ServerName, Server>,
}

/// What was found out about a server's peers in one probe: their pids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Those that live.
    pub live: Vec<u32>,
    /// Those that lived before the launch, and are dead.
    pub died: Vec<u32>,
}

impl PeerWatch {
    /// To be called before each probe: finds the peers that live, by a new table if need be. What is
    /// returned wants to be filled while the probe's tree lives.
    pub fn before(&mut self, name: &ServerName, spec: &Arc<LaunchSpec>, launcher: &Launcher) -> Kin {
        let now = clock::up();
        let known = self.servers.get(name).is_some_and(|server| server.spec == *spec);
        if !known {
            self.servers.insert(name.clone(), Server::new(Arc::clone(spec)));
        }
        if self.table.age(now) > if known { TABLE_LASTS } else { TABLE_LASTS_FIRST } {
            self.table.renew(now);
        } else if now.saturating_sub(self.table.news_at) > NEWS_LASTS {
            self.table.add_news(now);
        }
        let Some(server) = self.servers.get_mut(name) else { return Kin::default() };
        server.join(&self.table, launcher);
        server.peers.retain(Peer::lives);
        Kin::new(server.learnt.is_none_or(|at| now.saturating_sub(at) > KIN_LASTS))
    }

    /// To be called at the end of a probe's last process, with what its trees were seen to run as. Says
    /// whether a peer is there that lives and has not been seen to live through a probe yet: if it was
    /// told to end, it may take a moment for it.
    pub fn learn(&mut self, name: &ServerName, kin: Kin) -> bool {
        let Some(server) = self.servers.get_mut(name) else { return false };
        server.learn(kin);
        server.peers().all(Peer::lives) && server.peers().any(|peer| !peer.survivor)
    }

    /// Whether every peer that was found before the launch still lives.
    #[must_use]
    pub fn all_live(&self, name: &ServerName) -> bool {
        self.servers.get(name).is_none_or(|server| server.peers().all(Peer::lives))
    }

    /// What has become of the peers that were found before the launch.
    pub fn after(&mut self, name: &ServerName) -> Found {
        let Some(server) = self.servers.get_mut(name) else { return Found::default() };
        let (live, mut dead): (Vec<Peer>, Vec<Peer>) = server.peers.drain(..).partition(Peer::lives);
        // One that has lived through a probe before bears them; its client has closed it.
        dead.retain(|peer| !peer.survivor);
        let own = |peer: &&Peer| server.lines.contains(&peer.line);
        let pids = |peers: &[Peer]| peers.iter().filter(own).map(|peer| peer.pid).collect();
        let found = Found { live: pids(&live), died: pids(&dead) };
        let learnt = server.learnt.is_some();
        server.peers = live.into_iter().filter(|peer| !learnt || server.lines.contains(&peer.line)).map(Peer::survived).collect();
        found
    }

    /// To be called when a probe that began at `since` has failed: the peers that live, those too that
    /// were started after it began.
    pub fn again(&mut self, name: &ServerName, since: Duration, launcher: &Launcher) -> Vec<u32> {
        if self.table.at.is_none_or(|at| at < since) {
            self.table.renew(clock::up());
        }
        let Some(server) = self.servers.get_mut(name) else { return Vec::new() };
        server.join(&self.table, launcher);
        server.peers().filter(|peer| peer.lives()).map(|peer| peer.pid).collect()
    }

    /// Nobody watches this server any more.
    pub fn forget(&mut self, name: &ServerName) {
        self.servers.remove(name);
    }

    /// Whether peers can be seen at all.
    #[must_use]
    pub const fn can_see(&self) -> bool {
        self.table.readable
    }

    /// How many tables were made so far.
    #[must_use]
    pub const fn scans(&self) -> u64 {
        self.table.number
    }
}

/// What runs: the command line of every process.
#[derive(Debug, Default)]
struct Table {
    at: Option<Duration>,
    number: u64,
    readable: bool,
    lines: Vec<(u32, Box<[u8]>)>,
    /// When it was last looked for what was started meanwhile.
    news_at: Duration,
    /// What was found then: it may have been about to execute something else.
    young: BTreeSet<u32>,
}

impl Table {
    fn age(&self, now: Duration) -> Duration {
        self.at.map_or(Duration::MAX, |at| now.saturating_sub(at))
    }

    /// Makes the table anew. Some 10 µs for each process.
    fn renew(&mut self, now: Duration) {
        let mut line = Vec::new();
        self.lines.clear();
        for pid in proc_fs::numbered("/proc").take(MOST_PROCESSES) {
            if kin::read_line(pid, &mut line).is_some() {
                self.lines.push((pid, Box::from(line.as_slice())));
            }
        }
        self.at = Some(now);
        self.number += 1;
        self.news_at = now;
        self.young.clear();
        // Without /proc, or with one of another namespace, we are not in it ourselves.
        self.readable = self.lines.iter().any(|(pid, _)| *pid == std::process::id());
    }
}

impl Table {
    /// Adds what was started since the last look, and looks again at what was new then. Some 0.5 µs for each process
    /// that was there, and 10 µs for each other.
    fn add_news(&mut self, now: Duration) {
        let there: BTreeSet<u32> = proc_fs::numbered("/proc").take(MOST_PROCESSES).collect();
        let again = std::mem::take(&mut self.young);
        self.lines.retain(|(pid, _)| there.contains(pid) && !again.contains(pid));
        let known: BTreeSet<u32> = self.lines.iter().map(|(pid, _)| *pid).collect();
        let mut line = Vec::new();
        for pid in there.difference(&known).copied() {
            if kin::read_line(pid, &mut line).is_some() {
                self.lines.push((pid, Box::from(line.as_slice())));
                self.young.extend(Some(pid).filter(|pid| !again.contains(pid)));
            }
        }
        self.news_at = now;
        self.number += 1;
    }
}

/// One server, and its peers.
#[derive(Debug)]
struct Server {
    spec: Arc<LaunchSpec>,
    /// What it runs as.
    lines: BTreeSet<CommandLine>,
    /// When that was last found out to the end.
    learnt: Option<Duration>,
    /// Words that what it runs as is likely to have among its own, whatever it is run by.
    telling: Vec<Vec<u8>>,
    /// The table that the peers were last looked up in.
    joined: u64,
    /// Until it is known what the server runs as, these may be others.
    peers: Vec<Peer>,
}

impl Server {
    fn new(spec: Arc<LaunchSpec>) -> Server {
        let own = own_line(&spec);
        let telling = [&spec.command].into_iter().chain(&spec.args).filter_map(|word| telling(word)).collect();
        Server { spec, lines: BTreeSet::from([own]), learnt: None, telling, joined: 0, peers: Vec::new() }
    }

    fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(|peer| self.lines.contains(&peer.line))
    }

    fn learn(&mut self, kin: Kin) {
        let (lines, complete) = kin.into_lines();
        if self.lines.len() + lines.len() > MOST_LINES {
            self.lines = BTreeSet::from([own_line(&self.spec)]);
        }
        self.lines.extend(lines.into_iter().take(MOST_LINES));
        if complete {
            self.learnt = Some(clock::up());
        }
    }

    /// Looks in the table for what is not watched yet.
    fn join(&mut self, table: &Table, launcher: &Launcher) {
        if std::mem::replace(&mut self.joined, table.number) == table.number {
            return;
        }
        // Others than peers are in the table again, if they are to be watched still.
        let Server { lines, peers, .. } = self;
        peers.retain(|peer| lines.contains(&peer.line));
        let known: BTreeSet<u32> = self.peers.iter().filter(|peer| peer.lives()).map(|peer| peer.pid).collect();
        let new = || table.lines.iter().filter(|(pid, _)| !known.contains(pid));
        let surely = |line: &[u8]| self.lines.contains(line);
        let perhaps = |line: &[u8]| self.learnt.is_none() && self.telling.iter().any(|word| memmem::find(line, word).is_some());
        let sure = new().filter(|(_, line)| surely(line));
        let unsure = new().filter(|(_, line)| !surely(line) && perhaps(line));
        let room = MOST_PEERS.saturating_sub(self.peers.len());
        let more: Vec<Peer> = sure.chain(unsure).filter_map(|(pid, line)| Peer::watch(*pid, line, launcher)).take(room).collect();
        self.peers.extend(more);
    }
}

/// The command line that a client executes.
fn own_line(spec: &LaunchSpec) -> CommandLine {
    let mut line = [&spec.command].into_iter().chain(&spec.args).map(|word| word.as_bytes()).collect::<Vec<_>>().join(&0);
    line.truncate(kin::MOST_LINE);
    kin::trim(&mut line);
    line
}

/// A word without its directories and its version, if it is long enough to tell something.
fn telling(word: &str) -> Option<Vec<u8>> {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    (name.len() >= TELLING && !name.starts_with('-')).then(|| name.as_bytes().to_vec())
}

/// A living process that may be a peer.
#[derive(Debug)]
struct Peer {
    pid: u32,
    /// With the pid, names it for good.
    started: u64,
    line: CommandLine,
    /// `None` where no descriptor was to be had.
    pidfd: Option<OwnedFd>,
    /// It has lived through a probe.
    survivor: bool,
}

impl Peer {
    /// Watches the process `pid`, if it still runs as `line`, was not launched by a sidecar, and is no
    /// fork of another one (a subshell, a worker: such come and go).
    fn watch(pid: u32, line: &[u8], launcher: &Launcher) -> Option<Peer> {
        let pidfd = rustix::process::pidfd_open(proc_fs::target(pid)?, PidfdFlags::empty()).ok();
        let stat = proc_fs::stat(pid).filter(|stat| !stat.dead && !launcher.knows(stat))?;
        let same = |pid: u32| kin::command_line(pid).is_some_and(|now| now == line);
        if !same(pid) || same(stat.parent) || !is_unmarked(pid) {
            return None;
        }
        let peer = Peer { pid, started: stat.started, line: line.to_vec(), pidfd, survivor: false };
        // Had it died meanwhile, all this might be about another one.
        peer.lives().then_some(peer)
    }

    fn lives(&self) -> bool {
        let Some(pidfd) = &self.pidfd else {
            return proc_fs::stat(self.pid).is_some_and(|stat| !stat.dead && stat.started == self.started);
        };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ended = rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&at_once)));
        !matches!(ended, Ok(1..))
    }

    fn survived(mut self) -> Peer {
        self.survivor = true;
        self
    }
}

/// Whether a process can be seen not to be of a launched tree.
fn is_unmarked(pid: u32) -> bool {
    let Ok(environ) = proc_fs::read(&format!("/proc/{pid}/environ")) else { return false };
    let marks = |entry: &[u8]| entry.strip_prefix(MARKER.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='));
    !environ.split(|byte| *byte == 0).any(marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(line: &str) -> Server {
        let mut words = line.split(' ').map(str::to_owned);
        let spec = LaunchSpec { command: words.next().unwrap(), args: words.collect(), ..LaunchSpec::default() };
        Server::new(Arc::new(spec))
    }

    #[test]
    fn the_table_has_ourselves_in_it() {
        let mut table = Table::default();
        assert_eq!((table.age(Duration::from_secs(9)), table.readable), (Duration::MAX, false));
        table.renew(Duration::from_secs(5));
        assert_eq!((table.age(Duration::from_secs(9)), table.readable, table.number), (Duration::from_secs(4), true, 1));
        let ours = kin::command_line(std::process::id()).unwrap();
        assert!(table.lines.iter().any(|(pid, line)| *pid == std::process::id() && **line == ours[..]));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "something has to be started")]
    fn what_is_started_later_is_added() {
        let mut table = Table::default();
        table.renew(Duration::from_secs(1));
        let has = |table: &Table, pid| table.lines.iter().filter(|(there, _)| *there == pid).count();
        let mut child = std::process::Command::new("/bin/sleep").arg("100").spawn().unwrap();
        // Who has launched it goes on a little before its command line is there.
        while kin::command_line(child.id()).is_none_or(|line| line.is_empty()) {
            std::thread::yield_now();
        }
        for look in 1..=3 {
            table.add_news(Duration::from_secs(1 + look));
            assert_eq!((has(&table, child.id()), has(&table, std::process::id()), table.number), (1, 1, 1 + look));
            assert_eq!(table.young.contains(&child.id()), look == 1, "read once more, and no more");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        table.add_news(Duration::from_secs(9));
        assert_eq!(has(&table, child.id()), 0);
    }

    #[test]
    fn a_server_is_known_by_its_own_words_until_it_was_seen() {
        let words = |line: &str| server(line).telling.into_iter().map(|word| String::from_utf8(word).unwrap()).collect::<Vec<_>>();
        assert_eq!(words("npx -y @scope/server-files@1.2.3 /srv/data"), ["server-files", "data"]);
        assert_eq!(words("/usr/bin/mcp-time --utc"), ["mcp-time"]);
        let server = server("npx -y x@2 /srv");
        assert_eq!(server.lines, [b"npx\0-y\0x@2\0/srv".to_vec()].into());
    }

    #[test]
    fn what_ends_is_seen_to_and_its_number_is_not_mistaken() {
        let own = std::process::id();
        let peer = |started| Peer { pid: own, started, line: vec![], pidfd: None, survivor: false };
        let started = proc_fs::stat(own).unwrap().started;
        assert!(peer(started).lives());
        assert!(!peer(started + 1).lives(), "another process with the same pid");
        let pidfd = rustix::process::pidfd_open(proc_fs::target(own).unwrap(), PidfdFlags::empty()).ok();
        assert!(Peer { pidfd, ..peer(started) }.lives());
    }
}
