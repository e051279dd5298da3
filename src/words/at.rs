use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment of one probe: the time since that probe began.
///
/// The probe machine never reads a clock: whoever drives it says what time it is, so a test can run
/// an hour of it in a microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At(Duration);

impl At {
    /// The moment the probe began.
    pub const START: At = At(Duration::ZERO);

    /// The moment `elapsed` after the beginning.
    #[must_use]
    pub const fn after(elapsed: Duration) -> At {
        At(elapsed)
    }

    /// How long after the beginning this is.
    #[must_use]
    pub const fn elapsed(self) -> Duration {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub const fn since(self, earlier: At) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for At {
    type Output = At;

    fn add(self, rhs: Duration) -> At {
        At(self.0.saturating_add(rhs))
    }
}

impl Sub for At {
    type Output = Duration;

    fn sub(self, rhs: At) -> Duration {
        self.since(rhs)
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", self.0.as_secs_f64())
    }
}
