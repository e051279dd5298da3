//! A document with the place of everything in it, whatever language it is written in.

use std::fmt;

/// Where something stands; both from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub at: Place,
    /// What it is.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    /// A text.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order it is written; a key may stand there twice.
    Map(Vec<Member>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub at: Place,
    /// Its value.
    pub value: Node,
}

/// What is wrong with a document, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub at: Place,
    /// In a lower-case sentence.
    pub message: String,
}

impl Value {
    /// The word for what it is, for messages.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}
