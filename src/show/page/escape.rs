//! How everything is written that a template is filled with.

use std::fmt::{self, Write};

use askama::filters::Escaper;

use crate::words::is_printable;

/// Writes text as text, whoever wrote it: no markup comes of it, in an element or in an attribute, and
/// no character hides, moves or turns its neighbours. `askama.toml` makes every template use it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, mut dest: W, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => dest.write_str("&amp;")?,
                '<' => dest.write_str("&lt;")?,
                '>' => dest.write_str("&gt;")?,
                '"' => dest.write_str("&quot;")?,
                '\'' => dest.write_str("&#39;")?,
                '\n' | '\t' => dest.write_char(c)?,
                c if is_printable(c) => dest.write_char(c)?,
                c => write!(dest, "\\u{{{:x}}}", u32::from(c))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_and_shows() {
        let mut out = String::new();
        Visible.write_escaped_str(&mut out, "<a href='x'>&\"\u{202e}\0\u{1b}é\n").unwrap();
        assert_eq!(out, "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\\u{202e}\\u{0}\\u{1b}é\n");
    }

    #[test]
    fn no_template_says_that_something_is_safe() {
        let templates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/show/templates");
        let mut seen = 0;
        for entry in std::fs::read_dir(templates).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            for around in ["|safe", "| safe", "escape(", "|e(", "autoescape", "style=", "<style", "onclick", "javascript:"] {
                assert!(!text.contains(around), "{}: {around}", path.display());
            }
            seen += 1;
        }
        assert!(seen >= 4);
    }
}
