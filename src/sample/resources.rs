//! The resources and the resource template.

use serde_json::{Value, json};

use super::era::Era;
use super::kind::Kind;
use super::rpc::{Params, Refusal};

const ABOUT: &str = "sample://about";
const KINDS: &str = "sample://kinds";
const GREETING: &str = "sample://greeting/";

/// The entries of `resources/list`.
pub(super) fn definitions() -> Vec<Value> {
    vec![
        json!({
            "uri": ABOUT,
            "name": "about",
            "title": "About",
            "description": "What this server is.",
            "mimeType": "text/plain",
        }),
        json!({
            "uri": KINDS,
            "name": "kinds",
            "title": "Kinds",
            "description": "The kinds of sample server, one a line.",
            "mimeType": "text/plain",
        }),
    ]
}

/// The entries of `resources/templates/list`.
pub(super) fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": format!("{GREETING}{{name}}"),
        "name": "greeting",
        "title": "Greeting",
        "description": "A greeting for the name.",
        "mimeType": "text/plain",
    })]
}

/// The result of `resources/read`.
pub(super) fn read(era: Era, params: &Params) -> Result<Value, Refusal> {
    let uri = params.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| Refusal::invalid_params("uri has to be a string"))?;
    let text = text(uri).ok_or_else(|| Refusal::new(era.resource_not_found(), "Resource not found").with_data(json!({"uri": uri})))?;
    Ok(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}))
}

fn text(uri: &str) -> Option<String> {
    match uri {
        ABOUT => Some("A sample MCP server that comes with stdiowatch.\n".to_owned()),
        KINDS => Some(kinds()),
        _ => {
            let name = uri.strip_prefix(GREETING)?;
            let is_one_segment = !name.is_empty() && !name.contains('/');
            is_one_segment.then(|| format!("Hello, {name}.\n"))
        }
    }
}

fn kinds() -> String {
    let line = |kind: &Kind| format!("{kind}: {}", kind.about());
    Kind::ALL.iter().map(line).collect::<Vec<_>>().join("\n")
}
