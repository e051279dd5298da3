//! JSON-RPC 2.0 messages, as MCP uses them.

use std::borrow::Cow;
use std::fmt;

use crate::protocol::json::{Kind, Value};
use crate::words::printable;

/// The id of a request, and of its reply. Two are the same only if their types are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// An integer.
    Integer(i64),
    /// A string.
    Text(String),
    /// `null`.
    Null,
    /// What no id may be: a number or a boolean as it was written, or what else it is.
    Other(String),
}

impl Id {
    fn read(value: Value<'_>) -> Id {
        match value.kind() {
            Kind::Null => Id::Null,
            Kind::String => Id::Text(value.text().map(Cow::into_owned).unwrap_or_default()),
            Kind::Number | Kind::NonFinite | Kind::Bool => match value.integer() {
                Some(n) => Id::Integer(n),
                None => Id::Other(printable(&String::from_utf8_lossy(value.raw()), 40)),
            },
            Kind::Array | Kind::Object => Id::Other(value.kind().word().to_owned()),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Integer(n) => write!(f, "{n}"),
            Id::Text(text) => write!(f, "\"{}\"", printable(text, 40)),
            Id::Null => f.write_str("null"),
            Id::Other(raw) => f.write_str(raw),
        }
    }
}

/// What a message is.
#[derive(Clone, Debug)]
pub enum Shape<'d> {
    /// Asks for a reply.
    Request {
        /// What it asks for.
        method: Cow<'d, str>,
    },
    /// Asks for nothing.
    Notification {
        /// What it tells.
        method: Cow<'d, str>,
    },
    /// A successful reply.
    Result(Value<'d>),
    /// An error reply.
    Error {
        /// The error's code, if it is an integer.
        code: Option<i64>,
        /// The error's message; empty if there is none.
        message: Cow<'d, str>,
        /// What comes with it.
        data: Option<Value<'d>>,
    },
    /// Nothing of the above.
    Nothing,
}

/// A JSON-RPC message, or something that means to be one.
#[derive(Clone, Debug)]
pub struct Message<'d> {
    /// Its id, if it has one.
    pub id: Option<Id>,
    /// What it is.
    pub shape: Shape<'d>,
    /// What breaks JSON-RPC 2.0 about it, in words.
    pub problems: Vec<&'static str>,
    /// A member that JSON-RPC does not know, as it is called.
    pub stranger: Option<Cow<'d, str>>,
}

impl<'d> Message<'d> {
    /// Reads `object` as a message; `None` if it is none (a log record, a status object…).
    #[must_use]
    pub fn read(object: Value<'d>) -> Option<Message<'d>> {
        if object.kind() != Kind::Object {
            return None;
        }
        let parts = Parts::of(object);
        if !parts.means_to_be_a_message() {
            return None;
        }
        let mut problems = Vec::new();
        let shape = parts.shape(&mut problems);
        parts.check_version(&mut problems);
        parts.check_id(&shape, &mut problems);
        parts.check_params(&mut problems);
        Some(Message { id: parts.id.map(Id::read), shape, problems, stranger: parts.stranger.and_then(Value::text) })
    }

    /// The method, if it is a request or a notification.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        match &self.shape {
            Shape::Request { method } | Shape::Notification { method } => Some(method),
            Shape::Result(_) | Shape::Error { .. } | Shape::Nothing => None,
        }
    }
}

/// The members of an object that JSON-RPC knows.
#[derive(Default)]
struct Parts<'d> {
    version: Option<Value<'d>>,
    id: Option<Value<'d>>,
    method: Option<Value<'d>>,
    params: Option<Value<'d>>,
    result: Option<Value<'d>>,
    error: Option<Value<'d>>,
    /// The key of some other one.
    stranger: Option<Value<'d>>,
}

impl<'d> Parts<'d> {
    fn of(object: Value<'d>) -> Parts<'d> {
        let mut parts = Parts::default();
        for (key, value) in object.members() {
            match key.text().as_deref() {
                Some("jsonrpc") => parts.version = Some(value),
                Some("id") => parts.id = Some(value),
                Some("method") => parts.method = Some(value),
                Some("params") => parts.params = Some(value),
                Some("result") => parts.result = Some(value),
                Some("error") => parts.error = Some(value),
                Some(_) | None => parts.stranger = Some(key),
            }
        }
        parts
    }

    /// Log records have members called `method`, `id` or `error` too; without `jsonrpc` it takes
    /// more than one of them to be a message.
    fn means_to_be_a_message(&self) -> bool {
        let method = self.method.and_then(Value::text);
        let speaks_mcp = method.is_some_and(|m| m.contains('/') && !m.starts_with('/') || m == "initialize" || m == "ping");
        let is_object = |value: Option<Value<'_>>| value.is_some_and(|v| v.kind() == Kind::Object);
        let answers = self.id.is_some() && (is_object(self.result) || is_object(self.error));
        self.version.is_some() || answers || speaks_mcp
    }

    fn shape(&self, problems: &mut Vec<&'static str>) -> Shape<'d> {
        if self.method.is_some() && (self.result.is_some() || self.error.is_some()) {
            problems.push("it has a method, as a request, and a result or an error, as a reply");
        }
        match (self.result, self.error) {
            (Some(result), None) => Shape::Result(result),
            (None, Some(error)) => read_error(error, problems),
            (Some(result), Some(error)) => {
                problems.push("it has both a result and an error");
                if error.kind() == Kind::Null { Shape::Result(result) } else { read_error(error, problems) }
            }
            (None, None) => self.call(problems),
        }
    }

    fn call(&self, problems: &mut Vec<&'static str>) -> Shape<'d> {
        match (self.method.map(Value::text), self.id) {
            (Some(Some(method)), Some(_)) => Shape::Request { method },
            (Some(Some(method)), None) => Shape::Notification { method },
            (Some(None), _) => {
                problems.push("its method is no string");
                Shape::Nothing
            }
            (None, _) => {
                problems.push("it has neither a method, nor a result or an error");
                Shape::Nothing
            }
        }
    }

    fn check_version(&self, problems: &mut Vec<&'static str>) {
        match self.version.map(Value::text) {
            Some(Some(version)) if version == "2.0" => {}
            Some(_) => problems.push("its \"jsonrpc\" is not \"2.0\""),
            None => problems.push("it has no \"jsonrpc\": \"2.0\""),
        }
    }

    fn check_id(&self, shape: &Shape<'_>, problems: &mut Vec<&'static str>) {
        let problem = match (shape, self.id.map(Id::read)) {
            (Shape::Request { .. }, Some(Id::Null)) => "its id is null, which a request's may not be",
            (Shape::Result(_), Some(Id::Null)) => "its id is null, which a result's may not be",
            (Shape::Result(_), None) => "it is a result without an id",
            (_, Some(Id::Other(_))) => "its id is neither a string nor an integer",
            _ => return,
        };
        problems.push(problem);
    }

    fn check_params(&self, problems: &mut Vec<&'static str>) {
        if let Some(params) = self.params
            && !matches!(params.kind(), Kind::Object | Kind::Array)
        {
            problems.push("its params are neither an object nor an array");
        }
    }
}

fn read_error<'d>(error: Value<'d>, problems: &mut Vec<&'static str>) -> Shape<'d> {
    if error.kind() != Kind::Object {
        problems.push("its error is no object");
        return Shape::Error { code: None, message: error.text().unwrap_or_default(), data: None };
    }
    let code = error.get("code").and_then(Value::integer);
    if code.is_none() {
        problems.push("its error has no integer code");
    }
    let message = error.get("message").and_then(Value::text);
    if message.is_none() {
        problems.push("its error has no message");
    }
    Shape::Error { code, message: message.unwrap_or_default(), data: error.get("data") }
}
