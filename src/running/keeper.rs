//! Keeps what was accepted, and what probes came to, over restarts, in a thread of its own: a disk may be
//! slow, and nobody waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing::{info, warn};

use crate::judge::{Accepted, Listing, LockFile, Source};
use crate::ledger::Record;
use crate::outside::clock;
use crate::outside::vault::{Vault, VaultError};
use crate::words::ServerName;

/// How long to wait before what could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(60);

/// A server's history is written at most this often, and at the end.
const APART: Duration = Duration::from_secs(60);

/// What there is to tell of the keeping.
#[derive(Debug, Default)]
pub struct Kept {
    /// How often something could not be written.
    failures: AtomicU64,
    /// Something that should be kept is not on the disk.
    missing: AtomicBool,
}

impl Kept {
    /// How often something could not be written.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Whether everything that should be kept is on the disk.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.missing.load(Ordering::Relaxed)
    }
}

/// Something to be kept.
#[derive(Debug)]
enum Thing {
    /// What was accepted of a server.
    Accepted(ServerName, Arc<Listing>),
    /// What its probes came to.
    Record(Box<Record>),
}

/// Keeps accepted schemas and histories in a directory.
#[derive(Debug)]
pub struct Keeper {
    vault: Option<Arc<Vault>>,
    kept: Arc<Kept>,
    inbox: Option<mpsc::Sender<Thing>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Keeps things in `dir`. Where that cannot be, it is told, and nothing is kept: no reason not to
    /// watch.
    #[must_use]
    pub fn open(dir: &Path) -> Keeper {
        let kept = Arc::new(Kept::default());
        let vault = Vault::open(dir).map(Arc::new).and_then(|vault| {
            let (inbox, messages) = mpsc::channel();
            let desk = Desk::new(Arc::clone(&vault), Arc::clone(&kept));
            let thread = thread::Builder::new().name("keeper".to_owned()).spawn(move || desk.keep(&messages));
            thread.map(|thread| (vault, inbox, thread)).map_err(|cause| VaultError::Io {
                what: "start a thread for",
                path: dir.to_string_lossy().into_owned(),
                cause,
            })
        });
        match vault {
            Ok((vault, inbox, thread)) => Keeper { vault: Some(vault), kept, inbox: Some(inbox), thread: Some(thread) },
            Err(error) => {
                warn!("nothing is kept over restarts: {error}");
                kept.failures.fetch_add(1, Ordering::Relaxed);
                kept.missing.store(true, Ordering::Relaxed);
                Keeper { vault: None, kept, inbox: None, thread: None }
            }
        }
    }

    /// What there is to tell of it.
    #[must_use]
    pub fn kept(&self) -> Arc<Kept> {
        Arc::clone(&self.kept)
    }

    /// What was accepted of a server before this process was started. What makes no sense is set aside,
    /// and told.
    #[must_use]
    pub fn load(&self, name: &ServerName) -> Option<Accepted> {
        let vault = self.vault.as_ref()?;
        let found = match vault.load(name.as_str()) {
            Ok(found) => found?,
            Err(error) => {
                warn!(server = name.as_str(), "what was accepted of it is not known: {error}");
                return None;
            }
        };
        match read(&found, name) {
            Ok(listing) => {
                info!(server = name.as_str(), sha256 = %listing.digest, "comparing with the schema that was accepted before");
                Some(Accepted { listing: Arc::new(listing), source: Source::Seen })
            }
            Err(why) => {
                let aside = vault.set_aside(name.as_str());
                let aside = aside.map_or_else(|error| error.to_string(), |path| format!("it is in {} now", path.display()));
                warn!(server = name.as_str(), "what was accepted of it makes no sense, so what is listed next is accepted: {why}; {aside}");
                None
            }
        }
    }

    /// What an earlier process has kept of a server's probes. What makes no sense is set aside, and told.
    #[must_use]
    pub fn load_record(&self, name: &ServerName) -> Option<Record> {
        let vault = self.vault.as_ref()?;
        let file = record_of(name);
        let found = match vault.load(&file) {
            Ok(found) => found?,
            Err(error) => {
                warn!(server = name.as_str(), "its history is not known: {error}");
                return None;
            }
        };
        match Record::parse(&found, name, clock::now()) {
            Ok(record) => Some(record),
            Err(why) => {
                let aside = vault.set_aside(&file);
                let aside = aside.map_or_else(|error| error.to_string(), |path| format!("it is in {} now", path.display()));
                warn!(server = name.as_str(), "its history makes no sense, so it begins anew: {why}; {aside}");
                None
            }
        }
    }

    /// Has what was accepted of a server kept.
    pub fn save(&self, name: &ServerName, listing: Arc<Listing>) {
        self.send(Thing::Accepted(name.clone(), listing));
    }

    /// Has what its probes came to kept: in a while, and at the end.
    pub fn save_record(&self, record: Record) {
        self.send(Thing::Record(Box::new(record)));
    }

    fn send(&self, thing: Thing) {
        if let Some(inbox) = &self.inbox {
            let _ = inbox.send(thing);
        }
    }
}

impl Drop for Keeper {
    /// Waits for what is still to be written.
    fn drop(&mut self) {
        self.inbox = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads what is kept of `name`.
fn read(bytes: &[u8], name: &ServerName) -> Result<Listing, String> {
    let mut lock = LockFile::parse(bytes).map_err(|error| error.to_string())?;
    lock.servers.remove(name).ok_or_else(|| "it is about another server".to_owned())
}

/// Under which name a history is kept: one that no server has.
fn record_of(name: &ServerName) -> String {
    format!("history/{name}")
}

/// What the thread has before it.
struct Desk {
    vault: Arc<Vault>,
    kept: Arc<Kept>,
    /// What is still to be written, the last of each server only.
    accepted: BTreeMap<ServerName, Arc<Listing>>,
    records: BTreeMap<ServerName, Box<Record>>,
    /// When each server's history was last written, or was to be.
    tried: BTreeMap<ServerName, Duration>,
    /// Those that could not be.
    failed: BTreeSet<ServerName>,
}

impl Desk {
    fn new(vault: Arc<Vault>, kept: Arc<Kept>) -> Desk {
        Desk { vault, kept, accepted: BTreeMap::new(), records: BTreeMap::new(), tried: BTreeMap::new(), failed: BTreeSet::new() }
    }

    /// The thread: writes what comes, and tries again what it could not.
    fn keep(mut self, messages: &mpsc::Receiver<Thing>) {
        loop {
            let message = match self.wait(clock::up()) {
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => messages.recv_timeout(wait),
            };
            let ended = matches!(message, Err(RecvTimeoutError::Disconnected));
            message.into_iter().chain(messages.try_iter()).for_each(|thing| self.take(thing));
            self.write(clock::up(), ended);
            if ended {
                return;
            }
        }
    }

    fn take(&mut self, thing: Thing) {
        match thing {
            Thing::Accepted(name, listing) => drop(self.accepted.insert(name, listing)),
            Thing::Record(record) => drop(self.records.insert(record.server.clone(), record)),
        }
    }

    /// How long nothing is to be done, unless something comes; `None` for ever.
    fn wait(&self, now: Duration) -> Option<Duration> {
        let records = self.records.keys().map(|name| self.due(name).saturating_sub(now));
        records.chain((!self.accepted.is_empty()).then_some(AGAIN)).min()
    }

    fn due(&self, name: &ServerName) -> Duration {
        self.tried.get(name).map_or(Duration::ZERO, |tried| *tried + APART)
    }

    /// Writes what is due, or everything.
    fn write(&mut self, now: Duration, everything: bool) {
        let (vault, kept) = (Arc::clone(&self.vault), Arc::clone(&self.kept));
        self.accepted.retain(|name, listing| {
            let lock = LockFile { servers: [(name.clone(), Listing::clone(listing))].into() };
            !written(&vault, &kept, name, name.as_str(), &lock.to_text())
        });
        let due: Vec<ServerName> = self.records.keys().filter(|name| everything || self.due(name) <= now).cloned().collect();
        for name in due {
            self.tried.insert(name.clone(), now);
            let Some(record) = self.records.get(&name) else { continue };
            if written(&vault, &kept, &name, &record_of(&name), &record.to_text()) {
                self.records.remove(&name);
                self.failed.remove(&name);
            } else {
                self.failed.insert(name);
            }
        }
        kept.missing.store(!self.accepted.is_empty() || !self.failed.is_empty(), Ordering::Relaxed);
    }
}

/// Whether `text`, which is about `server`, is on the disk now.
fn written(vault: &Vault, kept: &Kept, server: &ServerName, file: &str, text: &str) -> bool {
    match vault.save(file, text.as_bytes()) {
        Ok(()) => true,
        Err(error) => {
            kept.failures.fetch_add(1, Ordering::Relaxed);
            if kept.is_whole() {
                warn!(server = server.as_str(), "what is known of it is not kept over a restart: {error}");
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{ServerState, Terms};

    fn state(name: &str) -> ServerState {
        let terms = Terms {
            interval: AGAIN,
            timeouts: vec![],
            objectives: BTreeMap::new(),
            total: AGAIN,
            failures: 1,
            successes: 1,
            acceptance: Default::default(),
        };
        ServerState::new(ServerName::new(name).unwrap(), terms)
    }

    #[test]
    fn a_history_is_written_once_a_minute_and_at_the_end() {
        let dir = std::env::temp_dir().join(format!("stdiowatch-keeper-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let vault = Arc::new(Vault::open(&dir).unwrap());
        let mut desk = Desk::new(Arc::clone(&vault), Arc::default());
        let name = ServerName::new("a").unwrap();
        let seconds = Duration::from_secs;
        let kept = || vault.load(&record_of(&name)).unwrap().map(|bytes| Record::parse(&bytes, &name, clock::now()).unwrap().last_success);
        let succeeded = |desk: &mut Desk, ms| {
            let moment = crate::words::Moment { up: seconds(1), unix_ms: ms };
            desk.take(Thing::Record(Box::new(Record { last_success: Some(moment), ..Record::of(&state("a")) })));
            Some(Some(crate::words::Moment { up: Duration::ZERO, ..moment }))
        };
        let first = succeeded(&mut desk, 1);
        assert_eq!(desk.wait(seconds(100)), Some(Duration::ZERO));
        desk.write(seconds(100), false);
        assert_eq!((kept(), desk.wait(seconds(100))), (first, None));
        let second = succeeded(&mut desk, 2);
        desk.write(seconds(130), false);
        assert_eq!((kept(), desk.wait(seconds(130))), (first, Some(seconds(30))));
        desk.write(seconds(160), false);
        assert_eq!(kept(), second);
        let third = succeeded(&mut desk, 3);
        desk.write(seconds(161), true);
        assert_eq!(kept(), third);
        assert!(desk.kept.is_whole() && vault.load("history-a").unwrap().is_none());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_history_that_makes_no_sense_is_set_aside() {
        let dir = std::env::temp_dir().join(format!("stdiowatch-keeper-aside-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let name = ServerName::new("a").unwrap();
        for damaged in ["", "{\"format\":1", "{\"format\":9,\"server\":7}", "[]"] {
            Vault::open(&dir).unwrap().save(&record_of(&name), damaged.as_bytes()).unwrap();
            let keeper = Keeper::open(&dir);
            assert_eq!(keeper.load_record(&name), None);
            drop(keeper);
            let aside = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).find(|p| p.to_string_lossy().ends_with(".set-aside")).unwrap();
            assert_eq!(std::fs::read_to_string(aside).unwrap(), damaged);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
