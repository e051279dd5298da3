//! The whole of stdout: lines, and messages that were spread over several of them.

use std::borrow::Cow;

use super::line::{Fault, Piece, Read, read_doc, read_line};
use super::lines::{Cut, Lines, Place};
use super::message::Message;
use crate::protocol::json::Doc;

/// The end of stdout when it is not the end of a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Tail<'b> {
    /// Where it begins.
    pub place: Place,
    /// How long it is, in bytes.
    pub length: u64,
    /// Its first bytes.
    pub bytes: &'b [u8],
    /// It is a whole message; only its newline is missing.
    pub is_message: bool,
}

/// The longest message over several lines that is put together, in bytes: it breaks the rules anyway.
const MAX_OPEN: usize = 4 << 20;

/// Takes what [`Framing`] makes of stdout.
pub trait Sink {
    /// A piece of the line at `place`.
    fn piece(&mut self, place: Place, piece: Piece<'_>);

    /// A line that is about to be read, and no part of a message over several lines. Says whether it is
    /// known, and dealt with: then it is not read.
    fn is_known(&mut self, _place: Place, _line: &[u8]) -> bool {
        false
    }
}

impl<F: FnMut(Place, Piece<'_>)> Sink for F {
    fn piece(&mut self, place: Place, piece: Piece<'_>) {
        self(place, piece);
    }
}

/// Reads stdout piece by piece.
pub struct Framing {
    lines: Lines,
    limit: usize,
    /// A message that began on an earlier line and may go on.
    open: Option<Open>,
}

/// Lines that together may be one message.
struct Open {
    /// As they were written, the last one without its newline.
    text: Vec<u8>,
    /// The newlines in strings, in `text`.
    in_strings: usize,
    place: Place,
    lines: u64,
    nesting: Nesting,
}

impl Framing {
    /// A reader that takes lines of up to `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Framing {
        Framing { lines: Lines::new(limit), limit, open: None }
    }

    /// From now on long lines are dropped without a word: nobody waits for what is on them.
    pub fn drop_long_lines(&mut self) {
        self.lines.drop_long_ones();
    }

    /// How much memory it takes to hold what has not ended yet, in bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.lines.held() + self.open.as_ref().map_or(0, |open| open.text.capacity())
    }

    /// Takes `bytes` and hands on every piece that ends in them, with the place of its line.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        let Framing { lines, limit, open } = self;
        lines.feed(bytes, |place, cut| match cut {
            Cut::Line(line) => take_line(open, (*limit).min(MAX_OPEN), place, line, sink),
            Cut::TooLong(head) => {
                give_up(open, sink);
                sink.piece(place, Piece::Fault(Fault::TooLong { limit: *limit }, head));
            }
        });
    }

    /// Stdout has ended, or what comes is not waited for any more: a message that is still open
    /// will not be completed.
    pub fn finish(&mut self, sink: &mut dyn Sink) {
        give_up(&mut self.open, sink);
    }

    /// The line that has begun and not ended.
    #[must_use]
    pub fn tail(&self) -> Option<Tail<'_>> {
        let (place, length, bytes) = self.lines.unfinished()?;
        let whole = length == bytes.len() as u64;
        let is_message = whole && Doc::parse(bytes).is_ok_and(|doc| Message::read(doc.root()).is_some());
        Some(Tail { place, length, bytes, is_message })
    }
}

fn take_line(open: &mut Option<Open>, most: usize, place: Place, line: &[u8], sink: &mut dyn Sink) {
    if let Some(o) = open {
        // A line that is a message by itself is no part of another: what was open was noise.
        let alone = Doc::parse(line).is_ok_and(|doc| Message::read(doc.root()).is_some());
        if !alone && o.text.len() + line.len() < most {
            return extend(open, line, sink);
        }
        give_up(open, sink);
    }
    if sink.is_known(place, line) {
        return;
    }
    if let Read::Unfinished = read_line(line, &mut |piece| sink.piece(place, piece)) {
        if line.len() > most {
            return sink.piece(place, Piece::Fault(Fault::Noise, line));
        }
        let mut nesting = Nesting::default();
        nesting.read(line);
        *open = Some(Open { text: line.to_vec(), in_strings: 0, place, lines: 1, nesting });
    }
}

/// Adds `line` to the open message and hands that on if it is complete now.
fn extend(open: &mut Option<Open>, line: &[u8], sink: &mut dyn Sink) {
    let Some(o) = open else { return };
    o.lines += 1;
    o.in_strings += usize::from(o.nesting.in_string);
    o.nesting.read(b"\n");
    o.text.push(b'\n');
    o.text.extend_from_slice(line);
    o.nesting.read(line);
    if o.nesting.depth > 0 {
        return;
    }
    let (place, message) = (o.place, o.message());
    match Doc::parse(&message) {
        Ok(doc) => {
            sink.piece(place, Piece::Fault(Fault::MultiLine { lines: o.lines }, &message));
            read_doc(&doc, &message, &mut |piece| sink.piece(place, piece));
            *open = None;
        }
        Err(_) => give_up(open, sink),
    }
}

/// Hands on the lines of the open message as noise.
fn give_up(open: &mut Option<Open>, sink: &mut dyn Sink) {
    if let Some(o) = open.take() {
        let mut place = o.place;
        for line in o.text.split(|b| *b == b'\n') {
            if !line.is_empty() {
                sink.piece(place, Piece::Fault(Fault::Noise, line));
            }
            place = Place { line: place.line + 1, offset: place.offset + line.len() as u64 + 1 };
        }
    }
}

impl Open {
    /// The message that the lines are, with an escape for each newline in a string: so that one with a raw newline in a text
    /// can be read, and called by its name.
    fn message(&self) -> Cow<'_, [u8]> {
        if self.in_strings == 0 {
            return Cow::Borrowed(&self.text);
        }
        let mut message = Vec::with_capacity(self.text.len() + self.in_strings);
        let mut nesting = Nesting::default();
        for line in self.text.split_inclusive(|b| *b == b'\n') {
            let (whole, newline) = line.strip_suffix(b"\n").map_or((line, false), |whole| (whole, true));
            message.extend_from_slice(whole);
            nesting.read(whole);
            if newline {
                message.extend_from_slice(if nesting.in_string { b"\\n" } else { b"\n" });
                nesting.read(b"\n");
            }
        }
        Cow::Owned(message)
    }
}

/// How deep in brackets, and whether in a string, a text ends.
#[derive(Default)]
struct Nesting {
    depth: i64,
    in_string: bool,
    escaped: bool,
}

impl Nesting {
    fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth -= 1,
                _ => {}
            }
        }
    }
}
