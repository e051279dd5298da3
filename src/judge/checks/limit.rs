//! What a server takes, against what it may take.

use super::super::case::{Case, Check, Found};
use super::super::verdict::Severity::Fail;
use super::launch::ended;
use crate::probe::{EndedBy, Excess, Exit, Launch, Phase, Taken, What};
use crate::words::printable;

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
    Check {
        code: "limit.cpu",
        severity: Fail,
        about: "The server and its descendants together used more CPU time in one launch than `limits: {cpu: …}` allows it, and were killed; or the server was ended by SIGXCPU, over a limit that it was started with (`ulimit -t`).",
        mend: "Look for a loop that waits without sleeping, or for work at the start that could be done once; or allow it more.",
        run: |case| too_much(case, Taken::Cpu),
    },
    Check {
        code: "limit.file_size",
        severity: Fail,
        about: "The server ended because a file would have become larger than `limits: {file_size: …}` allows it, or than a limit that it was started with (`ulimit -f`): by SIGXFSZ, or with the error EFBIG, which programs get that ignore that signal, Python and Node among them.",
        mend: "Have it write less (a log, a cache), or allow it more.",
        run: |case| too_much(case, Taken::FileSize),
    },
];

/// On whichever launch it was: each of them is one that clients make.
fn too_much(case: Case<'_>, of: Taken) -> Option<Found> {
    let killed = case.seen_anywhere(|what| match what {
        What::TookTooMuch(excess) if excess.of == of => Some(words(*excess)),
        _ => None,
    });
    match killed {
        Some(mut found) => {
            found.evidence.push_str("; the server was killed for it");
            Some(found)
        }
        None => case.observation.launches.iter().find_map(|launch| ended_over(launch, of)),
    }
}

/// A launch that the kernel ended over its limit.
fn ended_over(launch: &Launch, of: Taken) -> Option<Found> {
    let exits = launch.seen.iter().filter_map(|seen| match seen.what {
        What::Exited { exit, .. } => Some((seen.at, seen.phase, exit)),
        _ => None,
    });
    let end = launch.end.as_ref().filter(|end| end.by == EndedBy::Eof).and_then(|end| Some((end.at, Phase::Shutdown, end.exit?)));
    let (at, phase, exit) = exits.chain(end).find(|(_, phase, exit)| over(launch, *phase, *exit) == Some(of))?;
    let what = if of == Taken::Cpu { "the server used more CPU time than it may" } else { "the server wrote more to a file than it may" };
    let said = launch.stderr_tail.lines().rfind(|line| of == Taken::FileSize && says_too_large(line));
    let said = said.map(|line| format!("; stderr: {}", printable(line, 200))).unwrap_or_default();
    Some(Found::once(at, phase, what, format!("it {}{said}", ended(exit))))
}

/// Over which limit a process ended that ended like this.
pub(super) fn over(launch: &Launch, phase: Phase, exit: Exit) -> Option<Taken> {
    match exit {
        // A shell whose last command was ended by a signal exits with that and 128.
        Exit::Signal(24) | Exit::Code(152) => Some(Taken::Cpu),
        Exit::Signal(25) | Exit::Code(153) => Some(Taken::FileSize),
        Exit::Code(1..) if phase != Phase::Shutdown && says_too_large(&launch.stderr_tail) => Some(Taken::FileSize),
        Exit::Code(_) | Exit::Signal(_) => None,
    }
}

/// Whether a server says EFBIG of a file, as C, Python, Node, Go or Rust would.
fn says_too_large(stderr: &str) -> bool {
    let stderr = stderr.to_ascii_lowercase();
    ["efbig", "errno 27]", "os error 27)", ": file too large"].iter().any(|words| stderr.contains(words))
}

fn words(Excess { of, figure, limit, processes }: Excess) -> String {
    let them = if processes == 1 { "the server".to_owned() } else { format!("the {processes} processes of the server") };
    match of {
        Taken::Memory => format!("{them} had {} resident, with a limit of {}", mebibytes(figure), mebibytes(limit)),
        Taken::Processes => format!("the server had {figure} processes or more, with a limit of {limit}"),
        Taken::Cpu => format!("{them} had used {} of CPU time, with a limit of {}", seconds(figure), seconds(limit)),
        Taken::FileSize => format!("{them} wrote {} to a file, with a limit of {}", mebibytes(figure), mebibytes(limit)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people, to a tenth")]
fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[expect(clippy::cast_precision_loss, reason = "for people, to a hundredth")]
fn seconds(milliseconds: u64) -> String {
    format!("{:.2} s", milliseconds as f64 / 1e3)
}
