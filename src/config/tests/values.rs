//! What is written becomes what is meant; what is shown is read as the same.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::kind::{Keys, Kind};
use super::super::{Configuration, FILE, keys, ours, show};
use super::{env, read, server};
use crate::judge::{ChangeClass, Severity};
use crate::outside::process::{EnvMode, Leftovers, StdioKind};
use crate::probe::EraChoice;
use crate::protocol::Era;
use crate::running::Watched;

/// Every key, with another value than its default.
pub(super) const EVERYTHING: &str = r#"
listen: 0.0.0.0:80
state_dir: ~/state
web_config: web.yaml
show_private: true
defaults:
  interval: 5m
  env: {SHARED: one, BOTH: default}
  timeouts: {startup: 20s, request: 5s}
servers:
  "all of it":
    command: ~/bin/server
    args: [-y, 8080, 1.10, "--key=${API_KEY}", "$$HOME ${NONE:-fallback}"]
    env: {BOTH: own, PORT: 0x10, AUTH: "Bearer ${API_KEY}"}
    env_mode: inherit
    cwd: ../srv
    stdio: socketpair
    era: modern
    interval: 90s
    timeouts: {startup: 10s, cold_start: 60s, total: 2m}
    shutdown: {eof: 0s, term: 1500ms}
    objectives: {startup: 2s, list: 1s, call: 500ms, shutdown: 3s}
    thresholds: {failure: "${N}", success: 2}
    severity: {stdout.noise: warn, latency.slow: fail}
    schema: {lock: mcp.lock.json, ignore: [description, annotation], accept_after: 5}
    call:
      tool: add
      arguments: {a: 1.50, b: [true, null, 0x10], text: "$$5 \"${N}\"", "$k": é}
      expect: {contains: "5\n", equals: {/structuredContent/sum: 5, "": {a: ~}}}
      insist: true
    leftovers: report
    user: nobody:65534
    no_new_privs: false
    private_tmp: true
    cgroup: true
    limits: {line: 1MiB, output: 2097152, pages: 7, memory: 1GiB, processes: 9, open_files: 256, cpu: 10s, file_size: 8MiB}
  plain: {command: x}
"#;

#[test]
fn every_key_becomes_what_it_means() {
    let servers = read(EVERYTHING).unwrap();
    let all = &servers[0].watched;
    assert_eq!((all.name.as_str(), servers[0].at.to_string().as_str()), ("all of it", "11:3"));
    let spec = &all.spec;
    assert_eq!(spec.command, "/home/me/bin/server");
    assert_eq!(spec.args, ["-y", "8080", "1.10", "--key=s3cret-value", "$HOME fallback"]);
    let own = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
    assert_eq!(spec.env, own(&[("BOTH", "own"), ("PORT", "0x10"), ("AUTH", "Bearer s3cret-value"), ("SHARED", "one")]));
    assert_eq!((spec.env_mode, spec.stdio, spec.leftovers), (EnvMode::Inherit, StdioKind::Socketpair, Leftovers::Report));
    assert_eq!(spec.cwd, Some(PathBuf::from("/etc/stdiowatch/../srv")));
    assert_eq!((spec.resources.memory, spec.resources.processes, spec.resources.open_files), (Some(1 << 30), Some(9), Some(256)));
    assert!(spec.private_tmp && spec.cgroup);
    assert_eq!((spec.user.as_ref().map(ToString::to_string).as_deref(), spec.no_new_privs), (Some("nobody:65534"), false));
    assert!(server("user: \"7:8\"").unwrap().spec.no_new_privs && !server("").unwrap().spec.no_new_privs);
    assert_eq!((spec.resources.cpu, spec.resources.file_size), (Some(Duration::from_secs(10)), Some(8 << 20)));
    assert_eq!((all.era, all.interval), (EraChoice::Fixed(Era::Modern), Duration::from_secs(90)));
    let t = all.times;
    let seconds = [t.startup, t.discovery, t.cold_start, t.request, t.total, t.eof_grace, t.term_grace].map(|d| d.as_secs_f64());
    assert_eq!(seconds, [10.0, 5.0, 60.0, 5.0, 120.0, 0.0, 1.5]);
    assert_eq!((all.limits.line, all.limits.output, all.limits.pages), (1 << 20, 2 << 20, 7));
    assert_eq!((all.thresholds.failure, all.thresholds.success), (3, 2));
    assert_eq!((all.rules.severity["stdout.noise"], all.rules.severity["latency.slow"]), (Severity::Warn, Severity::Fail));
    assert_eq!(all.rules.objectives.len(), 4);
    assert_eq!(all.rules.allowed.iter().copied().collect::<Vec<_>>(), [ChangeClass::Annotation, ChangeClass::Description]);
    assert_eq!((all.schema.lock.as_deref(), all.schema.accept_after), (Some(Path::new("/etc/stdiowatch/mcp.lock.json")), Some(5)));
    let call = all.call.as_ref().unwrap();
    assert_eq!(call.arguments, r#"{"a":1.50,"b":[true,null,16],"text":"$5 \"3\"","$k":"é"}"#);
    assert_eq!((call.tool.as_str(), call.contains.as_deref(), call.insist), ("add", Some("5\n"), true));
    assert_eq!(call.equals, own(&[("/structuredContent/sum", "5"), ("", r#"{"a":null}"#)]));
    let plain = &servers[1].watched;
    assert_eq!(
        (plain.interval, plain.times.startup, plain.times.total),
        (Duration::from_secs(300), Duration::from_secs(20), Duration::from_secs(180))
    );
    assert_eq!(plain.spec.env, own(&[("SHARED", "one"), ("BOTH", "default")]));
}

#[test]
fn what_comes_from_our_environment_does_not_surface() {
    let all = &read(EVERYTHING).unwrap()[0].watched;
    let said = all.redactor().redact_str("s3cret-value Bearer s3cret-value one own /home/me").into_owned();
    assert_eq!(said, "[redacted] [redacted] one own /home/me");
    let shown = shown(EVERYTHING);
    assert!(!shown.contains("s3cret") && shown.contains("--key=[redacted]") && shown.contains("AUTH: \"[redacted]\""), "{shown}");
}

fn configuration(text: &str) -> Configuration {
    let ours = ours::read(text, Path::new("/etc/stdiowatch/f.yaml"), &env).unwrap_or_else(|problems| panic!("{problems:?} in\n{text}"));
    Configuration {
        listen: ours.listen.map(|(listen, _)| listen),
        state_dir: ours.state_dir.map(|(dir, _)| dir),
        web_config: ours.web_config.map(|(file, _)| file),
        show_private: ours.show_private.map(|(private, _)| private),
        servers: ours.servers,
        ..Configuration::default()
    }
}

fn shown(text: &str) -> String {
    show(&configuration(text))
}

#[test]
fn what_is_shown_is_a_configuration_that_means_the_same() {
    for text in [EVERYTHING, "servers: {a: {command: x}}", "servers: {'~': {command: '$$x ', args: ['', '- a', '#', 'a: b', 'é\\', \"\\e\\u2028\"]}}"]
    {
        let shown = shown(text);
        assert_eq!(
            show(&configuration(&shown)).lines().filter(|l| !l.contains("# /")).collect::<Vec<_>>(),
            shown.lines().filter(|l| !l.contains("# /")).collect::<Vec<_>>()
        );
        for (was, is) in configuration(text).servers.iter().zip(configuration(&shown).servers) {
            let (was, is) = (without_secrets(&was.watched), without_secrets(&is.watched));
            assert_eq!(was, is, "{shown}");
        }
    }
}

/// A server, with masks where its secrets are.
fn without_secrets(server: &Watched) -> Watched {
    let mut masked = server.clone();
    let redactor = server.redactor();
    let mut spec = (*masked.spec).clone();
    spec.env.iter_mut().for_each(|(_, value)| "[redacted]".clone_into(value));
    spec.args.iter_mut().for_each(|arg| *arg = redactor.redact_str(arg).into_owned());
    masked.spec = spec.into();
    masked.secrets.clear();
    if let Some(call) = &mut masked.call {
        // Numbers of YAML are shown as those of JSON.
        call.arguments = redactor.redact_str(&call.arguments).into_owned();
    }
    masked
}

/// The paths of all keys of a table that stand in mappings with fixed keys.
fn paths(keys: &'static Keys, above: &str, found: &mut Vec<(String, &'static str)>) {
    for key in keys.iter() {
        let path = format!("{above}{}", key.name);
        found.push((path.clone(), key.default));
        let kinds = if let Kind::Either(kinds) = &key.kind { kinds } else { std::slice::from_ref(&key.kind) };
        for kind in kinds {
            if let Kind::Keys(inner) = kind {
                paths(inner, &format!("{path}."), found);
            }
        }
    }
}

#[test]
fn every_key_is_tried_and_shown() {
    let mut all = Vec::new();
    paths(&keys::SERVER, "", &mut all);
    let shown = shown(EVERYTHING);
    for (path, _) in all {
        let key = path.rsplit('.').next().unwrap();
        let there = |text: &str| text.contains(&format!("{key}: "));
        // Where a value came from is not shown: it is in `env`.
        assert!(key == "env_from_file" || there(&shown) && (there(EVERYTHING) || EVERYTHING.contains(&format!("{key}:\n"))), "{path}\n{shown}");
    }
    assert!(FILE.iter().all(|key| EVERYTHING.contains(&format!("{}:", key.name))));
}

#[test]
fn the_defaults_that_are_documented_are_those_that_hold() {
    let usual = server("").unwrap();
    let mut all = Vec::new();
    paths(&keys::SERVER, "", &mut all);
    let mut tried = 0;
    for (path, default) in all.into_iter().filter(|(path, default)| !default.is_empty() && !path.starts_with("call.")) {
        let written = path.rsplit('.').fold(default.to_owned(), |value, key| format!("{{{key}: {value}}}"));
        let keys = written.trim_start_matches('{').strip_suffix('}').unwrap().to_owned();
        assert_eq!(server(&keys).unwrap_or_else(|error| panic!("{keys}: {error}")), usual, "{keys}");
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
    assert_eq!(server("call: {tool: t, arguments: {}, insist: false, expect: {equals: {}}}").unwrap(), server("call: t").unwrap());
}

#[test]
fn anchors_and_merge_keys_stand_for_what_they_name() {
    let text = "defaults: &d {interval: 5s, env: {A: \"1\"}}\nservers:\n  a: {command: x, <<: *d}\n  b: {<<: [{interval: 7s}, *d], command: y, env: {}}\n  c: {command: &c z, args: [*c, *c]}\n";
    let servers = read(text).unwrap();
    let of = |i: usize| (servers[i].watched.interval.as_secs(), servers[i].watched.spec.env.len());
    assert_eq!((of(0), of(1), of(2)), ((5, 1), (7, 1), (5, 1)));
    assert_eq!(servers[2].watched.spec.args, ["z", "z"]);
}

#[test]
fn aliases_do_not_multiply_without_bounds() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        text.push_str(&format!("a{level}: &a{level} [{}]\n", before.trim_end_matches(", ")));
    }
    let error = read(&text).unwrap_err();
    assert!(error.contains("too much for a configuration, with its aliases written out"), "{error}");
    let long = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(1000));
    assert!(read(&long).unwrap_err().contains("too much"));
    let deep = format!("servers: {}{}\n", "[".repeat(200), "]".repeat(200));
    assert!(read(&deep).unwrap_err().contains("more than 64 levels deep"));
}

#[test]
fn a_yaml_file_may_be_json_and_have_any_line_ends() {
    assert_eq!(read(r#"{"servers": {"a": {"command": "x", "args": ["\"q\"", "a\/b"]}}}"#).unwrap()[0].watched.spec.args, ["\"q\"", "a/b"]);
    assert_eq!(read("servers:\r\n  a:\r\n    command: x\r\n").unwrap()[0].watched.spec.command, "x");
}

#[test]
fn a_call_on_the_command_line_is_the_one_of_the_configuration() {
    let call = super::super::call;
    assert_eq!(call("echo").unwrap().arguments, "{}");
    let written =
        call(r#"{"tool":"add","arguments":{"a":2,"b":"${X}"},"expect":{"contains":"5","equals":{"/structuredContent/sum":5}},"insist":true}"#);
    let written = written.unwrap();
    assert_eq!((written.arguments.as_str(), written.contains.as_deref(), written.insist), (r#"{"a":2,"b":"${X}"}"#, Some("5"), true));
    assert_eq!(written.equals, [("/structuredContent/sum".to_owned(), "5".to_owned())]);
    for (text, wanted) in [
        (r#"{"tool":"a","argument":{}}"#, "unknown key \"argument\" in `call`; did you mean `arguments`?"),
        ("", "`call` is empty; write a tool's name"),
        (r#"{"tool":""}"#, "`call.tool` is empty; write a tool's name"),
        (r#"{"tool":"a","expect":{"equals":{"x":1}}}"#, "\"x\" is no JSON pointer, which begins with /"),
    ] {
        assert_eq!(call(text).unwrap_err(), wanted, "{text}");
    }
    assert!(call("{").unwrap_err().contains("EOF"));
}
