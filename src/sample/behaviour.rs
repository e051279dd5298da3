//! The ways in which a kind may deviate from the sound server.

use std::time::Duration;

use super::kind::Kind;
use super::tools::{self, Tool};

/// What one kind does. Everything but [`Behaviour::SOUND`] differs from it by the fault it shows.
#[derive(Clone, Copy)]
pub(super) struct Behaviour {
    pub(super) eras: Eras,
    pub(super) opening: Opening,
    pub(super) ending: Ending,
    pub(super) unanswered: Unanswered,
    /// The method whose request ends the server, with status 1.
    pub(super) fatal_method: Option<&'static str>,
    pub(super) tools: &'static [Tool],
    /// How many tools a page of `tools/list` holds; all of them without it.
    pub(super) page_size: Option<usize>,
    /// Whether the tool list differs at every launch.
    pub(super) drifts: bool,
    pub(super) ignores_sigterm: bool,
}

/// The protocol eras that a server speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Eras {
    Legacy,
    Modern,
    Both,
}

/// What happens before the first message is read.
#[derive(Clone, Copy)]
pub(super) enum Opening {
    /// Nothing: serve at once.
    Serve,
    /// Write this text to stdout, as it stands.
    Print(&'static str),
    /// Serve after this time.
    Wait(Duration),
    /// Give the reason on stderr and exit.
    Exit { reason: &'static str, status: u8 },
    /// Fill stdout without a newline until end-of-file, and answer nothing.
    Flood,
    /// Start a child in its own process group that outlives the server.
    LeaveChild,
    /// Sleep, and exit without serving: this is that child.
    Nap(Duration),
}

/// What happens at the end-of-file on stdin.
#[derive(Clone, Copy)]
pub(super) enum Ending {
    /// Exit with status 0.
    Exit,
    /// Live on for this time: long enough for any grace period, but no process is left for ever.
    Linger(Duration),
}

/// The requests that get no reply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    Nothing,
    Method(&'static str),
    Everything,
}

impl Behaviour {
    /// The sound legacy server.
    pub(super) const SOUND: Self = Self {
        eras: Eras::Legacy,
        opening: Opening::Serve,
        ending: Ending::Exit,
        unanswered: Unanswered::Nothing,
        fatal_method: None,
        tools: tools::BASIC,
        page_size: None,
        drifts: false,
        ignores_sigterm: false,
    };

    /// What sets a kind apart from the sound one.
    pub(super) fn of(kind: Kind) -> Self {
        const LINGER: Ending = Ending::Linger(Duration::from_hours(1));
        let mut this = Self::SOUND;
        match kind {
            Kind::Sound => {}
            Kind::SoundModern => this.eras = Eras::Modern,
            Kind::SoundDual => this.eras = Eras::Both,
            Kind::Paged => {
                this.tools = tools::MANY;
                this.page_size = Some(2);
            }
            Kind::Banner => this.opening = Opening::Print("Sample MCP server on stdio\n"),
            Kind::Hang => this.unanswered = Unanswered::Method("tools/list"),
            Kind::Mute => this.unanswered = Unanswered::Everything,
            Kind::Slow => this.opening = Opening::Wait(Duration::from_secs(3)),
            Kind::Exit => {
                let reason = "error: SAMPLE_API_KEY is not set";
                this.opening = Opening::Exit { reason, status: 3 };
            }
            Kind::DieOnDiscover => this.fatal_method = Some("server/discover"),
            Kind::IgnoreEof => this.ending = LINGER,
            Kind::IgnoreSigterm => {
                this.ending = LINGER;
                this.ignores_sigterm = true;
            }
            Kind::Drift => this.drifts = true,
            Kind::Helper => this.opening = Opening::LeaveChild,
            Kind::Flood => this.opening = Opening::Flood,
            Kind::Glued => this.opening = Opening::Print("\u{1b}[?25l\u{1b}[2K"),
            Kind::Nap => this.opening = Opening::Nap(Duration::from_mins(1)),
        }
        this
    }
}
