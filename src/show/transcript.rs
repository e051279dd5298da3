//! What goes over a server's pipes, line by line, as it goes.

use super::told::{bounded, counted, duration};
use crate::probe::{Exit, Happening, Reel, Scene, Taken, Written};
use crate::words::At;

/// The longest piece that is shown, in characters.
const MAX_SHOWN: usize = 400;

/// What happened at one moment of a probe, in one line; `None` for what says nothing to anybody. `name` stands in
/// front where there are several servers.
#[must_use]
pub fn line(name: Option<&str>, at: At, happening: &Happening) -> Option<String> {
    told(name, at, happening, None)
}

/// What is kept of a probe, line by line, each with its end.
#[must_use]
pub fn of_reel(reel: &Reel) -> String {
    let line = |scene: &Scene| told(None, scene.at, &scene.happening, scene.whole).map(|line| line + "\n");
    let left_out = (reel.left_out() > 0).then(|| format!("            … {} left out …\n", counted(reel.left_out(), "lines")));
    reel.first().filter_map(line).chain(left_out).chain(reel.last().filter_map(line)).collect()
}

fn told(name: Option<&str>, at: At, happening: &Happening, whole: Option<usize>) -> Option<String> {
    let said = said(happening, whole)?;
    let name = name.map(|name| format!("{}  ", bounded(name, 100))).unwrap_or_default();
    Some(format!("{:>9.3} s  {name}{said}", at.elapsed().as_secs_f64()))
}

/// `whole`: how long the text was, in bytes, where only its beginning is left.
fn said(happening: &Happening, whole: Option<usize>) -> Option<String> {
    let words = match happening {
        Happening::Launch => "launching",
        Happening::Spawned | Happening::TimeUp => return None,
        // Why is in the report.
        Happening::SpawnFailed { .. } => "could not be launched",
        Happening::Sent(written) => return Some(format!("→ {}", shown(written, whole))),
        Happening::Stdout(written) => return Some(format!("← {}", shown(written, whole))),
        Happening::Stderr(written) => return Some(format!("stderr: {}", shown(written, whole))),
        Happening::StdoutClosed => "stdout ended",
        Happening::StdinBroken => "it closed its stdin",
        Happening::Overslept { by_us } => {
            let ms = std::time::Duration::from_micros(*by_us).as_secs_f64() * 1e3;
            return Some(format!("stdiowatch itself did not get to look for {}", duration(ms)));
        }
        Happening::TookTooMuch { excess } => {
            let of = match excess.of {
                Taken::Memory => "bytes of memory",
                Taken::Processes => "processes",
                Taken::Cpu => "ms of CPU time",
                Taken::FileSize => "bytes in a file",
            };
            return Some(format!("it had {} {of}, and may have {}", excess.figure, excess.limit));
        }
        Happening::StdoutCut => "stdout goes on, and is not shown any more",
        Happening::StderrCut => "stderr goes on, and is not shown any more",
        Happening::Exited { exit: Exit::Code(code) } => return Some(format!("exited with status {code}")),
        Happening::Exited { exit: Exit::Signal(signal) } => return Some(format!("ended by signal {signal}")),
        Happening::BrowserCalled { origin, .. } => return Some(format!("wanted to open a browser at {}", bounded(origin, MAX_SHOWN))),
        Happening::Swept { .. } => "cleared away",
        Happening::CloseStdin => "its stdin is closed",
        Happening::Sigterm => "SIGTERM is sent",
        Happening::Sigkill => "SIGKILL is sent",
        Happening::Cancelled => "cancelled",
    };
    Some(words.to_owned())
}

fn shown(written: &Written, whole: Option<usize>) -> String {
    match written {
        Written::Text(text) => {
            let text = text.strip_suffix('\n').unwrap_or(text);
            let whole = whole.or_else(|| (text.chars().count() > MAX_SHOWN).then_some(text.len()));
            let more = whole.map(|bytes| format!(" ({bytes} bytes in all)")).unwrap_or_default();
            let cut = if whole.is_some() && text.chars().count() <= MAX_SHOWN { "…" } else { "" };
            format!("{}{cut}{more}", bounded(text, MAX_SHOWN))
        }
        Written::Hex(hex) => format!("{} (no UTF-8, {} bytes in all)", bounded(hex, MAX_SHOWN), whole.unwrap_or(hex.len() / 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_with_times() {
        let at = At::after(std::time::Duration::from_millis(1234));
        let told = |happening| line(None, at, &happening).unwrap();
        assert_eq!(told(Happening::Sent(Written::Text("{}\n".to_owned()))), "    1.234 s  → {}");
        assert_eq!(told(Happening::Stdout(Written::Text("x\x1b[2J\r\n".to_owned()))), "    1.234 s  ← x\\x1b[2J\\r");
        assert_eq!(told(Happening::Stderr(Written::Hex("ff00".to_owned()))), "    1.234 s  stderr: ff00 (no UTF-8, 2 bytes in all)");
        assert_eq!(line(Some("a"), at, &Happening::Sigterm).unwrap(), "    1.234 s  a  SIGTERM is sent");
        let long = told(Happening::Stdout(Written::Text("é".repeat(100_000))));
        assert!(long.ends_with("é… (200000 bytes in all)") && long.chars().count() < 500, "{long}");
    }
}
