//! The time of one probe: it goes on only while we are there to see it.
//!
//! A sidecar that was stopped (SIGSTOP, `docker pause`, a freezer), or got no core for long, has seen nothing of what the
//! server did, and the server may have been stopped with it. Such time is nobody's: no limit runs out in it, and it is in
//! no duration that is told.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::outside::clock::at_work;
use crate::words::At;

/// How often we look what time it is, whatever is waited for.
const PULSE: Duration = Duration::from_millis(100);
/// A look that comes this much too late was not merely put off: we, or the whole machine, stood still.
const LATE: Duration = Duration::from_millis(250);
/// A wait in which we stood still for longer than this at once has no end that can be held against the server: who stood still
/// with us may have lost more than time. To be at work is not to stand still, and neither is a little now and then.
pub(super) const OVERSLEPT: Duration = Duration::from_secs(1);
/// How often we look how much we worked.
const ACCOUNT: Duration = Duration::from_millis(50);

/// Stands still when we do.
#[derive(Debug)]
pub(super) struct Stopwatch {
    started: Instant,
    looked: Instant,
    lost: Duration,
    /// Of that, what was more than [`OVERSLEPT`] at once.
    stood_still: Duration,
    /// How much we had worked, and when that was.
    worked: (Instant, Duration),
}

impl Stopwatch {
    /// It starts now.
    pub(super) fn start() -> Stopwatch {
        let now = Instant::now();
        Stopwatch { started: now, looked: now, lost: Duration::ZERO, stood_still: Duration::ZERO, worked: (now, at_work()) }
    }

    /// What time it is. To be asked each [`PULSE`], which [`wake`](Stopwatch::wake) sees to: what goes by unseen for
    /// much longer is lost.
    pub(super) fn now(&mut self) -> At {
        let now = Instant::now();
        let unseen = now - self.looked;
        if unseen > PULSE + LATE {
            // All of it, at first: the server is to have no less time than it should. On a machine on which every look is
            // late, time has to go on all the same.
            self.lost += if self.lost < OVERSLEPT { unseen } else { unseen - PULSE };
            // Who worked a good part of it did not stand still, however little of the core there was to be had.
            let worked = at_work() - self.worked.1;
            let is_still = unseen > OVERSLEPT + worked && worked * 10 < unseen;
            self.stood_still += if is_still { unseen } else { Duration::ZERO };
        }
        if now - self.worked.0 > ACCOUNT {
            self.worked = (now, at_work());
        }
        self.looked = now;
        At::after(now - self.started - self.lost)
    }

    /// For how long we stood still so far, as far as that excuses who did not answer.
    pub(super) fn stood_still(&self) -> Duration {
        self.stood_still
    }

    /// What went by since the last look is not lost: we were at work.
    pub(super) fn worked(&mut self) {
        self.looked = Instant::now();
    }

    /// When to look again: at `due`, or before.
    pub(super) fn wake(&self, due: Option<At>) -> Instant {
        let pulse = self.looked + PULSE;
        due.map_or(pulse, |due| pulse.min(self.started + self.lost + due.elapsed()))
    }

    /// Looks at the time until `future` is done.
    pub(super) async fn during<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            let done = timeout_at(self.wake(None), &mut future).await;
            self.now();
            if let Ok(done) = done {
                return done;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep, sleep_until};

    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Waits until `due`, as a probe does, and stands still for `long` once, when `after` has gone by, whether or not it looks
    /// then. Says how long that took in all.
    async fn wait(watch: &mut Stopwatch, due: Duration, after: Duration, long: Duration) -> Duration {
        let (began, due) = (Instant::now(), At::after(due));
        let mut still = Some(long);
        while watch.now() < due {
            let wake = watch.wake(Some(due));
            if began + after <= wake
                && let Some(long) = still.take()
            {
                sleep_until(began + after).await;
                advance(long).await;
            }
            sleep_until(wake).await;
        }
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_as_much_longer_as_we_stood_still_in_it_wherever_that_was() {
        for long in [ms(400), ms(900), ms(3000), ms(3_600_000)] {
            for after in [0, 10, 1000, 3899, 3950, 3999].map(ms) {
                let mut watch = Stopwatch::start();
                let took = wait(&mut watch, ms(4000), after, long).await;
                // Timers are good to a millisecond.
                let whole = long..=long + PULSE + ms(2);
                assert!(whole.contains(&(took - ms(4000))), "{took:?}: {long:?} after {after:?}");
                assert!(whole.contains(&watch.lost), "{:?} of {long:?}", watch.lost);
                assert_eq!(watch.stood_still(), if watch.lost > OVERSLEPT { watch.lost } else { Duration::ZERO });
                assert!(watch.now().elapsed() <= ms(4002));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_little_late_is_late_and_nothing_is_lost() {
        let mut watch = Stopwatch::start();
        for _ in 0..100 {
            advance(PULSE + ms(200)).await;
            watch.now();
        }
        assert_eq!((watch.lost, watch.now().elapsed()), (Duration::ZERO, 100 * (PULSE + ms(200))));
    }

    #[tokio::test(start_paused = true)]
    async fn time_goes_on_where_every_look_is_late() {
        let mut watch = Stopwatch::start();
        let mut last = watch.now();
        let mut looks = 0;
        while watch.now() < At::after(ms(4000)) {
            advance(PULSE + ms(800)).await;
            let now = watch.now();
            assert!(now >= last, "it does not go back");
            (last, looks) = (now, looks + 1);
        }
        assert!(looks <= 42, "{looks}");
        assert_eq!(watch.stood_still(), Duration::ZERO, "the server had all its time, bit by bit");
    }

    #[tokio::test(start_paused = true)]
    async fn what_we_do_ourselves_is_not_lost_unless_we_stand_still_at_it() {
        let mut watch = Stopwatch::start();
        advance(ms(2000)).await;
        watch.worked();
        assert_eq!((watch.lost, watch.now()), (Duration::ZERO, At::after(ms(2000))));
        watch.during(sleep(ms(3000))).await;
        assert_eq!(watch.lost, Duration::ZERO);
        assert!(watch.now() >= At::after(ms(5000)), "{}", watch.now());
        watch
            .during(async {
                sleep(ms(1000)).await;
                advance(ms(5000)).await;
                sleep(ms(1000)).await;
            })
            .await;
        assert!(watch.lost >= ms(5000) && watch.lost <= ms(5000) + PULSE, "{:?}", watch.lost);
    }
}
