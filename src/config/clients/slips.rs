//! Keys of an entry that nobody reads, since they are nearly one that is read, or stand there again: clients pass over them,
//! and start the server without what they say.

use super::groups::Form;
use crate::config::tree::{Member, Problem};
use crate::words::{printable, similar};

/// What is read of an entry, whoever's it is.
const READ: [&str; 9] = ["command", "args", "cwd", "type", "url", "serverUrl", "httpUrl", "disabled", "enabled"];

/// What is read of some besides.
fn read_of(form: Form) -> &'static [&'static str] {
    match form {
        Form::Usual | Form::VsCode => &["env", "envFile", "transport", "transportType"],
        Form::Gemini => &["env", "transport", "transportType"],
        Form::Zed => &["env", "source", "settings"],
        Form::Codex => &["env", "env_vars", "startup_timeout_sec", "startup_timeout_ms", "experimental_environment"],
        Form::Opencode => &["environment"],
    }
}

/// Other words for them, which some other client or program has.
const OTHER_WORDS: [(&str, &str); 6] =
    [("cmd", "command"), ("arguments", "args"), ("environment", "env"), ("env", "environment"), ("workingDirectory", "cwd"), ("env_file", "envFile")];

/// Keys that clients do have, about other things than launching, or notes of people: near to one that is read, all the same.
const OTHERS: [&str; 13] =
    ["comment", "comments", "_comment", "dev", "id", "tags", "tools", "timeout", "headers", "header", "version", "enabled_tools", "disabled_tools"];

/// What stands among the keys of an entry and was probably meant to be another, with its place.
pub(super) fn slips(keys: &[Member], form: Form) -> Vec<Problem> {
    let read: Vec<&str> = READ.iter().chain(read_of(form)).copied().collect();
    let is_missing = |key: &str| read.contains(&key) && !keys.iter().any(|member| member.key == key);
    let own = read.iter().map(|key| (*key, *key));
    // A word, and the key that is meant by it. What is there already was not meant.
    let words: Vec<(&str, &str)> = own.chain(OTHER_WORDS).filter(|(_, key)| is_missing(key)).collect();
    let slip = |member: &Member| {
        let word = similar(&member.key, words.iter().map(|(word, _)| *word))?;
        let (_, meant) = words.iter().find(|(other, _)| *other == word)?;
        let message = format!("clients pass over `{}`; did you mean `{meant}`?", printable(&member.key, 60));
        Some(Problem { at: member.at, message })
    };
    // What stands there again later is lost.
    let again = |(n, member): (usize, &Member)| {
        let last = keys[n + 1..].iter().rfind(|later| later.key == member.key).filter(|_| read.contains(&member.key.as_str()))?;
        Some(Problem { at: member.at, message: format!("clients pass over this `{}`, for it stands here again at {}", member.key, last.at) })
    };
    let lost: Vec<Problem> = keys.iter().enumerate().filter_map(again).collect();
    let slips = keys.iter().filter(|member| !read.contains(&member.key.as_str()) && !OTHERS.contains(&member.key.as_str())).filter_map(slip);
    lost.into_iter().chain(slips).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree::{Node, Place, Value};

    fn meant(form: Form, keys: &[&str]) -> Vec<String> {
        let member = |(column, key): (u32, &&str)| {
            let at = Place { line: 1, column };
            Member { key: (*key).to_owned(), at, value: Node { at, value: Value::Null } }
        };
        let members: Vec<Member> = (1..).zip(keys).map(member).collect();
        slips(&members, form).into_iter().map(|slip| format!("{} {}", slip.at, slip.message)).collect()
    }

    #[test]
    fn a_slip_is_told_with_what_may_have_been_meant() {
        for (form, keys, wanted) in [
            (Form::Usual, &["comand"][..], Some("1:1 clients pass over `comand`; did you mean `command`?")),
            (Form::Usual, &["command", "agrs"], Some("1:2 clients pass over `agrs`; did you mean `args`?")),
            (Form::Usual, &["command", "Args"], Some("1:2 clients pass over `Args`; did you mean `args`?")),
            (Form::Usual, &["command", "enviroment"], Some("1:2 clients pass over `enviroment`; did you mean `env`?")),
            (Form::Usual, &["command", "environment"], Some("1:2 clients pass over `environment`; did you mean `env`?")),
            (Form::Opencode, &["command", "env"], Some("1:2 clients pass over `env`; did you mean `environment`?")),
            (Form::Opencode, &["command", "enviroment"], Some("1:2 clients pass over `enviroment`; did you mean `environment`?")),
            (Form::VsCode, &["cmd"], Some("1:1 clients pass over `cmd`; did you mean `command`?")),
            (Form::VsCode, &["command", "envfile"], Some("1:2 clients pass over `envfile`; did you mean `envFile`?")),
            (Form::Codex, &["command", "env_var"], Some("1:2 clients pass over `env_var`; did you mean `env_vars`?")),
            (Form::Usual, &["command", "dissabled"], Some("1:2 clients pass over `dissabled`; did you mean `disabled`?")),
            // What is there already was not meant.
            (Form::Usual, &["command", "comand"], None),
            (Form::Usual, &["command", "env", "args", "env"], Some("1:2 clients pass over this `env`, for it stands here again at 1:4")),
            (Form::Codex, &["command", "command"], Some("1:1 clients pass over this `command`, for it stands here again at 1:2")),
            (Form::Usual, &["command", "note", "note"], None),
        ] {
            assert_eq!(meant(form, keys), wanted.iter().map(|told| (*told).to_owned()).collect::<Vec<_>>(), "{keys:?}");
        }
    }

    #[test]
    fn keys_that_clients_have_are_no_slips() {
        let known = [
            "command",
            "comment",
            "dev",
            "tags",
            "tools",
            "timeout",
            "headers",
            "version",
            "alwaysAllow",
            "autoApprove",
            "trust",
            "description",
            "includeTools",
            "excludeTools",
            "watchPaths",
            "gallery",
            "sandboxEnabled",
            "name",
            "icon",
            "oauth",
            "disabledTools",
            "enabled_tools",
            "disabled_tools",
            "tool_timeout_sec",
            "startup_timeout_sec",
            "env_http_headers",
            "http_headers",
            "bearer_token_env_var",
            "required",
            "initializationOptions",
            "metadata",
            "note",
            "authProviderType",
            "toolFilter",
            "$schema",
            "//",
            "providerId",
            "source",
            "settings",
        ];
        for form in [Form::Usual, Form::Gemini, Form::VsCode, Form::Zed, Form::Codex, Form::Opencode] {
            assert_eq!(meant(form, &known), Vec::<String>::new(), "{form:?}");
        }
    }
}
