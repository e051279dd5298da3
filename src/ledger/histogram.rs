use std::time::Duration;

/// Upper bounds of the buckets, in seconds: a hello server in Rust starts in 0.01, a cold `npx` in 60.
const BOUNDS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// Durations, counted by size, as a Prometheus histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// How many fell into each bucket and not into the one before; the last one is beyond all bounds.
    counts: [u64; BOUNDS.len() + 1],
    sum: f64,
}

impl Histogram {
    /// Counts one.
    pub fn observe(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.counts[bucket] += 1;
        self.sum += seconds;
    }

    /// Each bound with the count of all that were not above it.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut count = 0;
        BOUNDS.into_iter().zip(self.counts).map(move |(bound, n)| {
            count += n;
            (bound, count)
        })
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum, in seconds.
    #[must_use]
    pub const fn sum(&self) -> f64 {
        self.sum
    }
}
