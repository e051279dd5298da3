//! What configurations come to, what is wrong with them word for word, and the schema beside the reader.

mod errors;
mod files;
mod schema;
mod values;

use std::path::Path;

use super::{Configured, ours};

/// The environment of these tests.
fn env(name: &str) -> Option<String> {
    match name {
        "API_KEY" => Some("s3cret-value".to_owned()),
        "EMPTY" => Some(String::new()),
        "HOME" => Some("/home/me".to_owned()),
        "N" => Some("3".to_owned()),
        "PATH" => Some("/usr/bin:/bin".to_owned()),
        _ => None,
    }
}

/// The servers of a text, or everything that is wrong with it, a line each.
fn read(text: &str) -> Result<Vec<Configured>, String> {
    let file = Path::new("/etc/stdiowatch/f.yaml");
    let told = |problems: Vec<super::FileProblem>| {
        let lines: Vec<String> = problems.iter().map(|p| p.to_string().replace("/etc/stdiowatch/f.yaml:", "")).collect();
        lines.join("\n")
    };
    ours::read(text, file, &env).map(|ours| ours.servers).map_err(told)
}

/// The one server whose keys are given.
fn server(keys: &str) -> Result<super::Watched, String> {
    let text = format!("servers:\n  s:\n    command: x\n{}", keys.lines().map(|line| format!("    {line}\n")).collect::<String>());
    read(&text).map(|mut servers| servers.remove(0).watched)
}
