//! Where the servers stand in a client's file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::ground::Ground;
use crate::config::tree::{Member, Node, Place, Problem, Value};
use crate::words::{printable, similar};

/// Whose notation an entry is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `mcpServers`, which most clients have.
    Usual,
    /// `mcpServers` of Gemini CLI, which has `$NAME` too.
    Gemini,
    /// `servers` of VS Code.
    VsCode,
    /// `context_servers` of Zed.
    Zed,
    /// `mcp_servers` of Codex.
    Codex,
    /// `mcp` of opencode.
    Opencode,
}

/// Servers that stand together.
pub(super) struct Group<'a> {
    /// Their notation.
    pub(super) form: Form,
    /// Their entries.
    pub(super) entries: &'a [Member],
    /// The inputs that they may ask for.
    pub(super) inputs: &'a [Node],
    /// The project that they belong to.
    pub(super) project: Option<PathBuf>,
    /// What is added to their names, because they stand in a file with those of other projects.
    pub(super) tag: Option<String>,
    /// The names of those that are switched off elsewhere in the file.
    pub(super) off: BTreeSet<&'a str>,
    /// They count for nothing, because the same key stands again here.
    pub(super) superseded: Option<Place>,
}

impl Group<'_> {
    /// For each entry: where its name stands for the last time, unless that is there.
    pub(super) fn again(&self) -> Vec<Option<Place>> {
        let last: BTreeMap<&str, Place> = self.entries.iter().map(|entry| (entry.key.as_str(), entry.at)).collect();
        self.entries.iter().map(|entry| last.get(entry.key.as_str()).copied().filter(|at| *at != entry.at)).collect()
    }
}

/// The last member with this key that is not null: where a key stands twice, clients take the last.
pub(super) fn last<'a>(members: &'a [Member], key: &str) -> Option<&'a Member> {
    members.iter().rev().find(|member| member.key == key).filter(|member| !matches!(member.value.value, Value::Null))
}

/// The members of a mapping; none of anything else.
pub(super) fn members(node: &Node) -> &[Member] {
    match &node.value {
        Value::Map(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => &[],
    }
}

/// The elements of a list; none of anything else.
pub(super) fn elements(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(elements) => elements,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Map(_) => &[],
    }
}

/// The text of one; `None` for anything else.
pub(super) fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text(text) => Some(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => None,
    }
}

/// Looks for servers in a file.
pub(super) struct Search<'a> {
    ground: &'a Ground,
    groups: Vec<Group<'a>>,
    problems: Vec<Problem>,
}

impl<'a> Search<'a> {
    /// The groups of servers of a JSON file.
    ///
    /// # Errors
    ///
    /// None is there, or what should hold servers is no mapping.
    pub(super) fn json(root: &'a Node, ground: &'a Ground) -> Result<Vec<Group<'a>>, Vec<Problem>> {
        let usual = if ground.is_in(".gemini") { Form::Gemini } else { Form::Usual };
        let top = members(root);
        let mut search = Search { ground, groups: Vec::new(), problems: Vec::new() };
        let inputs = last(top, "inputs").map_or(&[][..], |inputs| elements(&inputs.value));
        search.all(top, "mcpServers", usual, &[]);
        search.all(top, "amp.mcpServers", usual, &[]);
        search.all(top, "servers", Form::VsCode, inputs);
        search.all(top, "mcp.servers", Form::VsCode, &[]);
        search.all(top, "context_servers", Form::Zed, &[]);
        if let Some(mcp) = last(top, "mcp") {
            search.mcp(&mcp.value);
        }
        if let Some(customizations) = last(top, "customizations")
            && let Some(vscode) = last(members(&customizations.value), "vscode")
            && let Some(mcp) = last(members(&vscode.value), "mcp")
        {
            search.all(members(&mcp.value), "servers", Form::VsCode, last(members(&mcp.value), "inputs").map_or(&[], |i| elements(&i.value)));
        }
        if let Some(projects) = last(top, "projects") {
            search.projects(members(&projects.value));
        }
        let wanted =
            "no servers are named here: wanted `mcpServers`, `servers` (VS Code), `context_servers` (Zed), `mcp` (opencode) or `amp.mcpServers`";
        search.found(top, root.at, wanted, &["mcpServers", "servers", "context_servers", "mcp", "amp.mcpServers"])
    }

    /// The groups of servers of a TOML file.
    ///
    /// # Errors
    ///
    /// None is there, or what should hold servers is no table.
    pub(super) fn toml(root: &'a Node, ground: &'a Ground) -> Result<Vec<Group<'a>>, Vec<Problem>> {
        let mut search = Search { ground, groups: Vec::new(), problems: Vec::new() };
        search.all(members(root), "mcp_servers", Form::Codex, &[]);
        let wanted = "no servers are named here: wanted tables `[mcp_servers.NAME]`, as Codex has them";
        search.found(members(root), root.at, wanted, &["mcp_servers"])
    }

    fn found(mut self, top: &[Member], at: Place, wanted: &str, keys: &[&str]) -> Result<Vec<Group<'a>>, Vec<Problem>> {
        if self.groups.is_empty() && self.problems.is_empty() {
            let mut others = top.iter().filter(|member| !keys.contains(&member.key.as_str()));
            let slip = others.find_map(|member| Some((member, similar(&member.key, keys.iter().copied())?)));
            self.problems.push(match slip {
                Some((member, meant)) => {
                    Problem { at: member.at, message: format!("`{}` names no servers; did you mean `{meant}`?", printable(&member.key, 60)) }
                }
                None => Problem { at, message: wanted.to_owned() },
            });
        }
        if self.problems.is_empty() { Ok(self.groups) } else { Err(self.problems) }
    }

    /// The groups under `key`: the last counts, what stands before it is superseded.
    fn all(&mut self, among: &'a [Member], key: &str, form: Form, inputs: &'a [Node]) {
        let named: Vec<&Member> = among.iter().filter(|member| member.key == key).collect();
        let counts = named.last().map(|member| member.at);
        for member in named {
            let superseded = counts.filter(|at| *at != member.at);
            match &member.value.value {
                Value::Map(entries) => {
                    let project = self.ground.project.clone();
                    self.groups.push(Group { form, entries, inputs, project, tag: None, off: BTreeSet::new(), superseded });
                }
                Value::Null => {
                    let project = None;
                    self.groups.push(Group { form, entries: &[], inputs, project, tag: None, off: BTreeSet::new(), superseded });
                }
                other @ (Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_)) if superseded.is_none() => {
                    let message = format!("`{key}` is {}; wanted a mapping from names to servers", other.word());
                    self.problems.push(Problem { at: member.value.at, message });
                }
                Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => {}
            }
        }
    }

    /// `mcp`, which VS Code (in its settings) and opencode have, each in two notations.
    fn mcp(&mut self, mcp: &'a Node) {
        let inner = members(mcp);
        let by_name = self.ground.name.starts_with("opencode.");
        if last(inner, "servers").is_some_and(|servers| matches!(servers.value.value, Value::Map(_)) && !is_local(&servers.value)) {
            let servers = last(inner, "servers").map_or(&[][..], |servers| members(&servers.value));
            let form = if by_name || servers.iter().any(|server| is_local(&server.value)) { Form::Opencode } else { Form::VsCode };
            let inputs = last(inner, "inputs").map_or(&[][..], |inputs| elements(&inputs.value));
            self.all(inner, "servers", form, inputs);
        } else if by_name || inner.iter().any(|server| is_local(&server.value)) {
            let project = self.ground.project.clone();
            self.groups.push(Group { form: Form::Opencode, entries: inner, inputs: &[], project, tag: None, off: BTreeSet::new(), superseded: None });
        }
    }

    /// `projects` of Claude Code's own file: the servers of each project, by its path.
    fn projects(&mut self, projects: &'a [Member]) {
        for project in projects {
            let inner = members(&project.value);
            let Some(servers) = last(inner, "mcpServers") else { continue };
            let path = Path::new(&project.key);
            let tag = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let off = last(inner, "disabledMcpServers").map_or(&[][..], |off| elements(&off.value));
            self.groups.push(Group {
                form: Form::Usual,
                entries: members(&servers.value),
                inputs: &[],
                project: path.is_absolute().then(|| path.to_owned()),
                tag,
                off: off.iter().filter_map(text).collect(),
                superseded: None,
            });
        }
    }
}

/// Whether this is an entry as only opencode writes it.
fn is_local(entry: &Node) -> bool {
    let entry = members(entry);
    let kind = last(entry, "type").and_then(|kind| text(&kind.value));
    matches!(kind, Some("local" | "remote")) || last(entry, "command").is_some_and(|command| matches!(command.value.value, Value::List(_)))
}
