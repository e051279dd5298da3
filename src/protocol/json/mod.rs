//! A JSON reader for bytes that nobody vouches for.
//!
//! It never recurses, never copies, and holds at most [`MAX_VALUES`] values of 16 bytes each. It
//! takes what real clients take although a strict library refuses it (lone surrogates, duplicate
//! keys, depth beyond 128, `NaN`) and notes it as an [oddity](Oddities), so that "not JSON" and
//! "JSON that some library refuses" are told apart.

mod canonical;
mod difference;
mod number;
mod oddity;
mod parse;
mod pointer;
mod pretty;
mod sameness;
mod text;

use std::borrow::Cow;
use std::cmp::Ordering;

pub use canonical::{Canonicalizer, write_canonical};
pub use difference::first_difference;
pub use oddity::Oddity;
pub use pointer::{percent_decoded, pointer_tokens, push_token};
pub use pretty::write_pretty;
pub use sameness::{Numbers, Sameness};

/// The most values (members, elements, keys) one message may hold. Two megabytes of schemas have some hundred thousand;
/// what is read of each costs 16 bytes, and what is done with them some more.
pub const MAX_VALUES: usize = 500_000;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number, in the grammar of RFC 8259.
    Number,
    /// `NaN`, `Infinity` or `-Infinity`: no JSON, yet some writers' default.
    NonFinite,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// The word for it in messages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "a boolean",
            Kind::Number => "a number",
            Kind::NonFinite => "a non-finite number",
            Kind::String => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        }
    }
}

/// What stood in a document that a strict reader would refuse, or two readers would see differently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Offset of the first unpaired `\uD800`–`\uDFFF` escape.
    pub lone_surrogate: Option<usize>,
    /// Offset of the first `NaN` or infinity.
    pub non_finite: Option<usize>,
    /// JSON pointer (RFC 6901) of the first member whose key its object already has.
    pub duplicate_key: Option<String>,
    /// How deep the deepest value lies; a scalar is at depth 0.
    pub depth: usize,
}

/// Why bytes are no JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// They end in the middle of a value.
    #[error("the value is not complete")]
    Incomplete,
    /// The byte at this offset cannot stand there.
    #[error("not JSON at byte {0}")]
    Invalid(usize),
    /// More than [`MAX_VALUES`] values, or 4 GiB.
    #[error("more than {MAX_VALUES} values")]
    TooMany,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    start: u32,
    end: u32,
    /// The node after this one and everything in it.
    next: u32,
    kind: Kind,
    /// Of a string; [`Spelling::Plain`] otherwise.
    spelling: Spelling,
}

/// How a string is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    /// In ASCII, without escapes.
    Plain,
    /// Without escapes, with bytes beyond ASCII.
    Wide,
    /// With escapes.
    Escaped,
}

/// One parsed value and the bytes it lies in.
#[derive(Debug)]
pub struct Doc<'b> {
    bytes: &'b [u8],
    nodes: Vec<Node>,
    /// What is odd about it.
    pub oddities: Oddities,
}

impl<'b> Doc<'b> {
    /// Reads `bytes` as one value with nothing but white space around it.
    ///
    /// # Errors
    ///
    /// See [`JsonError`]; the first one met is told.
    pub fn parse(bytes: &'b [u8]) -> Result<Doc<'b>, JsonError> {
        Doc::whole(parse::Parser::new(bytes, MAX_VALUES))
    }

    /// The same of a file of ours, which may hold what many servers list: without a limit on its values.
    ///
    /// # Errors
    ///
    /// See [`JsonError`].
    pub fn parse_file(bytes: &'b [u8]) -> Result<Doc<'b>, JsonError> {
        Doc::whole(parse::Parser::new(bytes, usize::MAX))
    }

    fn whole(parser: parse::Parser<'b>) -> Result<Doc<'b>, JsonError> {
        let (doc, end) = parser.run()?;
        let bytes = doc.bytes;
        match bytes[end..].iter().position(|b| !parse::is_space(*b)) {
            Some(at) => Err(JsonError::Invalid(end + at)),
            None => Ok(doc),
        }
    }

    /// Reads one value at the beginning of `bytes` and says where it ends.
    ///
    /// # Errors
    ///
    /// See [`JsonError`].
    pub fn parse_prefix(bytes: &'b [u8]) -> Result<(Doc<'b>, usize), JsonError> {
        parse::Parser::new(bytes, MAX_VALUES).run()
    }

    /// The outermost value.
    #[must_use]
    pub fn root(&self) -> Value<'_> {
        Value { doc: self, index: 0 }
    }
}

/// One value of a [`Doc`].
#[derive(Clone, Copy, Debug)]
pub struct Value<'d> {
    doc: &'d Doc<'d>,
    index: u32,
}

impl<'d> Value<'d> {
    fn node(self) -> &'d Node {
        &self.doc.nodes[self.index as usize]
    }

    /// Which of its document's values it is, in the order they were written, keys counted. What
    /// lies in it comes right after it.
    #[must_use]
    pub fn index(self) -> u32 {
        self.index
    }

    /// The value itself and everything in it, keys too, in the order they were written.
    pub fn within(self) -> impl DoubleEndedIterator<Item = Value<'d>> {
        let doc = self.doc;
        (self.index..self.node().next).map(move |index| Value { doc, index })
    }

    /// What it is.
    #[must_use]
    pub fn kind(self) -> Kind {
        self.node().kind
    }

    /// Its bytes, as they were written.
    #[must_use]
    pub fn raw(self) -> &'d [u8] {
        let node = self.node();
        &self.doc.bytes[node.start as usize..node.end as usize]
    }

    /// Where it begins in the document, in bytes.
    #[must_use]
    pub fn offset(self) -> usize {
        self.node().start as usize
    }

    /// Its text if it is a string: escapes resolved, and U+FFFD for what is no Unicode scalar.
    #[must_use]
    pub fn text(self) -> Option<Cow<'d, str>> {
        let node = self.node();
        match node.spelling {
            _ if node.kind != Kind::String => None,
            Spelling::Plain | Spelling::Wide => {
                std::str::from_utf8(self.quoted()).map_or_else(|_| Some(text::lossy(self.raw())), |text| Some(text.into()))
            }
            Spelling::Escaped => Some(text::lossy(self.raw())),
        }
    }

    /// The bytes of its [text](Value::text), for comparisons with what is UTF-8; those that are none stay as
    /// they are where nothing is escaped.
    #[must_use]
    pub fn text_bytes(self) -> Option<Cow<'d, [u8]>> {
        let node = self.node();
        match node.spelling {
            _ if node.kind != Kind::String => None,
            Spelling::Plain | Spelling::Wide => Some(Cow::Borrowed(self.quoted())),
            Spelling::Escaped => Some(Cow::Owned(text::lossy(self.raw()).into_owned().into_bytes())),
        }
    }

    /// Its value if it is an integer that fits (`1.0` is none: JSON-RPC ids are compared as written).
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        match self.kind() {
            Kind::Number => std::str::from_utf8(self.raw()).ok()?.parse().ok(),
            Kind::Null | Kind::Bool | Kind::NonFinite | Kind::String | Kind::Array | Kind::Object => None,
        }
    }

    /// How it compares with another number, exactly; `None` if one of them is none.
    #[must_use]
    pub fn cmp_number(self, other: Value<'_>) -> Option<Ordering> {
        let number = |v: Value<'_>| (v.kind() == Kind::Number).then(|| String::from_utf8_lossy(v.raw()).into_owned());
        Some(number::compare(&number(self)?, &number(other)?))
    }

    /// Whether it is a number without a fraction, however it is written.
    #[must_use]
    pub fn is_integral(self) -> bool {
        self.kind() == Kind::Number && number::is_integral(&String::from_utf8_lossy(self.raw()))
    }

    /// Its value if it is a boolean.
    #[must_use]
    pub fn boolean(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == b"true")
    }

    /// The elements, if it is an array; otherwise none.
    pub fn elements(self) -> impl Iterator<Item = Value<'d>> {
        self.children(Kind::Array)
    }

    /// Keys and values, if it is an object; otherwise none. In the order they were written.
    pub fn members(self) -> impl Iterator<Item = (Value<'d>, Value<'d>)> {
        let mut children = self.children(Kind::Object);
        std::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    /// The value at a JSON pointer (RFC 6901, section 4) from here.
    #[must_use]
    pub fn at(self, pointer: &str) -> Option<Value<'d>> {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return None;
        }
        pointer_tokens(pointer)
            .try_fold(self, |value, token| if value.kind() == Kind::Array { value.elements().nth(token.parse().ok()?) } else { value.get(&token) })
    }

    /// The member with this key, the last one if there are several, as most readers have it.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Value<'d>> {
        let [value] = self.get_each([key]);
        value
    }

    /// The members with these keys, as [`get`](Value::get) would find them, in one go.
    #[must_use]
    pub fn get_each<const N: usize>(self, keys: [&str; N]) -> [Option<Value<'d>>; N] {
        let mut values = [None; N];
        for (key, value) in self.members() {
            if let Some(n) = keys.iter().position(|wanted| key.means(wanted)) {
                values[n] = Some(value);
            }
        }
        values
    }

    /// Whether it is a string that means `text`.
    #[must_use]
    #[inline]
    pub fn means(self, text: &str) -> bool {
        let node = self.node();
        match node.spelling {
            // With two quotes.
            Spelling::Plain | Spelling::Wide if (node.end - node.start) as usize != text.len() + 2 => false,
            Spelling::Plain | Spelling::Wide => {
                // The first byte nearly always tells, and costs less than a comparison of all.
                let (quoted, text) = (self.quoted(), text.as_bytes());
                quoted.first() == text.first() && quoted == text && node.kind == Kind::String
            }
            Spelling::Escaped => text::lossy(self.raw()) == text,
        }
    }

    /// What stands between the quotes of a string.
    fn quoted(self) -> &'d [u8] {
        let node = self.node();
        &self.doc.bytes[node.start as usize + 1..node.end as usize - 1]
    }

    fn children(self, of: Kind) -> Children<'d> {
        let node = self.node();
        Children { doc: self.doc, at: if node.kind == of { self.index + 1 } else { node.next }, end: node.next }
    }

    /// What lies directly in it, in the order it was written: elements, or keys and values in turn.
    #[must_use]
    pub fn inner(self) -> Children<'d> {
        self.children(self.kind())
    }
}

/// What lies directly in a [`Value`]. Cheap to hold on to.
#[derive(Clone, Debug)]
pub struct Children<'d> {
    doc: &'d Doc<'d>,
    at: u32,
    end: u32,
}

impl<'d> Iterator for Children<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Value<'d>> {
        (self.at < self.end).then(|| {
            let child = Value { doc: self.doc, index: self.at };
            self.at = child.node().next;
            child
        })
    }
}

#[cfg(test)]
mod tests;
