//! How a secret is likely to be written by who leaks it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD as STANDARD_NO_PAD;

/// One way to write a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    /// What is looked for; [`SHORTEST`] bytes or more.
    pub(super) bytes: Box<[u8]>,
    /// It is the middle of something in base64, of which one digit on either side holds a part of the secret too.
    pub(super) spreads: bool,
}

/// The shortest form that is looked for, in bytes.
pub(super) const SHORTEST: usize = 4;
/// The shortest of base64: less is found in ordinary text.
const SHORTEST_BASE64: usize = 6;

/// What encoders of URLs leave alone besides letters and digits: RFC 3986 and Python's `quote_plus`, Python's
/// `quote`, JavaScript's `encodeURIComponent`, and forms.
const UNRESERVED: [&[u8]; 4] = [b"-_.~", b"-_.~/", b"-_.~!*'()", b"-_.*"];

/// The forms of `value`: as it is, in JSON (within JSON too), hexadecimal, base64 wherever it begins in there, and
/// in URLs.
pub(super) fn forms(value: &[u8]) -> Vec<Form> {
    let mut plain = vec![value.to_vec(), hex(value, HEX_LOWER), hex(value, HEX_UPPER)];
    // Most keys and tokens are the same in all of these.
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !value.iter().all(is_plain) {
        let once = std::str::from_utf8(value).map_or_else(|_| Vec::new(), json);
        plain.extend(once.iter().filter(|form| form.as_bytes() != value).flat_map(|form| json(form)).map(String::into_bytes));
        plain.extend(once.into_iter().map(String::into_bytes));
        for unreserved in UNRESERVED {
            for digits in [HEX_LOWER, HEX_UPPER] {
                plain.extend([url(value, unreserved, digits, false), url(value, unreserved, digits, true)]);
            }
        }
    }
    let plain = plain.into_iter().map(|bytes| Form { bytes: bytes.into(), spreads: false });
    let mut forms: Vec<Form> = plain.filter(|form| form.bytes.len() >= SHORTEST).chain(base64(value)).collect();
    forms.sort_unstable();
    forms.dedup_by(|a, b| a.bytes == b.bytes);
    forms
}

/// The inside of a JSON string: as most write it, with the slash escaped (PHP), with all but ASCII escaped (Python,
/// PHP), with what means something in HTML escaped (Go).
fn json(text: &str) -> Vec<String> {
    let Ok(quoted) = serde_json::to_string(text) else { return Vec::new() };
    let usual = &quoted[1..quoted.len() - 1];
    let html = |c: char| matches!(c, '<' | '>' | '&');
    vec![
        usual.to_owned(),
        usual.replace('/', "\\/"),
        escaped(usual, |c| !c.is_ascii(), false),
        escaped(usual, |c| !c.is_ascii(), true),
        escaped(&usual.replace('/', "\\/"), |c| !c.is_ascii(), false),
        escaped(usual, html, false),
    ]
}

/// `text` with every character that is `meant` as `\uXXXX`.
fn escaped(text: &str, meant: impl Fn(char) -> bool, upper: bool) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if !meant(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") });
        }
    }
    out
}

const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";
const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";

fn digits_of(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]
}

fn hex(value: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    value.iter().flat_map(|byte| digits_of(*byte, digits)).collect()
}

fn url(value: &[u8], unreserved: &[u8], digits: &[u8; 16], plus: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in value {
        match byte {
            b' ' if plus => out.push(b'+'),
            byte if byte.is_ascii_alphanumeric() || unreserved.contains(byte) => out.push(*byte),
            byte => {
                out.push(b'%');
                out.extend(digits_of(*byte, digits));
            }
        }
    }
    out
}

/// The digits that `value` alone determines, after none, one or two other bytes (three make four digits), whatever
/// comes before and after. With padding or without it: that is no part of these.
fn base64(value: &[u8]) -> Vec<Form> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let all = [&[0; 2][..before], value].concat();
        let (first, end) = ((before * 8).div_ceil(6), all.len() * 8 / 6);
        let digits = STANDARD_NO_PAD.encode(&all);
        let Some(core) = digits.get(first..end).filter(|core| core.len() >= SHORTEST_BASE64) else { continue };
        for core in [core.to_owned(), core.replace('+', "-").replace('/', "_")] {
            forms.push(Form { bytes: core.into_bytes().into(), spreads: true });
        }
    }
    forms
}

/// Whether a byte is a digit of base64, in either alphabet.
pub(super) const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(value: &str, form: &str) -> bool {
        forms(value.as_bytes()).iter().any(|known| &*known.bytes == form.as_bytes())
    }

    #[test]
    fn texts_are_written_as_encoders_write_them() {
        for (value, form) in [
            ("pa\"ss\\word", r#"pa\"ss\\word"#),
            ("pa\"ss", r#"pa\\\"ss"#),
            ("a/b&c<d", "a\\/b&c<d"),
            ("a/b&c<d", "a/b\\u0026c\\u003cd"),
            ("käse", "k\\u00e4se"),
            ("käse", "k\\u00E4se"),
            ("käse", "k%C3%A4se"),
            ("käse", "k%c3%a4se"),
            ("a b/c~", "a%20b%2Fc~"),
            ("a b/c~", "a+b%2fc%7e"),
            ("sk_live-1.2", "736b5f6c6976652d312e32"),
            ("a b/c~", "a%20b/c~"),
            ("it's!", "it's!"),
            ("it's!", "it%27s%21"),
            ("hunter2", "68756e74657232"),
            ("kk//", "6B6B2F2F"),
        ] {
            assert!(has(value, form), "{value} {form}");
        }
    }

    #[test]
    fn base64_is_known_wherever_the_value_begins() {
        let value = b"??>>hunter2";
        for engine in [STANDARD_NO_PAD, base64::prelude::BASE64_URL_SAFE_NO_PAD] {
            for before in 0..7 {
                for after in 0..4 {
                    let all = [&b"abcdefg"[..before], value, &b"wxyz"[..after]].concat();
                    let digits = engine.encode(&all);
                    let found = |form: &Form| form.spreads && memchr::memmem::find(digits.as_bytes(), &form.bytes).is_some();
                    assert!(forms(value).iter().any(found), "{before} {after} {digits}");
                }
            }
        }
        assert!(forms(b"1234").iter().all(|form| !form.spreads));
    }
}
