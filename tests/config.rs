//! `stdiowatch config`, as its users run it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use common::*;

/// A directory of one test, removed with it.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("stdiowatch-config-cli-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    /// Runs `config` with these arguments in the directory.
    fn config(&self, args: &[&str]) -> Output {
        let mut all = vec!["config"];
        all.extend(args);
        Run::new().command(&all).current_dir(&self.0).env("API_KEY", "s3cret-value").output().unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn check_says_that_all_is_well_or_everything_that_is_wrong() {
    let dir = Dir::new("check");
    fs::write(dir.0.join("good.yaml"), "servers: {a: {command: sh}, b: {command: sh}}\n").unwrap();
    fs::write(dir.0.join("one.yaml"), "servers: {a: {command: sh}}\n").unwrap();
    fs::write(dir.0.join("bad.yaml"), "servers:\n  a:\n    command: x\n    intervall: 60s\n    era: old\n").unwrap();
    let well = "good.yaml: ok, 2 servers\none.yaml: ok, 1 server\n";
    assert_eq!(said(&dir.config(&["check", "good.yaml", "one.yaml"])), (Some(0), well.to_owned(), String::new()));
    let wrong = "bad.yaml:4:5: unknown key \"intervall\" in a server; did you mean `interval`?\nbad.yaml:5:10: `era` is \"old\"; write auto, modern or legacy\nnone.yaml: there is no such file\n";
    assert_eq!(said(&dir.config(&["check", "good.yaml", "bad.yaml", "none.yaml"])), (Some(2), String::new(), wrong.to_owned()));
    assert_eq!(dir.config(&["check"]).status.code(), Some(2));
}

#[test]
fn what_show_prints_is_checked_again_and_holds_no_secret() {
    let dir = Dir::new("show");
    let text = "servers:\n  \"a \\u00e9\":\n    command: sh\n    args: [\"--key=${API_KEY}\", '- b: #$$', \"\"]\n    env: {TOKEN: \"Bearer ${API_KEY}\"}\n    call: echo\n";
    fs::write(dir.0.join("f.yaml"), text).unwrap();
    let (code, shown, complaints) = said(&dir.config(&["show", "f.yaml"]));
    assert_eq!((code, complaints.as_str()), (Some(0), ""));
    assert!(!shown.contains("s3cret") && shown.contains("--key=[redacted]") && shown.contains("interval: 1m"), "{shown}");
    fs::write(dir.0.join("shown.yaml"), &shown).unwrap();
    assert_eq!(said(&dir.config(&["check", "shown.yaml"])), (Some(0), "shown.yaml: ok, 1 server\n".to_owned(), String::new()));
    let again = said(&dir.config(&["show", "shown.yaml"])).1;
    let values = |text: &str| text.lines().filter(|line| !line.contains("yaml:")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(values(&again), values(&shown));
}

#[test]
fn schema_prints_a_json_schema() {
    let (code, schema, _) = said(&Dir::new("schema").config(&["schema"]));
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert_eq!((code, &schema["required"][0]), (Some(0), &"servers".into()));
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
}

#[test]
fn what_a_configuration_needs_and_is_not_there_is_told_with_its_place() {
    let dir = Dir::new("premises");
    let path = |name: &str| dir.0.join(name).to_str().unwrap().to_owned();
    fs::write(dir.0.join("plain"), "echo\n").unwrap();
    fs::write(dir.0.join("script"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(dir.0.join("script"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(dir.0.join("broken.json"), "{\"format\": 1,\n nonsense}").unwrap();
    fs::write(dir.0.join("other.json"), "{\"format\": 1, \"servers\": {}}\n").unwrap();
    let text = format!(
        "defaults: {{env: {{PATH: /nowhere}}}}\nservers:\n  a:\n    command: no-such-server\n  b: {{command: /bin/sh, cwd: gone}}\n  c: {{command: ./plain, cwd: .}}\n  d: {{command: {}}}\n  e: {{command: /bin/sh, schema: {{lock: none.json}}}}\n  f: {{command: /bin/sh, user: no-such-user}}\n",
        path("script")
    );
    fs::write(dir.0.join("f.yaml"), &text).unwrap();
    let warnings = [
        "4:14: warning: the command \"no-such-server\" is not on the PATH that the server would get here: /nowhere".to_owned(),
        format!("5:30: warning: there is no directory {} here", path("gone")),
        format!("6:16: warning: {}/./plain has no execute permission", dir.0.display()),
        format!("7:16: warning: the interpreter \"/no/such/interpreter\" of {} is missing here", path("script")),
        format!(
            "8:40: warning: there is no lock file {}, without which `serve` and `check` refuse to start; `stdiowatch lock --config FILE NAME` writes it",
            path("none.json")
        ),
        "9:31: warning: `user`: there is no user \"no-such-user\" in /etc/passwd (on this host)".to_owned(),
    ];
    let warned = warnings.iter().map(|line| format!("f.yaml:{line}\n")).collect::<String>();
    assert_eq!(said(&dir.config(&["check", "f.yaml"])), (Some(0), "f.yaml: ok, 6 servers\n".to_owned(), warned.clone()), "it may be there elsewhere");
    assert_eq!(said(&dir.config(&["check", "--strict", "f.yaml"])), (Some(2), "f.yaml: 6 servers\n".to_owned(), warned));
    // What is refused wherever it is read is no warning.
    for (lock, wanted) in [
        ("broken.json", format!("{}:2:2: ", path("broken.json"))),
        ("other.json", format!("f.yaml:1:48: {} says nothing of a server \"a\", but of: nothing\n", path("other.json"))),
    ] {
        fs::write(dir.0.join("f.yaml"), format!("servers: {{a: {{command: /bin/sh, schema: {{lock: {lock}}}}}}}\n")).unwrap();
        let (status, told, complaints) = said(&dir.config(&["check", "f.yaml"]));
        assert!(status == Some(2) && told.ends_with("1 server\n") && complaints.starts_with(&wanted), "{told}{complaints}");
    }
    // Clients' files as well.
    fs::write(dir.0.join("mcp.json"), "{\"mcpServers\": {\"a\": {\"command\": \"/no/such\"}}}").unwrap();
    let (status, _, warned) = said(&dir.config(&["check", "mcp.json"]));
    assert_eq!((status, warned.as_str()), (Some(0), "mcp.json:1:34: warning: there is no file \"/no/such\" here\n"));
    // Without a server, nothing starts.
    let none = "mcp.json: warning: there is no server to watch, and `serve` and `check` refuse to start\n";
    for text in ["{\"mcpServers\": {}}", "{\"mcpServers\": {\"r\": {\"url\": \"https://a.example/mcp\"}}}"] {
        fs::write(dir.0.join("mcp.json"), text).unwrap();
        let (status, told, warned) = said(&dir.config(&["check", "mcp.json"]));
        assert!(status == Some(0) && told.starts_with("mcp.json: ok, 0 servers\n") && warned == none, "{told}{warned}");
        let (status, told, warned) = said(&dir.config(&["check", "--strict", "mcp.json"]));
        assert!(status == Some(2) && told.starts_with("mcp.json: 0 servers\n") && warned == none, "{told}{warned}");
    }
}
