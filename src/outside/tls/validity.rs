//! From when to when a certificate is valid (RFC 5280, 4.1.2.5), and of which version it is.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::der::{Elements, SEQUENCE, first};

/// The two ways to write a moment: with two digits for the year, and with four.
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// Of a serial number.
const INTEGER: u8 = 0x02;

/// The first and the last second in which a certificate, in DER, is valid, since the Unix epoch. `None` where it is no
/// certificate.
pub(super) fn validity(certificate: &[u8]) -> Option<(i64, i64)> {
    let signed = first(first(certificate, SEQUENCE)?, SEQUENCE)?;
    // After the algorithm and the issuer.
    let validity = Elements(signed).filter(|(tag, _)| *tag == SEQUENCE).nth(2)?.1;
    let mut moments = Elements(validity).map(|(tag, text)| moment(tag, text));
    Some((moments.next()??, moments.next()??))
}

/// Whether a certificate, in DER, is of X.509 version 1: it does not say its version then, and has no extensions (RFC 5280, 4.1.2.1).
pub(super) fn is_of_version_1(certificate: &[u8]) -> bool {
    let signed = first(certificate, SEQUENCE).and_then(|whole| first(whole, SEQUENCE));
    signed.and_then(|signed| Elements(signed).next()).is_some_and(|(tag, _)| tag == INTEGER)
}

fn moment(tag: u8, text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z").filter(|digits| digits.is_ascii() && digits.iter().all(u8::is_ascii_digit))?;
    let (year, rest) = match tag {
        UTC_TIME if digits.len() == 12 => (century(number(&digits[..2])?), &digits[2..]),
        GENERALIZED_TIME if digits.len() == 14 => (number(&digits[..4])?, &digits[4..]),
        _ => return None,
    };
    let two = |at: usize| number(&rest[at..at + 2]).and_then(|n| i8::try_from(n).ok());
    let moment = DateTime::new(year, two(0)?, two(2)?, two(4)?, two(6)?, two(8)?, 0).ok()?;
    // What is meant never to expire is written as a moment after the last one that there is.
    Some(TimeZone::UTC.to_timestamp(moment).unwrap_or(Timestamp::MAX).as_second())
}

/// The year that two digits stand for: 1950 to 2049.
const fn century(two: i16) -> i16 {
    if two < 50 { 2000 + two } else { 1900 + two }
}

fn number(digits: &[u8]) -> Option<i16> {
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn not_after(certificate: &[u8]) -> Option<i64> {
        validity(certificate).map(|(_, last)| last)
    }

    fn until(year: i32, month: u8, day: u8) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2025, 1, 1);
        params.not_after = date_time_ymd(year, month, day);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn both_ways_of_writing_a_moment_are_read() {
        assert_eq!(not_after(&until(2026, 1, 1)), Some(1_767_225_600));
        assert_eq!(validity(&until(2026, 1, 1)).map(|(first, _)| first), Some(1_735_689_600));
        assert_eq!(not_after(&until(2049, 12, 31)), Some(2_524_521_600));
        assert_eq!(not_after(&until(2050, 1, 1)), Some(2_524_608_000), "from here on with four digits");
        assert_eq!(moment(UTC_TIME, b"500101000000Z"), Some(-631_152_000));
        assert_eq!(moment(GENERALIZED_TIME, b"99991231235959Z"), Some(Timestamp::MAX.as_second()), "never");
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for (tag, text) in [
            (UTC_TIME, "260101000000"),
            (UTC_TIME, "20260101000000Z"),
            (GENERALIZED_TIME, "260101000000Z"),
            (UTC_TIME, "261301000000Z"),
            (UTC_TIME, "2601010000+1Z"),
            (0x0c, "260101000000Z"),
        ] {
            assert_eq!(moment(tag, text.as_bytes()), None, "{text}");
        }
        let whole = until(2026, 1, 1);
        assert!((0..whole.len()).all(|end| not_after(&whole[..end]).is_none()));
    }

    proptest! {
        #[test]
        fn anything_may_be_called_a_certificate(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..400, byte: u8) {
            let _ = (not_after(&bytes), is_of_version_1(&bytes));
            let mut changed = until(2026, 1, 1);
            let at = at % changed.len();
            changed[at] = byte;
            let _ = not_after(&changed);
        }
    }
}
