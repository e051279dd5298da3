//! A canary call: one tool, called with arguments that do no harm, and what its result should hold.
//!
//! A server can list its tools and still fail every call: a dead database, a revoked token.

use serde::{Deserialize, Serialize};

use crate::protocol::json::{Doc, Value, write_canonical};
use crate::protocol::mcp::Item;
use crate::words::{Redactor, similar};

/// What to call, and what to expect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// Its arguments, as a JSON object.
    pub arguments: String,
    /// What the texts of the result together have to contain.
    pub contains: Option<String>,
    /// What has to stand where in the result: JSON pointers and JSON values.
    pub equals: Vec<(String, String)>,
    /// Call it even though the server marks it destructive.
    pub insist: bool,
}

/// What is said of a tool that is not listed; nothing follows where nothing that is listed is called nearly so.
pub const NO_SUCH_TOOL: &str = "the server lists no such tool";

impl Call {
    /// The same without what `redactor` knows: to be written down, not to be made.
    pub(super) fn masked(&self, redactor: &Redactor) -> Call {
        let masked = |text: &str| redactor.redact_str(text).into_owned();
        Call {
            tool: masked(&self.tool),
            arguments: masked(&self.arguments),
            contains: self.contains.as_deref().map(masked),
            equals: self.equals.iter().map(|(pointer, value)| (masked(pointer), masked(value))).collect(),
            insist: self.insist,
        }
    }

    /// Why the call must not be made; `None` if it may. `tool` is the tool, if the server lists it; `near` what it lists
    /// that is called nearly so.
    pub(super) fn objection(&self, tool: Option<&Item>, near: &Near, redactor: &Redactor) -> Option<String> {
        let Some(tool) = tool else {
            let meant = near.name.as_deref().map_or_else(String::new, |name| format!(" (did you mean \"{}\"?)", redactor.printable(name, 100)));
            return Some(format!("{NO_SUCH_TOOL}{meant}"));
        };
        if self.insist {
            return None;
        }
        let doc = Doc::parse(&tool.canonical).ok()?;
        let hint = |name| doc.root().get("annotations").and_then(|a| a.get(name)).and_then(Value::boolean);
        let destructive = hint("destructiveHint") == Some(true) && hint("readOnlyHint") != Some(true);
        destructive.then(|| "the server marks it as destructive, so it was not called; `insist` would call it all the same".to_owned())
    }

    /// What is wrong with the result; `None` if it is as expected.
    pub(super) fn disappointment(&self, result: Value<'_>, redactor: &Redactor) -> Option<String> {
        if result.get("isError").and_then(Value::boolean) == Some(true) {
            return Some(format!("the tool reports an error: {}", redactor.printable(&texts(result), 200)));
        }
        if result.get("resultType").and_then(Value::text).is_some_and(|t| t != "complete") {
            return Some("the result is not complete: the tool wants input".to_owned());
        }
        if let Some(wanted) = &self.contains
            && !texts(result).contains(wanted.as_str())
        {
            return Some(format!("its texts do not contain \"{}\"", redactor.printable(wanted, 100)));
        }
        self.equals.iter().find_map(|(pointer, wanted)| unequal(result, pointer, wanted, redactor))
    }
}

/// So many names are looked at in one session: a server may list any number.
const MOST_NAMES: usize = 256;

/// The name of a listed tool that is nearest to the one to call.
#[derive(Clone, Debug, Default)]
pub(super) struct Near {
    name: Option<String>,
    seen: usize,
}

impl Near {
    /// These tools are listed, perhaps besides others.
    pub(super) fn see(&mut self, call: &Call, tools: &[Item]) {
        let names = tools.iter().take(MOST_NAMES.saturating_sub(self.seen)).map(|tool| tool.name.as_str());
        let names = self.name.as_deref().into_iter().chain(names);
        self.seen += tools.len();
        self.name = similar(&call.tool, names).map(str::to_owned);
    }
}

/// The texts of a result, a line each.
fn texts(result: Value<'_>) -> String {
    let parts = result.get("content").into_iter().flat_map(Value::elements);
    let texts: Vec<_> = parts.filter_map(|part| part.get("text").and_then(Value::text)).collect();
    texts.join("\n")
}

fn unequal(result: Value<'_>, pointer: &str, wanted: &str, redactor: &Redactor) -> Option<String> {
    let shown = redactor.printable(pointer, 100);
    let Some(value) = result.at(pointer) else {
        return Some(format!("there is nothing at {shown}"));
    };
    let (mut got, mut expected) = (Vec::new(), Vec::new());
    write_canonical(value, &mut got);
    write_canonical(Doc::parse(wanted.as_bytes()).ok()?.root(), &mut expected);
    let got_text = String::from_utf8_lossy(&got);
    (got != expected).then(|| format!("{shown} is {}, and should be {}", redactor.printable(&got_text, 100), redactor.printable(wanted, 100)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(contains: Option<&str>, equals: &[(&str, &str)]) -> Call {
        let own = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
        Call { tool: "t".into(), arguments: "{}".into(), contains: contains.map(Into::into), equals: equals.iter().map(own).collect(), insist: false }
    }

    fn disappointment(call: &Call, result: &str) -> Option<String> {
        call.disappointment(Doc::parse(result.as_bytes()).unwrap().root(), &Redactor::default())
    }

    #[test]
    fn a_result_is_held_against_what_was_expected() {
        let result = r#"{"content":[{"type":"text","text":"hi there"},{"type":"image"}],"structuredContent":{"sum":5.0,"a/b":[1]}}"#;
        assert_eq!(disappointment(&call(None, &[]), result), None);
        assert_eq!(disappointment(&call(Some("hi"), &[("/structuredContent/sum", "5"), ("/structuredContent/a~1b", "[1]")]), result), None);
        for (call, word) in [
            (call(Some("bye"), &[]), "do not contain"),
            (call(None, &[("/structuredContent/sum", "6")]), "is 5, and should be 6"),
            (call(None, &[("/nowhere", "6")]), "nothing at /nowhere"),
        ] {
            let told = disappointment(&call, result).unwrap();
            assert!(told.contains(word), "{told}");
        }
        assert!(
            disappointment(&call(None, &[]), r#"{"isError":true,"content":[{"type":"text","text":"no database"}]}"#).unwrap().contains("no database")
        );
        assert!(disappointment(&call(None, &[]), r#"{"resultType":"input_required"}"#).is_some());
    }
}
