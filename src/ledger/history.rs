use std::collections::VecDeque;
use std::time::Duration;

use crate::judge::{Check, Reason, Verdict, check};
use crate::words::Moment;

/// Probes that are remembered, whatever they came to.
const RECENT: usize = 60;
/// Probes that were not healthy and are remembered after they have left the recent ones.
const TROUBLES: usize = 20;

/// One probe, as history has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When it ended.
    pub at: Moment,
    /// What it came to, before thresholds.
    pub verdict: Verdict,
    /// Why it failed.
    pub reason: Option<Reason>,
    /// The code of its first finding of the worst severity.
    pub code: Option<&'static str>,
    /// Start-up, in milliseconds.
    pub startup_ms: Option<f64>,
}

/// The same as it is kept: a thousand servers have eighty thousand of them.
#[derive(Clone, Copy, Debug)]
struct Packed {
    unix_ms: i64,
    /// Milliseconds; 0 for a moment of an earlier process.
    up: u64,
    check: Option<&'static Check>,
    /// Start-up in microseconds, up to a bit over an hour.
    startup: Option<Micros>,
    verdict: Verdict,
    reason: Option<Reason>,
}

/// So many microseconds, and one more: so that none takes no room.
type Micros = std::num::NonZeroU32;

impl Packed {
    fn of(entry: &Entry) -> Packed {
        let up = u64::try_from(entry.at.up.as_millis()).unwrap_or(u64::MAX);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded, and as casts are, what is too large is the largest")]
        let micros = |ms: f64| (ms * 1e3).round().clamp(0.0, f64::from(u32::MAX - 1)) as u32;
        Packed {
            unix_ms: entry.at.unix_ms,
            // Not that of an earlier process, which is zero.
            up: if entry.at.up.is_zero() { 0 } else { up.max(1) },
            check: entry.code.and_then(check),
            startup: entry.startup_ms.filter(|ms| ms.is_finite()).and_then(|ms| Micros::new(micros(ms) + 1)),
            verdict: entry.verdict,
            reason: entry.reason,
        }
    }

    fn entry(&self) -> Entry {
        Entry {
            at: Moment { up: Duration::from_millis(self.up), unix_ms: self.unix_ms },
            verdict: self.verdict,
            reason: self.reason,
            code: self.check.map(|check| check.code),
            startup_ms: self.startup.map(|micros| f64::from(micros.get() - 1) / 1e3),
        }
    }
}

/// The last probes, and troubles for longer.
#[derive(Clone, Debug, Default)]
pub struct History {
    troubles: VecDeque<Packed>,
    recent: VecDeque<Packed>,
}

impl History {
    /// What was kept over a restart, oldest first; no more of it than is remembered.
    pub(super) fn kept(troubles: &[Entry], recent: &[Entry]) -> History {
        let last = |entries: &[Entry], most: usize| entries[entries.len().saturating_sub(most)..].iter().map(Packed::of).collect();
        History { troubles: last(troubles, TROUBLES), recent: last(recent, RECENT) }
    }

    pub(super) fn push(&mut self, entry: &Entry) {
        // All of it at once: what grows bit by bit leaves holes.
        self.recent.reserve_exact(RECENT - self.recent.len().min(RECENT));
        if self.recent.len() == RECENT
            && let Some(old) = self.recent.pop_front()
            && !old.verdict.is_up()
        {
            if self.troubles.len() == TROUBLES {
                self.troubles.pop_front();
            }
            self.troubles.push_back(old);
        }
        self.recent.push_back(Packed::of(entry));
    }

    /// The last probes, oldest first.
    pub fn recent(&self) -> impl ExactSizeIterator<Item = Entry> + DoubleEndedIterator {
        self.recent.iter().map(Packed::entry)
    }

    /// Troubles before those, oldest first.
    pub fn troubles(&self) -> impl ExactSizeIterator<Item = Entry> + DoubleEndedIterator {
        self.troubles.iter().map(Packed::entry)
    }

    /// All that is remembered, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = Entry> {
        self.troubles().chain(self.recent())
    }
}

impl PartialEq for History {
    fn eq(&self, other: &History) -> bool {
        self.troubles().eq(other.troubles()) && self.recent().eq(other.recent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_packed_is_what_it_was_to_the_microsecond() {
        let entry = |up, ms: Option<f64>| Entry {
            at: Moment { up, unix_ms: 1_700_000_000_123 },
            verdict: Verdict::Fail,
            reason: Some(Reason::Timeout),
            code: Some("timeout.silent"),
            startup_ms: ms,
        };
        for up in [Duration::ZERO, Duration::from_millis(7), Duration::from_secs(1 << 32)] {
            for ms in [None, Some(0.0), Some(0.001), Some(12.345), Some(300_000.0)] {
                assert_eq!(Packed::of(&entry(up, ms)).entry(), entry(up, ms));
            }
        }
        assert!(!Packed::of(&entry(Duration::from_nanos(1), None)).entry().at.up.is_zero());
        assert_eq!(Packed::of(&entry(Duration::ZERO, Some(f64::NAN))).entry().startup_ms, None);
        assert_eq!(Packed::of(&entry(Duration::ZERO, Some(1e300))).entry().startup_ms, Some(4_294_967.294));
        assert!(size_of::<Packed>() <= 32);
    }
}
