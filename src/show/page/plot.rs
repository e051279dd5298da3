//! Start-up times, as a line in an SVG. Both axes are of the page's own units; what the numbers mean
//! is said in words beside it.

use std::fmt::Write as _;

use super::words::took;
use crate::ledger::{Entry, ServerState};
use crate::probe::Phase;

/// Probes that have a place in the plot.
pub(super) const PLACES: usize = 60;
/// How high the plot is, in its units.
const HEIGHT: f64 = 100.0;
/// What is kept free above and below.
const MARGIN: f64 = 6.0;
/// How much room a label takes above its line, and how many places at the left.
const LABEL: (f64, usize) = (12.0, 6);
/// Less is not told apart, in milliseconds.
const LEAST: f64 = 1.0;

/// A plot of the last start-ups. An x of 10 is one probe, the last one at the right.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// The line through the start-ups that followed each other: the data of a path.
    pub(super) line: String,
    /// Start-ups that stand alone, and the last one.
    pub(super) dots: String,
    /// The objective, the timeout and the powers of ten.
    pub(super) rules: Vec<Rule>,
    /// All of it in one sentence.
    pub(super) told: String,
}

/// A horizontal line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    /// What it is, as its class in the style sheet.
    pub(super) class: &'static str,
    /// Where, from the top.
    pub(super) y: String,
    /// What stands beside it.
    pub(super) label: String,
}

impl Plot {
    /// The start-ups of `server`; `None` before the first one.
    pub(super) fn of(server: &ServerState) -> Option<Plot> {
        let recent: Vec<Entry> = server.history.recent().collect();
        let known = || recent.iter().filter_map(|e| e.startup_ms).filter(|ms| ms.is_finite());
        let last = known().next_back()?;
        let (least, most) = known().fold((f64::MAX, 0.0_f64), |(least, most), ms| (least.min(ms), most.max(ms)));
        let limit = |duration: std::time::Duration| duration.as_secs_f64() * 1e3;
        let objective = server.terms.objectives.get("startup").copied().map(limit);
        let timeout = server.terms.timeouts.iter().find(|(phase, _)| *phase == Phase::Handshake).map(|(_, d)| limit(*d));
        let bounds = [objective, timeout].into_iter().flatten();
        let scale = Scale::over(bounds.clone().fold(least, f64::min), bounds.fold(most, f64::max));

        let mut plot = Plot { line: String::new(), dots: String::new(), rules: scale.decades(), told: String::new() };
        plot.rules.extend(timeout.map(|ms| scale.rule("timeout", ms, format!("timeout {}", took(ms)))));
        plot.rules.extend(objective.map(|ms| scale.rule("objective", ms, format!("objective {}", took(ms)))));
        plot.draw(&recent, &scale);
        plot.clear_labels(&recent, &scale);
        plot.told = told(known().count(), least, most, last, objective, timeout);
        Some(plot)
    }

    /// No label stands where the line is.
    fn clear_labels(&mut self, recent: &[Entry], scale: &Scale) {
        let before = PLACES.saturating_sub(recent.len());
        let first = recent.iter().take(LABEL.1.saturating_sub(before)).filter_map(|e| e.startup_ms).map(|ms| scale.y(ms));
        let heights: Vec<f64> = first.filter_map(|y| y.parse().ok()).collect();
        for rule in self.rules.iter_mut().filter(|rule| rule.class == "decade") {
            let y: f64 = rule.y.parse().unwrap_or_default();
            if heights.iter().any(|h| (y - LABEL.0..=y + 1.0).contains(h)) {
                rule.label.clear();
            }
        }
    }

    fn draw(&mut self, recent: &[Entry], scale: &Scale) {
        let before = PLACES.saturating_sub(recent.len());
        let mut begun = 0;
        for (at, entry) in recent.iter().enumerate() {
            let Some(ms) = entry.startup_ms.filter(|ms| ms.is_finite()) else {
                begun = 0;
                continue;
            };
            let (x, y) = ((before + at) * 10 + 5, scale.y(ms));
            let _ = write!(self.line, "{}{x} {y}", if begun == 0 { 'M' } else { 'L' });
            begun += 1;
            let next = recent.get(at + 1).and_then(|next| next.startup_ms);
            if at + 1 == recent.len() || begun == 1 && next.is_none() {
                let _ = write!(self.dots, "M{x} {y}h0");
            }
        }
    }
}

fn told(count: usize, least: f64, most: f64, last: f64, objective: Option<f64>, timeout: Option<f64>) -> String {
    let mut out = if count == 1 {
        format!("The only start-up took {}", took(last))
    } else {
        format!("The last {count} start-ups took {} to {}, the last one {}", took(least), took(most), took(last))
    };
    for (what, ms) in [("objective", objective), ("timeout", timeout)] {
        if let Some(ms) = ms {
            let _ = write!(out, "; {what} {}", took(ms));
        }
    }
    out
}

/// A logarithmic one: a start-up of 80 ms and a timeout of 30 s have to fit.
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    fn over(least: f64, most: f64) -> Scale {
        let least = least.max(LEAST) / 1.5;
        Scale { least: least.log10(), most: most.max(least * 4.0).log10() }
    }

    fn y(&self, ms: f64) -> String {
        let share = (ms.max(LEAST).log10() - self.least) / (self.most - self.least);
        let y = HEIGHT - MARGIN - share.clamp(0.0, 1.0) * (HEIGHT - 2.0 * MARGIN);
        format!("{y:.1}")
    }

    fn rule(&self, class: &'static str, ms: f64, label: String) -> Rule {
        Rule { class, y: self.y(ms), label }
    }

    fn decades(&self) -> Vec<Rule> {
        let powers = (0..=6).map(|n| 10_f64.powi(n)).filter(|ms| ms.log10() > self.least && ms.log10() < self.most);
        powers.map(|ms| self.rule("decade", ms, took(ms))).collect()
    }
}
