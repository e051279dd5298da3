//! One probe of each of several servers, for the subcommands that probe once.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::progress::Progress;
use super::signals::Signals;
use crate::outside::process::GuardCommand;
use crate::probe::Plan;
use crate::running::{Job, Known, Launchpad, Onlooker, Outcome, Watched};

/// How many servers are probed at the same time: a probe mostly waits, and a host has to hold what it waits for.
const AT_ONCE: usize = 8;

/// How the probes are made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    /// Record them.
    pub(super) record: bool,
    /// Show no progress.
    pub(super) quiet: bool,
    /// Show what goes over the servers' pipes.
    pub(super) verbose: bool,
}

/// A probe that was made.
pub(super) struct Probed {
    /// Of which server: an index.
    pub(super) place: usize,
    pub(super) plan: Plan,
    pub(super) outcome: Outcome,
}

/// Probes the servers, some at a time. A signal ends the probes that are running politely, and no more begin; its number
/// is returned, with the outcomes that there are, in the servers' order.
///
/// # Errors
///
/// When nothing can be launched at all.
pub(super) fn probe_all(servers: &[Watched], manner: Manner) -> anyhow::Result<(Vec<Probed>, Option<u8>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(probe(servers, manner))
}

async fn probe(servers: &[Watched], manner: Manner) -> anyhow::Result<(Vec<Probed>, Option<u8>)> {
    let mut signals = Signals::catch()?;
    let (stop, stopped) = watch::channel(false);
    let launchpad = Arc::new(Launchpad::start(GuardCommand::own(), stopped).context("cannot launch anything")?);
    let mut progress = Progress::new(servers.iter().map(|s| s.name.clone()), manner.quiet, manner.verbose);
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
            let job = job(server, plan.clone(), manner.record, progress.begins(place));
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

/// The first probe of a server of which nothing is known.
fn job(server: &Watched, plan: Plan, record: bool, onlooker: Onlooker) -> Job {
    let (name, spec, rules) = (server.name.clone(), Arc::clone(&server.spec), Arc::clone(&server.rules));
    Job { name, spec, plan, rules, accepted: server.locked(), record, coexists: false, onlooker }
}
