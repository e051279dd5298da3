//! `stdiowatch check`: probe once, say what was seen, exit.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};

use super::args::{CheckArgs, Format};
use super::lockfile::{self, Named};
use super::output::{Checked, Output, create};
use super::probing::{Manner, Probed, probe_all};
use super::{complain, servers, unusable};
use crate::judge::{Accepted, Listing, Reference, Source, judge};
use crate::probe::Recording;
use crate::words::ServerName;

pub(super) fn run(args: CheckArgs) -> ExitCode {
    match check(&args) {
        Ok(code) => code,
        Err(error) if args.format == Format::Nagios => unusable(&format!("{error:#}")),
        Err(error) => complain(&error),
    }
}

fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.replay {
        let output = Output::open(args)?;
        return output.write(vec![replayed(path, args)?], &[]);
    }
    let mut chosen = servers::chosen(&args.server, &args.names, None)?;
    if args.record.is_some() && chosen.servers.len() > 1 {
        bail!("--record writes one probe: name one of the {} servers", chosen.servers.len());
    }
    for skipped in &chosen.skipped {
        eprintln!("stdiowatch: {}", servers::told(skipped));
    }
    for slip in &chosen.slips {
        eprintln!("stdiowatch: {slip}");
    }
    if !args.allow.is_empty() && chosen.servers.iter().all(|server| server.schema.locked.is_none()) {
        bail!("{NO_LOCK}");
    }
    let unwatched = servers::unwatched(&chosen.skipped);
    let servers = &mut chosen.servers;
    for server in servers.iter_mut() {
        Arc::make_mut(&mut server.rules).allowed.extend(&args.allow);
    }
    let output = Output::open(args)?;
    let record = args.record.as_deref().map(create).transpose()?;
    let (probed, signal) = probe_all(servers, Manner { record: record.is_some(), quiet: args.quiet, verbose: args.verbose })?;
    let mut checked = Vec::new();
    let mut recordings = String::new();
    for Probed { place, plan, outcome } in probed {
        recordings.extend(outcome.recording.map(|recording| recording.to_lines()));
        let mut report = outcome.report;
        if let Some(listing) = &outcome.listed {
            report.add_items(listing, &servers[place].redactor());
        }
        checked.push(Checked { report, plan, rules: Arc::clone(&servers[place].rules) });
    }
    if let Some(mut file) = record {
        file.write_all(recordings.as_bytes()).context("cannot write the recording")?;
    }
    let status = output.write(checked, &unwatched)?;
    Ok(match signal {
        // As a shell reports a command that a signal ended.
        Some(number) => ExitCode::from(128u8.saturating_add(number)),
        None => status,
    })
}

/// Why `--allow` is refused.
const NO_LOCK: &str = "--allow is about what differs from a lock file, and there is none: give it by --lock, or as `schema: {lock: FILE}`";

/// Judges a recorded probe anew.
fn replayed(path: &Path, args: &CheckArgs) -> anyhow::Result<Checked> {
    if let Some(option) = args.server.of_a_launch() {
        bail!("--{option} is about how a server is probed, and what --replay judges was probed already");
    }
    if !args.allow.is_empty() && args.server.lock.is_none() {
        bail!("{NO_LOCK}");
    }
    let mut rules = args.server.rules();
    rules.allowed.extend(&args.allow);
    let shown = crate::words::printable(&path.to_string_lossy(), 300);
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let recording = Recording::from_lines(&text).with_context(|| format!("{shown} is no recording of a probe"))?;
    let name = ServerName::new(&recording.server).with_context(|| format!("{shown}: the server's name"))?;
    let accepted = args.server.lock.as_deref().map(|lock| lockfile::of_server(lock, &name, Named::There)).transpose()?;
    let accepted = accepted.map(|listing| Accepted { listing, source: Source::Lock });
    // What the server was configured with is not recorded: as far as is known, it was the same.
    let environment = accepted.as_ref().map(|a| a.listing.conditions.environment.clone()).unwrap_or_default();
    let reference = Reference { accepted: accepted.as_ref(), environment: &environment, ..Reference::nothing() };
    let observation = recording.replay();
    let mut report = judge(&name, recording.started_at.clone(), &observation, &rules, reference);
    if let Some(listing) = observation.judged().and_then(|launch| Listing::of(launch, &environment)) {
        report.add_items(&listing, reference.redactor);
    }
    Ok(Checked { report, plan: recording.plan, rules: Arc::new(rules) })
}
