//! The legacy opening, the lists and the calls.

use super::*;
use crate::sample::era::LEGACY;

#[test]
fn a_known_legacy_version_is_agreed_to_and_any_other_gets_the_latest() {
    for kind in [Kind::Sound, Kind::SoundDual] {
        let server = server(kind);
        for version in LEGACY {
            assert_eq!(result(&server, "initialize", opening(version))["protocolVersion"], version);
        }
        for version in ["1900-01-01", MODERN[0], ""] {
            let result = result(&server, "initialize", opening(version));
            assert_eq!(result["protocolVersion"], "2025-11-25");
            assert!(result["serverInfo"]["name"].is_string() && result["serverInfo"]["version"].is_string());
            assert!(result["instructions"].is_string());
            assert!(result.get("resultType").is_none());
        }
    }
}

#[test]
fn initialize_needs_what_its_schema_requires() {
    for member in ["protocolVersion", "capabilities", "clientInfo"] {
        let mut params = opening("2025-11-25");
        params.as_object_mut().unwrap().remove(member);
        assert_eq!(error_code(&server(Kind::Sound), "initialize", params), -32602, "{member}");
    }
}

#[test]
fn the_legacy_server_does_not_know_the_modern_opening() {
    let server = server(Kind::Sound);
    assert_eq!(error_code(&server, "server/discover", modern()), -32601);
    assert_eq!(result(&server, "ping", json!({})), json!({}));
}

#[test]
fn tools_are_well_formed_and_named_once() {
    for kind in [Kind::Sound, Kind::Drift] {
        let result = result(&server(kind), "tools/list", json!({}));
        let tools = result["tools"].as_array().unwrap();
        let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["add", "echo", "unix_time"]);
        for tool in tools {
            assert_eq!(tool["inputSchema"]["type"], "object");
            assert!(tool["annotations"]["readOnlyHint"].is_boolean());
        }
        assert!(result.get("nextCursor").is_none());
    }
}

#[test]
fn the_lists_have_the_promised_lengths() {
    for (kind, params) in [(Kind::Sound, json!({})), (Kind::SoundModern, modern()), (Kind::SoundDual, modern())] {
        for ((method, key), length) in LISTS.into_iter().zip([3, 2, 2, 1]) {
            let result = result(&server(kind), method, params.clone());
            assert_eq!(result[key].as_array().unwrap().len(), length, "{method}");
        }
    }
}

#[test]
fn pages_cover_all_tools_exactly_once() {
    let server = server(Kind::Paged);
    let mut params = json!({});
    let mut names = Vec::new();
    let mut sizes = Vec::new();
    loop {
        let result = result(&server, "tools/list", params);
        let tools = result["tools"].as_array().unwrap();
        sizes.push(tools.len());
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        match result.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor.as_str().unwrap()}),
            None => break,
        }
    }
    assert_eq!(sizes, [2, 2, 1]);
    assert_eq!(names, ["echo", "add", "unix_time", "uppercase", "length"]);
    for cursor in [json!("from-1"), json!("from-0"), json!("from-6"), json!(""), json!(2), json!(null)] {
        assert_eq!(error_code(&server, "tools/list", json!({"cursor": cursor})), -32602);
    }
}

#[test]
fn an_unpaged_list_knows_no_cursor() {
    for (method, _) in LISTS {
        assert_eq!(error_code(&server(Kind::Sound), method, json!({"cursor": "from-2"})), -32602);
    }
}

#[test]
fn calls_and_reads_work_and_refuse_what_is_unknown() {
    let server = server(Kind::Sound);
    let echo = result(&server, "tools/call", json!({"name": "echo", "arguments": {"message": "hi"}}));
    assert_eq!(echo, json!({"content": [{"type": "text", "text": "hi"}], "isError": false}));
    assert_eq!(error_code(&server, "tools/call", json!({"name": "none"})), -32602);
    assert_eq!(error_code(&server, "tools/call", json!({"name": "echo", "arguments": []})), -32602);

    let greet = result(&server, "prompts/get", json!({"name": "greet", "arguments": {"name": "Ada"}}));
    assert_eq!(greet["messages"][0]["content"]["text"], "Greet Ada in one sentence.");
    result(&server, "prompts/get", json!({"name": "summarise", "arguments": {"text": "x"}}));
    for params in [json!({"name": "greet"}), json!({"name": "none"}), json!({})] {
        assert_eq!(error_code(&server, "prompts/get", params), -32602);
    }

    for uri in ["sample://about", "sample://kinds", "sample://greeting/Ada"] {
        let result = result(&server, "resources/read", json!({"uri": uri}));
        assert_eq!(result["contents"][0]["uri"], uri);
    }
    assert_eq!(error_code(&server, "resources/read", json!({"uri": "sample://greeting/"})), -32002);
    assert_eq!(error_code(&server, "resources/subscribe", json!({"uri": "sample://about"})), -32601);
}

#[test]
fn drift_differs_between_launches_only() {
    let listed = |launch: &str| {
        let server = Server::new(Behaviour::of(Kind::Drift), launch.to_owned());
        let first = result(&server, "tools/list", json!({}));
        assert_eq!(first, result(&server, "tools/list", json!({})));
        first
    };
    assert_ne!(listed("a"), listed("b"));
}
