//! JSON strings: from what is written between the quotes to what it means.

use std::borrow::Cow;

/// One unit of a string's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A Unicode scalar value.
    Char(char),
    /// Half of a surrogate pair without the other half.
    LoneSurrogate(u16),
    /// A byte that is no UTF-8.
    Invalid,
}

/// Whether the string `raw` (quotes included) means `text`.
pub(super) fn equals(raw: &[u8], text: &str) -> bool {
    let inner = inner(raw);
    match memchr::memchr(b'\\', inner) {
        None => inner == text.as_bytes(),
        Some(_) => lossy(raw) == text,
    }
}

/// The text of the string `raw`, with U+FFFD for lone surrogates and bytes that are no UTF-8.
pub(super) fn lossy(raw: &[u8]) -> Cow<'_, str> {
    let inner = inner(raw);
    if memchr::memchr(b'\\', inner).is_none() {
        return String::from_utf8_lossy(inner);
    }
    let mut text = String::with_capacity(inner.len());
    for_each_unit(raw, |unit| {
        text.push(match unit {
            Unit::Char(c) => c,
            Unit::LoneSurrogate(_) | Unit::Invalid => char::REPLACEMENT_CHARACTER,
        });
    });
    Cow::Owned(text)
}

/// The UTF-16 code units of the string `raw`: what RFC 8785 sorts keys by.
pub(super) fn utf16(raw: &[u8]) -> Vec<u16> {
    let mut units = Vec::with_capacity(raw.len());
    for_each_unit(raw, |unit| match unit {
        Unit::Char(c) => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
        Unit::LoneSurrogate(half) => units.push(half),
        Unit::Invalid => units.push(0xfffd),
    });
    units
}

/// Calls `f` with each unit of the string `raw`, whose grammar has been checked.
pub(super) fn for_each_unit(raw: &[u8], mut f: impl FnMut(Unit)) {
    let mut rest = inner(raw);
    while !rest.is_empty() {
        let plain = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        for chunk in rest[..plain].utf8_chunks() {
            chunk.valid().chars().for_each(|c| f(Unit::Char(c)));
            chunk.invalid().iter().for_each(|_| f(Unit::Invalid));
        }
        rest = &rest[plain..];
        if rest.len() >= 2 {
            rest = escape(rest, &mut f);
        }
    }
}

/// Resolves the escape that `rest` begins with and returns what comes after it.
fn escape<'b>(rest: &'b [u8], f: &mut impl FnMut(Unit)) -> &'b [u8] {
    let simple = match rest[1] {
        b'b' => '\u{8}',
        b't' => '\t',
        b'n' => '\n',
        b'f' => '\u{c}',
        b'r' => '\r',
        b'u' => return unicode_escape(rest, f),
        other => char::from(other),
    };
    f(Unit::Char(simple));
    &rest[2..]
}

fn unicode_escape<'b>(rest: &'b [u8], f: &mut impl FnMut(Unit)) -> &'b [u8] {
    let Some(first) = hex4(rest) else {
        return &[];
    };
    let after = &rest[6..];
    if let Some(c) = char::from_u32(u32::from(first)) {
        f(Unit::Char(c));
        return after;
    }
    if let Some(second) = hex4(after)
        && let Some(Ok(c)) = char::decode_utf16([first, second]).next()
    {
        f(Unit::Char(c));
        return &after[6..];
    }
    f(Unit::LoneSurrogate(first));
    after
}

/// The code unit of the `\uXXXX` that `bytes` begins with, if it does.
pub(super) fn hex4(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0u16, |n, digit| {
        let value = char::from(*digit).to_digit(16)?;
        Some(n << 4 | u16::try_from(value).ok()?)
    })
}

fn inner(raw: &[u8]) -> &[u8] {
    raw.strip_prefix(b"\"").and_then(|r| r.strip_suffix(b"\"")).unwrap_or(raw)
}
