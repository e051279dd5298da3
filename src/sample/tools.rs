//! The tools: their definitions, and what a call of them does.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Number, Value, json};

use super::rpc::{Params, Refusal};

/// A tool. A call gives the text, and the structured content where the tool has an output schema.
pub(super) struct Tool {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    input_schema: fn() -> Value,
    output_schema: Option<fn() -> Value>,
    idempotent: bool,
    call: fn(&Params) -> Result<Content, String>,
}

enum Content {
    Text(String),
    Structured(Value),
}

/// The tools of most kinds.
pub(super) const BASIC: &[Tool] = &[ECHO, ADD, UNIX_TIME];
/// Enough tools for three pages of two, the last one short.
pub(super) const MANY: &[Tool] = &[ECHO, ADD, UNIX_TIME, UPPERCASE, LENGTH];

const ECHO: Tool = Tool {
    name: "echo",
    title: "Echo",
    description: "Gives the text back.",
    input_schema: text_schema,
    output_schema: None,
    idempotent: true,
    call: |arguments| Ok(Content::Text(text(arguments)?.to_owned())),
};

const ADD: Tool = Tool {
    name: "add",
    title: "Add",
    description: "Adds two numbers.",
    input_schema: || {
        json!({
            "type": "object",
            "properties": {
                "a": {"type": "number", "description": "The first number"},
                "b": {"type": "number", "description": "The second number"},
            },
            "required": ["a", "b"],
            "additionalProperties": false,
        })
    },
    output_schema: Some(|| {
        json!({
            "type": "object",
            "properties": {"sum": {"type": "number"}},
            "required": ["sum"],
        })
    }),
    idempotent: true,
    call: |arguments| {
        let sum = sum(number(arguments, "a")?, number(arguments, "b")?).ok_or("the sum is out of range")?;
        Ok(Content::Structured(json!({"sum": sum})))
    },
};

const UNIX_TIME: Tool = Tool {
    name: "unix_time",
    title: "Unix time",
    description: "Tells the time, in seconds since 1970-01-01T00:00:00Z.",
    input_schema: || json!({"type": "object", "additionalProperties": false}),
    output_schema: None,
    idempotent: false,
    call: |_| Ok(Content::Text(since_epoch().as_secs().to_string())),
};

const UPPERCASE: Tool = Tool {
    name: "uppercase",
    title: "Uppercase",
    description: "Gives the text back in capitals.",
    call: |arguments| Ok(Content::Text(text(arguments)?.to_uppercase())),
    ..ECHO
};

const LENGTH: Tool = Tool {
    name: "length",
    title: "Length",
    description: "Counts the characters of the text.",
    call: |arguments| Ok(Content::Text(text(arguments)?.chars().count().to_string())),
    ..ECHO
};

impl Tool {
    /// The entry in `tools/list`.
    pub(super) fn definition(&self) -> Value {
        let mut definition = json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": (self.input_schema)(),
            "annotations": {
                "readOnlyHint": true,
                "idempotentHint": self.idempotent,
                "openWorldHint": false,
            },
        });
        if let Some(schema) = self.output_schema {
            definition["outputSchema"] = schema();
        }
        definition
    }

    fn run(&self, arguments: &Params) -> Value {
        match (self.call)(arguments) {
            Ok(Content::Text(text)) => {
                json!({"content": [{"type": "text", "text": text}], "isError": false})
            }
            Ok(Content::Structured(value)) => json!({
                "content": [{"type": "text", "text": value.to_string()}],
                "structuredContent": value,
                "isError": false,
            }),
            // Not a protocol error: a model may mend the arguments and try again.
            Err(reason) => json!({"content": [{"type": "text", "text": reason}], "isError": true}),
        }
    }
}

/// The result of `tools/call`.
pub(super) fn call(tools: &[Tool], params: &Params) -> Result<Value, Refusal> {
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| Refusal::invalid_params("name has to be a string"))?;
    let tool = tools.iter().find(|tool| tool.name == name);
    let tool = tool.ok_or_else(|| Refusal::invalid_params(format!("Unknown tool: {name}")))?;
    match params.get("arguments") {
        None => Ok(tool.run(&Params::new())),
        Some(Value::Object(arguments)) => Ok(tool.run(arguments)),
        Some(_) => Err(Refusal::invalid_params("arguments has to be an object")),
    }
}

/// The time since the Unix epoch.
#[allow(clippy::disallowed_methods, reason = "the sample server shares nothing with the prober, its clock included")]
pub(super) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn text_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"message": {"type": "string", "description": "Any text"}},
        "required": ["message"],
    })
}

fn text(arguments: &Params) -> Result<&str, String> {
    arguments.get("message").and_then(Value::as_str).ok_or_else(|| "message has to be a string".to_owned())
}

fn number<'a>(arguments: &'a Params, name: &str) -> Result<&'a Number, String> {
    match arguments.get(name) {
        Some(Value::Number(number)) => Ok(number),
        _ => Err(format!("{name} has to be a number")),
    }
}

/// The exact sum of integers where it fits, else the floating-point one; none where JSON has no such number.
fn sum(a: &Number, b: &Number) -> Option<Number> {
    let exact = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b));
    exact.map(Number::from).or_else(|| Number::from_f64(a.as_f64()? + b.as_f64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(tool: &Tool, arguments: Value) -> Value {
        tool.run(arguments.as_object().unwrap())
    }

    #[test]
    fn calls_give_what_the_descriptions_say() {
        assert_eq!(run(&ECHO, json!({"message": "a\nb"}))["content"][0]["text"], "a\nb");
        assert_eq!(run(&ADD, json!({"a": 2, "b": 3}))["structuredContent"], json!({"sum": 5}));
        assert_eq!(run(&ADD, json!({"a": 0.5, "b": 1}))["structuredContent"], json!({"sum": 1.5}));
        assert_eq!(run(&UPPERCASE, json!({"message": "straße"}))["content"][0]["text"], "STRASSE");
        assert_eq!(run(&LENGTH, json!({"message": "straße"}))["content"][0]["text"], "6");
    }

    #[test]
    fn wrong_arguments_are_errors_of_the_tool() {
        for result in [run(&ECHO, json!({})), run(&ADD, json!({"a": 1, "b": "2"})), run(&ADD, json!({"a": f64::MAX, "b": f64::MAX}))] {
            assert_eq!(result["isError"], true, "{result}");
            assert!(result.get("structuredContent").is_none(), "{result}");
        }
    }
}
