//! Canonical JSON: RFC 8785, and what it leaves out; `docs/digest.md` says it in full.
//!
//! Beyond the RFC: a lone surrogate is written as its escape (`\ud800`, lower case), a byte that is
//! no UTF-8 as U+FFFD, numbers that no double holds as [`number`] says, non-finite ones as they
//! stand, and of duplicate keys all are kept in the order they were written. Each of them is told as
//! an [`Oddity`].

use std::io::Write as _;

use super::parse::index_of;
use super::text::{self, Unit};
use super::{Doc, Kind, Node, Oddity, Spelling, Value, number};

/// Writes canonical forms, one after the other.
#[derive(Debug, Default)]
pub struct Canonicalizer {
    /// The members of the open objects, outermost first, those of each one sorted: the first eight bytes
    /// of the key, and its node. The value's is the next one.
    members: Vec<(u64, u32)>,
    /// The open containers, outermost first.
    open: Vec<Frame>,
}

impl Canonicalizer {
    /// Appends the canonical form of `value` to `out`, and says what in it is beyond RFC 8785: of several
    /// things the first one in the order of [`Oddity::ALL`].
    ///
    /// Members of the outermost object are left out that `skip` names: by their key, or by a key and a
    /// key in the object that it holds; such an object is left out with its last member.
    pub fn write(&mut self, value: Value<'_>, skip: &[&[&str]], out: &mut Vec<u8>) -> Option<Oddity> {
        let Canonicalizer { members, open } = self;
        let mut writer = Writer { doc: value.doc, out, members, open, oddity: None };
        match value.kind() {
            Kind::Object => writer.open_object(value.index, |key, member| is_skipped(skip, key, member)),
            Kind::Array => writer.open_array(value.index),
            Kind::Null | Kind::Bool | Kind::Number | Kind::NonFinite | Kind::String => writer.leaf(value.node()),
        }
        while let Some(frame) = writer.open.pop() {
            match frame {
                Frame::Array(array) => writer.go_on_with_array(array),
                Frame::Object(object) => writer.go_on_with_object(object, skip),
            }
        }
        writer.oddity
    }
}

/// Appends the canonical form of `value` to `out`, as [`Canonicalizer::write`] does, with nothing left out.
pub fn write_canonical(value: Value<'_>, out: &mut Vec<u8>) -> Option<Oddity> {
    Canonicalizer::default().write(value, &[], out)
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
#[derive(Debug)]
enum Frame {
    Array(Array),
    Object(Object),
}

/// The elements from node `next` on, up to node `end`.
#[derive(Debug)]
struct Array {
    next: u32,
    end: u32,
    first: bool,
}

/// Its members in `Canonicalizer::members`: those from `next` up to `end` are still to be written.
#[derive(Debug)]
struct Object {
    begin: u32,
    next: u32,
    end: u32,
}

impl Node {
    /// Whether it is surely written in its canonical form.
    fn is_as_it_is(&self) -> bool {
        match self.kind {
            Kind::Null | Kind::Bool => true,
            Kind::String => self.spelling == Spelling::Plain,
            Kind::Number | Kind::NonFinite | Kind::Array | Kind::Object => false,
        }
    }
}

struct Writer<'d, 'o> {
    doc: &'d Doc<'d>,
    out: &'o mut Vec<u8>,
    members: &'o mut Vec<(u64, u32)>,
    open: &'o mut Vec<Frame>,
    oddity: Option<Oddity>,
}

impl<'d> Writer<'d, '_> {
    fn note(&mut self, oddity: Oddity) {
        self.oddity = Some(self.oddity.map_or(oddity, |before| before.min(oddity)));
    }

    fn node(&self, index: u32) -> &'d Node {
        &self.doc.nodes[index as usize]
    }

    fn raw(&self, node: &Node) -> &'d [u8] {
        &self.doc.bytes[node.start as usize..node.end as usize]
    }

    /// Writes what is no container.
    fn leaf(&mut self, node: &Node) {
        match node.kind {
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
            Kind::Null | Kind::Bool | Kind::Array | Kind::Object => self.out.extend_from_slice(self.raw(node)),
        }
    }

    /// Begins the array at `index`.
    fn open_array(&mut self, index: u32) {
        self.out.push(b'[');
        self.open.push(Frame::Array(Array { next: index + 1, end: self.node(index).next, first: true }));
    }

    /// Writes elements up to the next one that is a container.
    fn go_on_with_array(&mut self, mut array: Array) {
        while array.next < array.end {
            if !array.first {
                self.out.push(b',');
            }
            let index = array.next;
            let node = self.node(index);
            array = Array { next: node.next, first: false, ..array };
            match node.kind {
                Kind::Array => {
                    self.open.push(Frame::Array(array));
                    return self.open_array(index);
                }
                Kind::Object => {
                    self.open.push(Frame::Array(array));
                    return self.open_object(index, |_, _| false);
                }
                Kind::Null | Kind::Bool | Kind::Number | Kind::NonFinite | Kind::String => self.leaf(node),
            }
        }
        self.out.push(b']');
    }

    /// Writes members up to the next one that is a container.
    fn go_on_with_object(&mut self, mut object: Object, skip: &[&[&str]]) {
        while object.next < object.end {
            if object.next > object.begin {
                self.out.push(b',');
            }
            let index = self.members[object.next as usize].1;
            let (key, value) = (self.node(index), self.node(index + 1));
            object.next += 1;
            if key.is_as_it_is() && value.is_as_it_is() && value.start == key.end + 1 {
                self.out.extend_from_slice(&self.doc.bytes[key.start as usize..value.end as usize]);
                continue;
            }
            self.string(key);
            self.out.push(b':');
            match value.kind {
                Kind::Array => {
                    self.open.push(Frame::Object(object));
                    return self.open_array(index + 1);
                }
                Kind::Object => {
                    let is_outermost = self.open.is_empty();
                    self.open.push(Frame::Object(object));
                    let key = Value { doc: self.doc, index };
                    return self.open_object(index + 1, |inner, _| is_outermost && is_skipped_within(skip, key, inner));
                }
                Kind::Null | Kind::Bool | Kind::Number | Kind::NonFinite | Kind::String => self.leaf(value),
            }
        }
        self.members.truncate(object.begin as usize);
        self.out.push(b'}');
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
                self.members.push((self.first_eight(key), at));
            }
            at = self.node(value).next;
        }
        if self.sort(begin, plain) {
            self.note(Oddity::DuplicateKey);
        }
        let end = index_of(self.members.len());
        let begin = index_of(begin);
        self.open.push(Frame::Object(Object { begin, next: begin, end }));
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

    /// The first eight bytes of a key, filled up with zeros: what most keys are told apart by, and sorted
    /// as they are.
    fn first_eight(&self, key: &Node) -> u64 {
        let (from, length) = (key.start as usize + 1, (key.end - key.start - 2).min(8));
        let Some(eight) = self.doc.bytes[from..].first_chunk::<8>() else {
            let mut first = [0; 8];
            first[..length as usize].copy_from_slice(&self.doc.bytes[from..from + length as usize]);
            return u64::from_be_bytes(first);
        };
        // What comes after a shorter key is not its own.
        u64::from_be_bytes(*eight) & !u64::MAX.checked_shr(length * 8).unwrap_or(0)
    }

    /// RFC 8785, section 3.2.2.2.
    fn string(&mut self, node: &Node) {
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
