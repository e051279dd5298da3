//! Floor 3: what was seen becomes findings, a verdict, a report. Pure: the same observation, judged
//! by the same rules, is the same report.

mod baseline;
mod case;
mod checks;
pub mod compare;
mod report;
mod verdict;

pub use baseline::Baseline;
pub use case::{Case, Check, Finding, Found, OBJECTIVES, Rules};
pub use checks::{CHECKS, PEER_HARMED, check};
pub use compare::{Change, ChangeClass};
pub use report::{Changed, Drift, DriftStatus, Given, Lists, PeersSeen, Report, Schema, ServerIdentity, Shutdown, Timings, UsageSeen, judge};
pub use verdict::{Reason, Severity, Verdict};

#[cfg(test)]
mod tests;
