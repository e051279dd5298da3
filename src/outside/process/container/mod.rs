//! Servers that are containers: `docker run …`, `podman run …`, `nerdctl run …`.
//!
//! The process that we launch is only a client. The container belongs to a daemon or to a monitor of
//! its own, which no signal to our tree reaches: a client that has to be killed leaves it running.
//! So each gets a label, by which it is found whatever became of its client. A cid file would need a
//! directory that can be written to, and is written too late when the client is killed early.
//!
//! ```text
//! flags   which words of the command are the engine's, and what they ask for
//! clear   once the client has ended: what is left of the container is found and removed
//! orphan  the same, by the guard, when stdiowatch itself has been killed
//! ```

mod clear;
mod flags;
mod orphan;

use crate::probe::ContainerRun;

pub(super) use clear::Ended;
pub(super) use orphan::{Orphan, is_monitor, orphan};

/// The label's name; its value is the mark of the tree.
const LABEL: &str = "stdiowatch.tree";

/// The engines whose clients look alike.
const ENGINES: [&str; 3] = ["docker", "podman", "nerdctl"];

/// A client that is launched, and the mark that its container carries.
#[derive(Clone, Debug)]
pub(super) struct Container {
    client: Client,
    mark: String,
}

/// What an engine's `run` is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Client {
    /// The global flags, which come before `run`.
    globals: Vec<String>,
    /// Where the flags of `run` begin.
    run_at: usize,
    run: ContainerRun,
}

impl Container {
    /// The container that a command runs, if that is what it does.
    pub(super) fn of(command: &str, args: &[String], mark: &str) -> Option<Container> {
        Some(Container { client: flags::read(command, args)?, mark: mark.to_owned() })
    }

    /// The arguments, with the label added right after `run`, where nothing else can be meant.
    pub(super) fn labelled(&self, args: &[String]) -> Vec<String> {
        let mut args = args.to_vec();
        args.insert(self.client.run_at, label(&self.mark));
        args
    }
}

/// What a command that runs a container asks for; `None` for any other command.
#[must_use]
pub fn container_run(command: &str, args: &[String]) -> Option<ContainerRun> {
    Some(flags::read(command, args)?.run)
}

fn label(mark: &str) -> String {
    format!("--label={LABEL}={mark}")
}

/// Asks for what carries the mark, in whatever state: its id, its name and its state, a line each.
fn look_words(mark: &str) -> Vec<String> {
    let filter = format!("--filter=label={LABEL}={mark}");
    ["ps", "--all", "--no-trunc", &filter, "--format={{.ID}} {{.Names}} {{.Status}}"].map(str::to_owned).to_vec()
}

/// Removes containers, and the unnamed volumes that were made for them, as `--rm` does. Podman would
/// first ask them to stop, for ten seconds; the others do not, and do not know the flag.
fn remove_words<'i>(engine: &str, ids: impl IntoIterator<Item = &'i str>) -> Vec<String> {
    let words: &[&str] = if engine == "podman" { &["rm", "--force", "--volumes", "--time=0"] } else { &["rm", "--force", "--volumes"] };
    words.iter().copied().chain(ids).map(str::to_owned).collect()
}

/// A line of what [`look_words`] answers.
fn line(line: &str) -> Option<(&str, &str, &str)> {
    let mut words = line.trim().splitn(3, ' ');
    let id = words.next().filter(|id| id.len() >= 12 && id.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some((id, words.next().unwrap_or_default(), words.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_ascii_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_label_stands_right_after_run_and_nothing_else_changes() {
        let args = words("--log-level debug container run -i --rm image run --label");
        let container = Container::of("podman", &args, "m.1").unwrap();
        let want = words("--log-level debug container run --label=stdiowatch.tree=m.1 -i --rm image run --label");
        assert_eq!(container.labelled(&args), want);
        assert_eq!(container.client.globals, words("--log-level debug"));
    }

    #[test]
    fn what_the_engines_list() {
        let id = "016d5dfca1266a69bb1f48bb9902337fa0f98dcc45d03616a8e9293bf1445ca4";
        assert_eq!(line(&format!("{id} n1 Up 2 seconds ago")), Some((id, "n1", "Up 2 seconds ago")));
        assert_eq!(line(&format!("{id}  ")), Some((id, "", "")));
        assert_eq!(line("WARN[0000] something"), None);
        assert_eq!(line("--all"), None);
    }
}
