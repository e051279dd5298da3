//! A probe on tape: everything that happened, with its time, so that it can be judged again without
//! launching anything. A user's incident becomes a test.
//!
//! JSON Lines: the first one is the [`Recording`]'s head, each other one a [`Happening`]. What the
//! server wrote is kept line by line with secrets masked; what is no UTF-8 is written in hexadecimal.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::machine::{Effect, Input, Machine};
use super::observation::{Observation, Peers};
use super::plan::Plan;
use super::process::{Excess, Exit, LaunchError, Swept, Usage};
use super::reel::Reel;
use crate::words::{At, InJson, Redactor};

/// The version of the format. In the first one it was not said when a wait was over, and has to be guessed.
const FORMAT: u32 = 2;
const FIRST_FORMAT: u32 = 1;
/// How much of stderr is kept. Nothing else bounds it, and a replay needs its end at the most.
const MAX_STDERR: usize = 1 << 20;
/// What a line counts for besides its bytes, where there is room for so many only.
const LINE_COST: usize = 64;
/// A line that goes on for longer than this is written in pieces.
const PIECE: usize = 1 << 20;
/// The same where there is but a reel.
const SEEN: usize = 8 << 10;

/// What happened at one moment of a probe.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Moment {
    /// Microseconds since the probe began.
    at_us: u64,
    /// What.
    #[serde(flatten)]
    happening: Happening,
}

/// Something that happened, or that was done.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Happening {
    /// We began a launch.
    Launch,
    /// The process was there.
    Spawned,
    /// It could not be launched.
    SpawnFailed {
        /// Why.
        error: LaunchError,
    },
    /// We wrote to its stdin.
    Sent(Written),
    /// It wrote to stdout.
    Stdout(Written),
    /// It wrote to stderr.
    Stderr(Written),
    /// Stdout ended.
    StdoutClosed,
    /// The other end of its stdin went away.
    StdinBroken,
    /// We did not come to look in time.
    Overslept {
        /// For how many microseconds.
        by_us: u64,
    },
    /// We came to look, and what was waited for had not come in its time.
    TimeUp,
    /// It had more of something than it may.
    TookTooMuch {
        /// Of what, and how much.
        excess: Excess,
    },
    /// Stderr was longer than a recording holds.
    StderrCut,
    /// Stdout was longer than there was room for; a replay would not be the same.
    StdoutCut,
    /// It exited.
    Exited {
        /// How.
        exit: Exit,
    },
    /// It had called for a browser.
    BrowserCalled {
        /// Microseconds since the probe began.
        called_us: u64,
        /// Scheme and host of the page.
        origin: String,
    },
    /// What it left was cleared away.
    Swept {
        /// What that was.
        swept: Swept,
        /// What it used.
        usage: Usage,
    },
    /// We closed its stdin.
    CloseStdin,
    /// We sent SIGTERM.
    Sigterm,
    /// We sent SIGKILL.
    Sigkill,
    /// We were asked to stop.
    Cancelled,
}

impl Happening {
    /// What was written, by either side.
    pub(super) fn written(&self) -> Option<&Written> {
        if let Happening::Sent(written) | Happening::Stdout(written) | Happening::Stderr(written) = self { Some(written) } else { None }
    }
}

/// Bytes: text where they are, hexadecimal where not.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Written {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Hex(String),
}

impl Written {
    fn of(bytes: &[u8]) -> Written {
        match std::str::from_utf8(bytes) {
            Ok(text) => Written::Text(text.to_owned()),
            Err(_) => Written::Hex(bytes.iter().map(|b| format!("{b:02x}")).collect()),
        }
    }

    /// The text, or the hexadecimal digits.
    pub(super) fn text(&self) -> &str {
        match self {
            Written::Text(text) | Written::Hex(text) => text,
        }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Written::Text(text) => Some(text.clone().into_bytes()),
            Written::Hex(hex) if hex.len() % 2 == 0 && hex.is_ascii() => {
                (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
            }
            Written::Hex(_) => None,
        }
    }
}

/// Is told what happens as it is written down, with its time. Called while the probe is made: it must not wait.
pub type Listener = Box<dyn FnMut(At, &Happening) + Send>;

/// Records a probe while it is made.
pub struct Tape {
    redactor: Arc<Redactor>,
    moments: Vec<Moment>,
    /// What happens is kept.
    is_kept: bool,
    listener: Option<Listener>,
    /// What is worth a look when the probe has gone wrong.
    reel: Option<Reel>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// Where in stdout that begins which is not written down yet.
    stdout_at: InJson,
    /// How many bytes of either may still be written; `None` once it was said that there are no more.
    stdout_room: Option<usize>,
    stderr_room: Option<usize>,
}

impl Tape {
    /// An empty one.
    #[must_use]
    pub fn new(redactor: Arc<Redactor>) -> Tape {
        Tape::with_room(redactor, usize::MAX)
    }

    /// An empty one for `stdout` bytes of stdout at the most. Cut short, it can be looked at, and not be
    /// judged again.
    #[must_use]
    pub fn with_room(redactor: Arc<Redactor>, stdout: usize) -> Tape {
        let (stdout_room, stderr_room) = (Some(stdout), Some(MAX_STDERR.min(stdout)));
        let (stdout, stderr) = (Vec::new(), Vec::new());
        let stdout_at = InJson::default();
        Tape { redactor, moments: Vec::new(), is_kept: true, listener: None, reel: None, stdout, stderr, stdout_at, stdout_room, stderr_room }
    }

    /// The same, heard by `listener`, and kept only if `is_kept`.
    #[must_use]
    pub fn heard_by(self, listener: Option<Listener>, is_kept: bool) -> Tape {
        Tape { listener, is_kept, ..self }
    }

    /// The same, with a [`Reel`] of it if `wanted`.
    #[must_use]
    pub fn with_reel(self, wanted: bool) -> Tape {
        Tape { reel: wanted.then(Reel::default), ..self }
    }

    /// The reel, if one was wanted; there is none any more then.
    pub fn take_reel(&mut self) -> Option<Reel> {
        self.reel.take().map(Reel::shrunk)
    }

    /// Something is about to be told to the machine.
    pub fn input(&mut self, now: At, input: &Input<'_>) {
        let happening = match input {
            Input::Stdout(bytes) => return self.wrote(now, Stream::Stdout, bytes),
            Input::Stderr(bytes) => return self.wrote(now, Stream::Stderr, bytes),
            Input::Spawned => Happening::Spawned,
            Input::SpawnFailed(error) => Happening::SpawnFailed { error: error.clone() },
            Input::StdoutClosed => Happening::StdoutClosed,
            Input::StdinBroken => Happening::StdinBroken,
            Input::Overslept(by) => Happening::Overslept { by_us: u64::try_from(by.as_micros()).unwrap_or(u64::MAX) },
            Input::TookTooMuch(excess) => Happening::TookTooMuch { excess: *excess },
            Input::Exited(exit) => Happening::Exited { exit: *exit },
            Input::BrowserCalled { at, origin } => {
                let called_us = u64::try_from(at.elapsed().as_micros()).unwrap_or(u64::MAX);
                Happening::BrowserCalled { called_us, origin: origin.clone() }
            }
            Input::Swept(swept, usage) => Happening::Swept { swept: swept.clone(), usage: *usage },
        };
        let over = matches!(happening, Happening::Swept { .. });
        self.flush(now, Stream::Stdout, over || matches!(happening, Happening::StdoutClosed));
        self.flush(now, Stream::Stderr, over);
        self.push(now, happening);
    }

    /// Something is about to be done for the machine.
    pub fn effect(&mut self, now: At, effect: &Effect) {
        let happening = match effect {
            Effect::Spawn => Happening::Launch,
            Effect::Write(bytes) => Happening::Sent(Written::of(&self.redactor.redact_json(bytes, &mut InJson::default()))),
            Effect::CloseStdin => Happening::CloseStdin,
            Effect::Terminate => Happening::Sigterm,
            Effect::Kill => Happening::Sigkill,
            Effect::Sweep => return,
        };
        self.flush_both(now);
        self.push(now, happening);
    }

    /// The machine is about to be told that what it waits for has not come in its time. That is before or
    /// after what came at the same moment, and there is nothing else to tell it by. Nobody who listens
    /// learns anything from it.
    pub fn time_is_up(&mut self, now: At) {
        self.flush_both(now);
        self.keep(now, Happening::TimeUp);
    }

    /// The probe is about to be cancelled.
    pub fn cancel(&mut self, now: At) {
        self.flush_both(now);
        self.push(now, Happening::Cancelled);
    }

    fn push(&mut self, now: At, happening: Happening) {
        if let Some(listener) = &mut self.listener {
            listener(now, &happening);
        }
        if let Some(reel) = &mut self.reel {
            reel.push(now, &happening);
        }
        self.keep(now, happening);
    }

    fn keep(&mut self, now: At, happening: Happening) {
        if self.is_kept {
            let at_us = u64::try_from(now.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.moments.push(Moment { at_us, happening });
        }
    }

    fn wrote(&mut self, now: At, stream: Stream, mut bytes: &[u8]) {
        let (room, cut) = match stream {
            Stream::Stdout => (&mut self.stdout_room, Happening::StdoutCut),
            Stream::Stderr => (&mut self.stderr_room, Happening::StderrCut),
        };
        let Some(left) = *room else { return };
        let is_cut = bytes.len() > left;
        if is_cut {
            bytes = &bytes[..left];
            *room = None;
            self.push(now, cut);
        } else {
            let lines = memchr::memchr_iter(b'\n', bytes).count();
            *room = Some(left.saturating_sub(bytes.len() + lines * LINE_COST));
        }
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.held(stream).extend_from_slice(&bytes[..=end]);
            bytes = &bytes[end + 1..];
            self.write(now, stream, 0);
        }
        self.held(stream).extend_from_slice(bytes);
        if is_cut {
            // The rest of what may be a secret never comes.
            let open = Arc::clone(&self.redactor).open_end(self.held(stream));
            let whole = self.held(stream).len() - open;
            self.held(stream).truncate(whole);
        }
        // Of a line that is not kept, no more than its beginning is worth a look.
        let longest = if self.is_kept || self.listener.is_some() { PIECE } else { SEEN };
        if self.held(stream).len() > longest {
            self.flush(now, stream, false);
        }
    }

    fn flush_both(&mut self, now: At) {
        self.flush(now, Stream::Stdout, false);
        self.flush(now, Stream::Stderr, false);
    }

    /// What was held back, waiting for the end of its line, belongs before what happens now. But for
    /// what may be the beginning of a secret, unless the stream `ends`.
    fn flush(&mut self, now: At, stream: Stream, ends: bool) {
        let redactor = Arc::clone(&self.redactor);
        let keep = match stream {
            _ if ends => 0,
            Stream::Stdout => redactor.open_json(&self.stdout),
            Stream::Stderr => redactor.open_end(&self.stderr),
        };
        self.write(now, stream, keep);
    }

    /// Writes down what was held, but for the last `keep` bytes.
    fn write(&mut self, now: At, stream: Stream, keep: usize) {
        let held = self.held(stream);
        let rest = held.split_off(held.len() - keep);
        let bytes = std::mem::replace(held, rest);
        if !bytes.is_empty() {
            let written = Written::of(&match stream {
                Stream::Stdout => self.redactor.redact_json(&bytes, &mut self.stdout_at),
                Stream::Stderr => self.redactor.redact(&bytes),
            });
            self.push(now, stream.happening(written));
        }
    }

    fn held(&mut self, stream: Stream) -> &mut Vec<u8> {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

#[derive(Clone, Copy)]
enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    fn happening(self, written: Written) -> Happening {
        match self {
            Stream::Stdout => Happening::Stdout(written),
            Stream::Stderr => Happening::Stderr(written),
        }
    }
}

/// A probe as it was recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The server's name.
    pub server: String,
    /// When the probe began, RFC 3339.
    pub started_at: String,
    /// What it was to do.
    pub plan: Plan,
    /// What was seen of other live copies.
    pub peers: Peers,
    /// What happened.
    moments: Vec<Moment>,
    /// The version of the format that it was written in.
    format: u32,
}

#[derive(Serialize, Deserialize)]
struct Head {
    stdiowatch_recording: u32,
    version: String,
    server: String,
    started_at: String,
    plan: Plan,
    #[serde(default)]
    peers: Peers,
}

/// Why a file is no recording.
#[derive(Debug, thiserror::Error)]
pub enum TapeError {
    /// Nothing in it.
    #[error("it is empty")]
    Empty,
    /// A line is not what it should be.
    #[error("line {line}, column {column}: {problem}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Where in it, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
}

impl Recording {
    /// A tape, with what is to be known about it.
    #[must_use]
    pub fn new(server: String, started_at: String, plan: Plan, peers: Peers, tape: Tape) -> Recording {
        let call = plan.call.as_ref().map(|call| call.masked(&plan.redactor));
        Recording { server, started_at, plan: Plan { call, ..plan }, peers, moments: tape.moments, format: FORMAT }
    }

    /// What happened, and when.
    pub fn happenings(&self) -> impl Iterator<Item = (Duration, &Happening)> {
        self.moments.iter().map(|moment| (Duration::from_micros(moment.at_us), &moment.happening))
    }

    /// As JSON Lines.
    #[must_use]
    pub fn to_lines(&self) -> String {
        let head = Head {
            stdiowatch_recording: self.format,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            server: self.server.clone(),
            started_at: self.started_at.clone(),
            plan: self.plan.clone(),
            peers: self.peers.clone(),
        };
        let mut text = serde_json::to_string(&head).unwrap_or_default();
        for moment in &self.moments {
            text.push('\n');
            text.push_str(&serde_json::to_string(moment).unwrap_or_default());
        }
        text.push('\n');
        text
    }

    /// Reads JSON Lines.
    ///
    /// # Errors
    ///
    /// With the line and the column of what is wrong.
    pub fn from_lines(text: &str) -> Result<Recording, TapeError> {
        fn read<'t, T: Deserialize<'t>>(line: usize, text: &'t str) -> Result<T, TapeError> {
            serde_json::from_str(text).map_err(|e| TapeError::Line { line, column: e.column(), problem: e.to_string() })
        }
        let mut lines = text.lines().enumerate().map(|(n, line)| (n + 1, line)).filter(|(_, line)| !line.trim().is_empty());
        let (line, first) = lines.next().ok_or(TapeError::Empty)?;
        let head: Head = read(line, first)?;
        let format = head.stdiowatch_recording;
        if !(FIRST_FORMAT..=FORMAT).contains(&format) {
            let problem = format!("recordings of format {FORMAT} or an earlier one can be read, this one has {format}");
            return Err(TapeError::Line { line, column: 1, problem });
        }
        if !is_like_a_time(&head.started_at) {
            let column = first.find("\"started_at\"").map_or(1, |at| at + 1);
            let problem = "`started_at` is no time, as 2026-11-30T17:25:14Z is".to_owned();
            return Err(TapeError::Line { line, column, problem });
        }
        let moments: Vec<Moment> = lines.map(|(line, text)| read(line, text)).collect::<Result<_, _>>()?;
        Ok(Recording { server: head.server, started_at: head.started_at, plan: head.plan, peers: head.peers, moments, format })
    }

    /// Lets it happen again, to a machine of today.
    #[must_use]
    pub fn replay(&self) -> Observation {
        let mut machine = Machine::new(Arc::new(self.plan.clone()), At::START);
        let mut last = At::START;
        for moment in &self.moments {
            last = At::after(Duration::from_micros(moment.at_us));
            if self.format == FIRST_FORMAT {
                catch_up(&mut machine, At::START, Some(last));
            }
            happen(&mut machine, last, &moment.happening);
        }
        // A recording that was cut short, or a machine that waits for longer than that of its time did.
        catch_up(&mut machine, last, None);
        if !machine.is_done() {
            machine.handle(last, Input::Swept(Swept::default(), Usage::default()));
        }
        Observation { peers: self.peers.clone(), ..machine.into_observation() }
    }
}

/// Whether it is made of what RFC 3339 writes times with. It is shown as it is, and whoever made the recording may have
/// written anything. One that was not known is empty.
fn is_like_a_time(text: &str) -> bool {
    text.len() <= 40 && text.bytes().all(|byte| byte.is_ascii_digit() || b"-:T.Z+".contains(&byte))
}

/// Lets time go by from `from` until `until`, or until nothing more is waited for.
fn catch_up(machine: &mut Machine, from: At, until: Option<At>) {
    while machine.poll().is_some() {}
    while let Some(due) = machine.deadline().filter(|due| until.is_none_or(|until| *due < until)) {
        machine.handle_timeout(due.max(from));
        while machine.poll().is_some() {}
    }
}

fn happen(machine: &mut Machine, at: At, happening: &Happening) {
    let bytes = |written: &Written| written.bytes().unwrap_or_default();
    match happening {
        Happening::Spawned => machine.handle(at, Input::Spawned),
        Happening::SpawnFailed { error } => machine.handle(at, Input::SpawnFailed(error.clone())),
        Happening::Stdout(written) => machine.handle(at, Input::Stdout(&bytes(written))),
        Happening::Stderr(written) => machine.handle(at, Input::Stderr(&bytes(written))),
        Happening::StdoutClosed => machine.handle(at, Input::StdoutClosed),
        Happening::StdinBroken => machine.handle(at, Input::StdinBroken),
        Happening::Overslept { by_us } => machine.handle(at, Input::Overslept(Duration::from_micros(*by_us))),
        Happening::TimeUp => machine.handle_timeout(at),
        Happening::TookTooMuch { excess } => machine.handle(at, Input::TookTooMuch(*excess)),
        Happening::Exited { exit } => machine.handle(at, Input::Exited(*exit)),
        Happening::BrowserCalled { called_us, origin } => {
            let called = At::after(Duration::from_micros(*called_us));
            machine.handle(at, Input::BrowserCalled { at: called, origin: origin.clone() });
        }
        Happening::Swept { swept, usage } => machine.handle(at, Input::Swept(swept.clone(), *usage)),
        Happening::Cancelled => machine.cancel(at),
        Happening::Launch
        | Happening::StdoutCut
        | Happening::StderrCut
        | Happening::Sent(_)
        | Happening::CloseStdin
        | Happening::Sigterm
        | Happening::Sigkill => {}
    }
    while machine.poll().is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_for_a_look_has_room_for_no_flood() {
        for flood in [&[b'\n'; 4096][..], &[b'x'; 4096], b"{}\n"] {
            let mut tape = Tape::with_room(Arc::default(), 50_000);
            (0..5000).for_each(|_| tape.input(At::START, &Input::Stdout(flood)));
            tape.input(At::START, &Input::Swept(Swept::default(), Usage::default()));
            let recording = Recording::new("s".to_owned(), String::new(), Plan::new(), super::super::observation::Peers::default(), tape);
            let text = recording.to_lines();
            assert!(text.len() < 500_000, "{}", text.len());
            assert_eq!(recording.happenings().filter(|(_, h)| matches!(h, Happening::StdoutCut)).count(), 1);
        }
    }

    #[test]
    fn where_it_is_cut_no_half_of_a_secret_is_left() {
        let redactor = Arc::new(Redactor::new([&b"hunter2secret"[..]]));
        for room in 90..=110 {
            let mut tape = Tape::with_room(Arc::clone(&redactor), room).with_reel(true);
            tape.input(At::START, &Input::Stdout(&[&[b'x'; 90][..], b"hunter2secret", &[b'y'; 90]].concat()));
            tape.input(At::START, &Input::StdoutClosed);
            let kept = format!("{:?}", tape.take_reel().unwrap());
            assert!(kept.contains("xxx") && !kept.contains("hun"), "{room}: {kept}");
            assert!(tape.take_reel().is_none());
        }
    }

    #[test]
    fn a_reel_is_cut_after_what_is_secret_was_masked() {
        let mut tape = Tape::new(Arc::new(Redactor::new([&b"hunter2secret"[..]]))).with_reel(true);
        for before in 380..=405 {
            tape.input(At::START, &Input::Stderr(&[&vec![b'x'; before][..], b"hunter2secret\n"].concat()));
        }
        let kept = format!("{:?}", tape.take_reel().unwrap());
        assert!(kept.contains("[redacted]") && !kept.contains("hun"), "{kept}");
    }

    #[test]
    fn a_recording_does_not_say_anything_instead_of_when_it_was_made() {
        let of = |started_at: &str| {
            let peers = super::super::observation::Peers::default();
            Recording::new("s".to_owned(), started_at.to_owned(), Plan::new(), peers, Tape::new(Arc::default())).to_lines()
        };
        for time in ["", "2026-11-30T17:25:14.274Z", "2026-11-30T17:25:14+01:00"] {
            assert_eq!(Recording::from_lines(&of(time)).unwrap().started_at, time);
        }
        for no_time in ["2026-1\u{feff}1-30T17:25:14Z", "2026-11-30T17:25:14\x1b[2J", "yesterday"] {
            let error = Recording::from_lines(&of(no_time)).unwrap_err().to_string();
            assert!(error.starts_with("line 1, column ") && error.ends_with("`started_at` is no time, as 2026-11-30T17:25:14Z is"), "{error}");
        }
    }

    #[test]
    fn a_recording_is_bounded_and_can_be_read_again() {
        let plan = Plan::new();
        let mut tape = Tape::new(Arc::clone(&plan.redactor));
        for _ in 0..400 {
            tape.input(At::START, &Input::Stderr(&[b'x'; 10_000]));
        }
        tape.input(At::START, &Input::StdoutClosed);
        tape.input(At::START, &Input::Stderr(b"more\n"));
        tape.input(At::START, &Input::Swept(Swept::default(), Usage::default()));
        let peers = super::super::observation::Peers::default();
        let text = Recording::new("s".to_owned(), String::new(), plan, peers, tape).to_lines();
        assert!(text.len() < MAX_STDERR + 10_000, "{}", text.len());
        assert_eq!(text.matches("stderr_cut").count(), 1);
        assert!(Recording::from_lines(&text).is_ok());
    }
}
