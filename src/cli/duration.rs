//! Durations as people write them: `1500ms`, `5s`, `2m`, `1h`.

use std::time::Duration;

/// The longest duration: a year. Beyond it somebody mistyped, and sums must not overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Reads a duration.
///
/// # Errors
///
/// In words, with what would be right.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    const RIGHT: &str = "write it with a unit, as in 1500ms, 5s, 2m or 1h";
    if text.starts_with('-') {
        return Err(format!("a duration cannot be negative; {RIGHT}"));
    }
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1.0,
        "s" => 1e3,
        "m" | "min" => 60e3,
        "h" => 3600e3,
        "" => return Err(format!("the unit is missing; {RIGHT}")),
        _ => return Err(format!("\"{}\" is no unit of time; {RIGHT}", crate::words::printable(unit, 20))),
    };
    let number: f64 = number.parse().map_err(|_| format!("there is no number; {RIGHT}"))?;
    let duration = Duration::try_from_secs_f64(number * unit_ms / 1e3).map_err(|_| format!("too long; {RIGHT}"))?;
    if duration > LONGEST {
        return Err("longer than a year".to_owned());
    }
    Ok(duration)
}

/// Reads a duration that may not be zero.
///
/// # Errors
///
/// As [`parse`].
pub(super) fn parse_positive(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err("it has to be longer than zero".to_owned()),
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (text, ms) in [("1500ms", 1500), ("5s", 5000), ("2m", 120_000), ("1h", 3_600_000), ("0.5s", 500), ("0s", 0)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
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
            let error = parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(parse_positive("0s").is_err());
    }
}
