use std::collections::VecDeque;

use crate::judge::{Reason, Verdict};
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

/// The last probes, and troubles for longer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    troubles: VecDeque<Entry>,
    recent: VecDeque<Entry>,
}

impl History {
    /// What was kept over a restart, oldest first; no more of it than is remembered.
    pub(super) fn kept(mut troubles: VecDeque<Entry>, mut recent: VecDeque<Entry>) -> History {
        troubles.drain(..troubles.len().saturating_sub(TROUBLES));
        recent.drain(..recent.len().saturating_sub(RECENT));
        History { troubles, recent }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        if self.recent.len() == RECENT
            && let Some(old) = self.recent.pop_front()
            && !old.verdict.is_up()
        {
            if self.troubles.len() == TROUBLES {
                self.troubles.pop_front();
            }
            self.troubles.push_back(old);
        }
        self.recent.push_back(entry);
    }

    /// The last probes, oldest first.
    pub fn recent(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.recent.iter()
    }

    /// Troubles before those, oldest first.
    pub fn troubles(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.troubles.iter()
    }

    /// All that is remembered, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.troubles.iter().chain(&self.recent)
    }
}
