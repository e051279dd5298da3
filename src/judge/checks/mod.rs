use super::case::Check;

/// Every check.
pub const CHECKS: &[Check] = &[];
