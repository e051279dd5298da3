//! `stdiowatch diff`: what differs between two lock files, or a lock file and a report.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde::Serialize;

use super::args::{DiffArgs, DiffFormat};
use super::complain;
use super::lockfile::shown;
use crate::judge::{Drift, DriftStatus, Listing, LockFile, between};
use crate::show::difference;
use crate::words::{Redactor, ServerName};

/// What `--format json` prints.
#[derive(Serialize)]
struct Document<'d> {
    format: u32,
    servers: BTreeMap<&'d str, &'d Difference>,
}

/// How one server differs.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Difference {
    /// It is only in the new file.
    Added,
    /// It is only in the old one.
    Removed,
    /// It is in both.
    #[serde(untagged)]
    Both(Box<Both>),
}

#[derive(Serialize)]
struct Both {
    #[serde(flatten)]
    drift: Drift,
    /// Under which conditions each was taken, where they differ.
    conditions: Option<String>,
    /// How the server called itself, then and now; `None` where one of the two is not known.
    server: Option<[String; 2]>,
}

pub(super) fn run(args: &DiffArgs) -> ExitCode {
    match diff(args) {
        Ok(same) => ExitCode::from(u8::from(!same)),
        Err(error) => complain(&error),
    }
}

fn diff(args: &DiffArgs) -> anyhow::Result<bool> {
    let (old, new) = (read(&args.old)?, read(&args.new)?);
    let differences = differences(&old, &new);
    if differences.is_empty() {
        bail!("neither {} nor {} has a server in it", shown(&args.old), shown(&args.new));
    }
    let text = match args.format {
        DiffFormat::Human => {
            let stdout = std::io::stdout();
            human(&differences, stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()))
        }
        DiffFormat::Json => {
            let servers = differences.iter().map(|(name, difference)| (name.as_str(), difference)).collect();
            serde_json::to_string_pretty(&Document { format: 1, servers }).context("cannot write the differences")? + "\n"
        }
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("cannot write the differences"),
        _ => Ok(differences.values().all(|difference| matches!(difference, Difference::Both(both) if both.drift.status == DriftStatus::Same))),
    }
}

fn read(path: &Path) -> anyhow::Result<LockFile> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", shown(path)))?;
    LockFile::parse_any(&text).map_err(|error| anyhow::anyhow!("{}:{error}", shown(path)))
}

/// Server by server; where each file has one server only, the two are compared whatever they are called.
fn differences(old: &LockFile, new: &LockFile) -> BTreeMap<String, Difference> {
    if let (Some((then, a)), Some((now, b)), 1, 1) =
        (old.servers.first_key_value(), new.servers.first_key_value(), old.servers.len(), new.servers.len())
    {
        let name = if then == now { then.to_string() } else { format!("{then} → {now}") };
        return [(name, both(a, b))].into();
    }
    let names: BTreeSet<&ServerName> = old.servers.keys().chain(new.servers.keys()).collect();
    names
        .into_iter()
        .map(|name| {
            let difference = match (old.servers.get(name), new.servers.get(name)) {
                (Some(then), Some(now)) => both(then, now),
                (Some(_), None) => Difference::Removed,
                (None, _) => Difference::Added,
            };
            (name.to_string(), difference)
        })
        .collect()
}

fn both(then: &Listing, now: &Listing) -> Difference {
    let drift = between(then, now, &Redactor::none());
    let called = |listing: &Listing| listing.conditions.server.as_ref().map(|s| format!("{} {}", s.name, s.version).trim_end().to_owned());
    let server = match (called(then), called(now)) {
        (Some(then), Some(now)) => Some([then, now]),
        _ => None,
    };
    // A report does not say what the fingerprint was.
    let known = |listing: &Listing| !listing.conditions.environment.fingerprint.is_empty();
    let conditions = if known(then) && known(now) { then.conditions.differ(&now.conditions) } else { None };
    Difference::Both(Box::new(Both { drift, conditions, server }))
}

fn human(differences: &BTreeMap<String, Difference>, colours: bool) -> String {
    let mut text = String::new();
    for (name, difference) in differences {
        match difference {
            Difference::Added => text.push_str(&format!("{name}: only in the new one\n")),
            Difference::Removed => text.push_str(&format!("{name}: only in the old one\n")),
            Difference::Both(both) => {
                let same = if both.drift.status == DriftStatus::Same { ": the same" } else { "" };
                let version = match &both.server {
                    Some([then, now]) if then != now => format!(" ({then} → {now})"),
                    // The case to look at twice: nothing says that it is another release.
                    Some([then, _]) if both.drift.status != DriftStatus::Same => format!(" (it calls itself {then} in both)"),
                    Some(_) | None => String::new(),
                };
                text.push_str(&format!("{name}{version}{same}\n"));
                if let Some(why) = &both.conditions {
                    text.push_str(&format!("  taken under other conditions: {why}\n"));
                }
                text.push_str(&difference::text(&both.drift, colours));
            }
        }
    }
    text
}
