//! `stdiowatch check`: probe once, say what was seen, exit.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::watch;

use super::args::{CheckArgs, Format};
use super::lockfile;
use super::output::{Checked, Output, create};
use super::signals::Signals;
use super::{complain, unusable};
use crate::judge::{Accepted, Listing, Reference, Source, judge};
use crate::outside::process::GuardCommand;
use crate::probe::{Plan, Recording};
use crate::running::{Job, Known, Launchpad, Outcome, Watched};
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
        return output.write(vec![replayed(path, args)?]);
    }
    let mut server = args.server.watched(std::time::Duration::from_secs(60))?;
    Arc::make_mut(&mut server.rules).allowed.extend(&args.allow);
    lockfile::load(std::slice::from_mut(&mut server))?;
    let output = Output::open(args)?;
    let record = args.record.as_deref().map(create).transpose()?;
    let plan = server.plan(Known::default(), true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let (outcome, signal) = runtime.block_on(probe(&server, plan.clone(), record.is_some()))?;
    if let (Some(mut file), Some(recording)) = (record, outcome.recording) {
        std::io::Write::write_all(&mut file, recording.to_lines().as_bytes()).context("cannot write the recording")?;
    }
    let mut report = outcome.report;
    if let Some(listing) = &outcome.listed {
        report.add_items(listing, &server.redactor());
    }
    let status = output.write(vec![Checked { report, plan, rules: server.rules }])?;
    Ok(match signal {
        // As a shell reports a command that a signal ended.
        Some(number) => ExitCode::from(128u8.saturating_add(number)),
        None => status,
    })
}

/// Judges a recorded probe anew.
fn replayed(path: &Path, args: &CheckArgs) -> anyhow::Result<Checked> {
    let mut rules = args.server.rules();
    rules.allowed.extend(&args.allow);
    let shown = crate::words::printable(&path.to_string_lossy(), 300);
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let recording = Recording::from_lines(&text).with_context(|| format!("{shown} is no recording of a probe"))?;
    let name = ServerName::new(&recording.server).with_context(|| format!("{shown}: the server's name"))?;
    let accepted = args.server.lock.as_deref().map(|lock| lockfile::of_server(lock, &name)).transpose()?;
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

/// Probes the server. A signal ends the probe politely; its number is returned.
async fn probe(server: &Watched, plan: Plan, record: bool) -> anyhow::Result<(Outcome, Option<u8>)> {
    let mut signals = Signals::catch()?;
    let (stop, stopped) = watch::channel(false);
    let launchpad = Launchpad::start(GuardCommand::own(), stopped).context("cannot launch anything")?;
    let job = Job {
        name: server.name.clone(),
        spec: Arc::clone(&server.spec),
        plan,
        rules: Arc::clone(&server.rules),
        accepted: server.locked(),
        record,
        coexists: false,
    };
    let mut probe = std::pin::pin!(launchpad.probe(job));
    let mut caught = None;
    loop {
        let (_, number) = tokio::select! {
            outcome = &mut probe => return Ok((outcome.context("the launching thread ended")?, caught)),
            signal = signals.next() => signal,
        };
        caught.get_or_insert(number);
        let _ = stop.send(true);
    }
}
