//! What of a server's state is kept over restarts beside the schema: what its probes came to, and since
//! when it counts as what it does; and that it is held, which no restart is to end. Never a present verdict: that
//! takes a probe.

use serde::{Deserialize, Serialize};

use super::history::{Entry, History};
use super::state::{Held, ServerState};
use crate::judge::{Reason, Verdict, check};
use crate::words::{Moment, ServerName, printable};

/// The form that is written, and the only one that is read.
const FORMAT: u32 = 1;

/// The longest reason for a hold, in characters.
const MAX_WHY: usize = 300;

/// What is kept of one server.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Whose it is.
    pub server: ServerName,
    /// What the server counted as last.
    pub standing: Option<Verdict>,
    /// Since when.
    pub since: Option<Moment>,
    /// When a probe last succeeded.
    pub last_success: Option<Moment>,
    /// When a listing was last another one than the one before.
    pub schema_changed: Option<Moment>,
    /// It is not probed until a person resumes it.
    pub held: Option<Held>,
    /// What its probes came to.
    pub history: History,
}

/// Why what was kept makes no sense.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is not what was written.
    #[error("it is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    /// Another version has written it.
    #[error("it is in format {0}, and this version reads format {FORMAT}")]
    Format(u32),
    /// It is about another server.
    #[error("it is about another server")]
    Other,
    /// A verdict that there is not.
    #[error("it holds a verdict that there is not")]
    Verdict,
}

#[derive(Serialize, Deserialize)]
struct Written {
    format: u32,
    server: String,
    standing: Option<String>,
    since: Option<i64>,
    last_success: Option<i64>,
    schema_changed: Option<i64>,
    /// Missing in what earlier versions wrote, which pass over it in what we write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<WrittenHeld>,
    troubles: Vec<WrittenEntry>,
    recent: Vec<WrittenEntry>,
}

#[derive(Serialize, Deserialize)]
struct WrittenHeld {
    since: i64,
    why: String,
}

/// Moments are milliseconds since the Unix epoch: what the other clock said means nothing after a restart.
#[derive(Serialize, Deserialize)]
struct WrittenEntry {
    at: i64,
    verdict: String,
    reason: Option<String>,
    code: Option<String>,
    startup_ms: Option<f64>,
}

/// Only the format: the rest of another one may look like anything.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

impl Record {
    /// What is to be kept of `state`. What an earlier process has kept is kept on until there is something
    /// newer.
    #[must_use]
    pub fn of(state: &ServerState) -> Record {
        let before = state.before.as_deref();
        Record {
            server: state.name.clone(),
            standing: state.standing.or(before.and_then(|b| b.standing)),
            since: if state.standing.is_some() { state.since } else { before.and_then(|b| b.since) },
            last_success: state.succeeded(),
            schema_changed: state.schema.changed,
            held: state.held.clone(),
            history: state.history.clone(),
        }
    }

    /// As it is written to the disk.
    #[must_use]
    pub fn to_text(&self) -> String {
        let ms = |moment: Option<Moment>| moment.map(|m| m.unix_ms);
        let written = Written {
            format: FORMAT,
            server: self.server.to_string(),
            standing: self.standing.map(|v| v.as_str().to_owned()),
            since: ms(self.since),
            last_success: ms(self.last_success),
            schema_changed: ms(self.schema_changed),
            held: self.held.as_ref().map(|held| WrittenHeld { since: held.since.unix_ms, why: held.why.clone() }),
            troubles: self.history.troubles().map(|entry| write(&entry)).collect(),
            recent: self.history.recent().map(|entry| write(&entry)).collect(),
        };
        // Numbers that are finite and keys that are strings: this cannot go wrong.
        serde_json::to_string(&written).unwrap_or_default()
    }

    /// Reads what was kept of `server`. No moment of it is after `now`, and none after a later one: the
    /// clock may have been set since, or while it was written.
    ///
    /// # Errors
    ///
    /// See [`RecordError`].
    pub fn parse(bytes: &[u8], server: &ServerName, now: Moment) -> Result<Record, RecordError> {
        let format = serde_json::from_slice::<Head>(bytes)?.format;
        if format != FORMAT {
            return Err(RecordError::Format(format));
        }
        let written: Written = serde_json::from_slice(bytes)?;
        if written.server != server.as_str() {
            return Err(RecordError::Other);
        }
        let mut latest = now.unix_ms;
        // The order in which they were written is the one in which they were: the last one first.
        let recent = read_back(&written.recent, &mut latest)?;
        let troubles = read_back(&written.troubles, &mut latest)?;
        let moment = |ms: Option<i64>| ms.map(|ms| past(ms, now.unix_ms));
        Ok(Record {
            server: server.clone(),
            standing: written.standing.as_deref().map(verdict).transpose()?,
            since: moment(written.since),
            last_success: moment(written.last_success),
            schema_changed: moment(written.schema_changed),
            held: written.held.map(|held| Held { since: past(held.since, now.unix_ms), why: printable(&held.why, MAX_WHY) }),
            history: History::kept(&troubles, &recent),
        })
    }
}

/// A moment of an earlier process, of which the wall clock alone tells.
fn past(unix_ms: i64, latest: i64) -> Moment {
    Moment { up: std::time::Duration::ZERO, unix_ms: unix_ms.min(latest).max(0) }
}

fn write(entry: &Entry) -> WrittenEntry {
    WrittenEntry {
        at: entry.at.unix_ms,
        verdict: entry.verdict.as_str().to_owned(),
        reason: entry.reason.map(|r| r.as_str().to_owned()),
        code: entry.code.map(str::to_owned),
        startup_ms: entry.startup_ms.filter(|ms| ms.is_finite()),
    }
}

fn read_back(written: &[WrittenEntry], latest: &mut i64) -> Result<Vec<Entry>, RecordError> {
    let mut entries = Vec::with_capacity(written.len());
    for entry in written.iter().rev() {
        let at = past(entry.at, *latest);
        *latest = at.unix_ms;
        entries.push(Entry {
            at,
            verdict: verdict(&entry.verdict)?,
            // One that this version does not know says nothing to it.
            reason: entry.reason.as_deref().and_then(|word| Reason::ALL.into_iter().find(|r| r.as_str() == word)),
            code: entry.code.as_deref().and_then(check).map(|check| check.code),
            startup_ms: entry.startup_ms.filter(|ms| *ms >= 0.0),
        });
    }
    entries.reverse();
    Ok(entries)
}

fn verdict(word: &str) -> Result<Verdict, RecordError> {
    Verdict::ALL.into_iter().find(|v| v.as_str() == word).ok_or(RecordError::Verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Moment {
        Moment { up: std::time::Duration::from_secs(5), unix_ms: 1_000_000 }
    }

    fn entry(unix_ms: i64, verdict: Verdict) -> Entry {
        let at = Moment { up: std::time::Duration::ZERO, unix_ms };
        Entry { at, verdict, reason: Some(Reason::Timeout), code: Some("timeout.silent"), startup_ms: Some(0.5) }
    }

    fn record(times: &[i64]) -> Record {
        let recent: Vec<Entry> = times.iter().map(|ms| entry(*ms, Verdict::Pass)).collect();
        let at = |unix_ms| Some(Moment { up: std::time::Duration::ZERO, unix_ms });
        Record {
            server: ServerName::new("a").unwrap(),
            standing: Some(Verdict::Pass),
            since: at(7),
            last_success: at(8),
            schema_changed: None,
            held: None,
            history: History::kept(&[entry(3, Verdict::Fail)], &recent),
        }
    }

    fn read(text: &str) -> Result<Record, RecordError> {
        Record::parse(text.as_bytes(), &ServerName::new("a").unwrap(), now())
    }

    #[test]
    fn what_was_written_is_read() {
        let kept = record(&[10, 20, 20, 30]);
        assert_eq!(read(&kept.to_text()).unwrap(), kept);
    }

    #[test]
    fn a_hold_is_kept_and_what_earlier_versions_wrote_has_none() {
        let since = Moment { up: std::time::Duration::ZERO, unix_ms: 9 };
        let kept = Record { held: Some(Held { since, why: "pid 7 died".to_owned() }), ..record(&[10]) };
        let text = kept.to_text();
        assert_eq!(read(&text).unwrap(), kept);
        assert!(!record(&[10]).to_text().contains("held"), "as an earlier version writes it");
        assert_eq!(read(&text.replace("\"since\":9,", "\"since\":2000000,")).unwrap().held.unwrap().since.unix_ms, 1_000_000);
        let hostile = text.replace("pid 7 died", &"\\u001b[2J".repeat(200));
        let why = read(&hostile).unwrap().held.unwrap().why;
        assert!(!why.contains('\x1b') && why.chars().count() <= MAX_WHY + 1, "{why}");
        assert!(read(&text.replace("\"why\":\"pid 7 died\"", "\"why\":7")).is_err(), "half a hold is none");
    }

    #[test]
    fn moments_are_in_order_and_past_whatever_was_done_to_the_clock() {
        let times = |written: &[i64]| -> Vec<i64> {
            let read = read(&record(written).to_text()).unwrap();
            read.history.entries().map(|e| e.at.unix_ms).collect()
        };
        let (day, year) = (86_400_000, 31_536_000_000);
        // Set back by a day between two probes; ahead by a year while it was written; before the epoch.
        assert_eq!(times(&[900_000 + day, 900_000]), [3, 900_000, 900_000]);
        assert_eq!(times(&[900_000, 900_000 + year]), [3, 900_000, 1_000_000]);
        assert_eq!(times(&[i64::MIN, i64::MAX]), [0, 0, 1_000_000]);
        let mut ahead = record(&[]);
        ahead.since = Some(Moment { unix_ms: year, ..now() });
        assert_eq!(read(&ahead.to_text()).unwrap().since.map(|m| m.unix_ms), Some(1_000_000));
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_what_is_too_much_left_out() {
        let text = record(&[1]).to_text();
        assert!(matches!(read("{"), Err(RecordError::Damaged(_))));
        assert!(matches!(read(&text[..text.len() / 2]), Err(RecordError::Damaged(_))));
        assert!(matches!(read("{\"format\":2,\"anything\":[]}"), Err(RecordError::Format(2))));
        assert!(matches!(read(&text.replace("\"server\":\"a\"", "\"server\":\"b\"")), Err(RecordError::Other)));
        assert!(matches!(read(&text.replace("\"pass\"", "\"fine\"")), Err(RecordError::Verdict)));
        let strange = read(&text.replace("timeout.silent", "no.such").replace("0.5", "-0.5")).unwrap();
        let entry = strange.history.recent().last().unwrap();
        assert_eq!((entry.code, entry.startup_ms), (None, None));
        let many: Vec<i64> = (0..500).collect();
        assert_eq!(read(&record(&many).to_text()).unwrap().history.recent().len(), 60);
    }
}
