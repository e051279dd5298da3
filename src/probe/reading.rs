//! What comes over stdout, and what it means for a [`Session`].

use std::collections::VecDeque;

use super::machine::Effect;
use super::observation::{Asked, What};
use super::session::{Opening, Session, Stage};
use crate::protocol::json::{Kind, Value};
use crate::protocol::mcp::{self, Flaw, ListKind};
use crate::protocol::wire::{Fault, Framing, Id, Message, Piece, Place, Shape};
use crate::protocol::{Era, LATEST_LEGACY, LATEST_MODERN, LEGACY_VERSIONS, MODERN_VERSIONS};
use crate::words::At;

/// `UnsupportedProtocolVersion`, 2026-07-28.
const UNSUPPORTED_VERSION: i64 = -32022;
/// `HeaderMismatch` and `MissingRequiredClientCapability`: as modern as the one above.
const OTHER_MODERN_ERRORS: [i64; 2] = [-32020, -32021];
/// Versions that are looked at; nobody has more.
const MAX_VERSIONS: usize = 10_000;
/// JSON-RPC's "method not found".
const METHOD_NOT_FOUND: i64 = -32601;

impl Session {
    pub(super) fn stdout(&mut self, now: At, bytes: &[u8], effects: &mut VecDeque<Effect>) {
        if !self.wants_stdout() {
            return;
        }
        let room = self.plan.limits.output.saturating_sub(self.io.stdout_bytes);
        let within = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        self.io.stdout_bytes += within as u64;
        self.with_framing(|session, framing| {
            framing.feed(&bytes[..within], &mut |place, piece| session.piece(now, place, piece, effects));
        });
        if within < bytes.len() {
            self.over_limit(now, effects);
        }
    }

    /// What may be the beginning of a message over several lines will not be completed.
    pub(super) fn flush_open_message(&mut self, now: At, effects: &mut VecDeque<Effect>) {
        self.with_framing(|session, framing| {
            framing.finish(&mut |place, piece| session.piece(now, place, piece, effects));
        });
    }

    fn with_framing(&mut self, f: impl FnOnce(&mut Session, &mut Framing)) {
        let mut framing = std::mem::replace(&mut self.framing, Framing::new(0));
        f(self, &mut framing);
        self.framing = framing;
    }

    fn piece(&mut self, now: At, place: Place, piece: Piece<'_>, effects: &mut VecDeque<Effect>) {
        self.lines = self.lines.max(place.line);
        if !self.judges_stdout() {
            return;
        }
        match piece {
            Piece::Fault(Fault::DuplicateKey { pointer }, bytes) => {
                let pointer = self.plan.redactor.printable(&pointer, 200);
                self.note_at(now, Some(place), What::Line(Fault::DuplicateKey { pointer }), bytes);
            }
            Piece::Fault(fault, bytes) => self.note_at(now, Some(place), What::Line(fault), bytes),
            Piece::Message(message, bytes) => self.message(now, place, &message, bytes, effects),
            Piece::Batch(messages, bytes) => {
                // JSON-RPC batches existed in this revision alone.
                if self.version.as_deref() != Some("2025-03-26") {
                    self.note_at(now, Some(place), What::Batch, bytes);
                }
                for message in &messages {
                    self.message(now, place, message, bytes, effects);
                }
            }
        }
    }

    fn message(&mut self, now: At, place: Place, message: &Message<'_>, bytes: &[u8], effects: &mut VecDeque<Effect>) {
        if let Some(method) = message.method()
            && let Some(method) = mcp::is_ours(method)
        {
            self.note_at(now, Some(place), What::Echo { method }, bytes);
            return;
        }
        self.io.messages += 1;
        for problem in &message.problems {
            self.note_at(now, Some(place), What::Malformed { problem }, bytes);
        }
        match &message.shape {
            Shape::Request { method } => self.request(now, place, message.id.as_ref(), method, bytes, effects),
            Shape::Notification { method } => self.notification(now, place, method, bytes, effects),
            Shape::Result(_) | Shape::Error { .. } => self.reply(now, place, message, bytes, effects),
            Shape::Nothing => {}
        }
    }

    /// Legacy servers may ask, and some wait for the answer: it is given at once.
    fn request(&mut self, now: At, place: Place, id: Option<&Id>, method: &str, bytes: &[u8], effects: &mut VecDeque<Effect>) {
        match self.opening {
            Era::Modern => self.note_at(now, Some(place), What::ServerRequest { method: self.plan.redactor.printable(method, 60) }, bytes),
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

    fn notification(&mut self, now: At, place: Place, method: &str, bytes: &[u8], effects: &mut VecDeque<Effect>) {
        if self.first_reply.is_none() && !self.stdin_is_closed() {
            self.note_at(now, Some(place), What::NotificationFirst { method: self.plan.redactor.printable(method, 60) }, bytes);
        }
        match method {
            "notifications/tools/list_changed" => self.lists.changed(ListKind::Tools),
            "notifications/prompts/list_changed" => self.lists.changed(ListKind::Prompts),
            "notifications/resources/list_changed" => self.lists.changed(ListKind::Resources),
            _ => {}
        }
        if matches!(self.stage, Stage::AwaitingTools(_)) && self.lists.tools_changed() {
            self.lists.ask_for_tools_again();
            self.go_on(now, effects);
        }
    }

    fn reply(&mut self, now: At, place: Place, message: &Message<'_>, bytes: &[u8], effects: &mut VecDeque<Effect>) {
        let id = message.id.clone().unwrap_or(Id::Null);
        if let Some((asked, given_up)) = &self.given_up
            && (*given_up == id || is_nearly(given_up, &id))
        {
            let asked = *asked;
            self.note_at(now, Some(place), What::ReplyAfterEof { asked }, bytes);
            if let (Asked::Discover, Shape::Result(result)) = (asked, &message.shape)
                && mcp::read_discover(*result, &self.plan.redactor).is_some_and(|d| d.versions.iter().any(|v| MODERN_VERSIONS.contains(&v.as_str())))
            {
                self.outcome = Opening::Late;
            }
            self.given_up = None;
            return;
        }
        let Stage::Waiting(waiting) = &self.stage else {
            self.unexpected(now, place, None, &id, message, bytes);
            return;
        };
        let (asked, wanted) = (waiting.asked, waiting.id.clone());
        // An error that cannot name its request is as good as a refusal of the one request that
        // nobody has to know.
        let nameless_refusal = asked == Asked::Discover && id == Id::Null;
        if id == wanted || nameless_refusal {
            self.answer(now, place, asked, wanted, &message.shape, bytes, effects);
        } else if is_nearly(&wanted, &id) {
            self.mismatch(now, place, Some(&wanted), &id, bytes);
            self.answer(now, place, asked, wanted, &message.shape, bytes, effects);
        } else {
            self.unexpected(now, place, Some(&wanted), &id, message, bytes);
        }
    }

    /// A reply to nothing that is pending.
    fn unexpected(&mut self, now: At, place: Place, wanted: Option<&Id>, id: &Id, message: &Message<'_>, bytes: &[u8]) {
        let what = if let Shape::Error { code, .. } = &message.shape
            && *id == Id::Null
            && self.notified
        {
            What::ReplyToNotification { code: *code }
        } else if self.answered.contains(id) {
            What::DuplicateReply { id: self.shown(id) }
        } else {
            return self.mismatch(now, place, wanted, id, bytes);
        };
        self.note_at(now, Some(place), what, bytes);
    }

    /// An id of the server's, to show.
    fn shown(&self, id: &Id) -> String {
        if let Id::Text(text) = id { format!("\"{}\"", self.plan.redactor.printable(text, 40)) } else { id.to_string() }
    }

    fn mismatch(&mut self, now: At, place: Place, wanted: Option<&Id>, got: &Id, bytes: &[u8]) {
        let what = What::IdMismatch { wanted: wanted.map(Id::to_string), got: self.shown(got) };
        self.note_at(now, Some(place), what, bytes);
    }

    #[allow(clippy::too_many_arguments, reason = "one reply, with all that is known of it")]
    fn answer(&mut self, now: At, place: Place, asked: Asked, id: Id, shape: &Shape<'_>, bytes: &[u8], effects: &mut VecDeque<Effect>) {
        self.answered.push(id);
        self.first_reply_line.get_or_insert(place.line);
        match shape {
            Shape::Result(result) => {
                self.first_reply.get_or_insert(now);
                match asked {
                    Asked::Discover => self.discovered(now, place, *result, bytes, effects),
                    Asked::Initialize => self.initialized(now, place, *result, bytes, effects),
                    Asked::List(kind) => self.listed_page(now, place, kind, *result, bytes, effects),
                    Asked::Call => {
                        let why = self.plan.call.as_ref().and_then(|call| call.disappointment(*result, &self.plan.redactor));
                        self.called(now, place, why, bytes, effects);
                    }
                }
            }
            Shape::Error { code, message, data } => {
                let what = What::Refused { asked, code: *code, message: self.plan.redactor.excerpt(message.as_bytes()) };
                self.first_reply.get_or_insert(now);
                match asked {
                    Asked::Discover => self.discover_refused(now, place, *code, *data, what, bytes, effects),
                    Asked::Initialize => self.initialize_refused(now, place, *code, *data, what, bytes, effects),
                    Asked::List(kind) => self.list_refused(now, place, kind, *code, what, bytes, effects),
                    Asked::Call => {
                        let code = code.map(|c| format!(" {c}")).unwrap_or_default();
                        let why = format!("it was answered with error{code}: {}", self.plan.redactor.excerpt(message.as_bytes()));
                        self.called(now, place, Some(why), bytes, effects);
                    }
                }
            }
            Shape::Request { .. } | Shape::Notification { .. } | Shape::Nothing => {}
        }
    }

    fn discovered(&mut self, now: At, place: Place, result: Value<'_>, bytes: &[u8], effects: &mut VecDeque<Effect>) {
        let asked = Asked::Discover;
        let Some(discovered) = mcp::read_discover(result, &self.plan.redactor) else {
            let got = result.get("supportedVersions").map_or("nothing", |v| v.kind().word());
            let flaw = Flaw { path: "supportedVersions".to_owned(), wanted: "an array of strings", got };
            self.note_at(now, Some(place), What::Flawed { asked, flaw }, bytes);
            self.outcome = Opening::Refused { names_other: false };
            return self.leave(now, effects);
        };
        let common = MODERN_VERSIONS.iter().rev().find(|v| discovered.versions.iter().any(|d| d == *v));
        let Some(version) = common else {
            self.no_common_version(now, place, discovered.versions, &LEGACY_VERSIONS, bytes, effects);
            return;
        };
        self.note_flaws(now, place, asked, discovered.flaws, discovered.missing, bytes);
        self.ready(now, (*version).to_owned(), discovered.greeting, effects);
    }

    fn initialized(&mut self, now: At, place: Place, result: Value<'_>, bytes: &[u8], effects: &mut VecDeque<Effect>) {
        let answer = mcp::read_initialize(result, &self.plan.redactor);
        self.note_flaws(now, place, Asked::Initialize, answer.flaws, Vec::new(), bytes);
        match answer.version {
            Some(version) if !LEGACY_VERSIONS.contains(&version.as_str()) => {
                self.no_common_version(now, place, vec![version], &[], bytes, effects);
            }
            version => {
                self.tell(Some(self.asker.initialized()), effects);
                self.notified = true;
                self.ready(now, version.unwrap_or_default(), answer.greeting, effects);
            }
        }
    }

    fn no_common_version(&mut self, now: At, place: Place, server: Vec<String>, other_era: &[&str], bytes: &[u8], effects: &mut VecDeque<Effect>) {
        if server.iter().any(|v| other_era.contains(&v.as_str())) {
            self.outcome = Opening::Refused { names_other: true };
        }
        self.note_at(now, Some(place), What::NoCommonVersion { server }, bytes);
        self.leave(now, effects);
    }

    #[allow(clippy::too_many_arguments, reason = "one reply, with all that is known of it")]
    fn discover_refused(
        &mut self,
        now: At,
        place: Place,
        code: Option<i64>,
        data: Option<Value<'_>>,
        what: What,
        bytes: &[u8],
        effects: &mut VecDeque<Effect>,
    ) {
        self.note_at(now, Some(place), what, bytes);
        match code {
            Some(UNSUPPORTED_VERSION) => {
                let supported = self.supported_versions(data);
                if supported.iter().any(|v| v == LATEST_MODERN) {
                    self.note_at(now, Some(place), What::Contradiction { version: LATEST_MODERN.to_owned() }, bytes);
                }
                if supported.iter().any(|v| LEGACY_VERSIONS.contains(&v.as_str())) {
                    self.outcome = Opening::Refused { names_other: true };
                } else if !supported.is_empty() {
                    self.note_at(now, Some(place), What::NoCommonVersion { server: supported }, bytes);
                }
            }
            Some(code) if OTHER_MODERN_ERRORS.contains(&code) => {}
            _ => self.outcome = Opening::Refused { names_other: false },
        }
        self.leave(now, effects);
    }

    #[allow(clippy::too_many_arguments, reason = "one reply, with all that is known of it")]
    fn initialize_refused(
        &mut self,
        now: At,
        place: Place,
        code: Option<i64>,
        data: Option<Value<'_>>,
        what: What,
        bytes: &[u8],
        effects: &mut VecDeque<Effect>,
    ) {
        self.note_at(now, Some(place), what, bytes);
        let supported = self.supported_versions(data);
        if supported.iter().any(|v| v == LATEST_LEGACY) {
            self.note_at(now, Some(place), What::Contradiction { version: LATEST_LEGACY.to_owned() }, bytes);
        }
        let names_other = code == Some(UNSUPPORTED_VERSION) || supported.iter().any(|v| MODERN_VERSIONS.contains(&v.as_str()));
        if names_other && !supported.iter().any(|v| LEGACY_VERSIONS.contains(&v.as_str())) {
            self.note_at(now, Some(place), What::NoCommonVersion { server: supported }, bytes);
        }
        self.outcome = Opening::Refused { names_other };
        self.leave(now, effects);
    }

    fn listed_page(&mut self, now: At, place: Place, kind: ListKind, result: Value<'_>, bytes: &[u8], effects: &mut VecDeque<Effect>) {
        let mut page = mcp::read_list(kind, self.opening, result, &self.plan.redactor);
        let (flaws, missing) = (std::mem::take(&mut page.flaws), std::mem::take(&mut page.missing));
        self.note_flaws(now, place, Asked::List(kind), flaws, missing, bytes);
        let noted = self.lists.page(page);
        self.note_all(now, noted);
        self.go_on(now, effects);
    }

    #[allow(clippy::too_many_arguments, reason = "one reply, with all that is known of it")]
    fn list_refused(&mut self, now: At, place: Place, kind: ListKind, code: Option<i64>, what: What, bytes: &[u8], effects: &mut VecDeque<Effect>) {
        // The `resources` capability promises resources; templates are extra.
        if kind == ListKind::ResourceTemplates && code == Some(METHOD_NOT_FOUND) {
            self.lists.absent();
        } else {
            self.note_at(now, Some(place), what, bytes);
            self.lists.refused();
        }
        self.go_on(now, effects);
    }

    /// `data.supported` of an `UnsupportedProtocolVersion` error.
    fn supported_versions(&self, data: Option<Value<'_>>) -> Vec<String> {
        let list = data.and_then(|d| d.get("supported")).filter(|v| v.kind() == Kind::Array);
        let texts = list.into_iter().flat_map(Value::elements).filter_map(Value::text);
        texts.map(|v| self.plan.redactor.printable(&v, 40)).take(MAX_VERSIONS).collect()
    }

    fn note_flaws(&mut self, now: At, place: Place, asked: Asked, flaws: Vec<Flaw>, missing: Vec<&'static str>, bytes: &[u8]) {
        for flaw in flaws {
            self.note_at(now, Some(place), What::Flawed { asked, flaw }, bytes);
        }
        if !missing.is_empty() {
            self.note_at(now, Some(place), What::MissingFields { asked, names: missing }, bytes);
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
