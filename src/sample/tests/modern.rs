//! The modern era, alone and beside the legacy one.

use super::*;

#[test]
fn discovery_says_what_the_schema_requires() {
    for kind in [Kind::SoundModern, Kind::SoundDual] {
        let result = result(&server(kind), "server/discover", modern());
        assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
        assert!(result["capabilities"]["tools"].is_object());
        assert_sealed(&result);
    }
}

#[test]
fn modern_results_carry_their_envelope() {
    let server = server(Kind::SoundModern);
    let with_meta = |mut params: Value| {
        params["_meta"] = meta(MODERN[0]);
        params
    };
    let cacheable = LISTS
        .map(|(method, _)| (method, json!({})))
        .into_iter()
        .chain([("server/discover", json!({})), ("resources/read", json!({"uri": "sample://about"}))]);
    for (method, params) in cacheable {
        let result = result(&server, method, with_meta(params));
        assert_sealed(&result);
        assert!(result["ttlMs"].is_u64(), "{method}");
        assert!(matches!(result["cacheScope"].as_str(), Some("public" | "private")), "{method}");
    }
    for (method, params) in [
        ("tools/call", json!({"name": "add", "arguments": {"a": 2, "b": 3}})),
        ("prompts/get", json!({"name": "greet", "arguments": {"name": "Ada"}})),
    ] {
        assert_sealed(&result(&server, method, with_meta(params)));
    }
    assert_eq!(error_code(&server, "ping", modern()), -32601);
    assert_eq!(error_code(&server, "resources/read", with_meta(json!({"uri": "sample://none"}))), -32602);
}

#[test]
fn modern_refuses_a_request_without_its_metadata() {
    let server = server(Kind::SoundModern);
    for method in LISTS.map(|(method, _)| method).into_iter().chain(["server/discover", "tools/call", "ping"]) {
        assert_eq!(error_code(&server, method, json!({})), -32602, "{method}");
        assert_eq!(error_code(&server, method, json!({"_meta": {}})), -32602, "{method}");
        for member in ["protocolVersion", "clientCapabilities"] {
            let mut params = modern();
            let key = format!("io.modelcontextprotocol/{member}");
            params["_meta"].as_object_mut().unwrap().remove(&key);
            assert_eq!(error_code(&server, method, params), -32602, "{method} without {member}");
        }
    }
    let without_params = json!({"jsonrpc": "2.0", "id": 7, "method": "server/discover"});
    assert_eq!(error(&server, &without_params)["code"], -32602);
}

#[test]
fn modern_refuses_another_version_and_names_its_own() {
    let server = server(Kind::SoundModern);
    for (method, params) in [
        ("server/discover", json!({"_meta": meta("1900-01-01")})),
        ("tools/list", json!({"_meta": meta("2025-11-25")})),
        ("initialize", opening("2025-11-25")),
    ] {
        let error = error(&server, &request(method, params.clone()));
        assert_eq!(error["code"], -32022);
        assert_eq!(error["data"]["supported"], json!(MODERN));
        assert!(params.to_string().contains(error["data"]["requested"].as_str().unwrap()));
    }
}

#[test]
fn modern_never_calls_a_version_of_its_list_unsupported() {
    for params in [opening(MODERN[0]), json!({})] {
        let error = error(&server(Kind::SoundModern), &request("initialize", params));
        assert_ne!(error["code"], -32022);
        assert_eq!(error["data"]["supported"], json!(MODERN));
    }
}

#[test]
fn dual_follows_the_opening_of_the_client() {
    let server = server(Kind::SoundDual);
    assert!(result(&server, "tools/list", modern()).get("resultType").is_some());
    assert!(result(&server, "tools/list", json!({})).get("resultType").is_none());
    assert_eq!(result(&server, "ping", json!({})), json!({}));
    assert_eq!(error_code(&server, "server/discover", json!({})), -32602);
    assert_eq!(error_code(&server, "tools/list", json!({"_meta": meta("1900-01-01")})), -32022);
}
