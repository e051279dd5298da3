//! `stdiowatch completions` and `stdiowatch man`: from the command line's own definition.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use super::args::Cli;
use super::complain;

/// A completion script for `shell`, on stdout.
pub(super) fn completions(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "stdiowatch", &mut script);
    print(&script)
}

/// The manual page of the program, or of one subcommand, on stdout.
pub(super) fn man(subcommand: Option<&str>) -> ExitCode {
    match page(subcommand) {
        Ok(page) => print(&page),
        Err(error) => complain(&error),
    }
}

fn page(subcommand: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let mut command = Cli::command();
    command.build();
    let mut command = match subcommand {
        None => command,
        Some(name) => {
            let found = command.get_subcommands().find(|sub| sub.get_name() == name);
            let found = found.ok_or_else(|| anyhow!("there is no subcommand \"{}\"", crate::words::printable(name, 60)))?;
            found.clone().version(env!("CARGO_PKG_VERSION"))
        }
    };
    let usage = command.render_usage().to_string();
    let mut page = Vec::new();
    Man::new(command).render(&mut page).context("cannot write the page")?;
    Ok(with_synopsis(&String::from_utf8_lossy(&page), usage.trim_start_matches("Usage:").trim()).into_bytes())
}

/// `page` with this synopsis. The generator's own names every option, and not what stands after `--`.
fn with_synopsis(page: &str, usage: &str) -> String {
    const BEGIN: &str = ".SH SYNOPSIS\n";
    let Some((head, rest)) = page.split_once(BEGIN) else { return page.to_owned() };
    let rest = rest.find(".SH ").map_or("", |next| &rest[next..]);
    let lines: Vec<String> = usage.lines().map(|line| line.trim().replace('\\', "\\e").replace('-', "\\-")).collect();
    format!("{head}{BEGIN}{}\n{rest}", lines.join("\n.br\n"))
}

fn print(text: &[u8]) -> ExitCode {
    // Whoever reads may have read enough (`| head`).
    let _ = std::io::stdout().write_all(text);
    ExitCode::SUCCESS
}
