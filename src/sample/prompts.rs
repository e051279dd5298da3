//! The prompts.

use serde_json::{Value, json};

use super::rpc::{Params, Refusal};

struct Prompt {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// Name, description and whether it is required.
    arguments: &'static [(&'static str, &'static str, bool)],
    /// The text, from the values of the arguments in their order; an optional one may be empty.
    render: fn(&[&str]) -> String,
}

const PROMPTS: &[Prompt] = &[
    Prompt {
        name: "greet",
        title: "Greeting",
        description: "Asks for a greeting.",
        arguments: &[("name", "Who is greeted", true)],
        render: |values| format!("Greet {} in one sentence.", values.concat()),
    },
    Prompt {
        name: "summarise",
        title: "Summary",
        description: "Asks for a summary.",
        arguments: &[("text", "What is summarised", true), ("style", "How it is written", false)],
        render: |values| format!("Summarise the text, then any style given: {}", values.join("\n\n")),
    },
];

impl Prompt {
    fn definition(&self) -> Value {
        let arguments: Vec<Value> = self
            .arguments
            .iter()
            .map(|(name, description, required)| json!({"name": name, "description": description, "required": required}))
            .collect();
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "arguments": arguments,
        })
    }

    fn values<'a>(&self, given: Option<&'a Value>) -> Result<Vec<&'a str>, Refusal> {
        let value = |(name, _, required): &(&str, &str, bool)| match given.and_then(|given| given.get(name)) {
            Some(Value::String(value)) => Ok(value.as_str()),
            None if !required => Ok(""),
            None => Err(Refusal::invalid_params(format!("the argument {name} is missing"))),
            Some(_) => Err(Refusal::invalid_params(format!("the argument {name} has to be a string"))),
        };
        self.arguments.iter().map(value).collect()
    }
}

/// The entries of `prompts/list`.
pub(super) fn definitions() -> Vec<Value> {
    PROMPTS.iter().map(Prompt::definition).collect()
}

/// The result of `prompts/get`.
pub(super) fn get(params: &Params) -> Result<Value, Refusal> {
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| Refusal::invalid_params("name has to be a string"))?;
    let prompt = PROMPTS.iter().find(|prompt| prompt.name == name);
    let prompt = prompt.ok_or_else(|| Refusal::invalid_params(format!("Unknown prompt: {name}")))?;
    let text = (prompt.render)(&prompt.values(params.get("arguments"))?);
    Ok(json!({
        "description": prompt.description,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }))
}
