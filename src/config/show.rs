//! What a configuration comes to, as YAML that is a configuration again; without secrets.

use std::fmt::Write as _;

use super::quantity::{shown_duration, shown_size};
use super::tree::Value;
use super::{Configuration, Configured, LISTEN, yaml};
use crate::outside::process::LaunchSpec;
use crate::probe::{Call, EraChoice, Times};
use crate::protocol::Era;
use crate::protocol::json::{Doc, Kind, Value as Json};
use crate::running::Watched;
use crate::words::{Redactor, is_printable};

/// What stands where the value of a variable was.
const MASK: &str = "[redacted]";

/// The effective values of everything, defaults filled in, as YAML. Values of variables and other secrets are
/// masked; what is not set and has no default is left out.
#[must_use]
pub fn show(configuration: &Configuration) -> String {
    let mut out = String::from("# Effective values, defaults filled in. Variables of env and other secrets are masked: [redacted].\n");
    let _ = writeln!(out, "listen: {}", text(configuration.listen.as_deref().unwrap_or(LISTEN)));
    if let Some(dir) = &configuration.state_dir {
        let _ = writeln!(out, "state_dir: {}", text(&dir.to_string_lossy()));
    }
    if let Some(file) = &configuration.web_config {
        let _ = writeln!(out, "web_config: {}", text(&file.to_string_lossy()));
    }
    if let Some(private) = configuration.show_private {
        let _ = writeln!(out, "show_private: {private}");
    }
    let _ = writeln!(out, "servers:");
    for server in &configuration.servers {
        show_server(&mut out, server);
    }
    out
}

fn show_server(out: &mut String, server: &Configured) {
    let watched = &server.watched;
    let redactor = watched.redactor();
    let masked = |value: &str| text(&redactor.redact_str(value));
    let _ = writeln!(out, "  {}: # {}:{}", key(watched.name.as_str()), super::shown(&server.file), server.at);
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "    {key}: {value}");
    };
    let spec = &watched.spec;
    line("command", masked(&spec.command));
    line("args", list(spec.args.iter().map(|arg| masked(arg))));
    line("env", map(spec.env.iter().map(|(name, _)| (key(name), text(MASK)))));
    line("env_mode", spec.env_mode.as_str().to_owned());
    if let Some(cwd) = &spec.cwd {
        line("cwd", masked(&cwd.to_string_lossy()));
    }
    line("stdio", spec.stdio.as_str().to_owned());
    line("era", era(watched.era).to_owned());
    line("interval", shown_duration(watched.interval));
    line("timeouts", timeouts(&watched.times));
    line("shutdown", map([("eof", watched.times.eof_grace), ("term", watched.times.term_grace)].map(|(k, v)| (k.to_owned(), shown_duration(v)))));
    line("objectives", map(watched.rules.objectives.iter().map(|(phase, time)| ((*phase).to_owned(), shown_duration(*time)))));
    let thresholds = watched.thresholds;
    line("thresholds", format!("{{failure: {}, success: {}}}", thresholds.failure, thresholds.success));
    line("severity", map(watched.rules.severity.iter().map(|(code, level)| (code.clone(), level.to_string()))));
    line("schema", schema(watched, &redactor));
    if let Some(wanted) = &watched.call {
        line("call", call(wanted, &redactor));
    }
    line("leftovers", spec.leftovers.as_str().to_owned());
    if let Some(user) = &spec.user {
        line("user", text(&user.to_string()));
    }
    line("no_new_privs", spec.no_new_privs.to_string());
    line("private_tmp", spec.private_tmp.to_string());
    line("cgroup", spec.cgroup.to_string());
    line("limits", limits(watched, spec));
}

const fn era(era: EraChoice) -> &'static str {
    match era {
        EraChoice::Auto { .. } => "auto",
        EraChoice::Fixed(Era::Modern) => "modern",
        EraChoice::Fixed(Era::Legacy) => "legacy",
    }
}

fn timeouts(times: &Times) -> String {
    let all = [("startup", times.startup), ("cold_start", times.cold_start), ("request", times.request), ("total", times.total)];
    map(all.map(|(key, time)| (key.to_owned(), shown_duration(time))))
}

fn schema(watched: &Watched, redactor: &Redactor) -> String {
    let policy = &watched.schema;
    let lock = policy.lock.as_ref().map(|lock| ("lock".to_owned(), text(&redactor.redact_str(&lock.to_string_lossy()))));
    let ignore = ("ignore".to_owned(), list(watched.rules.allowed.iter().map(|class| class.as_str().to_owned())));
    let accept = policy.accept_after.map(|probes| ("accept_after".to_owned(), probes.to_string()));
    map(lock.into_iter().chain([ignore]).chain(accept))
}

fn call(call: &Call, redactor: &Redactor) -> String {
    let masked = |value: &str| text(&redactor.redact_str(value));
    let mut expect: Vec<(String, String)> = call.contains.iter().map(|contains| ("contains".to_owned(), masked(contains))).collect();
    expect.push(("equals".to_owned(), map(call.equals.iter().map(|(pointer, value)| (key(pointer), json(value, redactor))))));
    map([
        ("tool".to_owned(), masked(&call.tool)),
        ("arguments".to_owned(), json(&call.arguments, redactor)),
        ("expect".to_owned(), map(expect)),
        ("insist".to_owned(), call.insist.to_string()),
    ])
}

fn limits(watched: &Watched, spec: &LaunchSpec) -> String {
    let limits = watched.limits;
    let resources = spec.resources;
    let line = u64::try_from(limits.line).unwrap_or(u64::MAX);
    let known = [("line", shown_size(line)), ("output", shown_size(limits.output)), ("pages", limits.pages.to_string())];
    let given = [
        ("memory", resources.memory.map(shown_size)),
        ("processes", resources.processes.map(|n| n.to_string())),
        ("open_files", resources.open_files.map(|n| n.to_string())),
        ("cpu", resources.cpu.map(shown_duration)),
        ("file_size", resources.file_size.map(shown_size)),
    ];
    let given = given.into_iter().filter_map(|(key, value)| Some((key, value?)));
    map(known.into_iter().chain(given).map(|(key, value)| (key.to_owned(), value)))
}

fn list(elements: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", elements.into_iter().collect::<Vec<_>>().join(", "))
}

fn map(members: impl IntoIterator<Item = (String, String)>) -> String {
    let members: Vec<String> = members.into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
    format!("{{{}}}", members.join(", "))
}

/// A value: a dollar of it is no variable.
fn text(value: &str) -> String {
    key(&value.replace('$', "$$"))
}

/// A key: nothing is expanded in it. Without quotes, if YAML takes it for the same text wherever it stands.
fn key(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '+');
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.'));
    if begins && text.chars().all(plain) && yaml::plain(text) == Value::Text(text.to_owned()) { text.to_owned() } else { quoted(text) }
}

/// JSON as YAML, in which keys are left alone and dollars of texts doubled. What is no JSON is shown as a text.
fn json(json: &str, redactor: &Redactor) -> String {
    Doc::parse(json.as_bytes()).map_or_else(|_| text(&redactor.redact_str(json)), |doc| flow(doc.root(), redactor))
}

/// Whatever was configured is bounded in its depth.
fn flow(value: Json<'_>, redactor: &Redactor) -> String {
    let masked = |value: &str| text(&redactor.redact_str(value));
    match value.kind() {
        Kind::String => masked(&value.text().unwrap_or_default()),
        Kind::Array => list(value.elements().map(|element| flow(element, redactor))),
        Kind::Object => map(value.members().map(|(name, value)| (key(&name.text().unwrap_or_default()), flow(value, redactor)))),
        Kind::Null | Kind::Bool | Kind::Number | Kind::NonFinite => {
            let raw = String::from_utf8_lossy(value.raw());
            if redactor.redact_str(&raw) == raw { raw.into_owned() } else { masked(&raw) }
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_printable(c) => out.push(c),
            c => escaped(c, &mut out),
        }
    }
    out.push('"');
    out
}

/// As YAML's double quotes have it.
fn escaped(c: char, out: &mut String) {
    let _ = match u32::from(c) {
        code @ ..=0xff => write!(out, "\\x{code:02x}"),
        code @ ..=0xffff => write!(out, "\\u{code:04x}"),
        code => write!(out, "\\U{code:08x}"),
    };
}
