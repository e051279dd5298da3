//! Keeps the words of a verdict out of everything but the verdict itself, so that a monitor that
//! looks for a keyword cannot be fooled by the name `failover` or the code `spawn.failed`.
//!
//! Each hidden word keeps its meaning: its second letter is written as an escape, which a JSON
//! reader, or a percent-decoder, turns back.

use std::fmt::Write as _;

/// The words. The second letter of each is an `a`, and nothing else uses that.
const WORDS: [&str; 3] = ["pass", "warn", "fail"];

/// `json` as another text for the same value, in which none of the words occurs, in whatever case.
///
/// Outside of strings JSON has no such word. Inside of one, a letter may be replaced if it belongs
/// to no escape: the first may (`\fail`, `\u000fail`); an `a` after a `p`, `w` or `f` does not,
/// because `serde_json` writes only control characters as `\u00..`.
pub(super) fn json(json: &str) -> String {
    replace(json, |out, letter| {
        let _ = write!(out, "\\u{:04x}", u32::from(letter));
    })
}

/// `text` without the words, percent-encoded where they were. A percent sign is encoded as well.
pub(super) fn percent(text: &str) -> String {
    replace(&text.replace('%', "%25"), |out, letter| {
        let _ = write!(out, "%{letter:02x}");
    })
}

fn replace(text: &str, escape: impl Fn(&mut String, u8)) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() + 32);
    let mut done = 0;
    for at in 0..bytes.len() {
        let is_word = |word: &str| bytes[at..].get(..word.len()).is_some_and(|b| b.eq_ignore_ascii_case(word.as_bytes()));
        if WORDS.iter().any(|word| is_word(word)) {
            out.push_str(&text[done..=at]);
            escape(&mut out, bytes[at + 1]);
            done = at + 2;
        }
    }
    out.push_str(&text[done..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_a_word(text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    }

    #[test]
    fn another_text_for_the_same_json() {
        for text in ["failover", "spawn.failed", "PASS", "wArNing", "passfailwarn", "\u{c}ail", "\u{f}ail", "\\fail", "ffail", "é fail", "pas", ""] {
            let plain = serde_json::to_string(text).unwrap();
            let hidden = json(&plain);
            assert!(!has_a_word(&hidden), "{hidden}");
            assert_eq!(serde_json::from_str::<String>(&hidden).unwrap(), text, "{hidden}");
        }
    }

    #[test]
    fn another_text_for_the_same_path() {
        assert_eq!(percent("passwords"), "p%61sswords");
        assert_eq!(percent("FAIL 100%61"), "F%41IL 100%2561");
        assert_eq!(percent("日本"), "日本");
    }
}
