//! The lock file: what was accepted of each server's lists, as text that is reviewed like code.
//!
//! Everything is sorted and each thing has a line of its own, so that a change of the schema is a
//! change of the lines that say it. The digest holds the rest together: items that were edited by hand
//! do not have it. The same text, with one server, is what `serve` keeps in its state directory.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::Serialize;
use serde_json::json;

use super::listing::{Conditions, Environment, Listing, PROFILE};
use super::report::ServerIdentity;
use crate::protocol::Era;
use crate::protocol::json::{Doc, JsonError, Kind, Value, write_pretty};
use crate::protocol::mcp::{Item, ListKind, read_item};
use crate::words::{ServerName, is_printable, printable};

/// What this version writes, and reads.
const FORMAT: i64 = 1;

/// Accepted schemas, by the names of their servers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockFile {
    /// One for each server.
    pub servers: BTreeMap<ServerName, Listing>,
}

/// Why a text is no lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockError {
    /// The line, from 1.
    pub line: usize,
    /// The column, in bytes from 1.
    pub column: usize,
    /// What is wrong there, and what to do about it.
    pub message: String,
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for LockError {}

/// The conditions as they are written.
#[derive(Serialize)]
struct Head<'l> {
    sha256: String,
    era: Era,
    protocol_version: &'l Option<String>,
    server_info: &'l Option<ServerIdentity>,
    capabilities: &'l [String],
    profile: &'l str,
    environment: &'l Environment,
}

impl LockFile {
    /// The text of the file, the same for the same schemas.
    #[must_use]
    pub fn to_text(&self) -> String {
        let line = self.to_line();
        let mut text = Vec::with_capacity(line.len() * 2);
        match Doc::parse_file(line.as_bytes()) {
            Ok(doc) => write_pretty(doc.root(), 0, &mut text),
            Err(_) => return line,
        }
        text.push(b'\n');
        String::from_utf8(text).unwrap_or(line)
    }

    /// The same on one line: for what nobody reviews, and with no more memory than the text itself takes.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut text = Visible(format!(r#"{{"format":{FORMAT},"servers":{{"#));
        for (n, (name, listing)) in self.servers.iter().enumerate() {
            text.push(if n > 0 { "," } else { "" });
            text.push(&json!(name.as_str()).to_string());
            text.push(":");
            write_entry(listing, &mut text);
        }
        text.push("}}\n");
        text.0
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// See [`LockError`].
    pub fn parse(text: &[u8]) -> Result<LockFile, LockError> {
        let doc = Doc::parse_file(text).map_err(|error| no_json(text, error))?;
        let reader = Reader { text };
        let root = doc.root();
        let Some(format) = root.get("format").and_then(Value::integer) else {
            return Err(reader.wrong(root, "this is no lock file: it has no \"format\"; `stdiowatch lock` writes one"));
        };
        if format != FORMAT {
            return Err(reader.wrong(root, format!("its format is {format}, and this stdiowatch knows {FORMAT}: it was written by another version")));
        }
        let servers = reader.object(root, "servers")?;
        let mut lock = LockFile::default();
        for (key, value) in servers.members() {
            let name = key.text().unwrap_or_default();
            let name = ServerName::new(&name).map_err(|error| reader.wrong(key, error.to_string()))?;
            let listing = reader.listing(value)?;
            if lock.servers.insert(name, listing).is_some() {
                return Err(reader.wrong(key, format!("this server is here twice; {ANEW}")));
            }
        }
        Ok(lock)
    }
}

impl LockFile {
    /// Reads a lock file, or a report of `check --format json` as if it were one: its items may be masked,
    /// so they are not held against their digest.
    ///
    /// # Errors
    ///
    /// See [`LockError`]; also for a report in which nothing was listed.
    pub fn parse_any(text: &[u8]) -> Result<LockFile, LockError> {
        let doc = Doc::parse_file(text).map_err(|error| no_json(text, error))?;
        let root = doc.root();
        match root.get("servers").filter(|servers| servers.kind() == Kind::Array) {
            None => LockFile::parse(text),
            Some(reports) => Reader { text }.reports(reports),
        }
    }
}

impl Listing {
    /// The lists with their items as compact JSON, as a lock file has them: `{"tools":{NAME: ITEM}}`.
    #[must_use]
    pub fn lists_json(&self) -> String {
        let mut text = Visible("{".to_owned());
        write_lists(self, &mut text);
        text.push("}");
        text.0
    }
}

/// JSON with an escape for each character that does not show as itself: what is reviewed must look like what
/// it is. It is read as the same text, so digests do not notice.
struct Visible(String);

impl Visible {
    fn push(&mut self, json: &str) {
        for c in json.chars() {
            if is_printable(c) || c == '\n' {
                self.0.push(c);
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(self.0, "\\u{unit:04x}");
                }
            }
        }
    }
}

fn write_entry(listing: &Listing, text: &mut Visible) {
    let conditions = &listing.conditions;
    let head = Head {
        sha256: listing.digest.to_string(),
        era: conditions.era,
        protocol_version: &conditions.protocol_version,
        server_info: &conditions.server,
        capabilities: &conditions.capabilities,
        profile: &conditions.profile,
        environment: &conditions.environment,
    };
    let head = serde_json::to_string(&head).unwrap_or_default();
    text.push(head.strip_suffix('}').unwrap_or_default());
    if !listing.lists.is_empty() {
        text.push(",");
        write_lists(listing, text);
    }
    text.push("}");
}

fn write_lists(listing: &Listing, text: &mut Visible) {
    for (n, kind) in listing.lists.iter().enumerate() {
        text.push(if n > 0 { "," } else { "" });
        text.push(&format!("\"{}\":{{", kind.word()));
        let mut items: Vec<(String, &str)> = listing.items().filter(|(list, ..)| list == kind).map(|(_, _, form)| keyed(*kind, form)).collect();
        items.sort();
        for (n, (key, form)) in items.into_iter().enumerate() {
            text.push(if n > 0 { "," } else { "" });
            text.push(&key);
            text.push(":");
            text.push(form);
        }
        text.push("}");
    }
}

/// An item's name as a JSON string, and the item.
fn keyed(kind: ListKind, form: &[u8]) -> (String, &str) {
    let key = Doc::parse(form).ok().and_then(|doc| Some(String::from_utf8_lossy(doc.root().get(kind.identity())?.raw()).into_owned()));
    // Canonical forms are UTF-8: what was not is U+FFFD in them.
    (key.filter(|k| k.starts_with('"')).unwrap_or_else(|| "\"\"".to_owned()), std::str::from_utf8(form).unwrap_or("null"))
}

/// What helps where a file cannot be read: `stdiowatch lock` keeps what it holds of other servers, so it has to read it too.
const ANEW: &str = "remove the file (or take an older one), then write it by `stdiowatch lock`";

fn no_json(text: &[u8], error: JsonError) -> LockError {
    let (at, message) = match error {
        JsonError::Incomplete => (text.len(), format!("the file ends too early; {ANEW}")),
        JsonError::Invalid(at) => (at, format!("this is no JSON; after a merge conflict, {ANEW}")),
        JsonError::TooMany => (0, error.to_string()),
    };
    let (line, column) = place(text, at);
    LockError { line, column, message }
}

fn place(text: &[u8], at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    (line, before.len() - memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1) + 1)
}

/// Which lists there are, and their items.
type Lists = (Vec<ListKind>, Vec<(ListKind, Item)>);

/// Reads a file whose text is at hand, to say where something is wrong.
struct Reader<'t> {
    text: &'t [u8],
}

impl Reader<'_> {
    fn wrong(&self, value: Value<'_>, message: impl Into<String>) -> LockError {
        let (line, column) = place(self.text, value.offset());
        LockError { line, column, message: message.into() }
    }

    fn object<'d>(&self, of: Value<'d>, key: &str) -> Result<Value<'d>, LockError> {
        let value = of.get(key).filter(|value| value.kind() == Kind::Object);
        value.ok_or_else(|| self.wrong(of, format!("\"{key}\" is missing, or no object; {ANEW}")))
    }

    fn text(&self, of: Value<'_>, key: &str) -> Result<String, LockError> {
        let text = of.get(key).and_then(Value::text);
        text.map(std::borrow::Cow::into_owned).ok_or_else(|| self.wrong(of, format!("\"{key}\" is missing, or no string")))
    }

    fn texts(&self, of: Value<'_>, key: &str) -> Result<Vec<String>, LockError> {
        let list = of.get(key).filter(|value| value.kind() == Kind::Array);
        let list = list.ok_or_else(|| self.wrong(of, format!("\"{key}\" is missing, or no array")))?;
        let texts = list.elements().map(|e| e.text().map(std::borrow::Cow::into_owned).ok_or_else(|| self.wrong(e, "this is no string")));
        texts.collect()
    }

    fn reports(&self, reports: Value<'_>) -> Result<LockFile, LockError> {
        let mut lock = LockFile::default();
        for report in reports.elements() {
            let name = self.text(report, "server")?;
            let name = ServerName::new(&name).map_err(|error| self.wrong(report, error.to_string()))?;
            let items = report.get("schema").and_then(|schema| schema.get("items"));
            let items = items.ok_or_else(|| {
                self.wrong(report, format!("the report of {name} does not hold what it lists: its lists were not read to their end"))
            })?;
            let (lists, items) = self.lists(items)?;
            let conditions = Conditions {
                era: self.era(report)?,
                protocol_version: report.get("protocol_version").and_then(Value::text).map(std::borrow::Cow::into_owned),
                server: self.server(report)?,
                capabilities: self.texts(report, "capabilities")?,
                profile: PROFILE.to_owned(),
                environment: Environment::default(),
            };
            lock.servers.insert(name, Listing::from_items(conditions, lists, items.iter().map(|(kind, item)| (*kind, item))));
        }
        Ok(lock)
    }

    /// The lists in an object, and their items.
    fn lists(&self, of: Value<'_>) -> Result<Lists, LockError> {
        let mut lists = Vec::new();
        let mut items = Vec::new();
        for kind in ListKind::ALL {
            let Some(list) = of.get(kind.word()) else { continue };
            if list.kind() != Kind::Object {
                return Err(self.wrong(list, "a list is an object of items by their names"));
            }
            lists.push(kind);
            for (_, value) in list.members() {
                items.push((kind, self.item(kind, value)?));
            }
        }
        Ok((lists, items))
    }

    fn listing(&self, entry: Value<'_>) -> Result<Listing, LockError> {
        let conditions = self.conditions(entry)?;
        let (lists, items) = self.lists(entry)?;
        let listing = Listing::from_items(conditions, lists, items.iter().map(|(kind, item)| (*kind, item)));
        let named = self.text(entry, "sha256")?;
        if listing.digest.to_string() != named {
            let message = format!("the items have the digest {}, and not this one: they were changed by hand or by a merge; {ANEW}", listing.digest);
            return Err(self.wrong(entry.get("sha256").unwrap_or(entry), message));
        }
        if let Some(why) = &listing.unfit {
            return Err(self.wrong(entry, format!("this cannot be compared with: {why}")));
        }
        Ok(listing)
    }

    fn item(&self, kind: ListKind, value: Value<'_>) -> Result<Item, LockError> {
        read_item(kind, value).ok_or_else(|| self.wrong(value, "an item is an object"))
    }

    fn era(&self, of: Value<'_>) -> Result<Era, LockError> {
        match self.text(of, "era")?.as_str() {
            "legacy" => Ok(Era::Legacy),
            "modern" => Ok(Era::Modern),
            other => Err(self.wrong(of, format!("an era is legacy or modern, not \"{}\"", printable(other, 40)))),
        }
    }

    fn server(&self, of: Value<'_>) -> Result<Option<ServerIdentity>, LockError> {
        let info = of.get("server_info").filter(|value| value.kind() == Kind::Object);
        let read = |info| Ok(ServerIdentity { name: self.text(info, "name")?, version: self.text(info, "version")? });
        info.map(read).transpose()
    }

    fn conditions(&self, entry: Value<'_>) -> Result<Conditions, LockError> {
        let environment = self.object(entry, "environment")?;
        Ok(Conditions {
            era: self.era(entry)?,
            protocol_version: entry.get("protocol_version").and_then(Value::text).map(std::borrow::Cow::into_owned),
            server: self.server(entry)?,
            capabilities: self.texts(entry, "capabilities")?,
            profile: self.text(entry, "profile")?,
            environment: Environment {
                mode: self.text(environment, "mode")?,
                names: self.texts(environment, "names")?,
                fingerprint: self.text(environment, "fingerprint")?,
            },
        })
    }
}

#[cfg(test)]
mod tests;
