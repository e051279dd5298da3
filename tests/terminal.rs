//! What a terminal shows, on a real one.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::fs::OpenOptions;
use std::io::Read as _;
use std::process::Stdio;

use common::*;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Runs the program with stdout and stderr on a terminal that is so wide, in this environment; what it wrote there.
fn on_a_terminal(columns: u16, variables: &[(&str, &str)], args: &[&str]) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let path = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    tcsetwinsize(&ours, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let theirs = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let run = Run::new();
    let mut command = run.command(args);
    for name in ["NO_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.env("TERM", "xterm").envs(variables.iter().copied());
    command.stdout(Stdio::from(theirs.try_clone().unwrap())).stderr(Stdio::from(theirs));
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut written = Vec::new();
    // The end of a terminal is an error.
    let _ = std::fs::File::from(ours).read_to_end(&mut written);
    child.wait().unwrap();
    String::from_utf8(written).unwrap()
}

const MUTE: [&str; 11] = ["check", "--name", "mine", "--era", "legacy", "--startup-timeout", "1500ms", "--", PROGRAM, "sample-server", "mute"];

#[test]
fn it_says_what_it_waits_for_and_then_takes_that_away() {
    let text = on_a_terminal(70, &[], &MUTE);
    assert!(text.contains("mine: waiting for the reply to initialize, 0 s of 1.5 s"), "{text:?}");
    assert!(text.contains("mine: waiting for the reply to initialize, 1 s of 1.5 s"), "{text:?}");
    let last = text.rsplit("\x1b[2K").next().unwrap();
    assert!(last.starts_with("\x1b[1;31mFAIL\x1b[0m  mine  ") && !last.contains("waiting for the reply"), "{text:?}");
}

#[test]
fn it_is_quiet_when_it_is_told_to_and_when_it_is_quick() {
    let quiet = on_a_terminal(70, &[], &[&["check", "-q"], &MUTE[1..]].concat());
    assert!(quiet.starts_with("\x1b[1;31mFAIL") && !quiet.contains("waiting for"), "{quiet:?}");
    let quick = on_a_terminal(70, &[], &["check", "--", PROGRAM, "sample-server", "sound"]);
    assert!(!quick.contains("waiting for"), "{quick:?}");
}

#[test]
fn the_report_is_as_wide_as_the_terminal() {
    let text = on_a_terminal(50, &[("NO_COLOR", "1")], &["check", "--", PROGRAM, "sample-server", "banner"]);
    assert!(text.lines().all(|l| l.trim_end().chars().count() <= 50) && text.lines().count() > 10, "{text}");
}

#[test]
fn colours_are_as_the_user_wants_them() {
    let sound = ["check", "--", PROGRAM, "sample-server", "sound"];
    assert!(on_a_terminal(80, &[], &sound).contains("\x1b[1;32mPASS"));
    for none in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        assert!(!on_a_terminal(80, &[none], &sound).contains("\x1b[1;32m"), "{none:?}");
    }
    let piped = |name| String::from_utf8(Run::new().command(&sound).env(name, "1").output().unwrap().stdout).unwrap();
    assert!(piped("CLICOLOR_FORCE").contains("\x1b[1;32mPASS") && !piped("NO_COLOR").contains('\x1b'));
}
