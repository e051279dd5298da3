//! Files into a configuration: which reader each of them is for, and names that no two servers have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::clients;
use super::file::{LARGEST, text};
use super::keys::INTERVAL;
use super::tree::{Place, Problem};
use super::{Configuration, Configured, Env, FileProblem, Skipped, ours, shown};
use crate::running::Watched;
use crate::words::{ServerName, printable};

/// What one file says.
#[derive(Default)]
struct Said {
    listen: Option<(String, Place)>,
    state_dir: Option<(PathBuf, Place)>,
    web_config: Option<(PathBuf, Place)>,
    show_private: Option<(bool, Place)>,
    servers: Vec<Configured>,
    skipped: Vec<Skipped>,
    slips: Vec<FileProblem>,
    files: Vec<PathBuf>,
}

/// Reads configuration files, ours and those of MCP clients. A file that is given twice is read once. A
/// name that stands in several files is told apart by them: `files (cursor)`, `files (mcp.json)`.
///
/// `env` is the environment that `${NAME}` is taken from.
///
/// # Errors
///
/// Everything that is wrong, by file and place; there is at least one problem.
pub fn load(paths: &[PathBuf], env: Env<'_>) -> Result<Configuration, Vec<FileProblem>> {
    let mut seen = BTreeSet::new();
    let different = paths.iter().filter(|path| seen.insert(fs::canonicalize(path).unwrap_or_else(|_| (*path).clone())));
    put_together(&mut different.map(|path| (path, one(path, env))))
}

/// Reads one configuration file whose text is at hand; `path` says of which kind it is, and what its relative paths are
/// taken from. Files that it names are read.
///
/// # Errors
///
/// The same.
pub fn read(text: &str, path: &Path, env: Env<'_>) -> Result<Configuration, Vec<FileProblem>> {
    put_together(&mut std::iter::once((&path.to_owned(), of_text(text, path, env))))
}

/// What a file says, or what is wrong with it.
type Read<'p> = (&'p PathBuf, Result<Said, Vec<FileProblem>>);

fn put_together(files: &mut dyn Iterator<Item = Read<'_>>) -> Result<Configuration, Vec<FileProblem>> {
    let mut configuration = Configuration::default();
    let mut problems = Vec::new();
    let mut listen = Global::new("listen");
    let mut state_dir = Global::new("state_dir");
    let mut web_config = Global::new("web_config");
    let mut show_private = Global::new("show_private");
    for (path, said) in files {
        configuration.files.push(path.clone());
        match said {
            Ok(said) => {
                problems.extend(listen.take(path, said.listen));
                problems.extend(state_dir.take(path, said.state_dir));
                problems.extend(web_config.take(path, said.web_config));
                problems.extend(show_private.take(path, said.show_private));
                configuration.servers.extend(said.servers);
                configuration.skipped.extend(said.skipped);
                configuration.slips.extend(said.slips);
                configuration.files.extend(said.files);
            }
            Err(wrong) => problems.extend(wrong),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    configuration.listen = listen.value();
    configuration.state_dir = state_dir.value();
    configuration.web_config = web_config.value();
    configuration.show_private = show_private.value();
    tell_apart(&mut configuration.servers);
    let mut kept = BTreeSet::new();
    configuration.files.retain(|file| kept.insert(file.clone()));
    Ok(configuration)
}

fn one(path: &Path, env: Env<'_>) -> Result<Said, Vec<FileProblem>> {
    let largest = if clients::is_named_like_one(path) { clients::MAX_BYTES as u64 } else { LARGEST };
    let text = text(path, largest).map_err(|problem| vec![FileProblem { file: path.to_owned(), problem }])?;
    of_text(&text, path, env)
}

fn of_text(text: &str, path: &Path, env: Env<'_>) -> Result<Said, Vec<FileProblem>> {
    if is_clients(path, text) {
        return of_client(text, path, env);
    }
    let ours::Ours { listen, state_dir, web_config, show_private, servers, files } = ours::read(text, path, env)?;
    Ok(Said { listen, state_dir, web_config, show_private, servers, files, ..Said::default() })
}

/// What the file of an MCP client says.
fn of_client(text: &str, path: &Path, env: Env<'_>) -> Result<Said, Vec<FileProblem>> {
    let usual = |name, spec| Watched::new(name, spec, INTERVAL);
    let in_file = |problem| FileProblem { file: path.to_owned(), problem };
    match clients::read(text, path, &usual, env) {
        Ok(clients::Found { servers, skipped, slips, files }) => {
            Ok(Said { servers, skipped, slips: slips.into_iter().map(in_file).collect(), files, ..Said::default() })
        }
        Err(problems) => Err(problems.into_iter().map(in_file).collect()),
    }
}

/// Whether a file is an MCP client's: by the end of its name, and otherwise by how it begins. TOML has to have
/// its name.
fn is_clients(path: &Path, text: &str) -> bool {
    let is_yaml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("yaml") || extension.eq_ignore_ascii_case("yml"));
    clients::is_named_like_one(path) || !is_yaml && text.trim_start().starts_with(['{', '/'])
}

/// What can be said in one file only.
struct Global<T> {
    key: &'static str,
    said: Option<(T, PathBuf, Place)>,
}

impl<T: PartialEq> Global<T> {
    fn new(key: &'static str) -> Global<T> {
        Global { key, said: None }
    }

    fn take(&mut self, file: &Path, value: Option<(T, Place)>) -> Option<FileProblem> {
        let (value, at) = value?;
        match &self.said {
            Some((first, other, place)) if *first != value => {
                let message = format!("`{}` is something else in {}:{place}", self.key, shown(other));
                Some(FileProblem { file: file.to_owned(), problem: Problem { at, message } })
            }
            Some(_) => None,
            None => {
                self.said = Some((value, file.to_owned(), at));
                None
            }
        }
    }

    fn value(self) -> Option<T> {
        self.said.map(|(value, ..)| value)
    }
}

/// Gives servers that share a name names of their own.
fn tell_apart(servers: &mut [Configured]) {
    let mut sharing: BTreeMap<ServerName, Vec<usize>> = BTreeMap::new();
    for (index, server) in servers.iter().enumerate() {
        sharing.entry(server.watched.name.clone()).or_default().push(index);
    }
    let mut taken: BTreeSet<ServerName> = sharing.keys().cloned().collect();
    for (name, indices) in sharing.iter().filter(|(_, indices)| indices.len() > 1) {
        let files: Vec<&Path> = indices.iter().filter_map(|i| servers.get(*i)).map(|server| server.file.as_path()).collect();
        for (index, new) in indices.iter().zip(names(name, &files, &taken)) {
            taken.insert(new.clone());
            if let Some(server) = servers.get_mut(*index) {
                server.watched.name = new;
            }
        }
    }
}

/// Names for servers that are all called `name`, by their files: by what tells all of them apart, and
/// numbered where nothing does.
fn names(name: &ServerName, files: &[&Path], taken: &BTreeSet<ServerName>) -> Vec<ServerName> {
    let by: [fn(&Path) -> String; 3] = [short, file_name, in_directory];
    for suffix in by {
        let names: Vec<ServerName> = files.iter().filter_map(|file| with_suffix(name, &suffix(file))).collect();
        let different: BTreeSet<&ServerName> = names.iter().collect();
        if different.len() == files.len() && different.iter().all(|name| !taken.contains(*name)) {
            return names;
        }
    }
    let mut given: Vec<ServerName> = Vec::new();
    for file in files {
        let is_free = |name: &ServerName| !taken.contains(name) && !given.contains(name);
        let numbered = (1..).filter_map(|n: u32| with_suffix(name, &format!("{} {n}", short(file)))).find(is_free);
        given.extend(numbered);
    }
    given
}

/// What people call the file: the client, where its directory is named for one (`.cursor/mcp.json`), and
/// otherwise the file's own name.
fn short(file: &Path) -> String {
    let directory = directory(file);
    match directory.strip_prefix('.') {
        Some(client) if !client.is_empty() && client != "." => client.to_owned(),
        _ => file_name(file),
    }
}

fn file_name(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

fn in_directory(file: &Path) -> String {
    format!("{} {}", directory(file), file_name(file))
}

/// The name of the directory that a file is in.
fn directory(file: &Path) -> String {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    absolute.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
}

/// `name (suffix)`, with as much of both as a name may hold.
fn with_suffix(name: &ServerName, suffix: &str) -> Option<ServerName> {
    const LONGEST_SUFFIX: usize = 40;
    let suffix: String = printable(&suffix.replace('/', " "), usize::MAX).replace(['(', ')'], "");
    let suffix = cut(&suffix, LONGEST_SUFFIX);
    let room = 100usize.saturating_sub(suffix.len() + " ()".len());
    ServerName::new(&format!("{} ({suffix})", cut(name.as_str(), room).trim_end())).ok()
}

/// The beginning of a text, this many bytes at the most.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}
