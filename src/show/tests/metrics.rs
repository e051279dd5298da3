use std::collections::BTreeSet;
use std::time::Duration;

use prometheus::{Counter, Gauge, HistogramOpts, Registry};

use super::fixture::*;
use super::parser::{Parsed, parse};
use crate::judge::{CHECKS, Severity, Verdict};
use crate::ledger::{ServerState, Skip};
use crate::show::exposition::{Format, Kind, family_name};
use crate::show::metrics::{METRICS, SIDECAR_METRICS};
use crate::show::scrape::Scrape;
use crate::words::Moment;

fn text(servers: Vec<ServerState>, now: Moment, format: Format) -> String {
    Scrape::new(snapshot(servers), now, Vec::new(), format).text()
}

fn scraped(servers: Vec<ServerState>, now: Moment) -> Parsed {
    parse(&text(servers, now, Format::Text), Format::Text)
}

/// A scrape without the findings that were not made: a new check should not change it.
fn golden(server: ServerState, now: Moment, format: Format) -> String {
    let text = text(vec![server], now, format);
    let lines = text.lines().filter(|line| !(line.starts_with("stdiowatch_findings_total") && line.ends_with(" 0")));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn one_server_in_each_format() {
    insta::assert_snapshot!("unprobed_text", golden(unprobed("files"), at(0), Format::Text));
    insta::assert_snapshot!("passing_openmetrics", golden(passing("files"), at(1), Format::OpenMetrics));
    insta::assert_snapshot!("failing_text", golden(failing("files"), at(61), Format::Text));
}

#[test]
fn every_closed_label_set_is_complete_from_the_beginning() {
    let parsed = scraped(vec![unprobed("s")], at(0));
    let counted = |name: &str| parsed.all(name).inspect(|(_, value)| assert_eq!(*value, 0.0, "{name}")).count();
    for (name, series) in [
        ("stdiowatch_probes_total", 1),
        ("stdiowatch_probe_failures_total", 10),
        ("stdiowatch_probe_unknown_total", 1),
        ("stdiowatch_probe_skipped_total", Skip::ALL.len()),
        ("stdiowatch_findings_total", CHECKS.len()),
        ("stdiowatch_startup_duration_seconds_bucket", 15),
        ("stdiowatch_probe_duration_seconds_count", 1),
        ("stdiowatch_shutdown_duration_seconds_sum", 1),
        ("stdiowatch_schema_changes_total", 3),
        ("stdiowatch_shutdowns_total", 4),
        ("stdiowatch_leftover_processes_total", 2),
        ("stdiowatch_stdout_bytes_total", 1),
        ("stdiowatch_stderr_bytes_total", 1),
        ("stdiowatch_server_cpu_seconds_total", 1),
    ] {
        assert_eq!(counted(name), series, "{name}");
    }
    let ended: BTreeSet<_> = parsed.all("stdiowatch_shutdowns_total").map(|(labels, _)| labels["ended_by"].as_str()).collect();
    assert_eq!(ended, BTreeSet::from(["self", "eof", "sigterm", "sigkill"]));
}

#[test]
fn what_is_not_known_has_no_series() {
    let parsed = scraped(vec![unprobed("s")], at(0));
    for name in [
        "stdiowatch_last_probe_timestamp_seconds",
        "stdiowatch_last_success_timestamp_seconds",
        "stdiowatch_phase_duration_seconds",
        "stdiowatch_server_info",
        "stdiowatch_schema_info",
        "stdiowatch_schema_hash",
        "stdiowatch_schema_drift",
        "stdiowatch_schema_last_change_timestamp_seconds",
        "stdiowatch_listed_items",
        "stdiowatch_server_max_rss_bytes",
    ] {
        assert_eq!(parsed.all(name).count(), 0, "{name}");
    }
}

/// `up`, and the one verdict that is set.
fn shown(server: &ServerState, now: Moment) -> (f64, String) {
    let parsed = scraped(vec![server.clone()], now);
    let set: Vec<_> = parsed.all("stdiowatch_verdict").filter(|(_, v)| *v == 1.0).map(|(labels, _)| labels["verdict"].clone()).collect();
    assert_eq!((parsed.all("stdiowatch_verdict").count(), set.len()), (4, 1));
    (parsed.value("stdiowatch_up", &["server=s"]), set[0].clone())
}

#[test]
fn a_server_is_up_only_while_its_verdict_is_good_and_not_overdue() {
    let (up, down) = (1.0, 0.0);
    assert_eq!(shown(&unprobed("s"), at(0)), (down, "unknown".to_owned()));
    assert_eq!(shown(&passing("s"), at(1)), (up, "pass".to_owned()));
    assert_eq!(shown(&warning("s"), at(1)), (up, "warn".to_owned()));
    assert_eq!(shown(&failing("s"), at(61)), (down, "fail".to_owned()));
    assert_eq!(shown(&passing("s"), at(100_000)), (down, "unknown".to_owned()));
    let mut unknown = passing("s");
    probe(&mut unknown, Verdict::Unknown, vec![finding("probe.host_busy", Severity::Unknown, "busy")], "echo", 60);
    assert_eq!(shown(&unknown, at(61)), (down, "unknown".to_owned()));
}

#[test]
fn a_changed_schema_is_another_series_in_the_same_scrape() {
    let digest = |parsed: &Parsed| {
        let all: Vec<_> = parsed.all("stdiowatch_schema_info").map(|(labels, _)| labels["sha256"].clone()).collect();
        assert_eq!(all.len(), 1);
        all[0].clone()
    };
    let before = scraped(vec![passing("s")], at(1));
    let after = scraped(vec![failing("s")], at(61));
    assert_ne!(digest(&before), digest(&after));
    let hash = u64::from_str_radix(&digest(&after)[..12], 16).unwrap();
    assert_eq!(after.value("stdiowatch_schema_hash", &["server=s"]), hash as f64);
    assert_eq!(before.value("stdiowatch_schema_drift", &["server=s"]), 0.0);
    assert_eq!(after.value("stdiowatch_schema_drift", &["server=s"]), 1.0);
    assert_eq!(after.value("stdiowatch_schema_changes_total", &["server=s", "change=added"]), 1.0);
    assert_eq!(after.value("stdiowatch_schema_last_change_timestamp_seconds", &["server=s"]), at(60).unix_seconds());
}

#[test]
fn hostile_names_parse_in_both_formats() {
    let name = "a\"b\\n{}=,# 日本 </é>".replace('/', "");
    for format in [Format::Text, Format::OpenMetrics] {
        let parsed = parse(&text(vec![failing(&name), passing("z")], at(61), format), format);
        assert_eq!(parsed.all("stdiowatch_up").filter(|(labels, _)| labels["server"] == name).count(), 1);
        let info = parsed.all("stdiowatch_server_info").next().unwrap().0;
        assert_eq!(info["name"], "sample \"x\"\\\\n", "escaped for people first, then for the format");
    }
}

#[test]
fn a_label_that_a_server_chose_is_bounded() {
    let mut server = passing("s");
    let (when, report) = server.last.take().unwrap();
    let mut report = (*report).clone();
    report.server_info = Some(crate::judge::ServerIdentity { name: "n\u{202e}".repeat(5000), version: "é".repeat(5000) });
    server.last = Some((when, report.into()));
    let line = text(vec![server], at(1), Format::Text).lines().find(|l| l.starts_with("stdiowatch_server_info")).unwrap().to_owned();
    assert!(line.chars().count() < 400, "{line}");
}

#[test]
fn a_large_scrape_comes_in_pieces_and_is_the_same() {
    let servers: Vec<_> = (0..60).map(|n| failing(&format!("server {n}"))).collect();
    let pieces: Vec<String> = Scrape::new(snapshot(servers.clone()), at(61), Vec::new(), Format::OpenMetrics).collect();
    assert!(pieces.len() > 10 && pieces.iter().all(|p| p.len() < 44_000), "{}", pieces.len());
    let parsed = parse(&pieces.concat(), Format::OpenMetrics);
    assert_eq!(parsed.all("stdiowatch_up").count(), 60);
    assert_eq!(parsed.all("stdiowatch_findings_total").count(), 60 * CHECKS.len());
    parse(&text(Vec::new(), at(0), Format::OpenMetrics), Format::OpenMetrics);
}

#[test]
fn what_a_registry_holds_is_joined() {
    let registry = Registry::new();
    let counter = Counter::new("process_cpu_seconds_total", "CPU.").unwrap();
    let info = Gauge::with_opts(prometheus::Opts::new("b_info", "Build.").const_label("version", "\"1\"")).unwrap();
    let histogram = prometheus::Histogram::with_opts(HistogramOpts::new("h_seconds", "H.").buckets(vec![1.0, 2.0])).unwrap();
    counter.inc_by(2.5);
    info.set(1.0);
    histogram.observe(1.5);
    registry.register(Box::new(counter)).unwrap();
    registry.register(Box::new(info)).unwrap();
    registry.register(Box::new(histogram)).unwrap();
    for format in [Format::Text, Format::OpenMetrics] {
        let text = Scrape::new(snapshot(vec![passing("s")]), at(1), registry.gather(), format).text();
        let parsed = parse(&text, format);
        assert_eq!(parsed.value("process_cpu_seconds_total", &[]), 2.5);
        assert_eq!(parsed.value("b_info", &["version=\"1\""]), 1.0);
        assert_eq!(parsed.value("h_seconds_bucket", &["le=2.0"]), 1.0);
        assert_eq!(parsed.value("stdiowatch_probes_in_flight", &[]), 2.0);
        assert_eq!(parsed.value("stdiowatch_scheduler_lag_seconds", &[]), 0.0015);
    }
}

#[test]
fn names_and_helps_are_what_linters_ask_for() {
    let all = METRICS.iter().map(|m| (m.name, m.kind, m.help)).chain(SIDECAR_METRICS.iter().map(|m| (m.name, m.kind, m.help)));
    let mut families = BTreeSet::new();
    for (name, kind, help) in all {
        assert!(name.starts_with("stdiowatch_"), "{name}");
        assert_eq!(name.ends_with("_total"), kind == Kind::Counter, "{name}");
        assert_eq!(name.ends_with("_info"), kind == Kind::Info, "{name}");
        assert!(help.ends_with('.') && !help.contains('\n') && help.starts_with(char::is_uppercase), "{name}");
        assert!(families.insert(family_name(name, kind)), "{name}");
    }
}

#[test]
fn a_phase_has_its_own_time_and_limit() {
    let parsed = scraped(vec![passing("s")], at(1));
    assert_eq!(parsed.value("stdiowatch_phase_duration_seconds", &["server=s", "phase=spawn"]), 0.0015);
    assert_eq!(parsed.value("stdiowatch_phase_duration_seconds", &["server=s", "phase=handshake"]), 0.0485);
    assert_eq!(parsed.value("stdiowatch_phase_timeout_seconds", &["server=s", "phase=list"]), 10.0);
    assert_eq!(parsed.all("stdiowatch_phase_timeout_seconds").count(), 2);
    assert_eq!(parsed.value("stdiowatch_interval_seconds", &["server=s"]), Duration::from_secs(60).as_secs_f64());
}

#[test]
fn only_what_has_an_objective_shows_one() {
    let mut server = passing("s");
    server.terms.objectives.insert("startup", Duration::from_millis(2500));
    let parsed = scraped(vec![server, passing("t")], at(1));
    assert_eq!(parsed.value("stdiowatch_phase_objective_seconds", &["server=s", "phase=startup"]), 2.5);
    assert_eq!(parsed.all("stdiowatch_phase_objective_seconds").count(), 1);
}
