mod containers;

use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::probe::*;
use crate::protocol::Era;
use crate::protocol::json::Doc;
use crate::protocol::mcp::{Flaw, ListKind, RefusedBy, ToolFlaw, read_list};
use crate::protocol::wire::{Fault, Place};
use crate::words::{At, Redactor, ServerName};

fn at(ms: u64) -> At {
    At::after(Duration::from_millis(ms))
}

/// A launch in which nothing went wrong.
fn launch() -> Launch {
    let mut sound = Launch {
        opening: Era::Legacy,
        fetches: Fetches::Nothing,
        started: at(0),
        spawned: Some(at(1)),
        failure: None,
        first_reply: Some(at(50)),
        first_reply_line: Some(2),
        ready: Some(at(50)),
        listed: Some(at(80)),
        called: None,
        version: Some("2025-11-25".to_owned()),
        greeting: Default::default(),
        lists: Vec::new(),
        pages: Default::default(),
        seen: Vec::new(),
        io: Io::default(),
        stderr_tail: String::new(),
        end: Some(End {
            closed: Some(at(80)),
            at: at(90),
            by: EndedBy::Eof,
            exit: Some(Exit::Code(0)),
            swept: Swept::default(),
            pipe_held: false,
            usage: Usage::default(),
        }),
    };
    sound.lists.push(tools(r#"[{"name":"a","inputSchema":{"type":"object"}}]"#));
    sound
}

fn tools(json: &str) -> ListSeen {
    let text = format!(r#"{{"tools":{json}}}"#);
    let page = read_list(ListKind::Tools, Era::Legacy, Doc::parse(text.as_bytes()).unwrap().root(), &Redactor::default(), usize::MAX);
    ListSeen { kind: ListKind::Tools, items: page.items, complete: true, unknown: false }
}

fn seen(what: What) -> Seen {
    let place = Some(Place { line: 1, offset: 0 });
    Seen { at: at(60), phase: Phase::List, place, what, excerpt: Redactor::default().excerpt(b"what the server wrote"), times: 1 }
}

fn with(change: impl FnOnce(&mut Launch)) -> Observation {
    let mut launch = launch();
    change(&mut launch);
    Observation { launches: vec![launch], judged: 0, total: Duration::from_millis(100), cancelled: false, peers: Peers::default(), container: None }
}

fn report_by(observation: &Observation, rules: &Rules, accepted: Option<&Accepted>) -> Report {
    let (environment, redactor) = (Environment::default(), Redactor::default());
    let reference = Reference { accepted, environment: &environment, redactor: &redactor };
    judge(&ServerName::new("s").unwrap(), String::new(), observation, rules, reference)
}

fn listing(observation: &Observation) -> Option<Listing> {
    Listing::of(observation.judged().unwrap(), &Environment::default())
}

/// The listing, accepted as it was seen.
fn accepted(listing: Listing) -> Accepted {
    Accepted { listing: listing.into(), source: Source::Seen }
}

fn report(observation: &Observation) -> Report {
    report_by(observation, &Rules::default(), None)
}

fn codes(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|f| f.code).collect()
}

#[test]
fn a_sound_server_passes_without_a_finding() {
    let report = report(&with(|_| {}));
    assert_eq!((report.verdict, report.reason, codes(&report)), (Verdict::Pass, None, vec![]));
    assert_eq!(
        report.timings,
        Timings { spawn_ms: Some(1.0), startup_ms: Some(50.0), list_ms: Some(30.0), call_ms: None, shutdown_ms: Some(10.0), total_ms: 100.0 }
    );
    assert_eq!(report.lists.tools, Some(1));
}

/// The code that each thing that can be seen leads to. A new one breaks the build here until it has
/// a check.
fn code_of(what: &What) -> &'static str {
    match what {
        What::Line(fault) => code_of_fault(fault),
        What::Batch => "stdout.batch",
        What::Echo { .. } => "stdout.noise",
        What::OutputLimit { .. } | What::TooManyLines { .. } => "stdout.too_large",
        What::TookTooMuch(Excess { of: Taken::Memory, .. }) => "limit.memory",
        What::TookTooMuch(Excess { of: Taken::Processes, .. }) => "limit.processes",
        What::TookTooMuch(Excess { of: Taken::Cpu, .. }) => "limit.cpu",
        What::TookTooMuch(Excess { of: Taken::FileSize, .. }) => "limit.file_size",
        What::Unterminated { .. } => "stdout.unterminated",
        What::Malformed { .. } => "rpc.malformed",
        What::IdMismatch { .. } => "rpc.id_mismatch",
        What::DuplicateReply { .. } => "rpc.duplicate_reply",
        What::ReplyToNotification { .. } => "rpc.reply_to_notification",
        What::ServerRequest { .. } => "rpc.server_request",
        What::NotificationFirst { .. } => "mcp.notification_before_reply",
        What::Refused { asked: Asked::List(ListKind::Prompts | ListKind::Resources | ListKind::ResourceTemplates), .. } => "list.unavailable",
        What::Refused { .. } => "rpc.error",
        What::Flawed { flaw: Flaw { by: RefusedBy::All, .. }, .. } => "mcp.invalid_result",
        What::Flawed { .. } => "mcp.disputed_result",
        What::MissingFields { .. } => "mcp.missing_modern_field",
        What::Contradiction { .. } => "mcp.contradictory_version",
        What::NoCommonVersion { .. } => "version.unsupported",
        What::Timeout(Timeout { limit: Limit::Total, .. }) => "timeout.total",
        What::Timeout(Timeout { lines: 0, .. }) => "timeout.silent",
        What::Timeout(_) => "timeout.noise",
        What::Exited { after_reply: false, .. } => "exit.before_reply",
        What::Exited { .. } => "exit.mid_session",
        What::Detached { .. } => "exit.detached",
        What::StdoutClosed { .. } => "exit.stdout_closed",
        What::StdinClosed { .. } => "exit.stdin_closed",
        What::CursorLoop { .. } => "list.cursor_loop",
        What::NullCursor { .. } => "list.null_cursor",
        What::Incomplete { .. } => "list.incomplete",
        What::ChangedLoop { .. } => "list.changed_loop",
        What::LateTools { .. } => "tools.late",
        What::Volatile { .. } => "tools.volatile",
        What::Tool { flaw: ToolFlaw::Invalid { .. }, .. } => "tools.invalid_schema",
        What::Tool { flaw: ToolFlaw::DeadRef { .. }, .. } => "tools.dead_ref",
        What::Tool { flaw: ToolFlaw::TooDeep, .. } => "tools.too_deep",
        What::DuplicateName { .. } => "tools.duplicate_name",
        What::CallFailed { .. } => "call.failed",
        // Explains a timeout, and means nothing without one.
        What::Overslept { .. } => "probe.host_busy",
        What::Browser { .. } => "auth.browser",
        What::ReplyAfterEof { .. } => "shutdown.reply_after_eof",
    }
}

fn code_of_fault(fault: &Fault) -> &'static str {
    match fault {
        Fault::Noise => "stdout.noise",
        Fault::NotJsonRpc => "stdout.not_jsonrpc",
        Fault::Glued { .. } => "stdout.glued",
        Fault::MultiLine { .. } => "stdout.multi_line",
        Fault::LspFraming => "stdout.lsp_framing",
        Fault::NotUtf8 { .. } => "stdout.not_utf8",
        Fault::Bom => "stdout.bom",
        Fault::NonFinite { .. } => "stdout.non_finite",
        Fault::LoneSurrogate { .. } => "stdout.lone_surrogate",
        Fault::DuplicateKey { .. } => "stdout.duplicate_key",
        Fault::TooLong { .. } | Fault::TooManyValues => "stdout.too_large",
        Fault::CrLf => "stdout.crlf",
        Fault::Blank => "stdout.blank_line",
    }
}

/// One of each.
fn everything() -> Vec<What> {
    let asked = Asked::List(ListKind::Tools);
    let list = ListKind::Tools;
    let name = || "a".to_owned();
    let message = Redactor::default().excerpt(b"no");
    let timeout = |limit, lines| Timeout { asked, limit, waited: Duration::from_secs(1), lines, unfinished: 0, newline_missing: false };
    let lines = [
        Fault::Noise,
        Fault::NotJsonRpc,
        Fault::Glued { at: 1, after: 0 },
        Fault::MultiLine { lines: 2 },
        Fault::LspFraming,
        Fault::NotUtf8 { at: 0 },
        Fault::Bom,
        Fault::NonFinite { at: 0 },
        Fault::LoneSurrogate { at: 0 },
        Fault::DuplicateKey { pointer: name() },
        Fault::TooLong { limit: 9 },
        Fault::TooManyValues,
        Fault::CrLf,
        Fault::Blank,
    ];
    let mut all: Vec<What> = lines.into_iter().map(What::Line).collect();
    all.extend([
        What::Batch,
        What::Echo { method: "initialize" },
        What::OutputLimit { limit: 9 },
        What::TooManyLines { limit: 9 },
        What::TookTooMuch(Excess { of: Taken::Memory, figure: 9 << 20, limit: 8 << 20, processes: 2 }),
        What::TookTooMuch(Excess { of: Taken::Processes, figure: 9, limit: 8, processes: 9 }),
        What::TookTooMuch(Excess { of: Taken::Cpu, figure: 9000, limit: 8000, processes: 1 }),
        What::TookTooMuch(Excess { of: Taken::FileSize, figure: 9, limit: 8, processes: 1 }),
        What::Unterminated { length: 3 },
        What::Malformed { problem: "x" },
        What::IdMismatch { wanted: Some(name()), got: name() },
        What::IdMismatch { wanted: None, got: name() },
        What::DuplicateReply { id: name() },
        What::ReplyToNotification { code: Some(-32601) },
        What::ServerRequest { method: name() },
        What::NotificationFirst { method: name() },
        What::Refused { asked, code: Some(-32603), message: message.clone() },
        What::Refused { asked: Asked::Initialize, code: None, message: message.clone() },
        What::Refused { asked: Asked::List(ListKind::Prompts), code: Some(1), message },
        What::Flawed { asked, flaw: Flaw { path: name(), wanted: "a string", got: "nothing", by: RefusedBy::All } },
        What::Flawed { asked, flaw: Flaw { path: name(), wanted: "a string", got: "null", by: RefusedBy::TypeScript } },
        What::MissingFields { asked, names: vec!["ttlMs"] },
        What::Contradiction { version: name() },
        What::NoCommonVersion { server: vec![] },
        What::Timeout(timeout(Limit::Phase, 0)),
        What::Timeout(timeout(Limit::Phase, 2)),
        What::Timeout(timeout(Limit::Total, 0)),
        What::Exited { asked, exit: Exit::Code(0), after_reply: false, held: false },
        What::Exited { asked, exit: Exit::Signal(11), after_reply: true, held: true },
        What::Detached { asked },
        What::StdoutClosed { asked },
        What::StdinClosed { asked },
        What::CursorLoop { list },
        What::NullCursor { list },
        What::Incomplete { list, why: "x" },
        What::ChangedLoop { list },
        What::LateTools { tools: 1 },
        What::Volatile { list, item: name(), pointer: String::new() },
        What::Tool { name: name(), flaw: ToolFlaw::Invalid { pointer: name(), wanted: "x" } },
        What::Tool { name: name(), flaw: ToolFlaw::DeadRef { reference: name() } },
        What::Tool { name: name(), flaw: ToolFlaw::TooDeep },
        What::DuplicateName { list, name: name() },
        What::ReplyAfterEof { asked },
        What::CallFailed { tool: name(), why: name() },
        What::Browser { origin: "https://a.example".to_owned() },
    ]);
    all
}

#[test]
fn whatever_can_be_seen_has_its_check_and_its_evidence() {
    for what in everything() {
        let code = code_of(&what);
        let observation = with(|launch| {
            launch.opening = Era::Modern;
            launch.seen.push(seen(what.clone()));
        });
        let report = report(&observation);
        assert_eq!(codes(&report), [code], "{what:?}");
        let finding = &report.findings[0];
        assert_eq!(finding.severity, check(code).unwrap().severity, "{code}");
        assert!(finding.evidence.len() > 10 && finding.message.len() > 10, "{finding:?}");
        assert_eq!(report.verdict, Verdict::of(finding.severity));
        let fails = finding.severity == Severity::Fail;
        assert_eq!(report.reason.is_some(), fails, "{code}");
        assert_eq!(report.reason == Some(Reason::Policy), code.starts_with("limit."), "{code}");
    }
}

#[test]
fn launch_errors_are_told_apart() {
    let path = || PathBuf::from("/x/y");
    for (error, code) in [
        (LaunchError::NotFound { command: "x".into(), searched: Some("/bin".into()) }, "spawn.not_found"),
        (LaunchError::NotFound { command: "./x".into(), searched: None }, "spawn.not_found"),
        (LaunchError::InterpreterMissing { program: path(), interpreter: "/bin/zzz\\r".into() }, "spawn.interpreter_missing"),
        (LaunchError::CwdMissing { cwd: path(), not_a_directory: true }, "spawn.cwd_missing"),
        (LaunchError::Permission { path: path(), what: "its mode has no x".into() }, "spawn.permission"),
        (LaunchError::ExecFormat { program: path() }, "spawn.exec_format"),
        (LaunchError::Failed { error: "E2BIG".into() }, "spawn.failed"),
        (LaunchError::Resources { error: "EMFILE".into() }, "probe.resources"),
    ] {
        let ours = code == "probe.resources";
        let report = report(&with(|launch| {
            (launch.spawned, launch.first_reply, launch.ready, launch.listed, launch.end) = (None, None, None, None, None);
            launch.lists.clear();
            launch.failure = Some(error);
        }));
        assert_eq!(codes(&report), [code]);
        assert_eq!(report.verdict, if ours { Verdict::Unknown } else { Verdict::Fail });
        assert_eq!(report.reason, if ours { None } else { Some(Reason::SpawnFailed) });
        assert_eq!(report.spawns, 0);
    }
}

#[test]
fn endings_are_judged_by_what_it_took() {
    let ended = |by, exit| {
        codes(&report(&with(|launch| {
            let end = launch.end.as_mut().unwrap();
            (end.by, end.exit) = (by, Some(exit));
        })))
    };
    assert_eq!(ended(EndedBy::Eof, Exit::Code(1)), ["shutdown.exit_nonzero"]);
    assert_eq!(ended(EndedBy::Eof, Exit::Signal(11)), ["shutdown.crashed"]);
    assert_eq!(ended(EndedBy::Sigterm, Exit::Signal(15)), ["shutdown.needed_term"], "a death by our own signal is no crash");
    assert_eq!(ended(EndedBy::Sigterm, Exit::Code(1)), ["shutdown.needed_term"]);
    assert_eq!(ended(EndedBy::Sigkill, Exit::Signal(9)), ["shutdown.needed_kill"]);
    assert_eq!(ended(EndedBy::Itself, Exit::Code(0)), Vec::<&str>::new());
}

#[test]
fn what_a_server_leaves_is_told_apart() {
    let leftover = Leftover { pid: 7, name: "sleep".into() };
    let report = report(&with(|launch| {
        let end = launch.end.as_mut().unwrap();
        end.swept = Swept { in_group: vec![leftover.clone()], escaped: vec![leftover.clone(), leftover], ..Swept::default() };
        end.pipe_held = true;
    }));
    assert_eq!(codes(&report), ["shutdown.left_group", "shutdown.left_escaped", "shutdown.pipe_held"]);
    let shutdown = report.shutdown.unwrap();
    assert_eq!((shutdown.leftover_group, shutdown.leftover_escaped, shutdown.pipe_held), (1, 2, true));
}

#[test]
fn what_is_left_alone_is_told_as_such() {
    let leftover = Leftover { pid: 7, name: "sleep".into() };
    let report = report(&with(|launch| {
        launch.end.as_mut().unwrap().swept = Swept { in_group: vec![leftover], spared: true, ..Swept::default() };
    }));
    assert_eq!((codes(&report), report.verdict), (vec!["shutdown.left_group"], Verdict::Warn));
    assert_eq!(report.findings[0].evidence, "sleep (pid 7); left alone");
}

#[test]
fn a_server_that_was_killed_over_a_limit_was_not_stubborn() {
    let report = report(&with(|launch| {
        let end = launch.end.as_mut().unwrap();
        (end.by, end.exit) = (EndedBy::Sigkill, Some(Exit::Signal(9)));
        let excess = Excess { of: Taken::Memory, figure: 600 << 20, limit: 512 << 20, processes: 1 };
        launch.seen.push(Seen { place: None, excerpt: Default::default(), ..seen(What::TookTooMuch(excess)) });
    }));
    assert_eq!((codes(&report), report.reason), (vec!["limit.memory"], Some(Reason::Policy)));
    assert_eq!(report.findings[0].message, "the server had 600.0 MiB resident, with a limit of 512.0 MiB");
}

#[test]
fn each_member_is_named_once_and_the_line_that_they_share_is_shown_once() {
    let flaw = |path: &str| {
        let flaw = Flaw { path: path.to_owned(), wanted: "a string", got: "null", by: RefusedBy::TypeScript };
        seen(What::Flawed { asked: Asked::Initialize, flaw })
    };
    let report = report(&with(|launch| launch.seen.extend(["serverInfo.title", "instructions", "serverInfo.title", "x.y"].map(flaw))));
    let Finding { code, evidence, times, .. } = &report.findings[0];
    assert_eq!((*code, *times, evidence.matches("what the server wrote").count()), ("mcp.disputed_result", 4, 1), "{evidence}");
    assert_eq!(["serverInfo.title", "instructions", "x.y"].map(|name| evidence.matches(name).count()), [0, 1, 1], "{evidence}");
}

#[test]
fn the_reason_is_that_of_the_first_failure_in_time() {
    let report = report(&with(|launch| {
        launch.seen.push(Seen { at: at(70), ..seen(What::StdoutClosed { asked: Asked::Initialize }) });
        launch.seen.push(Seen { at: at(60), ..seen(What::Line(Fault::Noise)) });
        launch.seen.push(Seen { at: at(10), ..seen(What::Line(Fault::Blank)) });
    }));
    assert_eq!(codes(&report), ["stdout.blank_line", "stdout.noise", "exit.stdout_closed"]);
    assert_eq!((report.verdict, report.reason), (Verdict::Fail, Some(Reason::StdoutViolation)));
}

#[test]
fn severities_can_be_changed() {
    let noisy = with(|launch| launch.seen.push(seen(What::Line(Fault::Noise))));
    let rules = |code: &str, level| Rules { severity: [(code.to_owned(), level)].into(), ..Rules::default() };
    let report = |o: &Observation, rules: Rules| report_by(o, &rules, None);
    assert_eq!(report(&noisy, rules("stdout.noise", Severity::Warn)).verdict, Verdict::Warn);
    assert_eq!(report(&noisy, rules("stdout.noise", Severity::Info)).verdict, Verdict::Pass);
    let slow_end = with(|launch| launch.end.as_mut().unwrap().by = EndedBy::Sigterm);
    let strict = report(&slow_end, rules("shutdown.needed_term", Severity::Fail));
    assert_eq!((strict.verdict, strict.reason), (Verdict::Fail, Some(Reason::Policy)));
}

#[test]
fn what_explains_a_failure_takes_its_place() {
    let mut stopped = with(|launch| launch.seen.push(seen(What::Line(Fault::Noise))));
    stopped.cancelled = true;
    let report = report(&stopped);
    assert_eq!((report.verdict, report.reason), (Verdict::Unknown, None));
    assert!(report.findings.iter().all(|f| f.severity == Severity::Unknown));
    assert_eq!(codes(&report), ["stdout.noise", "probe.cancelled"]);
    let login = self::report(&with(|launch| {
        launch.seen.push(seen(What::Browser { origin: "https://a.example".to_owned() }));
        launch.seen.push(seen(What::StdoutClosed { asked: Asked::Initialize }));
    }));
    assert_eq!((login.verdict, codes(&login)), (Verdict::Unknown, vec!["exit.stdout_closed", "auth.browser"]));
}

/// What a probe of a server comes to that has a live copy, pid 7.
fn beside_a_copy(change: impl FnOnce(&mut Launch)) -> Report {
    let mut observation = with(change);
    observation.peers = Peers { looked: true, live: vec![7], ..Peers::default() };
    report(&observation)
}

fn exited(exit: Exit, after_reply: bool) -> Seen {
    let what = What::Exited { asked: Asked::Initialize, exit, after_reply, held: false };
    Seen { excerpt: Default::default(), ..seen(what) }
}

fn timed_out(asked: Asked) -> Seen {
    let timeout = Timeout { asked, limit: Limit::Phase, waited: Duration::from_secs(1), lines: 0, unfinished: 0, newline_missing: false };
    Seen { excerpt: Default::default(), ..seen(What::Timeout(timeout)) }
}

#[test]
fn a_second_copy_that_stops_over_a_lock_says_nothing_about_the_server() {
    let stopped = |code, stderr: &str| {
        beside_a_copy(|launch| {
            launch.seen.push(exited(Exit::Code(code), false));
            launch.stderr_tail = stderr.to_owned();
        })
    };
    for (code, stderr, sign) in [
        (1, "Error: listen EADDRINUSE: address already in use :::3000\n    at x", "EADDRINUSE"),
        (1, "OSError: [Errno 98] Address already in use\n", "Errno 98"),
        (75, "already locked by another process\n", "already locked"),
        (75, "sorry\n", "status 75"),
        (1, "store: Database is locked\nbye\n", "Database is locked"),
        (125, "docker: Error response: Conflict. The container name \"/x\" is already in use by container \"ab\".\n", "by container"),
        (1, "", "without a word"),
    ] {
        let report = stopped(code, stderr);
        assert_eq!((report.verdict, report.reason), (Verdict::Unknown, None), "{stderr}");
        assert_eq!(codes(&report), ["exit.before_reply", "peer.second_instance"]);
        assert!(report.findings.iter().all(|f| f.severity == Severity::Unknown));
        let evidence = &report.findings[1].evidence;
        assert!(evidence.contains("pid 7") && evidence.contains(sign), "{evidence}");
        assert_eq!(report.peers.live, [7]);
    }
    let other = stopped(1, "API_KEY is not set\n");
    assert_eq!((other.verdict, codes(&other)), (Verdict::Fail, vec!["exit.before_reply"]), "another reason is given");
    let crash = beside_a_copy(|launch| launch.seen.push(exited(Exit::Signal(11), false)));
    assert_eq!(crash.verdict, Verdict::Fail, "no lock ends a process by a signal");
}

#[test]
fn a_second_copy_may_stop_later_or_wait_or_say_it_elsewhere() {
    let mid = beside_a_copy(|launch| {
        launch.seen.push(exited(Exit::Code(1), true));
        launch.stderr_tail = "Traceback\nOSError: Address already in use\n".to_owned();
    });
    assert_eq!((mid.verdict, codes(&mid)), (Verdict::Unknown, vec!["exit.mid_session", "peer.second_instance"]));
    let waits = beside_a_copy(|launch| launch.seen.push(timed_out(Asked::Initialize)));
    assert_eq!((waits.verdict, codes(&waits)), (Verdict::Unknown, vec!["timeout.silent", "peer.second_instance"]));
    let hangs = beside_a_copy(|launch| launch.seen.push(timed_out(Asked::List(ListKind::Tools))));
    assert_eq!(hangs.verdict, Verdict::Fail, "that one has started");
    let noisy = beside_a_copy(|launch| launch.seen.extend([seen(What::Line(Fault::Noise)), timed_out(Asked::Initialize)]));
    assert_eq!(noisy.verdict, Verdict::Fail, "the noise may be why");
    let said = beside_a_copy(|launch| {
        let excerpt = Redactor::default().excerpt(b"Server is already running");
        launch.seen.extend([Seen { excerpt, ..seen(What::Line(Fault::Noise)) }, exited(Exit::Code(1), false)]);
    });
    assert_eq!(said.verdict, Verdict::Unknown);
    let message = Redactor::default().excerpt(b"listen EADDRINUSE");
    let answered = beside_a_copy(|launch| launch.seen.push(seen(What::Refused { asked: Asked::List(ListKind::Tools), code: Some(-32603), message })));
    assert_eq!((answered.verdict, codes(&answered)), (Verdict::Unknown, vec!["rpc.error", "peer.second_instance"]));
}

#[test]
fn without_a_live_copy_or_where_two_could_live_a_failure_is_one() {
    let fails = |peers| {
        let mut observation = with(|launch| launch.seen.push(exited(Exit::Code(75), false)));
        observation.peers = peers;
        let report = report(&observation);
        (report.verdict, codes(&report))
    };
    let alone = (Verdict::Fail, vec!["exit.before_reply"]);
    assert_eq!(fails(Peers { looked: true, ..Peers::default() }), alone);
    assert_eq!(fails(Peers { looked: true, live: vec![7], coexists: true, ..Peers::default() }), alone);
    assert_eq!(beside_a_copy(|_| {}).verdict, Verdict::Pass, "a copy that starts beside another one is well");
}

#[test]
fn a_live_copy_that_died_is_told_whatever_else_there_was() {
    let harmed = |change: fn(&mut Launch)| {
        let mut observation = with(change);
        observation.peers = Peers { looked: true, died: vec![7, 8], coexists: true, ..Peers::default() };
        report(&observation)
    };
    let well = harmed(|_| {});
    assert_eq!((well.verdict, codes(&well), &well.peers.died), (Verdict::Unknown, vec![PEER_HARMED], &vec![7, 8]));
    assert!(well.findings[0].message.contains("pid 7, 8") && well.findings[0].evidence.contains("pid 7, 8"));
    let ill = harmed(|launch| launch.seen.push(seen(What::Line(Fault::Noise))));
    assert_eq!((ill.verdict, ill.reason), (Verdict::Unknown, None));
}

#[test]
fn a_timeout_on_a_busy_host_is_not_the_servers() {
    let timed_out = |queued: u64, cpu: u64| {
        report(&with(|launch| {
            let waited = Duration::from_secs(10);
            launch.seen.push(seen(What::Timeout(Timeout {
                asked: Asked::Initialize,
                limit: Limit::Phase,
                waited,
                lines: 0,
                unfinished: 0,
                newline_missing: false,
            })));
            launch.end.as_mut().unwrap().usage = Usage { queued: Duration::from_secs(queued), cpu: Duration::from_secs(cpu), ..Usage::default() };
        }))
    };
    let slept = report(&with(|launch| {
        let waited = Duration::from_secs(16);
        launch.seen.push(seen(What::Overslept { by: Duration::from_secs(6) }));
        launch.seen.push(seen(What::Timeout(Timeout {
            asked: Asked::Initialize,
            limit: Limit::Phase,
            waited,
            lines: 0,
            unfinished: 0,
            newline_missing: false,
        })));
    }));
    assert_eq!((slept.verdict, codes(&slept)), (Verdict::Unknown, vec!["timeout.silent", "probe.host_busy"]));
    let starved = timed_out(6, 2);
    assert_eq!((starved.verdict, codes(&starved)), (Verdict::Unknown, vec!["timeout.silent", "probe.host_busy"]));
    assert_eq!(timed_out(1, 0).verdict, Verdict::Fail, "it had its chance");
    assert_eq!(timed_out(6, 15).verdict, Verdict::Fail, "it kept all cores busy by itself");
}

#[test]
fn who_found_nothing_left_is_not_blamed_where_others_have_it() {
    let ended = |what: What, stderr: &str, of, limit, left| {
        report(&with(|launch| {
            launch.stderr_tail = stderr.to_owned();
            launch.seen.push(seen(what));
            launch.end.as_mut().unwrap().swept.scarce = vec![Scarcity { of, limit, left }];
        }))
    };
    let crashed = || What::Exited { asked: Asked::Initialize, exit: Exit::Signal(6), after_reply: false, held: false };
    let exited = || What::Exited { asked: Asked::Initialize, exit: Exit::Code(1), after_reply: false, held: false };
    let node = "node[7]: pthread_create: Resource temporarily unavailable";
    for said in
        [node, "RuntimeError: can't start new thread", "sh: 1: Cannot fork", "runtime: failed to create new OS thread (have 5 already; errno=11)"]
    {
        let starved = ended(exited(), said, Shared::CgroupTasks, 64, 3);
        assert_eq!((starved.verdict, codes(&starved)), (Verdict::Unknown, vec!["exit.before_reply", "probe.resources"]), "{said}");
        assert!(starved.findings[1].evidence.contains("its cgroup has 3 of 64"), "{starved:?}");
        assert!(!starved.findings[0].evidence.contains("ulimit"), "{starved:?}");
    }
    let verdict = |what, stderr, of, limit, left| ended(what, stderr, of, limit, left).verdict;
    assert_eq!(verdict(exited(), node, Shared::UserTasks, 4096, 50), Verdict::Unknown, "others have nearly all of them");
    assert_eq!(verdict(exited(), node, Shared::UserTasks, 70, 50), Verdict::Fail, "it has taken most itself");
    assert_eq!(verdict(exited(), "no such file", Shared::UserTasks, 64, 3), Verdict::Fail);
    assert_eq!(verdict(crashed(), "", Shared::UserTasks, 9, 6), Verdict::Unknown, "Node says nothing when it has next to none");
    assert_eq!(verdict(exited(), "", Shared::UserTasks, 9, 6), Verdict::Fail, "an exit is no crash");
    assert_eq!(verdict(crashed(), "", Shared::UserTasks, 64, 20), Verdict::Fail);
    assert_eq!(verdict(exited(), "ENFILE: file table overflow", Shared::HostFiles, 9000, 0), Verdict::Unknown);
    assert_eq!(verdict(exited(), "EMFILE: too many open files", Shared::HostFiles, 9000, 0), Verdict::Fail, "that limit is its own");
    let hung = What::Timeout(Timeout {
        asked: Asked::Initialize,
        limit: Limit::Phase,
        waited: Duration::from_secs(10),
        lines: 0,
        unfinished: 0,
        newline_missing: false,
    });
    assert_eq!(verdict(hung, "", Shared::HostTasks, 9000, 5), Verdict::Unknown);
}

#[test]
fn a_launcher_that_is_still_fetching_says_nothing_about_the_server() {
    let timed_out = |fetches, processes, stdout_bytes| {
        report(&with(|launch| {
            let waited = Duration::from_secs(120);
            launch.fetches = fetches;
            launch.io.stdout_bytes = stdout_bytes;
            launch.seen.push(seen(What::Timeout(Timeout {
                asked: Asked::Initialize,
                limit: Limit::Phase,
                waited,
                lines: 0,
                unfinished: 0,
                newline_missing: false,
            })));
            launch.end.as_mut().unwrap().usage = Usage { processes, ..Usage::default() };
        }))
        .verdict
    };
    assert_eq!(timed_out(Fetches::Package, 1, 0), Verdict::Unknown);
    assert_eq!(timed_out(Fetches::Package, 2, 0), Verdict::Fail, "the server was started, and does not answer");
    assert_eq!(timed_out(Fetches::Nothing, 1, 0), Verdict::Fail);
    assert_eq!(timed_out(Fetches::Image, 1, 0), Verdict::Fail, "docker's client is always alone");
}

#[test]
fn objectives_are_held_against_what_was_measured() {
    let rules = Rules { objectives: [("startup", Duration::from_millis(40)), ("list", Duration::from_secs(9))].into(), ..Rules::default() };
    let slow = report_by(&with(|_| {}), &rules, None);
    assert_eq!((codes(&slow), slow.verdict), (vec!["latency.slow"], Verdict::Warn));
    assert!(slow.findings[0].message.contains("0.050 s"));
}

#[test]
fn drift_is_what_differs_from_the_baseline() {
    let before = r#"[{"name":"a","description":"x","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]"#;
    let base = with(|launch| launch.lists = vec![tools(before)]);
    let baseline = accepted(listing(&base).unwrap());
    let against = |now: &str| report_by(&with(|launch| launch.lists = vec![tools(now)]), &Rules::default(), Some(&baseline));
    assert_eq!(against(before).drift.status, DriftStatus::Same);
    let reordered = against(r#"[{"name":"b","inputSchema":{"type":"object"}},{"name":"a","description":"x","inputSchema":{"type":"object"}}]"#);
    assert_eq!((codes(&reordered), reordered.verdict), (vec!["drift.order"], Verdict::Pass));
    let changed = against(r#"[{"name":"a","description":"y","inputSchema":{"type":"object"}},{"name":"c","inputSchema":{"type":"object"}}]"#);
    assert_eq!(codes(&changed), ["drift.added", "drift.removed", "drift.changed"]);
    assert_eq!((changed.drift.added, changed.drift.removed), (vec!["c".to_owned()], vec!["b".to_owned()]));
    let told: Vec<_> = changed.drift.changed.iter().map(|c| (c.tool.as_str(), c.path.as_str(), c.class)).collect();
    assert_eq!(told, [("a", "/description", ChangeClass::Description)]);
    let modern = with(|launch| {
        launch.opening = Era::Modern;
        launch.lists = vec![tools("[]")];
    });
    assert_eq!(codes(&report_by(&modern, &Rules::default(), Some(&baseline))), ["drift.not_comparable"]);
}

#[test]
fn a_list_that_was_cut_is_no_baseline() {
    let cut = with(|launch| launch.lists[0].complete = false);
    assert!(listing(&cut).is_none());
    assert!(!report(&cut).schema.unwrap().complete);
    let failed_once = with(|launch| {
        launch.lists.push(ListSeen { kind: ListKind::Prompts, items: vec![], complete: false, unknown: true });
    });
    assert!(listing(&failed_once).is_none(), "what could not be read is not empty");
    assert!(!report(&failed_once).schema.unwrap().complete);
    let none = with(|launch| launch.lists.clear());
    assert!(report(&none).schema.is_none());
}

#[test]
fn codes_are_unique_and_explained() {
    let mut seen = std::collections::BTreeSet::new();
    for check in CHECKS.iter() {
        assert!(seen.insert(check.code), "{} twice", check.code);
        assert!(check.about.ends_with('.') && check.mend.ends_with(['.', '?']), "{}", check.code);
        let (family, name) = check.code.split_once('.').unwrap();
        assert!(!family.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{}", check.code);
    }
}
