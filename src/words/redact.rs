use std::borrow::Cow;

use super::Excerpt;

/// What stands where a secret was.
const MASK: &[u8] = b"[redacted]";

/// The shortest value that is looked for. Redacting `1` or `on` everywhere would hide nothing and
/// garble everything.
const MIN_LEN: usize = 4;

/// The shortest line of a value of several lines that is looked for.
const MIN_LINE: usize = 8;

/// Values that are settings, not secrets, however they were configured.
const HARMLESS: [&str; 5] = ["true", "false", "null", "none", "info"];

/// Knows the values that must never surface (those of the configured environment variables) and
/// makes every [`Excerpt`].
///
/// It is applied before anything is cut short: half a secret is still half a secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Redactor {
    /// Longest first, so that a secret that contains another is masked whole.
    secrets: Vec<Box<[u8]>>,
}

impl Redactor {
    /// A redactor that knows no secret.
    #[must_use]
    pub const fn none() -> Redactor {
        Redactor { secrets: Vec::new() }
    }

    /// A redactor for `values`; those too short or too common to be secrets are passed over.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Redactor {
        let mut secrets: Vec<Box<[u8]>> = values
            .into_iter()
            // A key of several lines is printed line by line, each of which is a part of it.
            .flat_map(|value| std::iter::once(value).chain(lines(value)))
            .filter(|value| value.len() >= MIN_LEN)
            .filter(|value| !HARMLESS.iter().any(|h| value.eq_ignore_ascii_case(h.as_bytes())))
            .flat_map(forms)
            .collect();
        secrets.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Redactor { secrets }
    }

    /// The length of the longest secret, in bytes: how much context a cut has to keep.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.secrets.first().map_or(0, |secret| secret.len())
    }

    /// `bytes` with every secret masked.
    #[must_use]
    pub fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut bytes = Cow::Borrowed(bytes);
        for secret in &self.secrets {
            if let Some(masked) = mask(&bytes, secret) {
                bytes = Cow::Owned(masked);
            }
        }
        bytes
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
        let begins = |secret: &[u8]| {
            let longest = bytes.len().min(secret.len().saturating_sub(1));
            (1..=longest).rev().find(|n| secret[..*n] == bytes[bytes.len() - n..]).unwrap_or(0)
        };
        self.secrets.iter().map(|secret| begins(secret)).max().unwrap_or(0)
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

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

/// The ways in which a value is likely to be written: as it is, and as a JSON string holds it.
/// The lines of a value that has several, those that are long enough to tell something.
fn lines(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let several = value.contains(&b'\n');
    value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(move |line| several && line.len() >= MIN_LINE)
}

fn forms(value: &[u8]) -> Vec<Box<[u8]>> {
    let mut forms = vec![Box::from(value)];
    if let Ok(text) = std::str::from_utf8(value)
        && let Ok(json) = serde_json::to_string(text)
    {
        let inner = &json[1..json.len() - 1];
        // Some writers (PHP's) escape the slash too.
        for form in [inner.to_owned(), inner.replace('/', "\\/")] {
            if form.as_bytes() != value {
                forms.push(form.into_bytes().into());
            }
        }
    }
    forms
}

/// `bytes` with every `secret` masked; `None` when there is none.
fn mask(bytes: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    let mut places = memchr::memmem::find_iter(bytes, secret).peekable();
    places.peek()?;
    let mut out = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for place in places {
        out.extend_from_slice(&bytes[from..place]);
        out.extend_from_slice(MASK);
        from = place + secret.len();
    }
    out.extend_from_slice(&bytes[from..]);
    Some(out)
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
        assert_eq!(r.longest(), 8);
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
        let r = redactor(&["1", "true", "TRUE", "abc"]);
        assert_eq!(r.redact(b"1 true abc").as_ref(), b"1 true abc");
    }
}
