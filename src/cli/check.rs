//! `stdiowatch check`: probe once, say what was seen, exit.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use serde::Serialize;
use tokio::sync::watch;

use super::args::{CheckArgs, Format};
use super::complain;
use super::lockfile;
use super::signals::Signals;
use crate::judge::{Reference, Report, Rules, Verdict, judge};
use crate::outside::process::GuardCommand;
use crate::probe::Recording;
use crate::running::{Job, Known, Launchpad, Outcome, Watched};
use crate::show::human;
use crate::words::ServerName;

/// What `--format json` prints.
#[derive(Serialize)]
struct Document<'r> {
    format: u32,
    servers: &'r [Report],
}

pub(super) fn run(args: CheckArgs) -> ExitCode {
    match check(&args) {
        Ok(code) => code,
        Err(error) => complain(&error),
    }
}

fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.replay {
        let mut output = Output::open(args)?;
        let report = replayed(path, &args.server.rules())?;
        output.print(args.format, std::slice::from_ref(&report))?;
        return Ok(exit_code(&[report], args.strict));
    }
    let mut server = args.server.watched(std::time::Duration::from_secs(60))?;
    Arc::make_mut(&mut server.rules).allowed.extend(&args.allow);
    lockfile::load(std::slice::from_mut(&mut server))?;
    let mut output = Output::open(args)?;
    let record = args.record.as_deref().map(create).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let (outcome, signal) = runtime.block_on(probe(&server, record.is_some()))?;
    if let (Some(mut file), Some(recording)) = (record, outcome.recording) {
        std::io::Write::write_all(&mut file, recording.to_lines().as_bytes()).context("cannot write the recording")?;
    }
    let mut report = outcome.report;
    if let Some(listing) = &outcome.listed {
        report.add_items(listing, &server.redactor());
    }
    output.print(args.format, std::slice::from_ref(&report))?;
    Ok(match signal {
        // As a shell reports a command that a signal ended.
        Some(number) => ExitCode::from(128u8.saturating_add(number)),
        None => exit_code(&[report], args.strict),
    })
}

/// Judges a recorded probe anew.
fn replayed(path: &Path, rules: &Rules) -> anyhow::Result<Report> {
    let shown = crate::words::printable(&path.to_string_lossy(), 300);
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let recording = Recording::from_lines(&text).with_context(|| format!("{shown} is no recording of a probe"))?;
    let name = ServerName::new(&recording.server).with_context(|| format!("{shown}: the server's name"))?;
    Ok(judge(&name, recording.started_at.clone(), &recording.replay(), rules, Reference::nothing()))
}

/// Probes the server. A signal ends the probe politely; its number is returned.
async fn probe(server: &Watched, record: bool) -> anyhow::Result<(Outcome, Option<u8>)> {
    let mut signals = Signals::catch()?;
    let (stop, stopped) = watch::channel(false);
    let launchpad = Launchpad::start(GuardCommand::own(), stopped).context("cannot launch anything")?;
    let job = Job {
        name: server.name.clone(),
        spec: Arc::clone(&server.spec),
        plan: server.plan(Known::default(), true),
        rules: Arc::clone(&server.rules),
        accepted: server.locked(),
        record,
        coexists: false,
    };
    let mut probe = std::pin::pin!(launchpad.probe(job));
    let mut caught = None;
    loop {
        let (_, number) = tokio::select! {
            outcome = &mut probe => return Ok((outcome.context("the launching thread ended")?, caught)),
            signal = signals.next() => signal,
        };
        caught.get_or_insert(number);
        let _ = stop.send(true);
    }
}

/// The status that the verdicts make.
fn exit_code(reports: &[Report], strict: bool) -> ExitCode {
    let any = |verdict| reports.iter().any(|r| r.verdict == verdict);
    if any(Verdict::Fail) || strict && any(Verdict::Warn) {
        ExitCode::from(1)
    } else if any(Verdict::Unknown) {
        ExitCode::from(3)
    } else {
        ExitCode::SUCCESS
    }
}

/// Where the report goes.
enum Output {
    Stdout,
    File(std::fs::File),
}

impl Output {
    /// Opens the output before anything is launched: an error here costs nothing.
    fn open(args: &CheckArgs) -> anyhow::Result<Output> {
        match &args.output {
            None => Ok(Output::Stdout),
            Some(path) => Ok(Output::File(create(path)?)),
        }
    }

    fn print(&mut self, format: Format, reports: &[Report]) -> anyhow::Result<()> {
        match self {
            Output::Stdout => {
                let stdout = std::io::stdout();
                let colours = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
                write(&mut stdout.lock(), format, reports, colours)
            }
            Output::File(file) => write(file, format, reports, false),
        }
    }
}

fn create(path: &Path) -> anyhow::Result<std::fs::File> {
    std::fs::File::create(path).with_context(|| format!("cannot write {}", crate::words::printable(&path.to_string_lossy(), 300)))
}

fn write(out: &mut dyn std::io::Write, format: Format, reports: &[Report], colours: bool) -> anyhow::Result<()> {
    let text = match format {
        Format::Human => human::reports(reports, colours),
        Format::Json => {
            let document = Document { format: 1, servers: reports };
            let mut text = serde_json::to_string_pretty(&document).context("cannot write the report")?;
            text.push('\n');
            text
        }
    };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads has read enough (`| head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write the report"),
    }
}
