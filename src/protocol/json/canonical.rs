//! Canonical JSON: RFC 8785, and what it leaves out.
//!
//! Beyond the RFC: a lone surrogate is written as its escape (`\ud800`, lower case), a byte that is
//! no UTF-8 as U+FFFD, numbers that no double holds as [`number`] says, non-finite ones as they
//! stand, and of duplicate keys all are kept in the order they were written.

use std::io::Write as _;

use super::text::{self, Unit};
use super::{Kind, Value, number};

/// What is still to be written.
enum Step<'d> {
    Value(Value<'d>),
    /// The members of an object from this one on, sorted, last first.
    Members(Vec<(Value<'d>, Value<'d>)>, bool),
    /// The elements of an array, last first.
    Elements(Vec<Value<'d>>, bool),
}

/// Appends the canonical form of `value` to `out`, leaving out the members of the outermost object
/// whose keys `skip` names.
pub fn write_canonical(value: Value<'_>, skip: &[&str], out: &mut Vec<u8>) {
    let outermost = sorted_members(value, skip);
    let mut steps = match value.kind() {
        Kind::Object => vec![open_object(outermost, out)],
        Kind::Null | Kind::Bool | Kind::Number | Kind::NonFinite | Kind::String | Kind::Array => vec![Step::Value(value)],
    };
    while let Some(step) = steps.pop() {
        match step {
            Step::Value(value) => write_value(value, &mut steps, out),
            Step::Members(mut members, first) => match members.pop() {
                None => out.push(b'}'),
                Some((key, value)) => {
                    separate(first, out);
                    write_string(key.raw(), out);
                    out.push(b':');
                    steps.push(Step::Members(members, false));
                    steps.push(Step::Value(value));
                }
            },
            Step::Elements(mut elements, first) => match elements.pop() {
                None => out.push(b']'),
                Some(value) => {
                    separate(first, out);
                    steps.push(Step::Elements(elements, false));
                    steps.push(Step::Value(value));
                }
            },
        }
    }
}

fn separate(first: bool, out: &mut Vec<u8>) {
    if !first {
        out.push(b',');
    }
}

fn open_object<'d>(mut members: Vec<(Value<'d>, Value<'d>)>, out: &mut Vec<u8>) -> Step<'d> {
    out.push(b'{');
    members.reverse();
    Step::Members(members, true)
}

fn write_value<'d>(value: Value<'d>, steps: &mut Vec<Step<'d>>, out: &mut Vec<u8>) {
    match value.kind() {
        Kind::Null | Kind::Bool | Kind::NonFinite => out.extend_from_slice(value.raw()),
        Kind::Number => {
            let token = String::from_utf8_lossy(value.raw());
            out.extend_from_slice(number::canonical(&token).as_bytes());
        }
        Kind::String => write_string(value.raw(), out),
        Kind::Object => steps.push(open_object(sorted_members(value, &[]), out)),
        Kind::Array => {
            out.push(b'[');
            let mut elements: Vec<Value<'d>> = value.elements().collect();
            elements.reverse();
            steps.push(Step::Elements(elements, true));
        }
    }
}

/// RFC 8785, section 3.2.3: by the UTF-16 code units of the keys. Equal keys keep their order.
fn sorted_members<'d>(object: Value<'d>, skip: &[&str]) -> Vec<(Value<'d>, Value<'d>)> {
    let mut members: Vec<_> = object.members().filter(|(key, _)| !skip.iter().any(|s| text::equals(key.raw(), s))).collect();
    if members.iter().all(|(key, _)| is_plain_ascii(key.raw())) {
        members.sort_by(|a, b| a.0.raw()[1..a.0.raw().len() - 1].cmp(&b.0.raw()[1..b.0.raw().len() - 1]));
    } else {
        members.sort_by_cached_key(|(key, _)| text::utf16(key.raw()));
    }
    members
}

fn is_plain_ascii(raw: &[u8]) -> bool {
    raw.is_ascii() && memchr::memchr(b'\\', raw).is_none()
}

/// RFC 8785, section 3.2.2.2.
fn write_string(raw: &[u8], out: &mut Vec<u8>) {
    if is_plain_ascii(raw) {
        out.extend_from_slice(raw);
        return;
    }
    out.push(b'"');
    text::for_each_unit(raw, |unit| match unit {
        Unit::Char('"') => out.extend_from_slice(b"\\\""),
        Unit::Char('\\') => out.extend_from_slice(b"\\\\"),
        Unit::Char('\u{8}') => out.extend_from_slice(b"\\b"),
        Unit::Char('\t') => out.extend_from_slice(b"\\t"),
        Unit::Char('\n') => out.extend_from_slice(b"\\n"),
        Unit::Char('\u{c}') => out.extend_from_slice(b"\\f"),
        Unit::Char('\r') => out.extend_from_slice(b"\\r"),
        Unit::Char(c) if c < ' ' => {
            let _ = write!(out, "\\u{:04x}", c as u32);
        }
        Unit::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        Unit::LoneSurrogate(half) => {
            let _ = write!(out, "\\u{half:04x}");
        }
        Unit::Invalid => out.extend_from_slice("\u{fffd}".as_bytes()),
    });
    out.push(b'"');
}
