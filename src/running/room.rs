//! Memory for what servers write: together they may write more than there is, each of them within its limits.
//!
//! Every probe may hold a little. For more it needs a place, and there are the fewer of those the more it is. Who gets none
//! does not read on, and its server waits in its write; the time is ours and not the server's. Places are taken from the
//! smallest on and given back as soon as less is held, so whoever has the largest waits for nobody.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Who holds more than so many bytes needs one of so many places, and those above.
const STEPS: [(usize, usize); 4] = [(64 << 10, 48), (256 << 10, 8), (1 << 20, 2), (4 << 20, 1)];

/// The places, shared by all probes of the process.
#[derive(Debug)]
pub(super) struct Room([Semaphore; STEPS.len()]);

/// That of this process.
pub(super) static ROOM: Room = Room::new();

/// The places that one probe has.
#[derive(Debug)]
pub(super) struct Places<'r> {
    room: &'r Room,
    taken: Vec<SemaphorePermit<'r>>,
}

impl Room {
    const fn new() -> Room {
        Room([Semaphore::const_new(STEPS[0].1), Semaphore::const_new(STEPS[1].1), Semaphore::const_new(STEPS[2].1), Semaphore::const_new(STEPS[3].1)])
    }

    /// No places yet.
    pub(super) const fn places(&self) -> Places<'_> {
        Places { room: self, taken: Vec::new() }
    }
}

impl Places<'_> {
    /// Whether so many bytes may be held, and some more read. Gives back what is not needed for it, and takes what is needed, if
    /// that can be had.
    pub(super) fn suffice(&mut self, held: usize) -> bool {
        let needed = STEPS.iter().filter(|(above, _)| held > *above).count();
        self.taken.truncate(needed);
        while self.taken.len() < needed {
            match self.room.0[self.taken.len()].try_acquire() {
                Ok(place) => self.taken.push(place),
                Err(_) => return false,
            }
        }
        true
    }

    /// Waits for the next place, and takes it.
    pub(super) async fn wait(&mut self) {
        if let Some(places) = self.room.0.get(self.taken.len())
            && let Ok(place) = places.acquire().await
        {
            self.taken.push(place);
        }
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
        for (held, how_many) in [(65 << 10, 48), (1 << 20, 8), (3 << 20, 2), (16 << 20, 1)] {
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
}
