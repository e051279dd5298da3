//! The log of `serve`: for people on a terminal, JSON lines otherwise. To stderr.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Begins logging. `RUST_LOG` filters; `info` and above by default.
pub(super) fn begin() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let terminal = std::io::stderr().is_terminal();
    let colours = super::terminal::has_colours(&std::io::stderr());
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(std::io::stderr);
    if terminal {
        builder.with_ansi(colours).compact().init();
    } else {
        builder.json().flatten_event(true).init();
    }
}
