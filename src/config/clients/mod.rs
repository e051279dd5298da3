//! The files that MCP clients already have.
//!
//! | where servers stand | whose | notation |
//! |---|---|---|
//! | `mcpServers` | Claude Desktop, Claude Code (`.mcp.json`, `~/.claude.json`), Cursor, Windsurf, Cline, Roo, LM Studio, Copilot CLI | usual |
//! | `projects.PATH.mcpServers` | Claude Code (`~/.claude.json`) | usual, named `NAME@DIRECTORY` |
//! | `mcpServers` in `.gemini/` | Gemini CLI | usual, and `$NAME` |
//! | `amp.mcpServers` | Amp | usual |
//! | `servers`, `mcp.servers`, `customizations.vscode.mcp.servers` | VS Code (`mcp.json`, `settings.json`, `devcontainer.json`) | VS Code's |
//! | `context_servers` | Zed (`settings.json`), flat and with a mapping in `command` | Zed's |
//! | `mcp`, `mcp.servers` | opencode 1 and 2 | opencode's |
//! | `mcp_servers` | Codex (`config.toml`) | Codex' |
//!
//! What that rests on, all of it looked up in November 2026; "source" is the client's own:
//!
//! - **VS Code**, source: `mcpConfiguration.ts` (keys), `extHostMcpNode.ts` at `0334cc0` (its whole
//!   environment, then `envFile`, then `env`; `PATH` added to its own; `~` in command, arguments and
//!   `cwd`; `cwd` defaults to the workspace folder, or to the home), `envfile.ts`. Placeholders are those of
//!   its variables reference; an unknown `${…}` stays as it is.
//! - **Codex**, source: `codex-rs/config/src/mcp_types.rs` at `00b17c2`, `rmcp-client/src/utils.rs` at
//!   `08e9165`: `env_vars` that are set, then `env`, over HOME, LOGNAME, PATH, SHELL, USER, TERM, LANG,
//!   `LC_ALL`, TMPDIR and TZ. The last four are not handed on here, because values that are set for a
//!   server are masked in everything that is shown of it. No placeholders.
//! - **Zed**, source: `settings_content/src/project.rs` at `006ce51`, `stdio_transport.rs` (adds `env`
//!   to its whole environment), and its documentation for the older notations. No placeholders.
//! - **opencode**, source of 1 (adds `environment` to its whole environment; `{env:NAME}`, and
//!   `{file:PATH}` from the directory of the file, trimmed) and documentation of 2 (`mcp.servers`,
//!   `disabled`).
//! - **Gemini CLI**, source: `envVarResolver.ts` at `04fbf50` (`$NAME`, `${NAME}`); `docs/tools/mcp-server.md`
//!   (`httpUrl` before `url` before `command`).
//! - **Roo**, source: `McpHub.ts` at `022b3b0`, `utils/config.ts` (`${env:NAME}`, `${workspaceFolder}`; cwd is
//!   the workspace folder). **Cline**, source: `mcp/schemas.ts` at `1a19637` (`command` wins over `url`).
//! - **Claude Code**, documentation (`${NAME}`, `${NAME:-default}` in command, args, env). **Cursor**,
//!   documentation (`${env:NAME}`, `${userHome}`, `${workspaceFolder}`, `envFile`). **Windsurf**, documentation
//!   (`serverUrl`, `${env:NAME}`; `${file:PATH}`, which is not filled here). **LM Studio**,
//!   documentation: "follows Cursor's notation". **Amp**: what vendors of servers publish (`${NAME}`).
//!   Claude Desktop publishes no placeholders; the usual ones are filled there too.
//!
//! What follows from it:
//!
//! - The environment is the six variables of the SDKs' clients, and all of ours where the client's
//!   source hands its whole one on: VS Code, Zed, opencode.
//! - A command with a space in it is one name, as it is for every client whose source is known: none starts a
//!   shell on Linux.
//! - Where several clients share a notation, its placeholders are filled for all of them.
//! - Keys that are not about launching are nobody's business here, timeouts of tool calls among them.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::fill::Filler;
use self::ground::Ground;
use self::groups::{Group, Search, members};
use super::expand::HARMLESS;
use super::tree::{Place, Problem};
use super::{Configured, Skipped};
use crate::outside::process::LaunchSpec;
use crate::running::Watched;
use crate::words::{ServerName, printable};

mod entry;
mod fill;
mod ground;
mod groups;
mod jsonc;
mod lines;
mod names;
mod slips;
mod toml;

/// The largest file that is read, in bytes: `~/.claude.json` holds much besides servers.
pub const MAX_BYTES: usize = 16 << 20;

/// What a client's file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// What can be watched, in the order of the file.
    pub servers: Vec<Configured>,
    /// What cannot, in the order of the file.
    pub skipped: Vec<Skipped>,
    /// Keys that clients pass over, and what may have been meant.
    pub slips: Vec<Problem>,
    /// The files that entries point at, those that could not be read included.
    pub files: Vec<PathBuf>,
}

/// Whether a file of this name is read as a client's: `.json`, `.jsonc` or `.toml`.
#[must_use]
pub fn is_named_like_one(file: &Path) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    matches!(extension.as_deref(), Some("json" | "jsonc" | "toml"))
}

/// The text of a file, without its byte-order mark.
///
/// # Errors
///
/// It is larger than [`MAX_BYTES`], or not UTF-8.
pub fn decode(bytes: &[u8]) -> Result<&str, Problem> {
    let problem = |at, message: String| Problem { at, message };
    let start = Place { line: 1, column: 1 };
    if bytes.len() > MAX_BYTES {
        return Err(problem(start, format!("the file has {} bytes; {MAX_BYTES} are read at the most", bytes.len())));
    }
    if matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..]) {
        return Err(problem(start, "the file is UTF-16; wanted UTF-8: save it with that encoding".to_owned()));
    }
    match str::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let before = String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default());
            Err(problem(lines::Lines::of(&before).at(before.len()), "a byte here is not UTF-8".to_owned()))
        }
    }
}

/// Reads a client's file: TOML when its name ends in `.toml`, and otherwise JSON with comments and
/// trailing commas.
///
/// `usual` makes a server of a name and a process, with whatever holds for all of them; `env` reads our
/// environment. The path of `file` says which project the file belongs to; files that an entry points
/// at (`envFile`, `{file:…}`) are read.
///
/// # Errors
///
/// What makes the whole file useless: too large, a mistake of syntax, no servers in it. An entry that is
/// wrong is among the skipped ones.
pub fn read(
    text: &str,
    file: &Path,
    usual: &dyn Fn(ServerName, LaunchSpec) -> Watched,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Found, Vec<Problem>> {
    let text = decode(text.as_bytes()).map_err(|problem| vec![problem])?;
    let ground = Ground::of(file, env);
    let is_toml = ground.name.to_ascii_lowercase().ends_with(".toml");
    let root = if is_toml { toml::read(text) } else { jsonc::read(text) }.map_err(|problem| vec![problem])?;
    let groups = if is_toml { Search::toml(&root, &ground) } else { Search::json(&root, &ground) }?;
    let mut reading = Reading { file: file.to_owned(), launches: Vec::new(), skipped: Vec::new(), slips: Vec::new() };
    // What comes from our environment may be a secret, wherever in the file it is filled in.
    let secrets = RefCell::new(Vec::new());
    let files = RefCell::new(Vec::new());
    let env = |name: &str| {
        let value = env(name)?;
        if !HARMLESS.contains(&name) {
            secrets.borrow_mut().push(value.clone());
        }
        Some(value)
    };
    for group in &groups {
        let filler = Filler { form: group.form, ground: &ground, project: group.project.as_deref(), inputs: group.inputs, env: &env, files: &files };
        reading.group(group, &filler);
    }
    let mut found = reading.named(usual);
    found.files = files.into_inner();
    for server in &mut found.servers {
        server.watched.secrets.clone_from(&secrets.borrow());
    }
    Ok(found)
}

/// What has been read so far.
struct Reading {
    file: PathBuf,
    /// What can be launched: the name that the file gives it, and the place of its entry.
    launches: Vec<(String, Place, entry::Launch)>,
    skipped: Vec<Skipped>,
    slips: Vec<Problem>,
}

impl Reading {
    fn group(&mut self, group: &Group<'_>, filler: &Filler<'_>) {
        for (member, again) in group.entries.iter().zip(group.again()) {
            let name = group.tag.as_ref().map_or_else(|| member.key.clone(), |tag| format!("{}@{tag}", member.key));
            let read = match (group.superseded, again) {
                (Some(at), _) | (None, Some(at)) => {
                    let what = if group.superseded.is_some() { "the mapping that it is in" } else { "its name" };
                    let why = format!("{what} stands again at {at}, and clients take the last");
                    Err(entry::Refusal { at: member.at, why, broken: true })
                }
                (None, None) if member.key.is_empty() => Err(entry::Refusal { at: member.at, why: "it has no name".to_owned(), broken: true }),
                (None, None) if group.off.contains(&member.key.as_str()) => {
                    Err(entry::Refusal { at: member.at, why: "it is switched off by `disabledMcpServers`".to_owned(), broken: false })
                }
                (None, None) => entry::read(member, filler),
            };
            let slips = slips::slips(members(&member.value), group.form);
            match read {
                Ok(launch) => {
                    self.launches.push((name, member.at, launch));
                    self.slips.extend(slips);
                }
                Err(entry::Refusal { at, mut why, broken }) => {
                    // It may be wrong for that.
                    for Problem { at, message } in slips.iter().filter(|_| broken) {
                        why.push_str(&format!("; {at}: {message}"));
                    }
                    self.skipped.push(Skipped { name: printable(&name, 100), file: self.file.clone(), at, why, broken });
                }
            }
        }
    }

    /// Everything, with names that are all different.
    fn named(self, usual: &dyn Fn(ServerName, LaunchSpec) -> Watched) -> Found {
        let Reading { file, mut launches, mut skipped, mut slips } = self;
        slips.sort_by_key(|slip| slip.at);
        launches.sort_by_key(|(_, at, _)| *at);
        skipped.sort_by_key(|skipped| skipped.at);
        let wanted: Vec<String> = launches.iter().map(|(name, ..)| name.clone()).collect();
        let mut servers = Vec::with_capacity(launches.len());
        for (name, (_, at, entry::Launch { spec, startup, places })) in names::unique(&wanted).into_iter().zip(launches) {
            // An empty name was skipped before, and every other one can be made one.
            let Some(name) = name else { continue };
            let watched = with_startup(usual(name, spec), startup);
            servers.push(Configured { watched, file: file.clone(), at, places });
        }
        Found { servers, skipped, slips, files: Vec::new() }
    }
}

/// `watched` with the time to start that its client gives it, and the same time as before for the rest.
fn with_startup(mut watched: Watched, startup: Option<Duration>) -> Watched {
    let Some(startup) = startup else { return watched };
    let times = &mut watched.times;
    times.total = times.total.saturating_add(startup.saturating_sub(times.startup));
    times.startup = startup;
    times.discovery = times.discovery.min(startup);
    watched
}
