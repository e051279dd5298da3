//! What there is to measure: one table for what each server has, one for the sidecar. Both formats
//! of `/metrics` are written from them, and the documentation is tested against them.
//!
//! Every label is a closed set and complete from the first scrape on, at 0, so that `rate()` and
//! `increase()` see the first occurrence of anything. That includes `findings_total{code}`: sixty
//! series a server, nearly all of them a constant 0, cost Prometheus next to nothing to store,
//! whereas the first leak or the first garbled line of a week would go unseen without them.
//! What is not known (yet) has no series; there is no NaN.

use std::time::Duration;

use super::exposition::{Exposition, Kind, Label, Value};
use crate::judge::{CHECKS, ChangeClass, Reason, Verdict};
use crate::ledger::{Histogram, ServerState, Skip, Snapshot};
use crate::probe::{EndedBy, Phase};
use crate::words::{Moment, printable};

/// The longest value of a label that a server chose, in characters.
const MAX_LABEL: usize = 128;

/// A metric that every server has.
pub struct Metric {
    /// Its name, as its samples have it.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its labels besides `server`.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
    /// Its series for one server, at a moment.
    pub read: fn(&ServerState, Moment, &mut Samples<'_>),
}

/// A metric of the sidecar itself; it has no label.
pub struct SidecarMetric {
    /// Its name, as its sample has it.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// What it says.
    pub help: &'static str,
    /// Its value.
    pub read: fn(&Snapshot) -> Value,
}

/// Where the series of one metric of one server go.
pub struct Samples<'s> {
    out: &'s mut Exposition,
    metric: &'s Metric,
    server: &'s str,
}

impl Samples<'_> {
    /// The only series.
    fn put(&mut self, value: impl Into<Value>) {
        self.put_with(&[], value);
    }

    /// The series with these values of the metric's own labels.
    fn put_with(&mut self, values: &[&str], value: impl Into<Value>) {
        let own = self.metric.labels.iter().copied().zip(values.iter().copied());
        self.out.sample(self.metric.name, [("server", self.server)].into_iter().chain(own), value);
    }

    /// The only series, if its value is known.
    fn put_known(&mut self, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(value);
        }
    }

    fn put_histogram(&mut self, histogram: &Histogram) {
        let labels: [Label<'_>; 1] = [("server", self.server)];
        self.out.histogram(self.metric.name, labels, histogram.cumulative(), histogram.sum(), histogram.count());
    }
}

impl Metric {
    /// Writes its series for `server`.
    pub fn write(&self, server: &ServerState, now: Moment, out: &mut Exposition) {
        (self.read)(server, now, &mut Samples { out, metric: self, server: server.name.as_str() });
    }
}

use Kind::{Counter, Gauge, Info};

const fn metric(
    name: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    help: &'static str,
    read: fn(&ServerState, Moment, &mut Samples<'_>),
) -> Metric {
    Metric { name, kind, labels, help, read }
}

/// Every metric with the label `server`, in the order they are written.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    metric("stdiowatch_up", Gauge, &[],
        "Whether the server's verdict is pass or warn and not overdue (1), or not (0).",
        |s, now, out| out.put(s.health(now).is_up())),
    metric("stdiowatch_verdict", Gauge, &["verdict"],
        "The server's verdict, after thresholds: 1 for the one it has. Unknown while it is overdue or was never probed.",
        |s, now, out| for v in Verdict::ALL { out.put_with(&[v.as_str()], s.health(now).verdict() == v) }),
    metric("stdiowatch_probes_total", Counter, &[],
        "Probes that ended.",
        |s, _, out| out.put(s.probes)),
    metric("stdiowatch_probe_failures_total", Counter, &["reason"],
        "Probes that failed, by the family of the first finding that made them fail.",
        |s, _, out| for r in Reason::ALL { out.put_with(&[r.as_str()], count(s.failures.get(&r))) }),
    metric("stdiowatch_probe_unknown_total", Counter, &[],
        "Probes that said nothing about the server: the sidecar's own trouble, a busy host, a second copy that could not start.",
        |s, _, out| out.put(s.unknown)),
    metric("stdiowatch_probe_skipped_total", Counter, &["reason"],
        "Probes that were due and did not take place: the one before was still running, or waited for its turn; or probing is held.",
        |s, _, out| for skip in Skip::ALL { out.put_with(&[skip.as_str()], count(s.skipped.get(&skip))) }),
    metric("stdiowatch_probing_held", Gauge, &[],
        "Whether the server is not probed until a person resumes it (1), because a live copy of it died in a probe, or is (0).",
        |s, _, out| out.put(s.held.is_some())),
    metric("stdiowatch_findings_total", Counter, &["code"],
        "Probes in which something was found, by its code (see stdiowatch explain).",
        |s, _, out| for check in CHECKS.iter() { out.put_with(&[check.code], count(s.findings.get(check.code))) }),
    metric("stdiowatch_startup_duration_seconds", Kind::Histogram, &[],
        "From the launch of the server to its first valid reply.",
        |s, _, out| out.put_histogram(&s.startup)),
    metric("stdiowatch_probe_duration_seconds", Kind::Histogram, &[],
        "Whole probes, from the launch to the end of the last process.",
        |s, _, out| out.put_histogram(&s.probe_duration)),
    metric("stdiowatch_phase_duration_seconds", Gauge, &["phase"],
        "How long each phase of the last probe took. A phase that it did not complete is missing.",
        |s, _, out| for phase in Phase::ALL {
            if let Some(seconds) = last_phase(s, phase) { out.put_with(&[phase.as_str()], seconds) }
        }),
    metric("stdiowatch_phase_timeout_seconds", Gauge, &["phase"],
        "How long each phase may take.",
        |s, _, out| for phase in Phase::ALL {
            let timeout = s.terms.timeouts.iter().find(|(of, _)| *of == phase);
            if let Some((_, timeout)) = timeout { out.put_with(&[phase.as_str()], timeout.as_secs_f64()) }
        }),
    metric("stdiowatch_phase_objective_seconds", Gauge, &["phase"],
        "How long what has a configured objective should take: startup is spawn and handshake together.",
        |s, _, out| for (phase, objective) in &s.terms.objectives { out.put_with(&[phase], objective.as_secs_f64()) }),
    metric("stdiowatch_last_probe_timestamp_seconds", Gauge, &[],
        "When the last probe ended, whatever it came to.",
        |s, _, out| out.put_known(s.last.as_ref().map(|(at, _)| at.unix_seconds()))),
    metric("stdiowatch_last_success_timestamp_seconds", Gauge, &[],
        "When a probe last ended with pass or warn.",
        |s, _, out| out.put_known(s.succeeded().map(Moment::unix_seconds))),
    metric("stdiowatch_consecutive_failures", Gauge, &[],
        "Probes in a row that failed.",
        |s, _, out| out.put(s.consecutive_failures)),
    metric("stdiowatch_interval_seconds", Gauge, &[],
        "From one probe to the next while all is well, as configured.",
        |s, _, out| out.put(s.terms.interval.as_secs_f64())),
    metric("stdiowatch_backoff_seconds", Gauge, &[],
        "By how much the next probe is put off because the server keeps failing.",
        |s, _, out| out.put(s.backoff.as_secs_f64())),
    metric("stdiowatch_server_info", Info, &["name", "version", "era", "protocol_version"],
        "How the server described itself in the last probe, and how it is spoken to.",
        server_info),
    metric("stdiowatch_schema_info", Info, &["sha256"],
        "The digest of everything the server lists, when it was last listed completely.",
        |s, _, out| if let Some(listed) = &s.schema.listed { out.put_with(&[&listed.digest.to_string()], true) }),
    metric("stdiowatch_schema_hash", Gauge, &[],
        "The first 48 bits of that digest as a number: it changes when the schema does.",
        |s, _, out| out.put_known(s.schema.listed.as_ref().map(|listed| listed.digest.first_48_bits()))),
    metric("stdiowatch_schema_changes_total", Counter, &["change"],
        "Listed items that were added, removed or changed from one complete listing to the next.",
        |s, _, out| for (change, n) in ["added", "removed", "changed"].into_iter().zip(s.schema.changes) { out.put_with(&[change], n) }),
    metric("stdiowatch_schema_drift", Gauge, &[],
        "Whether the schema differs from the accepted one in more than what is allowed (1), or not (0). Missing where the two do not compare.",
        |s, _, out| out.put_known(s.schema.drifted)),
    metric("stdiowatch_schema_drift_changes", Gauge, &["class"],
        "How the schema differs from the accepted one: differences by what they mean for those who use the server.",
        |s, _, out| for class in ChangeClass::ALL { out.put_with(&[class.as_str()], count(s.schema.classes.get(&class))) }),
    metric("stdiowatch_schema_last_change_timestamp_seconds", Gauge, &[],
        "When a probe last listed something else than the one before. Missing until then.",
        |s, _, out| out.put_known(s.schema.changed.map(Moment::unix_seconds))),
    metric("stdiowatch_listed_items", Gauge, &["list"],
        "Items on each list that the server offers, in the last probe.",
        |s, _, out| for (list, n) in s.report().map(|r| r.lists.each()).into_iter().flatten() {
            if let Some(n) = n { out.put_with(&[list.word()], n) }
        }),
    metric("stdiowatch_shutdowns_total", Counter, &["ended_by"],
        "Servers that ended, by what it took: nothing (self), end-of-file, SIGTERM, SIGKILL.",
        |s, _, out| for by in EndedBy::ALL { out.put_with(&[by.as_str()], count(s.ended_by.get(&by))) }),
    metric("stdiowatch_shutdown_duration_seconds", Kind::Histogram, &[],
        "From the end of the server's stdin to the end of its process.",
        |s, _, out| out.put_histogram(&s.shutdown_duration)),
    metric("stdiowatch_leftover_processes_total", Counter, &["kind"],
        "Descendants that outlived the server: in its process group, or escaped from it.",
        |s, _, out| { out.put_with(&["group"], s.left_group); out.put_with(&["escaped"], s.left_escaped) }),
    metric("stdiowatch_stdout_bytes_total", Counter, &[],
        "Bytes that the server wrote to stdout.",
        |s, _, out| out.put(s.stdout_bytes)),
    metric("stdiowatch_stderr_bytes_total", Counter, &[],
        "Bytes that the server wrote to stderr.",
        |s, _, out| out.put(s.stderr_bytes)),
    metric("stdiowatch_server_max_rss_bytes", Gauge, &[],
        "Peak resident memory of the server and its descendants in the last probe that looked at it.",
        |s, _, out| out.put_known(s.max_rss)),
    metric("stdiowatch_server_cpu_seconds_total", Counter, &[],
        "CPU time that the server's processes used in all probes.",
        |s, _, out| out.put(s.cpu_seconds)),
];

/// Every metric of the sidecar that the snapshot holds, in the order they are written. What is the
/// process' own (`build_info`, the configuration, `process_*`) is in a registry and joined to them.
#[rustfmt::skip]
pub const SIDECAR_METRICS: &[SidecarMetric] = &[
    SidecarMetric { name: "stdiowatch_probes_in_flight", kind: Gauge,
        help: "Probes that are running.",
        read: |snapshot| snapshot.sidecar.in_flight.into() },
    SidecarMetric { name: "stdiowatch_scheduler_lag_seconds", kind: Gauge,
        help: "The largest delay from when a probe was due to its launch: of those launched in the last half minute or minute, and of those that still wait for their turn.",
        read: |snapshot| snapshot.sidecar.lag.as_secs_f64().into() },
    SidecarMetric { name: "stdiowatch_state_kept", kind: Gauge,
        help: "Whether accepted schemas are kept over restarts (1), or not (0): there is no state directory, or it cannot be written.",
        read: |snapshot| snapshot.sidecar.kept.into() },
    SidecarMetric { name: "stdiowatch_state_write_failures_total", kind: Counter,
        help: "How often something could not be written to the state directory.",
        read: |snapshot| snapshot.sidecar.keep_failures.into() },
    SidecarMetric { name: "stdiowatch_config_entries_broken", kind: Gauge,
        help: "Entries of MCP clients' files that are not watched because they are wrong: no client can use them either.",
        read: |snapshot| snapshot.reading.count(true).into() },
    SidecarMetric { name: "stdiowatch_config_entries_skipped", kind: Gauge,
        help: "Entries of MCP clients' files that are not watched because they are remote, switched off or of another kind.",
        read: |snapshot| snapshot.reading.count(false).into() },
];

fn count(n: Option<&u64>) -> u64 {
    n.copied().unwrap_or_default()
}

/// How long a phase of the last probe took, in seconds. A canary call is not timed.
fn last_phase(server: &ServerState, phase: Phase) -> Option<f64> {
    let timings = &server.report()?.timings;
    let milliseconds = match phase {
        Phase::Spawn => timings.spawn_ms?,
        // Start-up is counted from the launch, the handshake from when the process was there.
        Phase::Handshake => timings.startup_ms? - timings.spawn_ms?,
        Phase::List => timings.list_ms?,
        Phase::Call => timings.call_ms?,
        Phase::Shutdown => timings.shutdown_ms?,
    };
    Some(Duration::from_secs_f64(milliseconds.max(0.0) / 1e3).as_secs_f64())
}

fn server_info(server: &ServerState, _: Moment, out: &mut Samples<'_>) {
    let Some(report) = server.report().filter(|r| r.server_info.is_some() || r.era.is_some()) else { return };
    let (name, version) = report.server_info.as_ref().map_or(("", ""), |info| (&info.name, &info.version));
    let era = report.era.map_or("", |era| era.as_str());
    let protocol = report.protocol_version.as_deref().unwrap_or_default();
    let bounded = |text| printable(text, MAX_LABEL);
    out.put_with(&[&bounded(name), &bounded(version), era, &bounded(protocol)], true);
}
