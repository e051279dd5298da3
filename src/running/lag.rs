//! How late probes are launched. On the clock that stands still while the machine is suspended: sleep
//! is nobody's fault.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The largest lag is remembered for this long, and for up to twice as long.
const REMEMBERED: Duration = Duration::from_secs(30);

/// What is late, and what was.
#[derive(Debug, Default)]
pub(super) struct Lag(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// When what still waits for its launch was due, and a number to tell it by.
    waiting: BTreeSet<(Instant, u64)>,
    count: u64,
    /// The largest lag of this span of time, and of the one before.
    largest: [Duration; 2],
    began: Option<Instant>,
}

impl Lag {
    /// A probe was due at `due`, and now waits for its launch.
    pub(super) fn due(self: &Arc<Lag>, due: Instant) -> Waiting {
        let mut inner = self.0.lock();
        inner.count += 1;
        let key = (due, inner.count);
        inner.waiting.insert(key);
        Waiting { lag: Arc::clone(self), key }
    }

    /// The largest lag of late.
    pub(super) fn largest(&self, now: Instant) -> Duration {
        let mut inner = self.0.lock();
        inner.turn(now);
        let waits = inner.waiting.first().map_or(Duration::ZERO, |(due, _)| now.saturating_duration_since(*due));
        inner.largest.into_iter().fold(waits, Duration::max)
    }
}

impl Inner {
    fn turn(&mut self, now: Instant) {
        let age = now.saturating_duration_since(*self.began.get_or_insert(now));
        if age >= REMEMBERED {
            let before = if age < 2 * REMEMBERED { self.largest[0] } else { Duration::ZERO };
            self.largest = [Duration::ZERO, before];
            self.began = Some(now);
        }
    }
}

/// A probe that waits for its launch. Dropped, it waits no more and counts for nothing.
#[derive(Debug)]
pub(super) struct Waiting {
    lag: Arc<Lag>,
    key: (Instant, u64),
}

impl Waiting {
    /// It is launched now.
    pub(super) fn launched(self, now: Instant) {
        let mut inner = self.lag.0.lock();
        inner.turn(now);
        inner.largest[0] = inner.largest[0].max(now.saturating_duration_since(self.key.0));
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.lag.0.lock().waiting.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_lag_is_told_while_it_lasts_and_for_a_while_after() {
        let (lag, start) = (Arc::new(Lag::default()), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let largest = |seconds| lag.largest(at(seconds)).as_secs();
        assert_eq!(largest(0), 0);
        let (first, second, never) = (lag.due(at(1)), lag.due(at(4)), lag.due(at(5)));
        assert_eq!(largest(6), 5, "it still waits");
        first.launched(at(8));
        assert_eq!(largest(8), 7);
        second.launched(at(10));
        drop(never);
        assert_eq!((largest(10), largest(29), largest(31), largest(59)), (7, 7, 7, 7));
        assert_eq!((largest(61), largest(62)), (0, 0));
        lag.due(at(70)).launched(at(72));
        assert_eq!((largest(73), largest(500)), (2, 0));
    }
}
