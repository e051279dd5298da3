//! The answers, validated against the rules of the protocol.

use serde_json::{Value, json};

use super::behaviour::Behaviour;
use super::era::MODERN;
use super::kind::Kind;
use super::server::{Answer, Server};

mod legacy;
mod messages;
mod modern;

const LISTS: [(&str, &str); 4] =
    [("tools/list", "tools"), ("prompts/list", "prompts"), ("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")];

fn server(kind: Kind) -> Server {
    Server::new(Behaviour::of(kind), "1".to_owned())
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

/// The reply, checked for what every reply has to be.
fn reply(server: &Server, request: &Value) -> Value {
    let Answer::Reply(reply) = server.answer(request) else { panic!("no reply to {request}") };
    assert_eq!(reply["jsonrpc"], "2.0");
    assert_ne!(reply.get("result").is_some(), reply.get("error").is_some(), "{reply}");
    reply
}

fn result(server: &Server, method: &str, params: Value) -> Value {
    let reply = reply(server, &request(method, params));
    assert_eq!(reply["id"], 7);
    assert!(reply["result"].is_object(), "{reply}");
    reply["result"].clone()
}

fn error(server: &Server, request: &Value) -> Value {
    let reply = reply(server, request);
    assert!(reply["error"]["code"].is_i64() && reply["error"]["message"].is_string(), "{reply}");
    reply["error"].clone()
}

fn error_code(server: &Server, method: &str, params: Value) -> i64 {
    error(server, &request(method, params))["code"].as_i64().unwrap()
}

fn opening(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}

fn modern() -> Value {
    json!({"_meta": meta(MODERN[0])})
}

fn assert_sealed(result: &Value) {
    assert_eq!(result["resultType"], "complete", "{result}");
    assert!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"].is_string(), "{result}");
}
