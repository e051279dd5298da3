//! Placeholders in what client files say.
//!
//! Each client has its own: see the table in the module above. What a client would leave as it is, is
//! left as it is here. What it would fill with nothing because a variable is not set, is not filled:
//! a server that is started with an empty key tells nobody anything.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use super::ground::Ground;
use super::groups::Form;
use crate::config::file::{self, NOWHERE};
use crate::config::tree::{Node, Value};
use crate::words::{printable, similar};

/// The longest text that Linux hands to a program, in bytes, its end included (`MAX_ARG_STRLEN`).
const MAX_TEXT: usize = 128 << 10;

/// The largest file that an entry may point at, in bytes.
const LARGEST: u64 = 1 << 20;

/// What the name of the variable that stands for an input begins with.
const INPUT_PREFIX: &str = "STDIOWATCH_INPUT_";

/// The names that VS Code's variables have besides those that are known here: they are about what is
/// open in it (the prefixes of `${file…}` and `${relativeFile…}` are all of their kind).
const OF_THE_EDITOR: [&str; 11] = [
    "file",
    "relativeFile",
    "command:",
    "config:",
    "extensionInstallFolder:",
    "workspaceFolder:",
    "workspaceFolderBasename:",
    "cwd",
    "execPath",
    "selectedText",
    "lineNumber",
];

/// Fills placeholders.
pub(super) struct Filler<'a> {
    /// Whose placeholders.
    pub(super) form: Form,
    /// Where the file stands.
    pub(super) ground: &'a Ground,
    /// The folder of the project.
    pub(super) project: Option<&'a Path>,
    /// The inputs that the file describes.
    pub(super) inputs: &'a [Node],
    /// Our environment.
    pub(super) env: &'a dyn Fn(&str) -> Option<String>,
    /// The files that were read, or should have been.
    pub(super) files: &'a RefCell<Vec<PathBuf>>,
}

/// Why a text cannot be filled.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// In a sentence.
    pub(super) why: String,
    /// It is a mistake, and not only something that a client has and we have not.
    pub(super) broken: bool,
}

impl Gap {
    fn broken(why: String) -> Gap {
        Gap { why, broken: true }
    }

    fn unknown_here(why: String) -> Gap {
        Gap { why, broken: false }
    }
}

impl Filler<'_> {
    /// `text` with everything filled in that its client fills in, once: what comes out is not looked
    /// at again.
    ///
    /// # Errors
    ///
    /// A variable that is not set, an input that was not given, and what only an editor knows.
    pub(super) fn fill(&self, text: &str) -> Result<String, Gap> {
        let mark = match self.form {
            Form::Zed | Form::Codex => return bounded(text.to_owned()),
            Form::Opencode => '{',
            Form::Usual | Form::Gemini | Form::VsCode => '$',
        };
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(mark) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let (taken, value) = self.placeholder(from)?;
            out.push_str(value.as_deref().unwrap_or(&from[..taken]));
            out = bounded(out)?;
            rest = &from[taken..];
        }
        out.push_str(rest);
        bounded(out)
    }

    /// What the placeholder at the beginning of `text` stands for, and how long it is; `None` when it
    /// is none, or stays as it is.
    fn placeholder(&self, text: &str) -> Result<(usize, Option<String>), Gap> {
        if self.form == Form::Gemini {
            let name = &text[1..text.len() - text[1..].trim_start_matches(is_word).len()];
            if is_name(name) {
                return Ok((name.len() + 1, Some(self.variable(name)?)));
            }
        }
        // A brace in an argument for opencode is mostly JSON.
        let openings: &[&str] = if self.form == Form::Opencode { &["{env:", "{file:"] } else { &["${"] };
        if !openings.iter().any(|opening| text.starts_with(opening)) {
            return Ok((1, None));
        }
        let Some(close) = text.find('}') else { return Ok((text.len(), None)) };
        let inner = text[..close].trim_start_matches('$').strip_prefix('{').unwrap_or_default();
        let value = match self.form {
            Form::VsCode => self.of_vs_code(inner)?,
            Form::Opencode => self.of_opencode(inner)?,
            Form::Usual | Form::Gemini => self.usual(inner)?,
            Form::Zed | Form::Codex => None,
        };
        Ok((close + 1, value))
    }

    /// Claude Code's and Cursor's, which do not contradict each other.
    fn usual(&self, inner: &str) -> Result<Option<String>, Gap> {
        if let Some((name, default)) = inner.split_once(":-")
            && is_name(name)
        {
            return Ok(Some((self.env)(name).unwrap_or_else(|| default.to_owned())));
        }
        if let Some(known) = self.shared(inner)? {
            return Ok(Some(known));
        }
        if inner.starts_with("file:") {
            let why =
                format!("${{{}}} takes its value from a file, which is not done here; ${{NAME}} takes it from a variable", printable(inner, 60));
            return Err(Gap::unknown_here(why));
        }
        if is_name(inner) { self.variable(inner).map(Some) } else { Ok(None) }
    }

    fn of_vs_code(&self, inner: &str) -> Result<Option<String>, Gap> {
        if let Some(known) = self.shared(inner)? {
            return Ok(Some(known));
        }
        if let Some(name) = inner.strip_prefix("workspaceFolder:")
            && let Ok(folder) = self.folder()
            && folder.file_name().is_some_and(|last| last == name)
        {
            return text(folder).map(Some);
        }
        if OF_THE_EDITOR.iter().any(|known| inner.starts_with(known)) {
            return Err(Gap::unknown_here(format!("only the editor knows what ${{{}}} is", printable(inner, 60))));
        }
        Ok(None)
    }

    fn of_opencode(&self, inner: &str) -> Result<Option<String>, Gap> {
        if let Some(name) = inner.strip_prefix("env:") {
            return self.variable(name.trim()).map(Some);
        }
        let Some(path) = inner.strip_prefix("file:") else { return Ok(None) };
        let path = self.ground.path(path.trim(), &self.ground.dir);
        let text = self.text_of(path).map_err(Gap::broken)?;
        Ok(Some(text.trim().to_owned()))
    }

    /// The text of a file that an entry points at.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in a sentence.
    pub(super) fn text_of(&self, path: PathBuf) -> Result<String, String> {
        let read = file::text(&path, LARGEST).map_err(|problem| {
            let place = if problem.at == NOWHERE { String::new() } else { format!(":{}", problem.at) };
            format!("{}{place}: {}", printable(&path.to_string_lossy(), 200), problem.message)
        });
        // One that is not there may come.
        self.files.borrow_mut().push(path);
        read
    }

    /// What VS Code, Cursor and Roo have in common.
    fn shared(&self, inner: &str) -> Result<Option<String>, Gap> {
        if let Some(name) = inner.strip_prefix("env:") {
            return self.variable(name).map(Some);
        }
        if let Some(id) = inner.strip_prefix("input:") {
            return self.input(id).map(Some);
        }
        match inner {
            "workspaceFolder" => self.folder().and_then(text).map(Some),
            "workspaceFolderBasename" => {
                let folder = self.folder()?;
                text(Path::new(folder.file_name().unwrap_or_default())).map(Some)
            }
            "userHome" => self.ground.home.as_deref().ok_or_else(|| Gap::broken("the variable HOME is not set".to_owned())).and_then(text).map(Some),
            "pathSeparator" | "/" => Ok(Some("/".to_owned())),
            _ => Ok(None),
        }
    }

    fn folder(&self) -> Result<&Path, Gap> {
        let why = "${workspaceFolder} is the folder that is open in the editor, and this file belongs to no project";
        self.project.ok_or_else(|| Gap::unknown_here(why.to_owned()))
    }

    fn variable(&self, name: &str) -> Result<String, Gap> {
        (self.env)(name).ok_or_else(|| {
            let hint = if self.form == Form::Usual { ", and it has no default as in ${NAME:-default}" } else { "" };
            Gap::broken(format!("the environment variable {} is not set{hint}", printable(name, 100)))
        })
    }

    fn input(&self, id: &str) -> Result<String, Gap> {
        let name: String = id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
        let name = format!("{INPUT_PREFIX}{name}");
        (self.env)(&name).ok_or_else(|| {
            if self.form == Form::VsCode && self.inputs.iter().all(|input| id_of(input) != Some(id)) {
                let meant = similar(id, self.inputs.iter().filter_map(id_of));
                let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {:?}?", printable(meant, 60)));
                return Gap::broken(format!("it asks for the input {:?}, which `inputs` does not have{meant}", printable(id, 60)));
            }
            let about = self.inputs.iter().find_map(|input| description(input, id));
            let about = about.map_or_else(String::new, |about| format!(" ({})", printable(about, 120)));
            let why = format!("it asks for the input {:?}{about}: give it as the environment variable {}", printable(id, 60), printable(&name, 100));
            Gap::unknown_here(why)
        })
    }
}

/// The id of an input.
fn id_of(input: &Node) -> Option<&str> {
    member_of(input, "id")
}

/// What `input` says of itself, if it is the one with this id.
fn description<'a>(input: &'a Node, id: &str) -> Option<&'a str> {
    member_of(input, "description").filter(|_| id_of(input) == Some(id))
}

/// A text in an input; the last one of this name, as clients take it.
fn member_of<'a>(input: &'a Node, key: &str) -> Option<&'a str> {
    let Value::Map(members) = &input.value else { return None };
    members.iter().rev().find(|member| member.key == key).and_then(|member| match &member.value.value {
        Value::Text(text) => Some(text.as_str()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => None,
    })
}

fn bounded(text: String) -> Result<String, Gap> {
    if text.len() < MAX_TEXT { Ok(text) } else { Err(Gap::broken("a text of 128 KiB or more is more than Linux hands to a program".to_owned())) }
}

fn text(path: &Path) -> Result<String, Gap> {
    path.to_str().map(str::to_owned).ok_or_else(|| Gap::broken("the path of this file is not UTF-8".to_owned()))
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a text can be the name of a variable: letters, digits and `_`, and no digit first.
fn is_name(text: &str) -> bool {
    text.chars().all(is_word) && text.starts_with(|c: char| !c.is_ascii_digit())
}
