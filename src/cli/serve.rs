//! `stdiowatch serve`: watch servers, and show them over HTTP.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::watch;
use tokio::task::LocalSet;
use tracing::{info, warn};

use super::args::ServeArgs;
use super::signals::Signals;
use super::{complain, demo, lockfile, log};
use crate::ledger::ServerState;
use crate::outside::clock;
use crate::outside::process::GuardCommand;
use crate::outside::vault::file_name;
use crate::running::hub::Hub;
use crate::running::keeper::Keeper;
use crate::running::{Launchpad, Watched, watch};
use crate::serve::actions::Actions;
use crate::serve::listen::{self, Limits};
use crate::serve::own::Own;
use crate::serve::routes::{Sources, routes, with_manners};

/// From one probe to the next, unless told otherwise.
const INTERVAL: Duration = Duration::from_secs(60);
/// The same for the demo, which should show something soon.
const DEMO_INTERVAL: Duration = Duration::from_secs(10);

pub(super) fn run(args: ServeArgs) -> ExitCode {
    match serve(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error),
    }
}

/// Everything that can be wrong is found out before the first server is launched.
fn serve(args: &ServeArgs) -> anyhow::Result<()> {
    let mut servers = if args.demo {
        demo::servers(args.interval.unwrap_or(DEMO_INTERVAL))?
    } else {
        vec![args.server.watched(args.interval.unwrap_or(INTERVAL))?]
    };
    lockfile::load(&mut servers)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let signals = {
        let _inside = runtime.enter();
        Signals::catch()?
    };
    let listener = listen::bind(&args.listen)?;
    log::begin();
    let (stop, stopped) = watch::channel(false);
    let launchpad = Arc::new(Launchpad::start(GuardCommand::own(), stopped.clone()).context("cannot launch anything")?);
    let address = listener.local_addr().map_or_else(|_| args.listen.clone(), |a| a.to_string());
    for server in &servers {
        info!(server = server.name.as_str(), every = ?server.interval, "watching");
    }
    info!("listening on http://{address}/");
    let actions = Actions::new(args.enable_actions, listener.local_addr().is_ok_and(|a| a.ip().to_canonical().is_loopback()));
    if actions == Actions::NotHere {
        warn!("--enable-actions has no effect: {address} is no loopback address, and nobody who calls is known");
    }
    let keeper = state_dir(args, &servers).map(|dir| Keeper::open(&dir));
    let local = LocalSet::new();
    local.spawn_local(obey(signals, stop));
    local.block_on(&runtime, serve_until_stopped(servers, listener, actions, keeper, Arc::clone(&launchpad), stopped))
}

/// Where accepted schemas are kept: where it was said, or else where the XDG base directory
/// specification has it. The demo keeps nothing.
fn state_dir(args: &ServeArgs, servers: &[Watched]) -> Option<PathBuf> {
    if let Some(dir) = &args.state_dir {
        return Some(dir.clone());
    }
    if args.demo {
        return None;
    }
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let base = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    if base.is_none() {
        info!("nothing is kept over restarts: there is neither --state-dir nor XDG_STATE_HOME nor HOME");
    }
    // Each for itself: a directory has one user at a time.
    let name = servers.first().map_or("none", |server| server.name.as_str());
    Some(base?.join("stdiowatch").join(format!("command-{}", file_name(name))))
}

async fn serve_until_stopped(
    servers: Vec<Watched>,
    listener: std::net::TcpListener,
    actions: Actions,
    keeper: Option<Keeper>,
    launchpad: Arc<Launchpad>,
    mut stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let now = clock::now();
    let hub = Arc::new(Hub::new(servers.iter().map(|s| ServerState::new(s.name.clone(), s.terms())).collect(), keeper));
    hub.update(|snapshot| snapshot.sidecar.started = now);
    let own = Arc::new(Own::new(now).context("cannot set up metrics")?);
    let router = with_manners(routes(Sources { hub: Arc::clone(&hub), own, now: clock::now, actions, show_private: false }));
    let probing = watch(servers, hub, launchpad, stopped.clone());
    let serving = listen::run(listener, router, Limits::default(), async move {
        let _ = stopped.wait_for(|stop| *stop).await;
    });
    let ((), served) = tokio::join!(probing, serving);
    served.context("cannot serve HTTP")
}

/// The first signal ends everything politely. The second one ends stdiowatch at once: whatever still
/// runs is then ended by its guard.
async fn obey(mut signals: Signals, stop: watch::Sender<bool>) {
    loop {
        let (name, number) = signals.next().await;
        if *stop.borrow() {
            std::process::exit(128 + i32::from(number));
        }
        info!("{name}: ending what is running, then exiting; again to exit at once");
        let _ = stop.send(true);
    }
}
