//! Live copies of the server that somebody else started: what a second copy met, and what it did.

use super::super::case::{Case, Check, Found};
use super::super::verdict::Severity::Unknown;
use crate::probe::{Asked, Exit, Limit, Phase, Seen, Timeout, What};
use crate::words::{At, printable};

/// The code of a finding after which a server is not probed any more until a person resumes it.
pub const PEER_HARMED: &str = "peer.harmed";

/// sysexits.h: "a temporary failure", by which servers say that another copy holds the lock.
const EX_TEMPFAIL: i32 = 75;

/// What is said by a program that did not get what it wanted for itself alone, in lower case; docker says of
/// a name (with status 125) that it "is already in use by container". Looked for only where a copy is live.
const LOCK_WORDS: [&str; 22] = [
    "eaddrinuse",
    "address already in use",
    "address in use",
    "already locked",
    "already running",
    "already in use",
    "already started",
    "another instance",
    "another process",
    "database is locked",
    "database is already open",
    "resource temporarily unavailable",
    "conflicting lock",
    "could not acquire lock",
    "could not set lock",
    "failed to acquire lock",
    "unable to acquire lock",
    "failed to lock",
    "lock is held",
    "is in use",
    "singletonlock",
    "eagain",
];

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "peer.second_instance",
        severity: Unknown,
        about: "A copy of the server that somebody else started is live, and the probe's copy stopped as a second one does: over a lock or a port, without a word, or by waiting. Nothing can be said about the server; the live copy may be well.",
        mend: "Watch it while no client runs it, give the probe's copy a port, lock or data directory of its own (its environment, its arguments), or let the server start more than once: bind no fixed port, hold no exclusive lock.",
        run: second_instance,
    },
    Check {
        code: PEER_HARMED,
        severity: Unknown,
        about: "A copy of the server that lived before the probe was dead at its end. Servers exist that end the copy they find when they start (a pid file, a lock that is taken over): for them every probe is harm. So `serve` probes this server no more until a person resumes it.",
        mend: "Have the server leave other copies alone, or give the probe's copy a pid file or data directory of its own, or do not watch it. If the copy's end was a coincidence (its client was closed), resume: POST /-/resume/NAME where `serve --enable-actions` allows it, or see docs/safety.md; a restart does not.",
        run: harmed,
    },
];

fn harmed(case: Case<'_>) -> Option<Found> {
    let died = &case.observation.peers.died;
    if died.is_empty() {
        return None;
    }
    let message = match died.len() {
        1 => format!("a live copy ({}) died while the probe's copy ran", pids(died)),
        n => format!("{n} live copies ({}) died while the probe's copy ran", pids(died)),
    };
    let at = At::after(case.observation.total);
    let evidence = format!("{} lived before the launch, and {} dead at {at}", pids(died), if died.len() == 1 { "was" } else { "were" });
    Some(Found::once(at, Phase::Shutdown, message, evidence))
}

fn second_instance(case: Case<'_>) -> Option<Found> {
    let peers = &case.observation.peers;
    // Where a second copy has started before, this one is broken.
    if peers.live.is_empty() || peers.coexists {
        return None;
    }
    let (seen, sign) = case.launch.seen.iter().find_map(|seen| Some((seen, sign(case, seen)?)))?;
    let message = format!("a copy of the server is live ({}), and this one stopped as a second copy does", pids(&peers.live));
    let evidence = format!("live: {}; at {}: {sign}", pids(&peers.live), seen.at);
    Some(Found::once(seen.at, seen.phase, message, evidence))
}

/// What shows that something which stopped the server is the doing of another copy.
fn sign(case: Case<'_>, seen: &Seen) -> Option<String> {
    let silent = case.launch.stderr_tail.trim().is_empty();
    match &seen.what {
        What::Exited { exit, .. } => match (lock_words(case), *exit) {
            (Some(words), _) => Some(words),
            (None, Exit::Code(EX_TEMPFAIL)) => Some(format!("exit status {EX_TEMPFAIL}, a temporary failure")),
            (None, Exit::Code(code)) if silent && is_alone(case, seen) => Some(format!("it exited with status {code} and without a word")),
            (None, _) => None,
        },
        What::Timeout(Timeout {
            asked: Asked::Discover | Asked::Initialize, limit: Limit::Phase | Limit::Total, lines: 0, unfinished: 0, ..
        }) => {
            let waits = is_alone(case, seen).then(|| "it wrote nothing to stdout, as one that waits for a lock".to_owned());
            lock_words(case).or(waits)
        }
        What::Refused { message, .. } => words_in(message.as_str()).map(|word| format!("it answered \"{word}\"")).or_else(|| lock_words(case)),
        What::Timeout(_) | What::StdoutClosed { .. } | What::StdinClosed { .. } => lock_words(case),
        _ => None,
    }
}

/// Nothing else was noticed on this launch that could explain it.
fn is_alone(case: Case<'_>, seen: &Seen) -> bool {
    case.launch.seen.iter().all(|other| std::ptr::eq(other, seen) || other.excerpt.is_empty())
}

/// Words for a lock or a port that another one holds, on stderr or on stdout among what is no message.
fn lock_words(case: Case<'_>) -> Option<String> {
    let stderr = &case.launch.stderr_tail;
    if let Some(line) = stderr.lines().rev().find(|line| words_in(line).is_some()) {
        return Some(format!("its stderr says: {}", printable(line.trim(), 200)));
    }
    let noise = case.launch.seen.iter().filter(|seen| matches!(seen.what, What::Line(_)));
    let said = noise.map(|seen| seen.excerpt.as_str()).find(|text| words_in(text).is_some())?;
    Some(format!("its stdout says: {said}"))
}

fn words_in(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    LOCK_WORDS.into_iter().find(|words| text.contains(words))
}

fn pids(pids: &[u32]) -> String {
    let shown: Vec<String> = pids.iter().take(5).map(u32::to_string).collect();
    let more = if pids.len() > shown.len() { ", …" } else { "" };
    format!("pid {}{more}", shown.join(", "))
}
