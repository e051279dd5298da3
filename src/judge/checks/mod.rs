//! The checks: one table, assembled from one file for each part of a probe.
//!
//! A new check is one entry in one of these tables, and one test. Its code, what it means and what
//! to do about it then appear in `explain`, in the documentation, among the keys of the
//! configuration and as a label of `stdiowatch_findings_total` by themselves. That nothing that can
//! be seen is without a check is what `judge::tests` makes sure of.
#![allow(clippy::wildcard_enum_match_arm, reason = "a check looks for one thing among all that can be seen")]

mod auth;
mod call;
mod container;
mod drift;
mod handshake;
mod latency;
mod launch;
mod limit;
mod lists;
mod ours;
mod peers;
mod shutdown;
mod stdout;

use std::sync::LazyLock;

use super::case::Check;

pub use peers::PEER_HARMED;

/// Every check, in the order of a probe.
pub static CHECKS: LazyLock<Vec<&'static Check>> = LazyLock::new(|| {
    let parts = [
        launch::CHECKS,
        limit::CHECKS,
        stdout::CHECKS,
        handshake::CHECKS,
        auth::CHECKS,
        lists::CHECKS,
        call::CHECKS,
        drift::CHECKS,
        latency::CHECKS,
        shutdown::CHECKS,
        peers::CHECKS,
        ours::CHECKS,
    ];
    parts.into_iter().flatten().collect()
});

/// The check with this code.
#[must_use]
pub fn check(code: &str) -> Option<&'static Check> {
    CHECKS.iter().copied().find(|check| check.code == code)
}
