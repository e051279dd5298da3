use super::*;
use crate::protocol::json::Doc;
use crate::protocol::{Era, LATEST_MODERN, LEGACY_VERSIONS, MODERN_VERSIONS};
use crate::words::Redactor;

fn list(kind: ListKind, era: Era, text: &str) -> ListPage {
    read_list(kind, era, Doc::parse(text.as_bytes()).unwrap().root(), &Redactor::default(), usize::MAX)
}

fn flaws(page: &[Flaw]) -> Vec<String> {
    page.iter().map(|f| format!("{}: {}, not {}", f.path, f.wanted, f.got)).collect()
}

fn tool_flaws(schema: &str) -> Vec<ToolFlaw> {
    let page = list(ListKind::Tools, Era::Legacy, &format!(r#"{{"tools":[{{"name":"t","inputSchema":{schema}}}]}}"#));
    page.items[0].flaws.clone()
}

#[test]
fn a_page_is_read_as_far_as_there_is_room() {
    let text = r#"{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}},{"name":7}],"nextCursor":"n"}"#;
    let doc = Doc::parse(text.as_bytes()).unwrap();
    let read = |room| read_list(ListKind::Tools, Era::Legacy, doc.root(), &Redactor::default(), room);
    let whole = read(usize::MAX);
    assert!(!whole.cut && whole.items.len() == 3 && whole.weight() > 3 * size_of::<Item>());
    let half = read(whole.items[0].weight() + 10);
    assert!(half.cut && half.items.len() == 1 && half.next.as_deref() == Some("n"));
    assert_eq!(half.flaws, whole.flaws, "what is wrong is told all the same");
}

#[test]
fn what_we_send_is_one_line_each_with_its_own_id() {
    let mut asker = Asker::default();
    let (id, line) = asker.discover(LATEST_MODERN);
    assert_eq!(id.to_string(), "\"1\"");
    let text = String::from_utf8(line).unwrap();
    assert!(text.ends_with("}\n") && text.matches('\n').count() == 1);
    for member in ["protocolVersion\":\"2026-07-28", "clientInfo", "clientCapabilities\":{}"] {
        assert!(text.contains(&format!("io.modelcontextprotocol/{member}")), "{text}");
    }
    let (id, line) = asker.initialize();
    assert_eq!(id.to_string(), "2");
    assert!(String::from_utf8(line).unwrap().contains("\"protocolVersion\":\"2025-11-25\""));
    let (id, line) = asker.list(ListKind::Tools, Era::Legacy, "2025-11-25", None);
    assert_eq!(id.to_string(), "3");
    assert_eq!(String::from_utf8(line).unwrap(), "{\"id\":3,\"jsonrpc\":\"2.0\",\"method\":\"tools/list\"}\n");
    let (_, line) = asker.list(ListKind::Tools, Era::Legacy, "2025-11-25", Some(""));
    assert!(String::from_utf8(line).unwrap().contains("\"cursor\":\"\""), "an empty cursor is one");
}

#[test]
fn a_discover_result_is_told_from_any_other() {
    let read = |text: &str| read_discover(Doc::parse(text.as_bytes()).unwrap().root(), &Redactor::default());
    assert_eq!(read("{}"), None);
    assert_eq!(read(r#"{"supportedVersions":"2026-07-28"}"#), None);
    let full = read(
        r#"{"resultType":"complete","ttlMs":0,"cacheScope":"public","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"x":null},
            "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":""}}}"#,
    )
    .unwrap();
    assert_eq!((full.versions, full.missing.len(), full.flaws.len()), (vec!["2026-07-28".to_owned()], 0, 0));
    assert_eq!(full.greeting.capabilities, ["tools"]);
    assert_eq!(full.greeting.server.unwrap().name, "n");
    let bare = read(r#"{"supportedVersions":["2026-07-28",7],"capabilities":{"tools":{}},"ttlMs":-1}"#).unwrap();
    assert_eq!(bare.missing, ["resultType", "cacheScope"]);
    assert_eq!(flaws(&bare.flaws), ["supportedVersions[1]: a string, not a number", "ttlMs: an integer of 0 or more, not a number"]);
}

#[test]
fn an_initialize_result_is_read_as_far_as_it_goes() {
    let read = |text: &str| read_initialize(Doc::parse(text.as_bytes()).unwrap().root(), &Redactor::default());
    let whole = read(r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s\u001b[31m","version":"1"}}"#);
    assert!(whole.flaws.is_empty() && whole.greeting.offers(ListKind::Tools) && !whole.greeting.offers(ListKind::Prompts));
    assert_eq!(whole.greeting.server.unwrap().name, "s\\x1b[31m");
    let half = read(r#"{"protocolVersion":1,"serverInfo":{"name":"s"}}"#);
    assert_eq!(
        flaws(&half.flaws),
        ["protocolVersion: a string, not a number", "capabilities: an object, not nothing", "serverInfo.version: a string, not nothing"]
    );
    assert_eq!(flaws(&read("[]").flaws), ["result: an object, not an array"]);
}

#[test]
fn lists_are_read_and_their_items_checked() {
    let page = list(ListKind::Tools, Era::Legacy, r#"{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"inputSchema":[]},7],"nextCursor":""}"#);
    assert_eq!((page.items.len(), page.next.as_deref()), (2, Some("")));
    assert_eq!(
        flaws(&page.flaws),
        ["tools[1].name: a string, not nothing", "tools[1].inputSchema: an object, not an array", "tools[2]: an object, not a number"]
    );
    assert_eq!(list(ListKind::Tools, Era::Legacy, r#"{"tools":[],"nextCursor":null}"#).next, None);
    let modern = list(ListKind::Resources, Era::Modern, r#"{"resources":[{"uri":"x:y","name":"n"}],"ttlMs":5}"#);
    assert_eq!((modern.items[0].name.as_str(), modern.missing), ("x:y", vec!["resultType", "cacheScope"]));
}

/// Who minds the one flaw that a resource has with these members; `None` where it has none.
fn minded(members: &str) -> Option<RefusedBy> {
    let page = list(ListKind::Resources, Era::Legacy, &format!(r#"{{"resources":[{{"name":"r","uri":"file:///r",{members}}}]}}"#));
    assert!(page.flaws.len() < 2, "{:?}", page.flaws);
    page.flaws.first().map(|flaw| flaw.by)
}

#[test]
fn whose_clients_refuse_a_member_is_told() {
    use RefusedBy::{All, Python, Several, TypeScript};
    for (members, by) in [
        (r#""size":12"#, None),
        (r#""size":12.0"#, None),
        (r#""size":1.5"#, Some(Python)),
        (r#""size":"12""#, Some(TypeScript)),
        (r#""size":null"#, Some(TypeScript)),
        (r#""size":true"#, Some(TypeScript)),
        (r#""size":"much""#, Some(All)),
        (r#""annotations":null"#, Some(TypeScript)),
        (r#""annotations":[]"#, Some(All)),
        (r#""annotations":{"priority":1}"#, None),
        (r#""annotations":{"priority":"0.5"}"#, Some(TypeScript)),
        (r#""annotations":{"priority":1.5}"#, Some(All)),
        (r#""annotations":{"audience":null}"#, Some(TypeScript)),
        (r#""annotations":{"audience":[null]}"#, Some(All)),
        (r#""annotations":{"lastModified":"2025-01-12T15:00:58Z"}"#, None),
        (r#""annotations":{"lastModified":"2025-01-12T15:00:58.123-05:30"}"#, None),
        (r#""annotations":{"lastModified":"2025-01-12T15:00Z"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2025-01-12T15:00:58"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2025-01-12T15:00:58.Z"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2025-01-12 15:00:58Z"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2025-01-12T15:00:58+0100"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2024-02-29T00:00:00Z"}"#, None),
        (r#""annotations":{"lastModified":"2000-02-29T00:00:00Z"}"#, None),
        (r#""annotations":{"lastModified":"0000-01-01T23:59:59+23:59"}"#, None),
        (r#""annotations":{"lastModified":"2025-02-29T00:00:00Z"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"1900-02-29T00:00:00Z"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2025-04-31T00:00:00Z"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2025-13-01T00:00:00Z"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2025-01-00T00:00:00Z"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2025-01-01T24:00:00Z"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2025-01-01T23:59:60Z"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2025-01-01T23:59:59+24:00"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2025-01-01T23:59:59-00:60"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"2025-01-01t23:59:59Z"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":"ä"}"#, Some(TypeScript)),
        (r#""annotations":{"lastModified":5}"#, Some(Several)),
        (r#""icons":[{"src":"a","mimeType":null}]"#, Some(TypeScript)),
        (r#""icons":[{"src":null}]"#, Some(All)),
        (r#""other":5"#, None),
    ] {
        assert_eq!(minded(members), by, "{members}");
    }
}

#[test]
fn what_a_server_calls_things_is_told_bounded_and_escaped() {
    let text = format!(
        r#"{{"protocolVersion":"2025-11-25","serverInfo":{{"name":"s","version":"1"}},"capabilities":{{"experimental":{{"\u001b{}":5}}}}}}"#,
        "x".repeat(999)
    );
    let read = read_initialize(Doc::parse(text.as_bytes()).unwrap().root(), &Redactor::default());
    let path = &read.flaws[0].path;
    assert!(path.starts_with(r"capabilities.experimental.\x1bxxx") && path.len() < 120, "{path}");
}

#[test]
fn few_flaws_of_many_are_told_and_the_grave_ones_are_among_them() {
    let odd = r#"{"name":"a","inputSchema":{"type":"object"},"title":null},"#.repeat(3000);
    let page = list(ListKind::Tools, Era::Legacy, &format!(r#"{{"tools":[{odd}{{"name":"b"}}]}}"#));
    assert!(page.flaws.len() < 2000);
    assert_eq!(page.flaws.last().map(|flaw| (flaw.by, flaw.path.as_str())), Some((RefusedBy::All, "tools[3000].inputSchema")));
}

/// What we go by is never masked, whatever is configured.
#[test]
fn the_protocols_own_words_are_nobodys_secret() {
    let kinds = [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates];
    let members = kinds.iter().flat_map(|kind| {
        let of = |era| super::members::item_members(*kind, era).iter().map(|member| member.key);
        let page = super::members::list_members(*kind).iter().map(|member| member.key);
        page.chain(of(Era::Legacy)).chain(of(Era::Modern)).chain([kind.method(), kind.key(), kind.identity()])
    });
    let results = super::members::INITIALIZED.iter().chain(super::members::DISCOVERED).map(|member| member.key);
    let versions = LEGACY_VERSIONS.into_iter().chain(MODERN_VERSIONS);
    for word in members.chain(results).chain(versions).filter(|word| word.len() >= 4) {
        assert_eq!(Redactor::new([word.as_bytes()]).word(word, 100), word);
    }
}

#[test]
fn a_digest_is_of_the_item_not_of_its_spelling() {
    let digest = |text: &str| list(ListKind::Tools, Era::Legacy, &format!(r#"{{"tools":[{text}]}}"#)).items[0].digest;
    let one = digest(r#"{"name":"a","description":"é","inputSchema":{"type":"object","maximum":1.0}}"#);
    assert_eq!(one, digest(r#"{ "inputSchema": {"maximum":1, "type":"object"}, "description":"\u00e9", "name":"a", "_meta":{"x":1}, "icons":[] }"#));
    assert_ne!(one, digest(r#"{"name":"a","description":"e","inputSchema":{"type":"object","maximum":1}}"#));
}

#[test]
fn the_set_digest_ignores_order_and_is_what_the_documentation_says() {
    let page = list(
        ListKind::Tools,
        Era::Legacy,
        r#"{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]}"#,
    );
    let forward = set_digest(page.items.iter().map(|i| (ListKind::Tools, i)));
    assert_eq!(forward, set_digest(page.items.iter().rev().map(|i| (ListKind::Tools, i))));
    assert_ne!(forward, set_digest(page.items.iter().map(|i| (ListKind::Prompts, i))));
    // printf 'tools %s\n' for each item's sha256, sorted, through sha256sum: computed outside of this program.
    assert_eq!(forward.to_string(), "4599212e88f57b5632c8f874de367b4067b2c008a0c53219f384757f5fa22d1c");
}

#[test]
fn schemas_are_checked_as_far_as_it_goes() {
    assert!(tool_flaws(r##"{"type":"object","$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N"}}}},"properties":{"n":{"$ref":"#/$defs/N"}}}"##).is_empty());
    assert!(
        tool_flaws(r##"{"type":"object","properties":{"a":{"$ref":"https://example.com/x"},"b":{"$ref":"#"},"$ref":{"type":"string"}}}"##).is_empty()
    );
    assert!(tool_flaws(r##"{"type":"object","properties":{"a":{"$anchor":"x"},"b":{"$ref":"#x"},"c":{"enum":[{"$ref":"#/no"}]}}}"##).is_empty());
    assert_eq!(
        tool_flaws(r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/Gone"}}}"##),
        [ToolFlaw::DeadRef { reference: "#/$defs/Gone".into() }]
    );
    assert_eq!(tool_flaws("{}"), [ToolFlaw::Invalid { pointer: "/inputSchema/type".into(), wanted: "\"object\"" }]);
    assert_eq!(
        tool_flaws(r#"{"type":"object","properties":{"a/b":{"type":"text"}},"required":"a"}"#),
        [
            ToolFlaw::Invalid { pointer: "/inputSchema/properties/a~1b/type".into(), wanted: "a JSON Schema type, or an array of them" },
            ToolFlaw::Invalid { pointer: "/inputSchema/required".into(), wanted: "an array of strings" },
        ]
    );
    for keyword in [
        "type",
        "enum",
        "$ref",
        "then",
        "else",
        "if",
        "$id",
        "not",
        "items",
        "title",
        "$defs",
        "anyOf",
        "oneOf",
        "allOf",
        "format",
        "minimum",
        "maximum",
        "pattern",
        "$schema",
        "$anchor",
        "required",
        "minItems",
        "maxItems",
        "examples",
        "contains",
        "minLength",
        "maxLength",
        "properties",
        "multipleOf",
        "description",
        "definitions",
        "prefixItems",
        "minProperties",
        "maxProperties",
        "propertyNames",
        "additionalItems",
        "dependentSchemas",
        "unevaluatedItems",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
    ] {
        let wrong = tool_flaws(&format!(r#"{{"type":"object","not":{{"{keyword}":null}}}}"#));
        assert!(
            matches!(&wrong[..], [ToolFlaw::Invalid { pointer, .. }] if *pointer == format!("/inputSchema/not/{keyword}")),
            "{keyword}: {wrong:?}"
        );
    }
    for other in ["default", "const", "$comment", "x-anything", "readOnly", "uniqueItems", "id"] {
        assert!(tool_flaws(&format!(r#"{{"type":"object","{other}":null}}"#)).is_empty(), "{other}");
    }
    let deep = format!("{}{}{}", r#"{"type":"object","not":"#.repeat(200), r#"{"type":"object"}"#, "}".repeat(200));
    assert_eq!(tool_flaws(&deep), [ToolFlaw::TooDeep]);
}
