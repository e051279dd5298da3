//! `stdiowatch explain`: what a finding means.

use std::process::ExitCode;

use anyhow::anyhow;

use super::complain;
use crate::config::known_code;
use crate::judge::{CHECKS, Check, check};

/// What reports call an entry of a client's file of which nothing could be launched: no finding, since nothing was looked at.
const BROKEN: &str = "config.broken\n\n\
    What it means: an entry of an MCP client's file is wrong, so that no client can use it; nothing was launched. It is no finding \
    about a server, and `--severity` does not change it: `check` exits with 1.\n\n\
    What to do: mend the entry, at the file, line and column that stand beside it; `stdiowatch config check FILE` says the same.\n";

pub(super) fn run(code: Option<&str>) -> ExitCode {
    let text = match code {
        None => list(""),
        Some("config.broken" | "config" | "config." | "config.*") => BROKEN.to_owned(),
        Some(code) => match (check(code), list(code.trim_end_matches(['.', '*']))) {
            (Some(check), _) => explain(check),
            (None, family) if !family.is_empty() => family,
            (None, _) => return complain(&anyhow!("{}", known_code(code).err().unwrap_or_default())),
        },
    };
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
    ExitCode::SUCCESS
}

/// All of a family, the part of a code before its dot; or simply all.
fn list(family: &str) -> String {
    let is_one = |check: &&&Check| family.is_empty() || check.code.strip_prefix(family).is_some_and(|rest| rest.starts_with('.'));
    CHECKS.iter().filter(is_one).map(|check| format!("{:<30}{:<9}{}\n", check.code, check.severity, check.about)).collect()
}

fn explain(check: &Check) -> String {
    format!(
        "{}\n\nBy default a finding of this kind is `{}`; `--severity {}=LEVEL` changes that.\n\nWhat it means: {}\n\nWhat to do: {}\n",
        check.code, check.severity, check.code, check.about, check.mend
    )
}
