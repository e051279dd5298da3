//! What may stand somewhere in a configuration: the words that the table of keys is written in.

use super::quantity::Amount;
use super::text::Texts;

/// What may stand in one place.
pub enum Kind {
    /// A text.
    Text(Texts),
    /// A text, or a number as it is written: what ends as a text, an argument or a variable's value.
    Scalar,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A duration, a size, a number.
    Amount(Amount),
    /// `true` or `false`.
    Bool,
    /// A list of such values.
    List(&'static Kind),
    /// A mapping with these keys.
    Keys(&'static Keys),
    /// A mapping from names that the user gives.
    Named(Names, &'static Kind),
    /// Any JSON value.
    Json,
    /// A JSON object.
    Object,
    /// A value of the first of these kinds that is of its shape.
    Either(&'static [Kind]),
}

/// A mapping with fixed keys.
pub struct Keys {
    /// What it is, for messages: "a server".
    pub what: &'static str,
    /// One of them, in flow style, where that says more than its keys do.
    pub example: &'static str,
    /// The keys, in the order in which they are shown.
    pub keys: &'static [&'static [Key]],
    /// Keys that people write here, and what is to be said to that.
    pub hints: &'static [(&'static str, &'static str)],
}

/// A key of a mapping with fixed keys.
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What may stand there.
    pub kind: Kind,
    /// It has to be there.
    pub required: bool,
    /// What holds where it is not there, as it would be written; "" for nothing.
    pub default: &'static str,
    /// What it means, in a sentence, in Markdown.
    pub about: &'static str,
}

/// The names in a mapping whose names the user gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Of servers; one at the least.
    Servers,
    /// Of variables.
    Variables,
    /// Codes of findings.
    Codes,
    /// JSON pointers (RFC 6901).
    Pointers,
    /// Of users.
    Users,
}

impl Keys {
    /// The keys, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.keys.iter().flat_map(|part| part.iter())
    }

    /// The key with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'static Key> {
        self.iter().find(|key| key.name == name)
    }
}

impl Kind {
    /// What it is and how it is written, for messages: "a duration, as in 1500ms, 5s, 2m or 1h".
    #[must_use]
    pub fn right(&self) -> String {
        match self {
            Kind::Text(texts) => texts.right().to_owned(),
            Kind::Scalar => "a text or a number".to_owned(),
            Kind::Word(words) => or(words),
            Kind::Amount(amount) => amount.right(),
            Kind::Bool => "true or false".to_owned(),
            Kind::List(Kind::Word(words)) => format!("a list of words out of {}", or(words)),
            Kind::List(Kind::Text(Texts::Path)) => "a list of paths".to_owned(),
            Kind::List(Kind::Text(Texts::Route)) => "a list of paths, as in [/livez, /readyz]".to_owned(),
            Kind::List(Kind::Text(_)) => "a list of texts".to_owned(),
            Kind::List(_) => "a list, as in [\"-y\", \"some-package\"]".to_owned(),
            Kind::Keys(keys) if !keys.example.is_empty() => format!("a mapping, as in {}", keys.example),
            Kind::Keys(keys) => format!("a mapping with keys out of {}", or(&keys.iter().map(|key| key.name).collect::<Vec<_>>())),
            Kind::Named(Names::Variables, Kind::Text(Texts::Path)) => "a mapping from names to paths, as in {NAME: path}".to_owned(),
            Kind::Named(names, _) => names.right().to_owned(),
            Kind::Json => "a value".to_owned(),
            Kind::Object => "a mapping".to_owned(),
            Kind::Either(kinds) => kinds.iter().map(Kind::right).collect::<Vec<_>>().join(", or "),
        }
    }

    /// Its short name in the documentation.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Kind::Text(Texts::Path) => "path".to_owned(),
            Kind::Text(Texts::Address) => "HOST:PORT".to_owned(),
            Kind::Text(Texts::Command | Texts::Tool | Texts::Any | Texts::Header) => "text".to_owned(),
            Kind::Text(Texts::User) => "USER or USER:GROUP".to_owned(),
            Kind::Text(Texts::Route) => "path of a URL".to_owned(),
            Kind::Text(Texts::Bcrypt) => "bcrypt hash".to_owned(),
            Kind::Scalar => "text or number".to_owned(),
            Kind::Word(words) => words.iter().filter(|word| !word.is_empty()).map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" "),
            Kind::Amount(amount) => amount.name(),
            Kind::Bool => "`true` `false`".to_owned(),
            Kind::List(element) => format!("list of: {}", element.name()),
            Kind::Keys(_) => "mapping".to_owned(),
            Kind::Named(Names::Servers, _) => "mapping: name → server".to_owned(),
            Kind::Named(Names::Variables, value) => format!("mapping: NAME → {}", value.name()),
            Kind::Named(Names::Codes, value) => format!("mapping: code → {}", value.name()),
            Kind::Named(Names::Users, value) => format!("mapping: user → {}", value.name()),
            Kind::Named(Names::Pointers, value) => format!("mapping: JSON pointer → {}", value.name()),
            Kind::Json => "any value".to_owned(),
            Kind::Object => "mapping".to_owned(),
            Kind::Either(kinds) => kinds.iter().map(Kind::name).collect::<Vec<_>>().join("; or "),
        }
    }
}

impl Names {
    fn right(self) -> &'static str {
        match self {
            Names::Servers => "a mapping from names to servers, as in {files: {command: npx}}",
            Names::Variables => "a mapping from names to values, as in {NAME: value}",
            Names::Codes => "a mapping from codes to levels, as in {stdout.noise: warn}",
            Names::Users => "a mapping from names to bcrypt hashes, as in {alice: $2y$10$…}",
            Names::Pointers => "a mapping from JSON pointers to values, as in {/structuredContent/sum: 5}",
        }
    }
}

/// Words, with "or" before the last one.
pub(super) fn or(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [head @ .., ""] => format!("{} or nothing", head.join(", ")),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}
