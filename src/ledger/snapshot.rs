use std::sync::Arc;
use std::time::Duration;

use super::state::ServerState;
use crate::words::Moment;

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
    /// By how much the last probe began after it was due.
    pub lag: Duration,
    /// What is accepted is kept over restarts.
    pub kept: bool,
    /// How often it could not be written to the state directory.
    pub keep_failures: u64,
}

/// Everything there is to show, at one moment. Surfaces read nothing else, so they cannot disagree.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The servers, sorted by name.
    pub servers: Vec<Arc<ServerState>>,
    /// The sidecar.
    pub sidecar: Sidecar,
}

impl Snapshot {
    /// The server with this name.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<&Arc<ServerState>> {
        let found = self.servers.binary_search_by(|s| s.name.as_str().cmp(name));
        found.ok().map(|at| &self.servers[at])
    }
}
