//! What differs between the eras: the opening, and the envelope of requests and results.

use serde_json::{Value, json};

use super::rpc::{INVALID_PARAMS, METHOD_NOT_FOUND, Params, Refusal};

/// The legacy revisions that are spoken, the newest last.
pub(super) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LATEST_LEGACY];
const LATEST_LEGACY: &str = "2025-11-25";
/// The modern revisions that are spoken.
pub(super) const MODERN: [&str; 1] = ["2026-07-28"];

const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32022;
const RESOURCE_NOT_FOUND: i32 = -32002;

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

const INSTRUCTIONS: &str = "A sample server that comes with stdiowatch. Its tools are harmless and keep no state.";
const TTL_MS: u64 = 300_000;

/// The era whose rules one request is answered by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

impl Era {
    /// The era that a request chooses, where the server speaks both.
    pub(super) fn chosen_by(method: &str, params: &Params) -> Self {
        let names_version = || params.get("_meta").is_some_and(|meta| meta.get(PROTOCOL_VERSION).is_some());
        match method {
            "initialize" => Self::Legacy,
            "server/discover" => Self::Modern,
            _ if names_version() => Self::Modern,
            _ => Self::Legacy,
        }
    }

    /// The code for a resource that does not exist: 2026-07-28 gave up the one of its own.
    pub(super) fn resource_not_found(self) -> i32 {
        match self {
            Self::Legacy => RESOURCE_NOT_FOUND,
            Self::Modern => INVALID_PARAMS,
        }
    }
}

/// The result of `initialize`.
pub(super) fn initialize(params: &Params) -> Result<Value, Refusal> {
    let requested = requested_version(params)?;
    if !params.get("capabilities").is_some_and(Value::is_object) {
        return Err(Refusal::invalid_params("capabilities has to be an object"));
    }
    if !params.get("clientInfo").is_some_and(is_implementation) {
        return Err(Refusal::invalid_params("clientInfo has to be an object with a name and a version"));
    }
    let version = LEGACY.into_iter().find(|known| *known == requested).unwrap_or(LATEST_LEGACY);
    Ok(json!({
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    }))
}

/// How a modern-only server turns `initialize` down: any such error names the versions.
pub(super) fn refuse_initialize(params: &Params) -> Refusal {
    match requested_version(params) {
        // "Unsupported" would contradict the list of versions: it is the method that does not exist there.
        Ok(requested) if MODERN.contains(&requested) => Refusal::new(METHOD_NOT_FOUND, format!("Method not found: {requested} has no initialize"))
            .with_data(json!({"supported": MODERN, "requested": requested})),
        Ok(requested) => unsupported_version(requested),
        Err(refusal) => refusal.with_data(json!({"supported": MODERN})),
    }
}

/// The result of `server/discover`, before it is sealed.
pub(super) fn discover() -> Value {
    json!({
        "supportedVersions": MODERN,
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
    })
}

/// Whether a request carries the metadata that the modern era requires.
pub(super) fn check_meta(params: &Params) -> Result<(), Refusal> {
    let Some(meta) = params.get("_meta").and_then(Value::as_object) else {
        return Err(Refusal::invalid_params("_meta is missing"));
    };
    let Some(version) = meta.get(PROTOCOL_VERSION).and_then(Value::as_str) else {
        return Err(Refusal::invalid_params(format!("_meta has no {PROTOCOL_VERSION}")));
    };
    if !MODERN.contains(&version) {
        return Err(unsupported_version(version));
    }
    if !meta.get(CLIENT_CAPABILITIES).is_some_and(Value::is_object) {
        return Err(Refusal::invalid_params(format!("_meta has no {CLIENT_CAPABILITIES}")));
    }
    if !meta.get(CLIENT_INFO).is_none_or(is_implementation) {
        return Err(Refusal::invalid_params(format!("{CLIENT_INFO} has to have a name and a version")));
    }
    Ok(())
}

/// Adds what the modern era requires of a result of this method.
pub(super) fn seal(method: &str, mut result: Value) -> Value {
    let Some(members) = result.as_object_mut() else {
        return result;
    };
    members.insert("resultType".to_owned(), "complete".into());
    members.insert("_meta".to_owned(), json!({SERVER_INFO: server_info()}));
    if method.ends_with("/list") || matches!(method, "server/discover" | "resources/read") {
        members.insert("ttlMs".to_owned(), TTL_MS.into());
        members.insert("cacheScope".to_owned(), "public".into());
    }
    result
}

fn requested_version(params: &Params) -> Result<&str, Refusal> {
    params.get("protocolVersion").and_then(Value::as_str).ok_or_else(|| Refusal::invalid_params("protocolVersion has to be a string"))
}

fn unsupported_version(requested: &str) -> Refusal {
    Refusal::new(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version").with_data(json!({"supported": MODERN, "requested": requested}))
}

fn is_implementation(value: &Value) -> bool {
    ["name", "version"].iter().all(|member| value.get(member).is_some_and(Value::is_string))
}

fn server_info() -> Value {
    json!({
        "name": "stdiowatch-sample",
        "title": "stdiowatch sample server",
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn capabilities() -> Value {
    json!({"tools": {}, "prompts": {}, "resources": {}})
}
