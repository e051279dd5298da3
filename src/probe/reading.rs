//! What comes over stdout, and what it means for a [`Session`].

use std::collections::VecDeque;

use super::machine::Effect;
use super::observation::{Asked, What};
use super::pages::Question;
use super::session::{Opening, Session, Stage, Waiting};
use crate::protocol::json::{Kind, Value};
use crate::protocol::mcp::{self, Flaw, ListKind, ListPage, RefusedBy};
use crate::protocol::wire::{Fault, Framing, Id, Message, Piece, Place, Shape, Sink};
use crate::protocol::{Era, LATEST_LEGACY, LATEST_MODERN, LEGACY_VERSIONS, MODERN_VERSIONS};
use crate::words::{At, Digest};

/// `UnsupportedProtocolVersion`, 2026-07-28.
const UNSUPPORTED_VERSION: i64 = -32022;
/// `HeaderMismatch` and `MissingRequiredClientCapability`: as modern as the one above.
const OTHER_MODERN_ERRORS: [i64; 2] = [-32020, -32021];
/// Versions that are looked at; nobody has more.
const MAX_VERSIONS: usize = 10_000;
/// Lines that are read in one launch: each costs some time, and millions of short ones would keep us from all else.
const MAX_LINES: u64 = 1_000_000;
/// JSON-RPC's "method not found".
const METHOD_NOT_FOUND: i64 = -32601;

/// Something on stdout: when it was read, where it stood, and the bytes that it is.
#[derive(Clone, Copy)]
pub(super) struct Heard<'b> {
    pub(super) now: At,
    pub(super) place: Place,
    pub(super) bytes: &'b [u8],
    /// They are a whole line, and nothing is wrong with it.
    pub(super) is_clean: bool,
}

/// A session that is told what is on stdout.
struct Listener<'s> {
    session: &'s mut Session,
    now: At,
    effects: &'s mut VecDeque<Effect>,
}

impl Sink for Listener<'_> {
    fn piece(&mut self, place: Place, piece: Piece<'_>) {
        self.session.piece(self.now, place, piece, self.effects);
    }

    fn is_known(&mut self, place: Place, line: &[u8]) -> bool {
        self.session.recall(self.now, place, line, self.effects)
    }
}

impl Session {
    pub(super) fn stdout(&mut self, now: At, bytes: &[u8], effects: &mut VecDeque<Effect>) {
        if !self.wants_stdout() {
            return;
        }
        let room = self.plan.limits.output.saturating_sub(self.io.stdout_bytes);
        let within = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        self.io.stdout_bytes += within as u64;
        self.with_framing(|session, framing| {
            framing.feed(&bytes[..within], &mut Listener { session, now, effects });
        });
        if within < bytes.len() {
            self.over_limit(now, What::OutputLimit { limit: self.plan.limits.output }, effects);
        } else if self.lines > MAX_LINES {
            self.over_limit(now, What::TooManyLines { limit: MAX_LINES }, effects);
        }
    }

    /// What may be the beginning of a message over several lines will not be completed.
    pub(super) fn flush_open_message(&mut self, now: At, effects: &mut VecDeque<Effect>) {
        self.with_framing(|session, framing| {
            framing.finish(&mut Listener { session, now, effects });
        });
    }

    fn with_framing(&mut self, f: impl FnOnce(&mut Session, &mut Framing)) {
        let mut framing = std::mem::replace(&mut self.framing, Framing::new(0));
        f(self, &mut framing);
        if self.stdin_is_closed() {
            framing.drop_long_lines();
        }
        self.framing = framing;
    }

    fn piece(&mut self, now: At, place: Place, piece: Piece<'_>, effects: &mut VecDeque<Effect>) {
        self.lines = self.lines.max(place.line);
        if !self.judges_stdout() {
            return;
        }
        if matches!(piece, Piece::Fault(..)) {
            self.faulty_line = place.line;
        }
        let heard = |bytes| Heard { now, place, bytes, is_clean: false };
        match piece {
            Piece::Fault(Fault::DuplicateKey { pointer }, bytes) => {
                let pointer = self.plan.redactor.printable(&pointer, 200);
                self.note_heard(heard(bytes), What::Line(Fault::DuplicateKey { pointer }));
            }
            Piece::Fault(fault, bytes) => self.note_heard(heard(bytes), What::Line(fault)),
            Piece::Message(message, bytes) => {
                // What is wrong with a line is told before what is on it.
                let is_clean = self.faulty_line != place.line && message.problems.is_empty() && message.stranger.is_none();
                self.message(Heard { is_clean, ..heard(bytes) }, &message, effects);
            }
            Piece::Batch(messages, bytes) => {
                // JSON-RPC batches existed in this revision alone.
                if self.version.as_deref() != Some("2025-03-26") {
                    self.note_heard(heard(bytes), What::Batch);
                }
                for message in &messages {
                    self.message(heard(bytes), message, effects);
                }
            }
        }
    }

    fn message(&mut self, heard: Heard<'_>, message: &Message<'_>, effects: &mut VecDeque<Effect>) {
        if let Some(method) = message.method()
            && let Some(method) = mcp::is_ours(method)
        {
            self.note_heard(heard, What::Echo { method });
            return;
        }
        self.io.messages += 1;
        for problem in &message.problems {
            self.note_heard(heard, What::Malformed { problem });
        }
        match &message.shape {
            Shape::Request { method } => self.request(heard, message.id.as_ref(), method, effects),
            Shape::Notification { method } => self.notification(heard, method, effects),
            Shape::Result(_) | Shape::Error { .. } => self.reply(heard, message, effects),
            Shape::Nothing => {}
        }
    }

    /// Legacy servers may ask, and some wait for the answer: it is given at once.
    fn request(&mut self, heard: Heard<'_>, id: Option<&Id>, method: &str, effects: &mut VecDeque<Effect>) {
        match self.opening {
            Era::Modern => self.note_heard(heard, What::ServerRequest { method: self.plan.redactor.word(method, 60) }),
            Era::Legacy => {
                let reply = id.and_then(|id| match method {
                    "ping" => mcp::reply_to_ping(id),
                    "roots/list" => mcp::reply_to_roots(id),
                    _ => mcp::refusal(id),
                });
                self.tell(reply, effects);
            }
        }
    }

    fn notification(&mut self, heard: Heard<'_>, method: &str, effects: &mut VecDeque<Effect>) {
        if self.first_reply.is_none() && !self.stdin_is_closed() {
            self.note_heard(heard, What::NotificationFirst { method: self.plan.redactor.word(method, 60) });
        }
        match method {
            "notifications/tools/list_changed" => self.lists.changed(ListKind::Tools),
            "notifications/prompts/list_changed" => self.lists.changed(ListKind::Prompts),
            "notifications/resources/list_changed" => self.lists.changed(ListKind::Resources),
            _ => {}
        }
        if matches!(self.stage, Stage::AwaitingTools(_)) && self.lists.tools_changed() {
            self.lists.ask_for_tools_again();
            self.go_on(heard.now, effects);
        }
    }

    fn reply(&mut self, heard: Heard<'_>, message: &Message<'_>, effects: &mut VecDeque<Effect>) {
        let id = message.id.clone().unwrap_or(Id::Null);
        if let Some((asked, given_up)) = &self.given_up
            && (*given_up == id || is_nearly(given_up, &id))
        {
            let asked = *asked;
            self.note_heard(heard, What::ReplyAfterEof { asked });
            if let (Asked::Discover, Shape::Result(result)) = (asked, &message.shape)
                && mcp::read_discover(*result, &self.plan.redactor).is_some_and(|d| d.versions.iter().any(|v| MODERN_VERSIONS.contains(&v.as_str())))
            {
                self.outcome = Opening::Late;
            }
            self.given_up = None;
            return;
        }
        let Stage::Waiting(waiting) = &self.stage else {
            self.unexpected(heard, None, &id, message);
            return;
        };
        let (asked, wanted) = (waiting.asked, waiting.id.clone());
        // An error that cannot name its request is as good as a refusal of the one request that
        // nobody has to know.
        let nameless_refusal = asked == Asked::Discover && id == Id::Null;
        if id == wanted || nameless_refusal {
            self.note_stranger(heard, asked, message);
            self.answer(heard, asked, wanted, &message.shape, effects);
        } else if is_nearly(&wanted, &id) {
            self.mismatch(heard, Some(&wanted), &id);
            let heard = Heard { is_clean: false, ..heard };
            self.answer(heard, asked, wanted, &message.shape, effects);
        } else {
            self.unexpected(heard, Some(&wanted), &id, message);
        }
    }

    /// A reply to nothing that is pending.
    fn unexpected(&mut self, heard: Heard<'_>, wanted: Option<&Id>, id: &Id, message: &Message<'_>) {
        let what = if let Shape::Error { code, .. } = &message.shape
            && *id == Id::Null
            && self.notified
        {
            What::ReplyToNotification { code: *code }
        } else if self.answered.contains(id) {
            What::DuplicateReply { id: self.shown(id) }
        } else {
            return self.mismatch(heard, wanted, id);
        };
        self.note_heard(heard, what);
    }

    /// An id of the server's, to show.
    fn shown(&self, id: &Id) -> String {
        if let Id::Text(text) = id { format!("\"{}\"", self.plan.redactor.printable(text, 40)) } else { id.to_string() }
    }

    fn mismatch(&mut self, heard: Heard<'_>, wanted: Option<&Id>, got: &Id) {
        let what = What::IdMismatch { wanted: wanted.map(Id::to_string), got: self.shown(got) };
        self.note_heard(heard, what);
    }

    /// Who takes nothing but what JSON-RPC names drops a reply over any other member.
    fn note_stranger(&mut self, heard: Heard<'_>, asked: Asked, message: &Message<'_>) {
        if let Some(name) = &message.stranger {
            let path = format!("{} (beside the result)", self.plan.redactor.printable(name, 60));
            let flaw = Flaw { path, wanted: "left out", got: "such a member", by: RefusedBy::TypeScript };
            self.note_heard(heard, What::Flawed { asked, flaw });
        }
    }

    /// The answer that is waited for has come.
    fn note_answered(&mut self, heard: Heard<'_>, asked: Asked, id: Id) {
        // Once: every later answer says the same.
        if self.has_exited() && !std::mem::replace(&mut self.was_detached, true) {
            self.note_heard(heard, What::Detached { asked });
        }
        self.answered.push(id);
        self.first_reply_line.get_or_insert(heard.place.line);
        self.first_reply.get_or_insert(heard.now);
    }

    fn answer(&mut self, heard: Heard<'_>, asked: Asked, id: Id, shape: &Shape<'_>, effects: &mut VecDeque<Effect>) {
        self.note_answered(heard, asked, id.clone());
        match shape {
            Shape::Result(result) => match asked {
                Asked::Discover => self.discovered(heard, *result, effects),
                Asked::Initialize => self.initialized(heard, *result, effects),
                Asked::List(kind) => self.listed(heard, kind, &id, *result, effects),
                Asked::Call => {
                    let why = self.plan.call.as_ref().and_then(|call| call.disappointment(*result, &self.plan.redactor));
                    self.called(heard, why, effects);
                }
            },
            Shape::Error { code, message, data } => {
                let what = What::Refused { asked, code: *code, message: self.plan.redactor.excerpt(message.as_bytes()) };
                match asked {
                    Asked::Discover => self.discover_refused(heard, *code, *data, what, effects),
                    Asked::Initialize => self.initialize_refused(heard, *code, *data, what, effects),
                    Asked::List(kind) => self.list_refused(heard, kind, *code, what, effects),
                    Asked::Call => {
                        let code = code.map(|c| format!(" {c}")).unwrap_or_default();
                        let why = format!("it was answered with error{code}: {}", self.plan.redactor.excerpt(message.as_bytes()));
                        self.called(heard, Some(why), effects);
                    }
                }
            }
            Shape::Request { .. } | Shape::Notification { .. } | Shape::Nothing => {}
        }
    }

    fn discovered(&mut self, heard: Heard<'_>, result: Value<'_>, effects: &mut VecDeque<Effect>) {
        let asked = Asked::Discover;
        let Some(discovered) = mcp::read_discover(result, &self.plan.redactor) else {
            let got = result.get("supportedVersions").map_or("nothing", |v| v.kind().word());
            let flaw = Flaw { path: "supportedVersions".to_owned(), wanted: "an array of strings", got, by: RefusedBy::All };
            self.note_heard(heard, What::Flawed { asked, flaw });
            self.outcome = Opening::Refused { names_other: false };
            return self.leave(heard.now, effects);
        };
        let common = MODERN_VERSIONS.iter().rev().find(|v| discovered.versions.iter().any(|d| d == *v));
        let Some(version) = common else {
            self.no_common_version(heard, discovered.versions, &LEGACY_VERSIONS, effects);
            return;
        };
        self.note_flaws(heard, asked, discovered.flaws, discovered.missing);
        self.ready(heard.now, (*version).to_owned(), discovered.greeting, effects);
    }

    fn initialized(&mut self, heard: Heard<'_>, result: Value<'_>, effects: &mut VecDeque<Effect>) {
        let answer = mcp::read_initialize(result, &self.plan.redactor);
        self.note_flaws(heard, Asked::Initialize, answer.flaws, Vec::new());
        match answer.version {
            Some(version) if !LEGACY_VERSIONS.contains(&version.as_str()) => {
                self.no_common_version(heard, vec![version], &[], effects);
            }
            version => {
                self.tell(Some(self.asker.initialized()), effects);
                self.notified = true;
                self.ready(heard.now, version.unwrap_or_default(), answer.greeting, effects);
            }
        }
    }

    fn no_common_version(&mut self, heard: Heard<'_>, server: Vec<String>, other_era: &[&str], effects: &mut VecDeque<Effect>) {
        if server.iter().any(|v| other_era.contains(&v.as_str())) {
            self.outcome = Opening::Refused { names_other: true };
        }
        self.note_heard(heard, What::NoCommonVersion { server });
        self.leave(heard.now, effects);
    }

    fn discover_refused(&mut self, heard: Heard<'_>, code: Option<i64>, data: Option<Value<'_>>, what: What, effects: &mut VecDeque<Effect>) {
        self.note_heard(heard, what);
        match code {
            Some(UNSUPPORTED_VERSION) => {
                let supported = self.supported_versions(data);
                if supported.iter().any(|v| v == LATEST_MODERN) {
                    self.note_heard(heard, What::Contradiction { version: LATEST_MODERN.to_owned() });
                }
                if supported.iter().any(|v| LEGACY_VERSIONS.contains(&v.as_str())) {
                    self.outcome = Opening::Refused { names_other: true };
                } else if !supported.is_empty() {
                    self.note_heard(heard, What::NoCommonVersion { server: supported });
                }
            }
            Some(code) if OTHER_MODERN_ERRORS.contains(&code) => {}
            _ => self.outcome = Opening::Refused { names_other: false },
        }
        self.leave(heard.now, effects);
    }

    fn initialize_refused(&mut self, heard: Heard<'_>, code: Option<i64>, data: Option<Value<'_>>, what: What, effects: &mut VecDeque<Effect>) {
        self.note_heard(heard, what);
        let supported = self.supported_versions(data);
        if supported.iter().any(|v| v == LATEST_LEGACY) {
            self.note_heard(heard, What::Contradiction { version: LATEST_LEGACY.to_owned() });
        }
        let names_other = code == Some(UNSUPPORTED_VERSION) || supported.iter().any(|v| MODERN_VERSIONS.contains(&v.as_str()));
        if names_other && !supported.iter().any(|v| LEGACY_VERSIONS.contains(&v.as_str())) {
            self.note_heard(heard, What::NoCommonVersion { server: supported });
        }
        self.outcome = Opening::Refused { names_other };
        self.leave(heard.now, effects);
    }

    fn listed(&mut self, heard: Heard<'_>, kind: ListKind, id: &Id, result: Value<'_>, effects: &mut VecDeque<Effect>) {
        let mut page = mcp::read_list(kind, self.opening, result, &self.plan.redactor, self.lists.room());
        if heard.is_clean {
            let question = Question { asked: Asked::List(kind), era: self.opening, id };
            let digest = self.digest_of(heard.place, heard.bytes);
            self.pages.keep(&self.plan.pages, question, heard.bytes, digest, &mut page);
        }
        self.take_page(heard, kind, page, effects);
    }

    fn take_page(&mut self, heard: Heard<'_>, kind: ListKind, mut page: ListPage, effects: &mut VecDeque<Effect>) {
        let (flaws, missing) = (std::mem::take(&mut page.flaws), std::mem::take(&mut page.missing));
        self.note_flaws(heard, Asked::List(kind), flaws, missing);
        if page.null_cursor {
            self.note_heard(heard, What::NullCursor { list: kind });
        }
        if let (ListKind::Tools, Some(call)) = (kind, &self.plan.call) {
            self.near.see(call, &page.items);
        }
        let noted = self.lists.page(page);
        self.note_all(heard.now, noted);
        self.go_on(heard.now, effects);
    }

    /// Does with a line, if it is the answer that is waited for and the same as in the probe before, what
    /// [`piece`](Session::piece) would with what is on it; says whether it did.
    fn recall(&mut self, now: At, place: Place, line: &[u8], effects: &mut VecDeque<Effect>) -> bool {
        let Stage::Waiting(Waiting { asked: asked @ Asked::List(kind), id, .. }) = &self.stage else { return false };
        let (asked, kind, id) = (*asked, *kind, id.clone());
        let question = Question { asked, era: self.opening, id: &id };
        if self.given_up.is_some() || !self.judges_stdout() || !self.plan.pages.may_know(question, line, &self.plan.redactor) {
            return false;
        }
        let digest = self.digest_of(place, line);
        let Some(page) = self.pages.recall(&self.plan.pages, question, line, digest, self.lists.room()) else { return false };
        self.lines = self.lines.max(place.line);
        self.io.messages += 1;
        let heard = Heard { now, place, bytes: line, is_clean: true };
        self.note_answered(heard, asked, id);
        self.take_page(heard, kind, page, effects);
        true
    }

    /// The digest of the line at `place`; of one line it is taken once.
    fn digest_of(&mut self, place: Place, line: &[u8]) -> Digest {
        match self.hashed {
            Some((number, digest)) if number == place.line => digest,
            _ => {
                let digest = Digest::of(line);
                self.hashed = Some((place.line, digest));
                digest
            }
        }
    }

    fn list_refused(&mut self, heard: Heard<'_>, kind: ListKind, code: Option<i64>, what: What, effects: &mut VecDeque<Effect>) {
        // The `resources` capability promises resources; templates are extra.
        if kind == ListKind::ResourceTemplates && code == Some(METHOD_NOT_FOUND) {
            self.lists.absent();
        } else {
            self.note_heard(heard, what);
            self.lists.refused();
        }
        self.go_on(heard.now, effects);
    }

    /// `data.supported` of an `UnsupportedProtocolVersion` error.
    fn supported_versions(&self, data: Option<Value<'_>>) -> Vec<String> {
        let list = data.and_then(|d| d.get("supported")).filter(|v| v.kind() == Kind::Array);
        let texts = list.into_iter().flat_map(Value::elements).filter_map(Value::text);
        texts.map(|v| self.plan.redactor.word(&v, 40)).take(MAX_VERSIONS).collect()
    }

    fn note_flaws(&mut self, heard: Heard<'_>, asked: Asked, flaws: Vec<Flaw>, missing: Vec<&'static str>) {
        for flaw in flaws {
            self.note_heard(heard, What::Flawed { asked, flaw });
        }
        if !missing.is_empty() {
            self.note_heard(heard, What::MissingFields { asked, names: missing });
        }
    }
}

/// The same id in another type: `1` and `"1"`, `1` and `1.0`.
fn is_nearly(wanted: &Id, got: &Id) -> bool {
    let number = |id: &Id| match id {
        Id::Integer(n) => Some(n.to_string()),
        Id::Text(text) => Some(text.clone()),
        Id::Other(raw) => raw.parse::<f64>().ok().map(|n| n.to_string()),
        Id::Null => None,
    };
    wanted != got && number(wanted).is_some() && number(wanted) == number(got)
}
