//! Tells the service manager how we are, in the words of `sd_notify(3)`.
//!
//! | when | what |
//! |---|---|
//! | connections are accepted and the scheduler runs | `READY=1` |
//! | servers are up or down, or their number changes | `STATUS=12 servers: 11 up, 1 down` |
//! | the configuration is read again, whoever asked for that | `RELOADING=1`, then `READY=1` |
//! | twice in each time that the watchdog waits | `WATCHDOG=1`, while `/livez` would answer 200 |
//! | the end has begun | `STOPPING=1`, and how long it may take |
//!
//! It does not wait for the first round: that takes as long as the slowest server does, and a unit that watches a
//! broken server is a unit that runs.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixDatagram;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use crate::outside::{clock, service};
use crate::probe::Phase;
use crate::running::hub::Hub;
use crate::running::reload::Reading;
use crate::show::status;

/// How often to look whether there is something to tell.
const LOOK: Duration = Duration::from_secs(1);
/// The same until we are ready, and while the scheduler does not run.
const LOOK_SOON: Duration = Duration::from_millis(50);
/// For what comes after the servers have been given their time: killing, reaping, the last answers.
const AFTERWARDS: Duration = Duration::from_secs(15);

/// Hears what there is to tell, whether or not anybody wants to be told.
pub(super) type Readings = mpsc::UnboundedSender<Reading>;

/// Tells it, if somebody does.
pub(super) struct Notifier {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
    readings: mpsc::UnboundedReceiver<Reading>,
    hub: Arc<Hub>,
    ready: bool,
    /// The configuration that was read last is not in use.
    refused: bool,
    told: String,
}

impl Notifier {
    /// Of what `hub` knows. To be called inside of a runtime.
    pub(super) fn new(hub: Arc<Hub>) -> (Notifier, Readings) {
        let (told, readings) = mpsc::unbounded_channel();
        let socket = service::notify_socket().and_then(|socket| socket.map(UnixDatagram::from_std).transpose()).unwrap_or_else(|error| {
            warn!(%error, "the service manager cannot be told how we are");
            None
        });
        let watchdog = service::watchdog().filter(|_| socket.is_some());
        (Notifier { socket, watchdog, readings, hub, ready: false, refused: false, told: String::new() }, told)
    }

    /// Tells how it goes until `work` is done; `stopped` becomes true when it begins to end. A manager that does
    /// not listen keeps nobody from the work.
    pub(super) async fn during<T>(self, work: impl Future<Output = T>, stopped: watch::Receiver<bool>) -> T {
        if self.socket.is_none() {
            // And with it the list of what there would be to tell.
            drop(self);
            return work.await;
        }
        tokio::select! {
            biased;
            never = self.go_on(stopped) => match never {},
            done = work => done,
        }
    }

    async fn go_on(mut self, mut stopped: watch::Receiver<bool>) -> Infallible {
        let mut stopping = false;
        let (mut look, mut sign) = (Instant::now(), Instant::now());
        loop {
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stop| *stop), if !stopping => {
                    stopping = true;
                    self.tell(&self.farewell()).await;
                }
                Some(reading) = self.readings.recv() => if !stopping { self.reading(reading).await },
                () = sleep_until(look.min(sign)) => {
                    let now = Instant::now();
                    if look <= now {
                        if !stopping {
                            self.look().await;
                        }
                        look = now + if self.ready { LOOK } else { LOOK_SOON };
                    }
                    if sign <= now {
                        sign = now + self.give_sign(stopping).await;
                    }
                }
            }
        }
    }

    /// Tells that we are ready, and how the servers are, if that is news.
    async fn look(&mut self) {
        let snapshot = self.hub.snapshot();
        // The fleet's loop has gone round, and it asks the launching thread each time.
        let begun = !self.ready && !snapshot.sidecar.last_tick.is_zero();
        self.ready |= begun;
        let refused = if self.refused { "; the configuration that was read last is refused" } else { "" };
        let now = format!("{}{refused}", status::line(&snapshot, clock::now()));
        if self.ready && (begun || now != self.told) {
            self.tell(&format!("{}STATUS={now}", if begun { "READY=1\n" } else { "" })).await;
            self.told = now;
        }
    }

    async fn reading(&mut self, reading: Reading) {
        let text = match reading {
            Reading::Begun => format!("RELOADING=1\nMONOTONIC_USEC={}", clock::monotonic().as_micros()),
            Reading::Ended { accepted } => {
                self.refused = !accepted;
                "READY=1".to_owned()
            }
        };
        // Before that it would be taken for the first one.
        if self.ready {
            self.tell(&text).await;
        }
    }

    /// A sign of life, if there is life; returns when the next one is due. While we end, the end has a limit of
    /// its own.
    async fn give_sign(&self, stopping: bool) -> Duration {
        let Some(half) = self.watchdog.map(|within| within / 2) else { return Duration::from_hours(1) };
        if !stopping && self.hub.snapshot().sidecar.stalled(clock::now()).is_some() {
            return half.min(LOOK_SOON);
        }
        self.tell("WATCHDOG=1").await;
        half
    }

    /// That we end, and how long that may take: as the servers' configuration has it, whatever the unit says.
    fn farewell(&self) -> String {
        let snapshot = self.hub.snapshot();
        let graces = snapshot.servers.iter().flat_map(|server| &server.terms.timeouts).filter(|(phase, _)| *phase == Phase::Shutdown);
        let longest = graces.map(|(_, grace)| *grace).max().unwrap_or_default() + AFTERWARDS;
        format!("STOPPING=1\nSTATUS=ending what is running\nEXTEND_TIMEOUT_USEC={}", longest.as_micros())
    }

    async fn tell(&self, text: &str) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(text.as_bytes()).await {
            tracing::debug!(%error, text, "the service manager could not be told");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_that_does_not_listen_keeps_nobody_from_the_work() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let hub = Arc::new(Hub::new(Vec::new()));
            hub.update(|snapshot| snapshot.sidecar.last_tick = clock::up());
            let (ours, _manager) = UnixDatagram::pair().unwrap();
            while ours.try_send(b"full").is_ok() {}
            let (_, readings) = mpsc::unbounded_channel();
            let watchdog = Some(Duration::from_millis(2));
            let notifier = Notifier { socket: Some(ours), watchdog, readings, hub, ready: false, refused: false, told: String::new() };
            let (_stop, stopped) = watch::channel(false);
            let work = tokio::time::sleep(Duration::from_millis(50));
            let done = tokio::time::timeout(Duration::from_secs(20), notifier.during(work, stopped)).await;
            assert!(done.is_ok(), "the work goes on");
        });
    }

    #[test]
    fn a_scheduler_that_does_not_run_gives_no_sign_of_life() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let hub = Arc::new(Hub::new(Vec::new()));
            let ticked = |age: u64| {
                hub.update(|snapshot| snapshot.sidecar.last_tick = clock::up().saturating_sub(Duration::from_secs(age)));
            };
            ticked(60);
            let (ours, manager) = UnixDatagram::pair().unwrap();
            let (_, readings) = mpsc::unbounded_channel();
            let watchdog = Some(Duration::from_millis(40));
            let notifier =
                Notifier { socket: Some(ours), watchdog, readings, hub: Arc::clone(&hub), ready: false, refused: false, told: String::new() };
            let (stop, stopped) = watch::channel(false);
            let next = async || {
                let mut buffer = [0; 200];
                let length = manager.recv(&mut buffer).await.unwrap();
                String::from_utf8_lossy(&buffer[..length]).into_owned()
            };
            let script = async {
                assert_eq!(next().await, "READY=1\nSTATUS=no server to watch");
                assert!(tokio::time::timeout(Duration::from_millis(400), next()).await.is_err(), "ten signs are missing");
                ticked(1);
                assert_eq!(next().await, "WATCHDOG=1");
                // What is under way by then comes before the silence.
                ticked(60);
                while tokio::time::timeout(Duration::from_millis(200), next()).await.is_ok() {}
                stop.send_replace(true);
                assert_eq!(next().await, "STOPPING=1\nSTATUS=ending what is running\nEXTEND_TIMEOUT_USEC=15000000");
                assert_eq!(next().await, "WATCHDOG=1", "the end has a limit of its own");
            };
            notifier.during(script, stopped).await;
        });
    }
}
