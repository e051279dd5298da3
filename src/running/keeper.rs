//! Keeps what was accepted over restarts, in a thread of its own: a disk may be slow, and nobody waits
//! for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing::{info, warn};

use crate::judge::{Accepted, Listing, LockFile, Source};
use crate::outside::vault::{Vault, VaultError};
use crate::words::ServerName;

/// How long to wait before what could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(60);

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

/// Keeps accepted schemas in a directory.
#[derive(Debug)]
pub struct Keeper {
    vault: Option<Arc<Vault>>,
    kept: Arc<Kept>,
    inbox: Option<mpsc::Sender<(ServerName, Arc<Listing>)>>,
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
            let (at, counts) = (Arc::clone(&vault), Arc::clone(&kept));
            let thread = thread::Builder::new().name("keeper".to_owned()).spawn(move || keep(&at, &counts, &messages));
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

    /// Has what was accepted of a server kept.
    pub fn save(&self, name: &ServerName, listing: Arc<Listing>) {
        if let Some(inbox) = &self.inbox {
            let _ = inbox.send((name.clone(), listing));
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

/// The thread: writes what comes, the last of each server only, and tries again what it could not.
fn keep(vault: &Vault, kept: &Kept, messages: &mpsc::Receiver<(ServerName, Arc<Listing>)>) {
    let mut waiting: BTreeMap<ServerName, Arc<Listing>> = BTreeMap::new();
    loop {
        let message = if waiting.is_empty() { messages.recv().map_err(|_| RecvTimeoutError::Disconnected) } else { messages.recv_timeout(AGAIN) };
        let ended = matches!(message, Err(RecvTimeoutError::Disconnected));
        waiting.extend(message);
        waiting.extend(messages.try_iter());
        waiting.retain(|name, listing| !written(vault, kept, name, listing));
        kept.missing.store(!waiting.is_empty(), Ordering::Relaxed);
        if ended {
            return;
        }
    }
}

fn written(vault: &Vault, kept: &Kept, name: &ServerName, listing: &Arc<Listing>) -> bool {
    let lock = LockFile { servers: [(name.clone(), Listing::clone(listing))].into() };
    match vault.save(name.as_str(), lock.to_text().as_bytes()) {
        Ok(()) => true,
        Err(error) => {
            kept.failures.fetch_add(1, Ordering::Relaxed);
            if kept.is_whole() {
                warn!(server = name.as_str(), "what was accepted of it is not kept over a restart: {error}");
            }
            false
        }
    }
}
