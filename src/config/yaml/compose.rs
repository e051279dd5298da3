//! Events into a tree.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, ScalarStyle, Tag};

use super::super::tree::{Member, Node, Place, Problem, Value};
use super::scalar;
use crate::words::printable;

/// Nothing of ours is deeper than eight levels; what a tool is called with may be.
const DEEPEST: usize = 64;
/// The most that a document may weigh, its aliases written out: a value weighs 1, and a byte of text 1/64.
const HEAVIEST: u64 = 200_000;

/// Puts a tree together.
#[derive(Default)]
pub(super) struct Composer {
    /// What is wrong so far.
    pub(super) problems: Vec<Problem>,
    open: Vec<Open>,
    root: Option<Node>,
    documents: u32,
    /// By the parser's number of the anchor; with the weight of it.
    anchors: HashMap<usize, (Node, u64)>,
    weight: u64,
}

/// A list or a mapping that has begun.
struct Open {
    at: Place,
    anchor: usize,
    /// The weight of the document when it began.
    weight: u64,
    holds: Holds,
}

enum Holds {
    List(Vec<Node>),
    Map(Mapping),
}

#[derive(Default)]
struct Mapping {
    members: Vec<Member>,
    /// Where each key stands among them.
    index: HashMap<String, usize>,
    /// Mappings to be merged in: their place and themselves.
    merged: Vec<Node>,
    pending: Pending,
}

/// The key that waits for its value.
#[derive(Default)]
enum Pending {
    #[default]
    Nothing,
    Key(String, Place),
    /// `<<`
    Merge,
    /// It is no key; what belongs to it is read and forgotten.
    Wrong,
}

impl Composer {
    /// Takes the next event.
    ///
    /// # Errors
    ///
    /// What makes it pointless to go on.
    pub(super) fn take(&mut self, event: Event<'_>, at: Place) -> Result<(), Problem> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(problem(at, "a second document begins here; a configuration is one document"));
                }
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::Scalar(text, style, anchor, tag) => {
                let value = self.scalar(&text, style, tag.as_deref(), at);
                let weight = 1 + text.len() as u64 / 64;
                self.weigh(weight, at)?;
                let is_plain = style == ScalarStyle::Plain && tag.is_none();
                let node = Node { at, value };
                self.remember(anchor, &node, weight)?;
                self.put(node, Some((&text, is_plain)));
                Ok(())
            }
            Event::SequenceStart(anchor, tag) => self.begin(Holds::List(Vec::new()), anchor, tag, "seq", at),
            Event::MappingStart(anchor, tag) => self.begin(Holds::Map(Mapping::default()), anchor, tag, "map", at),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
        }
    }

    /// The tree, if there is nothing wrong with it that is not told already.
    pub(super) fn finish(mut self) -> (Option<Node>, Vec<Problem>) {
        if self.documents == 0 {
            self.problems.push(problem(Place { line: 1, column: 1 }, "there is nothing in it; a configuration has at least `servers`"));
        }
        (self.root, self.problems)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Place) -> Value {
        match tag.map(core) {
            None if style == ScalarStyle::Plain => scalar::plain(text),
            None => Value::Text(text.to_owned()),
            // "!" alone: not to be resolved.
            Some(Ok("str" | "!")) => Value::Text(text.to_owned()),
            Some(Ok("null" | "bool" | "int" | "float")) => scalar::plain(text),
            Some(Ok(other)) => {
                self.problems.push(foreign(other, at));
                Value::Null
            }
            Some(Err(other)) => {
                self.problems.push(foreign(&other, at));
                Value::Text(text.to_owned())
            }
        }
    }

    fn begin(&mut self, holds: Holds, anchor: usize, tag: Option<Cow<'_, Tag>>, right: &str, at: Place) -> Result<(), Problem> {
        match tag.as_deref().map(core) {
            None => {}
            Some(Ok(core)) if core == right || core == "!" => {}
            Some(Ok(other)) => self.problems.push(foreign(other, at)),
            Some(Err(other)) => self.problems.push(foreign(&other, at)),
        }
        if self.open.len() == DEEPEST {
            return Err(problem(at, format!("more than {DEEPEST} levels deep")));
        }
        let weight = self.weight;
        self.weigh(1, at)?;
        self.open.push(Open { at, anchor, weight, holds });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Problem> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let value = match open.holds {
            Holds::List(elements) => Value::List(elements),
            Holds::Map(mapping) => Value::Map(mapping.finish()),
        };
        let node = Node { at: open.at, value };
        self.remember(open.anchor, &node, self.weight - open.weight)?;
        self.put(node, None);
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: Place) -> Result<(), Problem> {
        let Some((node, weight)) = self.anchors.get(&anchor) else {
            return Err(problem(at, "an alias cannot stand inside of what it stands for"));
        };
        let (node, weight) = (node.clone(), *weight);
        if self.open.len() + depth(&node) > DEEPEST {
            return Err(problem(at, format!("more than {DEEPEST} levels deep")));
        }
        self.weigh(weight, at)?;
        let as_key = match &node.value {
            Value::Text(text) | Value::Number(text) => Some((text.clone(), false)),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
        };
        self.put(node, as_key.as_ref().map(|(text, is_plain)| (text.as_str(), *is_plain)));
        Ok(())
    }

    fn weigh(&mut self, weight: u64, at: Place) -> Result<(), Problem> {
        self.weight += weight;
        if self.weight > HEAVIEST {
            return Err(problem(at, "too much for a configuration, with its aliases written out"));
        }
        Ok(())
    }

    /// The parser numbers anchors from 1; 0 is none. What is remembered weighs too.
    fn remember(&mut self, anchor: usize, node: &Node, weight: u64) -> Result<(), Problem> {
        if anchor != 0 {
            self.weigh(weight, node.at)?;
            self.anchors.insert(anchor, (node.clone(), weight));
        }
        Ok(())
    }

    /// Puts a node where the next one belongs. `scalar`: its text, and that it is plain, if it can be a key.
    fn put(&mut self, node: Node, scalar: Option<(&str, bool)>) {
        match self.open.last_mut().map(|open| &mut open.holds) {
            None => self.root = Some(node),
            Some(Holds::List(elements)) => elements.push(node),
            Some(Holds::Map(mapping)) => self.problems.extend(mapping.put(node, scalar)),
        }
    }
}

impl Mapping {
    fn put(&mut self, node: Node, scalar: Option<(&str, bool)>) -> Option<Problem> {
        match std::mem::take(&mut self.pending) {
            Pending::Nothing => self.key(&node, scalar),
            Pending::Wrong => None,
            Pending::Merge => self.merge(node),
            Pending::Key(key, at) => {
                // Nothing stands nowhere: its key has a place.
                let value = if node.value == Value::Null { Node { at, ..node } } else { node };
                self.index.insert(key.clone(), self.members.len());
                self.members.push(Member { key, at, value });
                None
            }
        }
    }

    fn key(&mut self, node: &Node, scalar: Option<(&str, bool)>) -> Option<Problem> {
        self.pending = Pending::Wrong;
        let Some((text, is_plain)) = scalar else {
            return Some(problem(node.at, format!("a key has to be a text, and this is {}", node.value.word())));
        };
        if text == "<<" && is_plain {
            self.pending = Pending::Merge;
            return None;
        }
        if let Some(first) = self.index.get(text).and_then(|i| self.members.get(*i)) {
            return Some(problem(node.at, format!("\"{}\" stands here a second time; the first is at {}", printable(text, 60), first.at)));
        }
        self.pending = Pending::Key(text.to_owned(), node.at);
        None
    }

    /// `<<: *one` or `<<: [*one, *two]` (https://yaml.org/type/merge.html).
    fn merge(&mut self, node: Node) -> Option<Problem> {
        let at = node.at;
        let sources = match node.value {
            Value::Map(_) => vec![node],
            Value::List(elements) => elements,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => Vec::new(),
        };
        if sources.is_empty() || sources.iter().any(|source| !matches!(source.value, Value::Map(_))) {
            return Some(problem(at, "`<<` takes a mapping, or a list of mappings"));
        }
        self.merged.extend(sources);
        None
    }

    /// Own members win, then those of the mapping that is merged first.
    fn finish(mut self) -> Vec<Member> {
        for source in self.merged {
            let Value::Map(members) = source.value else { continue };
            for member in members {
                if !self.index.contains_key(&member.key) {
                    self.index.insert(member.key.clone(), self.members.len());
                    self.members.push(member);
                }
            }
        }
        self.members
    }
}

/// How many levels deep a node is; it is at most [`DEEPEST`].
fn depth(node: &Node) -> usize {
    match &node.value {
        Value::List(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
        Value::Map(members) => 1 + members.iter().map(|m| depth(&m.value)).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => 0,
    }
}

/// The name of a tag of the core schema, or else the tag as it is written.
fn core(tag: &Tag) -> Result<&str, String> {
    const CORE: &str = "tag:yaml.org,2002:";
    if tag.handle == CORE {
        return Ok(&tag.suffix);
    }
    match tag.suffix.strip_prefix(CORE) {
        Some(name) if tag.handle.is_empty() => Ok(name),
        _ if tag.handle.is_empty() && tag.suffix == "!" => Ok("!"),
        _ => Err(format!("{}{}", tag.handle, tag.suffix)),
    }
}

fn foreign(tag: &str, at: Place) -> Problem {
    problem(at, format!("the tag {} means nothing here", printable(tag, 60)))
}

fn problem(at: Place, message: impl Into<String>) -> Problem {
    Problem { at, message: message.into() }
}
