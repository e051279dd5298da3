//! JSON-RPC: what came in, and the shape of what goes out.

use serde_json::{Map, Value, json};

pub(super) const PARSE_ERROR: i32 = -32700;
pub(super) const INVALID_REQUEST: i32 = -32600;
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
pub(super) const INVALID_PARAMS: i32 = -32602;

/// The members of a `params` object.
pub(super) type Params = Map<String, Value>;

/// An error reply in the making.
#[derive(Debug)]
pub(super) struct Refusal {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl Refusal {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(super) fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }
}

/// A request that is well-formed as far as JSON-RPC goes.
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Params,
}

/// One message, as JSON-RPC sorts it.
pub(super) enum Message {
    Request(Request),
    /// A notification or a response: there is nothing to answer.
    NoReplyDue,
    /// Not a message; the refusal goes back under this id.
    Invalid(Value, Refusal),
}

impl Message {
    pub(super) fn read(value: &Value) -> Self {
        let Some(members) = value.as_object() else {
            return invalid_request(&Value::Null, "a message has to be an object");
        };
        let id = members.get("id");
        let reply_id = id.filter(|id| is_request_id(id)).unwrap_or(&Value::Null);
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return invalid_request(reply_id, "jsonrpc has to be \"2.0\"");
        }
        let Some(method) = members.get("method") else {
            if members.contains_key("result") || members.contains_key("error") {
                return Self::NoReplyDue;
            }
            return invalid_request(reply_id, "method is missing");
        };
        let Some(method) = method.as_str() else {
            return invalid_request(reply_id, "method has to be a string");
        };
        if id.is_none() {
            return Self::NoReplyDue;
        }
        if reply_id.is_null() {
            return invalid_request(&Value::Null, "id has to be a string or an integer");
        }
        let params = match members.get("params") {
            None => Params::new(),
            Some(Value::Object(params)) => params.clone(),
            Some(_) => {
                return Self::Invalid(reply_id.clone(), Refusal::invalid_params("params has to be an object"));
            }
        };
        Self::Request(Request { id: reply_id.clone(), method: method.to_owned(), params })
    }
}

fn invalid_request(id: &Value, message: &str) -> Message {
    Message::Invalid(id.clone(), Refusal::new(INVALID_REQUEST, message))
}

fn is_request_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

/// The reply to the request with this id.
pub(super) fn reply(id: &Value, outcome: Result<Value, Refusal>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(Refusal { code, message, data }) => {
            let mut error = Map::new();
            error.insert("code".to_owned(), code.into());
            error.insert("message".to_owned(), message.into());
            if let Some(data) = data {
                error.insert("data".to_owned(), data);
            }
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}
