//! Floor 6: what runs: one probe (machine × process), the servers that are watched and when each is
//! probed, and the hub through which every change of what is known goes.
//!
//! ```text
//! watched    a server to watch, and the plan for one probe of it
//! fleet      all of them; the set may change
//! holds      what servers are held for, whatever they are called next
//! watcher    one server's task: waits, has it probed, has the outcome published
//! pace       when the next probe is: the grid, early retries, back-off; pure
//! desk       where a server can be asked for a probe outside of its schedule
//! lag        how late probes are launched
//! launchpad  the thread on which every server is launched
//! ground     what servers run on: the host
//! telling    what of that is worth a line in the log
//! known_pages  what was listed before, not to be read again
//! onlooker   somebody at a terminal
//! drive      one probe: machine × process
//! stopwatch  the time of one probe, which stands still when we do
//! room       memory for what servers write, shared by all probes
//! reload     reading the configuration again
//! hub        the single writer of what is known
//! ```

mod desk;
mod drive;
mod fleet;
mod ground;
mod holds;
pub mod hub;
pub mod keeper;
mod known_pages;
mod lag;
mod launchpad;
mod onlooker;
pub mod pace;
pub mod reload;
mod room;
mod secrets;
mod stopwatch;
mod telling;
#[cfg(test)]
mod tests;
mod watched;
mod watcher;

pub use drive::drive;
pub use fleet::{Asked, Changes, Fleet};
pub use launchpad::{Errand, Job, Launchpad, Outcome};
pub use onlooker::{Onlooker, Waits};
pub use watched::{Known, SchemaPolicy, Thresholds, Watched};
