//! Servers run by `podman run`, with a stand-in for podman: a script that notes what it is asked, and
//! keeps a file for each container. With the real one: tests/real/containers.py.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const STDIOWATCH: &str = env!("CARGO_BIN_EXE_stdiowatch");

/// Runs the image, which is a command line, itself. A file named `no-ps` or `no-rm` beside it makes it
/// fail as an engine does whose daemon is gone.
const PODMAN: &str = r#"#!/bin/sh
here=${0%/*}
printf '%s\n' "$*" >>"$here/log"
[ "$1" = --root ] && shift 2
verb=$1
shift
case $verb in
run)
    # The real one hands it on to a server that has to handle it.
    trap '' TERM
    mark= name=fake removes= detached=
    while :; do
        case $1 in
        --label=stdiowatch.tree=*) mark=${1##*=} ;;
        --name) name=$2; shift ;;
        --rm) removes=1 ;;
        -d) detached=1 ;;
        -*) ;;
        *) break ;;
        esac
        shift
    done
    if [ -e "$here/taken-$name" ]; then
        echo "Error: the container name \"$name\" is already in use by 0123. You have to remove that container" >&2
        exit 125
    fi
    id=$(printf %064x $$)
    echo "$mark $id $name Up 1 second" >"$here/containers/$id"
    [ $detached ] && { echo $id; exit 0; }
    "$@"
    status=$?
    if [ $removes ]; then rm -f "$here/containers/$id"; else echo "$mark $id $name Exited ($status)" >"$here/containers/$id"; fi
    exit $status ;;
ps)
    [ -e "$here/no-ps" ] && exit 125
    for word; do case $word in --filter=label=stdiowatch.tree=*) mark=${word##*=} ;; esac; done
    cat "$here"/containers/* 2>/dev/null | while read -r label rest; do
        [ "$label" = "$mark" ] && echo "$rest"
    done
    exit 0 ;;
rm)
    [ -e "$here/no-rm" ] && exit 125
    for word; do rm -f "$here/containers/$word"; done ;;
esac
"#;

/// A directory with the stand-in in it.
struct Podman(PathBuf);

impl Podman {
    fn new(test: &str) -> Podman {
        let dir = std::env::temp_dir().join(format!("stdiowatch-containers-{test}-{}", std::process::id()));
        fs::create_dir_all(dir.join("containers")).unwrap();
        let podman = Podman(dir);
        fs::write(podman.0.join("podman"), PODMAN).unwrap();
        fs::set_permissions(podman.0.join("podman"), fs::Permissions::from_mode(0o755)).unwrap();
        podman
    }

    /// `check` of `podman ARGS sample-server KIND`.
    fn command(&self, args: &[&str], kind: &str) -> Command {
        let path = format!("{}:{}", self.0.display(), std::env::var("PATH").unwrap());
        let mut check = Command::new(STDIOWATCH);
        check.args(["check", "--format", "json", "--era", "legacy", "--startup-timeout", "10s", "--eof-grace", "1s", "--term-grace", "300ms"]);
        check.args(["--", "podman"]).args(args).args([STDIOWATCH, "sample-server", kind]).env("PATH", path);
        check
    }

    fn check(&self, args: &[&str], kind: &str) -> Value {
        let output = self.command(args, kind).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        document["servers"][0].clone()
    }

    /// What it was asked, by the first word after the global flags.
    fn asked(&self) -> Vec<String> {
        let log = fs::read_to_string(self.0.join("log")).unwrap_or_default();
        log.lines().map(|line| line.trim_start_matches("--root /r ").split(' ').next().unwrap().to_owned()).collect()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.0.join("log")).unwrap_or_default()
    }

    fn containers(&self) -> usize {
        fs::read_dir(self.0.join("containers")).unwrap().count()
    }

    fn touch(&self, name: &str) {
        fs::write(self.0.join(name), "").unwrap();
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn codes(report: &Value) -> Vec<&str> {
    report["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

fn evidence<'r>(report: &'r Value, code: &str) -> &'r str {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["code"] == code).unwrap_or_else(|| panic!("{report}"))["evidence"].as_str().unwrap()
}

#[test]
fn a_container_that_removes_itself_costs_nothing_more() {
    let podman = Podman::new("sound");
    let report = podman.check(&["--root", "/r", "run", "-i", "--rm"], "sound");
    assert_eq!((report["verdict"].as_str(), codes(&report)), (Some("pass"), vec![]));
    assert_eq!(podman.asked(), ["run"]);
    let log = podman.log();
    let label = log.strip_prefix("--root /r run --label=stdiowatch.tree=").unwrap();
    let (mark, rest) = label.split_once(' ').unwrap();
    assert!(mark.len() > 16 && rest.starts_with("-i --rm /"), "{log}");
    assert_eq!(podman.containers(), 0);
}

#[test]
fn a_container_without_rm_is_removed() {
    let podman = Podman::new("stopped");
    let report = podman.check(&["--root", "/r", "run", "-i", "--name", "n1"], "sound");
    assert_eq!((report["verdict"].as_str(), codes(&report)), (Some("warn"), vec!["shutdown.left_container"]));
    assert!(evidence(&report, "shutdown.left_container").starts_with("n1 (0"));
    assert!(evidence(&report, "shutdown.left_container").ends_with("Exited (0)"));
    assert_eq!(podman.asked(), ["run", "ps", "rm", "ps"]);
    assert!(podman.log().lines().all(|line| line.starts_with("--root /r ")));
    assert_eq!(podman.containers(), 0);
}

#[test]
fn a_container_whose_client_was_killed_is_removed() {
    let podman = Podman::new("killed");
    let report = podman.check(&["run", "-i", "--rm"], "ignore-sigterm");
    assert_eq!(report["shutdown"]["ended_by"], "sigkill", "{report}");
    assert!(evidence(&report, "shutdown.left_container").contains("Up 1 second"));
    assert!(evidence(&report, "shutdown.needed_kill").contains("--init"));
    assert_eq!(podman.containers(), 0);
}

#[test]
fn a_detached_container_is_removed() {
    let podman = Podman::new("detached");
    let report = podman.check(&["run", "-d", "--rm"], "sound");
    assert_eq!(report["verdict"], "fail");
    assert!(evidence(&report, "exit.before_reply").contains("with -d"));
    evidence(&report, "shutdown.left_container");
    assert_eq!(podman.containers(), 0);
}

#[test]
fn an_engine_that_fails_is_no_finding_of_its_own() {
    let podman = Podman::new("no-ps");
    podman.touch("no-ps");
    assert_eq!(codes(&podman.check(&["run", "-i"], "sound")), Vec::<&str>::new());
    assert_eq!(podman.asked(), ["run", "ps"]);
}

#[test]
fn what_cannot_be_removed_is_told() {
    let podman = Podman::new("no-rm");
    podman.touch("no-rm");
    let report = podman.check(&["run", "-i"], "sound");
    assert!(evidence(&report, "shutdown.left_container").ends_with("not removed"));
    assert_eq!(podman.asked(), ["run", "ps", "rm", "ps", "rm", "ps"]);
}

#[test]
fn a_taken_name_is_explained() {
    let podman = Podman::new("name");
    podman.touch("taken-n1");
    let report = podman.check(&["run", "-i", "--rm", "--name", "n1"], "sound");
    assert_eq!(report["shutdown"]["exit_code"], 125);
    assert!(evidence(&report, "exit.before_reply").contains("--name n1"), "{report}");
}

#[test]
fn the_guard_removes_what_a_killed_stdiowatch_ran() {
    let podman = Podman::new("guard");
    let mut check = podman.command(&["--root", "/r", "run", "-i"], "nap");
    let mut check: Child = check.stdout(Stdio::null()).spawn().unwrap();
    until("it runs", || podman.containers() == 1);
    check.kill().unwrap();
    check.wait().unwrap();
    until("it is removed", || podman.containers() == 0);
    assert!(podman.log().contains("--root /r rm --force --volumes --time=0 0000"));
    // The guard looks again a few times.
    until("the guard is gone", || podman.asked().iter().filter(|word| *word == "ps").count() >= 6);
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
