//! Everything that differs between two schemas, for people: grouped by item, the text of each change
//! in full.

use std::fmt::Write as _;

use super::diff::words;
use crate::judge::{ADDED, ChangeClass, Changed, Drift, REMOVED};
use crate::words::printable;

/// The longest text of a change that is shown, in characters.
const MAX_TEXT: usize = 4000;
/// Names longer than this are cut.
const MAX_NAME: usize = 200;

/// What differs, in lines; nothing if nothing does.
#[must_use]
pub fn text(drift: &Drift, colours: bool) -> String {
    let paint = Paint { colours };
    let mut out = String::new();
    for name in &drift.removed {
        let _ = writeln!(out, "  {}  {}", paint.sign('-', REMOVED), head(name, REMOVED));
    }
    for name in &drift.added {
        let _ = writeln!(out, "  {}  {}", paint.sign('+', ADDED), head(name, ADDED));
    }
    for item in drift.changed.chunk_by(|a, b| a.tool == b.tool) {
        let _ = writeln!(out, "  {}  {}", paint.sign('~', worst(item)), printable(&item[0].tool, MAX_NAME));
        for change in item {
            changed(&mut out, change, paint);
        }
    }
    if drift.omitted > 0 {
        let _ = writeln!(out, "  and {} more", drift.omitted);
    }
    out
}

fn head(name: &str, class: ChangeClass) -> String {
    format!("{} ({})", printable(name, MAX_NAME), class.as_str())
}

fn worst(item: &[Changed]) -> ChangeClass {
    item.iter().map(|c| c.class).max().unwrap_or(ChangeClass::Annotation)
}

fn changed(out: &mut String, change: &Changed, paint: Paint) {
    let path = if change.path.is_empty() { "the whole item" } else { &change.path };
    let _ = writeln!(out, "       {}: {} ({})", paint.bold(&printable(path, MAX_NAME * 2)), change.what, change.class.as_str());
    if let (ChangeClass::Description, Some(old), Some(new)) = (change.class, &change.old, &change.new) {
        // A text is read word by word.
        let _ = writeln!(out, "         {}", words(old, new));
        return;
    }
    for (sign, side, colour) in [('-', &change.old, "31"), ('+', &change.new, "32")] {
        if let Some(side) = side {
            let _ = writeln!(out, "         {}", paint.colour(colour, &format!("{sign} {}", printable(side, MAX_TEXT))));
        }
    }
}

#[derive(Clone, Copy)]
struct Paint {
    colours: bool,
}

impl Paint {
    fn colour(self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(self, text: &str) -> String {
        self.colour("1", text)
    }

    /// A sign in the colour of what a change of this class is to those who call.
    fn sign(self, sign: char, class: ChangeClass) -> String {
        let code = match class {
            ChangeClass::Breaking => "31",
            ChangeClass::Description => "35",
            ChangeClass::Compatible => "32",
            ChangeClass::Annotation => "33",
        };
        self.colour(code, &sign.to_string())
    }
}
