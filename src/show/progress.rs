//! What running probes wait for, for somebody who waits for them.

use std::time::Duration;

use textwrap::core::display_width;

use super::told::bounded;
use crate::probe::{EndedBy, Wait};

/// How many servers are shown at once.
const MAX_LINES: usize = 10;

/// A probe that is being made.
#[derive(Clone, Copy, Debug)]
pub struct Running<'s> {
    /// The server's name.
    pub name: &'s str,
    /// What it waits for, for how long it has, and how long it will; `None` while it launches.
    pub waits: Option<(Wait, Duration, Duration)>,
}

/// A line for each server, no wider than `width` columns; of many, those that have waited longest, and how many more.
#[must_use]
pub fn lines(running: &[Running<'_>], width: usize) -> Vec<String> {
    let mut longest_first: Vec<&Running<'_>> = running.iter().collect();
    longest_first.sort_by_key(|r| std::cmp::Reverse(r.waits.map(|(_, waited, _)| waited.as_secs())));
    let shown = if running.len() > MAX_LINES { MAX_LINES - 1 } else { running.len() };
    let more = running.len() - shown;
    let more = (more > 0).then(|| (format!("and {more} more"), String::new()));
    longest_first.into_iter().take(shown).map(line).chain(more).map(|(what, since)| fitted(&what, &since, width)).collect()
}

/// What is waited for, and for how long.
fn line(running: &Running<'_>) -> (String, String) {
    let name = bounded(running.name, 100);
    let Some((wait, waited, limit)) = running.waits else { return (format!("{name}: starting"), String::new()) };
    let what = match wait {
        Wait::Reply(asked) => format!("waiting for the reply to {}", asked.method()),
        Wait::Tools => "its list of tools is empty, waiting for it to fill".to_owned(),
        Wait::End(EndedBy::Itself | EndedBy::Eof) => "its input is closed, waiting for its end".to_owned(),
        Wait::End(EndedBy::Sigterm) => "SIGTERM was sent, waiting for its end".to_owned(),
        Wait::End(EndedBy::Sigkill) => "SIGKILL was sent, waiting for its end".to_owned(),
    };
    (format!("{name}: {what}"), format!(", {} s of {} s", waited.as_secs(), (limit.as_secs_f64() * 10.0).round() / 10.0))
}

/// A line that does not wrap: what is cut is drawn over, what wraps stays behind. Where there is little room, what
/// moves is what is left.
fn fitted(what: &str, since: &str, width: usize) -> String {
    let room = width.saturating_sub(1);
    let wanted = display_width(what) + display_width(since);
    if wanted <= room {
        return format!("{what}{since}");
    }
    let since = if display_width(since) * 2 <= room { since } else { "" };
    let what = cut(what, room.saturating_sub(display_width(since) + 1));
    cut(&format!("{what}…{since}"), room)
}

/// The beginning of a text, so many columns of it at the most.
fn cut(text: &str, mut room: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let wide = display_width(c.encode_utf8(&mut [0; 4]));
        if wide > room {
            break;
        }
        room -= wide;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Asked;
    use crate::protocol::mcp::ListKind;

    fn waits(name: &str, wait: Wait, waited: u64) -> Running<'_> {
        Running { name, waits: Some((wait, Duration::from_millis(waited * 1000 + 300), Duration::from_secs(30))) }
    }

    #[test]
    fn a_line_says_what_is_waited_for_and_how_long() {
        let wait = Wait::Reply(Asked::Initialize);
        assert_eq!(lines(&[waits("everything", wait, 3)], 80), ["everything: waiting for the reply to initialize, 3 s of 30 s"]);
        let wait = Wait::Reply(Asked::List(ListKind::Tools));
        assert_eq!(lines(&[waits("x", wait, 0)], 80), ["x: waiting for the reply to tools/list, 0 s of 30 s"]);
        assert_eq!(lines(&[Running { name: "x", waits: None }], 80), ["x: starting"]);
        assert_eq!(lines(&[], 80), [""; 0]);
    }

    #[test]
    fn of_many_those_are_shown_that_have_waited_longest() {
        let names: Vec<String> = (0..25).map(|n| format!("s{n}")).collect();
        let many: Vec<Running<'_>> = names.iter().zip(0..).map(|(name, n)| waits(name, Wait::Tools, n)).collect();
        let lines = lines(&many, 80);
        assert_eq!((lines.len(), lines[9].as_str()), (10, "and 16 more"));
        assert!(lines[0].starts_with("s24:") && lines[8].starts_with("s16:"), "{lines:?}");
    }

    #[test]
    fn no_line_wraps() {
        let running = [waits("日本語日本語", Wait::End(EndedBy::Sigterm), 1)];
        for (width, wanted) in [
            (80, "日本語日本語: SIGTERM was sent, waiting for its end, 1 s of 30 s"),
            (40, "日本語日本語: SIGTERM was…, 1 s of 30 s"),
            (20, "日本語日本語: SIGT…"),
            (1, ""),
            (0, ""),
        ] {
            let line = &lines(&running, width)[0];
            assert_eq!(line, wanted);
            assert!(display_width(line) < width.max(1), "{line}");
        }
    }
}
