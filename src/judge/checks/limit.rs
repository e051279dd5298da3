//! What a server takes, against what it may take.

use super::super::case::{Case, Check, Found};
use super::super::verdict::Severity::Fail;
use crate::probe::{Excess, Taken, What};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "limit.memory",
        severity: Fail,
        about: "The server and its descendants together had more memory resident than `limits: {memory: …}` allows it, and were killed. What they share is counted once. They are looked at every 50 ms, so what is taken and given back in between is not seen, and what is taken in between is taken.",
        mend: "Have the server take less (`--max-old-space-size` and the like), or allow it more.",
        run: |case| too_much(case, Taken::Memory),
    },
    Check {
        code: "limit.processes",
        severity: Fail,
        about: "The server had more descendants than `limits: {processes: …}` allows it, itself included, and all of them were killed. Threads do not count.",
        mend: "Look for workers or helpers that are started for each request and never ended, or allow it more.",
        run: |case| too_much(case, Taken::Processes),
    },
];

/// On whichever launch it was: each of them is one that clients make.
fn too_much(case: Case<'_>, of: Taken) -> Option<Found> {
    case.seen_anywhere(|what| match what {
        What::TookTooMuch(excess) if excess.of == of => Some(words(*excess)),
        _ => None,
    })
    .map(|mut found| {
        found.evidence.push_str("; the server was killed for it");
        found
    })
}

fn words(Excess { of, figure, limit, processes }: Excess) -> String {
    let them = if processes == 1 { "the server".to_owned() } else { format!("the {processes} processes of the server") };
    match of {
        Taken::Memory => format!("{them} had {} resident, with a limit of {}", mebibytes(figure), mebibytes(limit)),
        Taken::Processes => format!("the server had {figure} processes or more, with a limit of {limit}"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people, to a tenth")]
fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
