//! What is not the server's doing.

use super::super::case::{Case, Check, Found};
use super::super::verdict::Severity::Unknown;
use crate::probe::{Asked, Fetches, LaunchError, Phase, Seen, Timeout, What};
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
        code: "probe.host_busy",
        severity: Unknown,
        about: "The server did not answer in time while the host was saturated: it was ready to run for much of that time, and had no core; or stdiowatch itself did not get to look in time.",
        mend: "Give the host room, probe less often or fewer servers at once, or raise the timeouts. The next probe tries again.",
        run: host_busy,
    },
    Check {
        code: "probe.cold_start",
        severity: Unknown,
        about: "The launcher (npx, uvx and the like) had not finished fetching the server when its long first budget was up. Nothing can be said about a server that was never started.",
        mend: "Let it finish once by hand, or put the server into the image, so that nothing has to be fetched at its start.",
        run: cold_start,
    },
    Check {
        code: "probe.cancelled",
        severity: Unknown,
        about: "The probe was stopped by us, because stdiowatch was asked to end.",
        mend: "Nothing has to be done.",
        run: |case| {
            let at = At::after(case.observation.total);
            case.observation
                .cancelled
                .then(|| Found::once(at, Phase::Shutdown, "the probe was stopped before it was complete", format!("stopped at {at}")))
        },
    },
];

/// The timeout that the judged launch ended in, if it did.
fn timeout(case: Case<'_>) -> Option<(&Seen, &Timeout)> {
    case.launch.seen.iter().find_map(|seen| match &seen.what {
        What::Timeout(timeout) => Some((seen, timeout)),
        _ => None,
    })
}

/// A server that is ready to run and gets no core is not slow. One that keeps all cores busy by
/// itself is: then it uses most of the time that it waits.
fn host_busy(case: Case<'_>) -> Option<Found> {
    let (seen, timeout) = timeout(case)?;
    if let Some(found) = overslept(case) {
        return Some(found);
    }
    let usage = case.launch.end.as_ref()?.usage;
    let starved = usage.queued >= timeout.waited.mul_f64(0.4) && usage.cpu < timeout.waited.mul_f64(0.8);
    starved.then(|| {
        let (waited, cpu) = (timeout.waited.as_secs_f64(), usage.cpu.as_secs_f64());
        let queued = usage.queued.min(timeout.waited).as_secs_f64();
        let evidence = format!("of {waited:.1} s it was ready to run for some {queued:.1} s without a core, and ran for {cpu:.1} s");
        Found::once(seen.at, seen.phase, "the host was too busy to give the server a chance", evidence)
    })
}

/// A wait that ended too late was not the server's alone.
fn overslept(case: Case<'_>) -> Option<Found> {
    case.seen(|what| match what {
        What::Overslept { by } => Some(format!("stdiowatch itself did not get to look for {:.1} s", by.as_secs_f64())),
        _ => None,
    })
}

/// A launcher that fetches does so by itself; the server that it then starts is a process of its own.
fn cold_start(case: Case<'_>) -> Option<Found> {
    let (seen, timeout) = timeout(case)?;
    let opening = matches!(timeout.asked, Asked::Discover | Asked::Initialize);
    let alone = case.launch.end.as_ref()?.usage.processes == 1;
    let fetching = case.launch.fetches == Fetches::Package && alone && opening && case.launch.io.stdout_bytes == 0;
    fetching.then(|| {
        let waited = timeout.waited.as_secs_f64();
        let evidence = format!("after {waited:.1} s the launcher was still alone: it had not started the server");
        Found::once(seen.at, seen.phase, "the launcher was still fetching the server when its time was up", evidence)
    })
}
