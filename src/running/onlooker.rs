//! Somebody who looks on while a probe is made: a person at a terminal.

use crate::probe::{Listener, Pending};
use crate::words::At;

/// Is told what a probe waits for, each time before it waits, and the time of the probe.
pub type Waits = Box<dyn FnMut(At, Pending) + Send>;

/// What an onlooker wants to know; nothing by default. Both are called on the launching thread, which other probes
/// need: they must not wait.
#[derive(Default)]
pub struct Onlooker {
    /// What is being waited for.
    pub waits: Option<Waits>,
    /// What happens, secrets masked.
    pub hears: Option<Listener>,
}
