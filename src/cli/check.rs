//! `stdiowatch check`: probe once, say what was seen, exit.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::args::{CheckArgs, Format};
use super::output::{Checked, Output, create};
use super::progress::Progress;
use super::signals::Signals;
use super::{complain, unusable};
use crate::judge::{Rules, judge};
use crate::outside::process::GuardCommand;
use crate::probe::{Plan, Recording};
use crate::running::{Job, Known, Launchpad, Onlooker, Outcome, Watched};
use crate::words::ServerName;

/// How many servers are probed at the same time: a probe mostly waits, and a host has to hold what it waits for.
const AT_ONCE: usize = 8;

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
        return output.write(vec![replayed(path, args.server.rules())?]);
    }
    let servers = vec![args.server.watched(Duration::from_secs(60))?];
    let output = Output::open(args)?;
    let record = args.record.as_deref().map(create).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let (probed, signal) = runtime.block_on(probe(&servers, args))?;
    let mut checked = Vec::new();
    let mut recordings = String::new();
    for Probed { place, plan, outcome } in probed {
        recordings.extend(outcome.recording.map(|recording| recording.to_lines()));
        checked.push(Checked { report: outcome.report, plan, rules: Arc::clone(&servers[place].rules) });
    }
    if let Some(mut file) = record {
        file.write_all(recordings.as_bytes()).context("cannot write the recording")?;
    }
    let status = output.write(checked)?;
    Ok(match signal {
        // As a shell reports a command that a signal ended.
        Some(number) => ExitCode::from(128u8.saturating_add(number)),
        None => status,
    })
}

/// Judges a recorded probe anew.
fn replayed(path: &Path, rules: Rules) -> anyhow::Result<Checked> {
    let shown = crate::words::printable(&path.to_string_lossy(), 300);
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let recording = Recording::from_lines(&text).with_context(|| format!("{shown} is no recording of a probe"))?;
    let name = ServerName::new(&recording.server).with_context(|| format!("{shown}: the server's name"))?;
    let report = judge(&name, recording.started_at.clone(), &recording.replay(), &rules, None);
    Ok(Checked { report, plan: recording.plan, rules: Arc::new(rules) })
}

/// A probe that was made.
struct Probed {
    /// Of which server: an index.
    place: usize,
    plan: Plan,
    outcome: Outcome,
}

/// Probes the servers, some at a time. A signal ends the probes that are running politely, and no more begin; its number
/// is returned, with the outcomes that there are, in the servers' order.
async fn probe(servers: &[Watched], args: &CheckArgs) -> anyhow::Result<(Vec<Probed>, Option<u8>)> {
    let mut signals = Signals::catch()?;
    let (stop, stopped) = watch::channel(false);
    let launchpad = Arc::new(Launchpad::start(GuardCommand::own(), stopped).context("cannot launch anything")?);
    let mut progress = Progress::new(servers.iter().map(|s| s.name.clone()), args.quiet, args.verbose);
    let mut waiting = servers.iter().enumerate();
    let mut running: JoinSet<Option<Probed>> = JoinSet::new();
    let mut probed = Vec::new();
    let mut caught = None;
    loop {
        while running.len() < AT_ONCE
            && caught.is_none()
            && let Some((place, server)) = waiting.next()
        {
            let plan = server.plan(Known::default(), true);
            let job = job(server, plan.clone(), args.record.is_some(), progress.begins(place));
            let launchpad = Arc::clone(&launchpad);
            running.spawn(async move { Some(Probed { place, plan, outcome: launchpad.probe(job).await? }) });
        }
        tokio::select! {
            over = running.join_next() => match over {
                None => break,
                Some(over) => {
                    let over = over.ok().flatten().context("the launching thread ended")?;
                    progress.ends(over.place);
                    probed.push(over);
                }
            },
            (_, number) = signals.next() => {
                caught.get_or_insert(number);
                let _ = stop.send(true);
            }
            () = progress.turn() => {}
        }
    }
    progress.end();
    probed.sort_by_key(|probed| probed.place);
    Ok((probed, caught))
}

fn job(server: &Watched, plan: Plan, record: bool, onlooker: Onlooker) -> Job {
    let (name, spec, rules) = (server.name.clone(), Arc::clone(&server.spec), Arc::clone(&server.rules));
    Job { name, spec, plan, rules, baseline: None, record, coexists: false, onlooker }
}
