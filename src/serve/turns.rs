//! Who is next where one is served at a time: callers stand in lines, and the lines take turns, so that a flood in one of
//! them keeps nobody out of another.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How many may wait.
const WAITING: usize = 64;
/// How long anybody waits. A client that has gone may not be seen to have: its place is free again after this.
const LONGEST: Duration = Duration::from_secs(5);

/// In which line somebody stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whose {
    /// A user; `None` for all the names that are none.
    user: Option<String>,
    /// An IPv4 address, or the network of an IPv6 one, whose addresses its owner can choose.
    peer: Option<IpAddr>,
}

impl Whose {
    pub(super) fn new(user: Option<&str>, peer: Option<IpAddr>) -> Whose {
        let peer = peer.map(|peer| match peer {
            IpAddr::V4(_) => peer,
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        });
        Whose { user: user.map(str::to_owned), peer }
    }
}

/// The lines.
#[derive(Default)]
pub(super) struct Turns(Arc<Mutex<Queue>>);

/// Held by the one whose turn it is.
pub(super) struct Turn(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    /// Somebody has its turn.
    taken: bool,
    /// None is empty; the first one is next.
    lines: VecDeque<(Whose, VecDeque<oneshot::Sender<Turn>>)>,
}

impl Turns {
    /// Waits for a turn; `None` if too many wait, or it takes too long.
    pub(super) async fn turn(&self, whose: Whose) -> Option<Turn> {
        let waiting = {
            let mut queue = self.0.lock();
            if !queue.taken {
                queue.taken = true;
                return Some(Turn(Arc::clone(&self.0)));
            }
            queue.join(whose)?
        };
        timeout(LONGEST, waiting).await.ok()?.ok()
    }
}

impl Queue {
    /// A place at the end of a line. Where all are taken, it is the last one's of the longest line, if that is longer.
    fn join(&mut self, whose: Whose) -> Option<oneshot::Receiver<Turn>> {
        for (_, line) in &mut self.lines {
            line.retain(|waiting| !waiting.is_closed());
        }
        self.lines.retain(|(_, line)| !line.is_empty());
        if self.lines.iter().map(|(_, line)| line.len()).sum::<usize>() >= WAITING {
            let own = self.lines.iter().find(|(other, _)| *other == whose).map_or(0, |(_, line)| line.len());
            let (_, longest) = self.lines.iter_mut().max_by_key(|(_, line)| line.len()).filter(|(_, line)| line.len() > own + 1)?;
            longest.pop_back();
        }
        let (place, waiting) = oneshot::channel();
        match self.lines.iter_mut().find(|(other, _)| *other == whose) {
            Some((_, line)) => line.push_back(place),
            None => self.lines.push_back((whose, VecDeque::from([place]))),
        }
        Some(waiting)
    }

    /// Who is next of those that still wait; its line is then the last one.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some((whose, mut line)) = self.lines.pop_front() {
            let next = std::iter::from_fn(|| line.pop_front()).find(|waiting| !waiting.is_closed());
            if !line.is_empty() {
                self.lines.push_back((whose, line));
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut queue = self.0.lock();
            let next = queue.next();
            queue.taken = next.is_some();
            next
        };
        if let Some(next) = next {
            // Who has gone just now drops it, and so hands it on.
            drop(next.send(Turn(Arc::clone(&self.0))));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn of(user: &str) -> Whose {
        Whose::new(Some(user), None)
    }

    /// Somebody who stands in line from now on.
    fn waits(turns: &Turns, user: &str) -> oneshot::Receiver<Turn> {
        turns.0.lock().join(of(user)).unwrap()
    }

    fn first(turns: &Turns) -> Turn {
        let mut turn = pin!(turns.turn(of("first")));
        match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(turn)) => turn,
            Poll::Ready(None) | Poll::Pending => panic!("nobody else has it"),
        }
    }

    #[test]
    fn lines_take_turns_and_a_flood_gives_way() {
        let turns = Turns::default();
        let mut turn = first(&turns);
        let mut flood: Vec<_> = (0..WAITING).map(|_| waits(&turns, "flood")).collect();
        assert!(turns.0.lock().join(of("flood")).is_none(), "no more of the same");
        let mut alice = waits(&turns, "alice");
        assert!(flood.pop().unwrap().try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed), "the last one made room");
        drop(turn);
        turn = flood.remove(0).try_recv().expect("one of the flood");
        assert!(alice.try_recv().is_err());
        drop(turn);
        turn = alice.try_recv().expect("not behind all of the flood");
        // Who has gone is passed over, and holds no place.
        drop(flood);
        let mut bob = waits(&turns, "bob");
        assert_eq!(turns.0.lock().lines.len(), 1);
        drop(turn);
        drop(bob.try_recv().expect("nobody else is there"));
        assert!(!turns.0.lock().taken);
        drop(first(&turns));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_long() {
        let turns = Turns::default();
        let turn = first(&turns);
        let began = tokio::time::Instant::now();
        assert!(turns.turn(of("alice")).await.is_none());
        assert_eq!(began.elapsed().as_secs(), LONGEST.as_secs());
        drop(turn);
        assert!(turns.turn(of("alice")).await.is_some(), "a turn that nobody took is not lost");
    }

    #[test]
    fn a_network_is_one_peer() {
        let of = |peer: &str| Whose::new(None, Some(peer.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
