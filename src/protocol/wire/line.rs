//! One line: a message, several, none, and what is wrong with it.

use super::message::{Message, Shape};
use crate::protocol::json::{Doc, JsonError, Kind};

/// A way to break the transport's rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No JSON.
    Noise,
    /// JSON, but no JSON-RPC message.
    NotJsonRpc,
    /// A message with other bytes around it on its line.
    Glued {
        /// Where in the line the message begins.
        at: usize,
        /// The bytes after it.
        after: usize,
    },
    /// A message over several lines.
    MultiLine {
        /// How many.
        lines: u64,
    },
    /// A `Content-Length` header, as the Language Server Protocol frames its messages.
    LspFraming,
    /// A byte that is no UTF-8.
    NotUtf8 {
        /// Where in the line it stands.
        at: usize,
    },
    /// A byte-order mark.
    Bom,
    /// `NaN` or an infinity.
    NonFinite {
        /// Where in the line it stands.
        at: usize,
    },
    /// Half a surrogate pair.
    LoneSurrogate {
        /// Where in the line it stands.
        at: usize,
    },
    /// A key that its object has already.
    DuplicateKey {
        /// JSON pointer of the member.
        pointer: String,
    },
    /// Longer than the limit.
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// More values than are read.
    TooManyValues,
    /// Ends in `\r\n`.
    CrLf,
    /// Nothing but white space.
    Blank,
}

/// What a line holds.
pub enum Piece<'d> {
    /// Something that should not be there; with the bytes that show it.
    Fault(Fault, &'d [u8]),
    /// A message and the bytes it was made of.
    Message(Message<'d>, &'d [u8]),
    /// An array: a batch, where its revision knows them. What in it is no message is left out.
    Batch(Vec<Message<'d>>, &'d [u8]),
}

/// How reading a line as it stands ended.
pub(super) enum Read {
    Done,
    /// It begins as an object or an array and ends before that does.
    Unfinished,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads a line (without its `\n`) and hands on its pieces, faults before messages.
pub(super) fn read_line(line: &[u8], sink: &mut dyn FnMut(Piece<'_>)) -> Read {
    let mut text = line;
    if let Some(rest) = text.strip_suffix(b"\r") {
        sink(Piece::Fault(Fault::CrLf, line));
        text = rest;
    }
    while let Some(rest) = text.strip_prefix(BOM) {
        sink(Piece::Fault(Fault::Bom, line));
        text = rest;
    }
    if text.iter().all(|b| matches!(b, b' ' | b'\t')) {
        sink(Piece::Fault(Fault::Blank, line));
        return Read::Done;
    }
    if let Err(error) = std::str::from_utf8(text) {
        sink(Piece::Fault(Fault::NotUtf8 { at: line_offset(line, text) + error.valid_up_to() }, line));
    }
    if is_lsp_header(text) {
        sink(Piece::Fault(Fault::LspFraming, line));
        return Read::Done;
    }
    match Doc::parse(text) {
        Ok(doc) => read_doc(&doc, text, sink),
        Err(JsonError::Incomplete) if matches!(text.trim_ascii_start(), [b'{' | b'[', ..]) => return Read::Unfinished,
        Err(JsonError::TooMany) => sink(Piece::Fault(Fault::TooManyValues, line)),
        Err(JsonError::Incomplete | JsonError::Invalid(_)) => {
            if !read_glued(text, sink) {
                sink(Piece::Fault(Fault::Noise, line));
            }
        }
    }
    Read::Done
}

/// Hands on what a whole document is, and what is odd about it.
pub(super) fn read_doc(doc: &Doc<'_>, raw: &[u8], sink: &mut dyn FnMut(Piece<'_>)) {
    let root = doc.root();
    let message = Message::read(root);
    let is_batch = root.kind() == Kind::Array && root.elements().any(|e| Message::read(e).is_some());
    if message.is_none() && !is_batch {
        sink(Piece::Fault(Fault::NotJsonRpc, raw));
        return;
    }
    let odd = &doc.oddities;
    if let Some(at) = odd.non_finite {
        sink(Piece::Fault(Fault::NonFinite { at }, raw));
    }
    if let Some(at) = odd.lone_surrogate {
        sink(Piece::Fault(Fault::LoneSurrogate { at }, raw));
    }
    if let Some(pointer) = &odd.duplicate_key {
        sink(Piece::Fault(Fault::DuplicateKey { pointer: pointer.clone() }, raw));
    }
    match message {
        Some(message) => sink(Piece::Message(message, raw)),
        None => {
            if let Some(rubbish) = root.elements().find(|e| Message::read(*e).is_none()) {
                sink(Piece::Fault(Fault::NotJsonRpc, rubbish.raw()));
            }
            sink(Piece::Batch(root.elements().filter_map(Message::read).collect(), raw));
        }
    }
}

/// Looks for messages between other bytes, hands them on, and says whether there was one.
fn read_glued(text: &[u8], sink: &mut dyn FnMut(Piece<'_>)) -> bool {
    // A line can hold many braces, and each attempt may read to the end: bound the sum.
    let mut budget = text.len().saturating_mul(4).saturating_add(1024);
    let mut found = false;
    let mut from = 0;
    while let Some(brace) = memchr::memchr(b'{', &text[from..]) {
        let at = from + brace;
        let rest = &text[at..];
        from = at + 1;
        let read = match Doc::parse_prefix(rest) {
            Ok((doc, end)) if Message::read(doc.root()).is_some_and(|m| !matches!(m.shape, Shape::Nothing)) => {
                let after = rest.len() - end;
                let lsp = is_lsp_header(&rest[end..]) || is_lsp_header(&text[..at]);
                let fault = if lsp { Fault::LspFraming } else { Fault::Glued { at, after } };
                sink(Piece::Fault(fault, text));
                read_doc(&doc, &rest[..end], sink);
                found = true;
                from = at + end;
                end
            }
            Ok((_, end)) => end,
            Err(JsonError::Invalid(end)) => end,
            Err(JsonError::Incomplete | JsonError::TooMany) => rest.len(),
        };
        budget = budget.saturating_sub(read + 1);
        if budget == 0 {
            break;
        }
    }
    found
}

fn is_lsp_header(text: &[u8]) -> bool {
    const HEADER: &[u8] = b"content-length:";
    text.get(..HEADER.len()).is_some_and(|start| start.eq_ignore_ascii_case(HEADER))
}

fn line_offset(line: &[u8], text: &[u8]) -> usize {
    line.len() - line.strip_suffix(b"\r").map_or(0, |_| 1) - text.len()
}
