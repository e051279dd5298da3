//! Where `check`'s reports go, in which format, and the exit status that they make.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Serialize;

use super::args::{CheckArgs, Format};
use super::terminal;
use crate::judge::{Report, Rules, Verdict};
use crate::ledger::Unwatched;
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
    /// Entries of files that are not watched, where there are any.
    #[serde(skip_serializing_if = "<[Unwatched]>::is_empty")]
    unwatched: &'r [Unwatched],
}

/// Where the reports go.
pub(super) struct Output<'a> {
    args: &'a CheckArgs,
    /// `None` for stdout.
    file: Option<File>,
    /// The summary of GitHub's step, if there is one to write to.
    summary: Option<File>,
}

/// No line is longer on a terminal, in columns: a wider one is read no better.
const WIDEST: usize = 100;

impl Output<'_> {
    /// Opens the output before anything is launched: an error here costs nothing.
    pub(super) fn open(args: &CheckArgs) -> anyhow::Result<Output<'_>> {
        let summary = if args.format == Format::Github { step_summary()? } else { None };
        Ok(Output { args, file: args.output.as_deref().map(create).transpose()?, summary })
    }

    /// Writes the reports, and says with what to exit: at least with 1 if an entry is broken, so that it could
    /// not even be probed.
    pub(super) fn write(self, checked: Vec<Checked>, unwatched: &[Unwatched]) -> anyhow::Result<ExitCode> {
        let Output { args, file, summary } = self;
        let stdout = std::io::stdout();
        let look = match &file {
            None => Look { colours: terminal::has_colours(&stdout), width: terminal::width(&stdout).map(|w| w.min(WIDEST)), quiet: args.quiet },
            Some(_) => Look { quiet: args.quiet, ..Look::default() },
        };
        let (reports, made): (Vec<Report>, Vec<_>) = checked.into_iter().map(|c| (c.report, (c.plan, c.rules))).unzip();
        let text = match args.format {
            Format::Human => human::reports(&reports, look),
            Format::Json => json(&reports, unwatched)?,
            Format::Junit => junit::document(&reports, unwatched, args.strict).context("cannot write the report")?,
            Format::Github => github::unwatched(unwatched) + &github::annotations(&reports),
            Format::Nagios => {
                let probed: Vec<Probed<'_>> = reports.iter().zip(&made).map(|(report, (plan, rules))| Probed { report, plan, rules }).collect();
                nagios::output(&probed, unwatched, args.strict)
            }
        };
        match file {
            None => print(&mut stdout.lock(), &text)?,
            Some(mut file) => print(&mut file, &text)?,
        }
        if let Some(summary) = summary {
            summarise(summary, &reports, unwatched).context("cannot write the step summary")?;
        }
        Ok(ExitCode::from(exit_status(&reports, unwatched.iter().any(|entry| entry.broken), args)))
    }
}

pub(super) fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", printable(&path.to_string_lossy(), 300)))
}

fn print(out: &mut dyn Write, text: &str) -> anyhow::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads has read enough (`| head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write the report"),
    }
}

fn json(reports: &[Report], unwatched: &[Unwatched]) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(&Document { format: 1, servers: reports, unwatched }).context("cannot write the report")?;
    text.push('\n');
    Ok(text)
}

/// The file that GitHub has named for the step's summary, if it has.
fn step_summary() -> anyhow::Result<Option<File>> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else { return Ok(None) };
    let opened = File::options().append(true).create(true).open(&path);
    opened.map(Some).with_context(|| format!("cannot write the step summary to {}", printable(&path.to_string_lossy(), 300)))
}

/// Adds ours to the step's summary. What other commands of the step have written there counts towards its size.
fn summarise(mut summary: File, reports: &[Report], unwatched: &[Unwatched]) -> std::io::Result<()> {
    let there = usize::try_from(summary.metadata()?.len()).unwrap_or(usize::MAX);
    summary.write_all(github::summary(reports, unwatched, github::MAX_SUMMARY.saturating_sub(there)).as_bytes())
}

/// The status that the verdicts make, and entries that are broken.
fn exit_status(reports: &[Report], is_broken: bool, args: &CheckArgs) -> u8 {
    if args.format == Format::Nagios {
        return State::of(reports, is_broken, args.strict).exit_status();
    }
    let any = |verdict| reports.iter().any(|r| r.verdict == verdict);
    if is_broken || any(Verdict::Fail) || args.strict && any(Verdict::Warn) {
        1
    } else if any(Verdict::Unknown) {
        3
    } else {
        0
    }
}
