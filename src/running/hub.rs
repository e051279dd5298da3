//! The single writer: every change of what is known goes through here, and everybody reads the
//! snapshot that was published last.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::keeper::{Keeper, Kept};
use crate::judge::Accepted;
use crate::ledger::{AcceptError, ServerState, Snapshot};
use crate::words::{Moment, ServerName};

/// Publishes snapshots.
#[derive(Debug, Default)]
pub struct Hub {
    published: RwLock<Arc<Snapshot>>,
    /// Held while a new snapshot is made, so that no change is lost; never while one is read.
    writing: Mutex<()>,
    resumed: Notify,
    /// Where accepted schemas are kept over restarts.
    keeper: Option<Keeper>,
}

impl Hub {
    /// A hub that knows no server, and has what is accepted kept by `keeper`.
    #[must_use]
    pub fn keeping(keeper: Option<Keeper>) -> Hub {
        Hub { keeper, ..Hub::default() }
    }

    /// A hub that knows these servers, and keeps nothing.
    #[must_use]
    pub fn new(mut servers: Vec<ServerState>) -> Hub {
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        let servers = Arc::new(servers.into_iter().map(Arc::new).collect());
        let snapshot = Snapshot { servers, ..Snapshot::default() };
        Hub { published: RwLock::new(Arc::new(snapshot)), writing: Mutex::new(()), resumed: Notify::new(), keeper: None }
    }

    /// What is known now. Cheap; never waits for a probe.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.published.read())
    }

    /// Changes what is known, and publishes it.
    pub fn update<R>(&self, change: impl FnOnce(&mut Snapshot) -> R) -> R {
        let _writing = self.writing.lock();
        let mut next = Snapshot::clone(&self.published.read());
        let result = change(&mut next);
        *self.published.write() = Arc::new(next);
        result
    }

    /// Changes what is known of one server, and publishes it; `None` if there is no such server.
    pub fn update_server<R>(&self, name: &ServerName, change: impl FnOnce(&mut ServerState) -> R) -> Option<R> {
        self.update(|snapshot| {
            let state = snapshot.server_mut(name.as_str())?;
            let before = state.schema.accepted.clone();
            let result = change(state);
            self.keep(state, before.as_ref());
            Some(result)
        })
    }

    /// What was accepted of a server before this process was started.
    pub(super) fn kept_of(&self, name: &ServerName) -> Option<Accepted> {
        self.keeper.as_ref()?.load(name)
    }

    /// Has what was accepted kept, if it is not what it was.
    pub(super) fn keep(&self, state: &ServerState, before: Option<&Accepted>) {
        let (Some(keeper), Some(accepted)) = (&self.keeper, &state.schema.accepted) else { return };
        if before.is_none_or(|before| !Arc::ptr_eq(&before.listing, &accepted.listing)) {
            keeper.save(&state.name, Arc::clone(&accepted.listing));
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
