//! Lock files, and what differs between two listings.

use stdiowatch::judge::{DriftStatus, LockFile, between};
use stdiowatch::words::{Redactor, is_printable};

/// The input is the text of the file.
pub fn run(data: &[u8]) {
    let Ok(lock) = LockFile::parse_any(data).inspect_err(|error| {
        assert!(error.message.chars().all(is_printable) && error.message.len() < 2000, "{error}");
        assert!(error.line >= 1 && error.column >= 1 && error.line <= data.split(|byte| *byte == b'\n').count());
    }) else {
        return;
    };
    let redactor = Redactor::default();
    let listings: Vec<_> = lock.servers.values().collect();
    for then in listings.iter().take(4) {
        assert_eq!(between(then, then, &redactor).status, DriftStatus::Same);
        for now in listings.iter().take(4) {
            let drift = between(then, now, &redactor);
            assert_eq!(drift.status == DriftStatus::Same, drift.classes.is_empty());
        }
    }
    if LockFile::parse(data).is_ok() {
        let text = lock.to_text();
        let again = LockFile::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error} in\n{text}"));
        assert_eq!(again.to_text(), text);
        for (then, now) in listings.into_iter().zip(again.servers.values()) {
            assert_eq!(then.digest, now.digest);
            assert_eq!(between(then, now, &redactor).status, DriftStatus::Same);
        }
    }
}
