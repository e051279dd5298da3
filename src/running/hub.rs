//! The single writer: every change of what is known goes through here, and everybody reads snapshots,
//! each of which is what was known at one moment.
//!
//! A snapshot is made when somebody looks, and shared until something changes: of a thousand servers
//! sixty change in a second, and nobody looks at most of that. What nobody holds is changed in place.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::keeper::{Keeper, Kept};
use crate::judge::Accepted;
use crate::ledger::{AcceptError, Record, ServerState, Snapshot};
use crate::words::{Moment, ServerName};

/// Knows everything, and hands out snapshots.
#[derive(Debug, Default)]
pub struct Hub {
    /// Never locked for longer than one probe's outcome takes to be counted.
    inner: Mutex<Inner>,
    resumed: Notify,
    /// Counts the changes of what is known of servers.
    revision: watch::Sender<u64>,
    /// Where accepted schemas and histories are kept over restarts.
    keeper: Option<Keeper>,
}

#[derive(Debug, Default)]
struct Inner {
    known: Snapshot,
    /// The same, if somebody has looked since the last change.
    shared: Option<Arc<Snapshot>>,
}

impl Hub {
    /// A hub that knows no server, and has what is accepted kept by `keeper`.
    #[must_use]
    pub fn keeping(keeper: Option<Keeper>) -> Hub {
        let mut hub = Hub::default();
        hub.keeper = keeper;
        hub
    }

    /// A hub that knows these servers, and keeps nothing.
    #[must_use]
    pub fn new(mut servers: Vec<ServerState>) -> Hub {
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        let servers = Arc::new(servers.into_iter().map(Arc::new).collect());
        let known = Snapshot { servers, ..Snapshot::default() };
        Hub { inner: Mutex::new(Inner { known, shared: None }), resumed: Notify::new(), revision: watch::Sender::new(0), keeper: None }
    }

    /// What is known now. Cheap; never waits for a probe.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        let Inner { known, shared } = &mut *self.inner.lock();
        Arc::clone(shared.get_or_insert_with(|| Arc::new(known.clone())))
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

    /// Changes what is known. Who looks sees all of the change or nothing of it.
    pub fn update<R>(&self, change: impl FnOnce(&mut Snapshot) -> R) -> R {
        let (result, revision) = {
            let mut inner = self.inner.lock();
            inner.shared = None;
            let result = change(&mut inner.known);
            (result, inner.known.revision)
        };
        if self.revision() != revision {
            self.revision.send_replace(revision);
        }
        result
    }

    /// Changes what is known of one server; `None` if there is no such server.
    pub fn update_server<R>(&self, name: &ServerName, change: impl FnOnce(&mut ServerState) -> R) -> Option<R> {
        self.update(|snapshot| {
            let state = snapshot.server_mut(name.as_str())?;
            let before = state.schema.accepted.clone();
            let result = change(state);
            self.keep(state, before.as_ref());
            Some(result)
        })
    }

    /// What was kept of a server before this process was started.
    pub(super) fn kept_of(&self, name: &ServerName) -> (Option<Accepted>, Option<Record>) {
        self.keeper.as_ref().map_or((None, None), |keeper| (keeper.load(name), keeper.load_record(name)))
    }

    /// Whether what is kept could be had only now, and is to be taken up. Says so once.
    pub(super) fn is_had_late(&self) -> bool {
        self.keeper.as_ref().is_some_and(Keeper::is_had_late)
    }

    /// It has been taken up: what is known is kept from here on.
    pub(super) fn taken_up(&self, now: Moment) {
        if let Some(keeper) = &self.keeper {
            keeper.taken_up(self.snapshot().servers.iter().map(Arc::as_ref), now.up);
        }
    }

    /// Has what was accepted kept, if it is not what it was.
    pub(super) fn keep(&self, state: &ServerState, before: Option<&Accepted>) {
        let (Some(keeper), Some(accepted)) = (&self.keeper, &state.schema.accepted) else { return };
        if before.is_none_or(|before| !Arc::ptr_eq(&before.listing, &accepted.listing)) {
            keeper.save(&state.name, Arc::clone(&accepted.listing));
        }
    }

    /// Has what its probes came to kept.
    pub(super) fn keep_record(&self, state: &ServerState, now: Moment) {
        if let Some(keeper) = &self.keeper {
            keeper.save_record(state, now.up);
        }
    }

    /// Has what its probes came to kept for the last time, before nothing of it is known any more.
    pub(super) fn keep_last_record(&self, state: &ServerState) {
        if let Some(keeper) = &self.keeper {
            keeper.save_last_record(state);
        }
    }

    /// Whether what is known outlives this process.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.keeper.as_ref().is_some_and(Keeper::keeps)
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
        let was_held = self.update_server(name, |state| {
            let was_held = state.resume(now);
            if was_held {
                self.keep_record(state, now);
            }
            was_held
        });
        self.resumed.notify_waiters();
        was_held
    }

    /// Resolves when a server is resumed, any one.
    pub async fn resumed(&self) {
        self.resumed.notified().await;
    }
}

impl Drop for Hub {
    /// Has everything kept that is known.
    fn drop(&mut self) {
        for state in self.inner.get_mut().known.servers.iter() {
            if let Some(keeper) = &self.keeper {
                keeper.save_last_record(state);
            }
        }
    }
}
