//! A server that is to be probed, and how.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::judge::Rules;
use crate::ledger::Terms;
use crate::outside::process::LaunchSpec;
use crate::probe::{Call, EraChoice, Limits, Phase, Plan, Times};
use crate::words::{Redactor, ServerName};

/// One configured server.
#[derive(Clone, Debug)]
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
        }
    }

    /// A plan for one probe. `known` is what is known of the server: the era it was last seen in, and
    /// whether it has been launched successfully before, so that nothing has to be installed any more.
    #[must_use]
    pub fn plan(&self, era: Option<crate::protocol::Era>, launched_before: bool, list_twice: bool) -> Plan {
        let era = match self.era {
            EraChoice::Auto { .. } => EraChoice::Auto { remembered: era },
            EraChoice::Fixed(era) => EraChoice::Fixed(era),
        };
        let installs = !launched_before && may_install(&self.spec);
        Plan { era, times: self.times, limits: self.limits, list_twice, installs, call: self.call.clone(), redactor: Arc::new(self.redactor()) }
    }

    /// Knows what must not surface: the values of the configured environment.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        Redactor::new(self.spec.env.iter().map(|(_, value)| value.as_bytes()))
    }

    /// What of this is remembered and shown with the server.
    #[must_use]
    pub fn terms(&self) -> Terms {
        let times = &self.times;
        Terms {
            interval: self.interval,
            timeouts: vec![
                (Phase::Handshake, times.startup),
                (Phase::List, times.request),
                (Phase::Shutdown, times.eof_grace + times.term_grace),
            ],
            total: times.total,
            failures: 1,
            successes: 1,
        }
    }
}

/// Launchers that fetch what they launch when it is not there yet, and the words after which they do.
const LAUNCHERS: [(&str, &[&str]); 14] = [
    ("npx", &[]),
    ("bunx", &[]),
    ("pnpx", &[]),
    ("uvx", &[]),
    ("npm", &["exec", "x"]),
    ("pnpm", &["dlx"]),
    ("yarn", &["dlx"]),
    ("bun", &["x"]),
    ("uv", &["run", "tool"]),
    ("pipx", &["run"]),
    ("docker", &["run"]),
    ("podman", &["run"]),
    ("deno", &["run"]),
    ("dotnet", &["run", "dnx"]),
];

/// Whether the command may have to fetch the server before it can start it.
fn may_install(spec: &LaunchSpec) -> bool {
    let program = Path::new(&spec.command).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let launcher = LAUNCHERS.iter().find(|(name, _)| *name == program);
    launcher.is_some_and(|(_, words)| words.is_empty() || spec.args.iter().any(|arg| words.contains(&arg.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_that_fetch_are_known() {
        let installs = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            may_install(&LaunchSpec { command: words.next().unwrap(), args: words.collect(), ..LaunchSpec::default() })
        };
        for line in ["npx -y x", "/usr/local/bin/npx x", "npm exec x", "uv tool run x", "docker run -i x", "uvx x"] {
            assert!(installs(line), "{line}");
        }
        for line in ["node x.js", "npm start", "python -m x", "docker exec x", "mcp-server-time"] {
            assert!(!installs(line), "{line}");
        }
    }
}
