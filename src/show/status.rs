//! All servers in one line, as service managers show it: `systemctl status`.

use super::state::word;
use crate::ledger::Snapshot;
use crate::words::Moment;

/// In this order, each only if there are any.
const WORDS: [&str; 5] = ["up", "down", "unknown", "stale", "unprobed"];

/// As in `12 servers: 11 up, 1 down`.
#[must_use]
pub fn line(snapshot: &Snapshot, now: Moment) -> String {
    let servers = &snapshot.servers;
    let states: Vec<&str> = servers.iter().map(|server| word(server.health(now))).collect();
    let count = |word| states.iter().filter(|state| **state == word).count();
    let counts: Vec<String> =
        WORDS.into_iter().map(|word| (word, count(word))).filter(|(_, n)| *n > 0).map(|(word, n)| format!("{n} {word}")).collect();
    match servers.len() {
        0 => "no server to watch".to_owned(),
        1 => format!("1 server: {}", counts.join(", ")),
        n => format!("{n} servers: {}", counts.join(", ")),
    }
}
