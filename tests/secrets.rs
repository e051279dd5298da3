//! Nothing that is told holds a secret: a server that says its own wherever it can, and a look into every output.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use common::*;

/// Of a variable, of a file, and of an argument. Each has something in it that encoders write in another way.
const SECRETS: [&str; 3] = ["Hunter2/Env+é\"x", "Hunter3/File+é\"y", "Hunter4/Arg=z?q"];

/// How a server may write a secret.
fn written(secret: &str) -> [String; 5] {
    let json = serde_json::to_string(secret).unwrap();
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let url: String = secret.bytes().map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") }).collect();
    [json[1..json.len() - 1].to_owned(), BASE64_STANDARD.encode(secret), BASE64_STANDARD.encode(format!("user:{secret}")), hex, url]
}

/// What must not be anywhere: pieces, since half a secret is one too.
fn telltales() -> Vec<String> {
    let mut all: Vec<String> = ["Hunter2", "Hunter3", "Hunter4", "Env+", "File+", "Arg="].map(str::to_owned).into();
    for secret in SECRETS {
        let [_, base64, basic, hex, url] = written(secret);
        // The ends of what stands in base64 with something else are not the secret's.
        all.extend([base64[2..12].to_owned(), basic[8..18].to_owned(), hex[2..12].to_owned(), url[2..].to_owned()]);
    }
    all
}

#[track_caller]
fn holds_none(what: &str, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    for telltale in telltales() {
        assert!(!text.contains(&telltale), "{what} holds {telltale}:\n{text}");
    }
}

/// A server that says everything that it knows, wherever it can.
fn blab(dir: &Scratch) -> String {
    let all: Vec<String> = SECRETS.iter().flat_map(|secret| written(secret)).collect();
    let every = all.join(" ");
    let tool = format!(
        r#"{{"name":"t {every}","description":"{every}","inputSchema":{{"type":"object","properties":{{"{every}":{{"$ref":"{}/{every}","default":"{every}"}}}}}}}}"#,
        "#"
    );
    let lines = [
        "era legacy".to_owned(),
        format!("print noise {every}"),
        format!("print {{\"{every}\": 1}}"),
        "stderr $repeat(3000,log )".to_owned(),
        format!("stderr {every}"),
        format!(
            "before tools/list: print {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"info\",\"data\":\"{every}\"}}}}"
        ),
        format!("before tools/list: print {{\"jsonrpc\":\"2.0\",\"id\":\"{every}\",\"method\":\"x {every}\"}}"),
        format!(
            "on initialize: result {{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{{\"tools\":{{}},\"{every}\":{{}}}},\"serverInfo\":{{\"name\":\"{every}\",\"version\":\"{every}\"}},\"instructions\":\"{every}\"}}"
        ),
        format!("on tools/list: result {{\"tools\":[{{\"name\":\"t\",\"inputSchema\":{{\"type\":\"object\"}}}},{tool},{tool}],\"x\":\"{every}\"}}"),
        format!("on tools/call: result {{\"content\":[{{\"type\":\"text\",\"text\":\"{every}\"}}],\"isError\":true}}"),
        format!("on eof: stderr {every}"),
        "on eof: exit 3".to_owned(),
    ];
    dir.write("blab.mcp", &lines.join("\n"))
}

/// A server whose tools are sound but for what they say, so that they can be accepted.
fn lister(dir: &Scratch) -> String {
    let [json, base64, ..] = written(SECRETS[0]);
    dir.write(
        "lister.mcp",
        &format!("era legacy\ntools [{{\"name\":\"t\",\"description\":\"{json} {base64}\",\"inputSchema\":{{\"type\":\"object\"}}}}]\non tools/call: result {{\"content\":[{{\"type\":\"text\",\"text\":\"no\"}}]}}\n"),
    )
}

fn configuration(dir: &Scratch, more: &str) -> String {
    let liar = Path::new(PROGRAM).with_file_name("examples").join("liar");
    assert!(liar.exists(), "cargo build --examples makes {}", liar.display());
    dir.write("secret", &format!("{}\n", SECRETS[1]));
    let (blab, lister) = (blab(dir), lister(dir));
    let server = |script: &str| {
        format!(
            "{{command: {}, args: [{script}, \"--token={}\"], env: {{KEY: {}}}, env_from_file: {{FILE: secret}}, interval: 1s, call: {{tool: t, expect: {{contains: {}}}}}}}",
            liar.display(),
            SECRETS[2],
            serde_json::to_string(SECRETS[0]).unwrap(),
            serde_json::to_string(SECRETS[0]).unwrap(),
        )
    };
    let gone = format!("{{command: /gone/{}, env: {{KEY: {}}}}}", "Hunter2", serde_json::to_string("Hunter2").unwrap());
    let (blab, other) = (server(&blab), server(&lister));
    let lister = other.replace("{contains: ", "{equals: {/content/0/text: ").replace("}}}", "}}}}");
    dir.write("s.yaml", &format!("{more}servers:\n  blab: {blab}\n  lister: {lister}\n  other: {other}\n  gone: {gone}\n"))
}

#[test]
fn no_format_of_check_holds_a_secret() {
    let (run, dir) = (Run::new(), Scratch::new());
    let config = configuration(&dir, "");
    let record = dir.path("record.jsonl");
    for format in ["human", "json", "junit", "github", "nagios"] {
        let summary = dir.write("summary.md", "");
        let mut command = run.command(&["check", "--config", &config, "--format", format]);
        let output = command.env("GITHUB_STEP_SUMMARY", &summary).output().unwrap();
        holds_none(&format!("stdout of {format}"), &output.stdout);
        holds_none(&format!("stderr of {format}"), &output.stderr);
        holds_none(&format!("the summary of {format}"), dir.read("summary.md").as_bytes());
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &dir.read("summary.md");
        assert!(text.contains("[redacted]"), "it says nothing that could hold one: {text}");
    }
    let verbose = run.output(&["check", "--config", &config, "-v", "blab", "--record", &record]);
    let said = String::from_utf8_lossy(&verbose.stderr).into_owned();
    assert!(said.contains("[redacted]") && said.contains("tools/list"), "{said}");
    holds_none("the transcript", &verbose.stderr);
    assert!(dir.read("record.jsonl").contains("[redacted]"));
    holds_none("the recording", dir.read("record.jsonl").as_bytes());
    let replayed = run.output(&["check", "--replay", &record, "--format", "json"]);
    holds_none("a replay", &replayed.stdout);
    // What a server lists is not written to a lock file with a secret in it.
    for name in ["blab", "lister"] {
        let lock = run.command(&["lock", "--config", &config, name]).current_dir(&dir.0).output().unwrap();
        assert_eq!(lock.status.code(), Some(1), "{lock:?}");
        holds_none("what lock says", &[lock.stdout, lock.stderr].concat());
        assert!(!dir.0.join("mcp.lock.json").exists());
    }
    for args in [&["config", "show", &config][..], &["config", "check", &config]] {
        let output = run.output(args);
        holds_none(&format!("{args:?}"), &[output.stdout, output.stderr].concat());
    }
}

#[test]
fn nothing_that_serve_says_or_keeps_holds_a_secret() {
    for private in ["", "show_private: true\n", "show_private: false\n"] {
        let (run, dir) = (Run::new(), Scratch::new());
        let config = configuration(&dir, private);
        let state = dir.path("state");
        let log = dir.path("log");
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let args = ["serve", "--listen", &listen, "--config", &config, "--state-dir", &state, "--enable-actions"];
        let mut command = run.command(&args);
        let child = command.env("RUST_LOG", "trace").stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        let mut serving = Serving { child, port };
        poll(LONG, || std::net::TcpStream::connect(("127.0.0.1", port)).ok()).expect("it listens");
        serving.metric_becomes("stdiowatch_up{server=\"blab\"}", 0.0);
        for server in ["blab", "lister"] {
            let probes = format!("stdiowatch_probes_total{{server=\"{server}\"}}");
            poll(LONG, || serving.metric(&probes).filter(|probes| *probes >= 1.0)).expect("it is probed");
        }
        let ask = |method: &str, path: &str| {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\nAccept: */*\r\n\r\n");
            let (status, head, body) = serving.exchange(&request);
            holds_none(&format!("{method} {path} with {private:?}"), format!("{head}\n{body}").as_bytes());
            (status, body)
        };
        let mut shown = String::new();
        for path in [
            "/",
            "/servers/blab",
            "/servers/lister",
            "/servers/gone",
            "/metrics",
            "/health",
            "/health/blab",
            "/health?verbose",
            "/health?verbose=true",
            "/api/v1/servers",
            "/api/v1/servers/blab",
            "/api/v1/servers/lister",
            "/api/v1/servers/other",
            "/api/v1/servers/gone",
            "/api/v1/servers/blab/history",
            "/badge/blab.svg",
            "/badge/lister.svg",
            "/probe?target=blab&debug=true",
            "/probe?target=lister&debug=true",
            "/probe?target=none",
            "/openapi.json",
        ] {
            shown.push_str(&ask("GET", path).1);
        }
        assert!(shown.contains("[redacted]"), "{private:?}");
        assert_eq!(ask("POST", "/-/accept/lister").0, 200);
        ask("POST", "/-/accept/blab");
        serving.signal("TERM");
        serving.wait();
        let said = fs::read(&log).unwrap();
        holds_none("the log", &said);
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.contains("is not kept over restarts: t holds a configured value"), "{said}");
        let mut files = 0;
        for entry in fs::read_dir(&state).unwrap().flatten() {
            files += 1;
            holds_none(&format!("{}", entry.path().display()), &fs::read(entry.path()).unwrap());
        }
        assert!(files > 1, "something is kept");
    }
}
