//! `stdiowatch config`: check a configuration, show what it comes to, print its JSON Schema.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::{USAGE, access};
use crate::config::{Configuration, Skipped, load, schema, show};
use crate::words::printable;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Read configuration files, and say what is wrong with them. Nothing is launched.
    ///
    /// Exit status: 0 nothing is wrong, 2 something is.
    Check {
        /// The files: ours, or those of MCP clients.
        #[arg(required_unless_present = "web_config", value_name = "FILE")]
        files: Vec<PathBuf>,
        /// A web configuration, to be checked as well.
        #[arg(long, value_name = "FILE")]
        web_config: Option<PathBuf>,
    },
    /// Print the JSON Schema of a configuration, for editors.
    Schema,
    /// Print the effective values of every server, defaults filled in, secrets masked.
    Show {
        /// The files: ours, or those of MCP clients.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

pub(super) fn run(command: ConfigCommand) -> ExitCode {
    match command {
        ConfigCommand::Check { files, web_config } => read(&files, |configuration| {
            let (mut said, mut wrong) = checked(&files, configuration);
            for file in web_config.iter().chain(&configuration.web_config) {
                match access::check(file) {
                    Ok(()) => said.push_str(&format!("{}: ok\n", printable(&file.to_string_lossy(), 300))),
                    Err(problems) => wrong.push_str(&format!("{problems}\n")),
                }
            }
            (said, wrong)
        }),
        ConfigCommand::Show { files } => read(&files, |configuration| (show(configuration), String::new())),
        ConfigCommand::Schema => {
            say(&format!("{:#}\n", schema()));
            ExitCode::SUCCESS
        }
    }
}

/// Reads the files, and prints what is to be said of them: to stdout, and what is wrong to stderr.
fn read(files: &[PathBuf], told: impl Fn(&Configuration) -> (String, String)) -> ExitCode {
    let (said, wrong) = match load(files, &|name| std::env::var(name).ok()) {
        Ok(configuration) => told(&configuration),
        Err(problems) => (String::new(), problems.iter().map(|problem| format!("{problem}\n")).collect()),
    };
    say(&said);
    eprint!("{wrong}");
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(USAGE) }
}

/// A line for each file, and one for each entry that is not watched.
fn checked(files: &[PathBuf], configuration: &Configuration) -> (String, String) {
    let (mut said, mut wrong) = (String::new(), String::new());
    for file in files {
        let shown = printable(&file.to_string_lossy(), 300);
        let servers = configuration.servers.iter().filter(|server| server.file == *file).count();
        let skipped: Vec<&Skipped> = configuration.skipped.iter().filter(|skipped| skipped.file == *file).collect();
        let word = if skipped.iter().any(|skipped| skipped.broken) { "" } else { "ok, " };
        let _ = writeln!(said, "{shown}: {word}{servers} server{}", if servers == 1 { "" } else { "s" });
        for skipped in skipped {
            let to = if skipped.broken { &mut wrong } else { &mut said };
            let _ = writeln!(to, "{}", super::servers::told(skipped));
        }
    }
    (said, wrong)
}

/// Whoever reads may have read enough (`| head`).
fn say(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
}
