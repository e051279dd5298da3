//! Servers that want somebody to log in: no browser is opened, and that they wanted one is told.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::process::Command;

use serde_json::Value;

const STDIOWATCH: &str = env!("CARGO_BIN_EXE_stdiowatch");
const PAGE: &str = "https://me:pw@login.example/authorize?token=verysecret";

/// The report of a probe of this shell script.
fn check(script: &str, options: &[&str]) -> (Option<i32>, Value, String) {
    let mut check = Command::new(STDIOWATCH);
    check.args(["check", "--format", "json", "--startup-timeout", "1s", "--eof-grace", "2s"]).args(options);
    let output = check.args(["--", "sh", "-c", script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    (output.status.code(), document["servers"][0].clone(), text)
}

fn finding<'r>(report: &'r Value, code: &str) -> Option<&'r Value> {
    report["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == code)
}

#[test]
fn a_server_that_waits_for_a_login_is_unknown() {
    for mode in ["sdk", "inherit", "clean"] {
        let script = format!("\"$BROWSER\" '{PAGE}' || exit 9; while read -r line; do :; done");
        let (status, report, text) = check(&script, &["--env-mode", mode]);
        assert_eq!((status, &report["verdict"]), (Some(3), &Value::from("unknown")), "{text}");
        let found = finding(&report, "auth.browser").unwrap();
        assert_eq!(found["severity"], "unknown");
        assert_eq!(found["phase"], "handshake");
        assert!(found["evidence"].as_str().unwrap().contains("https://login.example"), "{text}");
        assert!(!text.contains("verysecret") && !text.contains("pw@"), "{text}");
        assert_eq!(finding(&report, "timeout.silent").unwrap()["severity"], "unknown");
    }
}

#[test]
fn a_server_that_goes_on_without_a_login_is_unknown_too() {
    let script = format!("xdg=$(printf \"$BROWSER\" x); $xdg --new-tab '{PAGE}' & exec '{STDIOWATCH}' sample-server sound");
    let (status, report, text) = check(&script, &[]);
    assert_eq!((status, &report["verdict"]), (Some(3), &Value::from("unknown")), "{text}");
    assert_eq!(report["lists"]["tools"], 3);
    assert!(finding(&report, "auth.browser").unwrap()["message"].as_str().unwrap().contains("https://login.example"));
}

#[test]
fn a_browser_of_its_own_stays() {
    let script = format!("[ \"$BROWSER\" = /bin/true ] || exit 9; \"$BROWSER\" '{PAGE}'; exec '{STDIOWATCH}' sample-server sound");
    let (status, report, text) = check(&script, &["--env", "BROWSER=/bin/true"]);
    assert_eq!((status, &report["verdict"]), (Some(0), &Value::from("pass")), "{text}");
}

#[test]
fn the_stub_says_nothing_and_succeeds() {
    let stub = |mark: Option<&str>| {
        let mut stub = Command::new(STDIOWATCH);
        std::os::unix::process::CommandExt::arg0(&mut stub, "/proc/7/exe");
        stub.env_remove("STDIOWATCH_TREE").envs(mark.map(|mark| ("STDIOWATCH_TREE", mark)));
        stub.arg(PAGE).output().unwrap()
    };
    for mark in [None, Some("nobody.1"), Some("")] {
        let output = stub(mark);
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
}
