//! What the last probes came to, and what ended them, as strips.

use std::fmt::Write as _;

use super::plot::PLACES;
use crate::judge::Verdict;
use crate::ledger::{Entry, ServerState};
use crate::probe::EndedBy;

/// Places between the troubles that are kept for longer and the last probes.
const GAP: usize = 2;

/// One bar for each probe, in its verdict's class: the heights differ as well as the colours.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// How wide it is: 10 for each place.
    pub(super) width: usize,
    /// The runs of each verdict that occurs.
    pub(super) runs: Vec<Runs>,
    /// Where the line is that parts older troubles from the last probes; `None` without any.
    pub(super) parted: Option<usize>,
    /// All of it in one sentence.
    pub(super) told: String,
}

/// Everything of one verdict.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// Its class in the style sheet.
    pub(super) class: &'static str,
    /// The data of a path: one line for each run.
    pub(super) path: String,
    /// How high it is, and so how wide the line; 16 is all of it.
    pub(super) height: u32,
}

impl History {
    /// That of `server`; `None` before its first probe.
    pub(super) fn of(server: &ServerState) -> Option<History> {
        let (troubles, recent) = (server.history.troubles(), server.history.recent());
        let (older, last) = (troubles.len(), recent.len());
        if older + last == 0 {
            return None;
        }
        let offset = if older > 0 { older + GAP } else { 0 };
        let right = offset + PLACES.saturating_sub(last);
        let placed: Vec<(usize, Entry)> = troubles.enumerate().chain(recent.enumerate().map(|(at, e)| (right + at, e))).collect();
        let runs = Verdict::ALL.into_iter().filter_map(|verdict| runs(verdict, &placed)).collect();
        let parted = (older > 0).then_some(older * 10 + GAP * 5);
        Some(History { width: (offset + PLACES) * 10, runs, parted, told: told(server, older, last) })
    }
}

/// The class of a verdict in the style sheet, and how high its bars are.
pub(super) const fn bar(verdict: Verdict) -> (&'static str, u32) {
    match verdict {
        Verdict::Pass => ("up", 6),
        Verdict::Warn => ("warn", 9),
        Verdict::Unknown => ("unknown", 12),
        Verdict::Fail => ("down", 16),
    }
}

fn runs(verdict: Verdict, placed: &[(usize, Entry)]) -> Option<Runs> {
    let (class, height) = bar(verdict);
    let y = 16 - height / 2;
    let mut path = String::new();
    let mut run: Option<(usize, usize)> = None;
    for at in placed.iter().filter(|(_, e)| e.verdict == verdict).map(|(at, _)| *at) {
        match &mut run {
            Some((_, end)) if *end == at => *end += 1,
            run => {
                if let Some((from, to)) = run.replace((at, at + 1)) {
                    let _ = write!(path, "M{} {y}h{}", from * 10, (to - from) * 10);
                }
            }
        }
    }
    let (from, to) = run?;
    let _ = write!(path, "M{} {y}h{}", from * 10, (to - from) * 10);
    Some(Runs { class, path, height })
}

fn told(server: &ServerState, older: usize, last: usize) -> String {
    let count = |verdict| server.history.recent().filter(|e| e.verdict == verdict).count();
    let counts = Verdict::ALL.into_iter().map(|v| (v, count(v))).filter(|(_, n)| *n > 0).map(|(v, n)| format!("{n} {v}"));
    let mut out =
        format!("The last {}: {}", if last == 1 { "probe".to_owned() } else { format!("{last} probes") }, counts.collect::<Vec<_>>().join(", "));
    if older > 0 {
        let _ = write!(out, "; before them {older} {}", if older == 1 { "trouble" } else { "troubles" });
    }
    out
}

/// What it took to end the server, as parts of one bar.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// From left to right.
    pub(super) parts: Vec<Part>,
    /// The same in words.
    pub(super) told: String,
}

/// One part.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Its class in the style sheet.
    pub(super) class: &'static str,
    /// The word for it.
    pub(super) word: &'static str,
    /// How often.
    pub(super) times: u64,
    /// Where it begins, and how wide it is, out of 100.
    pub(super) x: String,
    pub(super) width: String,
}

impl Ends {
    /// Those of `server` since this process watches it; `None` before the first.
    #[expect(clippy::cast_precision_loss, reason = "a share of a bar")]
    pub(super) fn of(server: &ServerState) -> Option<Ends> {
        let all: u64 = server.ended_by.values().sum();
        let mut x = 0.0;
        let mut parts = Vec::new();
        for by in [EndedBy::Eof, EndedBy::Sigterm, EndedBy::Sigkill, EndedBy::Itself] {
            let Some(times) = server.ended_by.get(&by).copied().filter(|n| *n > 0) else { continue };
            let width = times as f64 / all as f64 * 100.0;
            let (class, word) = end(by);
            parts.push(Part { class, word, times, x: format!("{x:.1}"), width: format!("{width:.1}") });
            x += width;
        }
        let told: Vec<String> = parts.iter().map(|part| format!("{} {}", part.times, part.word)).collect();
        (!parts.is_empty()).then(|| Ends { parts, told: told.join(", ") })
    }
}

const fn end(by: EndedBy) -> (&'static str, &'static str) {
    match by {
        EndedBy::Eof => ("eof", "end-of-file"),
        EndedBy::Sigterm => ("term", "SIGTERM"),
        EndedBy::Sigkill => ("kill", "SIGKILL"),
        EndedBy::Itself => ("self", "by itself"),
    }
}
