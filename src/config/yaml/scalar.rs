//! What a plain scalar is: the core schema of YAML 1.2.2 (10.3.2).

use super::super::tree::Value;

/// A scalar without quotes and without a tag.
pub(in super::super) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if is_number(text) => Value::Number(text.to_owned()),
        _ => Value::Text(text.to_owned()),
    }
}

fn is_number(text: &str) -> bool {
    if let Some(digits) = text.strip_prefix("0x") {
        return !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return !digits.is_empty() && digits.bytes().all(|b| (b'0'..=b'7').contains(&b));
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || is_decimal(unsigned)
}

/// `12`, `1.5`, `1.`, `.5`, `1e3`.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let sound = if whole.is_empty() { digits(fraction) } else { digits(whole) && (fraction.is_empty() || digits(fraction)) };
    sound && exponent.is_none_or(|e| digits(e.strip_prefix(['-', '+']).unwrap_or(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_what_the_core_schema_says() {
        for text in ["0", "12", "-1", "+1", "007", "1.5", "1.", ".5", "-.5", "1e3", "1.5E-3", "0x1F", "0o17", ".inf", "-.INF", "+.Inf", ".nan"] {
            assert_eq!(plain(text), Value::Number(text.to_owned()), "{text}");
        }
        for text in [
            "yes",
            "no",
            "on",
            "off",
            "y",
            "tRue",
            "nUll",
            ".",
            "-",
            "+",
            "1_000",
            "0x",
            "0xg",
            "0o8",
            "-0x1",
            "1:30",
            "1.2.3",
            "e3",
            "1e",
            "2024-01-01",
        ] {
            assert_eq!(plain(text), Value::Text(text.to_owned()), "{text}");
        }
        for text in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(plain(text), Value::Null, "{text}");
        }
        assert_eq!((plain("true"), plain("FALSE")), (Value::Bool(true), Value::Bool(false)));
    }
}
