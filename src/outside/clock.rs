//! The only reader of clocks.

use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use crate::words::Moment;

/// What time it is, on both clocks.
///
/// Time in suspension counts (`CLOCK_BOOTTIME`): a verdict from before a night's sleep is old.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now() -> Moment {
    Moment { up: up(), unix_ms: Timestamp::now().as_millisecond() }
}

/// Since the machine was booted, suspension included.
#[must_use]
pub fn up() -> Duration {
    since_boot(ClockId::Boottime)
}

/// The same without suspension, as service managers count.
#[must_use]
pub fn monotonic() -> Duration {
    since_boot(ClockId::Monotonic)
}

fn since_boot(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}
