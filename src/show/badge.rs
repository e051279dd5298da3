//! A flat badge: the server's name, and its state in a word and a colour.

use askama::Template;

use super::state::word;
use crate::judge::Verdict;
use crate::ledger::{Health, ServerState};
use crate::words::{Moment, printable};

/// What the badge says of a server that does not exist.
const NOBODY: &str = "no such server";

/// A badge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Badge {
    label: String,
    message: &'static str,
    colour: Colour,
    healthy: bool,
}

/// White on each has a contrast of at least 4.5 : 1; the names are those of shields.io.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Colour {
    hex: &'static str,
    name: &'static str,
}

const GREEN: Colour = Colour { hex: "#24752f", name: "success" };
const AMBER: Colour = Colour { hex: "#8a5a00", name: "yellow" };
const RED: Colour = Colour { hex: "#b3261e", name: "critical" };
const GREY: Colour = Colour { hex: "#5f6368", name: "inactive" };

impl Badge {
    /// That of `server` at `now`.
    #[must_use]
    pub fn of(server: &ServerState, now: Moment) -> Badge {
        let health = server.health(now);
        let (message, colour) = match health {
            Health::Known(Verdict::Pass) => (word(health), GREEN),
            Health::Known(Verdict::Warn) => ("up, with a warning", AMBER),
            Health::Known(Verdict::Fail) => (word(health), RED),
            Health::Known(Verdict::Unknown) | Health::NotProbed | Health::Stale { .. } => (word(health), GREY),
        };
        Badge { label: printable(server.name.as_str(), 100), message, colour, healthy: health.is_up() }
    }

    /// That of a server which does not exist.
    #[must_use]
    pub fn no_such_server() -> Badge {
        Badge { label: "stdiowatch".to_owned(), message: NOBODY, colour: GREY, healthy: false }
    }

    /// As a picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let (left, right) = (width(&self.label), width(self.message));
        let picture = Picture {
            badge: self,
            left: left + 10,
            right: right + 10,
            all: left + right + 20,
            label_width: left,
            message_width: right,
            message_at: left + 15,
        };
        picture.render().unwrap_or_default()
    }

    /// As what shields.io draws one from (its "endpoint badge").
    #[must_use]
    pub fn json(&self) -> String {
        let badge = serde_json::json!({
            "schemaVersion": 1, "label": self.label, "message": self.message, "color": self.colour.name, "isError": !self.healthy,
        });
        format!("{badge}\n")
    }
}

#[derive(Template)]
#[template(path = "badge.svg")]
struct Picture<'b> {
    badge: &'b Badge,
    left: u32,
    right: u32,
    all: u32,
    label_width: u32,
    message_width: u32,
    message_at: u32,
}

/// How wide `text` is in Verdana at 11 px, in pixels. Whatever font there is, `textLength` makes it so.
fn width(text: &str) -> u32 {
    let units: u32 = text.chars().map(advance).sum();
    (units * 11).div_ceil(2048)
}

/// The advance widths of Verdana from the space to the tilde, in 2048ths of an em.
#[rustfmt::skip]
const ADVANCES: [u16; 95] = [
    720, 806, 940, 1676, 1302, 2204, 1488, 550, 930, 930, 1302, 1676, 745, 930, 745, 930,
    1302, 1302, 1302, 1302, 1302, 1302, 1302, 1302, 1302, 1302, 930, 930, 1676, 1676, 1676, 1117,
    2048, 1400, 1404, 1430, 1578, 1295, 1177, 1588, 1539, 862, 931, 1419, 1140, 1726, 1532, 1612,
    1235, 1612, 1424, 1400, 1262, 1499, 1400, 2025, 1403, 1260, 1403, 930, 930, 930, 1676, 1302,
    1302, 1230, 1276, 1067, 1276, 1220, 720, 1276, 1296, 562, 705, 1212, 562, 1992, 1296, 1243,
    1276, 1276, 874, 1067, 807, 1296, 1212, 1676, 1212, 1212, 1076, 1300, 930, 1300, 1676,
];

fn advance(c: char) -> u32 {
    match c {
        ' '..='~' => ADVANCES.get((c as usize) - 0x20).copied().map_or(1302, u32::from),
        // Combining marks.
        '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{64b}'..='\u{65f}' => 0,
        // Hangul, kana, Han, full-width forms, pictures.
        '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff01}'..='\u{ff60}' => 2048,
        '\u{1f000}'..='\u{3ffff}' => 2600,
        _ => 1400,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_verdana() {
        for (text, pixels) in [("", 0), ("up", 14), ("down", 30), ("日本", 22), ("e\u{301}", 7), ("W", 11)] {
            assert_eq!(width(text), pixels, "{text}");
        }
        assert_eq!(width(&"m".repeat(100)), 1070);
    }
}
