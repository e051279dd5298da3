//! Random numbers that are the same for the same seed.

use std::ops::Range;
use std::time::Duration;

/// splitmix64.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        let mut dice = Dice(seed);
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `range`.
    pub(super) fn number(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// One of `range`, in milliseconds.
    pub(super) fn ms(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.number(range))
    }

    /// True once in so many times.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.number(0..times) == 0
    }

    pub(super) fn one_of<T: Clone>(&mut self, these: &[T]) -> T {
        let at = self.number(0..these.len() as u64);
        these[usize::try_from(at).expect("small")].clone()
    }

    /// Dice of its own for somebody else, so that what one does changes nothing for the other.
    pub(super) fn split(&mut self) -> Dice {
        Dice::new(self.next())
    }
}
