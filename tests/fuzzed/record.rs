//! What is kept of a server over restarts.

use std::time::Duration;

use stdiowatch::ledger::Record;
use stdiowatch::words::{Moment, ServerName};

/// The input is the text of the file.
pub fn run(data: &[u8]) {
    let now = Moment { up: Duration::from_secs(5), unix_ms: 1_800_000_000_000 };
    let server = ServerName::new("a").expect("a name");
    let Ok(record) = Record::parse(data, &server, now) else { return };
    let times: Vec<i64> = record.history.entries().map(|entry| entry.at.unix_ms).collect();
    assert!(times.iter().all(|at| (0..=now.unix_ms).contains(at)), "{times:?}");
    assert!(record.history.recent().map(|entry| entry.at).is_sorted());
    let again = Record::parse(record.to_text().as_bytes(), &server, now).expect("what was written is read");
    assert_eq!(again, record);
}
