//! Whether the server answers, and whether its answers are JSON-RPC and MCP.

use super::super::case::{Case, Check, Found};
use super::super::verdict::Severity::{Fail, Info, Warn};
use super::container::silence_hint;
use crate::probe::{Asked, Limit, Timeout, What};
use crate::protocol::mcp::{Flaw, ListKind, RefusedBy};
use crate::protocol::{Era, LATEST_LEGACY, LATEST_MODERN};
use crate::words::{At, printable};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "timeout.silent",
        severity: Fail,
        about: "No complete line came after a request, within its time. A client waits as long as it was told to, 60 s for each request in the TypeScript SDK, and then shows the server as failed.",
        mend: "If the server is only slow (a download, a network call before it answers), raise --startup-timeout, or --request-timeout for what comes after the handshake. If it never answers: is its output buffered and not flushed, is its stdin handed on by every wrapper, does it speak stdio at all?",
        run: |case| timeout(case, |t| t.limit == Limit::Phase && t.lines == 0),
    },
    Check {
        code: "timeout.noise",
        severity: Fail,
        about: "Lines came after a request, but no reply to it, within its time. A client waits for the reply as if nothing had come, and gives up.",
        mend: "See what it wrote instead: a prompt that waits for an answer, messages that answer something else, output that is not JSON.",
        run: |case| timeout(case, |t| t.limit == Limit::Phase && t.lines > 0),
    },
    Check {
        code: "timeout.total",
        severity: Fail,
        about: "The time for the whole probe ran out.",
        mend: "Raise --total-timeout, or find what is slow: the phases' times are in the report.",
        run: |case| timeout(case, |t| t.limit == Limit::Total),
    },
    Check {
        code: "version.unsupported",
        severity: Fail,
        about: "The server and today's clients have no protocol version in common. A client that does not speak the version it is answered disconnects.",
        mend: "Update the server's SDK. A server answers with a version that it speaks, not with a literal.",
        run: |case| {
            case.seen(|what| match what {
                What::NoCommonVersion { server } => {
                    let versions = if server.is_empty() { "none".to_owned() } else { server.join(", ") };
                    Some(format!("no protocol version in common: we offered {}, and the server speaks {}", offered(case), printable(&versions, 200)))
                }
                _ => None,
            })
        },
    },
    Check {
        code: "rpc.error",
        severity: Fail,
        about: "An error reply to the handshake, or to tools/list where tools are offered. A client shows the server as failed, or without any tool.",
        mend: "The error's message is the server's own word. A server that offers tools has to list them, whatever its back end does.",
        run: |case| {
            case.seen(|what| match what {
                What::Refused { asked: asked @ (Asked::Discover | Asked::Initialize | Asked::List(ListKind::Tools)), code, message } => {
                    Some(format!("`{}` was answered with {}", asked.method(), error_words(*code, message.as_str())))
                }
                _ => None,
            })
        },
    },
    Check {
        code: "rpc.malformed",
        severity: Fail,
        about: "A message that breaks JSON-RPC 2.0: both or neither of result and error, a wrong type, an id that none may have. Clients drop it, and wait for the reply that it should have been.",
        mend: "Use an SDK's messages instead of hand-made ones. Where there is a result, leave `error` out, also as null; where there is an error, leave `result` out.",
        run: |case| {
            case.seen(|what| match what {
                What::Malformed { problem } => Some(format!("a message breaks JSON-RPC: {problem}")),
                _ => None,
            })
        },
    },
    Check {
        code: "rpc.id_mismatch",
        severity: Fail,
        about: "A reply whose id answers nothing that was asked. A client that keeps to the specification waits for ever: those on the Python SDK do over 1.0 for 1, which those on the TypeScript SDK take.",
        mend: "Send the request's id back as it came, with its type: 1, 1.0 and \"1\" are different ids.",
        run: |case| {
            case.seen(|what| match what {
                What::IdMismatch { wanted: Some(wanted), got } => Some(format!("a reply has the id {got}, and {wanted} was waited for")),
                What::IdMismatch { wanted: None, got } => Some(format!("a reply has the id {got}, and nothing was waited for")),
                _ => None,
            })
        },
    },
    Check {
        code: "rpc.duplicate_reply",
        severity: Warn,
        about: "A second reply to one request. Clients take the first, and report an error about the second.",
        mend: "Answer each request once. Often a handler both returns a result and sends one.",
        run: |case| {
            case.seen(|what| match what {
                What::DuplicateReply { id } => Some(format!("the request {id} was answered a second time")),
                _ => None,
            })
        },
    },
    Check {
        code: "rpc.reply_to_notification",
        severity: Warn,
        about: "An error without an id, after a notification. Notifications are not answered; some clients end the session over it.",
        mend: "Ignore notifications that are not known.",
        run: |case| {
            case.seen(|what| match what {
                What::ReplyToNotification { code } => {
                    Some(format!("a notification was answered with an error{}", code.map(|c| format!(" ({c})")).unwrap_or_default()))
                }
                _ => None,
            })
        },
    },
    Check {
        code: "rpc.server_request",
        severity: Fail,
        about: "A request from the server in the modern era, which forbids it.",
        mend: "From 2026-07-28 on a server asks for input by its result (`input_required`), not by a request.",
        run: |case| {
            if case.launch.opening != Era::Modern {
                return None;
            }
            case.seen(|what| match what {
                What::ServerRequest { method } => Some(format!("the server sent the request `{method}`, which revision {LATEST_MODERN} forbids")),
                _ => None,
            })
        },
    },
    Check {
        code: "mcp.invalid_result",
        severity: Fail,
        about: "A result without a field that its revision requires, or with one of a type that no client takes: the official SDKs' clients refuse it whole, and with it the server or the list.",
        mend: "Put in what is missing, with the type that is named; an SDK of the revision does so by itself.",
        run: |case| {
            case.seen(|what| match what {
                What::Flawed { asked, flaw } if flaw.by == RefusedBy::All => Some(flaw_words(*asked, flaw)),
                _ => None,
            })
        },
    },
    Check {
        code: "mcp.disputed_result",
        severity: Warn,
        about: "A result has a member that the clients of some official SDKs refuse, and with it the whole result, while those of others read on: null where a member should be left out, \"true\" for true, an empty array for an empty object, a date without a time. The finding says whose clients refuse it.",
        mend: "Write the member with the type that is named, or leave it out: have the serializer skip what is null. To have it fail where your clients are among those: --severity mcp.disputed_result=fail.",
        run: |case| {
            case.seen(|what| match what {
                What::Flawed { asked, flaw } => who_refuses(flaw.by).map(|who| format!("{}; {who}", flaw_words(*asked, flaw))),
                _ => None,
            })
        },
    },
    Check {
        code: "mcp.missing_modern_field",
        severity: Warn,
        about: "resultType, ttlMs or cacheScope are missing in the modern era. The version was announced before it was implemented.",
        mend: "Add the fields, or stop announcing the modern version.",
        run: |case| {
            case.seen(|what| match what {
                What::MissingFields { asked, names } => Some(format!("the result of `{}` lacks {}", asked.method(), names.join(", "))),
                _ => None,
            })
        },
    },
    Check {
        code: "mcp.contradictory_version",
        severity: Warn,
        about: "The server refuses a protocol version that its own list contains.",
        mend: "Compare what the server lists with what it accepts.",
        run: |case| {
            case.seen_anywhere(|what| match what {
                What::Contradiction { version } => Some(format!("the server refuses version {version}, which it lists as supported")),
                _ => None,
            })
        },
    },
    Check {
        code: "mcp.notification_before_reply",
        severity: Info,
        about: "A notification came before the first reply. Clients that match replies by id do not mind.",
        mend: "Nothing has to be done; sending it after the handshake is safer.",
        run: |case| {
            case.seen(|what| match what {
                What::NotificationFirst { method } => Some(format!("`{method}` came before the first reply")),
                _ => None,
            })
        },
    },
];

/// The newest version of the era that the launch was opened in.
fn offered(case: Case<'_>) -> &'static str {
    match case.launch.opening {
        Era::Legacy => LATEST_LEGACY,
        Era::Modern => LATEST_MODERN,
    }
}

fn flaw_words(asked: Asked, flaw: &Flaw) -> String {
    let path = printable(&flaw.path, 100);
    format!("the result of `{}` is wrong: {path} should be {}, and there is {}", asked.method(), flaw.wanted, flaw.got)
}

/// Whose clients refuse what others take.
const fn who_refuses(by: RefusedBy) -> Option<&'static str> {
    match by {
        RefusedBy::TypeScript => Some("clients on the TypeScript SDK refuse it"),
        RefusedBy::Python => Some("clients on the Python SDK refuse it"),
        RefusedBy::Several => Some("clients on most official SDKs refuse it, on older ones not"),
        RefusedBy::All => None,
    }
}

/// An error reply, in words.
pub(super) fn error_words(code: Option<i64>, message: &str) -> String {
    let code = code.map_or_else(|| "an error".to_owned(), |code| format!("error {code}"));
    if message.is_empty() { code } else { format!("{code}: {message}") }
}

fn timeout(case: Case<'_>, wanted: impl Fn(&Timeout) -> bool) -> Option<Found> {
    let mut found = case.seen(|what| match what {
        What::Timeout(t) if wanted(t) => Some(timeout_words(t)),
        _ => None,
    })?;
    let io = case.launch.io;
    if case.launch.started > At::START {
        found.evidence.push_str(&format!("; this launch began at {}", case.launch.started));
    }
    found.evidence.push_str(&format!("; the process was running, with {} bytes on stdout and {} on stderr", io.stdout_bytes, io.stderr_bytes));
    if let Some(hint) = silence_hint(case) {
        found.evidence.push_str(&format!("; {hint}"));
    }
    Some(found)
}

fn timeout_words(t: &Timeout) -> String {
    let waited = t.waited.as_secs_f64();
    let lines = match t.lines {
        0 => "nothing",
        1 => "one line that was no reply",
        _ => "lines that were no reply",
    };
    let tail = match (t.unfinished, t.newline_missing) {
        (0, _) => String::new(),
        (n, true) => format!("; a whole message of {n} bytes waits for its newline"),
        (n, false) => format!("; {n} bytes of an unfinished line wait for their newline"),
    };
    let budget = if t.limit == Limit::Total { ", when the time for the whole probe was up" } else { "" };
    format!("`{}` was not answered within {waited:.1} s{budget}: {lines} came{tail}", t.asked.method())
}
