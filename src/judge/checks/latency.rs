//! Whether it was as quick as it should be.

use super::super::case::{Case, Check, Found};
use super::super::verdict::Severity::Warn;
use crate::probe::Phase;
use crate::words::At;

pub(super) const CHECKS: &[Check] = &[Check {
    code: "latency.slow",
    severity: Warn,
    about: "A phase took longer than its configured objective.",
    mend: "Compare with the history: a slow start often is a download, a cold cache or a busy host.",
    run: slow,
}];

fn slow(case: Case<'_>) -> Option<Found> {
    let launch = case.launch;
    let took = |from: Option<At>, to: Option<At>| Some((to?, to? - from?));
    let measured = [
        ("startup", Phase::Handshake, took(Some(launch.started), launch.first_reply)),
        ("list", Phase::List, took(launch.ready, launch.listed)),
        ("call", Phase::Call, took(launch.listed, launch.called)),
        ("shutdown", Phase::Shutdown, launch.end.as_ref().and_then(|end| took(end.closed, Some(end.at)))),
    ];
    let slow: Vec<_> = measured
        .into_iter()
        .filter_map(|(name, phase, took)| {
            let (at, took) = took?;
            let objective = *case.rules.objectives.get(name)?;
            (took > objective).then(|| {
                (at, phase, format!("{name} took {:.3} s, and should take {:.3} s at the most", took.as_secs_f64(), objective.as_secs_f64()))
            })
        })
        .collect();
    let (at, phase, message) = slow.first()?.clone();
    let evidence: Vec<String> = slow.into_iter().map(|(_, _, words)| words).collect();
    Some(Found::once(at, phase, message, evidence.join("; ")))
}
