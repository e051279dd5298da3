//! How a process is launched, and how it goes before its time.

use super::super::case::{Case, Check, Found};
use super::super::verdict::Severity::{Fail, Warn};
use super::container::silence_hint;
use super::limit;
use super::ours::{says_no_task, starved};
use crate::probe::{Asked, Exit, LaunchError, Phase, What};
use crate::words::printable;

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "spawn.not_found",
        severity: Fail,
        about: "The command is not on the PATH that the server would get, or there is nothing at its path.",
        mend: "Give the command's full path, or set PATH in the server's environment. A PATH that only an interactive shell has (nvm, pyenv, Homebrew) is not handed on to servers.",
        run: |case| {
            launch_error(case, |error| match error {
                LaunchError::NotFound { command, searched: Some(path) } => Some((
                    format!("the command \"{}\" was not found", printable(command, 120)),
                    format!("PATH searched: {}{}", printable(path, 400), one_word_hint(command)),
                )),
                LaunchError::NotFound { command, searched: None } => Some((
                    format!("there is no file \"{}\"", printable(command, 200)),
                    format!("the command is a path, so PATH was not searched{}", one_word_hint(command)),
                )),
                _ => None,
            })
        },
    },
    Check {
        code: "spawn.interpreter_missing",
        severity: Fail,
        about: "The file is there; the interpreter that its first line (#!) names is not.",
        mend: "Install the interpreter, or mend the #! line. A line that ends in a carriage return names an interpreter that ends in one: save the file with Unix line ends.",
        run: |case| {
            launch_error(case, |error| match error {
                LaunchError::InterpreterMissing { program, interpreter } => Some((
                    format!("the interpreter \"{}\" is missing", printable(interpreter, 200)),
                    format!("wanted by {}", printable(&program.to_string_lossy(), 200)),
                )),
                _ => None,
            })
        },
    },
    Check {
        code: "spawn.cwd_missing",
        severity: Fail,
        about: "The working directory does not exist, or is no directory.",
        mend: "Create it, or correct the path given by --cwd.",
        run: |case| {
            launch_error(case, |error| match error {
                LaunchError::CwdMissing { cwd, not_a_directory } => Some((
                    if *not_a_directory { "the working directory is no directory" } else { "the working directory does not exist" }.to_owned(),
                    format!("{}{}", printable(&cwd.to_string_lossy(), 300), if *not_a_directory { " is no directory" } else { "" }),
                )),
                _ => None,
            })
        },
    },
    Check {
        code: "spawn.permission",
        severity: Fail,
        about: "The file may not be executed: its mode has no x, or a directory on the way may not be entered.",
        mend: "chmod +x the file (unpacking an archive often drops the mode), or let the user that runs the server reach it.",
        run: |case| {
            launch_error(case, |error| match error {
                LaunchError::Permission { path, what } => Some((
                    if what == "is a directory" { "the command is a directory" } else { "the command may not be executed" }.to_owned(),
                    format!("{}: {what}", printable(&path.to_string_lossy(), 300)),
                )),
                _ => None,
            })
        },
    },
    Check {
        code: "spawn.exec_format",
        severity: Fail,
        about: "The file is neither a program nor a script with a #! line. Some clients run such a file by a shell, others refuse it.",
        mend: "Begin the script with a #! line, such as #!/usr/bin/env node.",
        run: |case| {
            launch_error(case, |error| match error {
                LaunchError::ExecFormat { program } => {
                    Some(("the file is no program, and has no #! line".to_owned(), printable(&program.to_string_lossy(), 300)))
                }
                _ => None,
            })
        },
    },
    Check {
        code: "spawn.failed",
        severity: Fail,
        about: "The launch failed in another way that is the server's or its configuration's.",
        mend: "The error says what the operating system did not like.",
        run: |case| {
            launch_error(case, |error| match error {
                LaunchError::Failed { error } => Some(("the server could not be launched".to_owned(), printable(error, 300))),
                _ => None,
            })
        },
    },
    Check {
        code: "exit.before_reply",
        severity: Fail,
        about: "The process ended before its first valid reply. Clients say that the connection was closed; why stands in stderr, which most of them only log.",
        mend: "Missing credentials or arguments, a failed import, a container without -i, a default transport other than stdio are the usual causes. Run the command by hand with the variables that it gets: HOME LOGNAME PATH SHELL TERM USER and those of --env; others of your shell's are not handed on.",
        run: |case| {
            case.seen(|what| match what {
                What::Exited { asked, exit, after_reply: false, held } if !is_over(case, *asked, *exit) => {
                    Some(format!("the server {} before it answered `{}`{}", ended(*exit), asked.method(), held_words(*held)))
                }
                _ => None,
            })
            .map(|found| with_stderr(case, found))
        },
    },
    Check {
        code: "exit.mid_session",
        severity: Fail,
        about: "The process ended with a request unanswered, after it had answered before. An exit status of 0 does not make it better: the request fails in the client, and every one after it.",
        mend: "If its stderr does not say why, run it by hand and send it the same. Servers that end at a message they do not know, or at an error in one request, end their clients' sessions.",
        run: |case| {
            case.seen(|what| match what {
                What::Exited { asked, exit, after_reply: true, held } if !is_over(case, *asked, *exit) => {
                    Some(format!("the server {} while `{}` was unanswered{}", ended(*exit), asked.method(), held_words(*held)))
                }
                _ => None,
            })
            .map(|found| with_stderr(case, found))
        },
    },
    Check {
        code: "exit.detached",
        severity: Warn,
        about: "The launched process exited with status 0, and something that it had started answered on over its pipes. Clients on Node close the server's input when that process exits, and so lose the server; those on Python do not look.",
        mend: "Keep the launched process for as long as the server lives: in a shell wrapper use exec, and no & behind it; no `setsid -f`, no daemon.",
        run: |case| {
            case.seen(|what| match what {
                What::Detached { asked } => Some(format!("the launched process had exited when `{}` was answered", asked.method())),
                _ => None,
            })
        },
    },
    Check {
        code: "exit.stdout_closed",
        severity: Fail,
        about: "The server closed its stdout with a request unanswered, and lives on.",
        mend: "Nothing can be heard from it any more. Look for code that closes or redirects stdout.",
        run: |case| {
            case.seen(|what| match what {
                What::StdoutClosed { asked } => {
                    Some(format!("the server closed its stdout while `{}` was unanswered, and is still running", asked.method()))
                }
                _ => None,
            })
        },
    },
    Check {
        code: "exit.stdin_closed",
        severity: Fail,
        about: "The server closed its stdin with requests still to send or to answer, and lives on.",
        mend: "It cannot be asked anything any more. Look for code that closes or redirects stdin, or a wrapper that does not hand it on.",
        run: |case| {
            case.seen(|what| match what {
                What::StdinClosed { asked } => {
                    Some(format!("the server closed its stdin, so `{}` could not be asked or was not answered, and is still running", asked.method()))
                }
                _ => None,
            })
        },
    },
];

/// Whether it ended over a limit, which is told as that.
fn is_over(case: Case<'_>, asked: Asked, exit: Exit) -> bool {
    limit::over(case.launch, asked.phase(), exit).is_some()
}

fn launch_error(case: Case<'_>, wanted: impl Fn(&LaunchError) -> Option<(String, String)>) -> Option<Found> {
    let (message, evidence) = wanted(case.launch.failure.as_ref()?)?;
    Some(Found::once(case.launch.started, Phase::Spawn, message, evidence))
}

/// A command line given as one word is a common slip.
fn one_word_hint(command: &str) -> &'static str {
    if command.contains(' ') {
        "; hint: the command has a space in it: give program and arguments as words of their own, without quotes around all"
    } else {
        ""
    }
}

/// How a process ended, in words.
pub(super) fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exited with status {code}"),
        Exit::Signal(signal) => format!("was ended by {}", signal_name(signal)),
    }
}

/// The name of a signal, with its number.
pub(super) fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    format!("{name} (signal {signal})")
}

fn held_words(held: bool) -> &'static str {
    if held { "; a process that it had started held its stdout open, and answered nothing" } else { "" }
}

/// The last lines of stderr are the best evidence of why a process ended.
fn with_stderr(case: Case<'_>, mut found: Found) -> Found {
    let last: Vec<String> = telling(&case.launch.stderr_tail).into_iter().map(|line| printable(line, 200)).collect();
    if last.is_empty() {
        found.evidence.push_str("; nothing on stderr");
    } else {
        found.evidence.push_str(&format!("; stderr ends: {}", last.join(" ⏎ ")));
    }
    if let Some(hint) = exit_hint(case) {
        found.evidence.push_str(&format!("; {hint}"));
    }
    found
}

/// The lines of stderr that are likely to say why: the last one that speaks of an error, and the end.
fn telling(stderr: &str) -> Vec<&str> {
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let end = lines.len().saturating_sub(3);
    let speaks = |line: &&&str| ["error", "exception", "fatal", "panic", "denied"].iter().any(|word| line.to_ascii_lowercase().contains(word));
    let told = lines[..end].iter().rfind(speaks).filter(|_| !lines[end..].iter().any(|line| speaks(&line)));
    told.into_iter().chain(&lines[end..]).copied().collect()
}

/// What an exit without an answer often means.
fn exit_hint(case: Case<'_>) -> Option<String> {
    if let Some(hint) = silence_hint(case) {
        return Some(hint);
    }
    let stderr = case.launch.stderr_tail.to_ascii_lowercase();
    let silent = stderr.trim().is_empty() && case.launch.io.stdout_bytes == 0;
    let clean =
        case.launch.seen.iter().any(|s| matches!(s.what, What::Exited { exit: Exit::Code(0), asked: Asked::Discover | Asked::Initialize, .. }));
    if stderr.contains("input device is not a tty") {
        Some("hint: leave out docker's -t; a server's stdin is no terminal".to_owned())
    } else if ["emfile", "too many open files", "enfile"].iter().any(|words| stderr.contains(words)) {
        Some("hint: it had no descriptors left; `limits: {open_files: …}` says how many it may have, where that is set".to_owned())
    } else if says_no_task(&stderr) && starved(case).is_none() {
        Some("hint: it got no more threads or processes, and nothing shows that others had taken them: look for a limit of its own (`ulimit -u`), or for workers without number".to_owned())
    } else if silent && clean {
        let hint = "hint: an end without a word and with status 0 often means that it read the end of its input at once (docker run without -i, a command put into the background), or that stdio is not its default transport";
        Some(hint.to_owned())
    } else {
        None
    }
}
