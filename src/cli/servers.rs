//! Which servers a subcommand is about: one given as a command, or those of configuration files.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;

use super::args::ServerArgs;
use super::lockfile::{self, Named, shown};
use crate::config::{self, Configuration, Configured, FileProblem, Skipped};
use crate::ledger::Unwatched;
use crate::running::Watched;
use crate::words::{ServerName, printable};

/// Where lock files are, unless told otherwise.
pub(super) const LOCK: &str = "mcp.lock.json";

/// The servers that were asked for.
pub(super) struct Chosen {
    pub(super) servers: Vec<Watched>,
    /// Those whose file says how often to probe them, though the command line does too.
    pub(super) own_interval: Vec<ServerName>,
    /// Entries of files that cannot be watched.
    pub(super) skipped: Vec<Skipped>,
    /// Keys of files that nobody reads.
    pub(super) slips: Vec<FileProblem>,
    /// What the files say of where to listen and to keep things.
    pub(super) listen: Option<String>,
    pub(super) state_dir: Option<PathBuf>,
    pub(super) web_config: Option<PathBuf>,
    pub(super) show_private: Option<bool>,
    /// All files that this was read from.
    pub(super) files: Vec<PathBuf>,
}

/// Everything that is wrong with configuration files, a line each.
#[derive(Debug)]
pub(super) struct Wrong(pub(super) Vec<FileProblem>);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(FileProblem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Wrong {}

/// The server given as a command, probed every `interval`; or those of the files, or the ones among them that `names`
/// names, probed every `interval` where their file does not say. With what their lock files say of them.
///
/// # Errors
///
/// When that makes no sense, or a file is wrong. Nothing was launched.
pub(super) fn chosen(args: &ServerArgs, names: &[String], interval: Option<Duration>) -> anyhow::Result<Chosen> {
    let mut chosen = located(args, names, interval)?;
    let named = if args.config.is_empty() { Named::There } else { Named::InFile };
    lockfile::load(&mut chosen.servers, named)?;
    Ok(chosen)
}

/// The same, read again while `serve` runs: that there is no server left to watch is no mistake then, unless its entry is one.
pub(super) fn again(args: &ServerArgs, interval: Option<Duration>) -> anyhow::Result<Chosen> {
    let mut chosen = named(args, &[], interval)?;
    if chosen.skipped.iter().any(|skipped| skipped.broken) {
        chosen.are_some(args)?;
    }
    lockfile::load(&mut chosen.servers, Named::InFile)?;
    Ok(chosen)
}

/// The same, without looking into lock files.
pub(super) fn located(args: &ServerArgs, names: &[String], interval: Option<Duration>) -> anyhow::Result<Chosen> {
    let chosen = named(args, names, interval)?;
    chosen.are_some(args)?;
    Ok(chosen)
}

/// Those with these names, maybe none.
fn named(args: &ServerArgs, names: &[String], interval: Option<Duration>) -> anyhow::Result<Chosen> {
    if args.config.is_empty() {
        if let Some(word) = names.first() {
            bail!(
                "\"{}\" is not expected here; a server's command and its arguments come after --, names of servers need --config",
                printable(word, 60)
            );
        }
        let server = args.watched(interval.unwrap_or(config::INTERVAL))?;
        return Ok(Chosen::of(vec![server]));
    }
    if let Some(option) = args.of_a_command() {
        bail!("--{option} is for a server that is given as a command; write it into the file for those of --config");
    }
    let configuration = config::load(&args.config, &|name| std::env::var(name).ok()).map_err(Wrong)?;
    let Configuration { listen, state_dir, web_config, show_private, servers, skipped, slips, files } = configuration;
    let mut own_interval = Vec::new();
    let mut servers: Vec<Watched> = servers
        .into_iter()
        .map(|Configured { mut watched, places, .. }| {
            match (interval, places.interval) {
                (Some(_), Some(_)) => own_interval.push(watched.name.clone()),
                (Some(interval), None) => watched.interval = interval,
                (None, _) => {}
            }
            watched
        })
        .collect();
    for server in &mut servers {
        if server.schema.lock.is_none() {
            server.schema.lock.clone_from(&args.lock);
        }
    }
    let mut chosen = Chosen { servers, own_interval, skipped, slips, listen, state_dir, web_config, show_private, files };
    chosen.restrict(names)?;
    Ok(chosen)
}

impl Chosen {
    /// These servers, and no file.
    pub(super) fn of(servers: Vec<Watched>) -> Chosen {
        Chosen {
            servers,
            own_interval: Vec::new(),
            skipped: Vec::new(),
            slips: Vec::new(),
            listen: None,
            state_dir: None,
            web_config: None,
            show_private: None,
            files: Vec::new(),
        }
    }

    /// Refuses files in which there is nothing to watch, and says why that is so.
    fn are_some(&self, args: &ServerArgs) -> anyhow::Result<()> {
        if self.servers.is_empty() {
            let why: Vec<String> = self.skipped.iter().map(told).collect();
            let files: Vec<String> = args.config.iter().map(|file| shown(file)).collect();
            bail!("there is no server to watch in {}{}{}", files.join(", "), if why.is_empty() { "" } else { ": " }, why.join("; "));
        }
        Ok(())
    }

    /// All files that say something of the servers: their own, those that these name, lock files.
    pub(super) fn followed(&self) -> Vec<PathBuf> {
        let locks = self.servers.iter().filter_map(|server| server.schema.lock.as_ref());
        let mut seen = BTreeSet::new();
        self.files.iter().chain(locks).filter(|file| seen.insert(*file)).cloned().collect()
    }

    /// Keeps the servers with these names; all of them if there are none.
    fn restrict(&mut self, names: &[String]) -> anyhow::Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if self.servers.iter().any(|server| server.name.as_str() == name) {
                continue;
            }
            if let Some(skipped) = self.skipped.iter().find(|skipped| skipped.name == *name) {
                bail!("{}", told(skipped));
            }
            let known: Vec<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
            bail!("there is no server \"{}\"; there are: {}", printable(name, 100), known.join(", "));
        }
        self.servers.retain(|server| names.iter().any(|name| server.name.as_str() == name));
        self.skipped.clear();
        self.slips.clear();
        Ok(())
    }
}

/// What is skipped and why, with its place.
pub(super) fn told(skipped: &Skipped) -> String {
    let name = printable(&skipped.name, 100);
    let how = if skipped.broken { "broken, and cannot be watched" } else { "skipped" };
    format!("{}:{}: \"{name}\" is {how}: {}", shown(&skipped.file), skipped.at, skipped.why)
}

/// The same, to be shown elsewhere.
pub(super) fn unwatched(skipped: &[Skipped]) -> Vec<Unwatched> {
    let entry = |skipped: &Skipped| Unwatched {
        name: skipped.name.clone(),
        file: shown(&skipped.file),
        line: skipped.at.line,
        column: skipped.at.column,
        why: skipped.why.clone(),
        broken: skipped.broken,
    };
    skipped.iter().map(entry).collect()
}

/// Where the lock file of a server of these files is that names none: beside the first of them.
pub(super) fn usual_lock(files: &[PathBuf]) -> PathBuf {
    let beside = files.first().and_then(|file| file.parent()).unwrap_or(Path::new(""));
    beside.join(LOCK)
}
