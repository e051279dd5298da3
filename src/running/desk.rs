//! Where a server can be asked for a probe outside of its schedule. Who asks while one is running gets
//! that one's outcome, so that a crowd launches no more than one does.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::watched::Watched;
use crate::probe::Recording;

/// One server's desk: those who ask on this side, its watcher on the other.
#[derive(Debug)]
pub(super) struct Desk {
    book: Mutex<Book>,
    asked: Notify,
    ended: watch::Sender<End>,
}

#[derive(Debug, Default)]
struct Book {
    /// Somebody wants a probe; `true`: with a recording.
    wanted: Option<bool>,
    /// One is running, or waits for its turn; `true`: it is recorded.
    running: Option<bool>,
    /// When the last one ended, since boot.
    ended: Option<Duration>,
}

/// What became of what was asked for.
#[derive(Clone, Debug, Default)]
pub(super) enum End {
    /// Nothing yet.
    #[default]
    NotYet,
    /// The server is held.
    TurnedAway,
    /// A probe ended, and its outcome is published.
    Probed {
        /// What it probed.
        server: Arc<Watched>,
        /// If it was recorded.
        recording: Option<Arc<Recording>>,
    },
}

/// What to do for the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The last outcome is this old, and will do.
    Again(Duration),
    /// Ask again after this long: nothing is launched before that.
    Rest(Duration),
    /// Wait for the end of a probe.
    Wait,
}

impl Desk {
    pub(super) fn new() -> Desk {
        Desk { book: Mutex::default(), asked: Notify::new(), ended: watch::Sender::new(End::NotYet) }
    }

    /// Asks for a probe at `now`, for a recorded one if need be. There is none within `floor` of the end of the
    /// one before.
    pub(super) fn ask(&self, record: bool, floor: Duration, now: Duration) -> Step {
        let mut book = self.book.lock();
        if book.running.is_some() {
            return Step::Wait;
        }
        let age = book.ended.map(|ended| now.saturating_sub(ended));
        match age.filter(|age| *age < floor) {
            Some(age) if record => return Step::Rest(floor - age),
            Some(age) => return Step::Again(age),
            None => {}
        }
        book.wanted = Some(record || book.wanted == Some(true));
        self.asked.notify_one();
        Step::Wait
    }

    /// To be told of ends from now on. Of none any more once the server is watched no longer.
    pub(super) fn ends(&self) -> watch::Receiver<End> {
        self.ended.subscribe()
    }

    /// Resolves when somebody has asked; perhaps for what another probe has done meanwhile.
    pub(super) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Whether somebody waits for a probe that is to begin.
    pub(super) fn is_wanted(&self) -> bool {
        self.book.lock().wanted.is_some()
    }

    /// A probe is about to be made, for whoever asked; says whether it is to be recorded.
    pub(super) fn begin(&self) -> bool {
        let mut book = self.book.lock();
        let record = book.wanted.take().unwrap_or_default();
        book.running = Some(record);
        record
    }

    /// It has ended, and its outcome is published. It will do for a while after `now`, if it was of what is watched still.
    pub(super) fn end(&self, server: Arc<Watched>, recording: Option<Recording>, now: Option<Duration>) {
        let mut book = self.book.lock();
        book.running = None;
        book.ended = now;
        self.ended.send_replace(End::Probed { server, recording: recording.map(Arc::new) });
    }

    /// It has come to nothing. Who waits for it waits for the next one.
    pub(super) fn put_off(&self) {
        let mut book = self.book.lock();
        if let Some(record) = book.running.take() {
            book.wanted = Some(record || book.wanted == Some(true));
        }
    }

    /// None is made: the server is held.
    pub(super) fn turn_away(&self) {
        if self.book.lock().wanted.take().is_some() {
            self.ended.send_replace(End::TurnedAway);
        }
    }

    /// What ended before was another configuration's.
    pub(super) fn renew(&self) {
        self.book.lock().ended = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outside::process::LaunchSpec;
    use crate::words::ServerName;

    #[test]
    fn one_probe_serves_all_who_ask_and_none_follows_at_once() {
        let (desk, s) = (Desk::new(), Duration::from_secs);
        let server = || Arc::new(Watched::new(ServerName::of_command("x"), LaunchSpec::default(), s(60)));
        let mut ends = desk.ends();
        assert_eq!(desk.ask(false, s(5), s(100)), Step::Wait);
        assert!(desk.is_wanted());
        assert_eq!(desk.ask(true, s(5), s(100)), Step::Wait);
        assert!(desk.begin(), "one of them wants it recorded");
        assert!(!desk.is_wanted());
        assert_eq!(desk.ask(false, s(5), s(101)), Step::Wait);
        assert!(!desk.is_wanted(), "the one that is running will do");
        desk.put_off();
        assert!(!ends.has_changed().unwrap() && desk.begin(), "the next one is for the same, and recorded");
        desk.end(server(), None, Some(s(102)));
        assert!(ends.has_changed().unwrap() && matches!(*ends.borrow_and_update(), End::Probed { recording: None, .. }));
        assert_eq!((desk.ask(false, s(5), s(104)), desk.ask(true, s(5), s(104))), (Step::Again(s(2)), Step::Rest(s(3))));
        assert_eq!(desk.ask(false, s(5), s(107)), Step::Wait);
        desk.turn_away();
        assert!(matches!(*ends.borrow_and_update(), End::TurnedAway) && !desk.is_wanted());
        desk.renew();
        assert_eq!(desk.ask(false, s(5), s(103)), Step::Wait);
        desk.begin();
        desk.end(server(), None, None);
        assert_eq!(desk.ask(false, s(5), s(103)), Step::Wait, "what ended was another configuration's");
        drop(desk);
        assert!(ends.has_changed().is_err());
    }
}
