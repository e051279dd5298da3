//! `stdiowatch serve`: watch servers, and show them over HTTP.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::sync::watch;
use tracing::{info, warn};

use super::access::{Around, Doorkeeper};
use super::args::ServeArgs;
use super::servers::{self, Chosen};
use super::service::{Notifier, Readings};
use super::signals::{Request, Signals};
use super::{complain, demo, log};
use crate::config::LISTEN;
use crate::ledger::Unwatched;
use crate::outside::clock;
use crate::outside::process::GuardCommand;
use crate::outside::service::handed_over;
use crate::outside::vault::file_name;
use crate::running::hub::Hub;
use crate::running::keeper::Keeper;
use crate::running::reload::{Follow, Loaded, Reading, Reloader, Source, seen};
use crate::running::{Fleet, Launchpad, Watched};
use crate::serve::actions::Actions;
use crate::serve::listen::{self, BindError, Limits};
use crate::serve::own::Own;
use crate::serve::routes::{Sources, routes, with_guard};
use crate::words::{ServerName, printable};

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
    // Before there is a second thread.
    let handed = handed_over()?;
    let (chosen, follow) = chosen_and_followed(args)?;
    let listen = args.listen.as_deref().or(chosen.listen.as_deref()).unwrap_or(LISTEN).to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let signals = {
        let _inside = runtime.enter();
        Signals::catch()?
    };
    let web_config = args.web_config.clone().or_else(|| chosen.web_config.clone());
    let door = Doorkeeper::new(web_config, Around { actions: args.enable_actions, show_private: chosen.show_private })?;
    let by_manager = if handed.is_some() { ", handed over by the service manager" } else { "" };
    let listener = match handed {
        Some(listener) => listener,
        None => listen::bind(&listen).map_err(|error| told_of(error, args, &chosen))?,
    };
    let loopback = listener.local_addr().is_ok_and(|address| address.ip().to_canonical().is_loopback());
    let door = Arc::new(door.at(loopback));
    log::begin();
    let (stop, stopped) = watch::channel(false);
    let launchpad = Arc::new(Launchpad::start(GuardCommand::own(), stopped.clone()).context("cannot launch anything")?);
    let address = listener.local_addr().map_or_else(|_| listen.clone(), |a| a.to_string());
    for skipped in &chosen.skipped {
        match skipped.broken {
            true => warn!("{}", servers::told(skipped)),
            false => info!("{}", servers::told(skipped)),
        }
    }
    chosen.slips.iter().for_each(|slip| warn!("{slip}"));
    for server in &chosen.servers {
        info!(server = server.name.as_str(), every = ?server.interval, "watching");
    }
    if !chosen.own_interval.is_empty() {
        let names: Vec<&str> = chosen.own_interval.iter().map(ServerName::as_str).collect();
        warn!("--interval is for servers whose file does not say; these go by their own: {}", printable(&names.join(", "), 400));
    }
    info!("listening on {}://{address}/{by_manager}", if door.guard().access().tls.is_some() { "https" } else { "http" });
    let actions = Actions::new(args.enable_actions, loopback);
    door.warn();
    let keeper = state_dir(args, &chosen).map(|dir| Keeper::open(&dir));
    let (show_private, unwatched) = (chosen.show_private, servers::unwatched(&chosen.skipped));
    let source = source(args, &chosen, follow, &door);
    let watching = Watching { source, servers: chosen.servers, unwatched, keeper, signals, stop, stopped, door, show_private };
    let ended = runtime.block_on(watching.until_stopped(listener, actions, launchpad));
    // A configuration that is still being read keeps nobody.
    runtime.shutdown_background();
    ended
}

/// Why nobody can be listened to, and what to change.
fn told_of(error: BindError, args: &ServeArgs, chosen: &Chosen) -> anyhow::Error {
    let BindError::Taken { .. } = error else { return error.into() };
    let change = match (&args.listen, &chosen.listen) {
        (Some(_), _) => "give another address by --listen",
        (None, Some(_)) => "write another address under `listen` in the configuration, or give one by --listen",
        (None, None) => "give another address by --listen, or write it under `listen` in a configuration",
    };
    anyhow::anyhow!("{error}; {change}")
}

/// Where accepted schemas are kept: where it was said, or else where the XDG base directory
/// specification has it. The demo keeps nothing.
fn state_dir(args: &ServeArgs, chosen: &Chosen) -> Option<PathBuf> {
    if let Some(dir) = args.state_dir.as_ref().or(chosen.state_dir.as_ref()) {
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
    let own = match args.server.config.first() {
        Some(file) => format!("config-{}", file_name(&std::path::absolute(file).unwrap_or_else(|_| file.clone()).to_string_lossy())),
        None => format!("command-{}", file_name(chosen.servers.first().map_or("none", |server| server.name.as_str()))),
    };
    Some(base?.join("stdiowatch").join(own))
}

/// The servers to watch.
fn chosen(args: &ServeArgs) -> anyhow::Result<Chosen> {
    if args.demo {
        let lock = args.server.lock.as_ref().map(|_| "lock");
        if let Some(option) = args.server.of_a_command().or(lock) {
            bail!("--{option} is for a server that is given as a command, and --demo watches samples that have what they need");
        }
        let servers = demo::servers(args.server.interval.unwrap_or(DEMO_INTERVAL))?;
        return Ok(Chosen::of(servers));
    }
    servers::chosen(&args.server, &[], args.server.interval)
}

/// The servers to watch, and the files to follow, if any are to be followed.
fn chosen_and_followed(args: &ServeArgs) -> anyhow::Result<(Chosen, Option<Follow>)> {
    let first = chosen(args)?;
    if !args.watch_config {
        return Ok((first, None));
    }
    // Looked at before they are read once more: what changes in between is seen.
    let files = first.followed();
    let used = seen(&files);
    let chosen = chosen(args)?;
    let used = Some(used).filter(|_| chosen.followed() == files);
    let follow = Follow { files: chosen.followed(), used };
    Ok((chosen, Some(follow)))
}

/// Where the servers and the web configuration can be read again, both or neither; what was given on the command line
/// stays.
fn source(args: &ServeArgs, chosen: &Chosen, follow: Option<Follow>, door: &Arc<Doorkeeper>) -> Option<Source> {
    let door = Arc::clone(door);
    if args.server.config.is_empty() {
        let servers = chosen.servers.clone();
        return door.has_file().then(|| {
            let load = move || {
                door.put_in_force(door.read()?);
                Ok(servers.clone().into())
            };
            Source { load: Arc::new(load), follow: None }
        });
    }
    let (server, interval) = (args.server.clone(), args.server.interval);
    let lasting = |chosen: &Chosen| (chosen.listen.clone(), chosen.state_dir.clone(), chosen.web_config.clone(), chosen.show_private);
    let begun_with = lasting(chosen);
    let load = move || {
        let chosen = servers::again(&server, interval).map_err(|error| format!("{error:#}"))?;
        let web = door.read()?;
        if lasting(&chosen) != begun_with {
            warn!("`listen`, `state_dir`, `web_config` and `show_private` are what they were: a change of them takes a restart");
        }
        door.put_in_force(web);
        for skipped in chosen.skipped.iter().filter(|skipped| skipped.broken) {
            warn!("{}", servers::told(skipped));
        }
        chosen.slips.iter().for_each(|slip| warn!("{slip}"));
        Ok(Loaded { unwatched: servers::unwatched(&chosen.skipped), files: chosen.followed(), servers: chosen.servers })
    };
    Some(Source { load: Arc::new(load), follow })
}

/// What is watched, and who may change that.
struct Watching {
    servers: Vec<Watched>,
    unwatched: Vec<Unwatched>,
    keeper: Option<Keeper>,
    source: Option<Source>,
    signals: Signals,
    stop: watch::Sender<bool>,
    stopped: watch::Receiver<bool>,
    door: Arc<Doorkeeper>,
    show_private: Option<bool>,
}

impl Watching {
    async fn until_stopped(self, listener: std::net::TcpListener, actions: Actions, launchpad: Arc<Launchpad>) -> anyhow::Result<()> {
        let now = clock::now();
        let hub = Arc::new(Hub::keeping(self.keeper));
        hub.update(|snapshot| {
            snapshot.sidecar.started = now;
            snapshot.read(self.unwatched);
        });
        let own = Arc::new(Own::new(now).context("cannot set up metrics")?);
        if self.door.has_file() {
            for collector in self.door.told.collectors() {
                own.registry().register(collector).context("cannot set up metrics")?;
            }
            tokio::spawn(Arc::clone(&self.door).follow(self.stopped.clone()));
        }
        let fleet = Fleet::new(Arc::clone(&hub), launchpad);
        fleet.replace(self.servers);
        let (notifier, readings) = Notifier::new(Arc::clone(&hub));
        let reloader = self.source.map(|source| reloader(source, &fleet, &own, readings.clone(), self.stopped.clone()));
        tokio::spawn(obey(self.signals, self.stop, reloader.clone(), readings));
        let sources = Sources { hub, own, now: clock::now, actions, fleet: Some(Arc::clone(&fleet)), reloader, show_private: self.show_private };
        let mut stopped = self.stopped.clone();
        let serving =
            listen::run_with(listener, with_guard(routes(sources), self.door.guard()), Some(self.door.guard()), Limits::default(), async move {
                let _ = stopped.wait_for(|stop| *stop).await;
            });
        let stopped = self.stopped.clone();
        let ((), served) = notifier.during(async { tokio::join!(fleet.run(self.stopped), serving) }, stopped).await;
        served.context("cannot serve HTTP")
    }
}

/// Reads `source` again when that is asked for, and when it changes if it is to be followed.
fn reloader(source: Source, fleet: &Arc<Fleet>, own: &Arc<Own>, readings: Readings, stopped: watch::Receiver<bool>) -> Arc<Reloader> {
    let own = Arc::clone(own);
    let told = Box::new(move |reading| {
        if let Reading::Ended { accepted } = reading {
            own.reloaded(accepted, clock::now());
        }
        let _ = readings.send(reading);
    });
    let reloader = Reloader::new(Arc::clone(fleet), source.load, told);
    if let Some(follow) = source.follow {
        let reloader = Arc::clone(&reloader);
        tokio::spawn(async move { reloader.follow(follow, stopped).await });
    }
    reloader
}

/// The first signal to end ends everything politely. The second one ends stdiowatch at once: whatever
/// still runs is then ended by its guard.
async fn obey(mut signals: Signals, stop: watch::Sender<bool>, reloader: Option<Arc<Reloader>>, readings: Readings) {
    loop {
        match (signals.next_or_reload().await, &reloader) {
            (Request::Reload, None) => {
                info!("SIGHUP: there is nothing to read again, since the servers were given on the command line");
                // Who asked may wait to be told that it is over.
                for reading in [Reading::Begun, Reading::Ended { accepted: true }] {
                    let _ = readings.send(reading);
                }
            }
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
