use super::parser::parse;
use crate::show::exposition::{Exposition, Format, Kind, family_name};

fn written(format: Format, write: impl FnOnce(&mut Exposition)) -> String {
    let mut out = Exposition::new(format, 0);
    write(&mut out);
    out.end();
    out.into_text()
}

#[test]
fn a_counter_is_named_by_its_family_in_openmetrics() {
    let write = |out: &mut Exposition| {
        out.family("x_seconds_total", Kind::Counter, "Says \"so\" \\ in\ntwo lines.");
        out.sample("x_seconds_total", [("a", "b")], 1.5);
    };
    assert_eq!(
        written(Format::Text, write),
        "# HELP x_seconds_total Says \"so\" \\\\ in\\ntwo lines.\n# TYPE x_seconds_total counter\nx_seconds_total{a=\"b\"} 1.5\n"
    );
    assert_eq!(
        written(Format::OpenMetrics, write),
        "# HELP x_seconds Says \\\"so\\\" \\\\ in\\ntwo lines.\n# TYPE x_seconds counter\n# UNIT x_seconds seconds\nx_seconds_total{a=\"b\"} 1.5\n# EOF\n"
    );
}

#[test]
fn an_info_is_a_gauge_in_prometheus() {
    let write = |out: &mut Exposition| {
        out.family("x_info", Kind::Info, "What.");
        out.sample("x_info", [("a", "")], true);
    };
    assert_eq!(written(Format::Text, write), "# HELP x_info What.\n# TYPE x_info gauge\nx_info{a=\"\"} 1\n");
    assert_eq!(written(Format::OpenMetrics, write), "# HELP x What.\n# TYPE x info\nx_info{a=\"\"} 1\n# EOF\n");
    assert_eq!(family_name("x_info", Kind::Gauge), "x_info");
}

#[test]
fn a_histogram_has_canonical_bounds() {
    let text = written(Format::Text, |out| {
        out.family("h_seconds", Kind::Histogram, "How long.");
        out.histogram("h_seconds", [("s", "a")], [(0.01, 1), (1.0, 2), (300.0, 2), (f64::INFINITY, 99)].into_iter(), 2.5, 3);
        out.histogram("h_seconds", [], [(0.5, 0)].into_iter(), 0.0, 0);
    });
    let samples: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(
        samples,
        [
            "h_seconds_bucket{s=\"a\",le=\"0.01\"} 1",
            "h_seconds_bucket{s=\"a\",le=\"1.0\"} 2",
            "h_seconds_bucket{s=\"a\",le=\"300.0\"} 2",
            "h_seconds_bucket{s=\"a\",le=\"+Inf\"} 3",
            "h_seconds_sum{s=\"a\"} 2.5",
            "h_seconds_count{s=\"a\"} 3",
            "h_seconds_bucket{le=\"0.5\"} 0",
            "h_seconds_bucket{le=\"+Inf\"} 0",
            "h_seconds_sum 0",
            "h_seconds_count 0",
        ]
    );
}

#[test]
fn numbers_read_back_as_they_were() {
    let numbers = [0.0, -1.5, 0.1 + 0.2, 1e21, 1e-9, 1_767_225_600.123, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY];
    for number in numbers {
        let text = written(Format::OpenMetrics, |out| {
            out.family("x", Kind::Gauge, "X.");
            out.sample("x", [], number);
        });
        assert_eq!(parse(&text, Format::OpenMetrics).value("x", &[]), number, "{text}");
    }
    for (number, word) in [(f64::NAN, "NaN"), (f64::NEG_INFINITY, "-Inf")] {
        assert!(written(Format::Text, |out| out.sample("x", [], number)).ends_with(&format!(" {word}\n")));
    }
    for count in [0, 9, 10, 255, 256, u64::MAX] {
        assert_eq!(written(Format::Text, |out| out.sample("x", [], count)), format!("x {count}\n"));
    }
}

proptest::proptest! {
    #[test]
    fn whatever_a_label_holds_reads_back(value in ".*", help in ".*", openmetrics: bool) {
        let format = if openmetrics { Format::OpenMetrics } else { Format::Text };
        let text = written(format, |out| {
            out.family("x", Kind::Gauge, &help);
            out.sample("x", [("l", value.as_str())], true);
        });
        let parsed = parse(&text, format);
        let (labels, _) = parsed.all("x").next().unwrap();
        proptest::prop_assert_eq!(&labels["l"], &value);
    }
}
