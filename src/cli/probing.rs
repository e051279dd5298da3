//! One probe of each of several servers, for the subcommands that probe once.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::watch;
use tokio::task::LocalSet;

use super::signals::Signals;
use crate::outside::process::GuardCommand;
use crate::running::{Job, Known, Launchpad, Outcome, Watched};

/// Probes all of `servers` at once, as far as there are cores to start them on; the outcomes come in
/// the order of the servers. A signal ends all the probes politely; its number is returned.
///
/// # Errors
///
/// When nothing can be launched at all.
pub(super) fn probe_all(servers: &[Watched], record: bool) -> anyhow::Result<(Vec<Outcome>, Option<u8>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    LocalSet::new().block_on(&runtime, probe(servers, record))
}

async fn probe(servers: &[Watched], record: bool) -> anyhow::Result<(Vec<Outcome>, Option<u8>)> {
    let mut signals = Signals::catch()?;
    let (stop, stopped) = watch::channel(false);
    let launchpad = Arc::new(Launchpad::start(GuardCommand::own(), stopped).context("cannot launch anything")?);
    let mut probes = Vec::new();
    for server in servers {
        let (launchpad, job) = (Arc::clone(&launchpad), job(server, record));
        probes.push(tokio::task::spawn_local(async move { launchpad.probe(job).await }));
    }
    let mut all = std::pin::pin!(async {
        let mut outcomes = Vec::new();
        for probe in probes {
            outcomes.push(probe.await.ok().flatten().context("the launching thread ended")?);
        }
        Ok(outcomes)
    });
    let mut caught = None;
    loop {
        let (_, number) = tokio::select! {
            outcomes = &mut all => return outcomes.map(|outcomes| (outcomes, caught)),
            signal = signals.next() => signal,
        };
        caught.get_or_insert(number);
        let _ = stop.send(true);
    }
}

/// The first probe of a server of which nothing is known.
fn job(server: &Watched, record: bool) -> Job {
    Job {
        name: server.name.clone(),
        spec: Arc::clone(&server.spec),
        plan: server.plan(Known::default(), true),
        rules: Arc::clone(&server.rules),
        accepted: server.locked(),
        record,
        coexists: false,
    }
}
