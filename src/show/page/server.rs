//! `/servers/NAME`: all about one server.

use askama::Template;

use super::overview::Schema;
use super::plot::{PLACES, Plot};
use super::strip::{Ends, History, bar};
use super::words::{Look, Stamp, lasting, look, segment, took};
use super::{Frame, View, changes, told};
use crate::judge::{Finding, Report, Severity, Verdict, check};
use crate::ledger::ServerState;
use crate::probe::Phase;
use crate::show::state::sentence;
use crate::show::told::{by_weight, span};
use crate::show::transcript;
use crate::words::{Moment, printable, printable_lines};

/// Probes that are listed.
const LISTED: usize = 80;
/// The longest message of a finding, and the longest evidence, in characters.
const MAX_MESSAGE: usize = 600;
const MAX_EVIDENCE: usize = 2000;

#[derive(Template)]
#[template(path = "server.html")]
pub(super) struct ServerPage {
    frame: Frame,
    name: String,
    link: String,
    look: Look,
    lasting: Option<String>,
    sentence: Option<String>,
    /// What is known from before this process began, said as such.
    last_success: Option<Stamp>,
    last: Option<Last>,
    failure: Option<Failure>,
    /// What shows what is wrong is not shown to whoever asks.
    withheld: bool,
    transcript: Option<Transcript>,
    places: usize,
    plot: Option<Plot>,
    history: Option<History>,
    entries: Vec<Line>,
    ends: Option<Ends>,
    schema: Option<Schema>,
    drift: Option<changes::Changes>,
    private: Option<Private>,
}

/// The last probe.
struct Last {
    at: Stamp,
    ago: String,
    headline: &'static str,
    facts: Vec<(&'static str, String)>,
    findings: Vec<Told>,
    phases: Vec<Bar>,
    total: String,
}

/// A finding, and what to do about it.
struct Told {
    severity: Severity,
    class: &'static str,
    code: &'static str,
    message: String,
    phase: &'static str,
    times: Option<u64>,
    /// In pieces, each with whether it is code.
    mend: Vec<(bool, &'static str)>,
    evidence: Option<String>,
}

/// A phase in the waterfall, in hundredths of what is shown.
struct Bar {
    what: &'static str,
    took: String,
    x: String,
    width: String,
    limit: Option<String>,
    slow: bool,
    /// It was waited for in vain, if not: the bar is what is left of the probe's time.
    replied: bool,
}

/// The last failure, where the last probe was none.
struct Failure {
    at: Stamp,
    ago: String,
    findings: Vec<Told>,
}

/// How the last probe went that was not well.
struct Transcript {
    at: Stamp,
    ago: String,
    verdict: &'static str,
    lines: Vec<String>,
}

/// A probe in the history.
struct Line {
    at: Stamp,
    class: &'static str,
    verdict: &'static str,
    why: &'static str,
    startup: Option<String>,
}

/// What is for the owner alone.
struct Private {
    stderr: String,
    given: Vec<(&'static str, String)>,
}

impl ServerPage {
    pub(super) fn of(view: View<'_>, server: &ServerState) -> ServerPage {
        let now = view.now;
        let look = look(server.health(now));
        let last = server.last.as_ref().map(|(at, report)| last(server, *at, report, view));
        let before = |at: &Moment| server.last.as_ref().is_none_or(|(last, _)| last != at);
        let failure = server.last_failure.as_ref().filter(|(at, _)| before(at)).map(|(at, report)| Failure {
            at: (*at).into(),
            ago: span(now.since(*at)),
            findings: findings(report, view.show_private, Severity::Warn),
        });
        ServerPage {
            frame: Frame::new(&format!("{}: {}", look.word, server.name), "../", view),
            name: server.name.to_string(),
            link: segment(server.name.as_str()),
            look,
            lasting: lasting(server, now),
            sentence: sentence(server, now),
            last_success: server.succeeded().filter(|_| !look.word.starts_with("up")).map(Stamp::from),
            last,
            withheld: !view.show_private && (failure.is_some() || server.report().is_some_and(|report| report.verdict != Verdict::Pass)),
            failure,
            transcript: server.trouble.as_ref().filter(|_| view.show_private).map(|(at, verdict, reel)| Transcript {
                at: (*at).into(),
                ago: span(now.since(*at)),
                verdict: verdict.as_str(),
                lines: transcript::of_reel(reel).lines().map(str::to_owned).collect(),
            }),
            places: PLACES * 10,
            plot: Plot::of(server),
            history: History::of(server),
            entries: lines(server),
            ends: Ends::of(server),
            schema: Schema::of(server, now),
            drift: server.report().and_then(|report| changes::Changes::of(&report.drift, view.show_private)),
            private: server.report().filter(|_| view.show_private).map(private),
        }
    }
}

fn last(server: &ServerState, at: Moment, report: &Report, view: View<'_>) -> Last {
    Last {
        at: at.into(),
        ago: span(view.now.since(at)),
        headline: crate::show::human::headline(report.verdict),
        facts: told::facts(report, view.show_private),
        findings: findings(report, view.show_private, Severity::Info),
        phases: waterfall(server, report),
        total: took(report.timings.total_ms),
    }
}

/// The findings of this weight and more, the worst first.
fn findings(report: &Report, show_private: bool, least: Severity) -> Vec<Told> {
    by_weight(report).into_iter().filter(|f| f.severity >= least).map(|finding| told_of(finding, show_private)).collect()
}

fn told_of(finding: &Finding, show_private: bool) -> Told {
    Told {
        severity: finding.severity,
        class: bar(Verdict::of(finding.severity)).0,
        code: finding.code,
        message: crate::show::human::capitalised(&printable(&finding.message, MAX_MESSAGE)),
        phase: finding.phase.as_str(),
        times: (finding.times > 1).then_some(finding.times),
        mend: check(finding.code).map(|check| pieces(check.mend)).unwrap_or_default(),
        evidence: show_private.then(|| printable(&finding.evidence, MAX_EVIDENCE)).filter(|text| !text.is_empty()),
    }
}

/// What stands between backticks is code.
fn pieces(text: &'static str) -> Vec<(bool, &'static str)> {
    text.split('`').enumerate().map(|(n, piece)| (n % 2 == 1, piece)).filter(|(_, piece)| !piece.is_empty()).collect()
}

/// The phases of the judged launch, one after the other.
fn waterfall(server: &ServerState, report: &Report) -> Vec<Bar> {
    let timings = &report.timings;
    let spent: f64 = [timings.spawn_ms, timings.list_ms, timings.call_ms, timings.shutdown_ms].into_iter().flatten().sum();
    let waited = timings.spawn_ms.map(|_| timings.total_ms - spent);
    let replied = timings.startup_ms.is_some();
    let handshake = timings.startup_ms.map(|ms| ms - timings.spawn_ms.unwrap_or_default()).or(waited);
    let phases = [
        (Phase::Spawn, "spawn", "Launch", timings.spawn_ms),
        (Phase::Handshake, "startup", "Handshake", handshake),
        (Phase::List, "list", "Lists", timings.list_ms),
        (Phase::Call, "call", "Call", timings.call_ms),
        (Phase::Shutdown, "shutdown", "Shutdown", timings.shutdown_ms),
    ];
    let all: f64 = phases.iter().filter_map(|(.., ms)| *ms).map(|ms| ms.max(0.0)).sum::<f64>().max(0.001);
    let mut x = 0.0_f64;
    let bars = phases.into_iter().filter_map(|(phase, objective, what, ms)| {
        let ms = ms?.max(0.0);
        let width = ms / all * 100.0;
        let objective = server.terms.objectives.get(objective).map(|d| d.as_secs_f64() * 1e3);
        let timeout = server.terms.timeouts.iter().find(|(p, _)| *p == phase).map(|(_, d)| d.as_secs_f64() * 1e3);
        let limit = match (objective, timeout) {
            (Some(objective), Some(timeout)) => Some(format!("should take {}, may {}", took(objective), took(timeout))),
            (Some(objective), None) => Some(format!("should take {}", took(objective))),
            (None, Some(timeout)) => Some(format!("may take {}", took(timeout))),
            (None, None) => None,
        };
        let bar = Bar {
            what,
            took: took(ms),
            x: format!("{:.2}", x.min(99.5)),
            width: format!("{:.2}", width.max(0.5)),
            limit,
            replied: replied || phase != Phase::Handshake,
            slow: (replied || phase != Phase::Handshake) && objective.is_some_and(|objective| ms > objective),
        };
        x += width;
        Some(bar)
    });
    bars.collect()
}

fn lines(server: &ServerState) -> Vec<Line> {
    let entries: Vec<_> = server.history.entries().collect();
    let line = |entry: &crate::ledger::Entry| Line {
        at: entry.at.into(),
        class: bar(entry.verdict).0,
        verdict: entry.verdict.as_str(),
        why: entry.code.unwrap_or_default(),
        startup: entry.startup_ms.map(took),
    };
    entries.iter().rev().take(LISTED).map(line).collect()
}

fn private(report: &Report) -> Private {
    let mut given = Vec::new();
    if let Some(what) = &report.given {
        given.push(("Environment", format!("{}: {}", what.env_mode, printable(&what.env.join(" "), MAX_EVIDENCE))));
        given.push(("Directory", what.cwd.as_deref().map_or_else(|| "that of stdiowatch".to_owned(), |cwd| printable(cwd, MAX_MESSAGE))));
        given.push(("Stdin and stdout", what.stdio.clone()));
    }
    Private { stderr: printable_lines(&report.stderr_tail), given }
}
