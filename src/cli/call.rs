//! `--call`: a canary call, as a tool's name or as the configuration writes it, in JSON.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::probe::Call;

/// What the configuration says of a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(default)]
    expect: Expect,
    #[serde(default)]
    insist: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    contains: Option<String>,
    /// JSON pointers into the result, and what has to stand there.
    #[serde(default)]
    equals: Map<String, Value>,
}

/// Reads a call.
///
/// # Errors
///
/// In words, with what would be right.
pub(super) fn parse(text: &str) -> Result<Call, String> {
    let written = if text.trim_start().starts_with('{') {
        serde_json::from_str(text)
            .map_err(|error| format!("{error}; write {{\"tool\": NAME, \"arguments\": {{…}}, \"expect\": {{\"contains\": TEXT}}}}"))?
    } else {
        Written { tool: text.to_owned(), arguments: Map::new(), expect: Expect::default(), insist: false }
    };
    if written.tool.is_empty() {
        return Err("the tool's name is empty".to_owned());
    }
    if let Some(pointer) = written.expect.equals.keys().find(|p| !p.is_empty() && !p.starts_with('/')) {
        return Err(format!("\"{}\" is no JSON pointer, which begins with /", crate::words::printable(pointer, 60)));
    }
    Ok(Call {
        tool: written.tool,
        arguments: Value::Object(written.arguments).to_string(),
        contains: written.expect.contains,
        equals: written.expect.equals.into_iter().map(|(pointer, value)| (pointer, value.to_string())).collect(),
        insist: written.insist,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_name_or_what_the_configuration_says() {
        assert_eq!(parse("echo").unwrap().arguments, "{}");
        let call =
            parse(r#"{"tool":"add","arguments":{"a":2},"expect":{"contains":"5","equals":{"/structuredContent/sum":5}},"insist":true}"#).unwrap();
        assert_eq!((call.arguments.as_str(), call.contains.as_deref(), call.insist), (r#"{"a":2}"#, Some("5"), true));
        assert_eq!(call.equals, [("/structuredContent/sum".to_owned(), "5".to_owned())]);
        for (text, word) in [
            ("{", "EOF"),
            (r#"{"tool":"a","argument":{}}"#, "argument"),
            (r#"{"tool":""}"#, "empty"),
            (r#"{"tool":"a","expect":{"equals":{"x":1}}}"#, "pointer"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
