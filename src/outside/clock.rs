//! The only reader of clocks.

use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use crate::words::Moment;

/// What time it is, on both clocks.
///
/// Time in suspension counts (`CLOCK_BOOTTIME`): a verdict from before a night's sleep is old.
#[must_use]
pub fn now() -> Moment {
    #[cfg(test)]
    if let Some(moment) = pretended::now() {
        return moment;
    }
    Moment { up: since_boot(ClockId::Boottime), unix_ms: unix_ms() }
}

/// Since the machine was booted, suspension included.
#[must_use]
pub fn up() -> Duration {
    #[cfg(test)]
    if let Some(moment) = pretended::now() {
        return moment.up;
    }
    since_boot(ClockId::Boottime)
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn unix_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// The same without suspension, as service managers count.
#[must_use]
pub fn monotonic() -> Duration {
    since_boot(ClockId::Monotonic)
}

/// For how long this thread has had a core, in all.
#[must_use]
pub fn at_work() -> Duration {
    since_boot(ClockId::ThreadCPUTime)
}

fn since_boot(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Both clocks in a test's hands: they go with tokio's, which is paused, and the machine can be suspended
/// and the wall clock set.
#[cfg(test)]
pub(crate) mod pretended {
    use std::cell::Cell;
    use std::time::Duration;

    use tokio::time::Instant;

    use crate::words::Moment;

    #[derive(Clone, Copy)]
    struct Clocks {
        began: Instant,
        at_first: Moment,
        suspended: Duration,
        set_by: i64,
    }

    thread_local! {
        static CLOCKS: Cell<Option<Clocks>> = const { Cell::new(None) };
    }

    /// From now on, and until what is returned is dropped, this thread's clocks begin at `at_first`.
    pub(crate) fn from(at_first: Moment) -> Pretence {
        CLOCKS.set(Some(Clocks { began: Instant::now(), at_first, suspended: Duration::ZERO, set_by: 0 }));
        Pretence(())
    }

    /// Dropped, the clocks are the real ones again.
    pub(crate) struct Pretence(());

    impl Drop for Pretence {
        fn drop(&mut self) {
            CLOCKS.set(None);
        }
    }

    /// The machine was suspended: no timer has noticed.
    pub(crate) fn suspend(long: Duration) {
        change(|clocks| clocks.suspended += long);
    }

    /// Somebody sets the wall clock, by so many milliseconds.
    pub(crate) fn set_wall_clock(by: i64) {
        change(|clocks| clocks.set_by += by);
    }

    fn change(how: impl FnOnce(&mut Clocks)) {
        if let Some(mut clocks) = CLOCKS.get() {
            how(&mut clocks);
            CLOCKS.set(Some(clocks));
        }
    }

    pub(super) fn now() -> Option<Moment> {
        let Clocks { began, at_first, suspended, set_by } = CLOCKS.get()?;
        let passed = began.elapsed() + suspended;
        let ms = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
        Some(Moment { up: at_first.up + passed, unix_ms: at_first.unix_ms + ms + set_by })
    }
}
