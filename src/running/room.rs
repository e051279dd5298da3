//! Memory for what servers write: together they may write more than there is, each of them within its limits.
//!
//! Every probe may hold a little. For more it needs a place, and there are the fewer of those the more it is. Who gets none
//! does not read on, and its server waits in its write; the time is ours and not the server's. Places are taken from the
//! smallest on and given back as soon as less is held, so whoever has the largest waits for nobody.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// Who holds more than so many bytes needs one of so many places, and those above.
const STEPS: [(usize, usize); 4] = [(64 << 10, 48), (256 << 10, 8), (1 << 20, 4), (4 << 20, 1)];

/// The places, shared by all probes of the process.
#[derive(Debug)]
pub(super) struct Room([Semaphore; STEPS.len()]);

/// That of this process.
pub(super) static ROOM: Room = Room::new();

/// The places that one probe has.
pub(super) struct Places<'r> {
    room: &'r Room,
    taken: Vec<SemaphorePermit<'r>>,
    /// It waits for the next one: kept, so that it keeps its place among those that wait.
    queued: Option<Acquired<'r>>,
}

type Acquired<'r> = Pin<Box<dyn Future<Output = Result<SemaphorePermit<'r>, AcquireError>> + Send + 'r>>;

impl fmt::Debug for Places<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Places({})", self.taken.len())
    }
}

impl Room {
    const fn new() -> Room {
        Room([Semaphore::const_new(STEPS[0].1), Semaphore::const_new(STEPS[1].1), Semaphore::const_new(STEPS[2].1), Semaphore::const_new(STEPS[3].1)])
    }

    /// No places yet.
    pub(super) const fn places(&self) -> Places<'_> {
        Places { room: self, taken: Vec::new(), queued: None }
    }
}

impl Places<'_> {
    /// Whether so many bytes may be held, and some more read. Gives back what is not needed for it, and takes what is needed, if
    /// that can be had.
    pub(super) fn suffice(&mut self, held: usize) -> bool {
        let needed = self.give_back(held);
        while self.taken.len() < needed {
            if self.queued.is_some() {
                return false;
            }
            match self.room.0[self.taken.len()].try_acquire() {
                Ok(place) => self.taken.push(place),
                Err(_) => return false,
            }
        }
        true
    }

    /// Gives back what is not needed for so many bytes; says how many places are.
    pub(super) fn give_back(&mut self, held: usize) -> usize {
        let needed = STEPS.iter().filter(|(above, _)| held > *above).count();
        self.taken.truncate(needed);
        if self.taken.len() >= needed {
            self.queued = None;
        }
        needed
    }

    /// Waits for the next place, and takes it. May be dropped and begun again.
    pub(super) async fn wait(&mut self) {
        let Some(places) = self.room.0.get(self.taken.len()) else { return };
        let place = self.queued.get_or_insert_with(|| Box::pin(places.acquire())).await;
        self.queued = None;
        self.taken.extend(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_is_free_and_much_is_for_one() {
        let room = Room::new();
        let mut all: Vec<_> = (0..100).map(|_| room.places()).collect();
        assert!(all.iter_mut().all(|places| places.suffice(64 << 10)));
        for (held, how_many) in [(65 << 10, 48), (1 << 20, 8), (3 << 20, 4), (16 << 20, 1)] {
            assert_eq!(all.iter_mut().filter_map(|places| places.suffice(held).then_some(())).count(), how_many, "{held}");
            assert!(all.iter_mut().all(|places| places.suffice(0)));
        }
    }

    #[tokio::test]
    async fn who_waits_goes_on_when_a_place_is_given_back() {
        let room = Room::new();
        let (mut first, mut second) = (room.places(), room.places());
        assert!(first.suffice(5 << 20) && !second.suffice(5 << 20) && second.suffice(2 << 20));
        assert!(!second.suffice(5 << 20));
        let waits = async {
            second.wait().await;
            second.suffice(5 << 20)
        };
        let gives = async {
            tokio::task::yield_now().await;
            drop(first);
        };
        assert!(tokio::join!(waits, gives).0);
        drop(second);
        assert!(room.places().suffice(usize::MAX));
    }

    /// A wait that is begun again and again, for other things that happen, is served in its turn.
    #[tokio::test]
    async fn who_waits_keeps_its_turn() {
        let room = Room::new();
        let mut all: Vec<_> = (0..3).map(|_| room.places()).collect();
        assert!(all[0].suffice(5 << 20) && !all[1].suffice(5 << 20) && !all[2].suffice(5 << 20));
        let soon = std::time::Duration::ZERO;
        for n in [1, 2, 1, 1, 2, 1] {
            assert!(tokio::time::timeout(soon, all[n].wait()).await.is_err() && !all[n].suffice(5 << 20));
        }
        assert_eq!(all[0].give_back(0), 0);
        assert!(tokio::time::timeout(soon, all[2].wait()).await.is_err(), "the other one was first");
        all[1].wait().await;
        assert!(all[1].suffice(5 << 20) && !all[2].suffice(5 << 20));
        // Who needs it no more does not keep others waiting.
        all[2].give_back(0);
        all[1].give_back(0);
        assert!(all[0].suffice(5 << 20));
    }
}
