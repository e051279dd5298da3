//! The thread that writes: what comes, again what it could not, and not before the directory is ours, nor once it is
//! not any more.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tracing::{info, warn};

use super::{Shared, Thing, record_of};
use crate::judge::{Listing, LockFile};
use crate::ledger::Record;
use crate::outside::clock;
use crate::outside::vault::{Vault, VaultError};
use crate::words::{ServerName, printable};

/// How long to wait before what could not be written is tried again, and before the directory is looked at again.
pub(super) const AGAIN: Duration = Duration::from_secs(60);

/// The same for a directory that could not be had, at first; twice as long each time, up to a minute.
const DIRECTORY_AGAIN: Duration = Duration::from_secs(1);

/// What the thread has before it.
pub(super) struct Writing {
    dir: PathBuf,
    shared: Arc<Shared>,
    /// What an earlier process has kept in the directory has been taken up: nothing is written over it before.
    is_taken_up: bool,
    /// It was ours before.
    is_again: bool,
    /// When to try to have the directory next, since boot, and how long to wait after that.
    next: Duration,
    wait: Duration,
    /// What is still to be written, the last of each server only.
    accepted: BTreeMap<ServerName, Option<Arc<Listing>>>,
    records: BTreeMap<ServerName, (Box<Record>, bool)>,
}

impl Writing {
    /// Writes into `dir`, which may not be ours yet.
    pub(super) fn new(dir: PathBuf, shared: Arc<Shared>) -> Writing {
        let is_taken_up = shared.vault().is_some();
        let next = clock::up() + DIRECTORY_AGAIN;
        Writing { dir, shared, is_taken_up, is_again: false, next, wait: DIRECTORY_AGAIN * 2, accepted: BTreeMap::new(), records: BTreeMap::new() }
    }

    /// The thread.
    pub(super) fn keep(mut self, messages: &mpsc::Receiver<Thing>) {
        loop {
            let message = messages.recv_timeout(self.until_next_try());
            let ended = matches!(message, Err(RecvTimeoutError::Disconnected));
            message.into_iter().chain(messages.try_iter()).for_each(|thing| self.take(thing));
            self.look_at_directory();
            if self.shared.vault().is_none() && !ended {
                self.have_directory();
            }
            self.write();
            if ended {
                return;
            }
        }
    }

    /// Until something is to be tried or looked at again.
    fn until_next_try(&self) -> Duration {
        match self.shared.vault() {
            None => self.next.saturating_sub(clock::up()),
            Some(_) => AGAIN,
        }
    }

    /// Somebody may have removed the directory, or put another in its place: then it is not ours any more, and of what
    /// was written nothing is kept.
    fn look_at_directory(&mut self) {
        if self.shared.vault().is_none_or(|vault| vault.is_ours()) {
            return;
        }
        let dir = printable(&self.dir.to_string_lossy(), 300);
        self.shared.kept.cannot(&format!("{dir} was removed or replaced; what is known is written there again as soon as it can be had"));
        *self.shared.vault.lock() = None;
        (self.is_taken_up, self.is_again) = (false, true);
        (self.next, self.wait) = (clock::up(), DIRECTORY_AGAIN);
    }

    /// Tries to have the directory, if it is time.
    fn have_directory(&mut self) {
        let now = clock::up();
        if now < self.next {
            return;
        }
        match Vault::open(&self.dir) {
            Ok(vault) => {
                if self.is_again {
                    info!("the state directory is ours again: what is known is written there");
                } else {
                    info!("the state directory can be had now: what was kept there is taken up, and things are kept from here on");
                }
                *self.shared.vault.lock() = Some(Arc::new(vault));
                self.shared.is_again.store(self.is_again, Ordering::Release);
                self.shared.is_news.store(true, Ordering::Release);
            }
            Err(_) => {
                self.next = now + self.wait;
                self.wait = (self.wait * 2).min(AGAIN);
            }
        }
    }

    fn take(&mut self, thing: Thing) {
        match thing {
            Thing::Accepted(name, listing) => drop(self.accepted.insert(name, listing)),
            Thing::Record(record, careful) => {
                let careful = careful || self.records.get(&record.server).is_some_and(|(_, careful)| *careful);
                self.records.insert(record.server.clone(), (record, careful));
            }
            Thing::TakenUp(known) => {
                self.accepted.clear();
                self.records.clear();
                self.is_taken_up = true;
                known.into_iter().for_each(|thing| self.take(thing));
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.accepted.is_empty() && self.records.is_empty()
    }

    /// Writes everything; what could not be written is still there afterwards.
    fn write(&mut self) {
        let shared = &self.shared;
        let Some(vault) = shared.vault().filter(|_| self.is_taken_up) else { return };
        self.accepted.retain(|name, listing| {
            let Some(listing) = listing else { return !written(shared, name, vault.forget(name.as_str())) };
            let lock = LockFile { servers: [(name.clone(), Listing::clone(listing))].into() };
            !written(shared, name, vault.save(name.as_str(), lock.to_line().as_bytes()))
        });
        self.records.retain(|name, (record, careful)| {
            let (file, text) = (record_of(name), record.to_text());
            // A thousand servers write sixteen of these a second: no disk has to be waited for.
            let save = if *careful { Vault::save } else { Vault::save_soon };
            !written(shared, name, save(&vault, &file, text.as_bytes()))
        });
        shared.kept.missing.store(!self.is_empty(), Ordering::Relaxed);
    }
}

/// Whether what is about `server` was written; tells if it was not.
fn written(shared: &Shared, server: &ServerName, outcome: Result<(), VaultError>) -> bool {
    let Err(error) = outcome else { return true };
    shared.kept.failures.fetch_add(1, Ordering::Relaxed);
    if shared.kept.is_whole() {
        warn!(server = server.as_str(), "what is known of it is not kept over a restart: {error}");
    }
    false
}
