//! Servers that are run by `docker run` and the like.

use super::*;

fn docker() -> ContainerRun {
    ContainerRun { engine: "docker".to_owned(), interactive: true, removes: true, ..ContainerRun::default() }
}

/// A probe of a container that never answered, but ended like this.
fn ended(run: ContainerRun, code: i32, stderr: &str) -> Report {
    let mut observation = with(|launch| {
        (launch.first_reply, launch.ready, launch.listed) = (None, None, None);
        launch.stderr_tail = stderr.to_owned();
        let exited = What::Exited { asked: Asked::Initialize, exit: Exit::Code(code), after_reply: false, held: false };
        launch.seen.push(seen(exited));
    });
    observation.container = Some(run);
    report(&observation)
}

fn evidence<'r>(report: &'r Report, code: &str) -> &'r str {
    &report.findings.iter().find(|finding| finding.code == code).unwrap().evidence
}

#[test]
fn what_is_wrong_with_the_command_is_explained() {
    let hint = |run, code, stderr: &str| {
        let report = ended(run, code, stderr);
        let evidence = evidence(&report, "exit.before_reply");
        evidence.split_once("hint: ").map(|(_, hint)| hint.to_owned()).unwrap_or_default()
    };
    assert!(hint(ContainerRun { interactive: false, ..docker() }, 0, "").contains("add -i"));
    assert!(hint(ContainerRun { interactive: false, ..docker() }, 1, "server listens on stdio").contains("add -i"));
    assert!(hint(ContainerRun { tty: true, ..docker() }, 1, "the input device is not a TTY").contains("leave out -t"));
    assert!(hint(ContainerRun { detached: true, ..docker() }, 0, "").contains("with -d"));
    let named = ContainerRun { name: Some("n\n1".to_owned()), ..docker() };
    let conflict = r#"docker: Error response from daemon: Conflict. The container name "/n1" is already in use by container "0b"."#;
    assert!(hint(named, 125, conflict).contains(r"--name n\n1"));
    assert!(hint(docker(), 125, "Error: container ID file found, make sure the other container isn't running").contains("--cidfile"));
    for (code, stderr) in [(1, "no such module"), (125, "Cannot connect to the Docker daemon")] {
        assert_eq!(hint(docker(), code, stderr), "");
    }
}

#[test]
fn a_terminal_explains_echoes_and_a_deaf_server() {
    let mut observation = with(|launch| {
        launch.seen.push(seen(What::Echo { method: "initialize" }));
        launch.end.as_mut().unwrap().by = EndedBy::Sigterm;
    });
    observation.container = Some(ContainerRun { tty: true, ..docker() });
    let report = report(&observation);
    assert!(evidence(&report, "stdout.noise").contains("-t of `docker`"));
    assert!(evidence(&report, "shutdown.needed_term").contains("-t gives the server"));
}

#[test]
fn a_container_that_is_left_is_told() {
    let left = |removed| LeftContainer { id: "0123456789abcdef".to_owned(), name: "n1".to_owned(), state: "Up 2 seconds".to_owned(), removed };
    let of = |removed| {
        report(&with(|launch| {
            let end = launch.end.as_mut().unwrap();
            end.swept.containers = vec![left(removed)];
        }))
    };
    let removed = of(true);
    assert_eq!((removed.verdict, codes(&removed)), (Verdict::Warn, vec!["shutdown.left_container"]));
    assert!(removed.findings[0].message.ends_with("was removed"));
    assert_eq!(removed.findings[0].evidence, "n1 (0123456789ab): Up 2 seconds");
    assert!(of(false).findings[0].message.ends_with("could not be removed"));
}
