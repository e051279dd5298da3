//! Series whose texts anybody may have made, read back by a reader that forgives nothing.

#[path = "../../src/show/tests/parser.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod parser;

use stdiowatch::show::exposition::{Exposition, Format, Kind};

use super::Bytes;

/// The input is texts of labels and of help, and numbers.
pub fn run(data: &[u8]) {
    for format in [Format::Text, Format::OpenMetrics] {
        written(&mut Bytes::new(data), format);
    }
}

fn written(bytes: &mut Bytes<'_>, format: Format) {
    let mut out = Exposition::new(format, 0);
    let mut wanted = Vec::new();
    let help = bytes.text();
    out.family("f_ratio", Kind::Gauge, &help);
    for n in 0..3 {
        let (label, value) = (bytes.text(), finite(bytes.number()));
        out.sample("f_ratio", [("n", ["0", "1", "2"][n]), ("text", label.as_str())], value);
        wanted.push((n, label, value));
    }
    let (label, counts) = (bytes.text(), [u64::from(bytes.byte()), u64::from(bytes.byte()), u64::from(bytes.byte())]);
    let below: Vec<(f64, u64)> = [0.1, 1.0].into_iter().zip([counts[0], counts[0] + counts[1]]).collect();
    let all = counts.iter().sum();
    out.family("h_seconds", Kind::Histogram, &help);
    out.histogram("h_seconds", [("text", label.as_str())], below.into_iter(), finite(bytes.number()), all);
    out.family("c_total", Kind::Counter, "h");
    out.sample("c_total", [], all);
    out.end();
    let text = out.into_text();
    let parsed = parser::parse(&text, format);
    let mut series = parsed.all("f_ratio");
    assert_eq!(parsed.all("f_ratio").count(), 3);
    for (n, label, value) in wanted {
        let found = series.find(|(labels, _)| labels["n"] == n.to_string()).expect("it was written");
        assert_eq!((found.0["text"].as_str(), found.1.to_bits()), (label.as_str(), value.to_bits()), "{text}");
    }
    assert_eq!(unescaped(&parsed.help["f_ratio"], format), help);
    assert_eq!(parsed.all("h_seconds_bucket").count(), 3);
    assert!(parsed.all("h_seconds_count").all(|(labels, count)| labels["text"] == label && count.to_bits() == (all as f64).to_bits()));
}

fn finite(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number }
}

/// What a header's text says. Only OpenMetrics escapes quotes there.
fn unescaped(text: &str, format: Format) -> String {
    let mut chars = text.chars();
    let mut said = String::new();
    while let Some(c) = chars.next() {
        said.push(match c {
            '\\' => match chars.next().expect("an escape ends") {
                'n' => '\n',
                '\\' => '\\',
                '"' if format == Format::OpenMetrics => '"',
                other => panic!("\\{other} in {text}"),
            },
            other => other,
        });
    }
    said
}
