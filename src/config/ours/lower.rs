//! What was read of a server, as the types that run it; and what cannot be, taken together.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::super::file::NOWHERE;
use super::super::keys::INTERVAL;
use super::super::quantity::shown_duration;
use super::super::read::{Got, What};
use super::super::tree::{Place, Problem};
use super::super::{Env, FileProblem, dotenv, file, shown};
use crate::judge::{ChangeClass, OBJECTIVES, Rules, Severity};
use crate::outside::process::{EnvMode, LaunchSpec, Leftovers, Resources, StdioKind};
use crate::probe::{Call, EraChoice, Limits, Times};
use crate::protocol::Era;
use crate::running::{SchemaPolicy, Thresholds, Watched};
use crate::words::{ServerName, printable};

/// The largest file with a secret or variables, in bytes.
const LARGEST_SECRET: u64 = 64 << 10;

/// Makes servers of what was read in one file.
pub(super) struct Lowering<'e> {
    /// The file.
    pub(super) file: &'e Path,
    /// Our environment.
    pub(super) env: Env<'e>,
    /// What is wrong.
    pub(super) problems: Vec<FileProblem>,
    /// Other files that were read, and lock files.
    pub(super) files: Vec<PathBuf>,
    /// The directory that relative paths are taken from; absolute.
    base: PathBuf,
}

impl<'e> Lowering<'e> {
    pub(super) fn new(file: &'e Path, env: Env<'e>) -> Lowering<'e> {
        let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let base = absolute.parent().unwrap_or(Path::new("/")).to_owned();
        Lowering { file, env, problems: Vec::new(), files: Vec::new(), base }
    }

    fn wrong(&mut self, at: Place, message: String) {
        self.problems.push(FileProblem { file: self.file.to_owned(), problem: Problem { at, message } });
    }

    /// A path: from our home directory after `~/`, otherwise from the file's directory.
    pub(super) fn path(&self, text: &str) -> PathBuf {
        self.base.join(self.at_home(text)).components().collect()
    }

    fn at_home(&self, text: &str) -> String {
        match (text.strip_prefix('~'), (self.env)("HOME")) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            _ => text.to_owned(),
        }
    }

    /// A server, of what was read of it without a problem.
    pub(super) fn server(&mut self, name: ServerName, got: &Got, secrets: Vec<String>) -> Watched {
        let times = self.times(got);
        let spec = self.spec(got);
        self.command(got, &spec);
        let schema = got.at_path(&["schema", "lock"]).and_then(Got::text).map(|lock| self.path(lock));
        self.files.extend(schema.clone());
        Watched {
            era: match word(got, &["era"]) {
                Some("modern") => EraChoice::Fixed(Era::Modern),
                Some("legacy") => EraChoice::Fixed(Era::Legacy),
                _ => EraChoice::Auto { remembered: None },
            },
            times,
            limits: limits(got),
            call: got.at_path(&["call"]).map(call),
            rules: Arc::new(rules(got)),
            thresholds: thresholds(got),
            schema: SchemaPolicy { lock: schema, locked: None, accept_after: number(got, &["schema", "accept_after"]) },
            secrets,
            ..Watched::new(name, spec, duration(got, &["interval"]).unwrap_or(INTERVAL))
        }
    }

    fn times(&mut self, got: &Got) -> Times {
        let usual = Times::default();
        let of = |path: &[&str], usual| duration(got, path).unwrap_or(usual);
        let startup = of(&["timeouts", "startup"], usual.startup);
        let request = of(&["timeouts", "request"], usual.request);
        let total = of(&["timeouts", "total"], usual.total);
        if total < startup {
            let place = |key: &str| got.at_path(&["timeouts", key]).map(|got| got.at);
            let said = |key: &str, time| format!("`{key}` ({}{})", shown_duration(time), if place(key).is_none() { " by default" } else { "" });
            let message = format!("{} is shorter than {}, which is part of it", said("total", total), said("startup", startup));
            self.wrong(place("total").or_else(|| place("startup")).unwrap_or(got.at), message);
        }
        Times {
            startup,
            discovery: startup.min(request),
            cold_start: of(&["timeouts", "cold_start"], usual.cold_start),
            request,
            total,
            eof_grace: of(&["shutdown", "eof"], usual.eof_grace),
            term_grace: of(&["shutdown", "term"], usual.term_grace),
            ..usual
        }
    }

    fn spec(&mut self, got: &Got) -> LaunchSpec {
        let command = got.at_path(&["command"]).and_then(Got::text).unwrap_or_default();
        let args = got.at_path(&["args"]).map(Got::elements).unwrap_or_default();
        let mut env = got.at_path(&["env_from_file"]).map(|from| self.variables(from)).unwrap_or_default();
        let own = got.at_path(&["env"]).map(Got::entries).unwrap_or_default();
        env.extend(own.iter().filter_map(|(name, _, value)| Some((name.clone(), value.text()?.to_owned()))));
        LaunchSpec {
            command: self.at_home(command),
            args: args.iter().filter_map(Got::text).map(str::to_owned).collect(),
            env_mode: match word(got, &["env_mode"]) {
                Some("inherit") => EnvMode::Inherit,
                Some("clean") => EnvMode::Clean,
                _ => EnvMode::Sdk,
            },
            env: last_of_each(env),
            cwd: got.at_path(&["cwd"]).and_then(Got::text).map(|cwd| self.path(cwd)),
            stdio: if word(got, &["stdio"]) == Some("socketpair") { StdioKind::Socketpair } else { StdioKind::Pipe },
            leftovers: if word(got, &["leftovers"]) == Some("report") { Leftovers::Report } else { Leftovers::Kill },
            user: got.at_path(&["user"]).and_then(Got::text).and_then(|user| user.parse().ok()),
            no_new_privs: got.at_path(&["no_new_privs"]).map_or(got.at_path(&["user"]).is_some(), |got| got.what == What::Bool(true)),
            private_tmp: got.at_path(&["private_tmp"]).is_some_and(|got| got.what == What::Bool(true)),
            cgroup: got.at_path(&["cgroup"]).is_some_and(|got| got.what == What::Bool(true)),
            resources: Resources {
                memory: number(got, &["limits", "memory"]),
                processes: number(got, &["limits", "processes"]),
                open_files: number(got, &["limits", "open_files"]),
                cpu: duration(got, &["limits", "cpu"]),
                file_size: number(got, &["limits", "file_size"]),
            },
        }
    }

    /// The variables of `env_from_file`.
    fn variables(&mut self, from: &Got) -> Vec<(String, String)> {
        let mut variables = Vec::new();
        for (name, _, path) in from.entries() {
            let Some(mut value) = path.text().and_then(|text| self.secret(text, path.at)) else { continue };
            if value.ends_with('\n') {
                value.pop();
                if value.ends_with('\r') {
                    value.pop();
                }
            }
            if value.contains('\0') {
                self.wrong(path.at, format!("{}: a value cannot contain a NUL byte", printable(name, 60)));
                continue;
            }
            variables.push((name.clone(), value));
        }
        let whole = if matches!(from.what, What::Text(_)) { std::slice::from_ref(from) } else { from.elements() };
        for path in whole {
            let Some(text) = path.text() else { continue };
            let Some(content) = self.secret(text, path.at) else { continue };
            match dotenv::read(&content) {
                Ok(read) => variables.extend(read),
                Err(problem) => self.problems.push(FileProblem { file: self.path(text), problem }),
            }
        }
        variables
    }

    /// The content of a file that is named at a place.
    fn secret(&mut self, text: &str, at: Place) -> Option<String> {
        let path = self.path(text);
        match file::text(&path, LARGEST_SECRET) {
            Ok(content) => {
                self.files.push(path);
                Some(content)
            }
            Err(problem) => {
                let place = if problem.at == NOWHERE { String::new() } else { format!(":{}", problem.at) };
                self.wrong(at, format!("{}{place}: {}", shown(&path), problem.message));
                None
            }
        }
    }

    /// A whole command line under `command`, where there is no file of that name.
    fn command(&mut self, got: &Got, spec: &LaunchSpec) {
        let Some(command) = got.at_path(&["command"]) else { return };
        let mut words = spec.command.split_whitespace();
        let (Some(first), Some(second)) = (words.next(), words.next()) else { return };
        let cwd = spec.cwd.clone().unwrap_or_default();
        let is_file = |text: &str| cwd.join(text).is_file();
        // A path whose first part is none may well be one on another machine.
        if is_file(&spec.command) || first.contains('/') && !is_file(first) {
            return;
        }
        let on_path = (self.env)("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(&spec.command).is_file()));
        if on_path {
            return;
        }
        let args: Vec<String> = std::iter::once(second).chain(words).map(|word| format!("\"{}\"", printable(word, 40))).collect();
        let right = format!("command: {}, args: [{}]", printable(first, 40), args.join(", "));
        self.wrong(command.at, format!("`command` is \"{}\", and there is no such file; did you mean {right}?", printable(&spec.command, 100)));
    }
}

/// A call, of what was read without a problem.
pub(super) fn call(got: &Got) -> Call {
    let tool = got.text().or_else(|| got.at_path(&["tool"]).and_then(Got::text)).unwrap_or_default();
    let equals = got.at_path(&["expect", "equals"]).map(Got::entries).unwrap_or_default();
    Call {
        tool: tool.to_owned(),
        arguments: got.at_path(&["arguments"]).and_then(Got::text).unwrap_or("{}").to_owned(),
        contains: got.at_path(&["expect", "contains"]).and_then(Got::text).map(str::to_owned),
        equals: equals.iter().filter_map(|(pointer, _, value)| Some((pointer.clone(), value.text()?.to_owned()))).collect(),
        insist: got.at_path(&["insist"]).is_some_and(|got| got.what == What::Bool(true)),
    }
}

fn rules(got: &Got) -> Rules {
    let severity = got.at_path(&["severity"]).map(Got::entries).unwrap_or_default();
    let level = |word: &str| Severity::ALL.into_iter().find(|severity| severity.as_str() == word);
    let ignored = got.at_path(&["schema", "ignore"]).map(Got::elements).unwrap_or_default();
    let class = |word: &str| ChangeClass::ALL.into_iter().find(|class| class.as_str() == word);
    Rules {
        severity: severity.iter().filter_map(|(code, _, got)| Some((code.clone(), level(got.text()?)?))).collect(),
        objectives: OBJECTIVES.into_iter().filter_map(|phase| Some((phase, duration(got, &["objectives", phase])?))).collect(),
        allowed: ignored.iter().filter_map(Got::text).filter_map(class).collect(),
    }
}

fn limits(got: &Got) -> Limits {
    let usual = Limits::default();
    Limits {
        line: number(got, &["limits", "line"]).unwrap_or(usual.line),
        output: number(got, &["limits", "output"]).unwrap_or(usual.output),
        pages: number(got, &["limits", "pages"]).unwrap_or(usual.pages),
        ..usual
    }
}

fn thresholds(got: &Got) -> Thresholds {
    let usual = Thresholds::default();
    Thresholds {
        failure: number(got, &["thresholds", "failure"]).unwrap_or(usual.failure),
        success: number(got, &["thresholds", "success"]).unwrap_or(usual.success),
    }
}

fn duration(got: &Got, path: &[&str]) -> Option<Duration> {
    if let What::Duration(duration) = got.at_path(path)?.what { Some(duration) } else { None }
}

/// A number; the table of keys bounds it to what its type holds.
fn number<N: TryFrom<u64>>(got: &Got, path: &[&str]) -> Option<N> {
    if let What::Number(number) = got.at_path(path)?.what { N::try_from(number).ok() } else { None }
}

fn word(got: &Got, path: &[&str]) -> Option<&'static str> {
    if let What::Word(word) = got.at_path(path)?.what { Some(word) } else { None }
}

/// The last value of each variable, in the order in which they came first.
fn last_of_each(variables: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut kept: Vec<(String, String)> = Vec::new();
    for (name, value) in variables {
        match kept.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = value,
            None => kept.push((name, value)),
        }
    }
    kept
}
