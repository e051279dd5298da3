//! Servers in all the states there are.

use std::sync::Arc;
use std::time::Duration;

use crate::judge::{
    ChangeClass, Changed, Drift, DriftStatus, Environment, Finding, Listing, Reference, Report, Rules, Severity, Timings, Verdict, judge,
};
use crate::ledger::{Fact, ServerState, Sidecar, Snapshot, Terms};
use crate::probe::{Effect, End, EndedBy, Exit, Input, Launch, ListSeen, Observation, Peers, Phase, Reel, Swept, Tape, Usage};
use crate::protocol::Era;
use crate::protocol::json::Doc;
use crate::protocol::mcp::{Greeting, ListKind, ServerInfo, read_list};
use crate::words::{At, Moment, ServerName};

/// 2026-01-01T00:00:00Z, and a thousand seconds since the machine was booted, and `seconds` more.
pub(super) fn at(seconds: u64) -> Moment {
    let unix_ms = 1_767_225_600_000 + i64::try_from(seconds * 1000).unwrap();
    Moment { up: Duration::from_secs(1000 + seconds), unix_ms }
}

pub(super) fn unprobed(name: &str) -> ServerState {
    let terms = Terms {
        interval: Duration::from_secs(60),
        timeouts: vec![(Phase::Handshake, Duration::from_secs(30)), (Phase::List, Duration::from_secs(10))],
        objectives: Default::default(),
        total: Duration::from_secs(180),
        failures: 1,
        successes: 1,
        acceptance: Default::default(),
    };
    ServerState::new(ServerName::new(name).unwrap(), terms)
}

/// A launch that lists one tool of this name.
fn launch(tool: &str) -> Launch {
    let text = format!(r#"{{"tools":[{{"name":"{tool}","inputSchema":{{"type":"object"}}}}]}}"#);
    let items =
        read_list(ListKind::Tools, Era::Legacy, Doc::parse(text.as_bytes()).unwrap().root(), &crate::words::Redactor::default(), usize::MAX).items;
    let ms = |ms| At::after(Duration::from_millis(ms));
    let info = ServerInfo { name: "sample \"x\"\\\n".to_owned(), version: "1.2.3".to_owned() };
    Launch {
        opening: Era::Legacy,
        fetches: Default::default(),
        started: ms(0),
        spawned: Some(ms(1)),
        failure: None,
        first_reply: Some(ms(50)),
        first_reply_line: Some(1),
        ready: Some(ms(50)),
        listed: Some(ms(80)),
        called: None,
        version: Some("2025-11-25".to_owned()),
        greeting: Greeting { server: Some(info), capabilities: vec!["tools".to_owned()] },
        lists: vec![ListSeen { kind: ListKind::Tools, items, complete: true, unknown: false }],
        pages: Default::default(),
        seen: Vec::new(),
        io: crate::probe::Io { stdout_bytes: 500, stderr_bytes: 20, messages: 2 },
        stderr_tail: "secret-stderr".to_owned(),
        end: Some(End {
            closed: Some(ms(80)),
            at: ms(90),
            by: EndedBy::Eof,
            exit: Some(Exit::Code(0)),
            swept: Swept::default(),
            pipe_held: false,
            usage: Usage { max_rss: Some(12 << 20), cpu: Duration::from_millis(34), ..Usage::default() },
        }),
    }
}

fn judged(name: &ServerName, launch: Launch, reference: Reference<'_>) -> Report {
    let observation = Observation {
        launches: vec![launch],
        judged: 0,
        total: Duration::from_millis(95),
        cancelled: false,
        peers: Peers::default(),
        container: None,
    };
    judge(name, "2026-01-01T00:00:00Z".to_owned(), &observation, &Rules::default(), reference)
}

/// A report that these findings are in; the worst makes its verdict.
pub(super) fn report(name: &str, findings: Vec<Finding>) -> Report {
    let verdict = Verdict::of(findings.iter().map(|f| f.severity).max().unwrap_or(Severity::Info));
    Report { verdict, findings, ..judged(&ServerName::new(name).unwrap(), launch("echo"), Reference::nothing()) }
}

/// What a hostile server writes, as it would arrive if nobody had escaped it before.
pub(super) const HOSTILE: &str = "\n::error::x\r##[add-mask]y\x1b[2J<script>&\"'|`]]>\u{ffff}\u{202e}[[ATTACHMENT|/etc/passwd]]%0A::notice::z";

/// A report in which everything that a server can write is [`HOSTILE`].
pub(super) fn hostile() -> Report {
    let mut report =
        report("evil | `x` <b>,:%", vec![finding("drift.changed", Severity::Fail, HOSTILE), finding("stdout.noise", Severity::Fail, HOSTILE)]);
    report.findings[1].evidence = HOSTILE.to_owned();
    report.stderr_tail = format!("{HOSTILE}\n::stop-commands::x\n   ::set-env name=a::b\n```\n</details>\n");
    report.drift = drift(3);
    report.drift.removed = vec![HOSTILE.to_owned()];
    report.drift.changed[0].old = Some(HOSTILE.to_owned());
    report.drift.changed[1].tool = HOSTILE.to_owned();
    report
}

/// So many changes of descriptions, and one that breaks callers.
pub(super) fn drift(changes: usize) -> Drift {
    let changed = |n: usize| Changed {
        tool: format!("tool{n}"),
        path: "/description".to_owned(),
        class: ChangeClass::Description,
        what: "its description is another".to_owned(),
        old: Some(r#""Echoes the message back""#.to_owned()),
        new: Some(r#""Echoes a message back""#.to_owned()),
    };
    let mut all: Vec<Changed> = (0..changes).map(changed).collect();
    let required =
        Changed { path: "/inputSchema/required/0".to_owned(), class: ChangeClass::Breaking, what: "it is required now".to_owned(), ..changed(99) };
    all.push(Changed { old: None, new: Some("\"name\"".to_owned()), ..required });
    Drift { status: DriftStatus::Differs, added: vec!["fresh".to_owned()], removed: vec!["gone".to_owned()], changed: all, ..Drift::default() }
}

/// How a probe went in which something secret was said, and something hostile.
pub(super) fn reel() -> Reel {
    let mut tape = Tape::new(Arc::default()).with_reel(true);
    let ms = |ms| At::after(Duration::from_millis(ms));
    tape.effect(ms(0), &Effect::Spawn);
    tape.effect(ms(2), &Effect::Write(b"{\"method\":\"initialize\"}\n".to_vec()));
    tape.input(ms(3), &Input::Stdout(b"secret-transcript \x1b[2J<img src=x onerror=alert(1)>\n"));
    tape.input(ms(90), &Input::Exited(Exit::Code(1)));
    tape.take_reel().unwrap()
}

/// A probe with this verdict, which these findings are the reason of; it ends after `seconds`.
pub(super) fn probe(server: &mut ServerState, verdict: Verdict, findings: Vec<Finding>, tool: &str, seconds: u64) {
    let launch = launch(tool);
    let listed = Listing::of(&launch, &Environment::default());
    let reference = Reference { accepted: server.schema.accepted.as_ref(), ..Reference::nothing() };
    let report = judged(&server.name, launch, reference);
    let reason = (verdict == Verdict::Fail).then_some(crate::judge::Reason::StdoutViolation);
    let timings = Timings { spawn_ms: Some(1.5), ..report.timings };
    let report = Arc::new(Report { verdict, reason, findings, timings, ..report });
    server.apply(Fact { report, at: at(seconds), listed, reel: (!verdict.is_up()).then(|| Arc::new(reel())) });
}

pub(super) fn finding(code: &'static str, severity: Severity, message: &str) -> Finding {
    let evidence = "secret-evidence".to_owned();
    Finding { code, severity, phase: Phase::Handshake, message: message.to_owned(), evidence, times: 1 }
}

pub(super) fn passing(name: &str) -> ServerState {
    let mut server = unprobed(name);
    probe(&mut server, Verdict::Pass, Vec::new(), "echo", 0);
    server
}

pub(super) fn warning(name: &str) -> ServerState {
    let mut server = unprobed(name);
    let slow = finding("latency.slow", Severity::Warn, "start-up took 5.000 s, and should take 2.000 s at the most");
    probe(&mut server, Verdict::Warn, vec![slow], "echo", 0);
    server
}

/// A server that was well at 0, fails at 60, and has changed its tool.
pub(super) fn failing(name: &str) -> ServerState {
    let mut server = passing(name);
    let noise = finding("stdout.noise", Severity::Fail, "a line that fails to be JSON: \"warning: pass\"");
    probe(&mut server, Verdict::Fail, vec![finding("stdout.crlf", Severity::Info, "lines end in CRLF"), noise], "other", 60);
    server
}

pub(super) fn snapshot(servers: Vec<ServerState>) -> Arc<Snapshot> {
    let mut servers: Vec<_> = servers.into_iter().map(Arc::new).collect();
    servers.sort_by(|a, b| a.name.cmp(&b.name));
    let sidecar = Sidecar {
        started: at(0),
        first_round_done: true,
        in_flight: 2,
        last_tick: at(0).up,
        lag: Duration::from_micros(1500),
        kept: true,
        keep_failures: 0,
    };
    Arc::new(Snapshot { servers: Arc::new(servers), sidecar, reading: Arc::default(), revision: 0 })
}
