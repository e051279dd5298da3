//! After the client's end: what is left of its container is found and removed.
//!
//! Costs nothing where nothing can be left: the client of `run --rm` ends when its container has been
//! removed. Else one more run of the client's program, and a few where there is something.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::super::launch::Launcher;
use super::super::spec::{LaunchSpec, StdioKind};
use super::{Container, line, look_words, remove_words};
use crate::probe::{Exit, LeftContainer};
use crate::words::printable;

/// How long an engine may take to say what is left.
const MOST_LOOK: Duration = Duration::from_secs(5);
/// How long it may take to remove it.
const MOST_REMOVE: Duration = Duration::from_secs(10);
/// How long what removes itself is given to do it.
const GRACE: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(500)];
/// How long a container may take to appear that a killed client had asked for.
const LATE: Duration = Duration::from_millis(500);
/// How often removing is tried.
const TRIES: u32 = 2;
/// As much of an answer as is read.
const MOST: usize = 64 << 10;
/// The status by which an engine says that it could not do what it was asked, or not wholly.
const ENGINE_FAILED: i32 = 125;

/// How a client ended.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Ended {
    pub(in super::super) exit: Option<Exit>,
    /// We have sent it a signal.
    pub(in super::super) signalled: bool,
}

impl Container {
    /// Whether something may be left of the container.
    fn may_be_left(&self, ended: Ended) -> bool {
        let run = &self.client.run;
        let orderly = !ended.signalled && matches!(ended.exit, Some(Exit::Code(code)) if code != ENGINE_FAILED);
        !(orderly && run.removes && !run.detached)
    }

    /// Removes what is left of the container, and says what that was. `spec` is what was launched. At
    /// the most half a minute, where the engine hangs.
    pub(in super::super) async fn clear(&self, launcher: &Launcher, spec: &LaunchSpec, ended: Ended) -> Vec<LeftContainer> {
        if !self.may_be_left(ended) {
            return Vec::new();
        }
        let engine = Engine { launcher, spec, container: self };
        let mut left = engine.look().await;
        if left.as_ref().is_some_and(Vec::is_empty) && !matches!(ended.exit, Some(Exit::Code(_))) {
            sleep(LATE).await;
            left = engine.look().await;
        }
        for pause in GRACE.into_iter().filter(|_| self.client.run.removes) {
            if left.as_ref().is_none_or(Vec::is_empty) {
                break;
            }
            sleep(pause).await;
            left = engine.look().await.or(left);
        }
        let mut left = left.unwrap_or_default();
        for _ in 0..TRIES {
            if left.iter().all(|container| container.removed) {
                break;
            }
            engine.remove(&left).await;
            let Some(still) = engine.look().await else { break };
            for container in &mut left {
                container.removed = still.iter().all(|other| other.id != container.id);
            }
        }
        left
    }
}

/// The client's program, to be run again as the client was.
struct Engine<'e> {
    launcher: &'e Launcher,
    spec: &'e LaunchSpec,
    container: &'e Container,
}

impl Engine<'_> {
    /// What carries the mark; `None` if the engine does not say.
    async fn look(&self) -> Option<Vec<LeftContainer>> {
        let said = self.run(look_words(&self.container.mark), MOST_LOOK).await?;
        let containers = String::from_utf8_lossy(&said).lines().filter_map(line).map(left_container).collect();
        Some(containers)
    }

    async fn remove(&self, left: &[LeftContainer]) {
        let ids = left.iter().filter(|container| !container.removed).map(|container| container.id.as_str());
        let words = remove_words(&self.container.client.run.engine, ids);
        let _ = self.run(words, MOST_REMOVE).await;
    }

    /// Runs the engine; what it writes to stdout, if it succeeds in time.
    async fn run(&self, words: Vec<String>, limit: Duration) -> Option<Vec<u8>> {
        let args = self.container.client.globals.iter().cloned().chain(words).collect();
        let spec = LaunchSpec { args, stdio: StdioKind::Pipe, ..self.spec.clone() };
        let mut child = self.launcher.launch(&spec).ok()?;
        child.close_stdin();
        let mut said = Vec::new();
        let (mut out, mut err) = (vec![0; 4096], vec![0; 4096]);
        let (mut out_open, mut err_open) = (true, true);
        let work = async {
            loop {
                tokio::select! {
                    read = child.read_stdout(&mut out), if out_open => match read {
                        Ok(length @ 1..) if said.len() < MOST => said.extend_from_slice(&out[..length]),
                        Ok(1..) => {}
                        Ok(0) | Err(_) => out_open = false,
                    },
                    read = child.read_stderr(&mut err), if err_open => err_open = matches!(read, Ok(1..)),
                    exit = child.exited() => return exit,
                }
            }
        };
        let exit = timeout(limit, work).await;
        while let Ok(length @ 1..) = child.try_read_stdout(&mut out)
            && said.len() < MOST
        {
            said.extend_from_slice(&out[..length]);
        }
        child.sweep(Duration::from_millis(100)).await;
        matches!(exit, Ok(Exit::Code(0))).then_some(said)
    }
}

fn left_container((id, name, state): (&str, &str, &str)) -> LeftContainer {
    LeftContainer { id: id.to_owned(), name: printable(name, 64), state: printable(state, 64), removed: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orderly_end_with_rm_needs_no_look() {
        let may_be_left = |line: &str, exit, signalled| {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            Container::of("docker", &args, "m").unwrap().may_be_left(Ended { exit, signalled })
        };
        let code = |code| Some(Exit::Code(code));
        assert!(!may_be_left("run --rm -i x", code(0), false));
        assert!(!may_be_left("run --rm -i x", code(1), false));
        assert!(may_be_left("run --rm -i x", code(125), false));
        assert!(may_be_left("run --rm -i x", code(143), true));
        assert!(may_be_left("run --rm -i x", Some(Exit::Signal(9)), false));
        assert!(may_be_left("run --rm -i x", None, true));
        assert!(may_be_left("run --rm -d x", code(0), false));
        assert!(may_be_left("run -i x", code(0), false));
    }
}
