//! The answer to a scrape, in pieces: a thousand servers are 14 MB of text, and nobody needs that in
//! memory at once.

use std::sync::Arc;

use prometheus::proto::{MetricFamily, MetricType};

use super::exposition::{Exposition, Format, Kind};
use super::metrics::{METRICS, SIDECAR_METRICS};
use crate::ledger::Snapshot;
use crate::words::Moment;

/// A piece is finished when it has this many bytes.
const PIECE: usize = 32 << 10;
/// What one server adds to one metric at the most, or nearly: the findings, a long name.
const SLACK: usize = 8 << 10;

/// A scrape being answered: an iterator over the pieces of its text.
#[derive(Debug)]
pub struct Scrape {
    snapshot: Arc<Snapshot>,
    now: Moment,
    format: Format,
    /// What the registry had gathered; taken when it is written, which is last.
    gathered: Option<Vec<MetricFamily>>,
    /// The next metric, and the next server in it.
    next: (usize, usize),
}

impl Scrape {
    /// The answer at `now`: every server's series, the sidecar's, and what `gathered` holds.
    #[must_use]
    pub const fn new(snapshot: Arc<Snapshot>, now: Moment, gathered: Vec<MetricFamily>, format: Format) -> Scrape {
        Scrape { snapshot, now, format, gathered: Some(gathered), next: (0, 0) }
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.gathered.is_none()
    }

    /// The whole text at once.
    #[must_use]
    pub fn text(self) -> String {
        self.collect()
    }
}

impl Iterator for Scrape {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.is_over() {
            return None;
        }
        let mut out = Exposition::new(self.format, PIECE + SLACK);
        let (mut at, mut server) = self.next;
        while let Some(metric) = METRICS.get(at) {
            if server == 0 {
                out.family(metric.name, metric.kind, metric.help);
            }
            while let Some(state) = self.snapshot.servers.get(server) {
                metric.write(state, self.now, &mut out);
                server += 1;
                if out.len() >= PIECE && server < self.snapshot.servers.len() {
                    self.next = (at, server);
                    return Some(out.into_text());
                }
            }
            (at, server) = (at + 1, 0);
            if out.len() >= PIECE {
                self.next = (at, server);
                return Some(out.into_text());
            }
        }
        for metric in SIDECAR_METRICS {
            out.family(metric.name, metric.kind, metric.help);
            out.sample(metric.name, [], (metric.read)(&self.snapshot));
        }
        self.gathered.take().iter().flatten().for_each(|family| join(family, &mut out));
        out.end();
        Some(out.into_text())
    }
}

/// Writes a family of the registry. The registry knows no info: a gauge that is named so is one.
fn join(family: &MetricFamily, out: &mut Exposition) {
    let name = family.name();
    let kind = match family.get_field_type() {
        MetricType::COUNTER => Kind::Counter,
        MetricType::GAUGE if name.ends_with("_info") => Kind::Info,
        MetricType::GAUGE => Kind::Gauge,
        MetricType::HISTOGRAM => Kind::Histogram,
        // Nothing of ours is one of these.
        MetricType::SUMMARY | MetricType::UNTYPED => return,
    };
    out.family(name, kind, family.help());
    for metric in family.get_metric() {
        let labels = metric.get_label().iter().map(|label| (label.name(), label.value()));
        match kind {
            Kind::Counter => out.sample(name, labels, metric.get_counter().get_value()),
            Kind::Gauge | Kind::Info => out.sample(name, labels, metric.get_gauge().get_value()),
            Kind::Histogram => {
                let histogram = metric.get_histogram();
                let buckets = histogram.get_bucket().iter().map(|b| (b.upper_bound(), b.cumulative_count()));
                out.histogram(name, labels, buckets, histogram.get_sample_sum(), histogram.get_sample_count());
            }
        }
    }
}
