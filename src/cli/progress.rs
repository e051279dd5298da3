//! What `check` shows on stderr while it runs: on a terminal what each server is waited for, and with `--verbose`
//! what goes over their pipes.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::terminal;
use crate::outside::clock;
use crate::probe::Wait;
use crate::running::Onlooker;
use crate::show::progress::{Running, lines};
use crate::show::transcript;
use crate::words::ServerName;

/// How often what is shown is drawn anew.
const EACH: Duration = Duration::from_millis(100);
/// A check that is over sooner than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
/// Lines of the transcript that may wait to be written. A probe never waits for a slow terminal.
const MAX_WAITING: usize = 4096;

/// What is shown of the servers that are being checked.
pub(super) struct Progress {
    rows: Arc<Mutex<Vec<Row>>>,
    bar: ProgressBar,
    begun: Duration,
    ticks: Interval,
    transcript: Option<Transcript>,
}

struct Row {
    name: ServerName,
    is_running: bool,
    waits: Option<Waits>,
}

/// What is waited for, by the clock of the machine.
#[derive(Clone, Copy)]
struct Waits {
    wait: Wait,
    since: Duration,
    limit: Duration,
}

struct Transcript {
    /// Whether lines begin with a server's name.
    is_of_several: bool,
    sender: mpsc::Sender<String>,
    lines: mpsc::Receiver<String>,
    dropped: Arc<AtomicU64>,
}

impl Progress {
    /// Of these servers, none of which runs yet. To be called inside of a runtime.
    pub(super) fn new(names: impl IntoIterator<Item = ServerName>, quiet: bool, verbose: bool) -> Progress {
        let rows: Vec<Row> = names.into_iter().map(|name| Row { name, is_running: false, waits: None }).collect();
        let is_shown = std::io::stderr().is_terminal() && !quiet;
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        let mut ticks = interval(EACH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let is_of_several = rows.len() > 1;
        let transcript = verbose.then(|| {
            let (sender, lines) = mpsc::channel(MAX_WAITING);
            Transcript { is_of_several, sender, lines, dropped: Arc::default() }
        });
        Progress { rows: Arc::new(Mutex::new(rows)), bar, begun: clock::up(), ticks, transcript }
    }

    /// The probe of the server at `place` begins: who looks on.
    pub(super) fn begins(&self, place: usize) -> Onlooker {
        let name = self.rows.lock().get_mut(place).map(|row| {
            row.is_running = true;
            row.name.clone()
        });
        let hears = self.transcript.as_ref().map(|t| t.listener(name.filter(|_| t.is_of_several)));
        let rows = Arc::clone(&self.rows);
        let waits = !self.bar.is_hidden();
        let waits = waits.then(|| -> crate::running::Waits {
            Box::new(move |now, pending| {
                let since = clock::up().saturating_sub(now - pending.since);
                if let Some(row) = rows.lock().get_mut(place) {
                    row.waits = Some(Waits { wait: pending.wait, since, limit: pending.until - pending.since });
                }
            })
        });
        Onlooker { waits, hears }
    }

    /// The probe of the server at `place` is over.
    pub(super) fn ends(&self, place: usize) {
        if let Some(row) = self.rows.lock().get_mut(place) {
            row.is_running = false;
        }
    }

    /// Waits until there is something to show, and shows it. May be dropped while it waits.
    pub(super) async fn turn(&mut self) {
        let Some(transcript) = &mut self.transcript else {
            self.ticks.tick().await;
            return self.draw();
        };
        tokio::select! {
            biased;
            Some(line) = transcript.lines.recv() => {
                let line = transcript.with_gap(line);
                self.write(&line);
            }
            _ = self.ticks.tick() => self.draw(),
        }
    }

    /// Shows what is left of the transcript, and takes away what moves.
    pub(super) fn end(mut self) {
        self.bar.finish_and_clear();
        while let Some(transcript) = &mut self.transcript
            && let Ok(line) = transcript.lines.try_recv()
        {
            let line = transcript.with_gap(line);
            self.write(&line);
        }
    }

    fn draw(&self) {
        let now = clock::up();
        if self.bar.is_hidden() || now.saturating_sub(self.begun) < PATIENCE {
            return;
        }
        let rows = self.rows.lock();
        let running: Vec<Running<'_>> = rows
            .iter()
            .filter(|row| row.is_running)
            .map(|row| Running { name: row.name.as_str(), waits: row.waits.map(|w| (w.wait, now.saturating_sub(w.since), w.limit)) })
            .collect();
        let said = lines(&running, terminal::width(&std::io::stderr()).unwrap_or(80)).join("\n");
        if self.bar.message() != said {
            self.bar.set_message(said);
        }
    }

    fn write(&self, line: &str) {
        // Whoever does not read stderr does not want to.
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{line}");
        });
    }
}

impl Transcript {
    fn listener(&self, name: Option<ServerName>) -> crate::probe::Listener {
        let (sender, dropped) = (self.sender.clone(), Arc::clone(&self.dropped));
        Box::new(move |at, happening| {
            if let Some(line) = transcript::line(name.as_ref().map(ServerName::as_str), at, happening)
                && sender.try_send(line).is_err()
            {
                dropped.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// `line`, after a word about those that could not be written in time.
    fn with_gap(&self, line: String) -> String {
        match self.dropped.swap(0, Ordering::Relaxed) {
            0 => line,
            dropped => format!("… {dropped} lines came faster than they could be written\n{line}"),
        }
    }
}
