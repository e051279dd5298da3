//! Writes Prometheus text 0.0.4 and OpenMetrics 1.0.0 from one description.
//!
//! Sources: <https://prometheus.io/docs/instrumenting/exposition_formats/> and
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>. The two differ in the name that stands
//! in the header of a counter or an info (OpenMetrics leaves `_total` and `_info` to the samples),
//! in `# UNIT`, in `# EOF`, and in what a header's text escapes. The samples are the same, byte for
//! byte, so that a query does not depend on which of them was negotiated; that is why a bound is
//! written `le="1.0"`, as OpenMetrics demands, in both.

use std::fmt::Write as _;

/// Which of the two formats is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// The `Content-Type`, to the letter: Prometheus 3 refuses others.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What kind of metric a family is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only ever grows; its name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Always 1, its labels are what it says; its name ends in `_info`.
    Info,
    /// Cumulative buckets, a sum and a count.
    Histogram,
}

impl Kind {
    /// The word after `# TYPE`.
    #[must_use]
    pub const fn word(self, format: Format) -> &'static str {
        match (self, format) {
            (Kind::Counter, _) => "counter",
            (Kind::Info, Format::OpenMetrics) => "info",
            (Kind::Gauge, _) | (Kind::Info, Format::Text) => "gauge",
            (Kind::Histogram, _) => "histogram",
        }
    }
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A count.
    Count(u64),
    /// Anything else.
    Number(f64),
}

impl From<u64> for Value {
    fn from(count: u64) -> Value {
        Value::Count(count)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Value {
        Value::Count(count.into())
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Value {
        Value::Count(count as u64)
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Value {
        Value::Count(yes.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Number(number)
    }
}

/// One label: its name and its value.
pub type Label<'l> = (&'l str, &'l str);

/// An answer to a scrape, being written.
#[derive(Debug)]
pub struct Exposition {
    format: Format,
    text: String,
}

impl Exposition {
    /// An empty one with room for `capacity` bytes.
    #[must_use]
    pub fn new(format: Format, capacity: usize) -> Exposition {
        Exposition { format, text: String::with_capacity(capacity) }
    }

    /// How much is written, in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether nothing is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Begins the family `name`: the name that its samples have, in Prometheus' writing.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let family = match self.format {
            Format::Text => name,
            Format::OpenMetrics => family_name(name, kind),
        };
        let word = kind.word(self.format);
        let _ = write!(self.text, "# HELP {family} ");
        self.help(help);
        let _ = writeln!(self.text, "\n# TYPE {family} {word}");
        if self.format == Format::OpenMetrics
            && let Some(unit) = unit(family)
        {
            let _ = writeln!(self.text, "# UNIT {family} {unit}");
        }
    }

    /// One series.
    pub fn sample<'l>(&mut self, name: &str, labels: impl IntoIterator<Item = Label<'l>>, value: impl Into<Value>) {
        self.series(name, "", labels, None, value.into());
    }

    /// The series of a histogram: one for each bound, with the count of all that were not above it,
    /// then one for all, the sum, and the count.
    pub fn histogram<'l, L>(&mut self, name: &str, labels: L, cumulative: impl Iterator<Item = (f64, u64)>, sum: f64, count: u64)
    where
        L: IntoIterator<Item = Label<'l>> + Clone,
    {
        for (bound, below) in cumulative.filter(|(bound, _)| bound.is_finite()) {
            self.series(name, "_bucket", labels.clone(), Some(bound), below.into());
        }
        self.series(name, "_bucket", labels.clone(), Some(f64::INFINITY), count.into());
        self.series(name, "_sum", labels.clone(), None, sum.into());
        self.series(name, "_count", labels, None, count.into());
    }

    /// Says that nothing follows.
    pub fn end(&mut self) {
        match self.format {
            Format::Text => {}
            Format::OpenMetrics => self.text.push_str("# EOF\n"),
        }
    }

    /// What was written.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    fn series<'l>(&mut self, name: &str, suffix: &str, labels: impl IntoIterator<Item = Label<'l>>, le: Option<f64>, value: Value) {
        self.text.push_str(name);
        self.text.push_str(suffix);
        let mut before = '{';
        for (label, value) in labels {
            self.text.push(before);
            before = ',';
            self.text.push_str(label);
            self.text.push_str("=\"");
            escape(&mut self.text, value, true);
            self.text.push('"');
        }
        if let Some(bound) = le {
            self.text.push(before);
            before = ',';
            self.text.push_str("le=\"");
            push_bound(&mut self.text, bound);
            self.text.push('"');
        }
        self.text.push_str(if before == '{' { " " } else { "} " });
        match value {
            Value::Count(count) => push_count(&mut self.text, count),
            Value::Number(number) => push_number(&mut self.text, number),
        }
        self.text.push('\n');
    }

    fn help(&mut self, help: &str) {
        // Only OpenMetrics knows `\"` outside of labels.
        escape(&mut self.text, help, self.format == Format::OpenMetrics);
    }
}

/// The name of a family in OpenMetrics: without what only its samples carry.
#[must_use]
pub fn family_name(name: &str, kind: Kind) -> &str {
    let suffix = match kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram => "",
    };
    name.strip_suffix(suffix).unwrap_or(name)
}

/// The base unit that a family's name ends in.
fn unit(family: &str) -> Option<&'static str> {
    ["seconds", "bytes"].into_iter().find(|unit| family.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')))
}

fn escape(out: &mut String, text: &str, quotes: bool) {
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '\n', '"']) {
        let (clean, dirty) = rest.split_at(at);
        out.push_str(clean);
        out.push_str(match dirty.as_bytes()[0] {
            b'\\' => "\\\\",
            b'\n' => "\\n",
            _ if quotes => "\\\"",
            _ => "\"",
        });
        rest = &dirty[1..];
    }
    out.push_str(rest);
}

/// A bound in OpenMetrics' canonical form: `0.01`, `1.0`, `+Inf`.
fn push_bound(out: &mut String, bound: f64) {
    if bound.is_finite() {
        // `Debug` is the shortest form that reads back the same, with a point in it.
        let _ = write!(out, "{bound:?}");
    } else {
        push_number(out, bound);
    }
}

fn push_number(out: &mut String, number: f64) {
    let _ = match number {
        n if n.is_nan() => out.write_str("NaN"),
        f64::INFINITY => out.write_str("+Inf"),
        f64::NEG_INFINITY => out.write_str("-Inf"),
        n => write!(out, "{n}"),
    };
}

fn push_count(out: &mut String, count: u64) {
    match u8::try_from(count) {
        // Most are 0 or 1, and formatting costs more than the rest of the line.
        Ok(digit @ 0..10) => out.push(char::from(b'0' + digit)),
        _ => {
            let _ = write!(out, "{count}");
        }
    }
}
