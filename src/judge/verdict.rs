//! The words of a judgement.

use std::fmt;

use serde::{Serialize, Serializer};

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// The server works, and something should be mended.
    Warn,
    /// Nothing can be said about the server.
    Unknown,
    /// A client could not use the server, or could rightly refuse to.
    Fail,
}

impl Severity {
    /// All of them, the lightest first.
    pub const ALL: [Severity; 4] = [Severity::Info, Severity::Warn, Severity::Unknown, Severity::Fail];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warn => "warn",
            Severity::Unknown => "unknown",
            Severity::Fail => "fail",
        }
    }
}

/// What a probe came to: the worst severity among its findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// A client that launched it now could use it.
    Pass,
    /// It could, and something should be mended.
    Warn,
    /// Nothing can be said: our own trouble, a busy host. Never blamed on the server, and never
    /// shown as healthy.
    Unknown,
    /// It could not.
    Fail,
}

impl Verdict {
    /// All of them, the best first.
    pub const ALL: [Verdict; 4] = [Verdict::Pass, Verdict::Warn, Verdict::Unknown, Verdict::Fail];

    /// The verdict that a worst severity makes.
    #[must_use]
    pub const fn of(worst: Severity) -> Verdict {
        match worst {
            Severity::Info => Verdict::Pass,
            Severity::Warn => Verdict::Warn,
            Severity::Unknown => Verdict::Unknown,
            Severity::Fail => Verdict::Fail,
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Warn => "warn",
            Verdict::Unknown => "unknown",
            Verdict::Fail => "fail",
        }
    }

    /// Whether the server counts as up.
    #[must_use]
    pub const fn is_up(self) -> bool {
        match self {
            Verdict::Pass | Verdict::Warn => true,
            Verdict::Unknown | Verdict::Fail => false,
        }
    }
}

/// Why a probe failed: a closed set, for labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// It could not be launched.
    SpawnFailed,
    /// It exited, or closed its ends of the pipes.
    Exited,
    /// It did not answer in time.
    Timeout,
    /// Something other than messages was on its stdout.
    StdoutViolation,
    /// Its messages break JSON-RPC or MCP.
    ProtocolViolation,
    /// It answered with an error.
    RpcError,
    /// No protocol version in common.
    VersionMismatch,
    /// Its schema is not the locked one.
    SchemaDrift,
    /// A canary call did not do what was expected.
    CallFailed,
    /// It took more than it may, or a finding that is not a failure by default was made one: somebody has
    /// configured it so.
    Policy,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 10] = [
        Reason::SpawnFailed,
        Reason::Exited,
        Reason::Timeout,
        Reason::StdoutViolation,
        Reason::ProtocolViolation,
        Reason::RpcError,
        Reason::VersionMismatch,
        Reason::SchemaDrift,
        Reason::CallFailed,
        Reason::Policy,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::SpawnFailed => "spawn_failed",
            Reason::Exited => "exited",
            Reason::Timeout => "timeout",
            Reason::StdoutViolation => "stdout_violation",
            Reason::ProtocolViolation => "protocol_violation",
            Reason::RpcError => "rpc_error",
            Reason::VersionMismatch => "version_mismatch",
            Reason::SchemaDrift => "schema_drift",
            Reason::CallFailed => "call_failed",
            Reason::Policy => "policy",
        }
    }
}

macro_rules! as_its_word {
    ($($name:ty),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )*};
}

as_its_word!(Severity, Verdict, Reason);
