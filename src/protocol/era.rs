//! The two eras of the protocol and the revisions in each.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Revisions that open with `initialize`, oldest first.
pub const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// Revisions in which every request describes itself, oldest first.
pub const MODERN_VERSIONS: [&str; 1] = ["2026-07-28"];
/// What a legacy client of today offers in `initialize`.
pub const LATEST_LEGACY: &str = "2025-11-25";
/// What a modern client of today prefers.
pub const LATEST_MODERN: &str = "2026-07-28";

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// `initialize`, `notifications/initialized`, then requests: up to 2025-11-25.
    Legacy,
    /// `server/discover` and self-describing requests: 2026-07-28 and later.
    Modern,
}

impl Era {
    /// The word for it in reports and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Era {
        match self {
            Era::Legacy => Era::Modern,
            Era::Modern => Era::Legacy,
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
