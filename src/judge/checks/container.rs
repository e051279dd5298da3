//! What often goes wrong with a server that is run by `docker run` and the like.

use super::super::case::Case;
use crate::probe::{ContainerRun, EndedBy, Exit, What};

/// The status of an engine that could not do what it was asked.
const ENGINE_FAILED: i32 = 125;

/// Why a server in a container may not have answered, or ended; `None` for other servers.
pub(super) fn silence_hint(case: Case<'_>) -> Option<String> {
    let run = case.observation.container.as_ref()?;
    let engine = &run.engine;
    let exit = exit(case);
    let stderr = case.launch.stderr_tail.to_ascii_lowercase();
    if exit == Some(Exit::Code(ENGINE_FAILED)) || stderr.contains("is already in use") {
        return refusal_hint(run, &stderr);
    }
    if run.tty && stderr.contains("not a tty") {
        return Some(format!("hint: leave out -t of `{engine} run`, and keep -i; a server's stdin is no terminal"));
    }
    if run.detached {
        return Some(format!("hint: with -d `{engine} run` ends at once, and nothing is connected to the server; leave it out, and give -i"));
    }
    if !run.interactive && case.launch.first_reply.is_none() {
        return Some(format!("hint: without -i `{engine} run` gives the server an empty stdin, so it reads the end of its input at once; add -i"));
    }
    None
}

/// Why the engine itself refused.
fn refusal_hint(run: &ContainerRun, stderr: &str) -> Option<String> {
    let engine = &run.engine;
    if let Some(name) = run.name.as_ref().filter(|_| stderr.contains("already in use")) {
        let name = crate::words::printable(name, 64);
        return Some(format!(
            "hint: the command fixes the container's name (--name {name}), so only one can exist: another client runs it, or one was left behind; \
             leave out --name, and give --rm"
        ));
    }
    if stderr.contains("container id file") {
        return Some(format!("hint: the file of --cidfile is there already, and `{engine} run` does not write over it; leave the flag out"));
    }
    None
}

/// Why a command's output may carry its input.
pub(super) fn echo_hint(case: Case<'_>) -> Option<String> {
    let run = case.observation.container.as_ref().filter(|run| run.tty)?;
    Some(format!("hint: -t of `{}` gives the server a terminal, which echoes; leave it out, and keep -i", run.engine))
}

/// Why it may have taken a signal to end.
pub(super) fn stubborn_hint(case: Case<'_>, by: EndedBy) -> Option<&'static str> {
    let run = case.observation.container.as_ref()?;
    if run.tty {
        Some("hint: the terminal that -t gives the server does not hand on the end of the input; leave it out, and keep -i")
    } else if by == EndedBy::Sigkill {
        Some("hint: a container's first process ignores SIGTERM unless it handles it; `run --init` helps where the server cannot be changed")
    } else {
        None
    }
}

fn exit(case: Case<'_>) -> Option<Exit> {
    case.launch.seen.iter().find_map(|seen| match seen.what {
        What::Exited { exit, .. } => Some(exit),
        _ => None,
    })
}
