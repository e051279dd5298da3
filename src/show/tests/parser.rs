//! A reader of both formats that forgives nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::show::exposition::Format;

/// A series: its name, and its labels by name.
pub(super) type Series = (String, BTreeMap<String, String>);

/// What a text says.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// Each family's type, by its name.
    pub(super) types: BTreeMap<String, String>,
    pub(super) units: BTreeMap<String, String>,
    pub(super) help: BTreeMap<String, String>,
    pub(super) series: BTreeMap<Series, f64>,
}

impl Parsed {
    /// The value of a series whose labels are written as `a=b`.
    #[track_caller]
    pub(super) fn value(&self, name: &str, labels: &[&str]) -> f64 {
        let labels = labels.iter().map(|l| l.split_once('=').unwrap()).map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        let key = (name.to_owned(), labels);
        *self.series.get(&key).unwrap_or_else(|| panic!("no series {key:?}"))
    }

    /// Every series of this name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a BTreeMap<String, String>, f64)> {
        self.series.iter().filter(move |((n, _), _)| n == name).map(|((_, labels), value)| (labels, *value))
    }
}

/// Reads `text`, and panics at the first thing that is wrong with it.
pub(super) fn parse(text: &str, format: Format) -> Parsed {
    let mut parsed = Parsed::default();
    let mut family = String::new();
    let mut over = false;
    let body = text.strip_suffix('\n').expect("the last line ends");
    for line in body.split('\n') {
        assert!(!over, "after # EOF: {line}");
        if line == "# EOF" && format == Format::OpenMetrics {
            over = true;
        } else if let Some(comment) = line.strip_prefix("# ") {
            header(comment, &mut family, &mut parsed, format);
        } else {
            let (series, value) = sample(line);
            let kind = &parsed.types[&family];
            assert!(belongs(&series.0, &family, kind, format), "{line} is not of {family}");
            assert!(parsed.series.insert(series, value).is_none(), "twice: {line}");
        }
    }
    assert_eq!(over, format == Format::OpenMetrics);
    histograms(&parsed);
    parsed
}

fn header(comment: &str, family: &mut String, parsed: &mut Parsed, format: Format) {
    let mut words = comment.splitn(3, ' ');
    let (keyword, name, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    assert!(is_name(name), "{comment}");
    let of = match keyword {
        "HELP" => {
            assert!(!parsed.help.contains_key(name), "a family comes once: {name}");
            name.clone_into(family);
            &mut parsed.help
        }
        "TYPE" => &mut parsed.types,
        "UNIT" if format == Format::OpenMetrics => {
            assert!(name.ends_with(&format!("_{rest}")), "{comment}");
            &mut parsed.units
        }
        _ => panic!("{comment}"),
    };
    assert_eq!(name, family, "{comment}");
    assert!(of.insert(name.to_owned(), rest.to_owned()).is_none(), "{comment}");
}

fn belongs(sample: &str, family: &str, kind: &str, format: Format) -> bool {
    let suffixes: &[&str] = match (kind, format) {
        ("counter", Format::OpenMetrics) => &["_total"],
        ("info", Format::OpenMetrics) => &["_info"],
        ("histogram", _) => &["_bucket", "_sum", "_count"],
        ("counter" | "gauge", _) => &[""],
        _ => panic!("{kind}"),
    };
    sample.strip_prefix(family).is_some_and(|rest| suffixes.contains(&rest))
}

fn sample(line: &str) -> (Series, f64) {
    let end = line.find(['{', ' ']).unwrap();
    let (name, rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest, line),
        None => (BTreeMap::new(), rest),
    };
    let value = value.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
    let number = match value {
        "+Inf" => f64::INFINITY,
        _ => value.parse().unwrap_or_else(|_| panic!("{line}")),
    };
    assert!(!number.is_nan(), "{line}");
    ((name.to_owned(), labels), number)
}

fn labels<'a>(mut rest: &'a str, line: &str) -> (BTreeMap<String, String>, &'a str) {
    let mut labels = BTreeMap::new();
    loop {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
        assert!(is_name(name) && !name.contains(':'), "{line}");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().unwrap_or_else(|| panic!("{line}")) {
                (at, '"') => break at + 1,
                (_, '\\') => value.push(match chars.next().unwrap().1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    c => panic!("\\{c} in {line}"),
                }),
                (_, c) => value.push(c),
            }
        };
        assert!(labels.insert(name.to_owned(), value).is_none(), "{line}");
        rest = &after[end..];
        match rest.split_at(1) {
            (",", more) => rest = more,
            ("}", value) => return (labels, value),
            _ => panic!("{line}"),
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}

/// Buckets only grow, the last is for all, and all are the count.
fn histograms(parsed: &Parsed) {
    for (family, _) in parsed.types.iter().filter(|(_, kind)| *kind == "histogram") {
        let servers: BTreeSet<_> = parsed.all(&format!("{family}_count")).map(|(labels, count)| (labels.clone(), count.to_bits())).collect();
        for (labels, count) in servers {
            let mut buckets: Vec<(f64, f64)> = parsed
                .all(&format!("{family}_bucket"))
                .filter(|(of, _)| labels.iter().all(|(name, value)| of.get(name) == Some(value)))
                .map(|(of, n)| (if of["le"] == "+Inf" { f64::INFINITY } else { of["le"].parse().unwrap() }, n))
                .collect();
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.is_sorted_by(|a, b| a.1 <= b.1), "{family}");
            assert_eq!(buckets.last(), Some(&(f64::INFINITY, f64::from_bits(count))), "{family}");
        }
    }
}
