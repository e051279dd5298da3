//! `stdiowatch lock`: write down what servers list.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

use super::args::LockArgs;
use super::lockfile::{self, shown};
use super::probing::{Manner, Probed, probe_all};
use super::{complain, servers};
use crate::judge::{DriftStatus, Listing, LockFile, Verdict, between};
use crate::protocol::mcp::ListKind;
use crate::running::{Outcome, Watched};
use crate::show::{counted, difference};
use crate::words::{Redactor, printable};

pub(super) fn run(args: &LockArgs) -> ExitCode {
    match lock(args) {
        Ok(code) => code,
        Err(error) => complain(&error),
    }
}

fn lock(args: &LockArgs) -> anyhow::Result<ExitCode> {
    let mut chosen = servers::located(&args.server, &args.names, None)?;
    for skipped in &chosen.skipped {
        eprintln!("stdiowatch: {}", servers::told(skipped));
    }
    let usual = servers::usual_lock(&args.server.config);
    let servers = &mut chosen.servers;
    let mut files: BTreeMap<PathBuf, (Option<LockFile>, LockFile)> = BTreeMap::new();
    for server in servers.iter_mut() {
        let path = server.schema.lock.take().unwrap_or_else(|| usual.clone());
        if !files.contains_key(&path) {
            let before = lockfile::read(&path)?;
            files.insert(path.clone(), (before.clone(), before.unwrap_or_default()));
        }
        server.schema.lock = Some(path);
    }
    let (outcomes, signal) = probe_all(servers, Manner::default())?;
    if let Some(number) = signal {
        return Ok(ExitCode::from(128u8.saturating_add(number)));
    }
    let mut worst = 0;
    for Probed { place, outcome, .. } in outcomes {
        let server = &servers[place];
        let reason = outcome.report.reason;
        match lockable(server, outcome) {
            Ok(listing) => {
                if let Some(reason) = reason {
                    eprintln!("stdiowatch: {}: its lists could be read, but `check` fails: {}", server.name, reason.as_str());
                }
                let path = server.schema.lock.as_deref().unwrap_or(&usual);
                if let Some((_, after)) = files.get_mut(path) {
                    tell(server, after.servers.get(&server.name), &listing);
                    after.servers.insert(server.name.clone(), listing);
                }
            }
            Err((why, status)) => {
                worst = worst.max(status);
                eprintln!("stdiowatch: {} is not locked: {why}", server.name);
            }
        }
    }
    if worst > 0 {
        eprintln!("stdiowatch: nothing was written");
        return Ok(ExitCode::from(if worst == 2 { 1 } else { 3 }));
    }
    finish(args.check, &files)
}

/// Keeps other runs from writing into the same directory until it is dropped.
fn hold(path: &Path) -> std::io::Result<std::fs::File> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let dir = std::fs::File::open(dir)?;
    rustix::fs::flock(&dir, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(dir)
}

/// What is to be written: what was locked now, and what others have written meanwhile.
fn merged(path: &Path, before: Option<&LockFile>, after: &LockFile) -> anyhow::Result<LockFile> {
    let mut merged = lockfile::read(path)?.unwrap_or_default();
    let locked = after.servers.iter().filter(|(name, listing)| before.and_then(|before| before.servers.get(*name)) != Some(*listing));
    merged.servers.extend(locked.map(|(name, listing)| (name.clone(), listing.clone())));
    Ok(merged)
}

/// What a probe has found, if it can be locked; or why not, and how bad that is: 1 if nothing can be
/// said, 2 if it is the server's.
fn lockable(server: &Watched, outcome: Outcome) -> Result<Listing, (String, u8)> {
    let report = &outcome.report;
    let Some(listing) = outcome.listed else {
        let finding = report.findings.iter().max_by_key(|f| f.severity);
        let found = finding.map_or_else(|| "nothing was listed".to_owned(), |f| format!("{}: {} ({})", f.code, f.message, f.evidence));
        let why = format!("its lists were not read to their end: {}", printable(&found, 600));
        return Err((why, if report.verdict == Verdict::Unknown { 1 } else { 2 }));
    };
    if listing.lists.is_empty() {
        return Err(("it lists nothing".to_owned(), 2));
    }
    if let Some(why) = report.schema.as_ref().and_then(|s| s.unfit.as_ref()) {
        return Err((printable(why, 600), 2));
    }
    if let Some(item) = listing.secret_in(&server.redactor()) {
        let whose = server.holders(|redactor| listing.secret_in(redactor).is_some()).join(" and of ");
        return Err((format!("{} holds the value of {}, which has no place in a file", printable(&item, 200), printable(&whose, 300)), 2));
    }
    Ok(listing)
}

/// Says what is new, in short.
fn tell(server: &Watched, before: Option<&Listing>, now: &Listing) {
    let counts: Vec<String> = ListKind::ALL.into_iter().filter_map(|list| Some(counted(now.count(list)?, list.word()))).collect();
    let mut text = format!("{}: {}\n", server.name, counts.join(", "));
    if let Some(before) = before {
        let drift = between(before, now, &Redactor::none());
        if drift.status == DriftStatus::Differs {
            text.push_str(&difference::text(&drift, false));
        } else if before.conditions != now.conditions {
            let why = before.conditions.differ(&now.conditions);
            let why = why.unwrap_or_else(|| "the server's version, its capabilities or the protocol's version are others".to_owned());
            text.push_str(&format!("  the lists are the same; {why}\n"));
        }
    }
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Writes the files, or says which would be other ones.
fn finish(check: bool, files: &BTreeMap<PathBuf, (Option<LockFile>, LockFile)>) -> anyhow::Result<ExitCode> {
    let mut stale = false;
    for (path, (before, after)) in files {
        let text = after.to_text();
        let same = before.as_ref().is_some_and(|before| before.to_text() == text);
        stale |= !same;
        let told = match (check, same) {
            (_, true) => format!("{} is up to date", shown(path)),
            (true, false) if before.is_none() => format!("{} does not exist; write it with `stdiowatch lock`", shown(path)),
            (true, false) => format!("{} would change; write it with `stdiowatch lock`", shown(path)),
            (false, false) => {
                let _held = hold(path).with_context(|| format!("cannot write {}", shown(path)))?;
                let text = merged(path, before.as_ref(), after)?.to_text();
                replace(path, &text).with_context(|| format!("cannot write {}", shown(path)))?;
                format!("{} written", shown(path))
            }
        };
        let _ = writeln!(std::io::stdout(), "{told}");
    }
    Ok(ExitCode::from(u8::from(check && stale)))
}

/// Writes a file as a whole, beside the old one and then over it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    // A link stays one: what it leads to is replaced.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut partial = target.clone().into_os_string();
    partial.push(format!(".{}.partial", std::process::id()));
    let written = std::fs::File::create(&partial).and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    let done = written.and_then(|()| std::fs::rename(&partial, &target));
    if done.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    done
}
