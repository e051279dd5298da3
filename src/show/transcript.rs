//! A recorded probe, to be read: one line for each thing that happened.

use std::fmt::Write as _;
use std::time::Duration;

use crate::probe::{Exit, Happening, Recording, Written};
use crate::words::printable;

/// The longest that is shown of one line, in characters.
const MAX_LINE: usize = 2000;
/// The longest transcript, in bytes.
const MAX_TEXT: usize = 512 << 10;

/// The recording as text: `->` for what was sent, `<-` for stdout, `2>` for stderr.
#[must_use]
pub fn text(recording: &Recording) -> String {
    let mut out = String::new();
    for (at, happening) in recording.happenings() {
        if out.len() > MAX_TEXT {
            out.push_str("… and more\n");
            break;
        }
        tell(&mut out, at, happening);
    }
    out
}

fn tell(out: &mut String, at: Duration, happening: &Happening) {
    let mut line = |text: &str| {
        let _ = writeln!(out, "{:>10.3} ms  {text}", at.as_secs_f64() * 1e3);
    };
    match happening {
        Happening::Launch => line("launch"),
        Happening::Spawned => line("launched"),
        Happening::SpawnFailed { error } => line(&format!("not launched: {}", printable(&format!("{error:?}"), MAX_LINE))),
        Happening::Sent(written) => lines(written, "->", &mut line),
        Happening::Stdout(written) => lines(written, "<-", &mut line),
        Happening::Stderr(written) => lines(written, "2>", &mut line),
        Happening::StdoutClosed => line("stdout ended"),
        Happening::StdinBroken => line("stdin was closed by the server"),
        Happening::Overslept { by_us } => line(&format!("we looked too late, by {} ms", by_us / 1000)),
        Happening::StdoutCut => line("more on stdout than is recorded"),
        Happening::StderrCut => line("more on stderr than is recorded"),
        Happening::Exited { exit } => line(&match exit {
            Exit::Code(code) => format!("exited with status {code}"),
            Exit::Signal(number) => format!("ended by signal {number}"),
        }),
        Happening::BrowserCalled { origin, .. } => line(&format!("called for a browser: {}", printable(origin, MAX_LINE))),
        Happening::Swept { swept, .. } => {
            let left = swept.in_group.len() + swept.escaped.len() + swept.containers.len();
            line(&if left == 0 { "nothing was left".to_owned() } else { format!("cleared away what was left: {left}") });
        }
        Happening::CloseStdin => line("stdin closed by us"),
        Happening::Sigterm => line("SIGTERM"),
        Happening::Sigkill => line("SIGKILL"),
        Happening::Cancelled => line("cancelled"),
    }
}

fn lines(written: &Written, sign: &str, line: &mut impl FnMut(&str)) {
    match written {
        Written::Text(text) => {
            for text in text.strip_suffix('\n').unwrap_or(text).split('\n') {
                line(&format!("{sign} {}", printable(text, MAX_LINE)));
            }
        }
        Written::Hex(digits) => line(&format!("{sign} {} (hexadecimal, no UTF-8)", printable(digits, MAX_LINE))),
    }
}
