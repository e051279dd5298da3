//! What a server's lists held, and what was accepted of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::judge::{Accepted, ChangeClass, DriftStatus, Listing, Report, Source, between};
use crate::words::{Moment, Redactor};

/// What is remembered of a server's lists.
#[derive(Clone, Debug, Default)]
pub struct SchemaState {
    /// What was accepted because it was seen: what later lists are compared with, unless a lock file says
    /// what is accepted.
    pub accepted: Option<Accepted>,
    /// What the last complete listing held.
    pub listed: Option<Arc<Listing>>,
    /// Items that were added, removed and changed from one complete listing to the next.
    pub changes: [u64; 3],
    /// When a listing was last another one than the one before.
    pub changed: Option<Moment>,
    /// Whether the last complete listing differs from the accepted one in more than what the rules
    /// allow; `None` where the two do not compare.
    pub drifted: Option<bool>,
    /// How many of the last listing's differences are of each class.
    pub classes: BTreeMap<ChangeClass, u64>,
    /// How many complete listings in a row were the same, the last one included.
    pub repeated: u32,
}

/// How what a server lists comes to be accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// A lock file says what is accepted.
    pub locked: bool,
    /// Accept another schema by itself once so many listings in a row were the same.
    pub after: Option<u32>,
}

/// Why a schema cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// There is nothing yet.
    #[error("nothing was listed completely yet")]
    Nothing,
    /// A lock file says what is accepted.
    #[error("a lock file says what is accepted: write it anew with `stdiowatch lock`, then reload")]
    Locked,
    /// What was listed is not fit to be compared with.
    #[error("it cannot be accepted: {0}")]
    Unfit(String),
}

impl SchemaState {
    /// Takes in a complete listing and the report in which it was compared with what is accepted.
    pub(super) fn take(&mut self, listed: Listing, report: &Report, acceptance: Acceptance, at: Moment) {
        self.count(&listed, at);
        let same = self.listed.as_ref().is_some_and(|before| **before == listed);
        if !same {
            self.listed = Some(Arc::new(listed));
        }
        self.compare(report);
        // It was accepted in the moment between the comparison and this.
        if !acceptance.locked && self.is_accepted() {
            self.drifted = Some(false);
            self.classes.clear();
        }
        if !acceptance.locked {
            self.settle(acceptance.after);
        }
    }

    /// A person accepts what was listed last. Returns whether something else was accepted before.
    ///
    /// # Errors
    ///
    /// See [`AcceptError`].
    pub(super) fn accept(&mut self, acceptance: Acceptance) -> Result<bool, AcceptError> {
        if acceptance.locked {
            return Err(AcceptError::Locked);
        }
        let listed = self.listed.as_ref().ok_or(AcceptError::Nothing)?;
        if let Some(why) = &listed.unfit {
            return Err(AcceptError::Unfit(why.clone()));
        }
        let other = self.accepted.as_ref().is_none_or(|a| a.listing.digest != listed.digest);
        self.adopt();
        Ok(other)
    }

    /// Counts what differs from the listing before.
    fn count(&mut self, listed: &Listing, at: Moment) {
        let Some(before) = &self.listed else {
            self.repeated = 1;
            return;
        };
        if before.digest == listed.digest {
            self.repeated = self.repeated.saturating_add(1);
            return;
        }
        self.repeated = 1;
        self.changed = Some(at);
        // Nothing of it is shown, only counted.
        let drift = between(before, listed, &Redactor::default());
        let mut changed: Vec<&str> = drift.changed.iter().map(|c| c.tool.as_str()).collect();
        changed.dedup();
        for (count, items) in self.changes.iter_mut().zip([drift.added.len(), drift.removed.len(), changed.len()]) {
            *count += items as u64;
        }
    }

    /// Remembers how it compares.
    fn compare(&mut self, report: &Report) {
        let drift = &report.drift;
        self.classes = drift.classes.clone();
        self.drifted = match drift.status {
            DriftStatus::NoBaseline | DriftStatus::NotComparable => None,
            DriftStatus::Same | DriftStatus::Order => Some(false),
            DriftStatus::Differs => Some(!drift.allowed),
        };
    }

    /// Whether the last listing is the accepted one.
    fn is_accepted(&self) -> bool {
        matches!((&self.listed, &self.accepted), (Some(listed), Some(accepted)) if listed.digest == accepted.listing.digest)
    }

    /// Accepts by itself what may be: the first schema, one that is the same under new conditions, one
    /// that does not compare with the old one, and, where so configured, one that stays.
    fn settle(&mut self, accept_after: Option<u32>) {
        let Some(listed) = self.listed.as_ref().filter(|l| l.unfit.is_none()) else { return };
        let adopt = match &self.accepted {
            None => true,
            Some(Accepted { listing, .. }) => {
                let stays = accept_after.is_some_and(|n| self.repeated >= n);
                let same = listing.digest == listed.digest;
                // An answer in another order is told once, not for ever.
                same && **listing != **listed || !same && (stays || listing.conditions.differ(&listed.conditions).is_some())
            }
        };
        if adopt {
            self.adopt();
        }
    }

    fn adopt(&mut self) {
        let Some(listed) = &self.listed else { return };
        self.accepted = Some(Accepted { listing: Arc::clone(listed), source: Source::Seen });
        self.drifted = Some(false);
        self.classes.clear();
    }
}
