//! Which format a scraper asks for (RFC 9110, 12.5.1), and whether packed (12.5.3).

use crate::show::exposition::Format;

/// The format for a request with these `Accept` fields.
///
/// OpenMetrics only where it is named, in the version that we write or in none, and preferred no
/// less than the text format. Whatever else is asked for gets the text format: never 406.
#[must_use]
pub fn format<'a>(fields: impl IntoIterator<Item = &'a str>) -> Format {
    let mut open_metrics = 0.0_f64;
    // How much is made of the text format, by how exactly it is named: the most exact counts.
    let mut text: [Option<f64>; 3] = [None; 3];
    for range in fields.into_iter().flat_map(|field| field.split(',')).map(Range::parse) {
        match (range.media.as_str(), range.version) {
            ("application/openmetrics-text", None | Some("1.0.0")) => open_metrics = open_metrics.max(range.quality),
            ("text/plain", None | Some("0.0.4")) => raise(&mut text[0], range.quality),
            ("text/*", _) => raise(&mut text[1], range.quality),
            ("*/*", _) => raise(&mut text[2], range.quality),
            _ => {}
        }
    }
    let text = text.into_iter().flatten().next().unwrap_or_default();
    if open_metrics > 0.0 && open_metrics >= text { Format::OpenMetrics } else { Format::Text }
}

/// Whether to pack the answer to a request with these `Accept-Encoding` fields with gzip: where it is
/// allowed, and preferred no less than to leave it as it is.
#[must_use]
pub fn gzip<'a>(fields: impl IntoIterator<Item = &'a str>) -> bool {
    let [mut named, mut any, mut unpacked] = [None; 3];
    for range in fields.into_iter().flat_map(|field| field.split(',')).map(Range::parse) {
        match range.media.as_str() {
            "gzip" | "x-gzip" => raise(&mut named, range.quality),
            "*" => raise(&mut any, range.quality),
            "identity" => raise(&mut unpacked, range.quality),
            _ => {}
        }
    }
    let packed = named.or(any).unwrap_or_default();
    packed > 0.0 && packed >= unpacked.unwrap_or_default()
}

fn raise(quality: &mut Option<f64>, to: f64) {
    *quality = Some(quality.map_or(to, |q| q.max(to)));
}

struct Range<'a> {
    media: String,
    version: Option<&'a str>,
    quality: f64,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Range<'a> {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let mut range = Range { media, version: None, quality: 1.0 };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "version" => range.version = Some(value),
                // What is no number is no preference.
                "q" => range.quality = value.parse().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or_default(),
                _ => {}
            }
        }
        range
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(accept: &str) -> Format {
        format([accept])
    }

    #[test]
    fn open_metrics_is_written_for_who_names_and_prefers_it() {
        for accept in [
            // Prometheus 2.42 and 3.
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.2",
            "application/openmetrics-text",
            "APPLICATION/OpenMetrics-Text; Version=\"1.0.0\"",
            "text/plain;q=0.9, application/openmetrics-text",
            "text/*;q=1, text/plain;q=0.1, application/openmetrics-text;q=0.5",
        ] {
            assert_eq!(chosen(accept), Format::OpenMetrics, "{accept}");
        }
        assert_eq!(format(["text/plain;q=0.1", "application/openmetrics-text"]), Format::OpenMetrics);
    }

    #[test]
    fn what_is_packed_is_for_who_can_unpack_it() {
        for accept in ["gzip", "GZIP", "x-gzip", "gzip, deflate, br", "deflate;q=0.5, gzip;q=0.1", "*", "identity;q=0.5, gzip", "br, *;q=0.1"] {
            assert!(gzip([accept]), "{accept}");
        }
        for accept in ["", "identity", "deflate, br", "gzip;q=0", "gzip;q=0, *", "*;q=0", "gzip;q=0.5, identity", "gzip;q=x", "gzippy"] {
            assert!(!gzip([accept]), "{accept}");
        }
        assert!(gzip(["br", "gzip"]) && !gzip([]));
    }

    #[test]
    fn text_is_written_for_everybody_else() {
        for accept in [
            "",
            "*/*",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            "text/plain;version=0.0.4;q=1,*/*;q=0.1",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=0.0, */*;q=0",
            "application/openmetrics-text;version=2.0.0",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;q=0.3, text/plain;q=0.9",
            "application/openmetrics-text;q=huge",
            "application/openmetrics-text;q=NaN",
            "image/png",
            ";;;,,,=;q",
        ] {
            assert_eq!(chosen(accept), Format::Text, "{accept}");
        }
        assert_eq!(format([]), Format::Text);
    }
}
