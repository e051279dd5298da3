use super::*;
use crate::words::Digest;

fn listing(tools: &[&str]) -> Listing {
    let items: Vec<Item> = tools.iter().map(|text| read_item(ListKind::Tools, Doc::parse(text.as_bytes()).unwrap().root()).unwrap()).collect();
    let conditions = Conditions {
        era: Era::Legacy,
        protocol_version: Some("2025-11-25".to_owned()),
        server: Some(ServerIdentity { name: "sample \"x\"".to_owned(), version: "1.2.3".to_owned() }),
        capabilities: vec!["tools".to_owned()],
        profile: "none".to_owned(),
        environment: Environment { mode: "sdk".to_owned(), names: vec!["API_KEY".to_owned()], fingerprint: "0a1b2".to_owned() },
    };
    Listing::from_items(conditions, vec![ListKind::Tools, ListKind::Prompts], items.iter().map(|item| (ListKind::Tools, item)))
}

fn lock(servers: &[(&str, Listing)]) -> LockFile {
    LockFile { servers: servers.iter().map(|(name, listing)| (ServerName::new(name).unwrap(), listing.clone())).collect() }
}

const ECHO: &str = r#"{"name":"echo","description":"Says it back.","inputSchema":{"required":["message"],"type":"object","properties":{"message":{"type":"string"}}}}"#;
const ADD: &str = r#"{"name":"add\u0001\"","inputSchema":{"type":"object","maximum":1e300}}"#;

#[test]
fn the_file_reads_like_this() {
    let text = lock(&[("files", listing(&[ECHO]))]).to_text();
    let digest = listing(&[ECHO]).digest;
    assert_eq!(
        text,
        format!(
            r#"{{
  "format": 1,
  "servers": {{
    "files": {{
      "sha256": "{digest}",
      "era": "legacy",
      "protocol_version": "2025-11-25",
      "server_info": {{
        "name": "sample \"x\"",
        "version": "1.2.3"
      }},
      "capabilities": [
        "tools"
      ],
      "profile": "none",
      "environment": {{
        "mode": "sdk",
        "names": [
          "API_KEY"
        ],
        "fingerprint": "0a1b2"
      }},
      "tools": {{
        "echo": {{
          "description": "Says it back.",
          "inputSchema": {{
            "properties": {{
              "message": {{
                "type": "string"
              }}
            }},
            "required": [
              "message"
            ],
            "type": "object"
          }},
          "name": "echo"
        }}
      }},
      "prompts": {{}}
    }}
  }}
}}
"#
        )
    );
}

#[test]
fn what_was_written_is_read_again() {
    let lock = lock(&[("a", listing(&[ECHO, ADD])), ("b b", listing(&[]))]);
    let mut read = LockFile::parse(lock.to_text().as_bytes()).unwrap();
    assert_eq!(read.to_text(), lock.to_text());
    // The order of the items is not kept: they are sorted.
    for (name, listing) in &mut read.servers {
        listing.order.clone_from(&lock.servers[name].order);
    }
    assert_eq!(read, lock);
}

#[test]
fn nothing_in_the_file_is_invisible_or_out_of_its_place() {
    let hidden = r#"{"name":"h","description":"safe\u202e\u200b\u0085\ud83d\ude00\udb40\udc41","inputSchema":{}}"#;
    let lock = lock(&[("a", listing(&[hidden]))]);
    let text = lock.to_text();
    assert!(text.contains(r#""safe\u202e\u200b\u0085😀\udb40\udc41""#), "{text}");
    assert_eq!(LockFile::parse(text.as_bytes()).unwrap().servers[&ServerName::new("a").unwrap()].digest, listing(&[hidden]).digest);
}

#[test]
fn the_order_of_the_items_makes_no_difference() {
    assert_eq!(lock(&[("a", listing(&[ECHO, ADD]))]).to_text(), lock(&[("a", listing(&[ADD, ECHO]))]).to_text());
}

#[test]
fn one_changed_thing_is_one_line_and_the_digest() {
    let before = lock(&[("a", listing(&[ECHO, ADD]))]).to_text();
    let after = lock(&[("a", listing(&[&ECHO.replace("Says it back.", "Sends it home."), ADD]))]).to_text();
    let differing: Vec<_> = before.lines().zip(after.lines()).filter(|(a, b)| a != b).map(|(_, b)| b.trim()).collect();
    assert_eq!(before.lines().count(), after.lines().count());
    assert!(
        differing.len() == 2 && differing[0].starts_with("\"sha256\"") && differing[1] == "\"description\": \"Sends it home.\",",
        "{differing:?}"
    );
}

#[test]
fn depth_and_size_are_no_trouble() {
    let deep = format!(r#"{{"name":"deep","inputSchema":{}1{}}}"#, r#"{"a":"#.repeat(600), "}".repeat(600));
    let many: Vec<String> = (0..1000).map(|n| format!(r#"{{"name":"t{n}","inputSchema":{{"type":"object"}}}}"#)).collect();
    let mut all: Vec<&str> = many.iter().map(String::as_str).collect();
    all.push(&deep);
    let lock = lock(&[("a", listing(&all))]);
    assert_eq!(LockFile::parse(lock.to_text().as_bytes()).unwrap().servers[&ServerName::new("a").unwrap()].digest, listing(&all).digest);
}

#[test]
fn a_file_that_is_none_is_refused_with_its_place() {
    let good = lock(&[("a", listing(&[ECHO]))]).to_text();
    let sha = listing(&[ECHO]).digest.to_string();
    let other = Digest::of(b"x").to_string();
    for (text, told) in [
        (String::new(), "1:1: the file ends too early"),
        (good[..200].to_owned(), "the file ends too early"),
        ("[]".to_owned(), "1:1: this is no lock file"),
        ("{}".to_owned(), "1:1: this is no lock file"),
        (good.replace("\"format\": 1", "\"format\": 2"), "1:1: its format is 2"),
        (good.replace("\"servers\"", "\"server\""), "1:1: \"servers\" is missing"),
        (good.replace("\"files\"", "\"files/\"").replace("\"a\": {", "\"a/\": {"), "4:5: a server name may not contain '/'"),
        (good.replace("\"era\": \"legacy\"", "\"era\": \"old\""), "4:10: an era is legacy or modern, not \"old\""),
        (good.replace("Says it back.", "Changed by hand."), "5:17: the items have the digest"),
        (good.replace(&sha, &other), "5:17: the items have the digest"),
        (format!("<<<<<<< HEAD\n{good}"), "1:1: this is no JSON; after a merge conflict"),
        (good.replace("\"profile\": \"none\"", "\"profile\": 1"), "4:10: \"profile\" is missing, or no string"),
        (good.replace("\"tools\": {", "\"tools\": [").replace("      },\n      \"prompts\"", "      ],\n      \"prompts\""), "no JSON"),
    ] {
        let error = LockFile::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(told), "{error}\nand not: {told}");
    }
}

#[test]
fn garbage_is_refused_and_never_a_panic() {
    let good = lock(&[("a", listing(&[ECHO]))]).to_text().into_bytes();
    for at in 0..good.len() {
        for byte in [0, b'"', b'{', b'}', b'9', 0xff] {
            let mut bad = good.clone();
            bad[at] = byte;
            // Either refused, or the same schemas: never others.
            if let Ok(read) = LockFile::parse(&bad) {
                assert!(read.servers.values().all(|l| l.digest == listing(&[ECHO]).digest), "byte {at}");
            }
            let _ = LockFile::parse(&good[..at]);
        }
    }
}
