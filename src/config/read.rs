//! A tree, read by the table of keys. Everything that is wrong is told, not only the first.

use std::time::Duration;

use super::Env;
use super::expand::{Expanded, expand};
use super::keys::{DEFAULTS, FILE, SERVER};
use super::kind::{Key, Keys, Kind, Names, or};
use super::quantity::{Amount, Measured};
use super::text::Texts;
use super::tree::{Member, Node, Place, Problem, Value};
use crate::judge::{CHECKS, check};
use crate::words::{ServerName, printable, similar};

/// A value that is what it has to be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Got {
    /// Where it stands.
    pub(super) at: Place,
    /// What it is.
    pub(super) what: What,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    /// A text, its variables expanded.
    Text(String),
    /// One of the words of its kind.
    Word(&'static str),
    /// A duration.
    Duration(Duration),
    /// A number, or a size in bytes.
    Number(u64),
    /// Yes or no.
    Bool(bool),
    /// A list.
    List(Vec<Got>),
    /// A mapping: each key, its place, its value.
    Map(Vec<(String, Place, Got)>),
    /// Any value, as JSON.
    Json(String),
}

impl From<Measured> for What {
    fn from(measured: Measured) -> What {
        match measured {
            Measured::Duration(duration) => What::Duration(duration),
            Measured::Number(number) => What::Number(number),
        }
    }
}

impl Got {
    /// What stands at a path of keys.
    pub(super) fn at_path(&self, path: &[&str]) -> Option<&Got> {
        path.iter().try_fold(self, |got, key| got.entries().iter().find(|(name, ..)| name == key).map(|(_, _, value)| value))
    }

    /// The members of a mapping; nothing if it is none.
    pub(super) fn entries(&self) -> &[(String, Place, Got)] {
        if let What::Map(entries) = &self.what { entries } else { &[] }
    }

    /// The elements of a list; nothing if it is none.
    pub(super) fn elements(&self) -> &[Got] {
        if let What::List(elements) = &self.what { elements } else { &[] }
    }

    /// The text of a text or a word, the JSON of any value.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.what {
            What::Text(text) | What::Json(text) => Some(text),
            What::Word(word) => Some(word),
            What::Duration(_) | What::Number(_) | What::Bool(_) | What::List(_) | What::Map(_) => None,
        }
    }
}

/// Reads nodes, and collects what is wrong with them.
pub(super) struct Reader<'e> {
    /// What is wrong so far.
    pub(super) problems: Vec<Problem>,
    /// Values of variables that have come into arguments, environments and calls.
    pub(super) secrets: Vec<String>,
    /// Our environment; `None` where a dollar is a dollar.
    env: Option<Env<'e>>,
    /// The keys on the way, for messages.
    path: Vec<String>,
}

impl<'e> Reader<'e> {
    /// A reader that takes variables from `env`, and none at all without it.
    pub(super) fn new(env: Option<Env<'e>>) -> Reader<'e> {
        Reader { problems: Vec::new(), secrets: Vec::new(), env, path: Vec::new() }
    }

    /// Notes what is wrong at a place.
    pub(super) fn wrong(&mut self, at: Place, message: impl Into<String>) {
        self.problems.push(Problem { at, message: message.into() });
    }

    /// Reads a node as what `kind` says; `None` if it is not, which is noted.
    pub(super) fn read(&mut self, node: &Node, kind: &'static Kind) -> Option<Got> {
        let at = node.at;
        let what = match (kind, &node.value) {
            (Kind::Either(kinds), value) => {
                let Some(kind) = kinds.iter().find(|kind| has_shape(kind, value)) else { return self.mistyped(node, kind) };
                return self.read(node, kind);
            }
            (Kind::List(element), Value::List(nodes)) => What::List(self.list(nodes, element)),
            (Kind::Keys(keys), Value::Map(members)) => What::Map(self.keys(at, members, keys)),
            (Kind::Named(names, value), Value::Map(members)) => What::Map(self.named(at, members, *names, value)),
            (Kind::Json, _) | (Kind::Object, Value::Map(_)) => What::Json(self.json(node)?),
            (Kind::Bool, Value::Bool(yes)) => What::Bool(*yes),
            (Kind::Amount(amount @ (Amount::Size(..) | Amount::Count(..))), Value::Number(text)) => match amount.read(text) {
                Ok(measured) => measured.into(),
                Err(error) => return self.refused(at, &format!("is {}: {error}", printable(text, 60))),
            },
            (Kind::Scalar, Value::Number(text)) => What::Text(text.clone()),
            (Kind::Scalar, Value::Bool(yes)) => return self.refused(at, &format!("is a boolean; write it in quotes, \"{yes}\"")),
            (Kind::Scalar, Value::Null) => return self.refused(at, "is nothing; write it in quotes, \"\" for an empty text"),
            (_, Value::Text(text)) => self.text(node, text, kind)?,
            _ => return self.mistyped(node, kind),
        };
        Some(Got { at, what })
    }

    /// Notes that something else was expected.
    fn mistyped(&mut self, node: &Node, kind: &'static Kind) -> Option<Got> {
        let right = match (kind, &node.value) {
            (Kind::Amount(Amount::Duration(_)), Value::Number(number)) => format!("a duration has a unit, as in {}s", printable(number, 20)),
            (Kind::List(_), Value::Text(text)) => format!("write a list, here {}", as_list(text)),
            (Kind::Text(Texts::Any | Texts::Header | Texts::Command | Texts::Path | Texts::Tool), Value::Number(number)) => {
                format!("write it in quotes, \"{}\"", printable(number, 20))
            }
            _ => format!("write {}", kind.right()),
        };
        let message = format!("{} is {}; {right}", self.shown_path(), node.value.word());
        self.wrong(node.at, message);
        None
    }

    fn text(&mut self, node: &Node, text: &str, kind: &'static Kind) -> Option<What> {
        let expanded = self.expand(node.at, text, kind)?;
        match converted(&expanded, kind) {
            Some(Ok(what)) => Some(what),
            // What a variable holds may be a secret that has got into the wrong place.
            Some(Err(_)) if !expanded.secrets.is_empty() => {
                self.refused(node.at, &format!("is \"{}\", whose value is not {}", printable(text, 60), kind.right()))
            }
            Some(Err(error)) => self.refused(node.at, &error),
            None => {
                self.mistyped(node, kind);
                None
            }
        }
    }

    /// Expands the variables of a text. What lands in an argument, a variable or a call may be a secret.
    fn expand(&mut self, at: Place, text: &str, kind: &Kind) -> Option<Expanded> {
        let Some(env) = self.env else { return Some(Expanded { text: text.to_owned(), ..Expanded::default() }) };
        match expand(text, env) {
            Ok(expanded) => {
                if matches!(kind, Kind::Scalar | Kind::Json | Kind::Object) {
                    self.secrets.extend(expanded.secrets.iter().cloned());
                }
                Some(expanded)
            }
            Err(error) => {
                let message = format!("{}: {error}", self.shown_path());
                self.wrong(at, message);
                None
            }
        }
    }

    /// Notes what is wrong with the value that is being read.
    fn refused<T>(&mut self, at: Place, error: &str) -> Option<T> {
        let message = format!("{} {error}", self.shown_path());
        self.wrong(at, message);
        None
    }

    fn list(&mut self, nodes: &[Node], element: &'static Kind) -> Vec<Got> {
        let mut elements = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            self.path.push(format!("[{index}]"));
            elements.extend(self.read(node, element));
            self.path.pop();
        }
        elements
    }

    fn keys(&mut self, at: Place, members: &[Member], keys: &'static Keys) -> Vec<(String, Place, Got)> {
        let mut entries = Vec::new();
        let first = self.problems.len();
        for member in members {
            match keys.get(&member.key) {
                Some(key) => entries.extend(self.member(member, &key.kind)),
                None => self.unknown(member, keys),
            }
        }
        let missing = |key: &&Key| key.required && !members.iter().any(|member| member.key == key.name);
        for key in keys.iter().filter(missing) {
            // It is there under another name, which has been told.
            let name = format!("`{}`", key.name);
            if self.problems[first..].iter().any(|problem| problem.message.starts_with("unknown key") && problem.message.contains(&name)) {
                continue;
            }
            let message = format!("{} has no `{}`; write {}", self.shown_path_or(keys.what), key.name, key.kind.right());
            self.wrong(at, message);
        }
        entries
    }

    fn member(&mut self, member: &Member, kind: &'static Kind) -> Option<(String, Place, Got)> {
        self.path.push(member.key.clone());
        let got = self.read(&member.value, kind);
        self.path.pop();
        got.map(|got| (member.key.clone(), member.at, got))
    }

    fn unknown(&mut self, member: &Member, keys: &'static Keys) {
        let hint = keys.hints.iter().find(|(name, _)| *name == member.key).map(|(_, hint)| (*hint).to_owned());
        let hint = hint.or_else(|| misplaced(member, keys));
        let hint = hint.or_else(|| similar(&member.key, keys.iter().map(|key| key.name)).map(|word| format!("did you mean `{word}`?")));
        // A slip in what is a mistake already.
        let hint = hint.or_else(|| {
            let meant = similar(&member.key, keys.hints.iter().map(|(name, _)| *name))?;
            keys.hints.iter().find(|(name, _)| *name == meant).map(|(_, hint)| (*hint).to_owned())
        });
        let hint = hint.unwrap_or_else(|| format!("the keys there are {}", list_of(keys)));
        let message = format!("unknown key \"{}\" in {}; {hint}", printable(&member.key, 60), keys.what);
        self.wrong(member.at, message);
    }

    fn named(&mut self, at: Place, members: &[Member], names: Names, kind: &'static Kind) -> Vec<(String, Place, Got)> {
        if members.is_empty() && names == Names::Servers {
            let message = format!("{} is empty; name at least one server, as in {{files: {{command: npx}}}}", self.shown_path());
            self.wrong(at, message);
        }
        let mut entries = Vec::new();
        for member in members {
            if names == Names::Servers && SERVER.get(&member.key).is_some() && !is_server(&member.value.value) {
                let message = format!(
                    "`servers.{key}` is {}; `{key}` is a key of a server: indent it below the server's name",
                    member.value.value.word(),
                    key = member.key
                );
                self.wrong(member.at, message);
            } else if let Err(error) = name(&member.key, names) {
                self.wrong(member.at, error);
            } else {
                entries.extend(self.member(member, kind));
            }
        }
        entries
    }

    /// A node as JSON, the variables in its texts expanded.
    fn json(&mut self, node: &Node) -> Option<String> {
        Some(match &node.value {
            Value::Null => "null".to_owned(),
            Value::Bool(yes) => yes.to_string(),
            Value::Number(text) => match json_number(text) {
                Some(number) => number,
                None => return self.refused(node.at, &format!("is {}, which JSON cannot say", printable(text, 40))),
            },
            Value::Text(text) => quoted(&self.expand(node.at, text, &Kind::Json)?.text),
            Value::List(nodes) => {
                let elements: Vec<Option<String>> = nodes.iter().map(|node| self.json(node)).collect();
                format!("[{}]", elements.into_iter().collect::<Option<Vec<_>>>()?.join(","))
            }
            Value::Map(members) => {
                let one = |member: &Member| Some(format!("{}:{}", quoted(&member.key), self.json(&member.value)?));
                let members: Vec<Option<String>> = members.iter().map(one).collect();
                format!("{{{}}}", members.into_iter().collect::<Option<Vec<_>>>()?.join(","))
            }
        })
    }

    /// The keys on the way to what is being read.
    fn shown_path(&self) -> String {
        self.shown_path_or("the document")
    }

    fn shown_path_or(&self, otherwise: &str) -> String {
        // `servers` and the server's name are said by the place.
        let inner = if self.path.first().is_some_and(|first| first == "servers") { self.path.get(2..) } else { None };
        let path = inner.filter(|inner| !inner.is_empty()).unwrap_or(&self.path);
        let mut shown = String::new();
        for part in path {
            if !shown.is_empty() && !part.starts_with('[') {
                shown.push('.');
            }
            shown.push_str(&printable(part, 60));
        }
        if shown.is_empty() { otherwise.to_owned() } else { format!("`{shown}`") }
    }

    /// Reads a node that stands under these keys.
    pub(super) fn read_under(&mut self, path: &[&str], node: &Node, kind: &'static Kind) -> Option<Got> {
        self.path = path.iter().map(|part| (*part).to_owned()).collect();
        let got = self.read(node, kind);
        self.path.clear();
        got
    }
}

/// What to say of a key at the top that is a server's, or a server.
fn misplaced(member: &Member, keys: &'static Keys) -> Option<String> {
    if !std::ptr::eq(keys, &FILE) {
        return None;
    }
    let key = member.key.as_str();
    if DEFAULTS.get(key).is_some() {
        return Some(format!("`{key}` belongs under `defaults`, for all servers, or below a server's name in `servers`"));
    }
    if SERVER.get(key).is_some() {
        return Some(format!("`{key}` belongs below a server's name in `servers`"));
    }
    is_server(&member.value.value).then(|| "a server stands below `servers`, indented".to_owned())
}

/// Whether this looks like a server.
fn is_server(value: &Value) -> bool {
    matches!(value, Value::Map(members) if members.iter().any(|member| member.key == "command"))
}

/// Whether a value is of the shape that a kind has.
fn has_shape(kind: &Kind, value: &Value) -> bool {
    match kind {
        Kind::List(_) => matches!(value, Value::List(_)),
        Kind::Keys(_) | Kind::Named(..) | Kind::Object => matches!(value, Value::Map(_)),
        Kind::Text(_) | Kind::Word(_) => matches!(value, Value::Text(_)),
        Kind::Scalar | Kind::Amount(_) => matches!(value, Value::Text(_) | Value::Number(_)),
        Kind::Bool => matches!(value, Value::Bool(_)),
        Kind::Json | Kind::Either(_) => true,
    }
}

/// The words of a text as a list in flow style, for a hint.
fn as_list(text: &str) -> String {
    const MOST: usize = 4;
    let mut words: Vec<String> = text.split_whitespace().take(MOST + 1).map(|word| format!("\"{}\"", printable(word, 30))).collect();
    if let Some(more) = words.get_mut(MOST) {
        "…".clone_into(more);
    }
    format!("[{}]", words.join(", "))
}

/// What a text is by its kind, or why it is not; `None` if such a thing is not written as a text.
fn converted(expanded: &Expanded, kind: &'static Kind) -> Option<Result<What, String>> {
    let text = expanded.text.as_str();
    Some(match kind {
        Kind::Text(texts) => texts.check(text).map(|()| What::Text(text.to_owned())),
        Kind::Scalar if text.contains('\0') => Err("contains a NUL byte, which no argument and no variable can".to_owned()),
        Kind::Scalar => Ok(What::Text(text.to_owned())),
        Kind::Word(words) => word(text, words),
        Kind::Bool if expanded.varies => match text {
            "true" | "false" => Ok(What::Bool(text == "true")),
            _ => Err(format!("is \"{}\"; write {}", printable(text, 60), kind.right())),
        },
        Kind::Amount(Amount::Count(..)) if !expanded.varies => return None,
        Kind::Amount(amount) => amount.read(text).map(What::from).map_err(|error| format!("is \"{}\": {error}", printable(text, 60))),
        Kind::Bool | Kind::List(_) | Kind::Keys(_) | Kind::Named(..) | Kind::Json | Kind::Object | Kind::Either(_) => return None,
    })
}

fn word(text: &str, words: &'static [&'static str]) -> Result<What, String> {
    if let Some(word) = words.iter().find(|word| **word == text) {
        return Ok(What::Word(word));
    }
    let right = match similar(text, words.iter().copied()) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("write {}", or(words)),
    };
    Err(format!("is \"{}\"; {right}", printable(text, 60)))
}

fn list_of(keys: &'static Keys) -> String {
    let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
    names.join(", ")
}

/// Whether a name that the user gives is one.
fn name(name: &str, names: Names) -> Result<(), String> {
    let shown = printable(name, 60);
    match names {
        Names::Servers => ServerName::new(name).map(drop).map_err(|error| format!("\"{shown}\": {error}")),
        Names::Variables if name.is_empty() => Err("the name of a variable is empty".to_owned()),
        Names::Variables if name.contains("${") => Err(format!("\"{shown}\": the name of a variable is never expanded")),
        Names::Variables => match name.chars().find(|c| *c == '=' || *c == '\0') {
            Some(c) => Err(format!("\"{shown}\": the name of a variable may not contain {c:?}")),
            None => Ok(()),
        },
        Names::Codes => known_code(name),
        Names::Users => match name.chars().find(|c| *c == ':' || c.is_control()) {
            Some(c) => Err(format!("\"{shown}\": the name of a user may not contain {c:?}")),
            None if name.is_empty() => Err("the name of a user is empty".to_owned()),
            None => Ok(()),
        },
        Names::Pointers if name.is_empty() || name.starts_with('/') => Ok(()),
        Names::Pointers => Err(format!("\"{shown}\" is no JSON pointer, which begins with /")),
    }
}

/// Whether there is a finding with this code.
///
/// # Errors
///
/// In words, with the one that may have been meant.
pub fn known_code(code: &str) -> Result<(), String> {
    if check(code).is_some() {
        return Ok(());
    }
    let hint = match similar(code, CHECKS.iter().map(|check| check.code)) {
        Some(word) => format!("did you mean `{word}`?"),
        None => "`stdiowatch explain` lists them".to_owned(),
    };
    Err(format!("there is no finding \"{}\"; {hint}", printable(code, 60)))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A number of YAML's, as JSON writes it; `None` for infinities and what is none.
fn json_number(text: &str) -> Option<String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let radix = |digits, radix| u64::from_str_radix(digits, radix).ok().map(|n| n.to_string());
    if let Some(digits) = rest.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = rest.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let exponent = rest.find(['e', 'E']).unwrap_or(rest.len());
    let (mantissa, exponent) = rest.split_at(exponent);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    let number = format!("{sign}{whole}{point}{fraction}{exponent}");
    // The grammar of JSON itself has the last word.
    serde_json::from_str::<&serde_json::value::RawValue>(&number).is_ok().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_yaml_become_numbers_of_json() {
        for (text, wanted) in [
            ("1", Some("1")),
            ("-1.50", Some("-1.50")),
            ("+1", Some("1")),
            ("007", Some("7")),
            ("0", Some("0")),
            (".5", Some("0.5")),
            ("5.", Some("5")),
            ("1e3", Some("1e3")),
            ("0x1F", Some("31")),
            ("0o17", Some("15")),
            (".inf", None),
            ("-.INF", None),
            (".nan", None),
        ] {
            assert_eq!(json_number(text).as_deref(), wanted, "{text}");
        }
    }
}
