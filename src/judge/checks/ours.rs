//! What is not the server's doing.

use super::super::case::{Case, Check, Found};
use super::super::verdict::Severity::Unknown;
use crate::probe::{Asked, Exit, Fetches, LaunchError, Phase, Scarcity, Seen, Shared, Timeout, What};
use crate::words::{At, printable};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "probe.resources",
        severity: Unknown,
        about: "Our own trouble: no descriptors, memory or processes were left to launch the server with; or it failed because it got no thread, process or file, and its user, its cgroup or the host, which it shares with stdiowatch and others, had next to none left once it was gone.",
        mend: "Raise the limits that stdiowatch runs under (`ulimit -u`, the container's pids limit, systemd's TasksMax), or give the host room. The next probe tries again.",
        run: |case| match &case.launch.failure {
            Some(LaunchError::Resources { error }) => {
                Some(Found::once(case.launch.started, Phase::Spawn, "stdiowatch had no resources left to launch the server", printable(error, 300)))
            }
            _ => starved(case),
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

/// What is said by a program that got no thread or process (EAGAIN), in lower case: by Node's and libuv's assertions, Python,
/// Go, Java, Rust, C++, shells.
const NO_TASK: [&str; 7] = [
    "pthread_create",
    "uv_thread_create",
    "can't start new thread",
    "failed to create new os thread",
    "unable to create native thread",
    "cannot fork",
    "can't fork",
];
/// The same in words that other things are said in too, such as a lock that is taken: they count where they are the last.
const TRY_AGAIN: [&str; 5] = ["resource temporarily unavailable", "eagain", "os error 11)", "errno 11]", "code: 11,"];
/// The same of a file, where the host has no more of them (ENFILE).
const NO_FILE: [&str; 4] = ["too many open files in system", "enfile", "os error 23)", "errno 23]"];
/// With fewer threads and processes hardly anything starts: Node has eleven of them.
const FEW: u64 = 16;

/// A server that ended, or said nothing, for want of what others have. Where there is room without it, it has
/// taken that itself, or is kept from it by a limit of its own: both are its failure.
pub(super) fn starved(case: Case<'_>) -> Option<Found> {
    let seen = case.launch.seen.iter().find(|seen| matches!(seen.what, What::Exited { .. } | What::Timeout(_)))?;
    let scarce = case.launch.end.as_ref()?.swept.scarce.iter();
    // Of a limit of which others have not even half, it may have wanted more than is sensible.
    let mut exhausted = scarce.filter(|scarcity| scarcity.left < FEW || scarcity.left <= scarcity.limit / 2);
    let (scarcity, sign) = exhausted.find_map(|scarcity| Some((scarcity, want(case, seen, *scarcity)?)))?;
    let (whose, what) = match scarcity.of {
        Shared::UserTasks => ("its user", TASKS),
        Shared::CgroupTasks => ("its cgroup", TASKS),
        Shared::HostTasks => ("the host", TASKS),
        Shared::HostFiles => ("the host", "open files"),
    };
    let evidence = format!("{sign}; without the server, {whose} has {} of {} {what} left", scarcity.left, scarcity.limit);
    Some(Found::once(seen.at, seen.phase, format!("the server found next to nothing left of what it shares with others: {what}"), evidence))
}

const TASKS: &str = "processes and threads";

/// What shows that it got none: a line of stderr; or that it crashed or hung without a word, as Node does with next to none.
fn want(case: Case<'_>, seen: &Seen, Scarcity { of, left, .. }: Scarcity) -> Option<String> {
    let stderr = &case.launch.stderr_tail;
    let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let line = match of {
        Shared::UserTasks | Shared::CgroupTasks | Shared::HostTasks => says(stderr, &NO_TASK).or_else(|| says(last, &TRY_AGAIN)),
        Shared::HostFiles => says(stderr, &NO_FILE),
    };
    if let Some(line) = line {
        return Some(format!("its stderr says: {}", printable(line.trim(), 200)));
    }
    let how = match &seen.what {
        // SIGTRAP, SIGABRT, SIGSEGV; a shell that ran it makes an exit status of them.
        What::Exited { exit: Exit::Signal(5 | 6 | 11) | Exit::Code(133 | 134 | 139), .. } => "it crashed",
        What::Timeout(Timeout { lines: 0, unfinished: 0, .. }) => "it hung",
        _ => return None,
    };
    (left < FEW && of != Shared::HostFiles && stderr.trim().is_empty()).then(|| format!("{how} without a word"))
}

/// The last line of `stderr` that has one of `words` in it.
fn says<'t>(stderr: &'t str, words: &[&str]) -> Option<&'t str> {
    stderr.lines().rfind(|line| {
        let line = line.to_ascii_lowercase();
        words.iter().any(|word| line.contains(word))
    })
}

/// Whether a server says of itself that it got no thread or process.
pub(super) fn says_no_task(stderr: &str) -> bool {
    says(stderr, &NO_TASK).is_some()
}

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
