//! What the answers hold, and what they should hold and do not.

use crate::protocol::Era;
use crate::protocol::json::{Kind, Value};
use crate::words::Redactor;

use super::ask::ListKind;
use super::items::{Item, ItemReader};

/// Names and versions longer than this are cut where they are shown.
const MAX_TEXT: usize = 200;
/// Flaws of one answer that are told; more of them say nothing new.
const MAX_FLAWS: usize = 1000;
/// Versions and capabilities that are looked at; nobody has more.
const MAX_NAMES: usize = 10_000;

/// A member that is missing or of the wrong type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Where: a path such as `tools[3].name`.
    pub path: String,
    /// What the specification wants there.
    pub wanted: &'static str,
    /// What is there.
    pub got: &'static str,
}

/// How a server calls itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its name, escaped and bounded.
    pub name: String,
    /// Its version, escaped and bounded; may be empty.
    pub version: String,
}

/// What a server says of itself, in either era.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greeting {
    /// Its name and version, where it gives them.
    pub server: Option<ServerInfo>,
    /// The names of its capabilities, sorted, escaped and bounded.
    pub capabilities: Vec<String>,
}

impl Greeting {
    /// Whether a list is offered.
    #[must_use]
    pub fn offers(&self, kind: ListKind) -> bool {
        self.capabilities.iter().any(|c| c == kind.capability())
    }
}

/// The result of `server/discover`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovered {
    /// The versions it says it speaks.
    pub versions: Vec<String>,
    /// What it says of itself.
    pub greeting: Greeting,
    /// Modern fields that are not there.
    pub missing: Vec<&'static str>,
    /// What else is wrong.
    pub flaws: Vec<Flaw>,
}

/// The result of `initialize`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Initialized {
    /// The version it chose; `None` if it did not say.
    pub version: Option<String>,
    /// What it says of itself.
    pub greeting: Greeting,
    /// What is wrong.
    pub flaws: Vec<Flaw>,
}

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// What is on it.
    pub items: Vec<Item>,
    /// There is no list in it at all.
    pub no_list: bool,
    /// It goes on, and says in no understandable way where.
    pub lost: bool,
    /// There is more on it than there was room for.
    pub cut: bool,
    /// Where it goes on. An empty string is a cursor too.
    pub next: Option<String>,
    /// Modern fields that are not there.
    pub missing: Vec<&'static str>,
    /// What else is wrong.
    pub flaws: Vec<Flaw>,
}

/// Collects what is wrong.
struct Checker<'r> {
    redactor: &'r Redactor,
    flaws: Vec<Flaw>,
}

impl<'r> Checker<'r> {
    fn new(redactor: &'r Redactor) -> Checker<'r> {
        Checker { redactor, flaws: Vec::new() }
    }

    /// `value`, if it is of one of `kinds`; otherwise that is noted.
    fn want<'d>(&mut self, value: Option<Value<'d>>, kind: Kind, wanted: &'static str, path: impl FnOnce() -> String) -> Option<Value<'d>> {
        match value {
            Some(value) if value.kind() == kind => Some(value),
            other => {
                if self.flaws.len() < MAX_FLAWS {
                    self.flaws.push(Flaw { path: path(), wanted, got: other.map_or("nothing", |v| v.kind().word()) });
                }
                None
            }
        }
    }

    /// Like `want`, for a member that may be left out.
    fn allow<'d>(&mut self, value: Option<Value<'d>>, kind: Kind, wanted: &'static str, path: impl FnOnce() -> String) -> Option<Value<'d>> {
        value.and_then(|value| self.want(Some(value), kind, wanted, path))
    }
}

/// Reads the result of `server/discover`; `None` if it is none, as from a legacy server that
/// answers anything with an empty object.
#[must_use]
pub fn read_discover(result: Value<'_>, redactor: &Redactor) -> Option<Discovered> {
    let list = result.get("supportedVersions").filter(|v| v.kind() == Kind::Array)?;
    let mut checker = Checker::new(redactor);
    let versions = list
        .elements()
        .enumerate()
        .filter_map(|(n, v)| checker.want(Some(v), Kind::String, "a string", || format!("supportedVersions[{n}]")))
        .filter_map(Value::text)
        .map(|text| redactor.printable(&text, MAX_TEXT))
        .take(MAX_NAMES)
        .collect();
    let capabilities = checker.want(result.get("capabilities"), Kind::Object, "an object", || "capabilities".into());
    checker.allow(result.get("instructions"), Kind::String, "a string", || "instructions".into());
    let greeting = Greeting { server: modern_server_info(result, &mut checker), capabilities: capability_names(capabilities, &mut checker) };
    let missing = modern_fields(result, &["resultType", "ttlMs", "cacheScope"], &mut checker);
    Some(Discovered { versions, greeting, missing, flaws: checker.flaws })
}

/// Reads the result of `initialize`.
#[must_use]
pub fn read_initialize(result: Value<'_>, redactor: &Redactor) -> Initialized {
    let mut checker = Checker::new(redactor);
    if checker.want(Some(result), Kind::Object, "an object", || "result".into()).is_none() {
        return Initialized { flaws: checker.flaws, ..Initialized::default() };
    }
    let version = checker.want(result.get("protocolVersion"), Kind::String, "a string", || "protocolVersion".into());
    let capabilities = checker.want(result.get("capabilities"), Kind::Object, "an object", || "capabilities".into());
    let info = checker.want(result.get("serverInfo"), Kind::Object, "an object", || "serverInfo".into());
    checker.allow(result.get("instructions"), Kind::String, "a string", || "instructions".into());
    Initialized {
        version: version.and_then(Value::text).map(|text| redactor.printable(&text, MAX_TEXT)),
        greeting: Greeting {
            server: info.map(|info| server_info(info, "serverInfo", &mut checker)),
            capabilities: capability_names(capabilities, &mut checker),
        },
        flaws: checker.flaws,
    }
}

impl ListPage {
    /// About how much memory it takes, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let flaws: usize = self.flaws.iter().map(|flaw| size_of::<Flaw>() + flaw.path.len()).sum();
        self.items.iter().map(Item::weight).sum::<usize>() + flaws + self.next.as_ref().map_or(0, String::len)
    }
}

/// Reads one page of the list `kind`: as many of its items as weigh no more than `room`, in bytes.
#[must_use]
pub fn read_list(kind: ListKind, era: Era, result: Value<'_>, redactor: &Redactor, room: usize) -> ListPage {
    let mut checker = Checker::new(redactor);
    let mut page = ListPage::default();
    match checker.want(result.get(kind.key()), Kind::Array, "an array", || kind.key().into()) {
        Some(list) => {
            let mut reader = ItemReader::new(kind, era, redactor);
            let mut weight = 0;
            for (n, value) in list.elements().enumerate() {
                check_item(kind, value, n, &mut checker);
                // What is written of it is hardly ever longer than what was read.
                page.cut |= weight + value.raw().len() > room;
                if page.cut {
                    continue;
                }
                let item = reader.read(value);
                weight += item.as_ref().map_or(0, Item::weight);
                page.items.extend(item);
            }
        }
        None => page.no_list = true,
    }
    // Null ends the list as absence does: servers serialise an empty option so.
    let next = result.get("nextCursor").filter(|v| v.kind() != Kind::Null);
    page.next = checker.allow(next, Kind::String, "a string", || "nextCursor".into()).and_then(Value::text).map(Into::into);
    page.lost = next.is_some() && page.next.is_none();
    match era {
        Era::Modern => page.missing = modern_fields(result, &["resultType", "ttlMs", "cacheScope"], &mut checker),
        Era::Legacy => {}
    }
    page.flaws = checker.flaws;
    page
}

/// The fields that each revision's schema requires of an item.
fn check_item(kind: ListKind, item: Value<'_>, n: usize, checker: &mut Checker<'_>) {
    let at = |member: &str| format!("{}[{n}]{member}", kind.key());
    if checker.want(Some(item), Kind::Object, "an object", || at("")).is_none() {
        return;
    }
    let [name, title, description, input, output, annotations] =
        item.get_each(["name", "title", "description", "inputSchema", "outputSchema", "annotations"]);
    checker.want(name, Kind::String, "a string", || at(".name"));
    checker.allow(title, Kind::String, "a string", || at(".title"));
    checker.allow(description, Kind::String, "a string", || at(".description"));
    match kind {
        ListKind::Tools => {
            checker.want(input, Kind::Object, "an object", || at(".inputSchema"));
            checker.allow(output, Kind::Object, "an object", || at(".outputSchema"));
            checker.allow(annotations, Kind::Object, "an object", || at(".annotations"));
        }
        ListKind::Prompts => {
            checker.allow(item.get("arguments"), Kind::Array, "an array", || at(".arguments"));
        }
        ListKind::Resources => {
            checker.want(item.get("uri"), Kind::String, "a string", || at(".uri"));
        }
        ListKind::ResourceTemplates => {
            checker.want(item.get("uriTemplate"), Kind::String, "a string", || at(".uriTemplate"));
        }
    }
}

fn server_info(info: Value<'_>, path: &str, checker: &mut Checker<'_>) -> ServerInfo {
    let redactor = checker.redactor;
    let mut text = |member: &str| {
        let value = checker.want(info.get(member), Kind::String, "a string", || format!("{path}.{member}"));
        value.and_then(Value::text).map(|text| redactor.printable(&text, MAX_TEXT)).unwrap_or_default()
    };
    ServerInfo { name: text("name"), version: text("version") }
}

/// A modern server should, but need not, say who it is.
fn modern_server_info(result: Value<'_>, checker: &mut Checker<'_>) -> Option<ServerInfo> {
    let info = result.get("_meta")?.get("io.modelcontextprotocol/serverInfo")?;
    let info = checker.want(Some(info), Kind::Object, "an object", || "_meta.serverInfo".into())?;
    Some(server_info(info, "_meta.serverInfo", checker))
}

/// The names of the capabilities: those whose value is neither null nor false. Each revision has
/// them as objects, and clients that check refuse the whole result over one that is not.
fn capability_names(capabilities: Option<Value<'_>>, checker: &mut Checker<'_>) -> Vec<String> {
    const KNOWN: [&str; 5] = ["tools", "prompts", "resources", "logging", "completions"];
    let Some(capabilities) = capabilities else { return Vec::new() };
    let mut names = Vec::new();
    for (key, value) in capabilities.members().take(MAX_NAMES) {
        let name = key.text().unwrap_or_default();
        if KNOWN.contains(&name.as_ref()) {
            checker.want(Some(value), Kind::Object, "an object", || format!("capabilities.{name}"));
        }
        if value.kind() != Kind::Null && value.boolean() != Some(false) {
            names.push(checker.redactor.printable(&name, 60));
        }
    }
    names.sort_unstable();
    names.dedup();
    names.truncate(64);
    names
}

/// Which of `fields` are missing; those that are there and wrong become flaws.
fn modern_fields(result: Value<'_>, fields: &[&'static str], checker: &mut Checker<'_>) -> Vec<&'static str> {
    let mut missing = Vec::new();
    for field in fields.iter().copied() {
        let Some(value) = result.get(field) else {
            missing.push(field);
            continue;
        };
        let (right, wanted) = match field {
            "resultType" => (value.text().is_some_and(|t| t == "complete"), "\"complete\""),
            "ttlMs" => (is_whole(value), "an integer of 0 or more"),
            _ => (value.text().is_some_and(|t| t == "public" || t == "private"), "\"public\" or \"private\""),
        };
        if !right {
            let got = if value.kind() == Kind::String { "another string" } else { value.kind().word() };
            checker.flaws.push(Flaw { path: field.to_owned(), wanted, got });
        }
    }
    missing
}

/// Whether a number is an integer of 0 or more, as JSON Schema has it: `60000.0` is one.
fn is_whole(value: Value<'_>) -> bool {
    let number = std::str::from_utf8(value.raw()).ok().and_then(|raw| raw.parse::<f64>().ok());
    value.kind() == Kind::Number && number.is_some_and(|n| n >= 0.0 && n.fract() == 0.0)
}
