//! What is fuzzed: functions that take any bytes and panic if something that must hold does not. `fuzz/` runs them with
//! bytes that libFuzzer makes, `tests/corpora.rs` with those that are kept in `corpora/`.

pub mod call;
pub mod clients;
pub mod compare;
pub mod dotenv;
pub mod exposition;
pub mod framing;
pub mod http;
pub mod json;
pub mod lock;
pub mod mcp;
pub mod probe;
pub mod record;
pub mod replay;
pub mod web;
pub mod yaml;

use std::sync::Arc;

use stdiowatch::config::FileProblem;
use stdiowatch::probe::Observation;
use stdiowatch::words::is_printable;

/// A target's name, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, by its name.
pub const TARGETS: [Target; 15] = [
    ("call", call::run),
    ("clients", clients::run),
    ("compare", compare::run),
    ("dotenv", dotenv::run),
    ("exposition", exposition::run),
    ("framing", framing::run),
    ("http", http::run),
    ("json", json::run),
    ("lock", lock::run),
    ("mcp", mcp::run),
    ("probe", probe::run),
    ("record", record::run),
    ("replay", replay::run),
    ("web", web::run),
    ("yaml", yaml::run),
];

/// Bytes as a supply of small things; nothing but zeros once it has run dry.
pub struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    pub fn new(bytes: &'b [u8]) -> Bytes<'b> {
        Bytes(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    /// As many as the next byte says, and there are.
    pub fn piece(&mut self) -> &'b [u8] {
        let length = usize::from(self.byte()).min(self.0.len());
        let (piece, rest) = self.0.split_at(length);
        self.0 = rest;
        piece
    }

    pub fn text(&mut self) -> String {
        String::from_utf8_lossy(self.piece()).into_owned()
    }

    pub fn number(&mut self) -> f64 {
        f64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }
}

/// The environment that configurations are filled from.
pub fn env(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/nowhere".to_owned()),
        "TOKEN" => Some("hunter2hunter2".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

/// What is wrong with a configuration is in it, and is a line for a terminal, not too long.
pub fn can_be_told(text: &str, problems: &[FileProblem]) {
    assert!(!problems.is_empty());
    for problem in problems {
        let told = problem.to_string();
        assert!(told.chars().all(is_printable) && told.len() < 3000, "{told:?}");
        let line = problem.problem.at.line;
        assert!(line >= 1 && line as usize <= text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() + 1, "{told}");
    }
}

/// Everything that was seen but for the pages that are known again.
pub fn everything(observation: &Observation) -> String {
    let mut observation = observation.clone();
    observation.launches.iter_mut().for_each(|launch| launch.pages = Arc::default());
    format!("{observation:#?}")
}
