//! The signals that ask the program to end, or to read its configuration again.

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, SIGTERM and SIGHUP. From its making on they end nothing by themselves.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// What a signal asks of something that runs for long.
pub(super) enum Request {
    /// To end: the signal's name and number.
    End(&'static str, u8),
    /// To read the configuration again.
    Reload,
}

impl Signals {
    /// Catches them. To be called inside of a runtime, before anything is launched or heard.
    ///
    /// # Errors
    ///
    /// When the handlers cannot be had.
    pub(super) fn catch() -> anyhow::Result<Signals> {
        let caught = |kind| signal(kind).context("cannot handle signals");
        Ok(Signals {
            interrupt: caught(SignalKind::interrupt())?,
            terminate: caught(SignalKind::terminate())?,
            hangup: caught(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one, where SIGHUP is no end: a request to read the configuration again.
    pub(super) async fn next_or_reload(&mut self) -> Request {
        match self.next().await {
            ("SIGHUP", _) => Request::Reload,
            (name, number) => Request::End(name, number),
        }
    }

    /// Waits for the next one: its name and its number.
    pub(super) async fn next(&mut self) -> (&'static str, u8) {
        tokio::select! {
            _ = self.interrupt.recv() => ("SIGINT", 2),
            _ = self.terminate.recv() => ("SIGTERM", 15),
            _ = self.hangup.recv() => ("SIGHUP", 1),
        }
    }
}
