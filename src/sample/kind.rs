//! The kinds, by name.

use std::fmt;
use std::str::FromStr;

/// A kind of sample server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Sound, in the legacy era.
    Sound,
    /// Sound, in the modern era only.
    SoundModern,
    /// Sound, in both eras.
    SoundDual,
    /// Sound, and lists its tools in pages of two.
    Paged,
    /// Writes a line of text to stdout first.
    Banner,
    /// Never answers `tools/list`.
    Hang,
    /// Never answers anything.
    Mute,
    /// Answers nothing for three seconds.
    Slow,
    /// Exits at once with status 3.
    Exit,
    /// Exits with status 1 on `server/discover`.
    DieOnDiscover,
    /// Lives on after end-of-file, until SIGTERM.
    IgnoreEof,
    /// Lives on after end-of-file and SIGTERM, until SIGKILL.
    IgnoreSigterm,
    /// Lists other tools at every launch.
    Drift,
    /// Leaves a child process behind.
    Helper,
    /// Writes to stdout without end and without a newline.
    Flood,
    /// Writes a terminal escape code in front of its first reply.
    Glued,
    /// What [`Kind::Helper`] leaves behind: it sleeps for a minute. Not listed in [`Kind::ALL`].
    Nap,
}

impl Kind {
    /// Every kind that is offered to users, the sound ones first.
    pub const ALL: &[Kind] = &[
        Kind::Sound,
        Kind::SoundModern,
        Kind::SoundDual,
        Kind::Paged,
        Kind::Banner,
        Kind::Hang,
        Kind::Mute,
        Kind::Slow,
        Kind::Exit,
        Kind::DieOnDiscover,
        Kind::IgnoreEof,
        Kind::IgnoreSigterm,
        Kind::Drift,
        Kind::Helper,
        Kind::Flood,
        Kind::Glued,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// What it does, in one line.
    #[must_use]
    pub fn about(self) -> &'static str {
        self.words().1
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Kind::Sound => ("sound", "sound: the legacy revisions, 2024-11-05 to 2025-11-25"),
            Kind::SoundModern => ("sound-modern", "sound: the modern revision 2026-07-28 only, refuses initialize"),
            Kind::SoundDual => ("sound-dual", "sound: the modern revision and the legacy ones, as the client opens"),
            Kind::Paged => ("paged", "sound: lists five tools in pages of two"),
            Kind::Banner => ("banner", "writes a line of text to stdout before it serves"),
            Kind::Hang => ("hang", "completes the handshake, then never answers tools/list"),
            Kind::Mute => ("mute", "reads everything and never answers"),
            Kind::Slow => ("slow", "sleeps for three seconds before it serves"),
            Kind::Exit => ("exit", "gives a reason on stderr and exits at once with status 3"),
            Kind::DieOnDiscover => ("die-on-discover", "exits with status 1 on server/discover; sound when opened with initialize"),
            Kind::IgnoreEof => ("ignore-eof", "lives on after end-of-file; SIGTERM ends it"),
            Kind::IgnoreSigterm => ("ignore-sigterm", "lives on after end-of-file and SIGTERM; only SIGKILL ends it"),
            Kind::Drift => ("drift", "has another tool schema at every launch"),
            Kind::Helper => ("helper", "leaves a sleeping child behind, in a process group of its own"),
            Kind::Flood => ("flood", "writes to stdout without end and without a newline"),
            Kind::Glued => ("glued", "writes a terminal escape code in front of its first reply"),
            Kind::Nap => ("nap", "sleeps for a minute: the child that helper leaves behind"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No kind has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKind {
    given: String,
}

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        write!(f, "no kind of sample server is named {:?}; the kinds are {}", self.given, names.join(", "))
    }
}

impl std::error::Error for UnknownKind {}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Kind::ALL.iter().copied().chain([Kind::Nap]).find(|kind| kind.name() == name).ok_or_else(|| UnknownKind { given: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in Kind::ALL.iter().copied().chain([Kind::Nap]) {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }

    #[test]
    fn names_are_kebab_case_and_abouts_are_one_line() {
        for kind in Kind::ALL {
            assert!(kind.name().chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{kind}");
            assert!(!kind.about().is_empty() && !kind.about().contains('\n'), "{kind}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_kinds() {
        let message = "sond".parse::<Kind>().unwrap_err().to_string();
        assert!(message.contains("\"sond\""), "{message}");
        for kind in Kind::ALL {
            assert!(message.contains(kind.name()), "{message}");
        }
        assert!(!message.contains("nap"), "{message}");
    }
}
