//! What was seen in one probe. No opinion: what it means is the judging's.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::pages::Pages;
use super::plan::Fetches;
use super::process::{ContainerRun, Excess, Exit, LaunchError, Swept, Usage};
use crate::protocol::Era;
use crate::protocol::mcp::{Flaw, Greeting, Item, ListKind, ToolFlaw};
use crate::protocol::wire::{Fault, Place};
use crate::words::{At, Excerpt};

/// Everything seen in one probe.
#[derive(Clone, Debug)]
pub struct Observation {
    /// One entry for each process that was launched, in order.
    pub launches: Vec<Launch>,
    /// Which of them shows the server as its clients see it; an index into `launches`.
    pub judged: usize,
    /// From the beginning to the end.
    pub total: Duration,
    /// The probe was stopped by us.
    pub cancelled: bool,
    /// The command runs a container.
    pub container: Option<ContainerRun>,
    /// What was seen of other live copies of the server.
    pub peers: Peers,
}

/// Live copies of the same server that others started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peers {
    /// They were looked for, and could be seen if there were any.
    pub looked: bool,
    /// The pids of those that live.
    pub live: Vec<u32>,
    /// The pids of those that lived before the launch and were dead at the end.
    pub died: Vec<u32>,
    /// A probe has succeeded beside a live copy before: a second copy can start.
    pub coexists: bool,
}

impl Observation {
    /// The launch on which the server is judged, if there was any.
    #[must_use]
    pub fn judged(&self) -> Option<&Launch> {
        self.launches.get(self.judged)
    }
}

/// A part of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Starting the process.
    Spawn,
    /// From there to the last reply of the handshake.
    Handshake,
    /// Reading the lists.
    List,
    /// Calling a tool.
    Call,
    /// From the end of stdin to the end of the process.
    Shutdown,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 5] = [Phase::Spawn, Phase::Handshake, Phase::List, Phase::Call, Phase::Shutdown];

    /// The word for it in reports and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::Spawn => "spawn",
            Phase::Handshake => "handshake",
            Phase::List => "list",
            Phase::Call => "call",
            Phase::Shutdown => "shutdown",
        }
    }
}

/// One process: launched, spoken to, ended.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The era it was opened in: with `server/discover`, or with `initialize`.
    pub opening: Era,
    /// What the command may have had to fetch first.
    pub fetches: Fetches,
    /// When the launch began.
    pub started: At,
    /// When the process was there.
    pub spawned: Option<At>,
    /// Why it never was.
    pub failure: Option<LaunchError>,
    /// When its first valid reply came.
    pub first_reply: Option<At>,
    /// The line of stdout that it stood on.
    pub first_reply_line: Option<u64>,
    /// When the handshake was complete.
    pub ready: Option<At>,
    /// When the lists had been read.
    pub listed: Option<At>,
    /// When the canary call had been answered.
    pub called: Option<At>,
    /// The version that was agreed on.
    pub version: Option<String>,
    /// What the server says of itself.
    pub greeting: Greeting,
    /// The lists that were asked for.
    pub lists: Vec<ListSeen>,
    /// Their pages, for the next probe to know again.
    pub pages: Arc<Pages>,
    /// What was noticed, in order of time.
    pub seen: Vec<Seen>,
    /// What went over the pipes.
    pub io: Io,
    /// The end of what it wrote to stderr, secrets masked, not escaped.
    pub stderr_tail: String,
    /// How it ended; `None` if it never began.
    pub end: Option<End>,
}

/// Bytes and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes read from stdout.
    pub stdout_bytes: u64,
    /// Bytes read from stderr.
    pub stderr_bytes: u64,
    /// JSON-RPC messages read.
    pub messages: u64,
}

/// A list that was asked for.
#[derive(Clone, Debug)]
pub struct ListSeen {
    /// Which one.
    pub kind: ListKind,
    /// What is on it.
    pub items: Vec<Item>,
    /// It was read to its end.
    pub complete: bool,
    /// It was answered with an error, or not at all; nothing is known of its items.
    pub unknown: bool,
}

/// How a process ended.
#[derive(Clone, Debug)]
pub struct End {
    /// When stdin was closed; `None` if the process was gone before that.
    pub closed: Option<At>,
    /// When it had ended.
    pub at: At,
    /// What ended it.
    pub by: EndedBy,
    /// How; `None` if it could not be ended.
    pub exit: Option<Exit>,
    /// What it left.
    pub swept: Swept,
    /// A descendant held stdout open when it had ended.
    pub pipe_held: bool,
    /// What it used.
    pub usage: Usage,
}

/// What it took to end a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndedBy {
    /// Nothing: it ended before it was asked to.
    Itself,
    /// The end of its stdin.
    Eof,
    /// SIGTERM.
    Sigterm,
    /// SIGKILL.
    Sigkill,
}

impl EndedBy {
    /// All of them.
    pub const ALL: [EndedBy; 4] = [EndedBy::Itself, EndedBy::Eof, EndedBy::Sigterm, EndedBy::Sigkill];

    /// The word for it in reports and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EndedBy::Itself => "self",
            EndedBy::Eof => "eof",
            EndedBy::Sigterm => "sigterm",
            EndedBy::Sigkill => "sigkill",
        }
    }
}

/// What was asked of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// `server/discover`
    Discover,
    /// `initialize`
    Initialize,
    /// A page of a list.
    List(ListKind),
    /// The canary call.
    Call,
}

impl Asked {
    /// The method.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Asked::Discover => "server/discover",
            Asked::Initialize => "initialize",
            Asked::List(kind) => kind.method(),
            Asked::Call => "tools/call",
        }
    }

    /// The phase it belongs to.
    #[must_use]
    pub const fn phase(self) -> Phase {
        match self {
            Asked::Discover | Asked::Initialize => Phase::Handshake,
            Asked::List(_) => Phase::List,
            Asked::Call => Phase::Call,
        }
    }
}

/// Something that was noticed.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When.
    pub at: At,
    /// In which phase.
    pub phase: Phase,
    /// Where on stdout, if it is something that stood there.
    pub place: Option<Place>,
    /// What.
    pub what: What,
    /// The bytes that show it; may be empty.
    pub excerpt: Excerpt,
    /// How often: once, and each later time that was not kept because enough of its kind was.
    pub times: u64,
}

/// The kinds of things that are noticed.
#[derive(Clone, Debug)]
pub enum What {
    /// A line broke the transport's rules.
    Line(Fault),
    /// A batch in a revision that knows none.
    Batch,
    /// One of our own lines came back.
    Echo {
        /// Its method.
        method: &'static str,
    },
    /// All of stdout together was over its limit.
    OutputLimit {
        /// The limit, in bytes.
        limit: u64,
    },
    /// Stdout has more lines than are read.
    TooManyLines {
        /// How many that is.
        limit: u64,
    },
    /// It had more of something than it may, and was killed for it.
    TookTooMuch(Excess),
    /// Stdout ended in the middle of a line.
    Unterminated {
        /// The bytes of that line.
        length: u64,
    },
    /// A message breaks JSON-RPC.
    Malformed {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A reply to nothing that was asked.
    IdMismatch {
        /// The id that is waited for, if any.
        wanted: Option<String>,
        /// The id that came.
        got: String,
    },
    /// A second reply to one request.
    DuplicateReply {
        /// Its id.
        id: String,
    },
    /// An error without an id, after a notification of ours.
    ReplyToNotification {
        /// The error's code.
        code: Option<i64>,
    },
    /// A request from the server.
    ServerRequest {
        /// What it asks for, escaped.
        method: String,
    },
    /// A notification before the first reply.
    NotificationFirst {
        /// What it tells, escaped.
        method: String,
    },
    /// An error reply.
    Refused {
        /// What was asked.
        asked: Asked,
        /// The error's code.
        code: Option<i64>,
        /// The error's message, escaped.
        message: Excerpt,
    },
    /// A result lacks something, or has it in the wrong type.
    Flawed {
        /// What was asked.
        asked: Asked,
        /// What is wrong.
        flaw: Flaw,
    },
    /// A modern result without fields that every modern result has.
    MissingFields {
        /// What was asked.
        asked: Asked,
        /// Their names.
        names: Vec<&'static str>,
    },
    /// It refuses a version that its own list contains.
    Contradiction {
        /// The version.
        version: String,
    },
    /// No version in common.
    NoCommonVersion {
        /// What the server speaks.
        server: Vec<String>,
    },
    /// A reply did not come in time.
    Timeout(Timeout),
    /// The process ended with a request unanswered.
    Exited {
        /// What was waited for.
        asked: Asked,
        /// How it ended.
        exit: Exit,
        /// There had been a valid reply before.
        after_reply: bool,
        /// Something that it had started held stdout open until the time was up.
        held: bool,
    },
    /// A request was answered when the launched process had exited: something that it had started serves on.
    Detached {
        /// What had been asked.
        asked: Asked,
    },
    /// Stdout was closed with a request unanswered, and the process lives.
    StdoutClosed {
        /// What was waited for.
        asked: Asked,
    },
    /// Stdin was closed with a request to send or unanswered, and the process lives.
    StdinClosed {
        /// What could not be asked, or was not answered.
        asked: Asked,
    },
    /// A cursor came again.
    CursorLoop {
        /// Of which list.
        list: ListKind,
    },
    /// A page says by null that nothing comes after it, where nothing should be said.
    NullCursor {
        /// Of which list.
        list: ListKind,
    },
    /// A list was cut.
    Incomplete {
        /// Which one.
        list: ListKind,
        /// Why.
        why: &'static str,
    },
    /// Each listing was followed by `list_changed`.
    ChangedLoop {
        /// Of which list.
        list: ListKind,
    },
    /// The tool list was empty at first and filled later.
    LateTools {
        /// How many tools came.
        tools: usize,
    },
    /// An item differs between two listings of one session.
    Volatile {
        /// Of which list.
        list: ListKind,
        /// The item.
        item: String,
        /// Where: JSON pointer within the item; empty if the item itself came or went.
        pointer: String,
    },
    /// Something is wrong with a tool's schemas.
    Tool {
        /// The tool.
        name: String,
        /// What.
        flaw: ToolFlaw,
    },
    /// Two items of one list have the same name.
    DuplicateName {
        /// Of which list.
        list: ListKind,
        /// The name.
        name: String,
    },
    /// The canary call could not be made, or its result was not as expected.
    CallFailed {
        /// The tool.
        tool: String,
        /// Why, in words, escaped and bounded.
        why: String,
    },
    /// The server called for a browser.
    Browser {
        /// Scheme and host of the page.
        origin: String,
    },
    /// We did not come to look in time: we, or the whole machine, stood still, or others had all the memory that there is for
    /// what servers write.
    Overslept {
        /// For how long.
        by: Duration,
    },
    /// A reply that had been waited for came when stdin was closed.
    ReplyAfterEof {
        /// What had been asked.
        asked: Asked,
    },
}

/// A wait that ran out.
#[derive(Clone, Debug)]
pub struct Timeout {
    /// What was waited for.
    pub asked: Asked,
    /// Which limit it was.
    pub limit: Limit,
    /// How long it was waited.
    pub waited: Duration,
    /// Complete lines that came meanwhile.
    pub lines: u64,
    /// Bytes of a line that had begun and not ended.
    pub unfinished: u64,
    /// That unfinished line is a whole message: only its newline is missing.
    pub newline_missing: bool,
}

/// A limit on waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The phase's own.
    Phase,
    /// The whole probe's.
    Total,
}
