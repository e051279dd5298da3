use std::sync::Arc;
use std::time::Duration;

use super::reading::{Reading, Unwatched};
use super::state::ServerState;
use crate::words::Moment;

/// The scheduler's loop goes round at least once a second; after this long it hangs.
const TICK_OVERDUE: Duration = Duration::from_secs(10);

/// What is known of the sidecar itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sidecar {
    /// When it was started.
    pub started: Moment,
    /// Every server has been probed once.
    pub first_round_done: bool,
    /// Probes that are running.
    pub in_flight: usize,
    /// When the scheduler's loop last went round. It does so at least once a second.
    pub last_tick: Duration,
    /// By how much a probe was launched after it was due, at the most: of those that were launched in the
    /// last minute or so, and of those that still wait for their turn.
    pub lag: Duration,
    /// What is accepted is kept over restarts.
    pub kept: bool,
    /// How often it could not be written to the state directory.
    pub keep_failures: u64,
}

impl Sidecar {
    /// For how long the scheduler has not run, if that is too long: its loop hangs, or that of the thread
    /// that launches.
    #[must_use]
    pub fn stalled(&self, now: Moment) -> Option<Duration> {
        let age = now.up.saturating_sub(self.last_tick.max(self.started.up));
        (age >= TICK_OVERDUE).then_some(age)
    }
}

/// Everything there is to show, at one moment. Surfaces read nothing else, so they cannot disagree.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The servers, sorted by name. Shared, so that a change of something else does not copy the list.
    pub servers: Arc<Vec<Arc<ServerState>>>,
    /// The sidecar.
    pub sidecar: Sidecar,
    /// What came of reading the configuration. Shared as well.
    pub reading: Arc<Reading>,
    /// How often something about servers was changed.
    pub revision: u64,
}

impl Snapshot {
    /// Knows these servers and no others, sorted by name.
    pub fn set_servers(&mut self, servers: Vec<Arc<ServerState>>) {
        self.servers = Arc::new(servers);
        self.revision += 1;
    }

    /// A configuration was read, and is used: these of its entries are not watched.
    pub fn read(&mut self, unwatched: Vec<Unwatched>) {
        self.reading = Arc::new(Reading { unwatched, refused: None });
        self.revision += 1;
    }

    /// A configuration was read at `now`, and refused.
    pub fn refuse(&mut self, now: Moment, why: String) {
        Arc::make_mut(&mut self.reading).refused = Some((now, why));
        self.revision += 1;
    }

    /// The server with this name.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<&Arc<ServerState>> {
        self.place(name).map(|at| &self.servers[at])
    }

    /// The same, to change it.
    pub fn server_mut(&mut self, name: &str) -> Option<&mut ServerState> {
        let at = self.place(name)?;
        self.revision += 1;
        Some(Arc::make_mut(&mut Arc::make_mut(&mut self.servers)[at]))
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.servers.binary_search_by(|s| s.name.as_str().cmp(name)).ok()
    }
}
