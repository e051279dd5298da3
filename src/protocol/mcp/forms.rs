//! The forms of numbers and texts that the SDKs' clients take for what a member is to hold.

/// What text is a finite number, and which.
pub(super) fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok().filter(|n: &f64| n.is_finite())
}

/// A number from 0 to 1.
pub(super) fn is_share(text: &[u8]) -> bool {
    number(text).is_some_and(|n| (0.0..=1.0).contains(&n))
}

/// What pydantic takes for a URL begins with a scheme (RFC 3986, section 3.1).
pub(super) fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// What zod takes for a date with a time and its zone: `2025-01-12T15:00:58.5+01:00`, or `Z` for the zone. Of a day that
/// there is, without a leap second.
pub(super) fn is_moment(text: &[u8]) -> bool {
    let (Some(date), Some(rest)) = (text.get(..11), text.get(11..)) else { return false };
    let zone = rest.iter().position(|b| matches!(b, b'Z' | b'+' | b'-')).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(zone);
    let (time, fraction) = time.iter().position(|b| *b == b'.').map_or((time, None), |at| (&time[..at], Some(&time[at + 1..])));
    let is_time = numbers(time, b"00:00:00").is_some_and(|n| n[0] < 24 && n[1] < 60 && n[2] < 60);
    let is_fraction = fraction.is_none_or(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit));
    let offset = numbers(zone, b"+00:00").or_else(|| numbers(zone, b"-00:00"));
    let is_zone = zone == b"Z" || offset.is_some_and(|n| n[0] < 24 && n[1] < 60);
    numbers(date, b"0000-00-00T").is_some_and(|n| is_day(n[0], n[1], n[2])) && is_time && is_fraction && is_zone
}

/// The numbers in a text like `pattern`, whose zeros stand for digits.
fn numbers(text: &[u8], pattern: &[u8]) -> Option<Vec<u16>> {
    let fits = |(byte, wanted): (&u8, &u8)| if *wanted == b'0' { byte.is_ascii_digit() } else { byte == wanted };
    let is_like = text.len() == pattern.len() && text.iter().zip(pattern).all(fits);
    let digits = text.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let number = |digits: &[u8]| digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    is_like.then(|| digits.map(number).collect())
}

/// Whether there is this day in the Gregorian calendar.
fn is_day(year: u16, month: u16, day: u16) -> bool {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u16::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// What pydantic makes a boolean of.
pub(super) fn is_flag(text: &str) -> bool {
    ["true", "false", "t", "f", "yes", "no", "y", "n", "on", "off"].iter().any(|word| text.eq_ignore_ascii_case(word))
}
