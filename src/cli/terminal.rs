//! What the terminal can do, and what its user wants of it.

use std::io::IsTerminal;

/// Whether `stream` gets colours: `NO_COLOR` forbids them, `CLICOLOR_FORCE` wants them everywhere, otherwise a
/// terminal gets them that is not `dumb`.
pub(super) fn has_colours(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if set("NO_COLOR").is_some() {
        return false;
    }
    if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return true;
    }
    stream.is_terminal() && set("TERM").is_none_or(|term| term != "dumb")
}

/// How wide the terminal is that `stream` goes to, in columns; `None` if it goes to none.
pub(super) fn width(stream: &(impl IsTerminal + std::os::fd::AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0)
}
