//! A server that is to be probed, and how.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::judge::{Accepted, Listing, PEER_HARMED, Rules, Severity, Source};
use crate::ledger::{Acceptance, Terms};
use crate::outside::process::{LaunchSpec, container_run};
use crate::probe::{Call, EraChoice, Fetches, Limits, Phase, Plan, Times};
use crate::protocol::Era;
use crate::words::{Redactor, ServerName};

/// One configured server.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// Its name.
    pub name: ServerName,
    /// How it is launched.
    pub spec: Arc<LaunchSpec>,
    /// The era it is opened in; `Auto` to find out.
    pub era: EraChoice,
    /// How long everything may take.
    pub times: Times,
    /// How much is read.
    pub limits: Limits,
    /// A tool to call in each probe.
    pub call: Option<Call>,
    /// How it is judged.
    pub rules: Arc<Rules>,
    /// From one probe to the next while all is well.
    pub interval: Duration,
    /// When it counts as failing, and as well again.
    pub thresholds: Thresholds,
    /// What its lists are compared with.
    pub schema: SchemaPolicy,
    /// What must not surface, besides the values of its environment and what its arguments call a secret.
    pub secrets: Vec<String>,
}

/// How many probes in a row it takes until a server counts as something else; 1 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Failures, until it counts as failing.
    pub failure: u32,
    /// Successes, until it counts as well again.
    pub success: u32,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { failure: 1, success: 1 }
    }
}

/// What a server's lists are compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaPolicy {
    /// A lock file; without one, what was accepted last.
    pub lock: Option<PathBuf>,
    /// What it says of this server.
    pub locked: Option<Arc<Listing>>,
    /// Accept another schema by itself once so many probes in a row have listed it; 1 or more.
    pub accept_after: Option<u32>,
}

impl Watched {
    /// A server with the default limits and rules.
    #[must_use]
    pub fn new(name: ServerName, spec: LaunchSpec, interval: Duration) -> Watched {
        Watched {
            name,
            spec: Arc::new(spec),
            era: EraChoice::Auto { remembered: None },
            times: Times::default(),
            limits: Limits::default(),
            call: None,
            rules: Arc::default(),
            interval,
            thresholds: Thresholds::default(),
            schema: SchemaPolicy::default(),
            secrets: Vec::new(),
        }
    }

    /// A plan for one probe of a server of which this much is known.
    #[must_use]
    pub fn plan(&self, known: Known, list_twice: bool) -> Plan {
        let era = match self.era {
            EraChoice::Auto { .. } => EraChoice::Auto { remembered: known.era },
            EraChoice::Fixed(era) => EraChoice::Fixed(era),
        };
        let mut times = self.times;
        let mut fetches = Fetches::Nothing;
        if !known.launched {
            fetches = fetches_what(&self.spec);
            times.cold_start *= known.patience;
            times.total *= known.patience;
            // Other commands install too; as long as nothing has been heard of them they are given more
            // time, up to what a launcher gets, within the same whole.
            times.startup = (times.startup * known.patience).min(self.times.cold_start.max(times.startup));
            times.discovery = (times.discovery * known.patience).min(times.startup);
        }
        let container = container_run(&self.spec.command, &self.spec.args);
        let redactor = Arc::new(self.redactor());
        Plan { era, times, limits: self.limits, list_twice, fetches, call: self.call.clone(), container, redactor, ..Plan::new() }
    }

    /// Whether it is launched or opened in another way than `other`, so that what was learnt of the start of
    /// one is not true of the other's.
    #[must_use]
    pub fn is_launched_unlike(&self, other: &Watched) -> bool {
        self.spec != other.spec || self.era != other.era
    }

    /// Whether a live copy that died in a probe holds its probes. Who gives that finding a lesser weight says that
    /// it does not.
    #[must_use]
    pub fn is_held_by_harm(&self) -> bool {
        self.rules.severity.get(PEER_HARMED).is_none_or(|severity| *severity >= Severity::Unknown)
    }

    /// Knows what must not surface: the values of the configured environment, and secrets among the
    /// arguments.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        // Where a command was looked for has to be told.
        let env = self.spec.env.iter().filter(|(name, _)| name != "PATH").map(|(_, value)| value.as_bytes());
        let args = super::secrets::of_args(&self.spec.args).into_iter().map(str::as_bytes);
        let passwords = self.spec.env.iter().filter_map(|(_, value)| super::secrets::password(value)).map(str::as_bytes);
        Redactor::new(env.chain(passwords).chain(args).chain(self.secrets.iter().map(String::as_bytes)))
    }

    /// Whose values something holds, by what it is told of each: configured variables by their names, and what else must
    /// not surface.
    #[must_use]
    pub fn holders(&self, holds: impl Fn(&Redactor) -> bool) -> Vec<String> {
        let variables = self.spec.env.iter().filter(|(name, _)| name != "PATH").filter(|(_, value)| {
            let password = super::secrets::password(value);
            holds(&Redactor::new([value.as_str()].into_iter().chain(password).map(str::as_bytes)))
        });
        let mut holders: Vec<String> = variables.map(|(name, _)| format!("the variable {name}")).collect();
        if holds(&Redactor::new(super::secrets::of_args(&self.spec.args).into_iter().map(str::as_bytes))) {
            holders.push("an argument".to_owned());
        }
        if holders.is_empty() {
            holders.push("a configured secret".to_owned());
        }
        holders
    }

    /// What its lists are compared with, if a lock file says that.
    #[must_use]
    pub fn locked(&self) -> Option<Accepted> {
        self.schema.locked.as_ref().map(|listing| Accepted { listing: Arc::clone(listing), source: Source::Lock })
    }

    /// What of this is remembered and shown with the server.
    #[must_use]
    pub fn terms(&self) -> Terms {
        let times = &self.times;
        Terms {
            interval: self.interval,
            timeouts: vec![(Phase::Handshake, times.startup), (Phase::List, times.request), (Phase::Shutdown, times.eof_grace + times.term_grace)],
            objectives: self.rules.objectives.clone(),
            total: times.total,
            failures: self.thresholds.failure,
            successes: self.thresholds.success,
            acceptance: Acceptance { locked: self.schema.locked.is_some(), after: self.schema.accept_after },
        }
    }
}

/// What earlier probes have shown of a server.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The era that it was last seen in.
    pub era: Option<Era>,
    /// It has been launched successfully before, so nothing has to be fetched any more.
    pub launched: bool,
    /// By what the time for a cold start is multiplied, because it was too short before.
    pub patience: u32,
}

impl Default for Known {
    /// Nothing.
    fn default() -> Known {
        Known { era: None, launched: false, patience: 1 }
    }
}

/// Launchers that fetch what they launch when it is not there yet, and the words after which they do.
const LAUNCHERS: [(&str, &[&str], Fetches); 14] = [
    ("npx", &[], Fetches::Package),
    ("bunx", &[], Fetches::Package),
    ("pnpx", &[], Fetches::Package),
    ("uvx", &[], Fetches::Package),
    ("npm", &["exec", "x"], Fetches::Package),
    ("pnpm", &["dlx"], Fetches::Package),
    ("yarn", &["dlx"], Fetches::Package),
    ("bun", &["x"], Fetches::Package),
    ("uv", &["run", "tool"], Fetches::Package),
    ("pipx", &["run"], Fetches::Package),
    ("dotnet", &["run", "dnx"], Fetches::Package),
    ("docker", &["run"], Fetches::Image),
    ("podman", &["run"], Fetches::Image),
    ("nerdctl", &["run"], Fetches::Image),
];

/// What the command may have to fetch before it can start the server.
fn fetches_what(spec: &LaunchSpec) -> Fetches {
    let program = Path::new(&spec.command).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let launcher = LAUNCHERS.iter().find(|(name, ..)| *name == program);
    let fetches = |words: &[&str]| words.is_empty() || spec.args.iter().any(|arg| words.contains(&arg.as_str()));
    launcher.filter(|(_, words, _)| fetches(words)).map_or(Fetches::Nothing, |(.., what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_what_is_configured_do_not_surface_either() {
        let env = vec![
            ("KEY".to_owned(), "-----BEGIN KEY-----\nMIIEabcdefgh\n-----END KEY-----".to_owned()),
            ("DB".to_owned(), "postgres://u:hunter2secret@db/x".to_owned()),
        ];
        let spec = LaunchSpec { command: "x".into(), env, ..LaunchSpec::default() };
        let redactor = Watched::new(ServerName::of_command("x"), spec, Duration::from_secs(60)).redactor();
        for text in ["MIIEabcdefgh", "key: MIIEabcdefgh\r", "password hunter2secret is wrong"] {
            assert!(redactor.redact_str(text).contains("[redacted]"), "{text}");
        }
    }

    #[test]
    fn launchers_that_fetch_are_known() {
        let fetches = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            fetches_what(&LaunchSpec { command: words.next().unwrap(), args: words.collect(), ..LaunchSpec::default() })
        };
        for line in ["npx -y x", "/usr/local/bin/npx x", "npm exec x", "uv tool run x", "uvx x"] {
            assert_eq!(fetches(line), Fetches::Package, "{line}");
        }
        assert_eq!(fetches("docker run -i x"), Fetches::Image);
        for line in ["node x.js", "npm start", "python -m x", "docker exec x", "mcp-server-time"] {
            assert_eq!(fetches(line), Fetches::Nothing, "{line}");
        }
    }

    #[test]
    fn a_cold_start_that_was_too_long_is_given_more_time() {
        let server =
            Watched::new(ServerName::of_command("npx"), LaunchSpec { command: "npx".into(), ..LaunchSpec::default() }, Duration::from_secs(60));
        let total = |patience, launched| server.plan(Known { patience, launched, era: None }, false).times.total.as_secs();
        assert_eq!((total(1, false), total(2, false), total(8, false), total(8, true)), (180, 360, 1440, 180));
        let startup = |patience| server.plan(Known { patience, ..Known::default() }, false).times.startup.as_secs();
        assert_eq!((startup(1), startup(2), startup(8)), (30, 60, 120));
    }
}
