//! Where `check`'s reports go, in which format, and the exit status that they make.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Serialize;

use super::args::{CheckArgs, Format};
use super::terminal;
use crate::judge::{Report, Rules, Verdict};
use crate::probe::Plan;
use crate::show::human::{self, Look};
use crate::show::nagios::{self, Probed, State};
use crate::show::{github, junit};
use crate::words::printable;

/// A probe that was made, and what it was made by.
pub(super) struct Checked {
    pub(super) report: Report,
    pub(super) plan: Plan,
    pub(super) rules: std::sync::Arc<Rules>,
}

/// What `--format json` prints.
#[derive(Serialize)]
struct Document<'r> {
    format: u32,
    servers: &'r [Report],
}

/// Where the reports go.
pub(super) struct Output<'a> {
    args: &'a CheckArgs,
    /// `None` for stdout.
    file: Option<std::fs::File>,
}

impl Output<'_> {
    /// Opens the output before anything is launched: an error here costs nothing.
    pub(super) fn open(args: &CheckArgs) -> anyhow::Result<Output<'_>> {
        Ok(Output { args, file: args.output.as_deref().map(create).transpose()? })
    }

    /// Writes the reports, and says with what to exit.
    pub(super) fn write(self, checked: Vec<Checked>) -> anyhow::Result<ExitCode> {
        let Output { args, file } = self;
        let stdout = std::io::stdout();
        let look = match &file {
            None => Look { colours: terminal::has_colours(&stdout), width: terminal::width(&stdout), quiet: args.quiet },
            Some(_) => Look { quiet: args.quiet, ..Look::default() },
        };
        let (reports, made): (Vec<Report>, Vec<_>) = checked.into_iter().map(|c| (c.report, (c.plan, c.rules))).unzip();
        let text = match args.format {
            Format::Human => human::reports(&reports, look),
            Format::Json => json(&reports)?,
            Format::Junit => junit::document(&reports, args.strict).context("cannot write the report")?,
            Format::Github => {
                summarise(&reports)?;
                github::annotations(&reports)
            }
            Format::Nagios => {
                let probed: Vec<Probed<'_>> = reports.iter().zip(&made).map(|(report, (plan, rules))| Probed { report, plan, rules }).collect();
                nagios::output(&probed, args.strict)
            }
        };
        match file {
            None => print(&mut stdout.lock(), &text)?,
            Some(mut file) => print(&mut file, &text)?,
        }
        Ok(ExitCode::from(exit_status(&reports, args)))
    }
}

pub(super) fn create(path: &Path) -> anyhow::Result<std::fs::File> {
    std::fs::File::create(path).with_context(|| format!("cannot write {}", printable(&path.to_string_lossy(), 300)))
}

fn print(out: &mut dyn Write, text: &str) -> anyhow::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads has read enough (`| head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write the report"),
    }
}

fn json(reports: &[Report]) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(&Document { format: 1, servers: reports }).context("cannot write the report")?;
    text.push('\n');
    Ok(text)
}

/// Adds a summary to the step's, if GitHub has named a file for it. What other commands of the step have written
/// there counts towards its size.
fn summarise(reports: &[Report]) -> anyhow::Result<()> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else { return Ok(()) };
    let shown = || format!("cannot write the step summary to {}", printable(&path.to_string_lossy(), 300));
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&path).with_context(shown)?;
    let there = file.metadata().with_context(shown)?.len();
    let room = github::MAX_SUMMARY.saturating_sub(usize::try_from(there).unwrap_or(usize::MAX));
    file.write_all(github::summary(reports, room).as_bytes()).with_context(shown)
}

/// The status that the verdicts make.
fn exit_status(reports: &[Report], args: &CheckArgs) -> u8 {
    if args.format == Format::Nagios {
        return State::of(reports, args.strict).exit_status();
    }
    let any = |verdict| reports.iter().any(|r| r.verdict == verdict);
    if any(Verdict::Fail) || args.strict && any(Verdict::Warn) {
        1
    } else if any(Verdict::Unknown) {
        3
    } else {
        0
    }
}
