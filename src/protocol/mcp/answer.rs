//! What the answers hold, and what they should hold and do not.

use crate::protocol::Era;
use crate::protocol::json::{Kind, Value};
use crate::words::Redactor;

use super::ask::ListKind;
use super::items::{Item, ItemReader};
use super::members::{DISCOVERED, INITIALIZED, item_members, list_members};
use super::shape::{Checker, Flaw, Need, Path, RefusedBy, Step, Want};

/// Names and versions longer than this are cut where they are shown.
const MAX_TEXT: usize = 200;
/// Versions and capabilities that are looked at; nobody has more.
const MAX_NAMES: usize = 10_000;

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
    /// It says by null that it does not go on.
    pub null_cursor: bool,
    /// Where it goes on. An empty string is a cursor too.
    pub next: Option<String>,
    /// Modern fields that are not there.
    pub missing: Vec<&'static str>,
    /// What else is wrong.
    pub flaws: Vec<Flaw>,
}

/// Reads the result of `server/discover`; `None` if it is none, as from a legacy server that
/// answers anything with an empty object.
#[must_use]
pub fn read_discover(result: Value<'_>, redactor: &Redactor) -> Option<Discovered> {
    let list = result.get("supportedVersions").filter(|v| v.kind() == Kind::Array)?;
    let mut checker = Checker::new(redactor);
    let at = Path::key("supportedVersions");
    let texts = list.elements().enumerate().filter_map(|(n, version)| {
        checker.value(version, &Want::Text, Need::Must, &at.then(Step::At(n)));
        version.text()
    });
    let versions = texts.map(|text| redactor.word(&text, MAX_TEXT)).take(MAX_NAMES).collect();
    let [capabilities, ..] = checker.members(result, DISCOVERED, None);
    let greeting = Greeting { server: modern_server_info(result, redactor), capabilities: capability_names(capabilities, redactor) };
    let missing = modern_fields(result, &["resultType", "ttlMs", "cacheScope"], &mut checker);
    Some(Discovered { versions, greeting, missing, flaws: checker.flaws })
}

/// Reads the result of `initialize`.
#[must_use]
pub fn read_initialize(result: Value<'_>, redactor: &Redactor) -> Initialized {
    let mut checker = Checker::new(redactor);
    if result.kind() != Kind::Object {
        checker.note(&Path::key("result"), "an object", result.kind().word(), RefusedBy::All);
        return Initialized { flaws: checker.flaws, ..Initialized::default() };
    }
    let [version, capabilities, info, ..] = checker.members(result, INITIALIZED, None);
    Initialized {
        version: version.and_then(Value::text).map(|text| redactor.word(&text, MAX_TEXT)),
        greeting: Greeting {
            server: info.filter(|info| info.kind() == Kind::Object).map(|info| server_info(info, redactor)),
            capabilities: capability_names(capabilities, redactor),
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
    let [list, next, ..] = checker.members(result, list_members(kind), None);
    match list.filter(|list| list.kind() == Kind::Array) {
        Some(list) => {
            let at = Path::key(kind.key());
            let mut reader = ItemReader::new(kind, era, redactor);
            let mut weight = 0;
            for (n, value) in list.elements().enumerate() {
                check_item(kind, era, value, &at.then(Step::At(n)), &mut checker);
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
    page.null_cursor = next.is_some_and(|next| next.kind() == Kind::Null);
    let next = next.filter(|_| !page.null_cursor);
    page.next = next.and_then(Value::text).map(Into::into);
    page.lost = next.is_some() && page.next.is_none();
    match era {
        Era::Modern => page.missing = modern_fields(result, &["resultType", "ttlMs", "cacheScope"], &mut checker),
        Era::Legacy => {}
    }
    page.flaws = checker.flaws;
    page
}

/// Holds an item against what is wanted of it. Of a tool's schemas only where a client refuses the list over what is sound JSON
/// Schema; what is wrong with them is the schema checker's.
fn check_item(kind: ListKind, era: Era, item: Value<'_>, at: &Path<'_>, checker: &mut Checker<'_>) {
    if item.kind() != Kind::Object {
        checker.note(at, "an object", item.kind().word(), RefusedBy::All);
        return;
    }
    let [_, input, output, ..] = checker.members(item, item_members(kind, era), Some(at));
    if (kind, era) != (ListKind::Tools, Era::Legacy) {
        return;
    }
    for (schema, key) in [(input, "inputSchema"), (output, "outputSchema")] {
        let properties = schema.and_then(|schema| schema.get("properties"));
        for (name, _) in properties.into_iter().flat_map(Value::members).filter(|(_, value)| value.kind() == Kind::Bool) {
            let schema = at.then(Step::Key(key));
            let properties = schema.then(Step::Key("properties"));
            checker.note(&properties.then(Step::Named(name)), "an object", Kind::Bool.word(), RefusedBy::TypeScript);
        }
    }
}

fn server_info(info: Value<'_>, redactor: &Redactor) -> ServerInfo {
    let text = |member: &str| info.get(member).and_then(Value::text).map(|text| redactor.printable(&text, MAX_TEXT)).unwrap_or_default();
    ServerInfo { name: text("name"), version: text("version") }
}

/// A modern server should, but need not, say who it is, and no client minds how.
fn modern_server_info(result: Value<'_>, redactor: &Redactor) -> Option<ServerInfo> {
    let info = result.get("_meta")?.get("io.modelcontextprotocol/serverInfo")?;
    (info.kind() == Kind::Object).then(|| server_info(info, redactor))
}

/// The names of the capabilities: those whose value is neither null nor false.
fn capability_names(capabilities: Option<Value<'_>>, redactor: &Redactor) -> Vec<String> {
    let offered = capabilities.into_iter().flat_map(Value::members).take(MAX_NAMES);
    let offered = offered.filter(|(_, value)| value.kind() != Kind::Null && value.boolean() != Some(false));
    let mut names: Vec<String> = offered.map(|(key, _)| redactor.word(&key.text().unwrap_or_default(), 60)).collect();
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
            checker.note(&Path::key(field), wanted, got, RefusedBy::All);
        }
    }
    missing
}

/// Whether a number is an integer of 0 or more, as JSON Schema has it: `60000.0` is one.
fn is_whole(value: Value<'_>) -> bool {
    let number = std::str::from_utf8(value.raw()).ok().and_then(|raw| raw.parse::<f64>().ok());
    value.kind() == Kind::Number && number.is_some_and(|n| n >= 0.0 && n.fract() == 0.0)
}
