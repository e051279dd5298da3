//! The command line's own definition: from it come the parser and the help.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::quantity;
use crate::judge::{ChangeClass, OBJECTIVES, Rules, Severity};
use crate::outside::process::{EnvMode, LaunchSpec, StdioKind};
use crate::probe::{Call, EraChoice, Times};
use crate::protocol::Era;
use crate::running::{SchemaPolicy, Watched};
use crate::sample::Kind;
use crate::words::ServerName;

/// Lets ordinary monitoring watch MCP servers that speak over stdio: launches them as a client
/// would, and says whether the handshake completes.
#[derive(Debug, Parser)]
#[command(name = "stdiowatch", version, max_term_width = 100)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Probe a server once, say what was seen, exit.
    ///
    /// Exit status: 0 the server passes (warnings allowed), 1 it fails, 2 usage or configuration
    /// error, 3 nothing can be said about it (our own trouble). With --format nagios those of a
    /// monitoring plugin: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN and usage errors.
    Check(CheckArgs),
    /// Write down what a server lists, to be reviewed and compared with.
    ///
    /// Exit status: 0 written, or the same already; 1 it cannot be, or, with --check, it would be
    /// another one; 2 usage or configuration error; 3 nothing can be said (our own trouble).
    Lock(LockArgs),
    /// Compare two lock files, or a lock file and a report of `check --format json`.
    ///
    /// Exit status: 0 the same, 1 different, 2 they cannot be compared.
    Diff(DiffArgs),
    /// Watch a server, and serve /health, /metrics and a status page.
    Serve(ServeArgs),
    /// Be a small MCP server on stdin and stdout, a sound or a broken one: for tests and demos.
    #[command(after_help = kinds())]
    SampleServer {
        /// Which one: see below.
        #[arg(value_parser = |text: &str| text.parse::<Kind>())]
        kind: Kind,
    },
    /// Check a configuration, show what it comes to, or print its JSON Schema.
    Config {
        #[command(subcommand)]
        command: super::config::ConfigCommand,
    },
    /// Say what a finding means, what clients do about it, and how to mend it.
    Explain {
        /// The finding's code, such as stdout.noise, or a family of them, such as stdout; without one,
        /// all are listed.
        code: Option<String>,
    },
    /// Exit with 0 if /health answers 200 and with 1 otherwise: for images without a shell.
    Healthcheck(HealthcheckArgs),
    /// Print a completion script for a shell.
    Completions {
        /// For which shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print a manual page, in roff: `stdiowatch man | man -l -`.
    Man {
        /// Of this subcommand; of the whole program without one.
        subcommand: Option<String>,
    },
    /// Copy this program into a directory, as an init container does for a container that lacks it.
    CopySelf {
        /// An existing directory; the copy is called stdiowatch there.
        dir: PathBuf,
    },
}

/// The kinds of sample servers, a line each.
fn kinds() -> String {
    let lines: Vec<String> = Kind::ALL.iter().map(|kind| format!("  {:<17}{}", kind, kind.about())).collect();
    format!("Kinds:\n{}", lines.join("\n"))
}

#[derive(Debug, Args)]
pub(super) struct HealthcheckArgs {
    /// Where to ask: http:// or https://.
    #[arg(default_value = "http://127.0.0.1:10779/health")]
    pub(super) url: String,
    /// The certificates, in PEM, of those who vouch for who answers over https://.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(super) ca: Option<PathBuf>,
    /// Whoever answers over https:// is believed: for 127.0.0.1, [::1] and localhost only.
    #[arg(long)]
    pub(super) insecure: bool,
    /// A file with USER:PASSWORD in its first line. Without it, STDIOWATCH_BASIC_AUTH may hold that.
    #[arg(long, value_name = "FILE")]
    pub(super) basic_auth_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The names of the servers of --config to probe; all of them, unless told otherwise.
    // Before the command: positions are counted in this order.
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// How to print the report.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
    /// Write the report to this file instead of to stdout.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Exit with 1 on warnings too; they are failures in JUnit's format and critical in Nagios'.
    #[arg(long)]
    pub(super) strict: bool,
    /// Classes of changes since the lock file that are told, and weigh nothing: annotation,
    /// description, compatible, breaking.
    #[arg(long, value_name = "CLASS,…", value_delimiter = ',', value_parser = class)]
    pub(super) allow: Vec<ChangeClass>,
    /// Say only what is wrong, and show no progress.
    #[arg(short, long, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Show on stderr what goes over the server's pipes, as it goes, with times, the values of --env
    /// masked.
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// Write everything that happens to this file, as JSON Lines: both directions, with times, the
    /// values of --env masked.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(super) record: Option<PathBuf>,
    /// Launch nothing; judge what was recorded in this file, by --severity, --objective, --lock and --allow.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "config", "names", "verbose"])]
    pub(super) replay: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct LockArgs {
    /// The names of the servers of --config to lock; all of them, unless told otherwise.
    // Before the command: positions are counted in this order.
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Write nothing; exit with 1 if the file would be another one.
    #[arg(long)]
    pub(super) check: bool,
}

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// What there was: a lock file or a report.
    pub(super) old: PathBuf,
    /// What there is: a lock file or a report.
    pub(super) new: PathBuf,
    /// How to print the differences.
    #[arg(long, value_enum, default_value_t = DiffFormat::Human)]
    pub(super) format: DiffFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DiffFormat {
    /// For people.
    Human,
    /// One JSON object: {"format":1,"servers":{NAME: DRIFT}}.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    Human,
    /// One JSON object: {"format":1,"servers":[…]}.
    Json,
    /// JUnit XML, for CI systems.
    Junit,
    /// Annotations for GitHub Actions, and a summary in the file that GITHUB_STEP_SUMMARY names.
    Github,
    /// A monitoring plugin's output, with its exit statuses, for Nagios and Icinga.
    Nagios,
}

impl Format {
    /// Whether these arguments, which could not be read, ask for this format.
    pub(super) fn is_asked_for(self, args: impl IntoIterator<Item = std::ffi::OsString>) -> bool {
        let ours: Vec<_> = args.into_iter().take_while(|arg| arg != "--").collect();
        let name = self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let joined = format!("--format={name}");
        ours.iter().any(|arg| *arg == *joined) || ours.windows(2).any(|two| two[0] == "--format" && two[1] == *name)
    }
}

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Watch built-in sample servers, sound ones and broken ones.
    #[arg(long, conflicts_with_all = ["command", "config"])]
    pub(super) demo: bool,
    /// The address to listen on [default: what the configuration says, or 127.0.0.1:10779]. A socket that the service manager
    /// hands over is listened on instead.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<String>,
    /// Read the files of --config again when they change. SIGHUP does that too.
    #[arg(long, requires = "config")]
    pub(super) watch_config: bool,
    /// Allow what changes something over HTTP: POST /-/reload, /-/resume/NAME, /-/accept/NAME. On an address that is no
    /// loopback one, to who has authenticated (--web-config).
    #[arg(long)]
    pub(super) enable_actions: bool,
    /// TLS, users and header fields, as Prometheus' exporters take them; in place of what the configuration names
    /// [default: that].
    #[arg(long, value_name = "FILE")]
    pub(super) web_config: Option<PathBuf>,
    /// Where accepted schemas, histories and holds are kept over restarts [default: what the configuration says, or
    /// $XDG_STATE_HOME/stdiowatch/…, or ~/.local/state/stdiowatch/…].
    #[arg(long, value_name = "DIR")]
    pub(super) state_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}

/// How a server given as a command is launched, probed and judged.
#[derive(Clone, Debug, Args)]
pub(super) struct ServerArgs {
    /// What to call the server; its program's name, unless told otherwise.
    #[arg(long)]
    name: Option<String>,
    /// Set a variable of the server's environment, or hand on one that is set here; may be repeated.
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = assignment)]
    env: Vec<(String, String)>,
    /// Which of our environment the server gets: sdk passes HOME LOGNAME PATH SHELL TERM USER, as
    /// MCP clients do [default: sdk].
    #[arg(long, value_enum)]
    env_mode: Option<EnvModeArg>,
    /// From one probe to the next while all is well, under `serve`; 1s at the least. With --config, for servers whose file does not
    /// say [default: 60s, with --demo 10s]. `check` and `lock` probe once, and take it so that a server's options are the same.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = quantity::interval)]
    pub(super) interval: Option<Duration>,
    /// The server's working directory.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// What the server's stdin and stdout are: pipes, or sockets as from Node's clients [default: pipe].
    #[arg(long, value_enum)]
    stdio: Option<StdioArg>,
    /// Which protocol era to open in; auto finds out [default: auto].
    #[arg(long, value_enum)]
    era: Option<EraArg>,
    /// From the launch to the first reply [default: 30s].
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = quantity::positive_duration)]
    startup_timeout: Option<Duration>,
    /// From each later request to its reply [default: 10s].
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = quantity::positive_duration)]
    request_timeout: Option<Duration>,
    /// The whole probe, shutdown included [default: 180s].
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = quantity::positive_duration)]
    total_timeout: Option<Duration>,
    /// From the end of the server's input to SIGTERM [default: 5s].
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = quantity::duration)]
    eof_grace: Option<Duration>,
    /// From SIGTERM to SIGKILL [default: 5s].
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = quantity::duration)]
    term_grace: Option<Duration>,
    /// Give a finding another severity: info, warn, fail or unknown; may be repeated.
    #[arg(long, value_name = "CODE=LEVEL", value_parser = severity)]
    severity: Vec<(String, Severity)>,
    /// Warn when a phase takes longer: startup, list, call or shutdown; may be repeated.
    #[arg(long, value_name = "PHASE=DURATION", value_parser = objective)]
    objective: Vec<(&'static str, Duration)>,
    /// Call a tool once its list has been read: a name, or {"tool": NAME, "arguments": {…},
    /// "expect": {"contains": TEXT, "equals": {POINTER: VALUE}}}. Refused for tools that the server
    /// marks destructive, unless "insist": true.
    #[arg(long, value_name = "TOOL|JSON", value_parser = crate::config::call)]
    call: Option<Call>,
    /// Compare what is listed with this lock file (`lock`: write it). With --config, for servers whose file names none
    /// [lock's default: mcp.lock.json].
    #[arg(long, value_name = "FILE")]
    pub(super) lock: Option<PathBuf>,
    /// Servers of a file instead of a command: our own YAML, or the file of an MCP client as it is; may be
    /// repeated.
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(super) config: Vec<PathBuf>,
    /// The server's command and its arguments, after --.
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EnvModeArg {
    /// HOME LOGNAME PATH SHELL TERM USER.
    Sdk,
    /// All of it.
    Inherit,
    /// Nothing of it.
    Clean,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StdioArg {
    /// Pipes.
    Pipe,
    /// Unix sockets.
    Socketpair,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EraArg {
    /// Find out.
    Auto,
    /// 2026-07-28 and later.
    Modern,
    /// Up to 2025-11-25.
    Legacy,
}

impl ServerArgs {
    /// The name of an option that was given and is for a server given as a command.
    pub(super) fn of_a_command(&self) -> Option<&'static str> {
        self.of_a_launch().or_else(|| {
            let given = [("severity", !self.severity.is_empty()), ("objective", !self.objective.is_empty())];
            given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
        })
    }

    /// The name of an option that was given and says how a server is launched and probed, not how it is judged.
    pub(super) fn of_a_launch(&self) -> Option<&'static str> {
        let given = [
            ("name", self.name.is_some()),
            ("env", !self.env.is_empty()),
            ("env-mode", self.env_mode.is_some()),
            ("cwd", self.cwd.is_some()),
            ("stdio", self.stdio.is_some()),
            ("era", self.era.is_some()),
            ("startup-timeout", self.startup_timeout.is_some()),
            ("request-timeout", self.request_timeout.is_some()),
            ("total-timeout", self.total_timeout.is_some()),
            ("eof-grace", self.eof_grace.is_some()),
            ("term-grace", self.term_grace.is_some()),
            ("call", self.call.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// The server that was asked for.
    ///
    /// # Errors
    ///
    /// In one line, if it makes no sense.
    pub(super) fn watched(&self, interval: Duration) -> anyhow::Result<Watched> {
        let Some((command, args)) = self.command.split_first() else {
            bail!("no server: give its command and arguments after --, as in `… -- npx -y some-mcp-server`, or a file by --config");
        };
        if command.is_empty() {
            bail!("the command is empty");
        }
        if let Some(word) = self.command.iter().find(|word| word.contains('\0')) {
            bail!("\"{}\" contains a NUL byte, which no argument can", crate::words::printable(word, 60));
        }
        let name = match &self.name {
            Some(name) => ServerName::new(name).with_context(|| format!("--name \"{}\"", crate::words::printable(name, 60)))?,
            None => ServerName::of_command_line(command, args),
        };
        let spec = LaunchSpec {
            command: command.clone(),
            args: args.to_vec(),
            env_mode: match self.env_mode.unwrap_or(EnvModeArg::Sdk) {
                EnvModeArg::Sdk => EnvMode::Sdk,
                EnvModeArg::Inherit => EnvMode::Inherit,
                EnvModeArg::Clean => EnvMode::Clean,
            },
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            stdio: match self.stdio.unwrap_or(StdioArg::Pipe) {
                StdioArg::Pipe => StdioKind::Pipe,
                StdioArg::Socketpair => StdioKind::Socketpair,
            },
            ..LaunchSpec::default()
        };
        let era = match self.era.unwrap_or(EraArg::Auto) {
            EraArg::Auto => EraChoice::Auto { remembered: None },
            EraArg::Modern => EraChoice::Fixed(Era::Modern),
            EraArg::Legacy => EraChoice::Fixed(Era::Legacy),
        };
        let schema = SchemaPolicy { lock: self.lock.clone(), ..SchemaPolicy::default() };
        let rules = Arc::new(self.rules());
        Ok(Watched { era, times: self.times(), call: self.call.clone(), rules, schema, ..Watched::new(name, spec, interval) })
    }

    /// How the server is judged.
    pub(super) fn rules(&self) -> Rules {
        let severity: BTreeMap<String, Severity> = self.severity.iter().cloned().collect();
        Rules { severity, objectives: self.objective.iter().copied().collect(), ..Rules::default() }
    }

    fn times(&self) -> Times {
        let usual = Times::default();
        let startup = self.startup_timeout.unwrap_or(usual.startup);
        let request = self.request_timeout.unwrap_or(usual.request);
        Times {
            startup,
            request,
            discovery: startup.min(request),
            total: self.total_timeout.unwrap_or(usual.total),
            eof_grace: self.eof_grace.unwrap_or(usual.eof_grace),
            term_grace: self.term_grace.unwrap_or(usual.term_grace),
            ..usual
        }
    }
}

fn objective(text: &str) -> Result<(&'static str, Duration), String> {
    let (name, objective) = text.split_once('=').ok_or("write it as PHASE=DURATION, such as startup=2s")?;
    let phase = OBJECTIVES.into_iter().find(|phase| *phase == name).ok_or("a phase is startup, list, call or shutdown")?;
    Ok((phase, quantity::positive_duration(objective)?))
}

/// `NAME=VALUE`, or `NAME` for a variable that is set here: so that a secret need not stand in the
/// list of arguments.
fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, value.to_owned()),
        None => (text, std::env::var(text).map_err(|_| format!("{text} is not set here; write it as NAME=VALUE"))?),
    };
    if name.is_empty() {
        return Err("write it as NAME=VALUE".to_owned());
    }
    if text.contains('\0') {
        return Err("an environment variable cannot contain a NUL byte".to_owned());
    }
    Ok((name.to_owned(), value))
}

fn class(text: &str) -> Result<ChangeClass, String> {
    let found = ChangeClass::ALL.into_iter().find(|class| class.as_str() == text);
    found.ok_or_else(|| "a class is annotation, description, compatible or breaking".to_owned())
}

fn severity(text: &str) -> Result<(String, Severity), String> {
    let (code, level) = text.split_once('=').ok_or("write it as CODE=LEVEL, such as stdout.noise=warn")?;
    crate::config::known_code(code)?;
    let level = Severity::ALL.into_iter().find(|s| s.as_str() == level).ok_or("a level is info, warn, fail or unknown")?;
    Ok((code.to_owned(), level))
}
