//! Everything we send. Each message is one line, its `\n` included.

use serde_json::{Value, json};

use crate::protocol::wire::Id;
use crate::protocol::{Era, LATEST_LEGACY};

/// One of the lists that a server can offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    ResourceTemplates,
}

impl ListKind {
    /// All of them, in the order they are asked for.
    pub const ALL: [ListKind; 4] = [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates];

    /// The method that asks for it.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            ListKind::Tools => "tools/list",
            ListKind::Prompts => "prompts/list",
            ListKind::Resources => "resources/list",
            ListKind::ResourceTemplates => "resources/templates/list",
        }
    }

    /// The member of the result that holds it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Prompts => "prompts",
            ListKind::Resources => "resources",
            ListKind::ResourceTemplates => "resourceTemplates",
        }
    }

    /// The word for it in reports and metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Prompts => "prompts",
            ListKind::Resources => "resources",
            ListKind::ResourceTemplates => "resource_templates",
        }
    }

    /// The member of an item that says what it is called by.
    #[must_use]
    pub const fn identity(self) -> &'static str {
        match self {
            ListKind::Tools | ListKind::Prompts => "name",
            ListKind::Resources => "uri",
            ListKind::ResourceTemplates => "uriTemplate",
        }
    }

    /// The capability that offers it.
    #[must_use]
    pub const fn capability(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Prompts => "prompts",
            ListKind::Resources | ListKind::ResourceTemplates => "resources",
        }
    }
}

/// Writes requests, each with a new id.
///
/// Ids are never 0 and never two alike, and small: servers exist that keep them in 32 bits.
#[derive(Debug, Default)]
pub struct Asker {
    last_id: i64,
}

impl Asker {
    /// `server/discover`. Its id is a string, as in the specification's own example, so that a
    /// server which knows only numbers as ids shows it here.
    pub fn discover(&mut self, version: &str) -> (Id, Vec<u8>) {
        let id = self.next_id().to_string();
        let line = request(&json!(id), "server/discover", json!({ "_meta": meta(version) }));
        (Id::Text(id), line)
    }

    /// `initialize`, which never carries a modern version.
    pub fn initialize(&mut self) -> (Id, Vec<u8>) {
        let params = json!({ "protocolVersion": LATEST_LEGACY, "capabilities": {}, "clientInfo": client_info() });
        self.integer_request("initialize", params)
    }

    /// `notifications/initialized`.
    #[must_use]
    pub fn initialized(&self) -> Vec<u8> {
        line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
    }

    /// One page of a list.
    pub fn list(&mut self, kind: ListKind, era: Era, version: &str, cursor: Option<&str>) -> (Id, Vec<u8>) {
        let mut params = serde_json::Map::new();
        if let Some(cursor) = cursor {
            params.insert("cursor".to_owned(), cursor.into());
        }
        match era {
            Era::Modern => {
                params.insert("_meta".to_owned(), meta(version));
            }
            Era::Legacy => {}
        }
        self.integer_request(kind.method(), Value::Object(params))
    }

    /// A call of the tool `name` with `arguments`, a JSON object.
    pub fn call(&mut self, name: &str, arguments: &str, era: Era, version: &str) -> (Id, Vec<u8>) {
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
        let mut params = json!({ "name": name, "arguments": arguments });
        if era == Era::Modern {
            params["_meta"] = meta(version);
        }
        self.integer_request("tools/call", params)
    }

    fn integer_request(&mut self, method: &str, params: Value) -> (Id, Vec<u8>) {
        let id = self.next_id();
        (Id::Integer(id), request(&json!(id), method, params))
    }

    fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }
}

/// The method, if it is one that clients call and servers answer: a line that carries it is our own,
/// come back (an echoing terminal, `cat`).
#[must_use]
pub fn is_ours(method: &str) -> Option<&'static str> {
    const OTHERS: [&str; 4] = ["initialize", "notifications/initialized", "server/discover", "tools/call"];
    let lists = ListKind::ALL.iter().map(|kind| kind.method());
    OTHERS.into_iter().chain(lists).find(|ours| *ours == method)
}

/// The reply to a server's `ping`.
#[must_use]
pub fn reply_to_ping(id: &Id) -> Option<Vec<u8>> {
    Some(line(&json!({ "jsonrpc": "2.0", "id": id_value(id)?, "result": {} })))
}

/// The reply to a server's `roots/list`: no roots.
#[must_use]
pub fn reply_to_roots(id: &Id) -> Option<Vec<u8>> {
    Some(line(&json!({ "jsonrpc": "2.0", "id": id_value(id)?, "result": { "roots": [] } })))
}

/// The reply to any other request of a server's: method not found.
#[must_use]
pub fn refusal(id: &Id) -> Option<Vec<u8>> {
    let error = json!({ "code": -32601, "message": "Method not found" });
    Some(line(&json!({ "jsonrpc": "2.0", "id": id_value(id)?, "error": error })))
}

/// An id as JSON; `None` if it is none that a reply could carry.
fn id_value(id: &Id) -> Option<Value> {
    match id {
        Id::Integer(n) => Some(json!(n)),
        Id::Text(text) => Some(json!(text)),
        Id::Null | Id::Other(_) => None,
    }
}

fn request(id: &Value, method: &str, params: Value) -> Vec<u8> {
    let params_are_needed = params.as_object().is_none_or(|p| !p.is_empty());
    let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    if params_are_needed {
        message["params"] = params;
    }
    line(&message)
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn client_info() -> Value {
    json!({ "name": "stdiowatch", "version": env!("CARGO_PKG_VERSION") })
}

/// What every modern request carries of itself.
fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}
