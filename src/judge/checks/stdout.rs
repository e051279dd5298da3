//! What may be on stdout: JSON-RPC messages, one a line, and nothing else.

use super::super::case::{Case, Check, Found};
use super::super::verdict::Severity::{Fail, Info, Warn};
use super::container::echo_hint;
use crate::probe::What;
use crate::protocol::json::MAX_VALUES;
use crate::protocol::wire::Fault;

/// What to do about anything on stdout that does not belong there.
const TO_STDERR: &str = "Write logs to stderr, which is free for it. In Python print(…, file=sys.stderr), in Node console.error; look for libraries, launchers and start-up scripts that print.";

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "stdout.noise",
        severity: Fail,
        about: "A line on stdout that is not JSON. Clients on the TypeScript and Python SDKs report an error and read on; others end the session.",
        mend: TO_STDERR,
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::Noise) => Some("something other than a message is on stdout".to_owned()),
                What::Echo { method } => {
                    Some(format!("our own `{method}` came back on stdout: the command echoes its input, as a terminal or `cat` does"))
                }
                _ => None,
            })
            .map(|found| place_words(case, found))
            .map(|found| echo_words(case, found))
        },
    },
    Check {
        code: "stdout.not_jsonrpc",
        severity: Fail,
        about: "A line on stdout that is JSON, but no JSON-RPC message: a log record, a result object. Clients do with it what they do with noise: report an error and read on, or end the session.",
        mend: TO_STDERR,
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::NotJsonRpc) => Some("JSON that is no JSON-RPC message is on stdout".to_owned()),
                _ => None,
            })
            .map(|found| place_words(case, found))
        },
    },
    Check {
        code: "stdout.glued",
        severity: Fail,
        about: "A message with other bytes before or after it on its line: terminal codes, a progress bar, a second message. Clients take the line as a whole, so the message is lost, and its request is never answered.",
        mend: "End every message with a newline, begin it on a line of its own, and switch off colours, cursor control and progress bars when stdout is no terminal.",
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::Glued { at: 0, after }) => Some(format!("a message is followed by {after} other bytes on its line")),
                What::Line(Fault::Glued { at, after: 0 }) => Some(format!("a message begins only at byte {at} of its line")),
                What::Line(Fault::Glued { at, after }) => {
                    Some(format!("a message begins at byte {at} of its line and is followed by {after} other bytes"))
                }
                _ => None,
            })
        },
    },
    Check {
        code: "stdout.multi_line",
        severity: Fail,
        about: "One message spread over several lines. Clients read a line at a time and understand none of them.",
        mend: "Write each message on one line: no indentation, and newlines in texts as \\n.",
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::MultiLine { lines }) => Some(format!("one message is spread over {lines} lines")),
                _ => None,
            })
        },
    },
    Check {
        code: "stdout.lsp_framing",
        severity: Fail,
        about: "Content-Length headers, as the Language Server Protocol has them. MCP over stdio has one message a line and no headers: to a client they are noise, and a message without a newline at its end is none yet.",
        mend: "Use an MCP SDK's stdio transport instead of a language server's.",
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::LspFraming) => Some("the server writes Content-Length headers, as language servers do".to_owned()),
                _ => None,
            })
        },
    },
    Check {
        code: "stdout.batch",
        severity: Fail,
        about: "A JSON-RPC batch (an array). Only revision 2025-03-26 had them; clients of the others refuse the line, and what is in it is lost.",
        mend: "Write each message by itself.",
        run: |case| {
            case.seen(|what| match what {
                What::Batch => Some("the server writes messages as an array, which the agreed revision does not know".to_owned()),
                _ => None,
            })
        },
    },
    Check {
        code: "stdout.not_utf8",
        severity: Fail,
        about: "Bytes that are no UTF-8. Clients in Node read U+FFFD in their place; those in Python stop with an error.",
        mend: "Write UTF-8, whatever the locale (PYTHONIOENCODING=utf-8, PYTHONUTF8=1; no UTF-16 from PowerShell).",
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::NotUtf8 { at }) => Some(format!("byte {at} of a line on stdout is no UTF-8")),
                _ => None,
            })
        },
    },
    Check {
        code: "stdout.bom",
        severity: Fail,
        about: "A byte-order mark in front of a message. Strict JSON readers refuse it.",
        mend: "Write UTF-8 without a byte-order mark.",
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::Bom) => Some("a byte-order mark stands in front of a message".to_owned()),
                _ => None,
            })
        },
    },
    Check {
        code: "stdout.non_finite",
        severity: Fail,
        about: "NaN or Infinity in a message. They are no JSON, though some writers produce them; most readers refuse the message.",
        mend: "Leave the value out, or write null. In Python: json.dumps(…, allow_nan=False) finds the place.",
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::NonFinite { at }) => Some(format!("NaN or Infinity stands at byte {at} of a message")),
                _ => None,
            })
        },
    },
    Check {
        code: "stdout.lone_surrogate",
        severity: Warn,
        about: "Half of a surrogate pair in a string (\\ud800). Node and Python read it, stricter readers refuse the whole message.",
        mend: "Cut texts at characters, not at UTF-16 units.",
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::LoneSurrogate { at }) => Some(format!("half of a surrogate pair stands at byte {at} of a message")),
                _ => None,
            })
        },
    },
    Check {
        code: "stdout.duplicate_key",
        severity: Warn,
        about: "One object has the same key twice. Two readers may see two different messages.",
        mend: "Build messages from maps, not by gluing text.",
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::DuplicateKey { pointer }) => {
                    Some(format!("a key stands twice in one object, at {}", crate::words::printable(pointer, 200)))
                }
                _ => None,
            })
        },
    },
    Check {
        code: "stdout.too_large",
        severity: Fail,
        about: "A line, or all output together, is over its limit.",
        mend: "Look for what writes without end. A message that large would trouble clients too: split it into pages.",
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::TooLong { limit }) => Some(format!("a line on stdout is longer than the limit of {limit} bytes")),
                What::Line(Fault::TooManyValues) => Some(format!("a message holds more than {MAX_VALUES} values")),
                What::OutputLimit { limit } => Some(format!("the server wrote more than the limit of {limit} bytes to stdout")),
                What::TooManyLines { limit } => Some(format!("the server wrote more than {limit} lines to stdout")),
                _ => None,
            })
        },
    },
    Check {
        code: "stdout.unterminated",
        severity: Warn,
        about: "Stdout ended in the middle of a line, before the server was asked to end.",
        mend: "End every message with a newline and flush it before exiting.",
        run: |case| {
            case.seen(|what| match what {
                What::Unterminated { length } => Some(format!("stdout ended after {length} bytes of a line that was never finished")),
                _ => None,
            })
        },
    },
    Check {
        code: "stdout.blank_line",
        severity: Info,
        about: "Empty lines on stdout. Clients skip them.",
        mend: "Nothing has to be done; one newline a message is enough.",
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::Blank) => Some("there are empty lines on stdout".to_owned()),
                _ => None,
            })
        },
    },
    Check {
        code: "stdout.crlf",
        severity: Info,
        about: "Lines end in \\r\\n. Clients take it.",
        mend: "Nothing has to be done; \\n is what the specification says.",
        run: |case| {
            case.seen(|what| match what {
                What::Line(Fault::CrLf) => Some("lines on stdout end in a carriage return and a newline".to_owned()),
                _ => None,
            })
        },
    },
];

/// Says where in the session noise came: before any message it is the launcher's or a banner, at
/// the end it is a farewell.
fn place_words(case: Case<'_>, mut found: Found) -> Found {
    let launch = case.launch;
    let closed = launch.end.as_ref().and_then(|e| e.closed);
    let when = match launch.first_reply_line {
        None => ", before any reply",
        // By its place: what was read at once has one time.
        Some(first) if found.line.is_some_and(|line| line < first) => ", before the first reply",
        Some(_) if closed.is_some_and(|closed| found.at >= closed) => ", after the end of its input",
        Some(_) => ", between replies",
    };
    found.message.push_str(when);
    found
}

/// Why our own lines may have come back.
fn echo_words(case: Case<'_>, mut found: Found) -> Found {
    let echoes = case.launch.seen.iter().any(|seen| matches!(seen.what, What::Echo { .. }));
    if let Some(hint) = echo_hint(case).filter(|_| echoes) {
        found.evidence.push_str(&format!("; {hint}"));
    }
    found
}
