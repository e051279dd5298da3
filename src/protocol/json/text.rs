//! JSON strings: from what is written between the quotes to what it means.

use std::borrow::Cow;

/// A part of a string's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit<'b> {
    /// Text that stands there as it is: nothing in it has to be escaped.
    Run(&'b str),
    /// What an escape stands for.
    Char(char),
    /// Half of a surrogate pair without the other half.
    LoneSurrogate(u16),
    /// A byte that is no UTF-8.
    Invalid,
}

/// The text of the string `raw`, with U+FFFD for lone surrogates and bytes that are no UTF-8.
pub(super) fn lossy(raw: &[u8]) -> Cow<'_, str> {
    let inner = inner(raw);
    if memchr::memchr(b'\\', inner).is_none() {
        return String::from_utf8_lossy(inner);
    }
    let mut text = String::with_capacity(inner.len());
    for_each_unit(raw, |unit| match unit {
        Unit::Run(run) => text.push_str(run),
        Unit::Char(c) => text.push(c),
        Unit::LoneSurrogate(_) | Unit::Invalid => text.push(char::REPLACEMENT_CHARACTER),
    });
    Cow::Owned(text)
}

/// The UTF-16 code units of the string `raw`: what RFC 8785 sorts keys by.
pub(super) fn utf16(raw: &[u8]) -> Vec<u16> {
    let mut units = Vec::with_capacity(raw.len());
    for_each_unit(raw, |unit| match unit {
        Unit::Run(run) => units.extend(run.encode_utf16()),
        Unit::Char(c) => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
        Unit::LoneSurrogate(half) => units.push(half),
        Unit::Invalid => units.push(0xfffd),
    });
    units
}

/// Calls `f` with each part of the string `raw`, whose grammar has been checked.
pub(super) fn for_each_unit<'b>(raw: &'b [u8], mut f: impl FnMut(Unit<'b>)) {
    let mut rest = inner(raw);
    while !rest.is_empty() {
        let plain = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        for chunk in rest[..plain].utf8_chunks() {
            if !chunk.valid().is_empty() {
                f(Unit::Run(chunk.valid()));
            }
            chunk.invalid().iter().for_each(|_| f(Unit::Invalid));
        }
        rest = &rest[plain..];
        if rest.len() >= 2 {
            rest = escape(rest, &mut f);
        }
    }
}

/// Resolves the escape that `rest` begins with and returns what comes after it.
fn escape<'b>(rest: &'b [u8], f: &mut impl FnMut(Unit<'b>)) -> &'b [u8] {
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

fn unicode_escape<'b>(rest: &'b [u8], f: &mut impl FnMut(Unit<'b>)) -> &'b [u8] {
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

/// How many bytes at the beginning of `bytes` a string may hold as they are, and whether any of them
/// is beyond ASCII. Eight at a time: most of every document is strings.
pub(super) fn plain_run(bytes: &[u8]) -> (usize, bool) {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut seen = 0;
    for (n, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let stops = stops(word);
        if stops != 0 {
            let zeros = stops.trailing_zeros();
            // The bytes before the one that stops it: those below its highest bit, less its own.
            let before = word & ((1 << (zeros & !7)) - 1);
            return (n * 8 + zeros as usize / 8, (seen | before) & HIGHEST != 0);
        }
        seen |= word;
    }
    let stop = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
    (words.len() * 8 + stop, seen & HIGHEST != 0 || !rest[..stop].is_ascii())
}

const EACH: u64 = 0x0101_0101_0101_0101;
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// The highest bit of each byte of `word` that is a quote, a backslash or a control character. Only the
/// lowest one set is to be trusted: a borrow may carry over into the bytes above it.
const fn stops(word: u64) -> u64 {
    let quote = word ^ (EACH * b'"' as u64);
    let backslash = word ^ (EACH * b'\\' as u64);
    let is_zero = (quote.wrapping_sub(EACH) & !quote) | (backslash.wrapping_sub(EACH) & !backslash);
    let is_control = word.wrapping_sub(EACH * 0x20) & !word;
    (is_zero | is_control) & HIGHEST
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
