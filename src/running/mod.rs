//! Floor 6: what runs: one probe (machine × process), the schedule of all of them, and the hub
//! through which every change of what is known goes.

mod drive;
pub mod hub;
mod launchpad;
mod schedule;
mod secrets;
mod watched;

pub use drive::drive;
pub use launchpad::{Job, Launchpad, Outcome};
pub use schedule::watch;
pub use watched::{Known, SchemaPolicy, Thresholds, Watched};
