//! Floor 2: one probe, as a state machine that is told what happened and says what to do.
//!
//! Nothing here launches, reads, writes, sleeps or knows the time; see [`Machine`].

mod call;
mod ladder;
mod lists;
mod log;
mod machine;
mod micros;
mod observation;
mod pages;
mod plan;
mod process;
mod reading;
mod reel;
mod session;
mod tape;

pub use call::{Call, NO_SUCH_TOOL};
pub use machine::{Effect, Input, Machine, Pending, Wait};
pub use observation::{Asked, End, EndedBy, Io, Launch, Limit, ListSeen, Observation, Peers, Phase, Seen, Timeout, What};
pub use pages::Pages;
pub use plan::{EraChoice, Fetches, Limits, Plan, Times};
pub use process::{ContainerRun, Excess, Exit, LaunchError, LeftContainer, Leftover, Scarcity, Shared, Swept, Taken, Usage};
pub use reel::{Reel, Scene};
pub use tape::{Happening, Listener, Recording, Tape, TapeError, Written};

#[cfg(test)]
pub(crate) mod tests;
