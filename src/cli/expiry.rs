//! What is said, in the log and by `config check`, of certificates that are of no use: now, or soon.

use std::time::Duration;

use parking_lot::Mutex;
use tracing::{error, warn};

use crate::outside::tls::{Expiry, Part};
use crate::words::Moment;

/// So long before it expires a certificate is told of.
const BEFORE: i64 = 14 * DAY;
const DAY: i64 = 24 * 60 * 60;
/// How often.
const AGAIN: Duration = Duration::from_hours(24);

/// What `openssl req -x509` makes if it is given no names.
const NAMELESS: &str = "has no host and no address in its subjectAltName: Prometheus and browsers refuse it \
    (openssl req and x509 take one by -addext or -extfile: subjectAltName=DNS:HOST)";

/// When certificates were last told of, since boot.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<Option<Duration>>);

impl Told {
    /// Tells of what is of no use, or expires soon; at most once a day, unless the certificates are `new`.
    pub(super) fn tell(&self, expiry: Expiry, new: bool, now: Moment) {
        let mut told = self.0.lock();
        if !new && told.is_some_and(|told| now.up < told + AGAIN) {
            return;
        }
        *told = Some(now.up);
        for (_, why) in useless(expiry, now) {
            error!("{why}; replace the file, which is read again by itself");
        }
        for (part, at) in known(expiry) {
            let what = called(part);
            let expires = moment(at, now);
            match at - now.unix_ms / 1000 {
                left if left < 0 => {}
                left if left < BEFORE => warn!(expires, "{what} expires in {}: replace the file, which is read again by itself", days(left)),
                _ => {}
            }
        }
    }
}

/// What is of no use to who checks it, and why, a sentence each.
pub(super) fn useless(expiry: Expiry, now: Moment) -> Vec<(Part, String)> {
    let seconds = now.unix_ms / 1000;
    let whole = |part: Part, what: &str| (part, format!("{} {what}", called(part)));
    let gone = known(expiry).filter(|(_, at)| *at < seconds);
    let gone = gone.map(|(part, at)| whole(part, &format!("has expired ({}): who checks it is not served", moment(at, now))));
    let early = expiry.server_from.filter(|at| *at > seconds);
    let early = early.map(|at| whole(Part::Certificate, &format!("is not valid before {}: who checks it is not served", moment(at, now))));
    let nameless = expiry.nameless.then(|| whole(Part::Certificate, NAMELESS));
    gone.chain(early).chain(nameless).collect()
}

/// The certificates of which it is known when they expire.
fn known(expiry: Expiry) -> impl Iterator<Item = (Part, i64)> {
    let all = [(Part::Certificate, expiry.server), (Part::ClientAuthority, expiry.client_authority)];
    all.into_iter().filter_map(|(part, at)| Some((part, at?)))
}

/// What to call a certificate.
const fn called(part: Part) -> &'static str {
    match part {
        Part::ClientAuthority => "the last certificate of client_ca_file",
        Part::Certificate | Part::Key | Part::Versions => "the certificate of cert_file",
    }
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
