//! `stdiowatch config`, as its users run it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::fs;
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
    fs::write(dir.0.join("good.yaml"), "servers: {a: {command: x}, b: {command: y}}\n").unwrap();
    fs::write(dir.0.join("one.yaml"), "servers: {a: {command: x}}\n").unwrap();
    fs::write(dir.0.join("bad.yaml"), "servers:\n  a:\n    command: x\n    intervall: 60s\n    era: old\n").unwrap();
    let well = "good.yaml: ok, 2 servers\none.yaml: ok, 1 server\n";
    assert_eq!(said(&dir.config(&["check", "good.yaml", "one.yaml"])), (Some(0), well.to_owned(), String::new()));
    let wrong = "bad.yaml:4:5: unknown key \"intervall\" in a server; did you mean `interval`?\nbad.yaml:5:10: `era` is \"old\"; write auto, modern or legacy\nnone.yaml:1:1: there is no such file\n";
    assert_eq!(said(&dir.config(&["check", "good.yaml", "bad.yaml", "none.yaml"])), (Some(2), String::new(), wrong.to_owned()));
    assert_eq!(dir.config(&["check"]).status.code(), Some(2));
}

#[test]
fn what_show_prints_is_checked_again_and_holds_no_secret() {
    let dir = Dir::new("show");
    let text = "servers:\n  \"a \\u00e9\":\n    command: x\n    args: [\"--key=${API_KEY}\", '- b: #$$', \"\"]\n    env: {TOKEN: \"Bearer ${API_KEY}\"}\n    call: echo\n";
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
