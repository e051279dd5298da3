//! Floor 3: what was seen becomes findings, a verdict, a report. Pure: the same observation, judged
//! by the same rules, is the same report.

mod case;
mod checks;
pub mod compare;
mod drift;
mod listing;
mod lock;
mod report;
mod verdict;

pub use case::{Case, Check, Finding, Found, OBJECTIVES, Rules};
pub use checks::{CHECKS, PEER_HARMED, check};
pub use compare::{Change, ChangeClass};
pub use drift::{ADDED, Against, Changed, Drift, DriftStatus, REMOVED, between};
pub use listing::{Accepted, Conditions, Environment, Listing, PROFILE, Source};
pub use lock::{LockError, LockFile};
pub use report::{Given, Lists, PeersSeen, Reference, Report, Schema, ServerIdentity, Shutdown, Timings, UsageSeen, judge};
pub use verdict::{Reason, Severity, Verdict};

#[cfg(test)]
mod tests;
