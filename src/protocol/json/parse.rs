//! The parser: one pass, an explicit stack, no recursion.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::text;
use super::{Doc, JsonError, Kind, Node, Oddities, Spelling};

pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    /// The first element, or the end of the array.
    ElementOrEnd,
    /// The first key, or the end of the object.
    KeyOrEnd,
    Key,
    Colon,
    CommaOrEnd,
}

pub(super) struct Parser<'b> {
    bytes: &'b [u8],
    most: usize,
    at: usize,
    nodes: Vec<Node>,
    /// The containers that are open, outermost first.
    open: Vec<u32>,
    /// The innermost of them is an object.
    in_object: bool,
    /// The keys of the object that is being closed: here, so that it is allocated once.
    keys: Vec<&'b [u8]>,
    oddities: Oddities,
}

impl<'b> Parser<'b> {
    /// A parser that takes so many values, keys counted.
    pub(super) fn new(bytes: &'b [u8], most: usize) -> Parser<'b> {
        // A value of few bytes in a line of many: more nodes are made room for when they come.
        let nodes = Vec::with_capacity((bytes.len() / 16).min(1024));
        Parser { bytes, most, at: 0, nodes, open: Vec::new(), in_object: false, keys: Vec::new(), oddities: Oddities::default() }
    }

    pub(super) fn run(mut self) -> Result<(Doc<'b>, usize), JsonError> {
        if u32::try_from(self.bytes.len()).is_err() {
            return Err(JsonError::TooMany);
        }
        let mut expect = Expect::Value;
        loop {
            while self.peek().is_some_and(is_space) {
                self.at += 1;
            }
            let byte = self.peek().ok_or(JsonError::Incomplete)?;
            expect = match (expect, byte) {
                (Expect::ElementOrEnd, b']') | (Expect::KeyOrEnd, b'}') => self.close(),
                (Expect::CommaOrEnd, b']') if !self.in_object => self.close(),
                (Expect::CommaOrEnd, b'}') if self.in_object => self.close(),
                (Expect::CommaOrEnd, b',') => {
                    self.at += 1;
                    if self.in_object { Expect::Key } else { Expect::Value }
                }
                (Expect::Colon, b':') => {
                    self.at += 1;
                    Expect::Value
                }
                (Expect::Key | Expect::KeyOrEnd, b'"') => {
                    self.string()?;
                    // Hardly anybody leaves room before it.
                    if self.peek() == Some(b':') {
                        self.at += 1;
                        Expect::Value
                    } else {
                        Expect::Colon
                    }
                }
                (Expect::Value | Expect::ElementOrEnd, _) => self.value(byte)?,
                (Expect::Key | Expect::KeyOrEnd | Expect::Colon | Expect::CommaOrEnd, _) => {
                    return Err(JsonError::Invalid(self.at));
                }
            };
            if self.open.is_empty() {
                let doc = Doc { bytes: self.bytes, nodes: self.nodes, oddities: self.oddities };
                return Ok((doc, self.at));
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn value(&mut self, byte: u8) -> Result<Expect, JsonError> {
        match byte {
            b'{' => return self.begin(Kind::Object, Expect::KeyOrEnd),
            b'[' => return self.begin(Kind::Array, Expect::ElementOrEnd),
            b'"' => self.string()?,
            b'n' => self.word(b"null", Kind::Null)?,
            b't' => self.word(b"true", Kind::Bool)?,
            b'f' => self.word(b"false", Kind::Bool)?,
            b'N' => self.non_finite(b"NaN")?,
            b'I' => self.non_finite(b"Infinity")?,
            b'-' if self.bytes.get(self.at + 1) == Some(&b'I') => self.non_finite(b"-Infinity")?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return Err(JsonError::Invalid(self.at)),
        }
        Ok(Expect::CommaOrEnd)
    }

    fn begin(&mut self, kind: Kind, expect: Expect) -> Result<Expect, JsonError> {
        let index = self.add(kind, self.at, self.at)?;
        self.open.push(index);
        self.in_object = kind == Kind::Object;
        self.oddities.depth = self.oddities.depth.max(self.open.len());
        self.at += 1;
        Ok(expect)
    }

    /// Ends the innermost container at the bracket that stands here.
    fn close(&mut self) -> Expect {
        self.at += 1;
        if let Some(index) = self.open.pop() {
            let next = index_of(self.nodes.len());
            let node = &mut self.nodes[index as usize];
            node.end = index_of(self.at);
            node.next = next;
            if node.kind == Kind::Object && self.oddities.duplicate_key.is_none() {
                self.note_duplicate_key(index);
            }
        }
        self.in_object = self.open.last().is_some_and(|index| self.nodes[*index as usize].kind == Kind::Object);
        Expect::CommaOrEnd
    }

    fn add(&mut self, kind: Kind, start: usize, end: usize) -> Result<u32, JsonError> {
        if self.nodes.len() >= self.most {
            return Err(JsonError::TooMany);
        }
        let index = index_of(self.nodes.len());
        self.nodes.push(Node { start: index_of(start), end: index_of(end), next: index + 1, kind, spelling: Spelling::Plain });
        Ok(index)
    }

    fn leaf(&mut self, kind: Kind, end: usize) -> Result<(), JsonError> {
        self.add(kind, self.at, end)?;
        self.at = end;
        Ok(())
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Result<(), JsonError> {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(word) {
            return self.leaf(kind, self.at + word.len());
        }
        let same = rest.iter().zip(word).take_while(|(a, b)| a == b).count();
        Err(if same == rest.len() { JsonError::Incomplete } else { JsonError::Invalid(self.at + same) })
    }

    fn non_finite(&mut self, word: &[u8]) -> Result<(), JsonError> {
        let at = self.at;
        self.word(word, Kind::NonFinite)?;
        self.oddities.non_finite.get_or_insert(at);
        Ok(())
    }

    /// RFC 8259, section 6.
    fn number(&mut self) -> Result<(), JsonError> {
        let mut at = self.at;
        if self.bytes[at] == b'-' {
            at += 1;
        }
        match self.bytes.get(at) {
            Some(b'0') => at += 1,
            Some(b'1'..=b'9') => at = self.digits(at)?,
            Some(_) => return Err(JsonError::Invalid(at)),
            None => return Err(JsonError::Incomplete),
        }
        if self.bytes.get(at) == Some(&b'.') {
            at = self.digits(at + 1)?;
        }
        if matches!(self.bytes.get(at), Some(b'e' | b'E')) {
            at += 1;
            if matches!(self.bytes.get(at), Some(b'+' | b'-')) {
                at += 1;
            }
            at = self.digits(at)?;
        }
        self.leaf(Kind::Number, at)
    }

    /// Where the run of digits at `at` ends; there has to be one.
    fn digits(&self, at: usize) -> Result<usize, JsonError> {
        let count = self.bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        match (count, self.bytes.get(at)) {
            (0, None) => Err(JsonError::Incomplete),
            (0, Some(_)) => Err(JsonError::Invalid(at)),
            (n, _) => Ok(at + n),
        }
    }

    fn string(&mut self) -> Result<(), JsonError> {
        let mut at = self.at + 1;
        let mut spelling = Spelling::Plain;
        loop {
            let (plain, is_wide) = text::plain_run(&self.bytes[at..]);
            at += plain;
            if is_wide && spelling == Spelling::Plain {
                spelling = Spelling::Wide;
            }
            match self.bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    at = self.escape(at)?;
                    spelling = Spelling::Escaped;
                }
                Some(_) => return Err(JsonError::Invalid(at)),
                None => return Err(JsonError::Incomplete),
            }
        }
        self.leaf(Kind::String, at + 1)?;
        if let Some(node) = self.nodes.last_mut() {
            node.spelling = spelling;
        }
        Ok(())
    }

    /// Checks the escape at `at` and says where it ends.
    fn escape(&mut self, at: usize) -> Result<usize, JsonError> {
        match self.bytes.get(at + 1) {
            None => Err(JsonError::Incomplete),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
            Some(b'u') => self.unicode_escape(at),
            Some(_) => Err(JsonError::Invalid(at + 1)),
        }
    }

    fn unicode_escape(&mut self, at: usize) -> Result<usize, JsonError> {
        let rest = &self.bytes[at..];
        let Some(unit) = text::hex4(rest) else {
            let bad = rest[2..].iter().take(4).position(|b| !b.is_ascii_hexdigit());
            return Err(bad.map_or(JsonError::Incomplete, |n| JsonError::Invalid(at + 2 + n)));
        };
        let is_low = |unit: u16| (0xdc00..=0xdfff).contains(&unit);
        match unit {
            0xd800..=0xdbff if text::hex4(&rest[6..]).is_some_and(is_low) => Ok(at + 12),
            0xd800..=0xdfff => {
                self.oddities.lone_surrogate.get_or_insert(at);
                Ok(at + 6)
            }
            _ => Ok(at + 6),
        }
    }

    /// Notes the first key of the object at `index` that it has twice.
    fn note_duplicate_key(&mut self, index: u32) {
        let twice = self.key_that_stands_twice(index);
        if let Some(key) = twice {
            let mut pointer = String::new();
            for (outer, inner) in self.open.iter().zip(self.open.iter().skip(1).chain([&index])) {
                self.push_step(&mut pointer, *outer, *inner);
            }
            push_token(&mut pointer, &text::lossy(key));
            self.oddities.duplicate_key = Some(pointer);
        }
    }

    fn key_that_stands_twice(&mut self, object: u32) -> Option<&'b [u8]> {
        self.keys.clear();
        let mut at = object + 1;
        let mut as_written = true;
        while (at as usize) < self.nodes.len() {
            let key = self.nodes[at as usize];
            as_written &= key.spelling != Spelling::Escaped;
            self.keys.push(&self.bytes[key.start as usize..key.end as usize]);
            at = self.nodes[at as usize + 1].next;
        }
        if as_written {
            return first_twice(&mut self.keys, |a, b| a == b, |a, b| a.cmp(b));
        }
        let mut meant: Vec<(Cow<'b, str>, &'b [u8])> = self.keys.iter().map(|raw| (text::lossy(raw), *raw)).collect();
        first_twice(&mut meant, |a, b| a.0 == b.0, |a, b| a.0.cmp(&b.0)).map(|(_, raw)| raw)
    }

    /// Appends the step from the open container `outer` to its member `inner`, which is its last.
    fn push_step(&self, pointer: &mut String, outer: u32, inner: u32) {
        if self.nodes[outer as usize].kind == Kind::Object {
            push_token(pointer, &text::lossy(self.raw(inner - 1)));
            return;
        }
        let mut at = outer + 1;
        let mut position = 0usize;
        while at < inner {
            at = self.nodes[at as usize].next;
            position += 1;
        }
        push_token(pointer, &position.to_string());
    }

    fn raw(&self, index: u32) -> &'b [u8] {
        let node = self.nodes[index as usize];
        &self.bytes[node.start as usize..node.end as usize]
    }
}

/// The first of `keys` that is there twice; of many keys the least one, and they are sorted then.
fn first_twice<K: Clone>(keys: &mut [K], is_same: impl Fn(&K, &K) -> bool, order: impl Fn(&K, &K) -> Ordering) -> Option<K> {
    if keys.len() < 9 {
        let again = |n: &usize| keys[..*n].iter().any(|k| is_same(k, &keys[*n]));
        return (1..keys.len()).find(again).map(|n| keys[n].clone());
    }
    keys.sort_by(order);
    keys.windows(2).find(|pair| is_same(&pair[0], &pair[1])).map(|pair| pair[1].clone())
}

/// RFC 6901, section 3.
fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
}

/// Offsets and indexes fit: `run` refuses documents of 4 GiB, and a value takes at least a byte.
pub(super) fn index_of(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
