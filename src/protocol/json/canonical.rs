//! Canonical JSON: RFC 8785, and what it leaves out; `docs/digest.md` says it in full.
//!
//! Beyond the RFC: a lone surrogate is written as its escape (`\ud800`, lower case), a byte that is
//! no UTF-8 as U+FFFD, numbers that no double holds as [`number`] says, non-finite ones as they
//! stand, and of duplicate keys all are kept in the order they were written. Each of them is told as
//! an [`Oddity`].

use std::io::Write as _;

use super::text::{self, Unit};
use super::{Doc, Kind, Node, Oddity, Spelling, Value, number};

/// Appends the canonical form of `value` to `out`, and says what in it is beyond RFC 8785: of several
/// things the first one in the order of [`Oddity::ALL`].
///
/// Members of the outermost object are left out that `skip` names: by their key, or by a key and a key
/// in the object that it holds; such an object is left out with its last member.
pub fn write_canonical(value: Value<'_>, skip: &[&[&str]], out: &mut Vec<u8>) -> Option<Oddity> {
    let mut writer = Writer { doc: value.doc, out, members: Vec::new(), open: Vec::new(), oddity: None };
    match value.kind() {
        Kind::Object => writer.open_object(value.index, |key, member| is_skipped(skip, key, member)),
        Kind::Null | Kind::Bool | Kind::Number | Kind::NonFinite | Kind::String | Kind::Array => writer.value(value.index),
    }
    while let Some(frame) = writer.open.pop() {
        match frame {
            Frame::Array(array) => writer.go_on_with_array(array),
            Frame::Object(object) => writer.go_on_with_object(object, skip),
        }
    }
    writer.oddity
}

fn is_skipped(skip: &[&[&str]], key: Value<'_>, member: Value<'_>) -> bool {
    skip.iter().any(|path| match path {
        [name] => key.means(name),
        [name, _] => key.means(name) && member.kind() == Kind::Object && member.members().all(|(inner, _)| is_skipped_within(skip, key, inner)),
        _ => false,
    })
}

fn is_skipped_within(skip: &[&[&str]], key: Value<'_>, inner: Value<'_>) -> bool {
    skip.iter().any(|path| matches!(path, [outer, name] if key.means(outer) && inner.means(name)))
}

/// A container that is being written.
enum Frame {
    Array(Array),
    Object(Object),
}

/// The elements from node `next` on, up to node `end`.
struct Array {
    next: u32,
    end: u32,
    first: bool,
}

/// Its members in `Writer::members`: those from `next` up to `end` are still to be written.
struct Object {
    begin: usize,
    next: usize,
    end: usize,
}

struct Writer<'d, 'o> {
    doc: &'d Doc<'d>,
    out: &'o mut Vec<u8>,
    /// The members of the open objects, outermost first, those of each one sorted: the first eight bytes
    /// of the key, and its node. The value's is the next one.
    members: Vec<(u64, u32)>,
    open: Vec<Frame>,
    oddity: Option<Oddity>,
}

impl<'d> Writer<'d, '_> {
    fn note(&mut self, oddity: Oddity) {
        self.oddity = Some(self.oddity.map_or(oddity, |before| before.min(oddity)));
    }

    fn node(&self, index: u32) -> Node {
        self.doc.nodes[index as usize]
    }

    fn raw(&self, node: Node) -> &'d [u8] {
        &self.doc.bytes[node.start as usize..node.end as usize]
    }

    fn value(&mut self, index: u32) {
        let node = self.node(index);
        match node.kind {
            Kind::Null | Kind::Bool => self.out.extend_from_slice(self.raw(node)),
            Kind::String => self.string(node),
            Kind::Number => {
                if number::write(self.raw(node), self.out) == number::Form::Exact {
                    self.note(Oddity::InexactNumber);
                }
            }
            Kind::NonFinite => {
                self.out.extend_from_slice(self.raw(node));
                self.note(Oddity::NonFinite);
            }
            Kind::Array => {
                self.out.push(b'[');
                self.open.push(Frame::Array(Array { next: index + 1, end: node.next, first: true }));
            }
            Kind::Object => self.open_object(index, |_, _| false),
        }
    }

    fn go_on_with_array(&mut self, array: Array) {
        if array.next >= array.end {
            self.out.push(b']');
            return;
        }
        if !array.first {
            self.out.push(b',');
        }
        self.open.push(Frame::Array(Array { next: self.node(array.next).next, end: array.end, first: false }));
        self.value(array.next);
    }

    fn go_on_with_object(&mut self, object: Object, skip: &[&[&str]]) {
        if object.next == object.end {
            self.members.truncate(object.begin);
            self.out.push(b'}');
            return;
        }
        if object.next > object.begin {
            self.out.push(b',');
        }
        let key = self.members[object.next].1;
        self.string(self.node(key));
        self.out.push(b':');
        let is_outermost = self.open.is_empty();
        self.open.push(Frame::Object(Object { next: object.next + 1, ..object }));
        if is_outermost && self.node(key + 1).kind == Kind::Object {
            let doc = self.doc;
            self.open_object(key + 1, |inner, _| is_skipped_within(skip, Value { doc, index: key }, inner));
        } else {
            self.value(key + 1);
        }
    }

    /// Begins the object at `index`, without the members that `is_skipped` says.
    fn open_object(&mut self, index: u32, is_skipped: impl Fn(Value<'d>, Value<'d>) -> bool) {
        self.out.push(b'{');
        let begin = self.members.len();
        let end = self.node(index).next;
        let mut plain = true;
        let mut at = index + 1;
        while at < end {
            let key = self.node(at);
            let value = at + 1;
            if !is_skipped(Value { doc: self.doc, index: at }, Value { doc: self.doc, index: value }) {
                plain &= key.spelling == Spelling::Plain;
                self.members.push((first_eight(self.raw(key)), at));
            }
            at = self.node(value).next;
        }
        if self.sort(begin, plain) {
            self.note(Oddity::DuplicateKey);
        }
        self.open.push(Frame::Object(Object { begin, next: begin, end: self.members.len() }));
    }

    /// RFC 8785, section 3.2.3: by the UTF-16 code units of the keys, which in ASCII are its bytes. Equal
    /// keys keep their order; says whether there are any.
    fn sort(&mut self, begin: usize, plain: bool) -> bool {
        let doc = self.doc;
        let members = &mut self.members[begin..];
        let key = |index: u32| Value { doc, index }.quoted();
        if plain {
            members.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(key(b.1))));
            return members.windows(2).any(|pair| pair[0].0 == pair[1].0 && key(pair[0].1) == key(pair[1].1));
        }
        let units = |index: u32| text::utf16(Value { doc, index }.raw());
        members.sort_by_cached_key(|(_, index)| units(*index));
        members.windows(2).any(|pair| units(pair[0].1) == units(pair[1].1))
    }

    /// RFC 8785, section 3.2.2.2.
    fn string(&mut self, node: Node) {
        let raw = self.raw(node);
        let as_it_is = match node.spelling {
            Spelling::Plain => true,
            Spelling::Wide => std::str::from_utf8(raw).is_ok(),
            Spelling::Escaped => false,
        };
        if as_it_is {
            self.out.extend_from_slice(raw);
        } else {
            self.spelled_out(raw);
        }
    }

    fn spelled_out(&mut self, raw: &[u8]) {
        self.out.push(b'"');
        text::for_each_unit(raw, |unit| match unit {
            Unit::Run(run) => self.out.extend_from_slice(run.as_bytes()),
            Unit::Char('"') => self.out.extend_from_slice(b"\\\""),
            Unit::Char('\\') => self.out.extend_from_slice(b"\\\\"),
            Unit::Char('\u{8}') => self.out.extend_from_slice(b"\\b"),
            Unit::Char('\t') => self.out.extend_from_slice(b"\\t"),
            Unit::Char('\n') => self.out.extend_from_slice(b"\\n"),
            Unit::Char('\u{c}') => self.out.extend_from_slice(b"\\f"),
            Unit::Char('\r') => self.out.extend_from_slice(b"\\r"),
            Unit::Char(c) if c < ' ' => {
                let _ = write!(self.out, "\\u{:04x}", c as u32);
            }
            Unit::Char(c) => self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::LoneSurrogate(half) => {
                let _ = write!(self.out, "\\u{half:04x}");
                self.note(Oddity::LoneSurrogate);
            }
            Unit::Invalid => {
                self.out.extend_from_slice("\u{fffd}".as_bytes());
                self.note(Oddity::NotUtf8);
            }
        });
        self.out.push(b'"');
    }
}

/// The first eight bytes of the string `raw`, filled up with zeros: what most keys are told apart by, and
/// sorted as they are.
fn first_eight(raw: &[u8]) -> u64 {
    let key = &raw[1..raw.len() - 1];
    let mut first = [0; 8];
    match key.first_chunk::<8>() {
        Some(eight) => first = *eight,
        None => first[..key.len()].copy_from_slice(key),
    }
    u64::from_be_bytes(first)
}
