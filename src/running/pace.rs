//! When a server is probed next. Pure: moments are handed in, as durations since the machine was booted.
//!
//! Probes fall on a [`Grid`]: a phase, given by a hash of the server's name, plus a multiple of the
//! interval. Restarted fleets do not fire in step, and the probes of one process are spread evenly.
//! Two things leave the grid, or pass points of it over: a server that has just fallen is tried again
//! early, so that a flap is told from an outage; one that stays down is left alone for longer.

use std::time::Duration;

use crate::ledger::Course;
use crate::words::{Digest, ServerName};

/// How long after its first failure a server that was well is tried again, and by how much more at the
/// most, so that servers that fell together do not rise together.
const EARLY: Duration = Duration::from_secs(10);
const EARLY_SPREAD: Duration = Duration::from_secs(2);
/// A server that keeps failing is left alone for at most this many intervals, or [`BACKOFF_CAP`].
const BACKOFF_FACTOR: u32 = 8;
const BACKOFF_CAP: Duration = Duration::from_secs(600);
/// Failures in a row before the back-off begins.
const PATIENCE: u32 = 3;
/// By how much a probe is put off at random, as a part of the interval: a hundredth.
const JITTER: u32 = 100;

/// The points at which one server is probed.
#[derive(Clone, Debug)]
pub struct Grid {
    name: ServerName,
    interval: Duration,
    /// In nanoseconds, less than the interval.
    phase: u128,
}

/// When a server is probed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// When.
    pub due: Duration,
    /// By how much that is later than it would be, because the server keeps failing.
    pub backoff: Duration,
}

impl Grid {
    /// The grid of the server `name`, probed every `interval`. Where it lies depends on these alone.
    #[must_use]
    pub fn of(name: &ServerName, interval: Duration) -> Grid {
        let hash = Digest::of(name.as_str().as_bytes()).first_48_bits();
        let phase = (u128::from(hash) * interval.as_nanos()) >> 48;
        Grid { name: name.clone(), interval, phase }
    }

    /// The first point after `moment`.
    #[must_use]
    pub fn after(&self, moment: Duration) -> Duration {
        let nanoseconds = self.phase + self.points_to(moment) * self.step();
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// How many points lie after `from` and not after `to`.
    #[must_use]
    pub fn between(&self, from: Duration, to: Duration) -> u32 {
        u32::try_from(self.points_to(to).saturating_sub(self.points_to(from))).unwrap_or(u32::MAX)
    }

    /// When to probe next, after a probe that ended at `now` and left the server on this course. Not
    /// before `earliest`, as far as the grid goes.
    #[must_use]
    pub fn next(&self, now: Duration, course: Course, earliest: Duration) -> Next {
        let regular = |after: Duration| self.jittered(self.after(after.max(earliest)));
        let due = regular(now);
        match course {
            Course::Steady => Next { due, backoff: Duration::ZERO },
            Course::Fell => Next { due: due.min(now + EARLY + self.part(EARLY_SPREAD, now)), backoff: Duration::ZERO },
            Course::Down(row) => {
                let backoff = backoff(self.interval, row);
                Next { due: if backoff.is_zero() { due } else { regular(now + backoff) }, backoff }
            }
        }
    }

    /// A point, put off a little: by how much differs from point to point and from server to server.
    #[must_use]
    pub fn jittered(&self, point: Duration) -> Duration {
        point + self.part(self.interval / JITTER, point)
    }

    /// A part of `whole` that is as good as random.
    fn part(&self, whole: Duration, moment: Duration) -> Duration {
        let hash = Digest::of_pieces([self.name.as_str().as_bytes(), &moment.as_nanos().to_be_bytes()]);
        let share = u32::try_from(hash.first_48_bits() % 1000).unwrap_or(0);
        whole * share / 1000
    }

    /// How many points lie at or before `moment`, from the phase on.
    fn points_to(&self, moment: Duration) -> u128 {
        let moment = moment.as_nanos();
        if moment < self.phase { 0 } else { (moment - self.phase) / self.step() + 1 }
    }

    fn step(&self) -> u128 {
        self.interval.as_nanos().max(1)
    }
}

/// By how much the next probe of a server with so many failures in a row is put off.
fn backoff(interval: Duration, failures: u32) -> Duration {
    if failures <= PATIENCE {
        return Duration::ZERO;
    }
    let factor = 2u32.saturating_pow(failures - PATIENCE).min(BACKOFF_FACTOR);
    let longest = BACKOFF_CAP.max(interval);
    interval.saturating_mul(factor).min(longest).saturating_sub(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn grid(n: u32, interval: u64) -> Grid {
        Grid::of(&ServerName::of_command(&format!("server-{n}")), s(interval))
    }

    #[test]
    fn the_grid_lies_where_the_name_says() {
        for n in 0..50 {
            let grid = grid(n, 60);
            let point = grid.after(s(1000));
            assert!(point > s(1000) && point <= s(1060), "{point:?}");
            assert_eq!(grid.after(point), point + s(60), "a point is not after itself");
            assert_eq!(grid.after(s(1600)), point + s(600));
            assert_eq!((grid.between(s(1000), s(1060)), grid.between(point, point), grid.between(s(9), s(8))), (1, 0, 0));
            assert_eq!((grid.between(point, point + s(60)), grid.between(point - s(1), point + s(130))), (1, 3));
        }
        let mut phases: Vec<Duration> = (0..1000).map(|n| grid(n, 60).after(s(600)) - s(600)).collect();
        phases.sort();
        assert!(phases[100] > s(4) && phases[900] < s(56), "they are spread: {:?} {:?}", phases[100], phases[900]);
    }

    #[test]
    fn late_points_are_passed_over_and_counted() {
        let grid = grid(1, 60);
        let point = grid.after(s(1000));
        // It ended before the next one.
        assert_eq!((grid.after(point + s(1)), grid.between(point, point + s(1))), (point + s(60), 0));
        // It ran for four points, and a bit.
        assert_eq!((grid.after(point + s(245)), grid.between(point, point + s(245))), (point + s(300), 4));
        // A machine that was suspended for a day goes on at once, on the same grid.
        assert_eq!(grid.after(point + s(86_410)), point + s(86_460));
        // A clock that begins anew, or an interval of no length, breaks nothing.
        assert!(grid.after(Duration::ZERO) <= s(60));
        assert!(Grid::of(&ServerName::of_command("x"), Duration::ZERO).after(s(5)) > s(5));
        assert_eq!(Grid::of(&ServerName::of_command("x"), Duration::from_millis(1)).between(Duration::ZERO, s(100 * 86_400 * 365)), u32::MAX);
    }

    #[test]
    fn a_server_that_fell_is_tried_again_early() {
        for n in 0..50 {
            let (slow, quick) = (grid(n, 300), grid(n, 5));
            for now in [s(1000), s(1100), s(1299)] {
                let next = slow.next(now, Course::Fell, Duration::ZERO);
                let regular = slow.next(now, Course::Steady, Duration::ZERO).due;
                assert_eq!(next.backoff, Duration::ZERO);
                assert!(next.due == regular || next.due >= now + s(10) && next.due < now + s(12), "{next:?}");
                assert!(next.due <= regular, "never later than it would be anyway");
            }
            // The retry is no reason for another one.
            assert!(slow.next(s(1011), Course::Down(2), Duration::ZERO).due > s(1011) && slow.next(s(1011), Course::Down(2), s(1300)).due > s(1300));
            assert_eq!(quick.next(s(100), Course::Fell, Duration::ZERO), quick.next(s(100), Course::Steady, Duration::ZERO));
        }
    }

    #[test]
    fn a_failing_server_is_left_alone_for_longer_and_not_for_ever() {
        let waits: Vec<u64> = (0..9).map(|n| backoff(s(60), n).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 60, 180, 420, 420, 420]);
        assert_eq!(backoff(s(3600), 9), s(0), "an interval longer than the cap is long enough");
        assert_eq!(backoff(s(120), 9), s(480));
        let grid = grid(3, 60);
        let now = grid.after(s(1000)) + s(2);
        let wait = |row| grid.next(now, Course::Down(row), Duration::ZERO).due - now;
        assert!(wait(3) < s(60) && wait(4) >= s(117) && wait(4) < s(120) && wait(9) >= s(477) && wait(9) < s(480), "{:?} {:?}", wait(4), wait(9));
        // Backed off, it is on its grid still.
        let due = grid.next(now, Course::Down(9), Duration::ZERO).due;
        assert_eq!(grid.between(due - s(1), due), 1);
    }

    #[test]
    fn the_first_probe_leaves_room_before_the_next_one() {
        for n in 0..50 {
            let grid = grid(n, 60);
            let next = grid.next(s(101), Course::Steady, s(100 + 30)).due;
            assert!(next > s(130) && next < s(191), "{next:?}");
        }
    }

    #[test]
    fn jitter_is_small_and_differs() {
        let grid = grid(4, 100);
        let delays: std::collections::BTreeSet<Duration> = (0..20).map(|n| grid.jittered(s(n * 100)) - s(n * 100)).collect();
        assert!(delays.len() > 10 && delays.iter().all(|delay| *delay < s(1)), "{delays:?}");
    }
}
