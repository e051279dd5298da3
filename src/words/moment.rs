use std::time::Duration;

use jiff::Timestamp;

/// A moment of the sidecar's life, on both clocks: one to compute with, one to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Since the machine was booted, time in suspension included; never goes back. Zero for a moment of an
    /// earlier process, of which only the other clock tells.
    pub up: Duration,
    /// Milliseconds since the Unix epoch; may be set, and may jump.
    pub unix_ms: i64,
}

impl Moment {
    /// Seconds since the Unix epoch, as Prometheus has timestamps.
    #[must_use]
    pub fn unix_seconds(self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "exact until the year 287396")]
        let milliseconds = self.unix_ms as f64;
        milliseconds / 1e3
    }

    /// As RFC 3339 has it, in UTC, to the millisecond.
    #[must_use]
    pub fn rfc3339(self) -> String {
        Timestamp::from_millisecond(self.unix_ms).map_or_else(|_| String::new(), |t| format!("{t:.3}"))
    }

    /// How long after `earlier` this is; zero if it is not. What was done to the wall clock matters only
    /// where `earlier` is a moment of an earlier process.
    #[must_use]
    pub fn since(self, earlier: Moment) -> Duration {
        if earlier.up.is_zero() {
            return Duration::from_millis(u64::try_from(self.unix_ms.saturating_sub(earlier.unix_ms)).unwrap_or(0));
        }
        self.up.saturating_sub(earlier.up)
    }
}
