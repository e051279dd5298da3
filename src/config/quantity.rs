//! Durations and sizes as people write them: `1500ms`, `5s`, `2m`, `1h`; `1024`, `64KB`, `16MiB`.

use std::time::Duration;

use crate::words::printable;

/// The longest duration: a year. Beyond it somebody mistyped, and sums must not overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// How a duration is written, as a regular expression.
pub(super) const DURATION: &str = r"^([0-9]+\.?[0-9]*|\.[0-9]+)(ms|s|m|min|h)$";
/// How a size is written where it is no number.
pub(super) const SIZE: &str = "^[0-9]+(B|KB|kB|KiB|MB|MiB|GB|GiB|TB|TiB)?$";

/// Reads a duration.
///
/// # Errors
///
/// In words, with what would be right.
pub fn duration(text: &str) -> Result<Duration, String> {
    const RIGHT: &str = "write it with a unit, as in 1500ms, 5s, 2m or 1h";
    if text.starts_with('-') {
        return Err(format!("a duration cannot be negative; {RIGHT}"));
    }
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ns: u128 = match unit {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(format!("the unit is missing; {RIGHT}")),
        _ => return Err(format!("\"{}\" is no unit of time; {RIGHT}", printable(unit, 20))),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || whole.is_empty() && fraction.is_empty() {
        return Err(format!("there is no number; {RIGHT}"));
    }
    let too_long = || "longer than a year".to_owned();
    let whole: u128 = if whole.is_empty() { 0 } else { u128::from(whole.parse::<u64>().map_err(|_| too_long())?) };
    // Twelve digits are nanoseconds even of hours.
    let part = (1u32..).zip(fraction.bytes().take(12)).map(|(place, digit)| u128::from(digit - b'0') * unit_ns / 10u128.pow(place)).sum::<u128>();
    let duration = u64::try_from(whole * unit_ns + part).map(Duration::from_nanos).map_err(|_| too_long())?;
    if duration > LONGEST {
        return Err(too_long());
    }
    Ok(duration)
}

/// Reads a duration that may not be zero.
///
/// # Errors
///
/// As [`duration`].
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    at_least(duration(text)?, Duration::from_nanos(1))
}

/// Reads the time from one probe to the next: a second at the least.
///
/// # Errors
///
/// As [`duration`].
pub fn interval(text: &str) -> Result<Duration, String> {
    at_least(duration(text)?, SECOND)
}

/// The shortest time from one probe to the next.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// What is measured, and within which bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A duration, this long at the least.
    Duration(Duration),
    /// A size in bytes: the smallest and the largest.
    Size(u64, u64),
    /// A whole number: the smallest and the largest.
    Count(u32, u32),
}

/// So much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measured {
    /// A duration.
    Duration(Duration),
    /// A size, or a number.
    Number(u64),
}

impl Amount {
    /// How it is written, for messages.
    pub(super) fn right(self) -> String {
        match self {
            Amount::Duration(_) => "a duration, as in 1500ms, 5s, 2m or 1h".to_owned(),
            Amount::Size(..) => "a size, as in 512KiB, 16MiB or 1GiB".to_owned(),
            Amount::Count(least, most) => format!("a whole number from {least} to {most}"),
        }
    }

    /// Its short name in the documentation.
    pub(super) fn name(self) -> String {
        match self {
            Amount::Duration(least) if least >= SECOND => "duration, `1s` or more".to_owned(),
            Amount::Duration(least) if least.is_zero() => "duration".to_owned(),
            Amount::Duration(_) => "duration, more than zero".to_owned(),
            Amount::Size(least, _) => format!("size, `{}` or more", shown_size(least)),
            Amount::Count(least, most) => format!("{least} to {most}"),
        }
    }

    /// Reads so much of it.
    ///
    /// # Errors
    ///
    /// In words, with what would be right.
    pub(super) fn read(self, text: &str) -> Result<Measured, String> {
        match self {
            Amount::Duration(least) => duration(text).and_then(|d| at_least(d, least)).map(Measured::Duration),
            Amount::Size(least, most) => {
                let bytes = size(text)?;
                if bytes < least {
                    Err(format!("too little; it is {} at the least", shown_size(least)))
                } else if bytes > most {
                    Err(format!("too much; it is {} at the most", shown_size(most)))
                } else {
                    Ok(Measured::Number(bytes))
                }
            }
            Amount::Count(least, most) => {
                let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                let number = digits.then(|| text.parse::<u64>().ok()).flatten();
                let within = number.filter(|n| (u64::from(least)..=u64::from(most)).contains(n));
                within.map(Measured::Number).ok_or_else(|| format!("it has to be {}", self.right()))
            }
        }
    }
}

fn at_least(duration: Duration, least: Duration) -> Result<Duration, String> {
    if duration >= least {
        Ok(duration)
    } else if least >= SECOND {
        Err("a server is launched at most once a second; give 1s or more".to_owned())
    } else {
        Err("it has to be longer than zero".to_owned())
    }
}

/// A duration, as [`duration`] reads it.
#[must_use]
pub fn shown_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (duration.subsec_nanos(), seconds) {
        (0, _) if seconds > 0 && seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        (0, _) if seconds > 0 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        (0, _) => format!("{seconds}s"),
        (nanos, _) => {
            let text = format!("{}.{:06}", u128::from(seconds) * 1000 + u128::from(nanos / 1_000_000), nanos % 1_000_000);
            format!("{}ms", text.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

/// The units of a size, the largest first, and what each comes to in bytes.
const UNITS: [(&str, u64); 10] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1000),
    ("kB", 1000),
    ("B", 1),
];

/// Reads a size, in bytes where it has no unit.
///
/// # Errors
///
/// In words, with what would be right.
pub fn size(text: &str) -> Result<u64, String> {
    const RIGHT: &str = "write it as in 512KiB, 16MiB, 1GiB or, in bytes, 1048576";
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(format!("there is no number; {RIGHT}"));
    }
    let factor = match UNITS.into_iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => factor,
        None if unit.is_empty() => 1,
        None if unit.starts_with('.') => return Err(format!("a size is a whole number; {RIGHT}")),
        None => return Err(format!("\"{}\" is no unit of size; {RIGHT}", printable(unit, 20))),
    };
    number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).ok_or_else(|| "more than there can be".to_owned())
}

/// A size, as [`size`] reads it.
#[must_use]
pub fn shown_size(bytes: u64) -> String {
    let binary = UNITS.into_iter().find(|(name, factor)| name.ends_with("iB") && bytes > 0 && bytes.is_multiple_of(*factor));
    binary.map_or_else(|| bytes.to_string(), |(name, factor)| format!("{}{name}", bytes / factor))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (text, ms) in [("1500ms", 1500), ("5s", 5000), ("2m", 120_000), ("1h", 3_600_000), ("0.5s", 500), ("0s", 0)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, word) in [
            ("5", "unit is missing"),
            ("-5s", "negative"),
            ("5 s", "no unit"),
            ("s", "no number"),
            ("", "unit is missing"),
            ("99999h", "year"),
            ("1e400s", "no unit"),
            ("1.2.3s", "no number"),
        ] {
            let error = duration(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(positive_duration("0s").is_err());
        assert!(interval("999ms").is_err() && interval("1s").is_ok());
    }

    #[test]
    fn sizes_are_bytes_unless_they_have_a_unit() {
        for (text, bytes) in [("1024", 1024), ("16MiB", 16 << 20), ("64KB", 64_000), ("64kB", 64_000), ("1GiB", 1 << 30), ("7B", 7), ("0", 0)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for (text, word) in [("", "no number"), ("-1", "no number"), ("1.5MiB", "whole"), ("16M", "\"M\" is no unit"), ("99999999TiB", "more than")] {
            let error = size(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn they_are_shown_as_people_write_them() {
        for text in ["1500ms", "5s", "2m", "1h", "0s", "1.5ms", "90s"] {
            assert_eq!(shown_duration(duration(text).unwrap()), text);
        }
        for text in ["16MiB", "512KiB", "1000", "0", "1TiB"] {
            assert_eq!(shown_size(size(text).unwrap()), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_as_the_same(ms in 0u64..31_000_000_000, bytes: u64) {
            let time = Duration::from_millis(ms);
            prop_assert_eq!(duration(&shown_duration(time)), Ok(time));
            prop_assert_eq!(size(&shown_size(bytes)), Ok(bytes));
        }
    }
}
