//! Two versions of a text, as one: what went and what came, word by word.

use std::fmt::Write as _;

use similar::{ChangeTag, TextDiff};

use super::told::line;

/// How much of a text that stayed is shown beside what did not, in characters.
const CONTEXT: usize = 30;

/// `old` and `new`, each a JSON string or a piece of one: `[-what went-]{+what came+}`, as `wdiff` writes it.
pub(super) fn words(old: &str, new: &str) -> String {
    let (old, new) = (plain(old), plain(new));
    let diff = TextDiff::from_words(&old, &new);
    let mut runs: Vec<(ChangeTag, String)> = Vec::new();
    for change in diff.iter_all_changes() {
        match runs.last_mut() {
            Some((tag, text)) if *tag == change.tag() => text.push_str(change.value()),
            _ => runs.push((change.tag(), change.value().to_owned())),
        }
    }
    let mut out = String::new();
    let last = runs.len().saturating_sub(1);
    for (place, (tag, text)) in runs.iter().enumerate() {
        let _ = match tag {
            ChangeTag::Equal => write!(out, "{}", shortened(text, place > 0, place < last)),
            ChangeTag::Delete => write!(out, "[-{text}-]"),
            ChangeTag::Insert => write!(out, "{{+{text}+}}"),
        };
    }
    out
}

/// The text of a JSON string; of a piece of one, the piece.
fn plain(json: &str) -> String {
    let text = serde_json::from_str::<String>(json).unwrap_or_else(|_| json.trim_start_matches('"').to_owned());
    line(&text)
}

/// What stayed, without what is far from any change.
fn shortened(text: &str, after: bool, before: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let (head, tail) = (if after { CONTEXT } else { 0 }, if before { CONTEXT } else { 0 });
    if chars.len() <= head + tail + 10 {
        return text.to_owned();
    }
    let piece = |range: &[char]| range.iter().collect::<String>();
    format!("{}…{}", piece(&chars[..head]), piece(&chars[chars.len() - tail..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_and_what_came_stand_side_by_side() {
        assert_eq!(words(r#""Echoes the message back""#, r#""Echoes a message back""#), "Echoes [-the-]{+a+} message back");
        assert_eq!(words(r#""old""#, r#""new""#), "[-old-]{+new+}");
    }

    #[test]
    fn what_is_far_from_a_change_is_left_out() {
        let long = "word ".repeat(100);
        let told = words(&format!("\"{long}x\""), &format!("\"{long}y\""));
        assert_eq!(told, format!("…{}[-x-]{{+y+}}", "word ".repeat(6)));
    }

    #[test]
    fn hostile_text_stays_text() {
        let told = words(r#""a \u001b[2J""#, r#""a \u202e""#);
        assert!(!told.contains('\x1b') && !told.contains('\u{202e}'), "{told}");
        assert!(told.contains("\\x1b[2J"), "{told}");
        // Cut in the middle of an escape.
        assert!(words("\"abc\\u00", "\"abd").contains("abc"));
    }
}
