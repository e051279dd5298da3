//! How a process is ended, as a table: close stdin, wait; SIGTERM, wait; SIGKILL, wait.
//!
//! The specification's shutdown for stdio, in its order. A signal before the end of stdin would be
//! wrong: servers exist that ignore SIGTERM while stdin is open, and go at once when it is closed.

use std::time::Duration;

use super::observation::EndedBy;
use crate::words::At;

/// How long a process may take to die of SIGKILL. It dies at once, unless the kernel holds it.
const KILL_WAIT: Duration = Duration::from_secs(3);

/// Where on the ladder a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rung {
    /// Stdin is closed.
    Eof,
    /// SIGTERM was sent.
    Term,
    /// SIGKILL was sent.
    Kill,
}

/// What to do when the time on a rung is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send SIGTERM to the group.
    Term,
    /// Send SIGKILL to the group.
    Kill,
    /// Nothing more can be done but to clear away what can be.
    GiveUp,
}

/// The ladder of one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ladder {
    rung: Rung,
    until: At,
    term_grace: Duration,
    /// The end of the whole probe: whatever the graces say, SIGKILL comes then.
    end: At,
}

impl Ladder {
    /// Stdin was closed at `now`.
    pub(super) fn begin(now: At, eof_grace: Duration, term_grace: Duration, end: At) -> Ladder {
        Ladder { rung: Rung::Eof, until: (now + eof_grace).min(end), term_grace, end }
    }

    /// When [`Ladder::climb`] is due.
    pub(super) fn until(&self) -> At {
        self.until
    }

    /// Goes on at `until` at the latest.
    pub(super) fn hurry(&mut self, until: At) {
        self.until = self.until.min(until);
    }

    /// Goes to SIGKILL at once, which is sent at `now`.
    pub(super) fn jump(&mut self, now: At) {
        (self.rung, self.until) = (Rung::Kill, now + KILL_WAIT);
    }

    /// What has been done so far, in the words of the report.
    pub(super) fn ended_by(&self) -> EndedBy {
        match self.rung {
            Rung::Eof => EndedBy::Eof,
            Rung::Term => EndedBy::Sigterm,
            Rung::Kill => EndedBy::Sigkill,
        }
    }

    /// The time on this rung is up.
    pub(super) fn climb(&mut self, now: At) -> Step {
        let (rung, until, step) = match self.rung {
            Rung::Eof if now < self.end => (Rung::Term, (now + self.term_grace).min(self.end), Step::Term),
            Rung::Eof | Rung::Term => (Rung::Kill, now + KILL_WAIT, Step::Kill),
            Rung::Kill => (Rung::Kill, self.until, Step::GiveUp),
        };
        (self.rung, self.until) = (rung, until);
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> At {
        At::after(Duration::from_secs(seconds))
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn each_rung_has_its_time() {
        let mut ladder = Ladder::begin(at(10), seconds(5), seconds(4), at(100));
        assert_eq!((ladder.until(), ladder.ended_by()), (at(15), EndedBy::Eof));
        assert_eq!(ladder.climb(at(15)), Step::Term);
        assert_eq!((ladder.until(), ladder.ended_by()), (at(19), EndedBy::Sigterm));
        assert_eq!(ladder.climb(at(19)), Step::Kill);
        assert_eq!((ladder.until(), ladder.ended_by()), (at(22), EndedBy::Sigkill));
        assert_eq!(ladder.climb(at(22)), Step::GiveUp);
    }

    #[test]
    fn at_the_end_of_the_probe_it_is_killed() {
        let mut ladder = Ladder::begin(at(10), seconds(5), seconds(4), at(17));
        assert_eq!(ladder.climb(at(15)), Step::Term);
        assert_eq!(ladder.until(), at(17));
        assert_eq!(ladder.climb(at(17)), Step::Kill);
        let mut ladder = Ladder::begin(at(10), seconds(5), seconds(4), at(12));
        assert_eq!(ladder.until(), at(12));
        assert_eq!(ladder.climb(at(12)), Step::Kill);
    }
}
