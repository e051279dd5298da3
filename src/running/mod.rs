//! Floor 6: what runs: one probe (machine × process), the schedule of all of them, and the hub
//! through which every change of what is known goes.

mod drive;
pub mod hub;
mod launchpad;
mod onlooker;
mod schedule;
mod watched;

pub use drive::drive;
pub use launchpad::{Job, Launchpad, Outcome};
pub use onlooker::{Onlooker, Waits};
pub use schedule::watch;
pub use watched::{Known, Watched};
