//! `stdiowatch serve`: watch servers, and show them over HTTP.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::watch;
use tracing::{info, warn};

use super::args::ServeArgs;
use super::signals::{Request, Signals};
use super::{complain, demo, log};
use crate::outside::clock;
use crate::outside::process::GuardCommand;
use crate::running::hub::Hub;
use crate::running::reload::{Reloader, Source};
use crate::running::{Fleet, Launchpad, Watched};
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
    let servers = if args.demo {
        demo::servers(args.interval.unwrap_or(DEMO_INTERVAL))?
    } else {
        vec![args.server.watched(args.interval.unwrap_or(INTERVAL))?]
    };
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
    // What was given on the command line cannot be read again.
    let watching = Watching { servers, source: None, signals, stop, stopped };
    let ended = runtime.block_on(watching.until_stopped(listener, actions, launchpad));
    // A configuration that is still being read keeps nobody.
    runtime.shutdown_background();
    ended
}

/// What is watched, and who may change that.
struct Watching {
    servers: Vec<Watched>,
    source: Option<Source>,
    signals: Signals,
    stop: watch::Sender<bool>,
    stopped: watch::Receiver<bool>,
}

impl Watching {
    async fn until_stopped(self, listener: std::net::TcpListener, actions: Actions, launchpad: Arc<Launchpad>) -> anyhow::Result<()> {
        let now = clock::now();
        let hub = Arc::new(Hub::default());
        hub.update(|snapshot| snapshot.sidecar.started = now);
        let own = Arc::new(Own::new(now).context("cannot set up metrics")?);
        let fleet = Fleet::new(Arc::clone(&hub), launchpad);
        fleet.replace(self.servers);
        let reloader = self.source.map(|source| reloader(source, &fleet, &own, self.stopped.clone()));
        tokio::spawn(obey(self.signals, self.stop, reloader.clone()));
        let sources = Sources { hub, own, now: clock::now, actions, fleet: Some(Arc::clone(&fleet)), reloader };
        let mut stopped = self.stopped.clone();
        let serving = listen::run(listener, with_manners(routes(sources)), Limits::default(), async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        });
        let ((), served) = tokio::join!(fleet.run(self.stopped), serving);
        served.context("cannot serve HTTP")
    }
}

/// Reads `source` again when that is asked for, and when it changes if it is to be followed.
fn reloader(source: Source, fleet: &Arc<Fleet>, own: &Arc<Own>, stopped: watch::Receiver<bool>) -> Arc<Reloader> {
    let own = Arc::clone(own);
    let told = Box::new(move |accepted| own.reloaded(accepted, clock::now()));
    let reloader = Reloader::new(Arc::clone(fleet), source.load, told);
    if let Some((files, used)) = source.follow {
        let reloader = Arc::clone(&reloader);
        tokio::spawn(async move { reloader.follow(files, used, stopped).await });
    }
    reloader
}

/// The first signal to end ends everything politely. The second one ends stdiowatch at once: whatever
/// still runs is then ended by its guard.
async fn obey(mut signals: Signals, stop: watch::Sender<bool>, reloader: Option<Arc<Reloader>>) {
    loop {
        match (signals.next_or_reload().await, &reloader) {
            (Request::Reload, None) => info!("SIGHUP: there is nothing to read again, since the servers were given on the command line"),
            (Request::Reload, Some(reloader)) => {
                let reloader = Arc::clone(reloader);
                // Signals are heard meanwhile. What is wrong with it is told there.
                tokio::spawn(async move { drop(reloader.reload("SIGHUP").await) });
            }
            (Request::End(_, number), _) if *stop.borrow() => std::process::exit(128 + i32::from(number)),
            (Request::End(name, _), _) => {
                info!("{name}: ending what is running, then exiting; again to exit at once");
                let _ = stop.send(true);
            }
        }
    }
}
