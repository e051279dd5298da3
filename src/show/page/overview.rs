//! `/`: every server, what needs a look first.

use askama::Template;

use super::plot::{PLACES, Plot};
use super::strip::{Ends, History, bar};
use super::words::{Look, Stamp, lasting, look, segment, took};
use super::{Frame, View};
use crate::judge::Verdict;
use crate::ledger::{Health, ServerState};
use crate::show::state::sentence;
use crate::show::told::{self, span};
use crate::words::{Moment, printable, printable_lines};

/// With more servers than this, those that are well get a line each.
const MANY: usize = 30;
/// The longest name of an entry that is no server, in characters.
const MAX_NAME: usize = 100;

#[derive(Template)]
#[template(path = "overview.html")]
pub(super) struct Overview {
    frame: Frame,
    up: usize,
    all: usize,
    groups: Vec<Group>,
    refused: Option<Refused>,
    unwatched: Vec<Unwatched>,
    more_unwatched: usize,
}

/// A configuration that is not used.
struct Refused {
    at: Stamp,
    ago: String,
    /// Line by line.
    why: Option<String>,
}

/// An entry of the configuration that is not watched.
struct Unwatched {
    name: String,
    broken: bool,
    why: Option<String>,
}

/// Servers of which the same is to be said.
struct Group {
    class: &'static str,
    title: &'static str,
    /// With a line each.
    dense: bool,
    rows: Vec<Row>,
}

/// One server.
struct Row {
    name: String,
    link: String,
    look: Look,
    lasting: Option<String>,
    sentence: Option<String>,
    last: Option<Last>,
    tools: Option<usize>,
    schema: Option<Schema>,
    places: usize,
    plot: Option<Plot>,
    history: Option<History>,
    ends: Option<Ends>,
}

/// Its last probe.
struct Last {
    at: Stamp,
    ago: String,
    startup: Option<String>,
}

/// What it lists.
pub(super) struct Schema {
    /// The beginning of the digest.
    pub(super) short: String,
    /// All of it.
    pub(super) sha256: String,
    /// When it last changed.
    pub(super) changed: Option<Stamp>,
    /// How long ago that is.
    pub(super) ago: Option<String>,
    /// It differs from what was accepted.
    pub(super) drifted: bool,
}

impl Schema {
    /// What `server` listed last, completely; `None` if it did not yet.
    pub(super) fn of(server: &ServerState, now: Moment) -> Option<Schema> {
        let sha256 = server.schema.listed.as_ref()?.digest.to_string();
        let short = sha256.chars().take(12).collect();
        let changed = server.schema.changed;
        let ago = changed.map(|at| span(now.since(at)));
        Some(Schema { short, sha256, changed: changed.map(Stamp::from), ago, drifted: server.schema.drifted == Some(true) })
    }
}

impl Overview {
    pub(super) fn of(view: View<'_>) -> Overview {
        let servers = &view.snapshot.servers;
        let up = servers.iter().filter(|s| s.health(view.now).is_up()).count();
        let all = servers.len();
        let groups = GROUPS.into_iter().filter_map(|(group, title)| {
            let rows: Vec<Row> = servers.iter().filter(|s| group_of(s.health(view.now)) == group).map(|s| row(s, view.now)).collect();
            rows.first()?;
            Some(Group { class: bar(group).0, title, dense: group == Verdict::Pass && all > MANY, rows })
        });
        let reading = &view.snapshot.reading;
        let refused = reading.refused.as_ref().map(|(at, why)| Refused {
            at: (*at).into(),
            ago: span(view.now.since(*at)),
            why: view.show_private.then(|| printable_lines(why)),
        });
        let mut entries: Vec<_> = reading.unwatched.iter().collect();
        entries.sort_by_key(|entry| !entry.broken);
        let unwatched = entries.iter().take(MANY).map(|entry| Unwatched {
            name: printable(&entry.name, MAX_NAME),
            broken: entry.broken,
            why: view.show_private.then(|| told::unwatched(entry)),
        });
        Overview {
            frame: Frame::new(&format!("{up} of {all} up"), "./", view),
            up,
            all,
            groups: groups.collect(),
            refused,
            unwatched: unwatched.collect(),
            more_unwatched: entries.len().saturating_sub(MANY),
        }
    }
}

/// What needs a look first; the servers of a group stand in the order of their names.
const GROUPS: [(Verdict, &str); 4] =
    [(Verdict::Fail, "Down"), (Verdict::Unknown, "Not known to be up"), (Verdict::Warn, "Up, with a warning"), (Verdict::Pass, "Up")];

fn group_of(health: Health) -> Verdict {
    health.verdict()
}

fn row(server: &ServerState, now: Moment) -> Row {
    let last =
        server.last.as_ref().map(|(at, report)| Last { at: (*at).into(), ago: span(now.since(*at)), startup: report.timings.startup_ms.map(took) });
    Row {
        name: server.name.to_string(),
        link: segment(server.name.as_str()),
        look: look(server.health(now)),
        lasting: lasting(server, now),
        sentence: sentence(server, now),
        last,
        tools: server.report().and_then(|report| report.lists.tools),
        schema: Schema::of(server, now),
        places: PLACES * 10,
        plot: Plot::of(server),
        history: History::of(server),
        ends: Ends::of(server),
    }
}
