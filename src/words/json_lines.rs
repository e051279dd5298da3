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
    fn pass(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match (byte, self.in_string) {
                (b'\n', _) => *self = InJson::default(),
                _ if self.escaped => self.escaped = false,
                (b'\\', true) => self.escaped = true,
                (b'"', _) => self.in_string = !self.in_string,
                _ => {}
            }
            self.after_quote = *byte == b'"';
            if self.line == Line::Begins && !byte.is_ascii_whitespace() {
                self.line = if matches!(byte, b'{' | b'[') { Line::Message } else { Line::Other };
            }
        }
    }

    /// Whether numbers stand here.
    fn has_numbers(self) -> bool {
        self.line == Line::Message && !self.in_string
    }
}

impl Redactor {
    /// A piece of a stream of lines of JSON that begins `at` somewhere, with every secret masked: but for words of the protocol
    /// that stand alone in quotes, and its error codes. Moves `at` to its end.
    #[must_use]
    pub fn redact_json<'a>(&self, bytes: &'a [u8], at: &mut InJson) -> Cow<'a, [u8]> {
        if !self.knows_any() {
            return Cow::Borrowed(bytes);
        }
        let mut out = Vec::new();
        let after_quote = at.after_quote;
        let mut from = 0;
        let mut passed = 0;
        for place in self.places(bytes) {
            at.pass(&bytes[passed..place.start]);
            passed = place.start;
            let is_number = at.has_numbers() && bytes[place.clone()].iter().all(u8::is_ascii_digit);
            let stays = if is_number { is_code(&bytes[around(bytes, &place, u8::is_ascii_digit)]) } else { is_word(bytes, &place, after_quote) };
            if !stays {
                out.extend_from_slice(&bytes[from..place.start]);
                out.extend_from_slice(if is_number { DIGIT } else { MASK });
                from = place.end;
            }
        }
        at.pass(&bytes[passed..]);
        if from == 0 {
            return Cow::Borrowed(bytes);
        }
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

    proptest! {
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
