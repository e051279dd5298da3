use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::judge::{PEER_HARMED, PeersSeen, Reference, Report, Rules, Severity, Verdict, judge};
use crate::probe::{Io, Launch, Observation, Peers, Phase};
use crate::protocol::Era;
use crate::protocol::mcp::Greeting;
use crate::words::{At, Moment, ServerName};

fn terms(failures: u32, successes: u32) -> Terms {
    Terms {
        interval: Duration::from_secs(60),
        timeouts: vec![(Phase::Handshake, Duration::from_secs(30))],
        objectives: Default::default(),
        total: Duration::from_secs(180),
        failures,
        successes,
        acceptance: Acceptance::default(),
    }
}

fn state(failures: u32, successes: u32) -> ServerState {
    ServerState::new(ServerName::new("s").unwrap(), terms(failures, successes))
}

fn at(seconds: u64) -> Moment {
    Moment { up: Duration::from_secs(seconds), unix_ms: i64::try_from(seconds * 1000).unwrap() }
}

fn report(verdict: Verdict) -> Report {
    let nothing =
        Observation { launches: vec![], judged: 0, total: Duration::from_secs(1), cancelled: false, peers: Peers::default(), container: None };
    Report { verdict, ..judge(&ServerName::new("s").unwrap(), String::new(), &nothing, &Rules::default(), Reference::nothing()) }
}

fn apply(state: &mut ServerState, verdict: Verdict, seconds: u64) -> Option<Option<Verdict>> {
    state.apply(Fact { report: Arc::new(report(verdict)), at: at(seconds), listed: None, reel: None })
}

#[test]
fn nothing_is_known_before_the_first_probe() {
    let state = state(1, 1);
    assert_eq!(state.health(at(0)), Health::NotProbed);
    assert!(!state.health(at(0)).is_up());
}

#[test]
fn a_change_of_what_a_server_counts_as_is_told_once() {
    let mut s = state(1, 1);
    assert_eq!(apply(&mut s, Verdict::Pass, 1), Some(None));
    assert_eq!(apply(&mut s, Verdict::Pass, 2), None);
    assert_eq!(apply(&mut s, Verdict::Fail, 3), Some(Some(Verdict::Pass)));
    assert_eq!((s.since, s.consecutive_failures), (Some(at(3)), 1));
    assert_eq!(apply(&mut s, Verdict::Warn, 4), Some(Some(Verdict::Fail)));
    assert_eq!((s.consecutive_failures, s.last_success), (0, Some(at(4))));
}

#[test]
fn thresholds_hold_a_change_back_and_keep_the_raw_result() {
    let mut s = state(3, 2);
    apply(&mut s, Verdict::Pass, 1);
    assert_eq!(apply(&mut s, Verdict::Fail, 2), None);
    assert_eq!(apply(&mut s, Verdict::Fail, 3), None);
    assert_eq!(s.health(at(3)), Health::Known(Verdict::Pass));
    assert_eq!(s.report().unwrap().verdict, Verdict::Fail);
    assert_eq!(apply(&mut s, Verdict::Fail, 4), Some(Some(Verdict::Pass)));
    assert_eq!(apply(&mut s, Verdict::Pass, 5), None);
    assert_eq!(apply(&mut s, Verdict::Pass, 6), Some(Some(Verdict::Fail)));
    let mut first = state(3, 2);
    assert_eq!(apply(&mut first, Verdict::Fail, 1), Some(None), "a server that never was well is not given credit");
}

#[test]
fn an_unknown_outcome_is_shown_and_blames_nobody() {
    let mut s = state(2, 1);
    apply(&mut s, Verdict::Pass, 1);
    apply(&mut s, Verdict::Fail, 2);
    apply(&mut s, Verdict::Unknown, 3);
    assert_eq!((s.consecutive_failures, s.unknown, s.probes), (1, 1, 3));
    assert!(!s.health(at(3)).is_up());
    assert_eq!(apply(&mut s, Verdict::Fail, 4), Some(Some(Verdict::Unknown)));
    assert_eq!(s.health(at(4)), Health::Known(Verdict::Fail), "two in a row, the unknown one aside");
    let mut s = state(3, 1);
    apply(&mut s, Verdict::Pass, 1);
    apply(&mut s, Verdict::Unknown, 2);
    apply(&mut s, Verdict::Fail, 3);
    assert_eq!(s.health(at(3)), Health::Known(Verdict::Pass), "one failure of three is not enough, after an unknown one neither");
}

#[test]
fn a_verdict_lasts_until_a_probe_by_other_terms_could_have_ended() {
    let mut s = state(1, 1);
    let seconds = Duration::from_secs;
    let lasting = |total, shutdown| Terms {
        interval: seconds(2),
        timeouts: vec![(Phase::Handshake, seconds(1)), (Phase::Shutdown, seconds(shutdown))],
        total: seconds(total),
        ..terms(1, 1)
    };
    s.set_terms(lasting(4, 3), at(0), Duration::ZERO);
    apply(&mut s, Verdict::Pass, 100);
    assert_eq!(s.expires, seconds(100 + 2 + 4 + 1 + 5));
    // The one that is being made has 3 s to end.
    s.set_terms(lasting(60, 1), at(101), seconds(7));
    assert_eq!(s.expires, seconds(101 + 7 + 3 + 60 + 1 + 5));
    // Nobody waits for ever, however often that changes; nor for less than before.
    s.set_terms(lasting(60, 1), at(170), seconds(7));
    s.set_terms(lasting(4, 1), at(170), seconds(7));
    assert_eq!(s.expires, seconds(177));
    // What is overdue is not known by a reload.
    s.set_terms(lasting(60, 1), at(177), seconds(7));
    assert_eq!(s.health(at(177)), Health::Stale { was: Verdict::Pass });
    apply(&mut s, Verdict::Pass, 200);
    s.set_terms(lasting(60, 1), at(210), Duration::ZERO);
    assert_eq!(s.expires, seconds(210 + 1 + 60 + 1 + 5));
}

#[test]
fn a_verdict_expires_by_itself() {
    let mut s = state(1, 1);
    apply(&mut s, Verdict::Pass, 100);
    // The next probe is due in 60 s and may take 180 s; then half an interval and 5 s of grace.
    assert_eq!(s.health(at(374)), Health::Known(Verdict::Pass));
    assert_eq!(s.health(at(375)), Health::Stale { was: Verdict::Pass });
    assert_eq!(s.health(at(375)).verdict(), Verdict::Unknown);
}

/// The report of a probe in which a live copy died.
fn harmful(severity: Option<Severity>) -> Report {
    let peers = Peers { looked: true, died: vec![7], ..Peers::default() };
    let rules = Rules { severity: severity.map(|s| (PEER_HARMED.to_owned(), s)).into_iter().collect(), ..Rules::default() };
    let launch = Launch {
        opening: Era::Legacy,
        started: At::START,
        spawned: None,
        failure: None,
        first_reply: None,
        first_reply_line: Some(1),
        ready: None,
        listed: None,
        version: None,
        greeting: Greeting::default(),
        lists: vec![],
        pages: Default::default(),
        called: None,
        fetches: Default::default(),
        seen: vec![],
        io: Io::default(),
        stderr_tail: String::new(),
        end: None,
    };
    let observation = Observation { launches: vec![launch], judged: 0, total: Duration::from_secs(1), cancelled: false, container: None, peers };
    judge(&ServerName::new("s").unwrap(), String::new(), &observation, &rules, Reference::nothing())
}

fn apply_report(state: &mut ServerState, report: Report, seconds: u64) {
    state.apply(Fact { report: Arc::new(report), at: at(seconds), listed: None, reel: None });
}

#[test]
fn a_server_that_did_harm_is_held_and_stays_unknown_until_it_is_resumed() {
    let mut s = state(1, 1);
    apply(&mut s, Verdict::Pass, 1);
    apply_report(&mut s, harmful(None), 100);
    let held = s.held.clone().unwrap();
    assert_eq!((held.since, held.why.contains("pid 7")), (at(100), true));
    assert_eq!(s.health(at(1_000_000)), Health::Known(Verdict::Unknown), "no probe is due, so none is overdue");
    s.skip(Skip::PeerHarmed, 2);
    assert_eq!(s.skipped[&Skip::PeerHarmed], 2);
    assert!(s.resume(at(2_000_000)) && !s.resume(at(2_000_000)));
    assert_eq!(s.health(at(2_000_010)), Health::Known(Verdict::Unknown), "not stale before the probe that is coming");
    assert!(matches!(s.health(at(2_001_000)), Health::Stale { .. }));
    apply(&mut s, Verdict::Pass, 2_000_011);
    assert_eq!((s.health(at(2_000_012)), &s.held), (Health::Known(Verdict::Pass), &None));
}

#[test]
fn harm_that_is_made_little_of_holds_nothing() {
    for (severity, holds) in [(Severity::Info, false), (Severity::Warn, false), (Severity::Unknown, true), (Severity::Fail, true)] {
        let mut s = state(1, 1);
        apply_report(&mut s, harmful(Some(severity)), 1);
        assert_eq!(s.held.is_some(), holds, "{severity}");
    }
}

#[test]
fn that_two_copies_could_live_is_remembered() {
    let mut s = state(1, 1);
    let beside = |verdict| Report { peers: PeersSeen { looked: true, live: vec![7], died: vec![] }, ..report(verdict) };
    apply(&mut s, Verdict::Pass, 1);
    apply_report(&mut s, beside(Verdict::Unknown), 2);
    assert!(!s.coexists);
    apply_report(&mut s, beside(Verdict::Warn), 3);
    apply(&mut s, Verdict::Fail, 4);
    assert!(s.coexists);
}

#[test]
fn a_course_is_told_by_all_probes_so_far() {
    let mut s = state(3, 1);
    assert_eq!(s.course(), Course::Steady);
    apply(&mut s, Verdict::Fail, 1);
    assert_eq!(s.course(), Course::Down(1), "it never was well, so it cannot have fallen");
    apply(&mut s, Verdict::Pass, 2);
    assert_eq!(s.course(), Course::Steady);
    apply(&mut s, Verdict::Fail, 3);
    assert_eq!(s.course(), Course::Fell, "whatever it counts as, after thresholds");
    apply(&mut s, Verdict::Unknown, 4);
    assert_eq!(s.course(), Course::Down(1));
    apply(&mut s, Verdict::Fail, 5);
    assert_eq!(s.course(), Course::Down(2));
    apply(&mut s, Verdict::Warn, 6);
    assert_eq!(s.course(), Course::Steady);
    apply(&mut s, Verdict::Unknown, 7);
    assert_eq!(s.course(), Course::Steady, "our own trouble puts nothing off");
}

#[test]
fn the_next_probe_is_expected_when_it_is_due() {
    let mut s = state(1, 1);
    apply(&mut s, Verdict::Pass, 100);
    s.expect(at(100), Duration::from_secs(600), Duration::from_secs(540));
    assert_eq!((s.health(at(914)), s.backoff), (Health::Known(Verdict::Pass), Duration::from_secs(540)));
    assert_eq!(s.health(at(915)), Health::Stale { was: Verdict::Pass });
}

#[test]
fn other_thresholds_hold_at_once() {
    let mut s = state(3, 3);
    apply(&mut s, Verdict::Pass, 1);
    apply(&mut s, Verdict::Fail, 2);
    apply(&mut s, Verdict::Fail, 3);
    assert_eq!(s.health(at(3)), Health::Known(Verdict::Pass));
    s.set_terms(terms(2, 3), at(4), Duration::ZERO);
    assert_eq!((s.health(at(4)), s.since, s.consecutive_failures), (Health::Known(Verdict::Fail), Some(at(4)), 2));
    s.set_terms(terms(9, 3), at(5), Duration::ZERO);
    assert_eq!((s.health(at(5)), s.since), (Health::Known(Verdict::Fail), Some(at(4))), "a failing server is given no credit");
    apply(&mut s, Verdict::Pass, 6);
    assert_eq!(s.health(at(6)), Health::Known(Verdict::Fail));
    s.set_terms(terms(9, 1), at(7), Duration::ZERO);
    assert_eq!(s.health(at(7)), Health::Known(Verdict::Pass));
    let mut fresh = state(1, 1);
    fresh.set_terms(terms(2, 2), at(1), Duration::ZERO);
    assert_eq!(fresh.health(at(1)), Health::NotProbed);
}

#[test]
fn another_way_to_launch_makes_a_server_new_and_not_innocent() {
    let mut s = state(1, 1);
    apply(&mut s, Verdict::Pass, 1);
    apply_report(&mut s, harmful(None), 2);
    assert!(s.launched);
    s.forget_launch();
    assert_eq!((s.launched, s.era, s.coexists, s.probes), (false, None, false, 2));
    assert!(s.held.is_some() && s.last_success.is_some());
}

#[test]
fn what_an_earlier_process_held_is_held_and_known_to_be() {
    let mut before = state(1, 1);
    before.held = Some(Held { since: at(100), why: "pid 7 died".to_owned() });
    let kept = Record::parse(Record::of(&before).to_text().as_bytes(), &before.name, at(200)).unwrap();
    let mut s = state(1, 1);
    assert!(!s.is_settled());
    s.restore(kept);
    assert_eq!((s.health(at(300)), s.is_settled()), (Health::Known(Verdict::Unknown), true));
    assert_eq!(Record::of(&s).held.map(|held| held.why).as_deref(), Some("pid 7 died"), "over a second restart too");
    assert!(s.resume(at(300)));
    assert_eq!((s.health(at(300)), s.is_settled()), (Health::NotProbed, false));
    assert_eq!(Record::of(&s).held, None);
}

#[test]
fn what_another_process_kept_until_now_is_taken_up() {
    let other = |held: Option<u64>| {
        let mut other = state(1, 1);
        apply(&mut other, Verdict::Fail, 50);
        other.held = held.map(|seconds| Held { since: at(seconds), why: "pid 7 died".to_owned() });
        Record::parse(Record::of(&other).to_text().as_bytes(), &other.name, at(200)).unwrap()
    };
    // Nothing of it was known at the start.
    let mut late = state(1, 1);
    apply(&mut late, Verdict::Pass, 100);
    late.take_up(None, Some(other(Some(60))));
    assert_eq!(late.history.entries().map(|entry| entry.verdict).collect::<Vec<_>>(), [Verdict::Fail, Verdict::Pass]);
    assert!(late.held.is_some());
    // It was, and then the other one did harm.
    let mut known = state(1, 1);
    known.restore(other(None));
    known.take_up(None, Some(other(Some(60))));
    assert!(known.held.is_some() && known.history.entries().count() == 1);
    // A person has resumed here what the other one still holds.
    let mut resumed = state(1, 1);
    resumed.restore(other(Some(60)));
    assert!(resumed.resume(at(100)));
    resumed.take_up(None, Some(other(Some(60))));
    assert_eq!(resumed.held, None);
}

#[test]
fn resuming_what_was_not_held_revives_no_old_verdict() {
    let mut s = state(1, 1);
    apply(&mut s, Verdict::Pass, 100);
    assert!(!s.resume(at(1000)));
    assert_eq!(s.health(at(1000)), Health::Stale { was: Verdict::Pass });
}

#[test]
fn history_keeps_troubles_longer() {
    let mut s = state(1, 1);
    apply(&mut s, Verdict::Fail, 1);
    for n in 0..200 {
        apply(&mut s, Verdict::Pass, 10 + n);
    }
    let entries: Vec<_> = s.history.entries().collect();
    assert_eq!((entries.len(), entries[0].verdict, entries[0].at), (61, Verdict::Fail, at(1)));
    for n in 0..500 {
        apply(&mut s, Verdict::Fail, 1000 + n);
    }
    assert_eq!(s.history.entries().count(), 80);
}

#[test]
fn histograms_count_what_is_not_above_a_bound() {
    let mut h = Histogram::default();
    for ms in [10, 11, 1000, 400_000] {
        h.observe(Duration::from_millis(ms));
    }
    let cumulative: Vec<(f64, u64)> = h.cumulative().collect();
    assert_eq!((cumulative[0], cumulative[1], cumulative[6], cumulative[13]), ((0.01, 1), (0.02, 2), (1.0, 3), (300.0, 3)));
    assert_eq!(h.count(), 4);
    assert!((h.sum() - 401.021).abs() < 1e-9);
}

#[test]
fn servers_are_found_by_name() {
    let names = ["b", "a", "c"];
    let mut servers: Vec<_> = names.map(|n| Arc::new(ServerState::new(ServerName::new(n).unwrap(), terms(1, 1)))).into();
    servers.sort_by(|a, b| a.name.cmp(&b.name));
    let snapshot = Snapshot { servers: Arc::new(servers), ..Snapshot::default() };
    assert_eq!(snapshot.server("b").unwrap().name.as_str(), "b");
    assert!(snapshot.server("d").is_none());
}

/// A server, and another process' state of it, `seconds` after its last probe.
fn restarted(verdict: Verdict, seconds: u64) -> ServerState {
    let mut s = state(1, 1);
    apply(&mut s, Verdict::Pass, 100);
    apply(&mut s, verdict, 200);
    let mut next = state(1, 1);
    let now = Moment { up: Duration::from_secs(5), ..at(200 + seconds) };
    next.restore(Record::parse(Record::of(&s).to_text().as_bytes(), &s.name, now).unwrap());
    next
}

fn at_after_boot(up: u64, seconds: u64) -> Moment {
    Moment { up: Duration::from_secs(up), ..at(seconds) }
}

fn apply_after_boot(state: &mut ServerState, verdict: Verdict, up: u64, seconds: u64) -> Option<Option<Verdict>> {
    let at = at_after_boot(up, seconds);
    state.apply(Fact { report: Arc::new(report(verdict)), at, listed: None, reel: None })
}

#[test]
fn what_an_earlier_process_knew_is_history_and_no_verdict() {
    let s = restarted(Verdict::Fail, 60);
    let now = at_after_boot(6, 261);
    assert_eq!((s.health(now), s.standing, s.since, s.report().is_none()), (Health::NotProbed, None, None, true));
    assert_eq!((s.history.recent().len(), s.last_success, s.succeeded().map(|m| m.unix_ms)), (2, None, Some(100_000)));
    assert_eq!(Record::of(&s).standing, Some(Verdict::Fail), "it is kept on until there is something newer");
}

#[test]
fn what_goes_on_as_it_was_has_been_so_since_before_the_restart() {
    let mut s = restarted(Verdict::Fail, 60);
    assert_eq!(apply_after_boot(&mut s, Verdict::Fail, 10, 265), Some(None));
    let since = s.since.unwrap();
    assert_eq!((since.unix_ms, at_after_boot(10, 265).since(since)), (200_000, Duration::from_secs(65)));
    let mut other = restarted(Verdict::Fail, 60);
    apply_after_boot(&mut other, Verdict::Pass, 10, 265);
    assert_eq!(other.since, Some(at_after_boot(10, 265)));
    let mut unwatched = restarted(Verdict::Fail, 3000);
    apply_after_boot(&mut unwatched, Verdict::Fail, 10, 3205);
    assert_eq!(unwatched.since, Some(at_after_boot(10, 3205)), "of what nobody watched nothing is said");
}

#[test]
fn the_last_failure_is_remembered_after_it_is_over() {
    let mut s = state(1, 1);
    apply(&mut s, Verdict::Fail, 1);
    apply(&mut s, Verdict::Pass, 2);
    apply(&mut s, Verdict::Unknown, 3);
    assert_eq!(s.last_failure.map(|(at, report)| (at, report.verdict)), Some((at(1), Verdict::Fail)));
}

#[test]
fn how_the_last_trouble_went_is_kept_until_there_is_another() {
    let mut state = state(1, 1);
    let mut probe = |verdict, seconds, reel: Option<&Arc<crate::probe::Reel>>| {
        state.apply(Fact { report: Arc::new(report(verdict)), at: at(seconds), listed: None, reel: reel.cloned() });
        state.trouble.as_ref().map(|(ended, verdict, reel)| (*ended, *verdict, Arc::as_ptr(reel)))
    };
    let (first, second) = (Arc::default(), Arc::default());
    assert_eq!(probe(Verdict::Pass, 1, None), None);
    let failed = probe(Verdict::Fail, 2, Some(&first));
    assert_eq!(failed, Some((at(2), Verdict::Fail, Arc::as_ptr(&first))));
    assert_eq!(probe(Verdict::Pass, 3, None), failed);
    assert_eq!(probe(Verdict::Unknown, 4, Some(&second)), Some((at(4), Verdict::Unknown, Arc::as_ptr(&second))));
}

/// A person accepts it in the moment between the comparison and its being taken in.
#[test]
fn what_is_listed_does_not_differ_from_itself() {
    use crate::judge::{DriftStatus, Environment, Listing};
    use crate::probe::tests::world::{Later, Server, World, sound};
    let mut launch = || -> Box<dyn Server> { Box::new(sound(|_: &serde_json::Value, _: &mut Later| false)) };
    let seen = World::new(crate::probe::Plan::new(), &mut launch).run();
    let listing = Listing::of(seen.judged().unwrap(), &Environment::default()).unwrap();
    let mut differs = report(Verdict::Warn);
    differs.drift.status = DriftStatus::Differs;
    let (mut s, fact) = (state(1, 1), Fact { report: Arc::new(differs), at: at(1), listed: Some(listing), reel: None });
    s.apply(Fact { report: Arc::new(report(Verdict::Pass)), ..fact.clone() });
    assert!(s.schema.accepted.is_some());
    s.apply(fact.clone());
    assert_eq!(s.schema.drifted, Some(false));
    s.terms.acceptance.locked = true;
    s.apply(fact);
    assert_eq!(s.schema.drifted, Some(true), "where a lock file says what is accepted, that is what it was compared with");
}
