//! Our own YAML, from its text to the servers in it.

mod lower;
mod merge;

use std::path::{Path, PathBuf};

use super::keys::{DEFAULTS, FILE, SERVER};
use super::kind::Kind;
use super::read::{Got, Reader, What};
use super::tree::{Member, Node, Place, Problem, Value};
use super::{Configured, Env, FileProblem, Places, yaml};
use crate::words::ServerName;
use lower::Lowering;

static WHOLE: Kind = Kind::Keys(&FILE);
static ONE: Kind = Kind::Keys(&SERVER);

/// What one file says.
#[derive(Debug, Default)]
pub(super) struct Ours {
    /// Where to listen, and where it says so.
    pub(super) listen: Option<(String, Place)>,
    /// Where what is remembered is kept, and where it says so.
    pub(super) state_dir: Option<(PathBuf, Place)>,
    /// The web configuration, and where it says so.
    pub(super) web_config: Option<(PathBuf, Place)>,
    /// Who sees what is private, and where it says so.
    pub(super) show_private: Option<(bool, Place)>,
    /// The servers.
    pub(super) servers: Vec<Configured>,
    /// Other files that belong to it.
    pub(super) files: Vec<PathBuf>,
}

/// Reads a file's text.
///
/// # Errors
///
/// Everything that is wrong, by its place.
pub(super) fn read(text: &str, file: &Path, env: Env<'_>) -> Result<Ours, Vec<FileProblem>> {
    let in_file = |problem| FileProblem { file: file.to_owned(), problem };
    let (root, problems) = yaml::read(text);
    let mut told: Vec<FileProblem> = problems.into_iter().map(in_file).collect();
    let mut ours = Ours::default();
    if let Some(root) = root {
        let mut reader = Reader::new(Some(env));
        let whole = reader.read(&root, &WHOLE);
        told.extend(reader.problems.into_iter().map(in_file));
        let mut lowering = Lowering::new(file, env);
        if let Some(whole) = whole {
            ours.take_globals(&whole, &lowering);
        }
        let merged = servers(&root, &mut lowering, &mut ours);
        if told.is_empty() {
            told.extend(merged.into_iter().map(in_file));
        }
        ours.files = lowering.files;
        told.extend(lowering.problems);
    }
    told.sort_by_key(|told| told.problem.at);
    told.dedup();
    if told.is_empty() { Ok(ours) } else { Err(told) }
}

impl Ours {
    fn take_globals(&mut self, whole: &Got, lowering: &Lowering<'_>) {
        let text = |key: &str| whole.at_path(&[key]).and_then(|got| Some((got.text()?.to_owned(), got.at)));
        self.listen = text("listen");
        let path = |key: &str| text(key).map(|(path, at)| (lowering.path(&path), at));
        self.state_dir = path("state_dir");
        self.web_config = path("web_config");
        self.show_private = whole.at_path(&["show_private"]).map(|got| (got.what == What::Bool(true), got.at));
    }
}

/// Every server with what holds for all of them. Returned is what is wrong with the values, which is the same as
/// was wrong with them before they were merged, and told with other keys before them.
fn servers(root: &Node, lowering: &mut Lowering<'_>, ours: &mut Ours) -> Vec<Problem> {
    let mut problems = Vec::new();
    let defaults = member(root, "defaults").map(|defaults| &defaults.value);
    let Some(Value::Map(servers)) = member(root, "servers").map(|servers| &servers.value.value) else { return problems };
    for server in servers {
        let Ok(name) = ServerName::new(&server.key) else { continue };
        let merged = defaults.map_or_else(|| server.value.clone(), |defaults| merge::merge(defaults, &server.value, &DEFAULTS));
        let mut reader = Reader::new(Some(lowering.env));
        let got = reader.read(&merged, &ONE);
        let Some(got) = got.filter(|_| reader.problems.is_empty()) else {
            problems.extend(reader.problems);
            continue;
        };
        let watched = lowering.server(name, &got, reader.secrets);
        let at = |path: &[&str]| got.at_path(path).map_or(server.at, |got| got.at);
        let places = Places {
            command: at(&["command"]),
            cwd: at(&["cwd"]),
            user: at(&["user"]),
            lock: at(&["schema", "lock"]),
            interval: got.at_path(&["interval"]).map(|got| got.at),
        };
        ours.servers.push(Configured { watched, file: lowering.file.to_owned(), at: server.at, places });
    }
    problems
}

fn member<'n>(node: &'n Node, key: &str) -> Option<&'n Member> {
    if let Value::Map(members) = &node.value { members.iter().find(|member| member.key == key) } else { None }
}

/// A call as `--call` has it: a tool's name, or what stands under `call` in a configuration, in JSON.
/// A dollar is a dollar there.
///
/// # Errors
///
/// In words, with what would be right.
pub fn call(text: &str) -> Result<crate::probe::Call, String> {
    let at = super::file::BEGINNING;
    let node = if text.trim_start().starts_with('{') {
        let value = serde_json::from_str(text)
            .map_err(|error| format!("{error}; write {{\"tool\": NAME, \"arguments\": {{…}}, \"expect\": {{\"contains\": TEXT}}}}"))?;
        of_json(value)
    } else {
        Node { at, value: Value::Text(text.to_owned()) }
    };
    let key = SERVER.get("call").ok_or_else(String::new)?;
    let mut reader = Reader::new(None);
    let got = reader.read_under(&["call"], &node, &key.kind);
    let problems: Vec<String> = reader.problems.into_iter().map(|problem: Problem| problem.message).collect();
    got.filter(|_| problems.is_empty()).map(|got| lower::call(&got)).ok_or_else(|| problems.join("; "))
}

/// JSON that has no places; serde bounds how deep it is.
fn of_json(value: serde_json::Value) -> Node {
    let at = super::file::BEGINNING;
    let value = match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(yes) => Value::Bool(yes),
        serde_json::Value::Number(number) => Value::Number(number.to_string()),
        serde_json::Value::String(text) => Value::Text(text),
        serde_json::Value::Array(elements) => Value::List(elements.into_iter().map(of_json).collect()),
        serde_json::Value::Object(members) => Value::Map(members.into_iter().map(|(key, value)| Member { key, at, value: of_json(value) }).collect()),
    };
    Node { at, value }
}
