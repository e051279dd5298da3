//! Which words of a command are the engine's own, and what they ask for.
//!
//! All three read their flags as Go's pflag does: `--flag`, `--flag=value`, `--flag value`, `-abc`.
//! Which of them take no value has to be known, or the image would be taken for a value.

use std::path::Path;

use super::{Client, ENGINES};
use crate::probe::ContainerRun;

/// Global flags that take a value. What is not known here and has none after a `=` is not guessed at.
const GLOBAL_VALUES: [&str; 45] = [
    "address",
    "bridge-ip",
    "cdi-spec-dir",
    "cgroup-manager",
    "cni-netconfpath",
    "cni-path",
    "config",
    "connection",
    "conmon",
    "context",
    "data-root",
    "db-backend",
    "events-backend",
    "hooks-dir",
    "host",
    "host-gateway-ip",
    "hosts-dir",
    "identity",
    "imagestore",
    "log-level",
    "module",
    "namespace",
    "network-cmd-path",
    "network-config-dir",
    "out",
    "root",
    "runroot",
    "runtime",
    "runtime-flag",
    "snapshotter",
    "ssh",
    "storage-driver",
    "storage-opt",
    "tlscacert",
    "tlscert",
    "tlskey",
    "tmpdir",
    "url",
    "userns-remap",
    "volumepath",
    "a",
    "c",
    "H",
    "l",
    "n",
];
/// Global flags that take none.
const GLOBAL_SWITCHES: [&str; 14] = [
    "debug",
    "debug-full",
    "experimental",
    "insecure-registry",
    "kube-hide-dupe",
    "noout",
    "remote",
    "syslog",
    "tls",
    "tlsverify",
    "trace",
    "transient-store",
    "D",
    "r",
];
/// Flags of `run` that take no value. All others do.
const RUN_SWITCHES: [&str; 32] = [
    "detach",
    "disable-content-trust",
    "env-host",
    "help",
    "http-proxy",
    "init",
    "insecure-registry",
    "interactive",
    "no-healthcheck",
    "no-hostname",
    "no-hosts",
    "oom-kill-disable",
    "passwd",
    "privileged",
    "publish-all",
    "quiet",
    "read-only",
    "read-only-tmpfs",
    "replace",
    "rm",
    "rmi",
    "rootfs",
    "sig-proxy",
    "tls-verify",
    "tty",
    "unsetenv-all",
    "use-api-socket",
    "d",
    "i",
    "t",
    "P",
    "q",
];

/// Reads a command line; `None` unless it surely runs a container.
pub(super) fn read(command: &str, args: &[String]) -> Option<Client> {
    let engine = engine(command)?;
    let globals = globals(args)?;
    let words = args.get(globals..)?;
    let run = if words.first()? == "container" { 1 } else { 0 };
    if words.get(run)? != "run" {
        return None;
    }
    let run_at = globals + run + 1;
    Some(Client { globals: args[..globals].to_vec(), run_at, run: run_flags(engine, &args[run_at..]) })
}

/// The engine whose client a program is.
pub(super) fn engine(program: &str) -> Option<&'static str> {
    let name = Path::new(program).file_name()?;
    ENGINES.into_iter().find(|engine| *engine == name)
}

/// How many words are global flags and their values; `None` where that cannot be told.
fn globals(args: &[String]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let Some(flag) = Flag::of(word) else { return Some(at) };
        at += 1;
        let takes_next = match flag {
            Flag::End => return None,
            Flag::Long(_, Some(_)) => false,
            Flag::Long(name, None) if GLOBAL_VALUES.contains(&name) => true,
            Flag::Long(name, None) if GLOBAL_SWITCHES.contains(&name) => false,
            Flag::Long(..) => return None,
            Flag::Short(letters) => match short(letters, &GLOBAL_SWITCHES, |_, _| {}) {
                Some((letter, rest)) if GLOBAL_VALUES.contains(&letter) => rest.is_empty(),
                Some(_) => return None,
                None => false,
            },
        };
        at += usize::from(takes_next);
    }
    Some(at)
}

/// What the flags of `run` ask for, up to the image.
fn run_flags(engine: &str, args: &[String]) -> ContainerRun {
    let mut run = ContainerRun { engine: engine.to_owned(), ..ContainerRun::default() };
    let mut words = args.iter();
    while let Some(flag) = words.next().and_then(|word| Flag::of(word)) {
        match flag {
            Flag::End => break,
            Flag::Long(name, value) if RUN_SWITCHES.contains(&name) => set(&mut run, name, value.unwrap_or("true")),
            Flag::Long("name", Some(name)) => run.name = Some(name.to_owned()),
            Flag::Long(_, Some(_)) => {}
            Flag::Long("name", None) => run.name = words.next().cloned(),
            Flag::Long(_, None) => {
                words.next();
            }
            Flag::Short(letters) => {
                let other = short(letters, &RUN_SWITCHES, |letter, value| set(&mut run, letter, value));
                if other.is_some_and(|(_, rest)| rest.is_empty()) {
                    words.next();
                }
            }
        }
    }
    run
}

fn set(run: &mut ContainerRun, name: &str, value: &str) {
    let on = matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True");
    match name {
        "interactive" | "i" => run.interactive = on,
        "tty" | "t" => run.tty = on,
        "detach" | "d" => run.detached = on,
        "rm" => run.removes = on,
        _ => {}
    }
}

enum Flag<'w> {
    /// `--`
    End,
    /// `--name` or `--name=value`
    Long(&'w str, Option<&'w str>),
    /// What follows one dash.
    Short(&'w str),
}

impl<'w> Flag<'w> {
    fn of(word: &'w str) -> Option<Flag<'w>> {
        if word == "--" {
            return Some(Flag::End);
        }
        if let Some(long) = word.strip_prefix("--") {
            return Some(match long.split_once('=') {
                Some((name, value)) => Flag::Long(name, Some(value)),
                None => Flag::Long(long, None),
            });
        }
        word.strip_prefix('-').filter(|letters| !letters.is_empty()).map(Flag::Short)
    }
}

/// Goes through letters after one dash; says which is the first that is no switch, and what follows.
fn short<'w>(letters: &'w str, switches: &[&str], mut each: impl FnMut(&'w str, &'w str)) -> Option<(&'w str, &'w str)> {
    let mut rest = letters;
    while let Some(letter) = rest.chars().next() {
        let (letter, after) = rest.split_at(letter.len_utf8());
        if !switches.contains(&letter) {
            return Some((letter, after));
        }
        if let Some(value) = after.strip_prefix('=') {
            each(letter, value);
            return None;
        }
        each(letter, "true");
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Option<ContainerRun> {
        let mut words = line.split_ascii_whitespace().map(str::to_owned);
        let command = words.next()?;
        read(&command, &words.collect::<Vec<_>>()).map(|client| client.run)
    }

    #[test]
    fn commands_that_run_a_container_are_known() {
        for line in [
            "docker run x",
            "/usr/bin/docker run x",
            "docker container run x",
            "docker -H tcp://h:1 --tlscacert ca run x",
            "docker -Dl debug -cother run x",
            "docker --context=remote --new-flag=1 run x",
            "podman --root /r --runroot /s --remote run x",
            "podman -r -c there run x",
            "nerdctl -n k8s.io --address /a run x",
        ] {
            assert!(run(line).is_some(), "{line}");
        }
    }

    #[test]
    fn other_commands_are_not() {
        for line in [
            "docker",
            "docker -H run",
            "docker exec -i c run",
            "docker compose run x",
            "docker --new-flag run x",
            "docker start -ai x",
            "docker -- run x",
            "podman-remote run x",
            "npm run x",
            "sh -c docker run x",
        ] {
            assert_eq!(run(line), None, "{line}");
        }
    }

    #[test]
    fn flags_are_read_up_to_the_image() {
        let flags = |line: &str| {
            let run = run(line).unwrap();
            (run.interactive, run.tty, run.removes, run.detached, run.name)
        };
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(flags("docker run -i --rm x -t -d --name y"), (true, false, true, false, None));
        assert_eq!(flags("docker run -it --name a x"), (true, true, false, false, named("a")));
        assert_eq!(flags("docker run -dite A=1 --name=b x"), (true, true, false, true, named("b")));
        assert_eq!(flags("docker run -eA=it -v /a:/b -p 1:2 --rm=false x -i"), (false, false, false, false, None));
        assert_eq!(flags("docker run --interactive=true -t=false --tty=0 x"), (true, false, false, false, None));
        assert_eq!(flags("docker run -qi --init --network host -u 1:1 --rm x"), (true, false, true, false, None));
        assert_eq!(flags("podman run --entrypoint -i --read-only -i x"), (true, false, false, false, None));
        assert_eq!(flags("docker run --env -t -i -- x -t"), (true, false, false, false, None));
        assert_eq!(flags("docker run"), (false, false, false, false, None));
        assert_eq!(run("/opt/bin/nerdctl run x").unwrap().engine, "nerdctl");
    }
}
