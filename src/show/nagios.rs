//! Reports as a monitoring plugin prints them, for Nagios, Icinga and their kin (Monitoring Plugins guidelines):
//! one line for the state, with performance data, then more lines for whoever looks closer.

use std::time::Duration;

use super::told::counted;
use super::{drift, told};
use crate::judge::{Report, Rules, Verdict};
use crate::ledger::Unwatched;
use crate::probe::{Fetches, Plan};
use crate::words::printable;

/// Nagios 4 reads 8 KiB and cuts the rest; what is measured stands first.
const MAX_OUTPUT: usize = 8 << 10;
/// Of which the first line may take so much.
const MAX_FIRST: usize = 6 << 10;
/// The longest line of text, in characters.
const MAX_LINE: usize = 500;

/// A report, and the limits that the probe was made under.
#[derive(Clone, Copy, Debug)]
pub struct Probed<'r> {
    /// What the probe came to.
    pub report: &'r Report,
    /// How it was made.
    pub plan: &'r Plan,
    /// How it was judged.
    pub rules: &'r Rules,
}

/// A plugin's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All is well.
    Ok,
    /// Something should be mended.
    Warning,
    /// A server fails.
    Critical,
    /// Nothing can be said.
    Unknown,
}

impl State {
    /// Of all servers together: the worst verdict's; an entry that `is_broken` is as bad as a failure. With `strict`,
    /// a warning is critical, as it is a failure in `check`'s exit status.
    #[must_use]
    pub fn of<'r>(reports: impl IntoIterator<Item = &'r Report>, is_broken: bool, strict: bool) -> State {
        if is_broken {
            return State::Critical;
        }
        match reports.into_iter().map(|r| r.verdict).max() {
            Some(Verdict::Pass) => State::Ok,
            Some(Verdict::Warn) if strict => State::Critical,
            Some(Verdict::Warn) => State::Warning,
            Some(Verdict::Fail) => State::Critical,
            Some(Verdict::Unknown) | None => State::Unknown,
        }
    }

    /// The plugin's exit status.
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        match self {
            State::Ok => 0,
            State::Warning => 1,
            State::Critical => 2,
            State::Unknown => 3,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            State::Ok => "OK",
            State::Warning => "WARNING",
            State::Critical => "CRITICAL",
            State::Unknown => "UNKNOWN",
        }
    }
}

/// What a plugin says that could not be called: a usage error is UNKNOWN, never the server's fault.
#[must_use]
pub fn unusable(error: &str) -> String {
    format!("STDIOWATCH {} - {}\n", State::Unknown.as_str(), text(error))
}

/// The plugin's output.
#[must_use]
pub fn output(probed: &[Probed<'_>], unwatched: &[Unwatched], strict: bool) -> String {
    let broken: Vec<&Unwatched> = unwatched.iter().filter(|entry| entry.broken).collect();
    let state = State::of(probed.iter().map(|p| p.report), !broken.is_empty(), strict);
    let first = broken.first().map(|entry| format!("{} broken in the configuration, {}; ", counted(broken.len(), "entries"), told::unwatched(entry)));
    let mut out = format!("STDIOWATCH {} - {}{} |", state.as_str(), text(&first.unwrap_or_default()), headline(probed));
    for measured in measured(probed) {
        if out.len() + measured.len() + 2 > MAX_FIRST {
            break;
        }
        out.push(' ');
        out.push_str(&measured);
    }
    out.push('\n');
    let more = "…\n";
    let broken = broken.iter().map(|entry| text(&format!("BROKEN {}: {}", entry.name, told::unwatched(entry))));
    for line in broken.chain(probed.iter().flat_map(|p| long(p.report))) {
        if out.len() + line.len() + more.len() + 1 > MAX_OUTPUT {
            out.push_str(more);
            break;
        }
        out.push_str(&line);
        out.push('\n');
    }
    out
}

fn headline(probed: &[Probed<'_>]) -> String {
    // The first of the worst.
    let worst = probed.iter().map(|p| p.report).rev().max_by_key(|report| report.verdict);
    let one = worst.map(|report| {
        let said = told::why(report).unwrap_or_else(|| told::briefly(report));
        text(&format!("{}: {said}", report.server))
    });
    match (probed.len(), one, worst.map(|r| r.verdict)) {
        (0, ..) | (_, None, _) => "no server was probed".to_owned(),
        (1, Some(one), _) => one,
        (_, Some(_), Some(Verdict::Pass)) => counts(probed),
        (_, Some(one), _) => format!("{}; {one}", counts(probed)),
    }
}

fn counts(probed: &[Probed<'_>]) -> String {
    told::summary(probed.iter().map(|p| p.report))
}

/// What more there is to say: each server's findings, what changed, the end of stderr.
fn long(report: &Report) -> Vec<String> {
    let mut lines = vec![format!("{} {}: {}", report.verdict.as_str().to_uppercase(), report.server, told::seen(report))];
    for finding in told::problems(report) {
        lines.push(format!("{} {}: {}", finding.severity, finding.code, told::finding(finding)));
    }
    lines.extend(drift::lines(&report.drift));
    if !report.verdict.is_up() {
        let stderr = told::stderr_lines(report);
        lines.extend(stderr[stderr.len().saturating_sub(5)..].iter().map(|line| format!("stderr: {line}")));
    }
    lines.iter().map(|line| text(line)).collect()
}

/// The performance data: everything for one server, the start-up of each for several.
fn measured(probed: &[Probed<'_>]) -> Vec<String> {
    match probed {
        [one] => everything(*one),
        several => {
            let count = |verdict| several.iter().filter(|p| p.report.verdict == verdict).count();
            let counts = Verdict::ALL.map(|verdict| format!("{}={};;;0;{}", label(verdict.as_str()), count(verdict), several.len()));
            let startups = several.iter().filter_map(|p| startup(*p, &format!("{} startup", p.report.server)));
            counts.into_iter().chain(startups).collect()
        }
    }
}

fn everything(probed: Probed<'_>) -> Vec<String> {
    let Probed { report, plan, .. } = probed;
    let timings = &report.timings;
    let objective = |phase| probed.rules.objectives.get(phase).copied();
    // Over the grace after end-of-file a signal is needed, which is a warning.
    let shutdown = objective("shutdown").unwrap_or(plan.times.eof_grace);
    let times = [
        startup(probed, "startup"),
        timings.list_ms.map(|ms| time("list", ms, objective("list"), None)),
        timings.call_ms.map(|ms| time("call", ms, objective("call"), Some(plan.times.request))),
        timings.shutdown_ms.map(|ms| time("shutdown", ms, Some(shutdown), None)),
        Some(time("total", timings.total_ms, None, Some(plan.times.total))),
    ];
    let lists = report.lists.each().into_iter().map(|(list, count)| count.map(|count| format!("{}={count};;;0", label(list.word()))));
    let memory = report.usage.and_then(|u| u.max_rss_bytes).map(|bytes| format!("{}={bytes}B;;;0", label("memory")));
    let cpu = report.usage.map(|u| format!("{}={:.3}s;;;0", label("cpu"), u.cpu_seconds));
    let launches = Some(format!("{}={};;;0", label("launches"), report.spawns));
    times.into_iter().chain(lists).chain([memory, cpu, launches]).flatten().collect()
}

/// The start-up time, which is too slow over its objective and failed over its timeout.
fn startup(probed: Probed<'_>, name: &str) -> Option<String> {
    let times = &probed.plan.times;
    let limit = if probed.plan.fetches == Fetches::Nothing { times.startup } else { times.startup.max(times.cold_start) };
    Some(time(name, probed.report.timings.startup_ms?, probed.rules.objectives.get("startup").copied(), Some(limit)))
}

/// `'NAME'=VALUEs;WARN;CRIT;0`
fn time(name: &str, ms: f64, warn: Option<Duration>, critical: Option<Duration>) -> String {
    let limit = |limit: Option<Duration>| limit.map(|l| l.as_secs_f64().to_string()).unwrap_or_default();
    format!("{}={:.3}s;{};{};0", label(name), ms / 1000.0, limit(warn), limit(critical))
}

/// A label in single quotes: a quote is doubled, `=` cannot stand in one, and `|` begins the data.
fn label(name: &str) -> String {
    format!("'{}'", text(name).replace('\'', "''").replace('=', "_"))
}

/// One line of text, without the character that ends the text, and without tags: web interfaces show some as such.
fn text(text: &str) -> String {
    printable(text, MAX_LINE).replace('|', "¦").replace('<', "‹").replace('>', "›")
}
