//! What is remembered of one server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::histogram::Histogram;
use super::history::{Entry, History};
use super::record::Record;
use super::schema::{AcceptError, Acceptance, SchemaState};
use crate::judge::{Accepted, Listing, PEER_HARMED, Reason, Report, Severity, Verdict};
use crate::probe::{EndedBy, Phase, Reel};
use crate::protocol::Era;
use crate::words::{Moment, ServerName};

/// What a server is watched by, as far as what is remembered and shown depends on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// From one probe to the next while all is well.
    pub interval: Duration,
    /// How long each phase may take.
    pub timeouts: Vec<(Phase, Duration)>,
    /// How long they should take, by the names of [`OBJECTIVES`](crate::judge::OBJECTIVES).
    pub objectives: BTreeMap<&'static str, Duration>,
    /// How long a whole probe may take: a verdict is not overdue before that.
    pub total: Duration,
    /// How many probes in a row have to fail until the server counts as failing.
    pub failures: u32,
    /// How many have to succeed until it counts as well again.
    pub successes: u32,
    /// How what it lists comes to be accepted.
    pub acceptance: Acceptance,
}

/// One probe that ended.
#[derive(Clone, Debug)]
pub struct Fact {
    /// What it came to.
    pub report: Arc<Report>,
    /// When it ended.
    pub at: Moment,
    /// What its lists held, if they were read to their end.
    pub listed: Option<Listing>,
    /// How it began and ended, if that is worth a look: it was neither well nor cancelled.
    pub reel: Option<Arc<Reel>>,
}

/// How a server is doing, as far as when to probe it next depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Nothing speaks against the next point of the grid.
    Steady,
    /// It was well before, and this is the first failure.
    Fell,
    /// So many probes in a row have failed, or said nothing because it never started; 1 or more.
    Down(u32),
}

/// The findings that say that a launcher was still fetching the server, or that nothing was heard.
const COLD_START: &str = "probe.cold_start";
const SILENT: &str = "timeout.silent";
/// How often the time for a start that never came about is doubled.
const MAX_DOUBLINGS: u32 = 3;

/// What an earlier process knew goes on if it ended no longer before than this, or than so many intervals:
/// of what nobody watched nothing is said.
const UNWATCHED: Duration = Duration::from_secs(600);
const UNWATCHED_INTERVALS: u32 = 10;

/// Why a probe did not take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// The one before was still running.
    Overlap,
    /// A live copy of the server died in a probe, and nobody has resumed probing since.
    PeerHarmed,
}

impl Skip {
    /// All of them.
    pub const ALL: [Skip; 2] = [Skip::Overlap, Skip::PeerHarmed];

    /// The word for it in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Skip::Overlap => "overlap",
            Skip::PeerHarmed => "peer_harmed",
        }
    }
}

/// Why a server is not probed until a person resumes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Since when.
    pub since: Moment,
    /// What was found, in one sentence.
    pub why: String,
}

impl Held {
    /// What a probe that ended at `at` holds its server for: a live copy that died, unless the configuration makes little of
    /// it.
    #[must_use]
    pub fn by(report: &Report, at: Moment) -> Option<Held> {
        let found = report.findings.iter().find(|f| f.code == PEER_HARMED)?;
        (found.severity >= Severity::Unknown).then(|| Held { since: at, why: found.message.clone() })
    }
}

/// What is to be said of a server at a given moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It has not been probed yet.
    NotProbed,
    /// The last verdict, after thresholds.
    Known(Verdict),
    /// The last verdict is too old to say anything: the next probe is overdue.
    Stale {
        /// That verdict.
        was: Verdict,
    },
}

impl Health {
    /// Whether the server counts as up.
    #[must_use]
    pub const fn is_up(self) -> bool {
        match self {
            Health::Known(verdict) => verdict.is_up(),
            Health::NotProbed | Health::Stale { .. } => false,
        }
    }

    /// The verdict to show: nothing is known of a server whose verdict is stale or never was.
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        match self {
            Health::Known(verdict) => verdict,
            Health::NotProbed | Health::Stale { .. } => Verdict::Unknown,
        }
    }
}

/// What is remembered of one server. Counters only ever grow.
#[derive(Clone, Debug)]
pub struct ServerState {
    /// Its name.
    pub name: ServerName,
    /// What it is watched by.
    pub terms: Terms,
    /// The last report, and when its probe ended.
    pub last: Option<(Moment, Arc<Report>)>,
    /// When a probe last succeeded.
    pub last_success: Option<Moment>,
    /// The last report of a failure, and when its probe ended.
    pub last_failure: Option<(Moment, Arc<Report>)>,
    /// How the last probe went that was not well, when it ended, and what it came to. One for each server, and
    /// nothing of it outlives the process.
    pub trouble: Option<(Moment, Verdict, Arc<Reel>)>,
    /// What the server counts as, after thresholds.
    pub standing: Option<Verdict>,
    /// The last thing that it counted as and that says something about it.
    known: Option<Verdict>,
    /// Since when.
    pub since: Option<Moment>,
    /// When the last verdict expires.
    pub expires: Duration,
    /// Since when other terms hold than those of the last verdict.
    renewed: Option<Duration>,
    /// By how much the next probe was put off.
    pub backoff: Duration,
    /// Probes in a row that failed.
    pub consecutive_failures: u32,
    /// Probes in a row that succeeded.
    pub consecutive_successes: u32,
    /// It has started, launched as it is now: nothing has to be fetched for it any more.
    pub launched: bool,
    /// Probes in a row in which a server that has never started was silent to the end of its time: it may
    /// have been installing itself.
    pub cold_starts: u32,
    /// Probes that ended.
    pub probes: u64,
    /// Those that failed, by reason.
    pub failures: BTreeMap<Reason, u64>,
    /// Those that said nothing about the server.
    pub unknown: u64,
    /// Probes that did not take place.
    pub skipped: BTreeMap<Skip, u64>,
    /// Findings, by code.
    pub findings: BTreeMap<&'static str, u64>,
    /// Start-up times.
    pub startup: Histogram,
    /// Times of whole probes.
    pub probe_duration: Histogram,
    /// Shutdown times.
    pub shutdown_duration: Histogram,
    /// What ended the server.
    pub ended_by: BTreeMap<EndedBy, u64>,
    /// Processes left behind in the server's group.
    pub left_group: u64,
    /// Processes left behind outside of it.
    pub left_escaped: u64,
    /// Bytes on stdout.
    pub stdout_bytes: u64,
    /// Bytes on stderr.
    pub stderr_bytes: u64,
    /// CPU time that the server used.
    pub cpu_seconds: f64,
    /// Peak resident memory of the server and its descendants, in bytes, in the last probe that looked at it.
    pub max_rss: Option<u64>,
    /// What its lists held, and what was accepted of it.
    pub schema: SchemaState,
    /// The era that the server was last seen in.
    pub era: Option<Era>,
    /// It is not probed until a person resumes it.
    pub held: Option<Held>,
    /// A probe has succeeded beside a live copy of it, so a copy that does not start beside one is broken.
    pub coexists: bool,
    /// What its probes came to.
    pub history: History,
    /// What an earlier process has kept of it. Nothing of that is a present verdict.
    pub before: Option<Box<Record>>,
}

impl ServerState {
    /// A server of which nothing is known yet.
    #[must_use]
    pub fn new(name: ServerName, terms: Terms) -> ServerState {
        ServerState {
            name,
            terms,
            last: None,
            last_success: None,
            last_failure: None,
            trouble: None,
            standing: None,
            known: None,
            since: None,
            expires: Duration::ZERO,
            renewed: None,
            backoff: Duration::ZERO,
            consecutive_failures: 0,
            consecutive_successes: 0,
            launched: false,
            cold_starts: 0,
            probes: 0,
            failures: BTreeMap::new(),
            unknown: 0,
            skipped: BTreeMap::new(),
            findings: BTreeMap::new(),
            startup: Histogram::default(),
            probe_duration: Histogram::default(),
            shutdown_duration: Histogram::default(),
            ended_by: BTreeMap::new(),
            left_group: 0,
            left_escaped: 0,
            stdout_bytes: 0,
            stderr_bytes: 0,
            cpu_seconds: 0.0,
            max_rss: None,
            schema: SchemaState::default(),
            era: None,
            held: None,
            coexists: false,
            history: History::default(),
            before: None,
        }
    }

    /// What is to be said of the server at `now`.
    #[must_use]
    pub fn health(&self, now: Moment) -> Health {
        match self.standing {
            // No probe is due, so none can be overdue; nor is one to come, if an earlier process held it.
            _ if self.held.is_some() => Health::Known(Verdict::Unknown),
            None => Health::NotProbed,
            Some(was) if now.up >= self.expires => Health::Stale { was },
            Some(verdict) => Health::Known(verdict),
        }
    }

    /// Takes up what an earlier process has kept. Nothing is known of the server by that: it takes a probe. One
    /// that was held is.
    pub fn restore(&mut self, record: Record) {
        self.held.clone_from(&record.held);
        self.history = record.history.clone();
        self.schema.changed = record.schema_changed;
        self.before = Some(Box::new(record));
    }

    /// Takes up what another process, which has ended, has kept until now, after probes of this one. What was known of
    /// that before goes on, and was what later lists were compared with; a hold that was not known is one here too.
    pub fn take_up(&mut self, accepted: Option<Accepted>, record: Option<Record>) {
        let Some(record) = record else { return };
        if let Some(before) = &self.before {
            if before.held != record.held {
                self.held = self.held.take().or(record.held);
            }
            return;
        }
        self.schema.accepted = accepted.or(self.schema.accepted.take());
        let (own, changed, held) = (std::mem::take(&mut self.history), self.schema.changed, self.held.take());
        self.restore(record);
        own.entries().for_each(|entry| self.history.push(&entry));
        self.schema.changed = changed.or(self.schema.changed);
        self.held = held.or(self.held.take());
    }

    /// When a probe last succeeded, also one of an earlier process.
    #[must_use]
    pub fn succeeded(&self) -> Option<Moment> {
        self.last_success.or(self.before.as_ref().and_then(|before| before.last_success))
    }

    /// The last report.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.last.as_ref().map(|(_, report)| report.as_ref())
    }

    /// By what the next probe's time for a cold start is multiplied. An install that was killed starts
    /// anew, so the same short time would never be enough.
    #[must_use]
    pub fn patience(&self) -> u32 {
        2u32.pow(self.cold_starts.min(MAX_DOUBLINGS))
    }

    /// So many probes did not take place.
    pub fn skip(&mut self, why: Skip, times: u32) {
        *self.skipped.entry(why).or_default() += u64::from(times);
    }

    /// Takes in a probe that ended. Returns the verdict that the server counted as before, if it
    /// counts as another now.
    pub fn apply(&mut self, fact: Fact) -> Option<Option<Verdict>> {
        let report = &fact.report;
        self.probes += 1;
        self.count_outcome(report, fact.at);
        self.count_timings(report);
        self.count_process(report);
        if let Some(listed) = fact.listed {
            self.schema.take(listed, report, self.terms.acceptance, fact.at);
        }
        self.renewed = None;
        self.expect(fact.at, self.terms.interval, Duration::ZERO);
        // A handshake that fails is a reason to look for the era again.
        self.era = if report.verdict == Verdict::Fail { report.era } else { report.era.or(self.era) };
        self.history.push(&Entry {
            at: fact.at,
            verdict: report.verdict,
            reason: report.reason,
            code: worst_finding(report),
            startup_ms: report.timings.startup_ms,
        });
        self.coexists |= report.verdict.is_up() && !report.peers.live.is_empty();
        if let Some(held) = Held::by(report, fact.at) {
            self.held = Some(held);
        }
        if report.verdict == Verdict::Fail {
            self.last_failure = Some((fact.at, Arc::clone(report)));
        }
        if let Some(reel) = fact.reel {
            self.trouble = Some((fact.at, report.verdict, reel));
        }
        let change = self.stand(report.verdict, fact.at);
        self.last = Some((fact.at, fact.report));
        change
    }

    /// A person accepts what it listed last. Returns whether something else was accepted before.
    ///
    /// # Errors
    ///
    /// See [`AcceptError`].
    pub fn accept(&mut self) -> Result<bool, AcceptError> {
        self.schema.accept(self.terms.acceptance)
    }

    /// The next probe begins `next_in` after `now`, put off by `backoff` because the server keeps failing.
    pub fn expect(&mut self, now: Moment, next_in: Duration, backoff: Duration) {
        self.backoff = backoff;
        self.expires = now.up + next_in + self.may_take();
    }

    /// So long a probe has to begin and to end before its absence says something.
    fn may_take(&self) -> Duration {
        self.terms.total * self.patience() + self.terms.interval / 2 + Duration::from_secs(5)
    }

    /// How the server is doing, by all probes so far.
    #[must_use]
    pub fn course(&self) -> Course {
        let last = self.report().map(|report| report.verdict);
        let row = match last {
            None | Some(Verdict::Pass | Verdict::Warn) => 0,
            Some(Verdict::Fail) => self.consecutive_failures,
            // A launcher that is still fetching is given more time, and more rest.
            Some(Verdict::Unknown) => self.consecutive_failures + self.cold_starts,
        };
        match row {
            0 => Course::Steady,
            1 if last == Some(Verdict::Fail) && self.last_success.is_some() => Course::Fell,
            row => Course::Down(row),
        }
    }

    /// It is watched by other terms from now on, and probed by them within `next_in`. What has been counted stays; thresholds
    /// hold at once. The last verdict is overdue only when that probe is too; but it may change again and again, and then that
    /// holds of the first change, and what has expired stays so.
    pub fn set_terms(&mut self, terms: Terms, now: Moment, next_in: Duration) {
        // One that is being made is ended before.
        let ending: Duration = self.terms.timeouts.iter().filter(|(phase, _)| *phase == Phase::Shutdown).map(|(_, time)| *time).sum();
        self.terms = terms;
        if now.up < self.expires {
            let renewed = *self.renewed.get_or_insert(now.up);
            self.expires = self.expires.max(renewed + next_in + ending + self.may_take());
        }
        if let Some(verdict) = self.report().map(|report| report.verdict) {
            self.stand(verdict, now);
        }
    }

    /// It is launched in another way from now on: what was learnt of how it starts is void. That it is
    /// held is not: a person holds that, and may know why.
    pub fn forget_launch(&mut self) {
        self.launched = false;
        self.cold_starts = 0;
        self.era = None;
        self.coexists = false;
    }

    /// What it comes to is known, or is not to be found out: a round is not waiting for it.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.last.is_some() || self.held.is_some()
    }

    /// A person wants it probed again. Returns whether it was not.
    pub fn resume(&mut self, now: Moment) -> bool {
        let was_held = self.held.take().is_some();
        let is_old_news = now.up >= self.expires && self.report().is_some_and(|report| report.verdict.is_up());
        if was_held && !is_old_news {
            // What is known is as old as it is, and overdue only if no probe comes now either. But that it was up long before it
            // was held says nothing any more.
            self.expires = self.expires.max(now.up + self.terms.interval + self.terms.total);
        }
        was_held
    }

    fn count_outcome(&mut self, report: &Report, at: Moment) {
        match report.verdict {
            Verdict::Pass | Verdict::Warn => {
                self.last_success = Some(at);
                self.launched = true;
                self.consecutive_successes += 1;
                self.consecutive_failures = 0;
            }
            Verdict::Fail => {
                self.consecutive_failures += 1;
                self.consecutive_successes = 0;
            }
            // Says nothing about the server: a row of failures is neither continued nor ended.
            Verdict::Unknown => self.unknown += 1,
        }
        let silent = |code: &str| code == COLD_START || code == SILENT && report.era.is_none();
        let cold = !self.launched && report.findings.iter().any(|f| silent(f.code));
        self.cold_starts = if cold { self.cold_starts + 1 } else { 0 };
        if let Some(reason) = report.reason {
            *self.failures.entry(reason).or_default() += 1;
        }
        for finding in &report.findings {
            *self.findings.entry(finding.code).or_default() += 1;
        }
    }

    fn count_timings(&mut self, report: &Report) {
        let duration = |ms: f64| Duration::from_secs_f64(ms.max(0.0) / 1e3);
        if let Some(startup) = report.timings.startup_ms {
            self.startup.observe(duration(startup));
        }
        if let Some(shutdown) = report.timings.shutdown_ms {
            self.shutdown_duration.observe(duration(shutdown));
        }
        self.probe_duration.observe(duration(report.timings.total_ms));
    }

    fn count_process(&mut self, report: &Report) {
        if let Some(shutdown) = &report.shutdown {
            *self.ended_by.entry(shutdown.ended_by).or_default() += 1;
            self.left_group += shutdown.leftover_group as u64;
            self.left_escaped += shutdown.leftover_escaped as u64;
        }
        self.stdout_bytes += report.io.stdout_bytes;
        self.stderr_bytes += report.io.stderr_bytes;
        self.cpu_seconds += report.usage.map_or(0.0, |u| u.cpu_seconds);
        self.max_rss = report.usage.and_then(|u| u.max_rss_bytes).or(self.max_rss);
    }

    /// Decides what the server counts as from now on; returns what it did before, if that changed.
    fn stand(&mut self, verdict: Verdict, at: Moment) -> Option<Option<Verdict>> {
        let before = self.standing;
        let stands = match verdict {
            Verdict::Fail => self.known.is_none_or(|v| !v.is_up()) || self.consecutive_failures >= self.terms.failures,
            Verdict::Pass | Verdict::Warn => self.known.is_none_or(Verdict::is_up) || self.consecutive_successes >= self.terms.successes,
            Verdict::Unknown => false,
        };
        if stands {
            self.known = Some(verdict);
        }
        // An unknown outcome is shown while it is the last one, and changes nothing about what is known.
        self.standing = if verdict == Verdict::Unknown { Some(verdict) } else { self.known };
        if self.standing == before {
            return None;
        }
        let goes_on = if before.is_none() { self.goes_on_since(at) } else { None };
        self.since = goes_on.or(Some(at));
        Some(before)
    }

    /// Since when the server has counted as what its first probe, at `at`, came to, if an earlier process
    /// saw that begin.
    fn goes_on_since(&self, at: Moment) -> Option<Moment> {
        let before = self.before.as_ref().filter(|before| before.standing == self.standing)?;
        let last = before.history.recent().next_back()?.at;
        let watched = at.since(last) <= UNWATCHED.max(self.terms.interval * UNWATCHED_INTERVALS);
        before.since.filter(|_| watched)
    }
}

/// The code of the first finding of the worst severity, unless that is `info`.
fn worst_finding(report: &Report) -> Option<&'static str> {
    let worst = report.findings.iter().map(|f| f.severity).max().filter(|s| *s > Severity::Info)?;
    report.findings.iter().find(|f| f.severity == worst).map(|f| f.code)
}
