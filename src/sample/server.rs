//! Answers one message, without any I/O.

use serde_json::{Value, json};

use super::behaviour::{Behaviour, Eras, Unanswered};
use super::era::{self, Era};
use super::rpc::{self, METHOD_NOT_FOUND, Message, PARSE_ERROR, Params, Refusal, Request};
use super::{prompts, resources, tools};

/// What the server does about a message.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Reply(Value),
    Silence,
    /// End the process with this status.
    Exit(u8),
}

/// One launch of the sample server.
pub(super) struct Server {
    behaviour: Behaviour,
    /// Differs from launch to launch.
    launch: String,
}

impl Server {
    pub(super) fn new(behaviour: Behaviour, launch: String) -> Self {
        Self { behaviour, launch }
    }

    /// The answer to one line, without its newline.
    pub(super) fn answer_line(&self, line: &[u8]) -> Answer {
        if line.trim_ascii().is_empty() || self.behaviour.unanswered == Unanswered::Everything {
            return Answer::Silence;
        }
        match serde_json::from_slice(line) {
            Ok(message) => self.answer(&message),
            Err(error) => {
                let refusal = Refusal::new(PARSE_ERROR, format!("Parse error: {error}"));
                Answer::Reply(rpc::reply(&Value::Null, Err(refusal)))
            }
        }
    }

    /// The answer to one message.
    pub(super) fn answer(&self, message: &Value) -> Answer {
        // Revision 2025-03-26 requires a server to accept batches; the modern era has none.
        let takes_batches = self.behaviour.eras != Eras::Modern;
        match message.as_array() {
            Some(batch) if takes_batches && !batch.is_empty() => self.answer_batch(batch),
            _ => self.answer_single(message),
        }
    }

    fn answer_batch(&self, batch: &[Value]) -> Answer {
        let mut replies = Vec::new();
        for message in batch {
            match self.answer_single(message) {
                Answer::Reply(reply) => replies.push(reply),
                Answer::Silence => {}
                Answer::Exit(status) => return Answer::Exit(status),
            }
        }
        if replies.is_empty() { Answer::Silence } else { Answer::Reply(replies.into()) }
    }

    fn answer_single(&self, message: &Value) -> Answer {
        match Message::read(message) {
            Message::NoReplyDue => Answer::Silence,
            Message::Invalid(id, refusal) => Answer::Reply(rpc::reply(&id, Err(refusal))),
            Message::Request(request) => self.answer_request(&request),
        }
    }

    fn answer_request(&self, request: &Request) -> Answer {
        if self.behaviour.fatal_method == Some(request.method.as_str()) {
            return Answer::Exit(1);
        }
        let is_unanswered = match self.behaviour.unanswered {
            Unanswered::Nothing => false,
            Unanswered::Method(method) => method == request.method,
            Unanswered::Everything => true,
        };
        if is_unanswered {
            return Answer::Silence;
        }
        let outcome = match self.era_of(request) {
            Era::Legacy => self.legacy_result(request),
            Era::Modern => self.modern_result(request),
        };
        Answer::Reply(rpc::reply(&request.id, outcome))
    }

    fn era_of(&self, request: &Request) -> Era {
        match self.behaviour.eras {
            Eras::Legacy => Era::Legacy,
            Eras::Modern => Era::Modern,
            Eras::Both => Era::chosen_by(&request.method, &request.params),
        }
    }

    fn legacy_result(&self, request: &Request) -> Result<Value, Refusal> {
        match request.method.as_str() {
            "initialize" => era::initialize(&request.params),
            "ping" => Ok(json!({})),
            _ => self.common_result(Era::Legacy, request),
        }
    }

    fn modern_result(&self, request: &Request) -> Result<Value, Refusal> {
        if request.method == "initialize" {
            return Err(era::refuse_initialize(&request.params));
        }
        era::check_meta(&request.params)?;
        let result = match request.method.as_str() {
            "server/discover" => era::discover(),
            _ => self.common_result(Era::Modern, request)?,
        };
        Ok(era::seal(&request.method, result))
    }

    fn common_result(&self, era: Era, request: &Request) -> Result<Value, Refusal> {
        let params = &request.params;
        match request.method.as_str() {
            "tools/list" => page("tools", self.tools(), self.behaviour.page_size, params),
            "tools/call" => tools::call(self.behaviour.tools, params),
            "prompts/list" => page("prompts", prompts::definitions(), None, params),
            "prompts/get" => prompts::get(params),
            "resources/list" => page("resources", resources::definitions(), None, params),
            "resources/templates/list" => page("resourceTemplates", resources::templates(), None, params),
            "resources/read" => resources::read(era, params),
            method => Err(Refusal::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))),
        }
    }

    fn tools(&self) -> Vec<Value> {
        let mut tools: Vec<Value> = self.behaviour.tools.iter().map(tools::Tool::definition).collect();
        if self.behaviour.drifts
            && let Some(schema) = tools.first_mut().and_then(|tool| tool.pointer_mut("/inputSchema/properties"))
        {
            schema["style"] = json!({"type": "string", "enum": ["plain", format!("style-{}", self.launch)]});
        }
        tools
    }
}

/// One page of a list. The cursor is the place of the page's first item.
fn page(key: &str, items: Vec<Value>, size: Option<usize>, params: &Params) -> Result<Value, Refusal> {
    let size = size.unwrap_or(items.len()).max(1);
    let cursors = || (size..items.len()).step_by(size);
    let start = match params.get("cursor") {
        None => 0,
        Some(given) => cursors().find(|start| *given == cursor(*start)).ok_or_else(|| Refusal::invalid_params("Invalid cursor"))?,
    };
    let next = cursors().find(|next| *next > start);
    let items: Vec<Value> = items.into_iter().skip(start).take(size).collect();
    let mut result = json!({key: items});
    if let Some(next) = next {
        result["nextCursor"] = cursor(next).into();
    }
    Ok(result)
}

fn cursor(start: usize) -> String {
    format!("from-{start}")
}
