//! What a probe is to do, and how long it may take.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::call::Call;
use super::micros;
use super::pages::Pages;
use super::process::ContainerRun;
use crate::protocol::Era;
use crate::words::Redactor;

/// Which era a server is opened in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EraChoice {
    /// Find out; start with the one it was last seen in, where that is known.
    Auto {
        /// The era that an earlier probe of the same command found.
        remembered: Option<Era>,
    },
    /// This one and no other.
    Fixed(Era),
}

/// What a command may have to fetch before it can start the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fetches {
    /// Nothing, as far as is known.
    #[default]
    Nothing,
    /// A package, which it then starts as a process of its own (`npx`, `uvx`).
    Package,
    /// An image, which somebody else starts (`docker run`).
    Image,
}

/// How long each wait of a probe may take, and all of them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// From the launch to the first reply.
    #[serde(with = "micros")]
    pub startup: Duration,
    /// From the launch of a server whose era is unknown to the reply to `server/discover`. Silence
    /// this long means a legacy server; the launch that follows has the whole of `startup`.
    #[serde(with = "micros")]
    pub discovery: Duration,
    /// After end-of-file, for a launch that never answered and may be installing: a launcher such
    /// as `npx` finishes what it does before it sees the end of its input, and an install that is
    /// killed half-way starts anew next time.
    #[serde(with = "micros")]
    pub cold_start: Duration,
    /// From each later request to its reply.
    #[serde(with = "micros")]
    pub request: Duration,
    /// The whole probe, shutdown included.
    #[serde(with = "micros")]
    pub total: Duration,
    /// From the end of stdin to SIGTERM.
    #[serde(with = "micros")]
    pub eof_grace: Duration,
    /// From SIGTERM to SIGKILL.
    #[serde(with = "micros")]
    pub term_grace: Duration,
    /// How long an offered but empty tool list is given to fill.
    #[serde(with = "micros")]
    pub late_tools: Duration,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            startup: Duration::from_secs(30),
            discovery: Duration::from_secs(10),
            cold_start: Duration::from_secs(120),
            request: Duration::from_secs(10),
            total: Duration::from_secs(180),
            eof_grace: Duration::from_secs(5),
            term_grace: Duration::from_secs(5),
            late_tools: Duration::from_secs(2),
        }
    }
}

/// How much of what a server writes is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The longest line on stdout, in bytes, without its end.
    pub line: usize,
    /// All of stdout in one launch, in bytes.
    pub output: u64,
    /// Pages of one list.
    pub pages: u32,
    /// The end of stderr that is kept, in bytes.
    pub stderr_tail: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { line: 16 << 20, output: 64 << 20, pages: 100, stderr_tail: 8 << 10 }
    }
}

/// What one probe is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Which era to open in.
    pub era: EraChoice,
    /// How long it may take.
    pub times: Times,
    /// How much it may read.
    pub limits: Limits,
    /// Read every list a second time, to see whether it differs within one session.
    pub list_twice: bool,
    /// What the command may have to fetch first.
    pub fetches: Fetches,
    /// A tool to call when the lists have been read.
    pub call: Option<Call>,
    /// The command runs a container.
    #[serde(default)]
    pub container: Option<ContainerRun>,
    /// Knows what must not surface.
    #[serde(skip)]
    pub redactor: Arc<Redactor>,
    /// The list pages of the probe before: they are not read again where they are the same bytes.
    #[serde(skip)]
    pub pages: Arc<Pages>,
}

impl Plan {
    /// A plan with the default limits for a server of unknown era.
    #[must_use]
    pub fn new() -> Plan {
        Plan {
            era: EraChoice::Auto { remembered: None },
            times: Times::default(),
            limits: Limits::default(),
            list_twice: true,
            fetches: Fetches::Nothing,
            call: None,
            container: None,
            redactor: Arc::default(),
            pages: Arc::default(),
        }
    }
}

impl Default for Plan {
    fn default() -> Plan {
        Plan::new()
    }
}
