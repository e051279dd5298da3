//! Keeps what was accepted, and what probes came to, over restarts, in a thread of its own: a disk may be
//! slow, and nobody waits for it.

mod writing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use tracing::{info, warn};

use self::writing::Writing;
use crate::judge::{Accepted, Listing, LockFile, Source};
use crate::ledger::{Record, ServerState};
use crate::outside::clock;
use crate::outside::vault::{Vault, VaultError, peek};
use crate::words::{ServerName, printable};

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

    /// Says that nothing can be kept.
    fn cannot(&self, why: &str) {
        warn!("nothing is kept over restarts: {why}");
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.missing.store(true, Ordering::Relaxed);
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
    /// What was accepted of a server; `None` if that is not to be written.
    Accepted(ServerName, Option<Arc<Listing>>),
    /// What its probes came to; whether that has to survive the loss of the machine's power.
    Record(Box<Record>, bool),
    /// What an earlier process has kept in a directory that could not be had before is taken up, and this is what is
    /// known now.
    TakenUp(Vec<Thing>),
}

/// What the thread and those who talk to it share.
#[derive(Debug, Default)]
struct Shared {
    /// The directory, as long as it is ours.
    vault: Mutex<Option<Arc<Vault>>>,
    /// It was had late, and nobody has taken up yet what is kept there.
    is_news: AtomicBool,
    /// It was ours before it was removed or replaced, and what is known has not been written to it again.
    is_again: AtomicBool,
    kept: Arc<Kept>,
}

impl Shared {
    fn vault(&self) -> Option<Arc<Vault>> {
        self.vault.lock().clone()
    }
}

/// What was handed over of a server's history last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    /// When, since the machine was booted.
    at: Duration,
    /// How many of its probes it told of.
    probes: u64,
    /// It told of a hold.
    held: bool,
}

/// Keeps accepted schemas and histories in a directory.
#[derive(Debug)]
pub struct Keeper {
    dir: PathBuf,
    shared: Arc<Shared>,
    inbox: Option<mpsc::Sender<Thing>>,
    thread: Option<JoinHandle<()>>,
    /// Of each server: what was handed over of its history last.
    told: Mutex<BTreeMap<ServerName, Told>>,
}

impl Keeper {
    /// Keeps things in `dir`. Where that cannot be, it is told, and tried again: no reason not to watch. Another process
    /// may have it in use that is about to end: what is kept there can be read all the same.
    #[must_use]
    pub fn open(dir: &Path) -> Keeper {
        let shared = Arc::new(Shared::default());
        match Vault::open(dir) {
            Ok(vault) => *shared.vault.lock() = Some(Arc::new(vault)),
            Err(error) => shared.kept.cannot(&format!("{error}; that is tried again")),
        }
        let (inbox, messages) = mpsc::channel();
        let writing = Writing::new(dir.to_owned(), Arc::clone(&shared));
        match thread::Builder::new().name("keeper".to_owned()).spawn(move || writing.keep(&messages)) {
            Ok(thread) => Keeper { dir: dir.to_owned(), shared, inbox: Some(inbox), thread: Some(thread), told: Mutex::default() },
            Err(error) => {
                shared.kept.cannot(&format!("no thread can be started: {error}"));
                Keeper {
                    dir: dir.to_owned(),
                    shared: Arc::new(Shared { kept: Arc::clone(&shared.kept), ..Shared::default() }),
                    inbox: None,
                    thread: None,
                    told: Mutex::default(),
                }
            }
        }
    }

    /// Whether there is a directory to keep things in.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.shared.vault().is_some()
    }

    /// Whether the directory could be had only now, so that what is kept there is to be loaded, and then told of by
    /// [`Keeper::taken_up`]. Says so once.
    pub fn is_had_late(&self) -> bool {
        self.shared.is_news.swap(false, Ordering::Acquire)
    }

    /// What was kept has been taken up, and this is what is known now: from here on things are written.
    pub fn taken_up<'s>(&self, states: impl Iterator<Item = &'s ServerState>, now: Duration) {
        let mut told = self.told.lock();
        told.clear();
        let mut known = Vec::new();
        for state in states {
            known.extend(state.schema.accepted.as_ref().map(|accepted| accepted_of(&state.name, Arc::clone(&accepted.listing))));
            known.extend(record_to_keep(&mut told, state, now));
        }
        self.shared.is_again.store(false, Ordering::Release);
        self.send(Thing::TakenUp(known));
    }

    /// What there is to tell of it.
    #[must_use]
    pub fn kept(&self) -> Arc<Kept> {
        Arc::clone(&self.shared.kept)
    }

    /// What was accepted of a server before this process was started. What makes no sense is told, and set aside.
    /// Nothing, in a directory that was ours before: what is known here counts, whoever has written there since.
    #[must_use]
    pub fn load(&self, name: &ServerName) -> Option<Accepted> {
        if self.shared.is_again.load(Ordering::Acquire) {
            return None;
        }
        let found = self.found(name.as_str()).unwrap_or_else(|why| {
            warn!(server = name.as_str(), "what was accepted of it is not known: {why}");
            None
        })?;
        match read(&found, name) {
            Ok(listing) => {
                info!(server = name.as_str(), sha256 = %listing.digest, "comparing with the schema that was accepted before");
                Some(Accepted { listing: Arc::new(listing), source: Source::Seen })
            }
            Err(why) => {
                let aside = self.set_aside(name.as_str());
                warn!(server = name.as_str(), "what was accepted of it makes no sense, so what is listed next is accepted: {why}{aside}");
                None
            }
        }
    }

    /// What an earlier process has kept of a server's probes. What makes no sense is told, and set aside.
    #[must_use]
    pub fn load_record(&self, name: &ServerName) -> Option<Record> {
        let file = record_of(name);
        let found = self.found(&file).unwrap_or_else(|why| {
            warn!(server = name.as_str(), "its history is not known: {why}");
            None
        })?;
        match Record::parse(&found, name, clock::now()) {
            Ok(record) => Some(record),
            Err(why) => {
                let aside = self.set_aside(&file);
                warn!(server = name.as_str(), "its history makes no sense, so it begins anew: {why}{aside}");
                None
            }
        }
    }

    /// What is kept under `file`; or why it is not known. What is damaged is set aside.
    fn found(&self, file: &str) -> Result<Option<Vec<u8>>, String> {
        peek(&self.dir, file).map_err(|error| match error {
            VaultError::Damaged { .. } => format!("{error}{}", self.set_aside(file)),
            VaultError::InUse { .. } | VaultError::Io { .. } => error.to_string(),
        })
    }

    /// Sets aside what makes no sense, and says what became of it: nothing, as long as the directory is another's.
    fn set_aside(&self, file: &str) -> String {
        let Some(vault) = self.shared.vault() else { return String::new() };
        vault.set_aside(file).map_or_else(|error| format!("; {error}"), |path| format!("; it is in {} now", path.display()))
    }

    /// Has what was accepted of a server kept. Not where a configured value is in it: then nothing is kept, not what
    /// was accepted before either, and that is told.
    pub fn save(&self, name: &ServerName, listing: Arc<Listing>) {
        self.send(accepted_of(name, listing));
    }

    /// Has what its probes came to kept, unless that was done less than a minute before `now`: time since
    /// the machine was booted. That it is held, or is not any more, is written at once, and reaches the disk: a probe
    /// after a restart would do harm.
    pub fn save_record(&self, state: &ServerState, now: Duration) {
        let mut told = self.told.lock();
        if let Some(thing) = record_to_keep(&mut told, state, now) {
            self.send(thing);
        }
    }

    /// The same for the last time: nothing more is going to be said of this server.
    pub fn save_last_record(&self, state: &ServerState) {
        let told = self.told.lock().remove(&state.name);
        let held = state.held.is_some();
        if state.probes > told.map_or(0, |told| told.probes) || told.is_some_and(|told| told.held != held) {
            self.send(Thing::Record(Box::new(Record::of(state)), held));
        }
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

/// What was accepted of a server, as far as it may be written.
fn accepted_of(name: &ServerName, listing: Arc<Listing>) -> Thing {
    if let Some(item) = &listing.secret {
        warn!(server = name.as_str(), "what was accepted of it is not kept over restarts: {} holds a configured value", printable(item, 200));
    }
    Thing::Accepted(name.clone(), Some(listing).filter(|listing| listing.secret.is_none()))
}

/// What a server's probes came to, if it is time to write it.
fn record_to_keep(told: &mut BTreeMap<ServerName, Told>, state: &ServerState, now: Duration) -> Option<Thing> {
    let held = state.held.is_some();
    let before = told.get(&state.name);
    if before.is_some_and(|told| now < told.at + APART && told.held == held) {
        return None;
    }
    let careful = held || before.is_some_and(|told| told.held);
    told.insert(state.name.clone(), Told { at: now, probes: state.probes, held });
    Some(Thing::Record(Box::new(Record::of(state)), careful))
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

#[cfg(test)]
mod tests {
    use super::writing::AGAIN;
    use super::*;
    use crate::ledger::{Held, ServerState, Terms};

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
        let keeper = Keeper::open(&dir);
        let (seconds, mut server) = (Duration::from_secs, state("a"));
        let succeeded = |keeper: &Keeper, server: &mut ServerState, ms, up| {
            server.probes += 1;
            server.last_success = Some(crate::words::Moment { up: seconds(1), unix_ms: ms });
            keeper.save_record(server, seconds(up));
        };
        let name = server.name.clone();
        let told = |keeper: &Keeper| keeper.told.lock().get(&name).copied();
        succeeded(&keeper, &mut server, 1, 100);
        let was = |at, probes| Some(Told { at: seconds(at), probes, held: false });
        assert_eq!(told(&keeper), was(100, 1));
        succeeded(&keeper, &mut server, 2, 159);
        assert_eq!(told(&keeper), was(100, 1), "too soon");
        succeeded(&keeper, &mut server, 3, 160);
        assert_eq!(told(&keeper), was(160, 3));
        succeeded(&keeper, &mut server, 4, 161);
        keeper.save_last_record(&server);
        assert_eq!(told(&keeper), None);
        let kept = keeper.kept();
        drop(keeper);
        let again = Keeper::open(&dir);
        assert_eq!(again.load_record(&server.name).and_then(|r| r.last_success).map(|m| m.unix_ms), Some(4));
        assert!(kept.is_whole() && again.load(&server.name).is_none());
        drop(again);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_hold_and_its_end_are_written_at_once() {
        let dir = std::env::temp_dir().join(format!("stdiowatch-keeper-held-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let (keeper, mut server, now) = (Keeper::open(&dir), state("a"), AGAIN);
        server.probes = 1;
        keeper.save_record(&server, now);
        let held = Held { since: crate::words::Moment { up: Duration::ZERO, unix_ms: 7 }, why: "pid 7 died".to_owned() };
        server.held = Some(held.clone());
        keeper.save_record(&server, now);
        drop(keeper);
        let keeper = Keeper::open(&dir);
        let mut again = state("a");
        again.restore(keeper.load_record(&server.name).unwrap());
        assert_eq!(again.held, Some(held));
        again.held = None;
        keeper.save_record(&again, now);
        drop(keeper);
        assert_eq!(Keeper::open(&dir).load_record(&server.name).unwrap().held, None);
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
            assert!(std::fs::read_to_string(aside).unwrap().starts_with(damaged));
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// Waits until it is `done`, for 20 s at the most; says whether it is.
    fn poll(done: &dyn Fn() -> bool) -> bool {
        (0..2000).any(|_| {
            done() || {
                thread::sleep(Duration::from_millis(10));
                false
            }
        })
    }

    /// A new process is often started before the one it takes over from has ended.
    #[test]
    fn a_directory_that_is_in_use_is_taken_over_with_what_is_kept_there() {
        let dir = std::env::temp_dir().join(format!("stdiowatch-keeper-late-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let (other, mut server) = (Keeper::open(&dir), state("a"));
        server.held = Some(Held { since: crate::words::Moment { up: Duration::ZERO, unix_ms: 7 }, why: "pid 7 died".to_owned() });
        other.save_record(&server, AGAIN);
        other.save(&server.name, Arc::new(listing()));
        let keeper = Keeper::open(&dir);
        let kept = keeper.kept();
        assert!(!keeper.keeps() && !kept.is_whole());
        assert!(poll(&|| keeper.load_record(&server.name).is_some() && keeper.load(&server.name).is_some()));
        // What is held by the other is held by us too.
        let mut ours = state("a");
        ours.restore(keeper.load_record(&server.name).unwrap());
        assert_eq!(ours.held, server.held);
        // What it learns meanwhile is not written over that.
        ours.probes = 1;
        keeper.save_record(&ours, AGAIN);
        drop(other);
        assert!(poll(&|| keeper.keeps()) && keeper.is_had_late() && !keeper.is_had_late());
        let record = keeper.load_record(&server.name).unwrap();
        let accepted = keeper.load(&server.name).unwrap();
        assert_eq!(record.held, server.held);
        ours.take_up(Some(accepted), Some(record));
        keeper.taken_up(std::iter::once(&ours), AGAIN);
        assert!(poll(&|| kept.is_whole()));
        drop(keeper);
        let again = Keeper::open(&dir);
        assert_eq!(again.load_record(&server.name).unwrap().held, server.held);
        assert_eq!(*again.load(&server.name).unwrap().listing, listing());
        drop(again);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_directory_that_was_removed_is_made_anew_with_everything_that_is_known() {
        let dir = std::env::temp_dir().join(format!("stdiowatch-keeper-again-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let (keeper, mut quiet, mut busy) = (Keeper::open(&dir), state("quiet"), state("busy"));
        let accepted = Accepted { listing: Arc::new(listing()), source: Source::Seen };
        for state in [&mut quiet, &mut busy] {
            state.probes = 1;
            state.schema.accepted = Some(accepted.clone());
            keeper.save(&state.name, Arc::clone(&accepted.listing));
            keeper.save_record(state, AGAIN);
        }
        quiet.held = Some(Held { since: crate::words::Moment { up: Duration::ZERO, unix_ms: 7 }, why: "pid 7 died".to_owned() });
        keeper.save_record(&quiet, AGAIN);
        let kept = keeper.kept();
        assert!(poll(&|| keeper.load_record(&quiet.name).is_some_and(|record| record.held.is_some())));
        std::fs::remove_dir_all(&dir).unwrap();
        // Another one takes the place, and has accepted something else; then it ends.
        let other = Keeper::open(&dir);
        let mut theirs = listing();
        theirs.digest = crate::words::Digest::of(b"theirs");
        other.save(&busy.name, Arc::new(theirs));
        keeper.save(&busy.name, Arc::clone(&accepted.listing));
        assert!(poll(&|| !kept.is_whole()) && !keeper.keeps());
        assert_eq!(kept.failures(), 1);
        drop(other);
        assert!(poll(&|| keeper.is_had_late()));
        assert!(!kept.is_whole(), "nothing has been written yet");
        assert!(keeper.load(&busy.name).is_none(), "what is known here counts");
        keeper.taken_up([&quiet, &busy].into_iter(), AGAIN);
        assert!(poll(&|| kept.is_whole()));
        for state in [&quiet, &busy] {
            assert_eq!(keeper.load(&state.name).map(|found| found.listing), Some(Arc::clone(&accepted.listing)));
            assert_eq!(keeper.load_record(&state.name).unwrap().held, state.held);
        }
        drop(keeper);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_ends_before_the_directory_is_its_own_writes_nothing_there() {
        let dir = std::env::temp_dir().join(format!("stdiowatch-keeper-never-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let (other, keeper, mut server) = (Keeper::open(&dir), Keeper::open(&dir), state("a"));
        server.probes = 1;
        keeper.save_last_record(&server);
        drop(keeper);
        drop(other);
        assert_eq!(Keeper::open(&dir).load_record(&server.name), None);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    fn listing() -> Listing {
        use crate::probe::tests::world::{Later, Server, World, sound};
        let mut launch = || -> Box<dyn Server> { Box::new(sound(|_: &serde_json::Value, _: &mut Later| false)) };
        let seen = World::new(crate::probe::Plan::new(), &mut launch).run();
        Listing::of(seen.judged().unwrap(), &crate::judge::Environment::default()).unwrap()
    }

    /// Whatever one byte is changed into, and wherever a file ends: it is read as it was written, or nothing
    /// of it is.
    #[test]
    fn a_file_with_any_byte_damaged_is_read_right_or_set_aside() {
        let dir = std::env::temp_dir().join(format!("stdiowatch-keeper-bytes-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let (name, listing) = (ServerName::new("a").unwrap(), listing());
        let mut server = state("a");
        server.probes = 1;
        server.last_success = Some(crate::words::Moment { up: AGAIN, unix_ms: 1_234_567 });
        let keeper = Keeper::open(&dir);
        keeper.save(&name, Arc::new(listing.clone()));
        keeper.save_record(&server, AGAIN);
        drop(keeper);
        let keeper = Keeper::open(&dir);
        let (accepted, record) = (keeper.load(&name).unwrap().listing, keeper.load_record(&name).unwrap());
        assert_eq!(*accepted, listing);
        let files = [name.as_str().to_owned(), record_of(&name)].map(|file| dir.join(format!("{}.json", crate::outside::vault::file_name(&file))));
        let mut refused = [0, 0];
        for (n, file) in files.iter().enumerate() {
            let whole = std::fs::read(file).unwrap();
            let cut = (0..whole.len()).map(|at| whole[..at].to_vec());
            let changed = (0..whole.len()).flat_map(|at| {
                [0, b' ', b'"', b'1', b'}', 0x80, whole[at] ^ 1, whole[at] ^ 32].map(|byte| {
                    let mut bytes = whole.clone();
                    bytes[at] = byte;
                    bytes
                })
            });
            for bytes in cut.chain(changed).collect::<Vec<_>>() {
                std::fs::write(file, &bytes).unwrap();
                let right = match n {
                    0 => keeper.load(&name).map(|found| found.listing == accepted),
                    _ => keeper.load_record(&name).map(|found| found == record),
                };
                assert_ne!(right, Some(false), "{}", String::from_utf8_lossy(&bytes));
                assert_eq!(right.is_some(), file.exists(), "what is not read is set aside");
                refused[n] += usize::from(right.is_none());
            }
        }
        assert!(refused.iter().all(|n| *n > 1000), "{refused:?}");
        drop(keeper);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
