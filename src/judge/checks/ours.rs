//! What is not the server's doing.

use super::super::case::{Check, Found};
use super::super::verdict::Severity::Unknown;
use crate::probe::{LaunchError, Phase};
use crate::words::{At, printable};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "probe.resources",
        severity: Unknown,
        about: "Our own trouble: no descriptors, memory or processes were left to launch the server with.",
        mend: "Raise the limits that stdiowatch runs under, or give the host room. The next probe tries again.",
        run: |case| match &case.launch.failure {
            Some(LaunchError::Resources { error }) => {
                Some(Found::once(case.launch.started, Phase::Spawn, "stdiowatch had no resources left to launch the server", printable(error, 300)))
            }
            _ => None,
        },
    },
    Check {
        code: "probe.cancelled",
        severity: Unknown,
        about: "The probe was stopped by us, because stdiowatch was asked to end.",
        mend: "Nothing has to be done.",
        run: |case| {
            let at = At::after(case.observation.total);
            case.observation.cancelled.then(|| Found::once(at, Phase::Shutdown, "the probe was stopped before it was complete", format!("stopped at {at}")))
        },
    },
];
