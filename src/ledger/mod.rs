//! Floor 4: what is remembered of each server, as a fold of facts, and the immutable view of it
//! that everything is shown from.

mod histogram;
mod history;
mod reading;
mod record;
mod schema;
mod snapshot;
mod state;

pub use histogram::Histogram;
pub use history::{Entry, History};
pub use reading::{Reading, Unwatched};
pub use record::{Record, RecordError};
pub use schema::{AcceptError, Acceptance, SchemaState};
pub use snapshot::{Sidecar, Snapshot};
pub use state::{Course, Fact, Health, Held, ServerState, Skip, Terms};

#[cfg(test)]
mod tests;
