//! `stdiowatch config`: check a configuration, show what it comes to, print its JSON Schema.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::lockfile::shown;
use super::premises::Found;
use super::{USAGE, access};
use crate::config::{Configuration, FileProblem, Skipped, load, schema, show};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Read configuration files, and say what is wrong with them, and what they need that is not there. Nothing is
    /// launched.
    ///
    /// Exit status: 0 nothing is wrong (warnings allowed), 2 something is.
    Check {
        /// The files: ours, or those of MCP clients.
        #[arg(required_unless_present = "web_config", value_name = "FILE")]
        files: Vec<PathBuf>,
        /// A web configuration, to be checked as well.
        #[arg(long, value_name = "FILE")]
        web_config: Option<PathBuf>,
        /// Exit with 2 on warnings too: no server at all, a certificate of no use, and what may be there where the
        /// servers are to run: a command that is not found, a user, a directory or a lock file that is missing.
        #[arg(long)]
        strict: bool,
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

/// What there is to say.
#[derive(Default)]
struct Said {
    /// To stdout: each file that was checked, and what it holds. It is called ok if nothing at all is wrong.
    files: Vec<(PathBuf, Option<String>)>,
    /// To stdout.
    told: String,
    /// To stderr.
    warned: String,
    /// To stderr; not of something that is as it should be.
    wrong: String,
}

impl Said {
    fn warn(&mut self, FileProblem { file, problem }: &FileProblem) {
        let _ = writeln!(self.warned, "{}:{}: warning: {}", shown(file), problem.at, problem.message);
    }
}

pub(super) fn run(command: ConfigCommand) -> ExitCode {
    match command {
        ConfigCommand::Check { files, web_config, strict } => {
            let said = read(&files, |configuration| {
                let mut said = checked(&files, configuration);
                for file in web_config.iter().chain(&configuration.web_config) {
                    match access::check(file) {
                        Ok(warnings) => {
                            said.files.push((file.clone(), None));
                            warnings.iter().for_each(|warning| said.warn(warning));
                        }
                        Err(problems) => said.wrong.push_str(&format!("{problems}\n")),
                    }
                }
                said
            });
            print(&said, strict)
        }
        ConfigCommand::Show { files } => print(&read(&files, |configuration| Said { told: show(configuration), ..Said::default() }), false),
        ConfigCommand::Schema => {
            say(&format!("{:#}\n", schema()));
            ExitCode::SUCCESS
        }
    }
}

/// Reads the files; what is to be said of them, or what is wrong with them.
fn read(files: &[PathBuf], told: impl Fn(&Configuration) -> Said) -> Said {
    match load(files, &|name| std::env::var(name).ok()) {
        Ok(configuration) => told(&configuration),
        Err(problems) => Said { wrong: problems.iter().map(|problem| format!("{problem}\n")).collect(), ..Said::default() },
    }
}

/// Prints all of it, and says with which status to exit.
fn print(said: &Said, strict: bool) -> ExitCode {
    let is_wrong = !said.wrong.is_empty() || strict && !said.warned.is_empty();
    for (file, holds) in &said.files {
        match (is_wrong, holds) {
            (false, Some(holds)) => say(&format!("{}: ok, {holds}\n", shown(file))),
            (false, None) => say(&format!("{}: ok\n", shown(file))),
            (true, Some(holds)) => say(&format!("{}: {holds}\n", shown(file))),
            (true, None) => {}
        }
    }
    say(&said.told);
    eprint!("{}{}", said.warned, said.wrong);
    if is_wrong { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// A line for each file, one for each entry that is not watched, and one for each thing that is needed and not there.
fn checked(files: &[PathBuf], configuration: &Configuration) -> Said {
    let mut said = Said::default();
    let mut found = Found::default();
    configuration.servers.iter().for_each(|server| found.look(server));
    for file in files {
        let servers = configuration.servers.iter().filter(|server| server.file == *file).count();
        let skipped: Vec<&Skipped> = configuration.skipped.iter().filter(|skipped| skipped.file == *file).collect();
        said.files.push((file.clone(), Some(format!("{servers} server{}", if servers == 1 { "" } else { "s" }))));
        for skipped in skipped {
            let to = if skipped.broken { &mut said.wrong } else { &mut said.told };
            let _ = writeln!(to, "{}", super::servers::told(skipped));
        }
    }
    if configuration.servers.is_empty() && !files.is_empty() {
        let files: Vec<String> = files.iter().map(|file| shown(file)).collect();
        let _ = writeln!(said.warned, "{}: warning: there is no server to watch, and `serve` and `check` refuse to start", files.join(", "));
    }
    configuration.slips.iter().chain(&found.warnings).for_each(|warning| said.warn(warning));
    said.wrong.extend(found.mistakes.iter().map(|mistake| format!("{mistake}\n")));
    said
}

/// Whoever reads may have read enough (`| head`).
fn say(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
}
