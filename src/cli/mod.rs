//! Floor 8: the command line, where everything is put together.

mod access;
mod args;
mod check;
mod config;
mod copy_self;
mod demo;
mod diff;
mod expiry;
mod explain;
mod healthcheck;
mod lock;
mod lockfile;
mod log;
mod output;
mod panics;
mod premises;
mod probing;
mod progress;
mod reference;
mod serve;
mod servers;
mod service;
mod signals;
mod terminal;

use std::process::ExitCode;

use args::{Cli, Command, Format};
use clap::Parser as _;

/// Runs the program.
///
/// Exit statuses: what each subcommand's help says; 2 for a usage or configuration error, before
/// anything was launched.
#[must_use]
pub fn run() -> ExitCode {
    panics::are_told_without_secrets();
    // As a server's browser: before the arguments are read, which are not ours then.
    if let Some(code) = crate::outside::process::browser_main() {
        return code;
    }
    // Which ends what a killed stdiowatch has left running. Started by stdiowatch itself, and there for as long as it is:
    // before the parser is made, which would take more memory than all else it does.
    if std::env::args_os().skip(1).eq(["guard"]) {
        return crate::outside::process::guard_main();
    }
    // Which becomes a server. Started by stdiowatch itself, too.
    if std::env::args_os().nth(1).is_some_and(|first| first == crate::outside::process::SHIM) {
        return crate::outside::process::shim_main();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match cli.command {
        Command::Check(args) => check::run(args),
        Command::Lock(args) => lock::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Serve(args) => serve::run(args),
        Command::SampleServer { kind } => crate::sample::run(kind),
        Command::Config { command } => config::run(command),
        Command::Explain { code } => explain::run(code.as_deref()),
        Command::Healthcheck(args) => healthcheck::run(&args),
        Command::Completions { shell } => reference::completions(shell),
        Command::Man { subcommand } => reference::man(subcommand.as_deref()),
        Command::CopySelf { dir } => copy_self::run(&dir),
    }
}

/// Help and version go to stdout, with status 0. An error is one line on stderr, with status 2.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if Format::Nagios.is_asked_for(std::env::args_os()) {
        return unusable(&in_one_line(error));
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(USAGE);
    }
    eprintln!("stdiowatch: {}", in_one_line(error));
    ExitCode::from(USAGE)
}

/// What clap says on several lines, without its usage and its tips on quoting.
fn in_one_line(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if let (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) = (error.kind(), error.get(ContextKind::InvalidArg))
        && !word.starts_with('-')
    {
        return format!("\"{word}\" is not expected here; a server's command and its arguments come after --");
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let mut told = String::new();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("tip: to pass")) {
        match line.strip_prefix("tip: ") {
            Some(_) => told.push_str("; "),
            None if !told.is_empty() => told.push(' '),
            None => {}
        }
        told.push_str(line.trim_start_matches("tip: "));
    }
    told.trim_start_matches("error: ").to_owned()
}

/// The status of a usage or configuration error.
const USAGE: u8 = 2;

/// Says what is wrong to a monitoring system: on stdout, and as UNKNOWN, for a mistake of ours is not the server's.
fn unusable(error: &str) -> ExitCode {
    let _ = std::io::Write::write_all(&mut std::io::stdout(), crate::show::nagios::unusable(error).as_bytes());
    ExitCode::from(crate::show::nagios::State::Unknown.exit_status())
}

/// Says what is wrong on stderr: in one line, or in one for each mistake in a configuration.
fn complain(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<servers::Wrong>() {
        // Lines that begin with a place, as editors and CI know them.
        Some(wrong) => eprintln!("{wrong}"),
        None => eprintln!("stdiowatch: {error:#}"),
    }
    ExitCode::from(USAGE)
}
