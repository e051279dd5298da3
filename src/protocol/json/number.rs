//! Numbers in canonical form.
//!
//! RFC 8785 writes every number as ECMAScript writes the nearest double. That would make different
//! schemas alike (`9007199254740993` and `9007199254740992`), so what a double does not hold is
//! kept exactly instead: an integer (written as one, without a point and an exponent) that its double
//! does not give back, more than 17 significant digits, and what is too large or too small. For every
//! other number the result is the RFC's.

use std::cmp::Ordering;

/// Whose form a number was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// RFC 8785's.
    Rfc8785,
    /// Ours, because the RFC's would be another number.
    Exact,
}

/// Appends the number `token` (in RFC 8259's grammar), canonical.
pub(super) fn write(token: &[u8], out: &mut Vec<u8>) -> Form {
    if is_small_integer(token) {
        out.extend_from_slice(token);
        return Form::Rfc8785;
    }
    let token = String::from_utf8_lossy(token);
    let double: f64 = token.parse().unwrap_or(f64::INFINITY);
    if double.is_finite() && double != 0.0 {
        // `Number::toString` of ECMA-262, section 6.1.6.1.20.
        let mut buffer = ryu_js::Buffer::new();
        let text = buffer.format_finite(double);
        let is_integer = !token.contains(['.', 'e', 'E']);
        let is_held = if is_integer { Decimal::of(text) == Decimal::of(&token) } else { has_17_digits_at_most(&token) };
        if is_held {
            out.extend_from_slice(text.as_bytes());
            return Form::Rfc8785;
        }
    }
    let decimal = Decimal::of(&token);
    if decimal.digits.is_empty() {
        out.push(b'0');
        return Form::Rfc8785;
    }
    out.extend_from_slice(decimal.exact().as_bytes());
    Form::Exact
}

fn has_17_digits_at_most(token: &str) -> bool {
    token.len() <= 17 || Decimal::of(token).digits.len() <= 17
}

/// Whether it is an integer that needs no second look: up to 15 digits, and not `-0`.
fn is_small_integer(token: &[u8]) -> bool {
    let digits = token.strip_prefix(b"-").unwrap_or(token);
    digits.len() <= 15 && digits.iter().all(u8::is_ascii_digit) && token != b"-0"
}

/// Exponents beyond this, either way, are taken for it.
const MAX_EXPONENT: i64 = 1 << 62;

/// How two numbers compare, whatever their size.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (Decimal::of(a), Decimal::of(b));
    // Without zeros at either end, digits compare as their letters do.
    let size = |d: &Decimal, other: &Decimal| match (d.digits.is_empty(), other.digits.is_empty()) {
        (false, false) => d.point.cmp(&other.point).then_with(|| d.digits.cmp(&other.digits)),
        (d, other) => other.cmp(&d),
    };
    let sign = |d: &Decimal| if d.digits.is_empty() { 0 } else { 1 - 2 * i8::from(d.negative) };
    sign(&a).cmp(&sign(&b)).then_with(|| if a.negative { size(&b, &a) } else { size(&a, &b) })
}

/// Whether a number has no fraction.
pub(super) fn is_integral(token: &str) -> bool {
    let decimal = Decimal::of(token);
    decimal.digits.is_empty() || i64::try_from(decimal.digits.len()).is_ok_and(|length| length <= decimal.point)
}

/// ±0.DIGITS × 10^point, without zeros at either end of the digits.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    point: i64,
}

impl Decimal {
    fn of(token: &str) -> Decimal {
        let (negative, token) = token.strip_prefix('-').map_or((false, token), |t| (true, t));
        let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let leading = all.len() - all.trim_start_matches('0').len();
        let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
        let beyond = if exponent.starts_with('-') { -MAX_EXPONENT } else { MAX_EXPONENT };
        let exponent = exponent.parse::<i64>().unwrap_or(beyond).clamp(-MAX_EXPONENT, MAX_EXPONENT);
        let point = exponent.saturating_add(length(whole)).saturating_sub(length(&all[..leading]));
        // Here again, or what is written for a number beyond would be read as another one.
        let point = point.clamp(-MAX_EXPONENT, MAX_EXPONENT);
        Decimal { negative, digits: all.trim_matches('0').to_owned(), point }
    }

    /// Digits and exponent as they are; integers of up to 400 digits in full.
    fn exact(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let digits = &self.digits;
        let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        if self.point >= length && self.point <= 400 {
            let zeros = usize::try_from(self.point - length).unwrap_or(0);
            return format!("{sign}{digits}{}", "0".repeat(zeros));
        }
        format!("{sign}0.{digits}e{}", self.point)
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, compare, is_integral, write};

    fn canonical(token: &str) -> String {
        form(token).0
    }

    fn form(token: &str) -> (String, Form) {
        let mut out = Vec::new();
        let form = write(token.as_bytes(), &mut out);
        (String::from_utf8(out).unwrap(), form)
    }

    #[test]
    fn as_the_examples_of_rfc_8785_have_it() {
        // RFC 8785, appendix B, as far as JSON text can say them.
        for (token, wanted) in [
            ("0", "0"),
            ("-0", "0"),
            ("0.0", "0"),
            ("5e-324", "5e-324"),
            ("-5e-324", "-5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("9007199254740992", "9007199254740992"),
            ("295147905179352830000.0", "295147905179352830000"),
            ("9.999999999999997e22", "9.999999999999997e+22"),
            ("1e23", "1e+23"),
            ("999999999999999700000.0", "999999999999999700000"),
            ("1e21", "1e+21"),
            ("9.999999999999997e-7", "9.999999999999997e-7"),
            ("0.000001", "0.000001"),
            ("333333333.3333332", "333333333.3333332"),
            ("333333333.33333325", "333333333.33333325"),
            ("-0.0000033333333333333333", "-0.0000033333333333333333"),
            ("1424953923781206.2", "1424953923781206.2"),
        ] {
            assert_eq!(canonical(token), wanted, "{token}");
        }
    }

    #[test]
    fn one_number_has_one_form() {
        for (tokens, wanted) in [
            (&["1", "1.0", "1e0", "10e-1", "0.1E1", "1.00e+00"][..], "1"),
            (&["100", "1e2", "1E+2"], "100"),
            (&["0.10000000000000001", "0.1", "1e-1"], "0.1"),
            (&["-1.5", "-15e-1"], "-1.5"),
            (&["9007199254740994", "9007199254740994.0"], "9007199254740994"),
            (&["1000000000000000000000", "1e21", "1E+21"], "1e+21"),
            (&["295147905179352830000", "295147905179352830000.0"], "295147905179352830000"),
            (&["-999999999999999", "-999999999999999.0"], "-999999999999999"),
        ] {
            for token in tokens {
                assert_eq!(form(token), (wanted.to_owned(), Form::Rfc8785), "{token}");
            }
        }
    }

    #[test]
    fn what_a_double_does_not_hold_is_kept_exactly() {
        for (token, wanted) in [
            ("9007199254740993", "9007199254740993"),
            ("-123456789012345678901234567890", "-123456789012345678901234567890"),
            ("1e999", "0.1e1000"),
            ("1e-999", "0.1e-998"),
            ("0.10000000000000000001", "0.10000000000000000001e0"),
            ("12.30000000000000000001", "0.1230000000000000000001e2"),
            ("1e99999999999999999999", "0.1e4611686018427387904"),
            ("0.1e4611686018427387905", "0.1e4611686018427387904"),
            ("0.001e-99999999999999999999", "0.1e-4611686018427387904"),
            ("-1e-99999999999999999999", "-0.1e-4611686018427387903"),
        ] {
            assert_eq!(form(token), (wanted.to_owned(), Form::Exact), "{token}");
        }
    }

    #[test]
    fn numbers_compare_by_their_value() {
        let ascending =
            ["-1e999", "-10", "-2.5", "-2", "-1e-9", "0", "1e-9", "0.5", "1", "1.5", "9", "10", "9007199254740992", "9007199254740993", "1e999"];
        for (n, a) in ascending.iter().enumerate() {
            for (m, b) in ascending.iter().enumerate() {
                assert_eq!(compare(a, b), n.cmp(&m), "{a} {b}");
            }
        }
        assert!(compare("-0", "0.0").is_eq() && compare("1e2", "100.0").is_eq());
    }

    #[test]
    fn integers_are_known_however_they_are_written() {
        assert!(["0", "-0.0", "1", "1.0", "-1.5e1", "1e999", "1.25e2"].iter().all(|n| is_integral(n)));
        assert!(!["0.5", "1e-1", "1.25e1", "-2.5"].iter().any(|n| is_integral(n)));
    }
}
