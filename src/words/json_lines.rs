//! Masking JSON that is read again by machine: it stays JSON, and says of the protocol what it said.
//!
//! Somebody's `YEAR=2025` stands in a protocol version, `FORMAT=json` in `"jsonrpc"`, `TTL=60000` in a number. Masked there,
//! a recording would be judged as another server's. So words of the protocol, in quotes, stay, which tell nobody anything;
//! and in a number the secret becomes a 9.

use std::borrow::Cow;
use std::ops::Range;

use super::Redactor;
use super::redact::MASK;
use super::vocabulary::{LONGEST, is_code, is_letter, is_protocols};

/// In a number: whatever stands before and after it, it is a number still.
const DIGIT: &[u8] = b"9";

/// Where in a stream of lines of JSON one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InJson {
    line: Line,
    in_string: bool,
    escaped: bool,
    /// A quote was the last thing.
    after_quote: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// Nothing of it has come yet, or only white space.
    #[default]
    Begins,
    /// It begins as a message does.
    Message,
    /// It is something else.
    Other,
}

impl InJson {
    fn pass(&mut self, byte: u8) {
        match (byte, self.in_string) {
            (b'\n', _) => *self = InJson::default(),
            _ if self.escaped => self.escaped = false,
            (b'\\', true) => self.escaped = true,
            (b'"', _) => self.in_string = !self.in_string,
            _ => {}
        }
        self.after_quote = byte == b'"';
        if self.line == Line::Begins && !byte.is_ascii_whitespace() {
            self.line = if matches!(byte, b'{' | b'[') { Line::Message } else { Line::Other };
        }
    }

    fn pass_all(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.pass(*byte));
    }

    /// A place that begins here, not before `from`, without the half of an escape sequence at either end: who reads on would
    /// take something else for the other half.
    fn whole_escapes(&mut self, bytes: &[u8], from: usize, place: &Range<usize>) -> Range<usize> {
        let (mut start, mut end) = (place.start.max(from), place.end.max(from));
        if self.in_string {
            start -= open_escape(&bytes[from..start]);
            self.escaped = false;
        }
        let mut then = *self;
        then.pass_all(&bytes[start..end]);
        if then.escaped && end < bytes.len() {
            end += 1;
        }
        start..end
    }

    /// What `byte` is, which comes next.
    const fn part(self, byte: u8) -> Part {
        match (byte, self.in_string) {
            (b'"', true) if !self.escaped => Part::Syntax,
            (_, true) => Part::Text,
            (b'0'..=b'9', false) => Part::Number,
            (b'"' | b'{' | b'}' | b'[' | b']' | b':' | b',' | b' ', false) => Part::Syntax,
            (_, false) => Part::Other,
        }
    }
}

/// What something in a message is a part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// What is in a string.
    Text,
    /// The digits of a number.
    Number,
    /// What stands between: it tells nothing.
    Syntax,
    /// What no message has there, or a word of JSON's own.
    Other,
}

impl Redactor {
    /// A piece of a stream of lines of JSON that begins `at` somewhere, with every secret masked: but for words of the protocol
    /// that stand alone in quotes, its error codes, and what makes it JSON. Moves `at` to its end.
    #[must_use]
    pub fn redact_json<'a>(&self, bytes: &'a [u8], at: &mut InJson) -> Cow<'a, [u8]> {
        if !self.knows_any() {
            return Cow::Borrowed(bytes);
        }
        let places = self.places(bytes);
        if places.is_empty() {
            at.pass_all(bytes);
            return Cow::Borrowed(bytes);
        }
        let (mut out, after_quote) = (Vec::with_capacity(bytes.len()), at.after_quote);
        let mut from = 0;
        for place in places {
            at.pass_all(&bytes[from..place.start.max(from)]);
            let place = at.whole_escapes(bytes, from, &place);
            out.extend_from_slice(&bytes[from..place.start]);
            from = place.end;
            match parts(bytes, &place, at) {
                Some(parts) => parts.into_iter().for_each(|(part, run)| mask_part(bytes, part, run, after_quote, &mut out)),
                None => out.extend_from_slice(MASK),
            }
        }
        at.pass_all(&bytes[from..]);
        out.extend_from_slice(&bytes[from..]);
        Cow::Owned(out)
    }

    /// How many bytes at the end of `bytes` must not be cut off from what follows, if [`redact_json`](Redactor::redact_json) is to
    /// know what they are: the beginning of a secret, or a word or number that is not over and has one in it.
    #[must_use]
    pub fn open_json(&self, bytes: &[u8]) -> usize {
        let open = self.open_end(bytes);
        let letters = bytes.iter().rev().take(LONGEST).take_while(|byte| is_letter(**byte)).count();
        let quoted = bytes.len() > letters && bytes[bytes.len() - letters - 1] == b'"';
        let word = letters + usize::from(quoted);
        if letters > 0 && (open > 0 || !self.places(&bytes[bytes.len() - word..]).is_empty()) { open.max(word) } else { open }
    }

    /// Text that a server's message has somewhere as a whole, as [`printable`](Redactor::printable) shows it; but words of the
    /// protocol, and its versions, are what they are.
    #[must_use]
    pub fn word(&self, text: &str, max: usize) -> String {
        if is_protocols(text.as_bytes()) { text.to_owned() } else { self.printable(text, max) }
    }
}

/// What the place is made of, if it is in a message and of nothing else than strings, numbers and what stands between. Moves `at`
/// over it.
fn parts(bytes: &[u8], place: &Range<usize>, at: &mut InJson) -> Option<Vec<(Part, Range<usize>)>> {
    let mut parts: Vec<(Part, Range<usize>)> = Vec::new();
    let mut is_message = true;
    for here in place.clone() {
        let part = at.part(bytes[here]);
        at.pass(bytes[here]);
        is_message &= at.line == Line::Message;
        match parts.last_mut() {
            Some((last, run)) if *last == part => run.end = here + 1,
            Some(_) | None => parts.push((part, here..here + 1)),
        }
    }
    (is_message && parts.iter().all(|(part, _)| *part != Part::Other)).then_some(parts)
}

/// Masks one part of a secret; what makes it JSON stays.
fn mask_part(bytes: &[u8], part: Part, run: Range<usize>, after_quote: bool, out: &mut Vec<u8>) {
    let stays = match part {
        Part::Text => is_word(bytes, &run, after_quote),
        Part::Number => is_code(&bytes[around(bytes, &run, u8::is_ascii_digit)]),
        Part::Syntax | Part::Other => true,
    };
    match part {
        _ if stays => out.extend_from_slice(&bytes[run]),
        Part::Number => out.extend_from_slice(DIGIT),
        Part::Text | Part::Syntax | Part::Other => out.extend_from_slice(MASK),
    }
}

/// How long the escape sequence is that `text`, in a string, ends within; 0 if it ends in none.
fn open_escape(text: &[u8]) -> usize {
    let is_open = |text: &[u8]| text.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    if is_open(text) {
        return 1;
    }
    // Of the four digits after `\u`, some may be missing.
    let digits = text.iter().rev().take(3).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let is_code = |digits: &usize| text[..text.len() - digits].strip_suffix(b"u").is_some_and(is_open);
    (0..=digits).find(is_code).map_or(0, |digits| digits + 2)
}

/// The place, and what of its kind is around it.
fn around(bytes: &[u8], place: &Range<usize>, is_kind: impl Fn(&u8) -> bool) -> Range<usize> {
    let before = bytes[..place.start].iter().rev().take(LONGEST).take_while(|byte| is_kind(byte)).count();
    let after = bytes[place.end..].iter().take(LONGEST).take_while(|byte| is_kind(byte)).count();
    place.start - before..place.end + after
}

/// Whether the place is in a word of the protocol that stands alone in quotes; the first of which may have been before `bytes`.
fn is_word(bytes: &[u8], place: &Range<usize>, after_quote: bool) -> bool {
    let word = around(bytes, place, |byte| is_letter(*byte));
    let begins = if word.start == 0 { after_quote } else { bytes[word.start - 1] == b'"' };
    let is_quoted = begins && bytes.get(word.end) == Some(&b'"');
    is_quoted && is_protocols(&bytes[word])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redactor(values: &[&str]) -> Redactor {
        Redactor::new(values.iter().map(|value| value.as_bytes()))
    }

    fn masked(values: &[&str], text: &str) -> String {
        String::from_utf8(redactor(values).redact_json(text.as_bytes(), &mut InJson::default()).into_owned()).unwrap()
    }

    #[test]
    fn words_of_the_protocol_stay() {
        let said = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}"#;
        for value in ["json", "jsonrpc", "2025", "2025-11-25", "tool", "tools", "result", "protocol", "rpc\":\"2.0"] {
            assert_eq!(masked(&[value], said) == said, value != "rpc\":\"2.0", "{value}");
        }
        assert_eq!(
            masked(&["tool", "2025"], r#"{"a":"my tool of 2025","tool":"tools.x"}"#),
            r#"{"a":"my [redacted] of [redacted]","[redacted]":"[redacted]s.x"}"#
        );
        assert_eq!(masked(&["tools"], "the tools are \\\"tools\\\""), "the [redacted] are \\\"[redacted]\\\"");
    }

    #[test]
    fn numbers_stay_numbers() {
        let of = |text: &str| masked(&["60000", "32601"], text);
        assert_eq!(of(r#"{"ttlMs":60000,"n":[160000,60000.5,-60000],"s":"60000"}"#), r#"{"ttlMs":9,"n":[19,9.5,-9],"s":"[redacted]"}"#);
        assert_eq!(of(r#"{"code":-32601,"n":132601}"#), r#"{"code":-32601,"n":19}"#);
        assert_eq!(of("port 60000 is taken\n{\"a\":60000}\nand 60000"), "port [redacted] is taken\n{\"a\":9}\nand [redacted]");
        assert_eq!(of(r#"{"a":"\\","b":60000,"c":"\"60000"}"#), r#"{"a":"\\","b":9,"c":"\"[redacted]"}"#);
    }

    #[test]
    fn a_word_as_a_whole_is_what_it_is() {
        let redactor = redactor(&["2025", "tool"]);
        assert_eq!(redactor.word("2025-11-25", 40), "2025-11-25");
        assert_eq!(redactor.word("2025-11-26", 40), "[redacted]-11-26");
        assert_eq!(redactor.word("tools", 40), "tools");
        assert_eq!(redactor.word("toolset", 40), "[redacted]set");
    }

    #[test]
    fn what_is_quoted_is_masked_between_the_quotes() {
        let said = r#"{"result":{"tools":[{"name":"a b"}]}}"#;
        assert_eq!(masked(&["\"tools\"", "ult\":{\"to"], said), said);
        assert_eq!(masked(&["[{\"name\":\"a b\"}"], said), r#"{"result":{"tools":[{"name":"[redacted]"}]}}"#);
        assert_eq!(masked(&["{\"a\":12}"], r#"{"x":{"a":12}}"#), r#"{"x":{"[redacted]":9}}"#);
        // What begins as a message does and is none.
        for (value, line) in [("ab-cd", "[INFO] key ab-cd"), ("12-34", "[INFO] pin 12-34"), ("key=\"x y\"", "[INFO] key=\"x y\""), ("true", "{true}")]
        {
            assert_eq!(masked(&[value], line), if value == "true" { line.to_owned() } else { line.replace(value, "[redacted]") });
        }
    }

    #[test]
    fn an_escape_that_is_cut_stays_one() {
        for (value, said, wanted) in [
            ("nail", r#"{"a":"x\nail"}"#, r#"{"a":"x[redacted]"}"#),
            ("nail", r#"{"a":"x\\nail"}"#, r#"{"a":"x\\[redacted]"}"#),
            ("0041x", r#"{"a":"\u0041x"}"#, r#"{"a":"[redacted]"}"#),
            ("41xy", r#"{"a":"\u0041xy"}"#, r#"{"a":"[redacted]"}"#),
            ("abc\\", r#"{"a":"abc\"d"}"#, r#"{"a":"[redacted]d"}"#),
        ] {
            assert_eq!(masked(&[value], said), wanted, "{said}");
        }
    }

    proptest! {
        /// Whatever is a secret, a message stays JSON.
        #[test]
        fn a_message_stays_json(from in 0_usize..160, long in 4_usize..60, other in 0_usize..160) {
            let text = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"ä \"x\"","description":"20\u00e45 \\ \n y"}],"ttlMs":160000,"n":[1,22,[333]],"v":"2025-11-25"}}"#;
            let part = |from: usize| text.chars().skip(from).take(long).collect::<String>();
            let redactor = Redactor::new([part(from).as_bytes(), part(other).as_bytes()]);
            let masked = redactor.redact_json(text.as_bytes(), &mut InJson::default()).into_owned();
            let read: Result<serde_json::Value, _> = serde_json::from_slice(&masked);
            prop_assert!(read.is_ok(), "{:?} {}", read, String::from_utf8_lossy(&masked));
        }

        /// Cut anywhere, as the recording cuts it, it reads the same.
        #[test]
        fn what_is_cut_in_pieces_reads_the_same(cuts in proptest::collection::vec(1_usize..20, 1..40)) {
            let redactor = redactor(&["tools", "jsonrpc", "60000", "hunter2secret", "2025", "name"]);
            let text = br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"x tools hunter2secret","description":"2025 \"name\""}],"ttlMs":160000,"v":"2025-11-25"}}"#;
            let whole = redactor.redact_json(text, &mut InJson::default()).into_owned();
            let begins = whole.starts_with(br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"x [redacted] [redacted]","#);
            prop_assert!(begins);
            let (mut at, mut held, mut out, mut rest) = (InJson::default(), Vec::new(), Vec::new(), &text[..]);
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                held.extend_from_slice(now);
                rest = later;
                let keep = if rest.is_empty() { 0 } else { redactor.open_json(&held) };
                let piece: Vec<u8> = held.drain(..held.len() - keep).collect();
                out.extend_from_slice(&redactor.redact_json(&piece, &mut at));
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(String::from_utf8(out), String::from_utf8(whole));
        }
    }
}
