//! One entry of a client's file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fill::{Filler, Gap};
use super::groups::{Form, last, members, text};
use crate::config::tree::{Member, Node, Place, Value};
use crate::config::{Places, dotenv};
use crate::outside::process::{EnvMode, LaunchSpec};
use crate::words::printable;

/// Words for a server on stdin and stdout.
const STDIO: [&str; 2] = ["stdio", "local"];

/// Words for a server at an address.
const REMOTE: [&str; 8] = ["http", "sse", "streamable-http", "streamablehttp", "streamable_http", "remote", "ws", "websocket"];

/// Keys that hold an address.
const ADDRESSES: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// The longest time to start that can be meant.
const LONGEST_START: Duration = Duration::from_secs(24 * 60 * 60);

/// How a server is launched.
#[derive(Debug)]
pub(super) struct Launch {
    /// The process.
    pub(super) spec: LaunchSpec,
    /// How long its client gives it to start, where the file says so.
    pub(super) startup: Option<Duration>,
    /// Where what it needs is named.
    pub(super) places: Places,
}

/// Why an entry cannot be watched.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Where the reason stands.
    pub(super) at: Place,
    /// The reason.
    pub(super) why: String,
    /// It is wrong, and not only of another kind.
    pub(super) broken: bool,
}

fn broken(at: Place, why: impl Into<String>) -> Refusal {
    Refusal { at, why: why.into(), broken: true }
}

fn other(at: Place, why: impl Into<String>) -> Refusal {
    Refusal { at, why: why.into(), broken: false }
}

/// Reads an entry.
///
/// # Errors
///
/// It is switched off, of another kind, or wrong.
pub(super) fn read(entry: &Member, filler: &Filler<'_>) -> Result<Launch, Refusal> {
    let Value::Map(keys) = &entry.value.value else {
        return Err(broken(entry.value.at, format!("it is {}; wanted a mapping with `command`", entry.value.value.word())));
    };
    let entry = Entry { at: entry.at, keys, filler };
    entry.is_switched_on()?;
    entry.is_stdio()?;
    let (command, args) = entry.command()?;
    let spec = LaunchSpec { command, args, env_mode: entry.env_mode(), env: entry.env()?, cwd: entry.cwd()?, ..LaunchSpec::default() };
    Ok(Launch { spec, startup: entry.startup()?, places: entry.places() })
}

struct Entry<'a> {
    /// Where it begins.
    at: Place,
    keys: &'a [Member],
    filler: &'a Filler<'a>,
}

impl<'a> Entry<'a> {
    fn form(&self) -> Form {
        self.filler.form
    }

    fn get(&self, key: &str) -> Option<&'a Member> {
        last(self.keys, key)
    }

    fn places(&self) -> Places {
        let place = |key| self.get(key).map_or(self.at, |member| member.value.at);
        Places { command: place("command"), cwd: place("cwd"), user: self.at, lock: self.at, interval: None }
    }

    fn word(&self, key: &str) -> Option<&'a str> {
        self.get(key).and_then(|member| text(&member.value))
    }

    fn is_switched_on(&self) -> Result<(), Refusal> {
        for (key, off) in [("disabled", true), ("enabled", false)] {
            let Some(member) = self.get(key) else { continue };
            match member.value.value {
                Value::Bool(value) if value == off => return Err(other(member.at, format!("it is switched off by `{key}: {off}`"))),
                Value::Bool(_) => {}
                Value::Null | Value::Number(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => {
                    return Err(broken(member.value.at, format!("`{key}` is {}; wanted true or false", member.value.value.word())));
                }
            }
        }
        Ok(())
    }

    /// Whether it is a process that we could launch.
    fn is_stdio(&self) -> Result<(), Refusal> {
        let named = ["type", "transportType", "transport"].iter().find_map(|key| self.get(key).zip(self.word(key)));
        let kind = named.map(|(member, word)| (member, word.to_ascii_lowercase()));
        if let Some((member, word)) = kind.filter(|_| self.form() != Form::Codex) {
            if REMOTE.contains(&word.as_str()) {
                return Err(other(member.at, format!("it is remote ({}), and only servers on stdio can be watched", printable(&word, 40))));
            }
            if !STDIO.contains(&word.as_str()) {
                return Err(other(member.at, format!("its kind is {:?}, which is not stdio", printable(&word, 40))));
            }
            return Ok(());
        }
        self.is_ours_in_zed()?;
        self.is_ours_in_codex()?;
        let address = ADDRESSES.iter().find_map(|key| self.get(key));
        match address {
            Some(address) if self.form() == Form::Gemini || self.get("command").is_none() => {
                Err(other(address.at, format!("it is remote (`{}`), and only servers on stdio can be watched", address.key)))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn is_ours_in_zed(&self) -> Result<(), Refusal> {
        let of_an_extension = self.word("source") == Some("extension") || self.get("command").is_none() && self.get("settings").is_some();
        if self.form() == Form::Zed && of_an_extension {
            return Err(other(self.at, "its command comes from an extension of Zed"));
        }
        Ok(())
    }

    fn is_ours_in_codex(&self) -> Result<(), Refusal> {
        if self.form() != Form::Codex {
            return Ok(());
        }
        match self.get("experimental_environment") {
            Some(member) if text(&member.value) != Some("local") => return Err(other(member.at, "Codex runs it in another environment")),
            Some(_) | None => {}
        }
        match (self.get("command"), self.get("url")) {
            (Some(_), Some(url)) => Err(broken(url.at, "`command` and `url` stand together, which Codex refuses: wanted one of them")),
            (Some(_), None) | (None, _) => Ok(()),
        }
    }

    /// What is run.
    fn command(&self) -> Result<(String, Vec<String>), Refusal> {
        let Some(command) = self.get("command") else {
            let has_address = ADDRESSES.iter().any(|key| self.get(key).is_some());
            return Err(broken(
                self.at,
                if has_address { "it is said to be on stdio, and has no `command`" } else { "it has neither `command` nor `url`" },
            ));
        };
        let node = &command.value;
        match &node.value {
            Value::Text(_) if self.form() != Form::Opencode => Ok((self.program(node)?, self.args(self.keys)?)),
            Value::Map(inner) if self.form() == Form::Zed => match last(inner, "path") {
                Some(path) => Ok((self.program(&path.value)?, self.args(inner)?)),
                None => Err(broken(node.at, "`command` has no `path`")),
            },
            Value::List(words) if self.form() == Form::Opencode => match words.split_first() {
                Some((program, args)) => Ok((self.program(program)?, args.iter().map(|arg| self.argument(arg)).collect::<Result<_, _>>()?)),
                None => Err(broken(node.at, "`command` is empty; wanted [\"PROGRAM\", \"ARG\"]")),
            },
            Value::List(_) => Err(broken(node.at, "`command` is a list; wanted a text, and the arguments in `args`")),
            Value::Text(_) => Err(broken(node.at, "`command` is a text; wanted a list [\"PROGRAM\", \"ARG\"]")),
            value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Map(_)) => {
                Err(broken(node.at, format!("`command` is {}; wanted the program to run, as a text", value.word())))
            }
        }
    }

    fn program(&self, node: &Node) -> Result<String, Refusal> {
        let Some(program) = text(node) else {
            return Err(broken(node.at, format!("the program is {}; wanted a text", node.value.word())));
        };
        let program = self.filled(program, node.at)?;
        if program.trim().is_empty() { Err(broken(node.at, "`command` is empty")) } else { Ok(program) }
    }

    fn args(&self, keys: &[Member]) -> Result<Vec<String>, Refusal> {
        let Some(args) = last(keys, "args") else { return Ok(Vec::new()) };
        match &args.value.value {
            Value::List(list) => list.iter().map(|arg| self.argument(arg)).collect(),
            value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Map(_)) => {
                Err(broken(args.value.at, format!("`args` is {}; wanted a list of texts", value.word())))
            }
        }
    }

    fn argument(&self, node: &Node) -> Result<String, Refusal> {
        match text(node) {
            Some(arg) => self.filled(arg, node.at),
            None => Err(broken(node.at, format!("an argument is {}; wanted a text, in quotes", node.value.word()))),
        }
    }

    /// A text with its placeholders filled, as a program can be given it.
    fn filled(&self, text: &str, at: Place) -> Result<String, Refusal> {
        let filled = self.filler.fill(text).map_err(|Gap { why, broken }| Refusal { at, why, broken })?;
        if filled.contains('\0') {
            return Err(broken(at, "it holds a NUL, which no program can be given"));
        }
        Ok(if self.form() == Form::VsCode { self.filler.ground.untilded(&filled) } else { filled })
    }

    fn env_mode(&self) -> EnvMode {
        match self.form() {
            Form::VsCode | Form::Zed | Form::Opencode => EnvMode::Inherit,
            Form::Usual | Form::Gemini | Form::Codex => EnvMode::Sdk,
        }
    }

    /// What is set for it, by name.
    fn env(&self) -> Result<Vec<(String, String)>, Refusal> {
        let mut env = BTreeMap::new();
        self.handed_on(&mut env)?;
        self.env_file(&mut env)?;
        let (keys, key) = match (self.form(), self.get("command")) {
            (Form::Opencode, _) => (self.keys, "environment"),
            (Form::Zed, Some(command)) if matches!(command.value.value, Value::Map(_)) => (members(&command.value), "env"),
            (Form::Zed | Form::Usual | Form::Gemini | Form::VsCode | Form::Codex, _) => (self.keys, "env"),
        };
        let Some(given) = last(keys, key) else { return Ok(env.into_iter().collect()) };
        let Value::Map(given) = &given.value.value else {
            return Err(broken(given.value.at, format!("`{key}` is {}; wanted a mapping from names to texts", given.value.value.word())));
        };
        for member in given {
            self.is_name(&member.key, member.at)?;
            let value = match &member.value.value {
                Value::Null => continue,
                Value::Text(text) => self.value(text, member.value.at)?,
                Value::Number(number) => number.clone(),
                Value::Bool(truth) => truth.to_string(),
                value @ (Value::List(_) | Value::Map(_)) => {
                    let name = printable(&member.key, 100);
                    return Err(broken(member.value.at, format!("the value of {name} in `{key}` is {}; wanted a text", value.word())));
                }
            };
            env.insert(member.key.clone(), self.with_our_path(&member.key, value));
        }
        Ok(env.into_iter().collect())
    }

    /// The value of a variable: filled, and without the `~` that a shell would know.
    fn value(&self, text: &str, at: Place) -> Result<String, Refusal> {
        let value = self.filler.fill(text).map_err(|Gap { why, broken }| Refusal { at, why, broken })?;
        if value.contains('\0') { Err(broken(at, "it holds a NUL, which no variable can")) } else { Ok(value) }
    }

    /// VS Code adds a `PATH` to its own, and does not replace it.
    fn with_our_path(&self, name: &str, value: String) -> String {
        let ours = (self.filler.env)("PATH").filter(|ours| self.form() == Form::VsCode && name == "PATH" && !ours.is_empty());
        ours.map_or(value.clone(), |ours| format!("{ours}:{value}"))
    }

    fn is_name(&self, name: &str, at: Place) -> Result<(), Refusal> {
        if name.is_empty() || name.contains(['=', '\0']) {
            // What stands after a `=` was meant for its value.
            let shown = name.split_once('=').map_or_else(|| printable(name, 60), |(name, _)| format!("{}=…", printable(name, 60)));
            return Err(broken(at, format!("\"{shown}\" cannot be the name of a variable")));
        }
        Ok(())
    }

    /// The variables that Codex hands on from its own environment: those that are set.
    fn handed_on(&self, env: &mut BTreeMap<String, String>) -> Result<(), Refusal> {
        let Some(names) = self.get("env_vars").filter(|_| self.form() == Form::Codex) else { return Ok(()) };
        let Value::List(list) = &names.value.value else {
            return Err(broken(names.value.at, format!("`env_vars` is {}; wanted a list of names", names.value.value.word())));
        };
        for node in list {
            let name = text(node).or_else(|| last(members(node), "name").and_then(|name| text(&name.value)));
            let Some(name) = name else {
                return Err(broken(node.at, format!("a name in `env_vars` is {}; wanted a text", node.value.word())));
            };
            self.is_name(name, node.at)?;
            if let Some(value) = (self.filler.env)(name) {
                env.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }

    fn env_file(&self, env: &mut BTreeMap<String, String>) -> Result<(), Refusal> {
        let has_one = matches!(self.form(), Form::Usual | Form::VsCode);
        let Some(member) = self.get("envFile").filter(|_| has_one) else { return Ok(()) };
        let at = member.value.at;
        let Some(path) = text(&member.value) else {
            return Err(broken(at, format!("`envFile` is {}; wanted a path", member.value.value.word())));
        };
        if path.is_empty() {
            return Ok(());
        }
        let path = self.filler.ground.path(&self.filled(path, at)?, self.base());
        let content = self.filler.text_of(path).map_err(|why| broken(at, format!("`envFile`: {why}")))?;
        for (name, value) in dotenv::variables(&content) {
            self.is_name(&name, at)?;
            if value.contains('\0') {
                return Err(broken(at, "`envFile` holds a NUL, which no variable can"));
            }
            env.insert(name, value);
        }
        Ok(())
    }

    /// What relative paths are taken from.
    fn base(&self) -> &Path {
        let ground = self.filler.ground;
        let home = ground.home.as_deref().filter(|_| self.form() == Form::VsCode);
        self.filler.project.or(home).unwrap_or(&ground.dir)
    }

    /// Where it runs: as it says, or else in the project.
    fn cwd(&self) -> Result<Option<PathBuf>, Refusal> {
        let Some(member) = self.get("cwd") else {
            let home = self.filler.ground.home.as_deref().filter(|_| self.form() == Form::VsCode);
            return Ok(self.filler.project.or(home).map(Path::to_owned));
        };
        match text(&member.value) {
            Some(cwd) => {
                let cwd = self.filled(cwd, member.value.at)?;
                Ok(Some(self.base().join(cwd).components().collect()))
            }
            None => Err(broken(member.value.at, format!("`cwd` is {}; wanted a path", member.value.value.word()))),
        }
    }

    /// How long Codex gives it to start.
    fn startup(&self) -> Result<Option<Duration>, Refusal> {
        if self.form() != Form::Codex {
            return Ok(None);
        }
        let named = [("startup_timeout_sec", 1.0), ("startup_timeout_ms", 1000.0)].into_iter().find_map(|(key, per)| self.get(key).zip(Some(per)));
        let Some((member, per_second)) = named else { return Ok(None) };
        let number = match &member.value.value {
            Value::Number(number) => number.replace('_', "").parse::<f64>().ok(),
            Value::Null | Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => None,
        };
        let time = number.and_then(|number| Duration::try_from_secs_f64(number / per_second).ok());
        match time.filter(|time| !time.is_zero() && *time <= LONGEST_START) {
            Some(time) => Ok(Some(time)),
            None => Err(broken(member.value.at, format!("`{}` is no time; wanted a number above 0, and a day at the most", member.key))),
        }
    }
}
