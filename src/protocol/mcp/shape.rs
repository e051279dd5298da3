//! What is wanted of a result's members, and which clients mind where one is otherwise.
//!
//! Held against the clients of the official SDKs, each kind tried on TypeScript 1.32 and 2.4, Python 1.30 and 2.3. The
//! TypeScript ones (zod) want an optional member to be of its type or left out. The Python ones (pydantic) take null for left
//! out, and make a boolean of `"true"` and a number of `"12"`. An empty array, which is PHP's empty object, is an object
//! to some rules of TypeScript 1.x, and to no other client. Whoever refuses a member refuses the whole result with it.

use super::forms::{has_scheme, is_flag, is_moment, is_share, number};
use crate::protocol::json::{Kind, Value};
use crate::words::Redactor;

/// Which of the official SDKs' clients refuse a whole result over one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBy {
    /// Those in TypeScript.
    TypeScript,
    /// Those in Python.
    Python,
    /// More than one, and not all.
    Several,
    /// All of them.
    All,
}

/// A member that is missing or of the wrong type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Where: a path such as `tools[3].name`.
    pub path: String,
    /// What the specification wants there.
    pub wanted: &'static str,
    /// What is there.
    pub got: &'static str,
    /// Who minds.
    pub by: RefusedBy,
}

/// What a value has to be.
pub(super) enum Want {
    Text,
    Flag,
    /// A number without a fraction; zod takes any.
    Whole,
    /// A number from 0 to 1.
    Share,
    /// One of some texts, which are named in words too.
    Word(&'static [&'static str], &'static str),
    /// A text that is a date with a time and its zone (RFC 3339).
    Moment,
    /// A text that is a URI, with its scheme.
    Uri,
    /// An object.
    Object,
    /// An object; TypeScript 1.x takes an array too.
    Loose,
    /// An object of such objects.
    Record,
    /// An object with these members, among others.
    Members(&'static [Member]),
    /// An array of these.
    List(&'static Want),
    /// An array of whatever.
    Array,
    /// A text, or null for none.
    Cursor,
}

/// A member of an object.
pub(super) struct Member {
    pub(super) key: &'static str,
    want: Want,
    need: Need,
}

/// Whether a member may be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Must,
    May,
    /// It may, and Python 1.x does not know it, so takes anything.
    Late,
}

impl Member {
    pub(super) const fn must(key: &'static str, want: Want) -> Member {
        Member { key, want, need: Need::Must }
    }

    pub(super) const fn may(key: &'static str, want: Want) -> Member {
        Member { key, want, need: Need::May }
    }

    pub(super) const fn late(key: &'static str, want: Want) -> Member {
        Member { key, want, need: Need::Late }
    }
}

/// The most members that are wanted of one object.
const MOST: usize = 10;

/// Flaws of one answer that are noted: so many that all clients mind, and so many others. More say nothing new.
const MOST_FLAWS: usize = 1000;

/// How a value is reached.
#[derive(Clone, Copy)]
pub(super) enum Step<'p> {
    Key(&'static str),
    /// A key of the server's own.
    Named(Value<'p>),
    At(usize),
}

#[derive(Clone, Copy)]
pub(super) struct Path<'p> {
    before: Option<&'p Path<'p>>,
    step: Step<'p>,
}

impl<'p> Path<'p> {
    pub(super) const fn key(key: &'static str) -> Path<'p> {
        Path { before: None, step: Step::Key(key) }
    }

    pub(super) const fn then(&'p self, step: Step<'p>) -> Path<'p> {
        Path { before: Some(self), step }
    }

    fn write(&self, redactor: &Redactor, to: &mut String) {
        if let Some(before) = self.before {
            before.write(redactor, to);
            if !matches!(self.step, Step::At(_)) {
                to.push('.');
            }
        }
        match self.step {
            Step::Key(key) => to.push_str(key),
            Step::Named(key) => to.push_str(&redactor.printable(&key.text().unwrap_or_default(), 60)),
            Step::At(n) => to.push_str(&format!("[{n}]")),
        }
    }
}

/// Holds values against what is wanted, and collects what is wrong.
pub(super) struct Checker<'r> {
    pub(super) redactor: &'r Redactor,
    pub(super) flaws: Vec<Flaw>,
    /// How many of them all clients mind, and how many others there are.
    counts: [usize; 2],
}

impl<'r> Checker<'r> {
    pub(super) fn new(redactor: &'r Redactor) -> Checker<'r> {
        Checker { redactor, flaws: Vec::new(), counts: [0; 2] }
    }

    /// Notes that there is something else than what is wanted.
    pub(super) fn note(&mut self, path: &Path<'_>, wanted: &'static str, got: &'static str, by: RefusedBy) {
        let count = &mut self.counts[usize::from(by != RefusedBy::All)];
        *count += 1;
        if *count <= MOST_FLAWS {
            let mut text = String::new();
            path.write(self.redactor, &mut text);
            self.flaws.push(Flaw { path: text, wanted, got, by });
        }
    }

    /// The members of `object` that are wanted, in their order; those of another type are noted, and given all the
    /// same.
    pub(super) fn members<'d>(&mut self, object: Value<'d>, members: &'static [Member], path: Option<&Path<'_>>) -> [Option<Value<'d>>; MOST] {
        let mut found = [None; MOST];
        for (key, value) in object.members() {
            if let Some(n) = members.iter().position(|member| key.means(member.key)) {
                found[n] = Some(value);
            }
        }
        for (member, value) in members.iter().zip(found) {
            let path = Path { before: path, step: Step::Key(member.key) };
            match value {
                Some(value) => self.value(value, &member.want, member.need, &path),
                None if member.need == Need::Must => self.note(&path, member.want.words(), "nothing", RefusedBy::All),
                None => {}
            }
        }
        found
    }

    /// Holds one value against what is wanted. How deep it goes is up to what is wanted, not to what is there.
    pub(super) fn value(&mut self, value: Value<'_>, want: &'static Want, need: Need, path: &Path<'_>) {
        match (want, value.kind()) {
            (Want::Members(members), Kind::Object) => {
                self.members(value, members, Some(path));
            }
            (Want::List(want), Kind::Array) => {
                value.elements().enumerate().for_each(|(n, element)| self.value(element, want, need.of_what_is_in_it(), &path.then(Step::At(n))));
            }
            (Want::Record, Kind::Object) => {
                value.members().for_each(|(key, value)| self.value(value, &Want::Loose, need.of_what_is_in_it(), &path.then(Step::Named(key))));
            }
            _ => {
                if let Some(by) = want.refused_by(value, need) {
                    self.note(path, want.words(), want.got(value), by);
                }
            }
        }
    }
}

impl Need {
    /// Whether what is in a list or a record may be null: never, but nobody who does not know that looks into it.
    const fn of_what_is_in_it(self) -> Need {
        match self {
            Need::Must | Need::May => Need::Must,
            Need::Late => Need::Late,
        }
    }
}

impl Want {
    /// In words.
    const fn words(&self) -> &'static str {
        match self {
            Want::Text | Want::Cursor => "a string",
            Want::Flag => "true or false",
            Want::Whole => "an integer",
            Want::Share => "a number from 0 to 1",
            Want::Word(_, words) => words,
            Want::Moment => "a date and time with its zone, such as \"2025-01-12T15:00:58Z\"",
            Want::Uri => "a URI",
            Want::Object | Want::Loose | Want::Members(_) => "an object",
            Want::Record => "an object of objects",
            Want::List(_) | Want::Array => "an array",
        }
    }

    /// What is there instead, in words.
    fn got(&self, value: Value<'_>) -> &'static str {
        match (self, value.kind()) {
            (Want::Word(..) | Want::Moment | Want::Uri, Kind::String) => "another string",
            (Want::Whole | Want::Share, Kind::Number) => "another number",
            (_, kind) => kind.word(),
        }
    }

    /// Who refuses `value` where this is wanted.
    fn refused_by(&self, value: Value<'_>, need: Need) -> Option<RefusedBy> {
        let is_null = value.kind() == Kind::Null;
        let python = self.is_fine_to_pydantic(value) || need != Need::Must && is_null;
        match (self.is_fine_to_zod(value), python) {
            (true, true) => None,
            (false, true) => Some(RefusedBy::TypeScript),
            (true, false) => Some(RefusedBy::Python),
            // Not by the older ones of either.
            (false, false) if need == Need::Late || matches!(self, Want::Loose) && value.kind() == Kind::Array => Some(RefusedBy::Several),
            (false, false) => Some(RefusedBy::All),
        }
    }

    fn is_fine_to_zod(&self, value: Value<'_>) -> bool {
        let kind = value.kind();
        match self {
            Want::Text | Want::Uri => kind == Kind::String,
            Want::Flag => kind == Kind::Bool,
            Want::Whole => kind == Kind::Number,
            Want::Share => kind == Kind::Number && is_share(value.raw()),
            Want::Word(words, _) => words.iter().any(|word| value.means(word)),
            Want::Moment => value.text().is_some_and(|text| is_moment(text.as_bytes())),
            Want::Object | Want::Loose | Want::Record | Want::Members(_) => kind == Kind::Object,
            Want::List(_) | Want::Array => kind == Kind::Array,
            Want::Cursor => matches!(kind, Kind::String | Kind::Null),
        }
    }

    fn is_fine_to_pydantic(&self, value: Value<'_>) -> bool {
        let kind = value.kind();
        let text = value.text().unwrap_or_default();
        let figure = if kind == Kind::Number { value.raw() } else { text.trim().as_bytes() };
        match self {
            Want::Text | Want::Moment => kind == Kind::String,
            Want::Uri => kind == Kind::String && has_scheme(&text),
            Want::Flag => kind == Kind::Bool || matches!(number(figure), Some(0.0 | 1.0)) || is_flag(&text),
            Want::Whole => number(figure).is_some_and(|n| n.fract() == 0.0) || kind == Kind::Bool,
            Want::Share => is_share(figure) || kind == Kind::Bool,
            Want::Word(words, _) => words.iter().any(|word| value.means(word)),
            Want::Object | Want::Loose | Want::Record | Want::Members(_) => kind == Kind::Object,
            Want::List(_) | Want::Array => kind == Kind::Array,
            Want::Cursor => matches!(kind, Kind::String | Kind::Null),
        }
    }
}
