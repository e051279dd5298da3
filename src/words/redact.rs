use std::borrow::Cow;
use std::ops::Range;

use super::Excerpt;
use super::forms::{Form, SHORTEST, forms, is_base64};

/// What stands where a secret was.
pub(super) const MASK: &[u8] = b"[redacted]";

/// The shortest line of a value of several lines that is looked for.
const MIN_LINE: usize = 8;

/// Values that are settings, not secrets, however they were configured. What is shorter than
/// [`SHORTEST`] is none either: redacting `1` or `on` everywhere would hide nothing and garble everything.
const HARMLESS: [&str; 14] =
    ["true", "false", "null", "none", "info", "debug", "warn", "warning", "error", "trace", "production", "development", "localhost", "127.0.0.1"];

/// Knows the values that must never surface (those of the configured environment variables) and
/// makes every [`Excerpt`].
///
/// It is applied before anything is cut short: half a secret is still half a secret. What it costs does not depend
/// on how many secrets there are: of each place in a text, four bytes are looked up in a table.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Redactor {
    /// By how they begin; of those that begin alike the longest first.
    secrets: Vec<Form>,
    /// Of each beginning that there is, one bit.
    beginnings: Option<Box<[u64; BEGINNINGS / 64]>>,
}

/// How many beginnings are told apart.
const BEGINNINGS: usize = 1 << 12;

/// The first bytes of a form, and of a place in a text.
type Beginning = [u8; SHORTEST];

/// Where the bit of a beginning is.
fn bit(beginning: Beginning) -> (usize, u64) {
    let hash = u32::from_le_bytes(beginning).wrapping_mul(0x9e37_79b1) >> 20;
    (hash as usize / 64, 1 << (hash % 64))
}

fn beginning(form: &Form) -> Beginning {
    form.bytes.first_chunk().copied().unwrap_or_default()
}

impl Redactor {
    /// A redactor that knows no secret.
    #[must_use]
    pub const fn none() -> Redactor {
        Redactor { secrets: Vec::new(), beginnings: None }
    }

    /// A redactor for `values`; those too short or too common to be secrets are passed over.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Redactor {
        let mut secrets: Vec<Form> = values
            .into_iter()
            // A key of several lines is printed line by line, each of which is a part of it.
            .flat_map(|value| std::iter::once(value).chain(lines(value)))
            .filter(|value| value.len() >= SHORTEST)
            .filter(|value| !HARMLESS.iter().any(|h| value.eq_ignore_ascii_case(h.as_bytes())))
            .flat_map(forms)
            .collect();
        if secrets.is_empty() {
            return Redactor::none();
        }
        secrets.sort_unstable_by(|a, b| {
            let longest = || b.bytes.len().cmp(&a.bytes.len());
            beginning(a).cmp(&beginning(b)).then_with(longest).then_with(|| a.cmp(b))
        });
        secrets.dedup_by(|a, b| a.bytes == b.bytes);
        let mut beginnings = Box::new([0; BEGINNINGS / 64]);
        for form in &secrets {
            let (word, bit) = bit(beginning(form));
            beginnings[word] |= bit;
        }
        Redactor { secrets, beginnings: Some(beginnings) }
    }

    /// Whether there is anything that must not surface.
    pub(super) const fn knows_any(&self) -> bool {
        self.beginnings.is_some()
    }

    /// The length of the longest secret, in bytes: how much context a cut has to keep.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.secrets.iter().map(|form| form.bytes.len() + usize::from(form.spreads) * AROUND).max().unwrap_or(0)
    }

    /// `bytes` with every secret masked.
    #[must_use]
    pub fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let places = self.places(bytes);
        if places.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for place in places {
            out.extend_from_slice(&bytes[from..place.start]);
            out.extend_from_slice(MASK);
            from = place.end;
        }
        out.extend_from_slice(&bytes[from..]);
        Cow::Owned(out)
    }

    /// The end of something: `bytes` with every secret masked, without the first `open` of them, which may be the
    /// rest of a secret whose beginning is gone. A secret that begins in them, and goes on after them, is masked.
    #[must_use]
    pub fn redact_end<'a>(&self, bytes: &'a [u8], open: usize) -> Cow<'a, [u8]> {
        let open = open.min(bytes.len());
        let across = self.places(bytes).into_iter().find(|place| (place.start..place.end).contains(&open));
        self.redact(&bytes[across.map_or(open, |place| place.start)..])
    }

    /// Where the secrets are in `bytes`, in order, those that overlap as one.
    pub(super) fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        let Some(beginnings) = &self.beginnings else { return places };
        for (at, four) in bytes.array_windows::<SHORTEST>().enumerate() {
            let (word, bit) = bit(*four);
            if beginnings[word] & bit == 0 {
                continue;
            }
            let Some(place) = self.place(bytes, at, *four) else { continue };
            match places.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                Some(_) | None => places.push(place),
            }
        }
        places
    }

    /// What begins at `at` and is a secret, or the longest of them.
    fn place(&self, bytes: &[u8], at: usize, four: Beginning) -> Option<Range<usize>> {
        let first = self.secrets.partition_point(|form| beginning(form) < four);
        let alike = self.secrets[first..].iter().take_while(|form| beginning(form) == four);
        let form = alike.into_iter().find(|form| bytes[at..].starts_with(&form.bytes))?;
        let (mut start, mut end) = (at, at + form.bytes.len());
        if form.spreads {
            let digit = |at: usize| bytes.get(at).is_some_and(|byte| is_base64(*byte));
            start -= usize::from(at > 0 && digit(at - 1));
            end += usize::from(digit(end));
            end += bytes[end..].iter().take(2).take_while(|byte| **byte == b'=').count();
        }
        Some(start..end)
    }

    /// `text` with every secret masked.
    #[must_use]
    pub fn redact_str<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// How many bytes at the end of `bytes` may be the beginning of a secret: what must not be cut off
    /// from what follows.
    #[must_use]
    pub fn open_end(&self, bytes: &[u8]) -> usize {
        let begins = |form: &Form| {
            // Of something in base64 the next digit belongs to it, and so does the one before.
            let most = form.bytes.len() - usize::from(!form.spreads);
            let open = (1..=bytes.len().min(most)).rev().find(|n| bytes.ends_with(&form.bytes[..*n])).unwrap_or(0);
            open + usize::from(form.spreads && (1..bytes.len()).contains(&open))
        };
        self.secrets.iter().map(begins).max().unwrap_or(0)
    }

    /// A bounded, escaped excerpt of `bytes`, without secrets.
    #[must_use]
    pub fn excerpt(&self, bytes: &[u8]) -> Excerpt {
        Excerpt::of(&self.redact(bytes))
    }

    /// The same, from shortly before the byte at `at` on, unless something had to be masked: then
    /// from the beginning.
    #[must_use]
    pub fn excerpt_at(&self, bytes: &[u8], at: usize) -> Excerpt {
        match self.redact(bytes) {
            Cow::Borrowed(bytes) => Excerpt::of(&bytes[at.saturating_sub(40).min(bytes.len())..]),
            Cow::Owned(bytes) => Excerpt::of(&bytes),
        }
    }

    /// Text of a server's without secrets, escaped, bounded to `max` characters.
    #[must_use]
    pub fn printable(&self, text: &str, max: usize) -> String {
        super::printable(&self.redact_str(text), max)
    }
}

/// So much around a form that [spreads](Form::spreads) is masked with it: a digit on either side, and the padding.
const AROUND: usize = 4;

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} forms of secrets)", self.secrets.len())
    }
}

/// The lines of a value that has several, those that are long enough to tell something.
fn lines(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let several = value.contains(&b'\n');
    value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(move |line| several && line.len() >= MIN_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor(values: &[&str]) -> Redactor {
        Redactor::new(values.iter().map(|v| v.as_bytes()))
    }

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let r = redactor(&["hunter2", "hunter22"]);
        assert_eq!(r.redact(b"a hunter2 b hunter22 c").as_ref(), b"a [redacted] b [redacted] c");
        assert!(r.longest() >= 8);
    }

    #[test]
    fn a_secret_is_found_in_its_json_form() {
        let r = redactor(&["pa\"ss\\word"]);
        assert_eq!(r.redact(br#"{"k":"pa\"ss\\word"}"#).as_ref(), br#"{"k":"[redacted]"}"#);
    }

    #[test]
    fn it_is_masked_before_the_excerpt_is_cut() {
        let r = redactor(&["hunter2"]);
        let mut line = vec![b'x'; 237];
        line.extend_from_slice(b"hunter2");
        assert!(!r.excerpt(&line).as_str().contains("hun"));
    }

    #[test]
    fn the_beginning_of_a_secret_is_known() {
        let r = redactor(&["hunter2", "unter3"]);
        assert_eq!(r.open_end(b"a hunt"), 4);
        assert_eq!(r.open_end(b"hunter2"), 0);
        assert_eq!(r.open_end(b"xunte"), 4);
        assert_eq!(r.open_end(b"abc"), 0);
    }

    #[test]
    fn settings_are_no_secrets() {
        let r = redactor(&["1", "true", "TRUE", "abc", "debug"]);
        assert_eq!(r.redact(b"1 true abc debug MQ==").as_ref(), b"1 true abc debug MQ==");
        assert_eq!(r, Redactor::none());
    }

    #[test]
    fn secrets_that_overlap_are_masked_as_one() {
        let r = redactor(&["abcd12", "cd12xyz", "12xy"]);
        assert_eq!(r.redact(b"_abcd12xyz_ abcd12abcd12").as_ref(), b"_[redacted]_ [redacted][redacted]");
        // As it always was: the longest of those that begin alike.
        assert_eq!(redactor(&["abcd", "abcdef"]).redact(b"abcdef abcde").as_ref(), b"[redacted] [redacted]e");
    }

    #[test]
    fn encoded_secrets_are_masked_with_their_edges() {
        use base64::Engine as _;
        use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
        let r = redactor(&["hunter2?>secret"]);
        for before in ["", "u", "us", "user:"] {
            for after in ["", "!", "!!", "!!!"] {
                let plain = format!("{before}hunter2?>secret{after}");
                for digits in [BASE64_STANDARD.encode(&plain), BASE64_URL_SAFE_NO_PAD.encode(&plain)] {
                    let said = format!("<{digits}>");
                    let masked = r.redact_str(&said).into_owned();
                    let (start, end) = masked.split_once("[redacted]").unwrap_or_else(|| panic!("{said}"));
                    // What is left holds whole bytes of what stands around, and no more.
                    assert!(start.len() - 1 <= before.len() * 8 / 6 && end.len() <= (after.len() * 8).div_ceil(6) + 3, "{said} {masked}");
                }
            }
        }
        assert_eq!(r.redact_str("?k=hunter2%3F%3Esecret&x").as_ref(), "?k=[redacted]&x");
        assert_eq!(r.redact_str("68756E746572323F3E736563726574").as_ref(), "[redacted]");
    }

    #[test]
    fn what_is_cut_in_two_is_not_read() {
        let r = redactor(&["hunter2?>secret"]);
        let text = b"x aHVudGVyMj8+c2VjcmV0 hunter2%3f%3esecret \\u0068 dXNlcjpodW50ZXIyPz5zZWNyZXQ= hunter2?>secret end";
        let whole = r.redact(text).into_owned();
        for cut in 0..=text.len() {
            let (first, _) = text.split_at(cut);
            let open = r.open_end(first);
            let (now, later) = text.split_at(cut - open);
            let said = [r.redact(now), r.redact(later)].concat();
            // But for the digit before something in base64, and its padding, nothing of it is left.
            assert!(said == whole || said.len() == whole.len() + 1 && !said.is_empty(), "{cut} {}", String::from_utf8_lossy(&said));
        }
    }
}
