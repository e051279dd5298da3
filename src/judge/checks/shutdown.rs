//! How the server ends, and what it leaves.

use super::super::case::{Case, Check, Found};
use super::super::verdict::Severity::{Info, Warn};
use super::container::stubborn_hint;
use super::launch::{ended, signal_name};
use super::limit;
use crate::probe::{End, EndedBy, Exit, LeftContainer, Leftover, Phase, What};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "shutdown.needed_term",
        severity: Warn,
        about: "The server did not end at the end of its input; SIGTERM ended it. Clients that only close its stdin leave it running: orphans pile up.",
        mend: "End when stdin ends. In Node: process.stdin.on('end', …), and no timer that keeps the loop alive; in Python: leave the loop at an empty read.",
        run: |case| needed(case, EndedBy::Sigterm, "the server did not end at the end of its input, and was ended by SIGTERM"),
    },
    Check {
        code: "shutdown.needed_kill",
        severity: Warn,
        about: "Neither the end of its input nor SIGTERM ended the server; SIGKILL did. What it had not saved is lost.",
        mend: "End when stdin ends, and let SIGTERM's handler exit.",
        run: |case| needed(case, EndedBy::Sigkill, "neither the end of its input nor SIGTERM ended the server, and it was killed"),
    },
    Check {
        code: "shutdown.exit_nonzero",
        severity: Info,
        about: "The server ended at the end of its input, with a status other than 0.",
        mend: "Nothing has to be done; an end that was asked for is no error.",
        run: |case| {
            exit_at_eof(case, |exit| match exit {
                Exit::Code(code) if code != 0 => Some(format!("the server {} at the end of its input", ended(exit))),
                Exit::Code(_) | Exit::Signal(_) => None,
            })
        },
    },
    Check {
        code: "shutdown.crashed",
        severity: Info,
        about: "At the end of its input the server was ended by a signal that we did not send.",
        mend: "Look for a crash in its clean-up code.",
        run: |case| {
            exit_at_eof(case, |exit| match exit {
                // Told as what it is.
                Exit::Signal(_) if limit::over(case.launch, Phase::Shutdown, exit).is_some() => None,
                Exit::Signal(signal) => {
                    Some(format!("at the end of its input the server was ended by {}, which we did not send", signal_name(signal)))
                }
                Exit::Code(_) => None,
            })
        },
    },
    Check {
        code: "shutdown.left_group",
        severity: Warn,
        about: "Processes that the server had started, in its process group, outlived it. They were ended, unless `leftovers: report` has them left alone.",
        mend: "End helpers before exiting; in a shell wrapper use exec for the last command.",
        run: |case| left(case, |end| &end.swept.in_group, "in its process group"),
    },
    Check {
        code: "shutdown.left_escaped",
        severity: Warn,
        about: "Processes that the server had started, and that had left its process group (setsid, a double fork), outlived it. They were ended, unless `leftovers: report` has them left alone. A client's signal to the group would have missed them.",
        mend: "End helpers before exiting; do not detach them.",
        run: |case| left(case, |end| &end.swept.escaped, "outside of its process group"),
    },
    Check {
        code: "shutdown.left_container",
        severity: Warn,
        about: "A container that the probe's `docker run` or `podman run` started was still there when that command had ended, running or stopped. It was removed, as far as it could be. Clients leave one behind for each session.",
        mend: "Give --rm, and -i without -t and -d; let the server end when its input ends, and let SIGTERM's handler exit (a container's first process ignores SIGTERM otherwise; --init helps).",
        run: left_container,
    },
    Check {
        code: "shutdown.pipe_held",
        severity: Warn,
        about: "A process that the server had started held its stdout open after the server's exit. A client that waits for the end of stdout waits for that process.",
        mend: "Do not hand stdout on to helpers.",
        run: |case| {
            let end = case.launch.end.as_ref().filter(|end| end.pipe_held)?;
            let names = names(end.swept.in_group.iter().chain(&end.swept.escaped));
            Some(Found::once(end.at, Phase::Shutdown, "a process that the server left behind held its stdout open", names))
        },
    },
    Check {
        code: "shutdown.reply_after_eof",
        severity: Warn,
        about: "A reply that had been waited for came only when stdin was closed: the server's output is buffered and not flushed.",
        mend: "Flush stdout after each message: print(…, flush=True), PYTHONUNBUFFERED=1, setvbuf.",
        run: |case| {
            case.seen(|what| match what {
                What::ReplyAfterEof { asked } => Some(format!("the reply to `{}` came only when its input was closed", asked.method())),
                _ => None,
            })
        },
    },
];

fn needed(case: Case<'_>, by: EndedBy, message: &str) -> Option<Found> {
    let end = case.launch.end.as_ref().filter(|end| end.by == by)?;
    // A server that was left to block on its output could not see the end of its input, and one that took
    // too much was not asked to end.
    if case.launch.seen.iter().any(|s| matches!(s.what, What::OutputLimit { .. } | What::TooManyLines { .. } | What::TookTooMuch(_))) {
        return None;
    }
    let took = end.closed.map_or(0.0, |closed| (end.at - closed).as_secs_f64());
    let exit = end.exit.map_or_else(|| "it has not ended even so".to_owned(), |exit| format!("it {}", ended(exit)));
    let cpu = end.usage.cpu.as_secs_f64();
    let mut evidence = format!("{took:.1} s after the end of its input {exit}; it used {cpu:.2} s of CPU time in all");
    if let Some(hint) = stubborn_hint(case, by) {
        evidence.push_str(&format!("; {hint}"));
    }
    Some(Found::once(end.at, Phase::Shutdown, message, evidence))
}

fn exit_at_eof(case: Case<'_>, words: impl Fn(Exit) -> Option<String>) -> Option<Found> {
    let end = case.launch.end.as_ref().filter(|end| end.by == EndedBy::Eof)?;
    let message = words(end.exit?)?;
    Some(Found::once(end.at, Phase::Shutdown, message, format!("it {}", ended(end.exit?))))
}

/// On whichever launch it was: each of them is one that clients make.
fn left_container(case: Case<'_>) -> Option<Found> {
    let ends: Vec<&End> = case.observation.launches.iter().filter_map(|launch| launch.end.as_ref()).collect();
    let at = ends.iter().find(|end| !end.swept.containers.is_empty())?.at;
    let left: Vec<&LeftContainer> = ends.iter().flat_map(|end| &end.swept.containers).collect();
    let fate = if left.iter().all(|container| container.removed) { "was removed" } else { "could not be removed" };
    let words = |container: &&LeftContainer| {
        let id: String = container.id.chars().take(12).collect();
        let not = if container.removed { "" } else { ", not removed" };
        format!("{} ({id}): {}{not}", container.name, container.state)
    };
    let evidence = left.iter().map(words).collect::<Vec<_>>().join("; ");
    Some(Found::once(at, Phase::Shutdown, format!("a container outlived the command that ran it, and {fate}"), evidence))
}

fn left(case: Case<'_>, which: impl Fn(&End) -> &Vec<Leftover>, where_: &str) -> Option<Found> {
    let end = case.launch.end.as_ref()?;
    let left = which(end);
    if left.is_empty() {
        return None;
    }
    let processes = if left.len() == 1 { "process" } else { "processes" };
    let mut evidence = names(left.iter());
    if end.swept.spared {
        evidence.push_str("; left alone");
    }
    if !end.swept.survivors.is_empty() {
        evidence.push_str(&format!("; could not be ended: {}", names(end.swept.survivors.iter())));
    }
    Some(Found::once(end.at, Phase::Shutdown, format!("{} {processes} {where_} outlived the server", left.len()), evidence))
}

fn names<'l>(left: impl Iterator<Item = &'l Leftover>) -> String {
    let mut words: Vec<String> = left.map(|l| format!("{} (pid {})", l.name, l.pid)).collect();
    let more = words.len().saturating_sub(8);
    words.truncate(8);
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    words.join(", ")
}
