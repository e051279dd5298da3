//! The answer to `/probe?target=NAME`: one server's series, and what came of asking. As exporters for
//! many targets answer, so that their dashboards and alerts work.

use std::time::Duration;

use super::exposition::{Exposition, Format, Kind};
use super::human;
use super::metrics::METRICS;
use super::transcript;
use crate::ledger::ServerState;
use crate::probe::Recording;
use crate::words::{At, Moment};

/// The longest transcript, in bytes.
const MAX_TRANSCRIPT: usize = 512 << 10;

/// What came of asking for a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// A probe ended.
    Probed,
    /// The last one ended so little ago that its result is answered again.
    Again,
    /// None ended within the time that there was; it goes on.
    Late {
        /// That time.
        waited: Duration,
    },
    /// None is launched until a person resumes it.
    Held,
}

impl Came {
    const WORDS: [&str; 4] = ["probed", "again", "late", "held"];

    const fn word(self) -> &'static str {
        match self {
            Came::Probed => "probed",
            Came::Again => "again",
            Came::Late { .. } => "late",
            Came::Held => "held",
        }
    }
}

/// A metric that only this answer has.
pub struct OnDemandMetric {
    /// Its name, as its samples have it.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
    write: fn(&ServerState, Came, &mut Exposition),
}

/// Every metric that only this answer has. The first two are those of blackbox_exporter.
#[rustfmt::skip]
pub const ON_DEMAND_METRICS: &[OnDemandMetric] = &[
    OnDemandMetric { name: "probe_success", kind: Kind::Gauge, labels: &[],
        help: "Whether the probe ended with pass or warn (1); or it did not, or not in time, or probing is held (0).",
        write: |server, came, out| {
            let is_up = server.report().is_some_and(|report| report.verdict.is_up());
            let success = match came {
                Came::Probed | Came::Again => is_up,
                Came::Late { .. } | Came::Held => false,
            };
            out.sample("probe_success", [], success);
        } },
    OnDemandMetric { name: "probe_duration_seconds", kind: Kind::Gauge, labels: &[],
        help: "How long the probe took; where none ended in time, how long it was waited for.",
        write: |server, came, out| {
            let took = server.report().map(|report| report.timings.total_ms / 1e3);
            let seconds = match came {
                Came::Probed | Came::Again => took.unwrap_or_default(),
                Came::Late { waited } => waited.as_secs_f64(),
                Came::Held => 0.0,
            };
            out.sample("probe_duration_seconds", [], seconds);
        } },
    OnDemandMetric { name: "stdiowatch_on_demand", kind: Kind::Gauge, labels: &["answer"],
        help: "What the answer is made from (1): a probe that just ended (probed), one that ended a moment ago (again), \
               what was known before, since none ended in time (late) or probing is held (held).",
        write: |_, came, out| for word in Came::WORDS { out.sample("stdiowatch_on_demand", [("answer", word)], came.word() == word) } },
];

/// The series of `server`, and what came of asking for a probe.
#[must_use]
pub fn series(server: &ServerState, came: Came, now: Moment, format: Format) -> String {
    let mut out = Exposition::new(format, 32 << 10);
    for metric in METRICS {
        out.family(metric.name, metric.kind, metric.help);
        metric.write(server, now, &mut out);
    }
    for metric in ON_DEMAND_METRICS {
        out.family(metric.name, metric.kind, metric.help);
        (metric.write)(server, came, &mut out);
    }
    out.end();
    out.into_text()
}

/// The same for a person who wants to know why: the transcript, the report, the series.
#[must_use]
pub fn debug(server: &ServerState, came: Came, recording: Option<&Recording>, now: Moment) -> String {
    let transcript = recording.map_or_else(|| format!("none was recorded: {}\n", came.word()), text);
    let report = server.last.as_ref().map(|(_, report)| human::reports(std::slice::from_ref(report.as_ref()), human::Look::default()));
    let report = report.unwrap_or_else(|| "not probed yet\n".to_owned());
    let series = series(server, came, now, Format::Text);
    format!("Transcript of the probe:\n\n{transcript}\nReport:\n\n{report}\nMetrics that would have been returned:\n\n{series}")
}

/// A recording, line by line.
fn text(recording: &Recording) -> String {
    let mut out = String::new();
    for (at, happening) in recording.happenings() {
        if out.len() > MAX_TRANSCRIPT {
            out.push_str("… and more\n");
            break;
        }
        if let Some(line) = transcript::line(None, At::after(at), happening) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}
