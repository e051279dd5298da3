//! What is said in the log of certificates that expire.

use std::time::Duration;

use parking_lot::Mutex;
use tracing::{error, warn};

use crate::outside::tls::Expiry;
use crate::words::Moment;

/// So long before it expires a certificate is told of.
const BEFORE: i64 = 14 * DAY;
const DAY: i64 = 24 * 60 * 60;
/// How often.
const AGAIN: Duration = Duration::from_hours(24);

/// When certificates were last told of, since boot.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<Option<Duration>>);

impl Told {
    /// Tells of what expires soon, or has expired; at most once a day, unless the certificates are `new`.
    pub(super) fn tell(&self, expiry: Expiry, new: bool, now: Moment) {
        let mut told = self.0.lock();
        if !new && told.is_some_and(|told| now.up < told + AGAIN) {
            return;
        }
        *told = Some(now.up);
        for (what, at) in known(expiry) {
            let expires = moment(at, now);
            match at - now.unix_ms / 1000 {
                left if left < 0 => {
                    error!(expires, "{what} has expired: who checks it is not served; replace the file, which is read again by itself")
                }
                left if left < BEFORE => warn!(expires, "{what} expires in {}: replace the file, which is read again by itself", days(left)),
                _ => {}
            }
        }
    }
}

/// What has expired, a sentence each.
pub(super) fn expired(expiry: Expiry, now: Moment) -> Vec<String> {
    let gone = known(expiry).filter(|(_, at)| *at < now.unix_ms / 1000);
    gone.map(|(what, at)| format!("{what} has expired ({}): who checks it is not served", moment(at, now))).collect()
}

/// The certificates of which it is known when they expire.
fn known(expiry: Expiry) -> impl Iterator<Item = (&'static str, i64)> {
    let all = [("the certificate of cert_file", expiry.server), ("the last certificate of client_ca_file", expiry.client_authority)];
    all.into_iter().filter_map(|(what, at)| Some((what, at?)))
}

/// A time of the Unix epoch, in seconds, for people.
fn moment(at: i64, now: Moment) -> String {
    Moment { unix_ms: at.saturating_mul(1000), ..now }.rfc3339()
}

/// So many whole days, for people.
fn days(seconds: i64) -> String {
    match seconds / DAY {
        0 => "less than a day".to_owned(),
        1 => "1 day".to_owned(),
        n => format!("{n} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_whole_ones() {
        assert_eq!([0, DAY - 1, DAY, 2 * DAY - 1, 2 * DAY].map(days), ["less than a day", "less than a day", "1 day", "1 day", "2 days"]);
    }
}
