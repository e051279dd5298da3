//! What `check` prints for CI and monitoring, and the small subcommands, as their users run them.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use common::*;

/// A directory of this test's own.
fn place(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("stdiowatch-formats-{name}-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn check(options: &[&str], server: &[&str]) -> Output {
    let args: Vec<&str> = ["check"].iter().chain(options).copied().chain(["--"]).chain(server.iter().copied()).collect();
    Run::new().output(&args)
}

fn sample(options: &[&str], kind: &str) -> Output {
    check(options, &[PROGRAM, "sample-server", kind])
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_plugin_exits_as_plugins_do() {
    for (options, kind, status, word) in [
        (vec![], "sound", 0, "OK"),
        (vec!["--eof-grace", "200ms"], "ignore-eof", 1, "WARNING"),
        (vec!["--eof-grace", "200ms", "--strict"], "ignore-eof", 2, "CRITICAL"),
        (vec![], "banner", 2, "CRITICAL"),
        (vec!["--severity", "stdout.noise=unknown"], "banner", 3, "UNKNOWN"),
    ] {
        let output = sample(&[&["--format", "nagios", "--name", "s"], &options[..]].concat(), kind);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.starts_with(&format!("STDIOWATCH {word} - s: ")) && text.lines().next().unwrap().contains(" | 'startup'="), "{text}");
    }
}

#[test]
fn a_plugin_that_is_called_wrongly_is_unknown() {
    for args in [
        &["check", "--format", "nagios"][..],
        &["check", "--format=nagios", "--no-such-option", "--", "true"],
        &["check", "--format", "nagios", "--startup-timeout", "5", "--", "true"],
        &["check", "--format", "nagios", "-o", "/no/such/dir/file", "--", "true"],
    ] {
        let output = Run::new().output(args);
        let text = stdout(&output);
        assert_eq!((output.status.code(), text.lines().count()), (Some(3), 1), "{args:?}: {text}");
        assert!(text.starts_with("STDIOWATCH UNKNOWN - "), "{text}");
    }
    // The server's own arguments are not ours.
    let output = Run::new().output(&["check", "--no-such-option", "--", "x", "--format", "nagios"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

const HOSTILE: &str = r#"printf '::error::one\n##[error]two\n  ::add-mask::three\n' >&2; printf '::stop-commands::four\n##[group]five\n'; exit 3"#;

#[test]
fn github_is_told_and_obeys_nobody_else() {
    let dir = place("github");
    let summary = dir.join("summary.md");
    fs::write(&summary, "from another command\n").unwrap();
    let args = ["check", "--format", "github", "--name", "mine", "--era", "legacy", "--", "sh", "-c", HOSTILE];
    let output = Run::new().command(&args).env("GITHUB_STEP_SUMMARY", &summary).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let commands: Vec<&str> = text.lines().filter(|l| l.trim_start().starts_with("::")).collect();
    assert!(!commands.is_empty() && commands.iter().all(|l| l.starts_with("::error title=mine%3A ")), "{text}");
    assert!(!text.contains("##["), "{text}");
    let page = fs::read_to_string(&summary).unwrap();
    assert!(page.starts_with("from another command\n### stdiowatch: 1 server: 1 fail\n") && page.contains("| mine | ❌ fail |"), "{page}");
    // A summary that is full already, and none at all.
    fs::write(&summary, "x".repeat(1 << 20)).unwrap();
    assert_eq!(Run::new().command(&args).env("GITHUB_STEP_SUMMARY", &summary).output().unwrap().status.code(), Some(1));
    assert_eq!(fs::metadata(&summary).unwrap().len(), 1 << 20);
    assert_eq!(Run::new().command(&args).env_remove("GITHUB_STEP_SUMMARY").output().unwrap().status.code(), Some(1));
    let trace = dir.join("launched");
    let args = ["check", "--format", "github", "--", "touch", trace.to_str().unwrap()];
    let output = Run::new().command(&args).env("GITHUB_STEP_SUMMARY", "/no/such/dir/file").output().unwrap();
    assert!(output.status.code() == Some(2) && !trace.exists(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn the_log_for_people_holds_no_command_either() {
    for options in [&["--era", "legacy"][..], &["--era", "legacy", "-v"]] {
        let output = check(options, &["sh", "-c", HOSTILE]);
        let text = stdout(&output) + &String::from_utf8_lossy(&output.stderr);
        assert!(text.lines().all(|l| !l.trim_start().starts_with("::") && !l.contains("##[")), "{text}");
        assert!(text.contains("add-mask"), "{text}");
    }
}

#[test]
fn junit_goes_to_a_file() {
    let dir = place("junit");
    let file = dir.join("report.xml");
    let output = sample(&["--format", "junit", "-o", file.to_str().unwrap()], "banner");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let text = fs::read_to_string(file).unwrap();
    assert!(
        text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites ") && text.contains("<failure type=\"stdout.noise\""),
        "{text}"
    );
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn quietly_only_what_is_wrong_is_said() {
    let output = sample(&["-q"], "sound");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    let text = stdout(&sample(&["--quiet"], "banner"));
    assert!(text.starts_with("FAIL  ") && text.contains("stdout.noise") && !text.contains("Seen:"), "{text}");
}

#[test]
fn the_transcript_tells_both_directions_and_no_secret() {
    let script = format!("echo $API_KEY >&2; exec {PROGRAM} sample-server sound");
    let output = check(&["-v", "--format", "json", "--env", "API_KEY=s3cr3t-value"], &["sh", "-c", &script]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(report(&output)["verdict"], "pass");
    for wanted in ["→ {", "\"method\":\"initialize\"", "← {", "stderr: [redacted]", "its stdin is closed", "exited with status 0"] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(!said.contains("s3cr3t") && said.lines().all(|l| l[..9].trim().parse::<f64>().is_ok() && l.len() < 2000), "{said}");
}

#[test]
fn a_flood_is_shown_in_part() {
    let output = check(&["-v", "--format", "json", "--era", "legacy"], &["sh", "-c", "yes 'a line that is not JSON' | head -100000"]);
    let lines = String::from_utf8_lossy(&output.stderr).lines().count();
    assert!(lines <= 100_010, "{lines}");
    assert_eq!(report(&output)["verdict"], "fail");
}

#[test]
fn shells_are_told_how_to_complete() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = Run::new().output(&["completions", shell]);
        assert!(output.status.success());
        let script = stdout(&output);
        let has_values = !matches!(shell, "elvish" | "powershell");
        assert!(script.contains("startup-timeout") && script.contains("copy-self") && script.contains("nagios") == has_values, "{shell}");
        assert!(!script.contains("guard"), "{shell}: what is hidden stays hidden");
        if shell == "bash" && Command::new("bash").arg("--version").output().is_ok() {
            let path = place("bash").join("script");
            fs::write(&path, script).unwrap();
            let checked = Command::new("bash").arg("-n").arg(&path).output().unwrap();
            assert!(checked.status.success() && checked.stderr.is_empty(), "{}", String::from_utf8_lossy(&checked.stderr));
            fs::remove_dir_all(path.parent().unwrap()).unwrap();
        }
    }
    assert_eq!(Run::new().output(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn there_is_a_manual_page_for_everything() {
    let page = stdout(&Run::new().output(&["man"]));
    assert!(page.contains(".TH stdiowatch 1") && page.contains("stdiowatch\\-check(1)"), "{page}");
    for subcommand in ["check", "serve", "sample-server", "explain", "healthcheck", "completions", "man", "copy-self"] {
        assert!(page.contains(&subcommand.replace('-', "\\-")), "{subcommand}");
        let page = stdout(&Run::new().output(&["man", subcommand]));
        assert!(page.contains(&format!(".TH stdiowatch-{subcommand} 1")) && page.contains(".SH SYNOPSIS"), "{page}");
    }
    let check = stdout(&Run::new().output(&["man", "check"]));
    assert!(check.contains(".SH SYNOPSIS\nstdiowatch check [OPTIONS] [NAME]... [\\-\\- <COMMAND>...]\n.SH DESCRIPTION\n"), "{check}");
    for none in ["guard", "nonsense"] {
        assert_eq!(Run::new().output(&["man", none]).status.code(), Some(2));
    }
}

#[test]
fn it_copies_itself() {
    let dir = place("copy");
    let copy = dir.join("stdiowatch");
    let path = dir.to_str().unwrap();
    let output = Run::new().output(&["copy-self", path]);
    assert!(output.status.success() && output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o7777, 0o755);
    assert!(fs::read(&copy).unwrap() == fs::read(PROGRAM).unwrap());
    // Over a copy that is running, which cannot be written to.
    let mut running = Command::new(&copy).args(["sample-server", "mute"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    assert!(Run::new().output(&["copy-self", path]).status.success());
    drop(running.stdin.take());
    running.wait().unwrap();
    assert!(Command::new(&copy).arg("--version").output().unwrap().status.success());
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing is left beside it");
    // A directory stands where the copy would go: it cannot be replaced, and nothing is left then either.
    fs::remove_file(&copy).unwrap();
    fs::create_dir_all(copy.join("full")).unwrap();
    for (wrong, wanted) in [(path, "cannot copy the program into"), ("/no/such/dir", "/no/such/dir is no directory"), (PROGRAM, "is no directory")] {
        let output = Run::new().output(&["copy-self", wrong]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(wanted), "{said}");
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_slip_is_answered_with_what_was_meant() {
    let said = |args: &[&str]| {
        let output = Run::new().output(args);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (args, wanted) in [
        (&["chek"][..], "unrecognized subcommand 'chek'; a similar subcommand exists: 'check'\n"),
        (&["check", "--frmat", "json"], "unexpected argument '--frmat' found; a similar argument exists: '--format'\n"),
        (&["explain", "stdout.nois"], "there is no finding \"stdout.nois\"; did you mean `stdout.noise`?\n"),
        (&["explain", "nonsense"], "there is no finding \"nonsense\"; `stdiowatch explain` lists them\n"),
    ] {
        assert_eq!(said(args), format!("stdiowatch: {wanted}"));
    }
}

#[test]
fn a_finding_is_explained_and_so_is_a_family() {
    let said = |args: &[&str]| stdout(&Run::new().output(args));
    assert!(said(&["explain", "stdout.noise"]).contains("What to do: "));
    let family = said(&["explain", "stdout"]);
    assert!(family.lines().count() > 10 && family.lines().all(|line| line.starts_with("stdout.")), "{family}");
    assert_eq!(said(&["explain", "stdout."]), family);
    let all = said(&["explain"]);
    assert!(all.contains(&family) && all.contains("\nlist.incomplete "), "{all}");
}

#[test]
fn the_samples_are_listed_where_help_is_asked_for() {
    let help = stdout(&Run::new().output(&["sample-server", "--help"]));
    for kind in ["sound", "sound-modern", "banner", "glued"] {
        assert!(help.lines().any(|line| line.split_whitespace().next() == Some(kind)), "{kind} in {help}");
    }
    assert!(!help.contains("nap"), "{help}");
}

#[test]
fn what_is_allowed_needs_something_to_be_compared_with() {
    let output = sample(&["--allow", "description"], "sound");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--lock"), "{output:?}");
}

/// A client's file with a sound server, one that is remote, and one that is wrong.
fn entries(scratch: &Scratch) -> String {
    let text = format!(
        "{{\"mcpServers\": {{\n\"sound\": {{\"command\": \"{PROGRAM}\", \"args\": [\"sample-server\", \"sound\"]}},\n\
         \"far\": {{\"url\": \"https://example.com\"}},\n\"wrong\": {{\"args\": []}}}}}}\n"
    );
    scratch.write("entries.json", &text)
}

#[test]
fn an_entry_that_no_client_can_use_fails_in_every_format() {
    let scratch = Scratch::new();
    let file = entries(&scratch);
    let told = |format| Run::new().output(&["check", "--format", format, "--config", &file]);
    for (format, status, wanted) in [
        ("human", 1, "PASS  sound  "),
        ("json", 1, "\"unwatched\": ["),
        ("junit", 1, " tests=\"3\" failures=\"1\" errors=\"0\" "),
        ("github", 1, ",line=4,col=1,title=wrong is broken::it has neither `command` nor `url`\n"),
        ("nagios", 2, "STDIOWATCH CRITICAL - 1 entry broken in the configuration, "),
    ] {
        let output = told(format);
        assert!(output.status.code() == Some(status) && stdout(&output).contains(wanted), "{format}: {output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("\"wrong\" is broken") && stderr.contains("\"far\" is skipped"), "{format}: {stderr}");
    }
}
