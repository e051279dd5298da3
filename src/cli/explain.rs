//! `stdiowatch explain`: what a finding means.

use std::process::ExitCode;

use anyhow::anyhow;

use super::complain;
use crate::judge::{CHECKS, Check, check};
use crate::words::printable;

pub(super) fn run(code: Option<&str>) -> ExitCode {
    let text = match code {
        None => list(),
        Some(code) => match check(code) {
            Some(check) => explain(check),
            None => return complain(&anyhow!("there is no finding \"{}\"; `stdiowatch explain` lists them all", printable(code, 60))),
        },
    };
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
    ExitCode::SUCCESS
}

fn list() -> String {
    CHECKS.iter().map(|check| format!("{:<30}{:<9}{}\n", check.code, check.severity, check.about)).collect()
}

fn explain(check: &Check) -> String {
    format!(
        "{}\n\nBy default a finding of this kind is `{}`; `--severity {}=LEVEL` changes that.\n\nWhat it means: {}\n\nWhat to do: {}\n",
        check.code, check.severity, check.code, check.about, check.mend
    )
}
