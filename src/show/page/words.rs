//! What stands on the pages, in words.

use std::fmt::Write as _;
use std::time::Duration;

use crate::ledger::{Health, ServerState};
use crate::show::state::{since, word};
use crate::show::told::span;
use crate::words::Moment;

/// A state: its class in the style sheet, which is the name of its sign too, and the word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) class: &'static str,
    pub(super) word: &'static str,
}

/// How a server's state looks. No two states that differ have the same sign or the same word.
pub(super) fn look(health: Health) -> Look {
    use crate::judge::Verdict::{Fail, Pass, Unknown, Warn};
    let class = match health {
        Health::Known(Pass) => "up",
        Health::Known(Warn) => return Look { class: "warn", word: "up, with a warning" },
        Health::Known(Fail) => "down",
        Health::Known(Unknown) => "unknown",
        Health::NotProbed => "unprobed",
        Health::Stale { .. } => "stale",
    };
    Look { class, word: word(health) }
}

/// A moment, for machines and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// RFC 3339.
    pub(super) iso: String,
    /// To the second.
    pub(super) shown: String,
}

impl From<Moment> for Stamp {
    fn from(moment: Moment) -> Stamp {
        let iso = moment.rfc3339();
        let shown = match (iso.get(..10), iso.get(11..19)) {
            (Some(day), Some(time)) => format!("{day} {time} UTC"),
            _ => iso.clone(),
        };
        Stamp { iso, shown }
    }
}

/// For how long a server has counted as what it counts as; `None` where nothing is known of it.
pub(super) fn lasting(server: &ServerState, now: Moment) -> Option<String> {
    match server.health(now) {
        Health::Known(_) => since(server, now).map(|since| span(now.since(since))),
        Health::NotProbed | Health::Stale { .. } => None,
    }
}

/// A length of time that was measured or set.
pub(super) fn took(ms: f64) -> String {
    match ms {
        ms if ms < 9.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 9_950.0 => trimmed(format!("{:.1}", ms / 1e3)) + " s",
        ms if ms < 600_000.0 => format!("{:.0} s", ms / 1e3),
        ms => span(Duration::from_secs_f64(ms.min(1e12) / 1e3)),
    }
}

fn trimmed(number: String) -> String {
    number.strip_suffix(".0").map_or(number.clone(), str::to_owned)
}

/// Bytes, to three digits.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// `text` as one segment of a path (RFC 3986, 3.3): only unreserved characters stay.
pub(super) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_in_a_link() {
        assert_eq!(segment("a b?#%\"é.x"), "a%20b%3F%23%25%22%C3%A9.x");
    }

    #[test]
    fn a_span_is_told_in_its_greatest_unit() {
        for (seconds, told) in [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_800, "2 days")] {
            assert_eq!(span(Duration::from_secs(seconds)), told);
        }
    }

    #[test]
    fn what_was_measured_is_told_with_the_digits_that_matter() {
        for (ms, told) in [
            (0.0, "0.0 ms"),
            (1.26, "1.3 ms"),
            (9.96, "10 ms"),
            (999.4, "999 ms"),
            (999.6, "1 s"),
            (1540.0, "1.5 s"),
            (30_000.0, "30 s"),
            (7_200_000.0, "2 h"),
        ] {
            assert_eq!(took(ms), told);
        }
        assert_eq!((size(1023), size(1536), size(3 << 20)), ("1023 bytes".into(), "1.5 KiB".into(), "3.0 MiB".into()));
    }

    #[test]
    fn a_moment_is_shown_to_the_second() {
        let moment = Moment { up: Duration::ZERO, unix_ms: 1_767_225_600_123 };
        assert_eq!(Stamp::from(moment), Stamp { iso: "2026-01-01T00:00:00.123Z".to_owned(), shown: "2026-01-01 00:00:00 UTC".to_owned() });
        assert_eq!(Stamp::from(Moment { unix_ms: i64::MAX, ..moment }).shown, "");
    }
}
