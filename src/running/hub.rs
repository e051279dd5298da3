//! The single writer: every change of what is known goes through here, and everybody reads the
//! snapshot that was published last.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};

use super::keeper::{Keeper, Kept};
use crate::judge::Accepted;
use crate::ledger::{AcceptError, Record, ServerState, Snapshot};
use crate::words::{Moment, ServerName};

/// Publishes snapshots.
#[derive(Debug, Default)]
pub struct Hub {
    published: RwLock<Arc<Snapshot>>,
    /// Held while a new snapshot is made, so that no change is lost; never while one is read.
    writing: Mutex<()>,
    resumed: Notify,
    /// Counts the changes of what is known of servers.
    revision: watch::Sender<u64>,
    /// Where accepted schemas and histories are kept over restarts.
    keeper: Option<Keeper>,
}

impl Hub {
    /// A hub that knows these servers, and what `keeper` has kept of them.
    #[must_use]
    pub fn new(mut servers: Vec<ServerState>, keeper: Option<Keeper>) -> Hub {
        if let Some(keeper) = &keeper {
            for server in &mut servers {
                server.schema.accepted = keeper.load(&server.name);
                if let Some(record) = keeper.load_record(&server.name) {
                    server.restore(record);
                }
            }
        }
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        let snapshot = Snapshot { servers: servers.into_iter().map(Arc::new).collect(), ..Snapshot::default() };
        Hub { published: RwLock::new(Arc::new(snapshot)), writing: Mutex::new(()), resumed: Notify::new(), revision: watch::Sender::new(0), keeper }
    }

    /// What is known now. Cheap; never waits for a probe.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.published.read())
    }

    /// How often what is known of servers has changed.
    #[must_use]
    pub fn revision(&self) -> u64 {
        *self.revision.borrow()
    }

    /// Tells when it changes.
    #[must_use]
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Changes what is known, and publishes it.
    pub fn update<R>(&self, change: impl FnOnce(&mut Snapshot) -> R) -> R {
        let _writing = self.writing.lock();
        let mut next = Snapshot::clone(&self.published.read());
        let result = change(&mut next);
        let before = std::mem::replace(&mut *self.published.write(), Arc::new(next));
        let same =
            |now: &Snapshot| now.servers.len() == before.servers.len() && now.servers.iter().zip(&before.servers).all(|(a, b)| Arc::ptr_eq(a, b));
        if !same(&self.snapshot()) {
            self.revision.send_modify(|revision| *revision += 1);
        }
        result
    }

    /// Changes what is known of one server, and publishes it; `None` if there is no such server.
    pub fn update_server<R>(&self, name: &ServerName, change: impl FnOnce(&mut ServerState) -> R) -> Option<R> {
        self.update(|snapshot| {
            let at = snapshot.servers.binary_search_by(|s| s.name.cmp(name)).ok()?;
            let state = Arc::make_mut(&mut snapshot.servers[at]);
            let (before, probes) = (state.schema.accepted.clone(), state.probes);
            let result = change(state);
            self.keep(state, before.as_ref());
            if state.probes != probes {
                self.keep_record(state);
            }
            Some(result)
        })
    }

    /// Has what was accepted kept, if it is not what it was.
    fn keep(&self, state: &ServerState, before: Option<&Accepted>) {
        let (Some(keeper), Some(accepted)) = (&self.keeper, &state.schema.accepted) else { return };
        if before.is_none_or(|before| !Arc::ptr_eq(&before.listing, &accepted.listing)) {
            keeper.save(&state.name, Arc::clone(&accepted.listing));
        }
    }

    /// Has what its probes came to kept.
    fn keep_record(&self, state: &ServerState) {
        if let Some(keeper) = &self.keeper {
            keeper.save_record(Record::of(state));
        }
    }

    /// What there is to tell of what is kept over restarts; `None` if nothing is to be.
    pub fn kept(&self) -> Option<Arc<Kept>> {
        self.keeper.as_ref().map(Keeper::kept)
    }

    /// A person accepts what a server listed last; `None` if there is no such server.
    ///
    /// # Errors
    ///
    /// See [`AcceptError`].
    pub fn accept(&self, name: &ServerName) -> Option<Result<bool, AcceptError>> {
        self.update_server(name, ServerState::accept)
    }

    /// A person wants a server probed again that was held. Returns whether it was; `None` if there is no
    /// such server.
    pub fn resume(&self, name: &ServerName, now: Moment) -> Option<bool> {
        let was_held = self.update_server(name, |state| state.resume(now));
        self.resumed.notify_waiters();
        was_held
    }

    /// Resolves when a server is resumed, any one.
    pub async fn resumed(&self) {
        self.resumed.notified().await;
    }
}
