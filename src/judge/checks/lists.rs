//! What the lists hold.

use super::super::case::Check;
use super::super::verdict::Severity::{Info, Warn};
use super::handshake::error_words;
use crate::probe::{Asked, What};
use crate::protocol::mcp::{ListKind, MAX_DEPTH, ToolFlaw};
use crate::words::printable;

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "list.unavailable",
        severity: Warn,
        about: "A list other than the tools is offered, and answers with an error.",
        mend: "Answer it, with an empty list if there is nothing, or do not offer the capability.",
        run: |case| {
            case.seen(|what| match what {
                What::Refused { asked: Asked::List(kind), code, message } if *kind != ListKind::Tools => {
                    Some(format!("`{}` is offered, and was answered with {}", kind.method(), error_words(*code, message.as_str())))
                }
                _ => None,
            })
        },
    },
    Check {
        code: "list.cursor_loop",
        severity: Warn,
        about: "A page's cursor came again, so the list would never end. Clients without a guard read the same items for ever.",
        mend: "Leave nextCursor out of the last page.",
        run: |case| {
            case.seen(|what| match what {
                What::CursorLoop { list } => Some(format!("the pages of `{}` lead back to a cursor that was there before", list.method())),
                _ => None,
            })
        },
    },
    Check {
        code: "list.null_cursor",
        severity: Info,
        about: "nextCursor is null on the last page, where it should be left out. Clients on the Python SDK read it as left out; those on the TypeScript SDK refuse the page.",
        mend: "Leave nextCursor out of the last page: have the serializer skip what is null.",
        run: |case| {
            case.seen(|what| match what {
                What::NullCursor { list } => Some(format!("the last page of `{}` has a nextCursor of null", list.method())),
                _ => None,
            })
        },
    },
    Check {
        code: "list.incomplete",
        severity: Warn,
        about: "A list could not be read to its end, or a limit cut it.",
        mend: "Larger pages, or fewer items: a client reads all of them before it can do anything.",
        run: |case| {
            case.seen(|what| match what {
                What::Incomplete { list, why } => Some(format!("`{}` was not read to its end: {why}", list.method())),
                _ => None,
            })
        },
    },
    Check {
        code: "list.changed_loop",
        severity: Warn,
        about: "Each listing is followed by list_changed, so that a client that obeys reads the list for ever.",
        mend: "Send list_changed when the list has changed, not when it was read.",
        run: |case| {
            case.seen(|what| match what {
                What::ChangedLoop { list } => Some(format!("each `{}` is followed by a notification that the list has changed", list.method())),
                _ => None,
            })
        },
    },
    Check {
        code: "tools.late",
        severity: Warn,
        about: "The tool list was empty at first and filled later. A client that asks once sees no tools.",
        mend: "Register the tools before the handshake is answered.",
        run: |case| {
            case.seen(|what| match what {
                What::LateTools { tools } => Some(format!("the tool list was empty at first, and had {tools} tools a moment later")),
                _ => None,
            })
        },
    },
    Check {
        code: "tools.duplicate_name",
        severity: Warn,
        about: "Two tools have the same name. Clients keep one of them, or refuse both.",
        mend: "Give each its own name.",
        run: |case| {
            case.seen(|what| match what {
                What::DuplicateName { list, name } => Some(format!("\"{name}\" stands twice in `{}`", list.method())),
                _ => None,
            })
        },
    },
    Check {
        code: "tools.invalid_schema",
        severity: Warn,
        about: "An inputSchema or outputSchema that is no JSON Schema, or an inputSchema whose root is not type: object. Model providers refuse the tool, and sometimes all of them.",
        mend: "Correct the keyword that is named.",
        run: |case| {
            case.seen(|what| match what {
                What::Tool { name, flaw: ToolFlaw::Invalid { pointer, wanted } } => {
                    Some(format!("the schema of \"{name}\" is wrong at {}: there should be {wanted}", printable(pointer, 200)))
                }
                _ => None,
            })
        },
    },
    Check {
        code: "tools.dead_ref",
        severity: Warn,
        about: "A local $ref in a schema that resolves to nothing. Recursion is legal, and no finding.",
        mend: "Ship the definitions with the schema; generators often drop $defs.",
        run: |case| {
            case.seen(|what| match what {
                What::Tool { name, flaw: ToolFlaw::DeadRef { reference } } => {
                    Some(format!("in a schema of \"{name}\" the reference {reference} leads nowhere"))
                }
                _ => None,
            })
        },
    },
    Check {
        code: "tools.too_deep",
        severity: Warn,
        about: "A schema is deeper than many clients' libraries can read. Its digest is taken all the same.",
        mend: "Use $ref for what repeats.",
        run: |case| {
            case.seen(|what| match what {
                What::Tool { name, flaw: ToolFlaw::TooDeep } => Some(format!("a schema of \"{name}\" is more than {MAX_DEPTH} levels deep")),
                _ => None,
            })
        },
    },
    Check {
        code: "tools.volatile",
        severity: Warn,
        about: "Something differs between two listings of one session: a timestamp in a description, a random order inside a text. Drift cannot be told from it.",
        mend: "Keep what changes out of names, descriptions and schemas.",
        run: |case| {
            case.seen(|what| match what {
                What::Volatile { list, item, pointer } if pointer.is_empty() => {
                    Some(format!("\"{item}\" is in one of two listings by `{}` and not in the other", list.method()))
                }
                What::Volatile { item, pointer, .. } => Some(format!("{pointer} of \"{item}\" differs between two listings of one session")),
                _ => None,
            })
        },
    },
];
