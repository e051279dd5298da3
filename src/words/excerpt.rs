use std::fmt;
use std::fmt::Write as _;

/// The longest excerpt, in characters of output. A longer one is cut and says so.
const MAX_CHARS: usize = 240;

/// A bounded, escaped piece of what a server wrote: safe in a terminal, a log, a page or a label.
///
/// Control characters, invisible ones, those that change the direction of text, and bytes that are
/// no UTF-8 are escaped (`\n`, `\u{202e}`, `\xff`). A backslash stays as it is: evidence is mostly
/// JSON, which is full of them. Made by [`Redactor::excerpt`](super::Redactor::excerpt) alone, so
/// that no secret is cut in two before it is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Excerpt(Box<str>);

impl Excerpt {
    /// Escapes and bounds `bytes`, which hold no secret any more.
    pub(super) fn of(bytes: &[u8]) -> Excerpt {
        // Every character takes at most four bytes, so no more than this can be shown.
        let shown = &bytes[..bytes.len().min(MAX_CHARS * 4 + 4)];
        let mut text = String::new();
        let mut room = MAX_CHARS;
        let mut used = 0;
        'chunks: for chunk in shown.utf8_chunks() {
            for c in chunk.valid().chars() {
                if !push(&mut text, &mut room, c) {
                    break 'chunks;
                }
                used += c.len_utf8();
            }
            for byte in chunk.invalid() {
                let width = 4;
                if room < width || used + 1 > bytes.len() {
                    break 'chunks;
                }
                room -= width;
                used += 1;
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
        if used < bytes.len() {
            let _ = write!(text, "… ({} bytes in all)", bytes.len());
        }
        Excerpt(text.into())
    }

    /// The escaped text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends `c`, escaped if need be, unless it does not fit; says whether it did.
fn push(text: &mut String, room: &mut usize, c: char) -> bool {
    let escaped = match c {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if is_printable(c) => String::from(c),
        c if (c as u32) < 0x80 => format!("\\x{:02x}", c as u32),
        c => format!("\\u{{{:x}}}", c as u32),
    };
    let width = escaped.chars().count();
    if *room < width {
        return false;
    }
    *room -= width;
    text.push_str(&escaped);
    true
}

/// Whether a character shows as itself wherever it is printed: not a control, not invisible, and
/// it changes neither the direction nor the place of what stands beside it.
#[must_use]
pub const fn is_printable(c: char) -> bool {
    !matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' // C0, DEL, C1
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e000}'..='\u{f8ff}'
        | '\u{e0000}'..='\u{10ffff}')
}

/// Text of ours that quotes something of a server's or a person's (a name, a version, a path):
/// escaped like an excerpt, bounded to `max` characters.
#[must_use]
pub fn printable(text: &str, max: usize) -> String {
    // As nearly every name is.
    if text.len() <= max && text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut room = max;
    for c in text.chars() {
        if !push(&mut out, &mut room, c) {
            out.push('…');
            break;
        }
    }
    out
}

/// The same for several lines: newlines and tabs stay, the rest is escaped. Not bounded.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut room = usize::MAX;
    for c in text.replace("\r\n", "\n").chars() {
        if matches!(c, '\n' | '\t') {
            out.push(c);
        } else {
            push(&mut out, &mut room, c);
        }
    }
    out
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_as_it_is() {
        assert_eq!(Excerpt::of(r#"{"a":"é\n日本"}"#.as_bytes()).as_str(), r#"{"a":"é\n日本"}"#);
    }

    #[test]
    fn what_would_move_a_terminal_is_escaped() {
        assert_eq!(Excerpt::of(b"\x1b[?25l\r\n\t\x07").as_str(), "\\x1b[?25l\\r\\n\\t\\x07");
        assert_eq!(Excerpt::of("a\u{202e}b\u{200b}\u{feff}".as_bytes()).as_str(), "a\\u{202e}b\\u{200b}\\u{feff}");
    }

    #[test]
    fn a_name_is_cut_where_it_has_to_be() {
        assert_eq!(printable("abc ~", 5), "abc ~");
        assert_eq!(printable("abcdef", 5), "abcde…");
        assert_eq!(printable("a\tb\u{7f}", 20), "a\\tb\\x7f");
        assert_eq!(printable("äöü", 3), "äöü");
        assert_eq!(printable("äöüx", 3), "äöü…");
    }

    #[test]
    fn bytes_that_are_no_utf8_are_shown_as_bytes() {
        assert_eq!(Excerpt::of(b"a\xff\xfeb").as_str(), "a\\xff\\xfeb");
        assert_eq!(Excerpt::of(b"\xe2\x82").as_str(), "\\xe2\\x82");
    }

    #[test]
    fn a_long_one_is_cut_and_says_how_long_it_was() {
        let long = vec![b'A'; 1_000_000];
        let excerpt = Excerpt::of(&long);
        assert!(excerpt.as_str().chars().count() < MAX_CHARS + 40);
        assert!(excerpt.as_str().ends_with("… (1000000 bytes in all)"));
        let exact = vec![b'A'; MAX_CHARS];
        assert_eq!(Excerpt::of(&exact).as_str().len(), MAX_CHARS);
        assert!(Excerpt::of(&vec![0xff; 10_000]).as_str().chars().count() < MAX_CHARS + 40);
    }
}
