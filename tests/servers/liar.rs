//! An MCP server that does what a script says: the misbehaving servers of `tests/faults.rs`.
//!
//! The first argument is the script: a file, or the text itself. What a script does not mention is
//! done as a sound server would, so a script holds the fault and nothing else. One directive a line;
//! `#` begins a comment line.
//!
//! ```text
//! print Starting…                        at the start: a line on stdout
//! before tools/list: sleep 200ms         then the sound reply comes
//! on tools/list: error -32603 boom       instead of the sound reply
//! after initialize: exit 3               when the sound reply is out
//! on tools/list 2: result {"tools":[]}   the second time only
//! on tools/list if "cursor":"b": …       only if the request's line holds that text
//! before any: stderr W                   every message; `response` is a reply to something of ours
//! on eof: hang                           the end of stdin; soundly it exits with 0
//! ```
//!
//! Lines for one event are done in their order; those with a number or an `if` that fits replace
//! those without. The actions:
//!
//! ```text
//! print TEXT, write TEXT      TEXT to stdout, with and without a newline at its end
//! stderr TEXT                 a line on stderr
//! reply                       the sound reply
//! reply with {…}              with these members in its result; `reply without KEY`
//! result JSON, error CODE MSG a reply of one's own
//! ignore                      nothing
//! sleep 200ms, hang, spin     wait; wait for ever; work for ever
//! exit N, abort               end, with a status or by SIGABRT
//! wait TEXT                   read lines until one holds TEXT
//! take N                      have N MiB of memory from now on
//! spawn COMMAND               start `sh -c COMMAND` and do not care for it
//! flood TEXT                  write TEXT for ever
//! era legacy|modern|dual      what discover and initialize are answered with
//! version V                   the protocol version to answer initialize with
//! offer prompts resources     the capabilities; soundly: tools
//! tools [..]                  what the list holds; also prompts, resources, resourceTemplates
//! newline TEXT, chunk N, utf16  end of line; N bytes a write; encode everything so
//! ```
//!
//! In a TEXT, `\xNN` is a byte, `$id` the request's id as it came, `$idtext` its text, `$n` how often
//! this method was asked, `$line` the request, `$env(NAME)` a variable, `$repeat(N,TEXT)` N times TEXT.
//! Everything else stands for itself, JSON's own escapes too.

#![allow(clippy::disallowed_methods, reason = "a server with helpers, and not the program under test")]

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::time::Duration;
use std::{env, fs, io, process, thread};

use serde_json::{Map, Value, json};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";

/// One line of the script.
struct Rule {
    /// `before`, `on` or `after`.
    when: String,
    event: String,
    nth: Option<u64>,
    text: Option<String>,
    verb: String,
    rest: String,
}

impl Rule {
    fn read(line: &str) -> Option<Rule> {
        let (first, tail) = line.split_once(' ').unwrap_or((line, ""));
        if !["before", "on", "after"].contains(&first) {
            return Some(Rule { when: "on".into(), event: "start".into(), nth: None, text: None, verb: first.into(), rest: tail.into() });
        }
        let (head, action) = tail.split_once(": ")?;
        let (head, text) = head.split_once(" if ").map_or((head, None), |(head, text)| (head, Some(text.to_owned())));
        let (event, nth) = head.split_once(' ').map_or((head, None), |(event, n)| (event, n.parse().ok()));
        let (verb, rest) = action.split_once(' ').unwrap_or((action, ""));
        Some(Rule { when: first.into(), event: event.into(), nth, text, verb: verb.into(), rest: rest.into() })
    }

    fn is_particular(&self) -> bool {
        self.nth.is_some() || self.text.is_some()
    }
}

/// What came in, or an event without a message.
#[derive(Clone, Default)]
struct Event {
    name: String,
    line: String,
    message: Value,
    /// How often it has come.
    count: u64,
}

impl Event {
    fn fits(&self, rule: &Rule) -> bool {
        rule.nth.is_none_or(|n| n == self.count) && rule.text.as_ref().is_none_or(|text| self.line.contains(text.as_str()))
    }
}

struct Liar {
    script: Vec<Rule>,
    counts: HashMap<String, u64>,
    era: String,
    version: Option<String>,
    offers: Vec<String>,
    lists: HashMap<String, Value>,
    newline: Vec<u8>,
    chunk: usize,
    utf16: bool,
    taken: Vec<Vec<u8>>,
}

impl Liar {
    fn new(script: Vec<Rule>) -> Liar {
        let lists = [
            ("tools", json!([{ "name": "a", "description": "d", "inputSchema": { "type": "object" } }])),
            ("prompts", json!([{ "name": "p" }])),
            ("resources", json!([{ "name": "r", "uri": "file:///r" }])),
            ("resourceTemplates", json!([{ "name": "t", "uriTemplate": "file:///{t}" }])),
        ];
        let lists = lists.map(|(list, items)| (list.to_owned(), items)).into();
        let offers = vec!["tools".to_owned()];
        Liar {
            script,
            counts: HashMap::new(),
            era: "legacy".into(),
            version: None,
            offers,
            lists,
            newline: b"\n".into(),
            chunk: usize::MAX,
            utf16: false,
            taken: Vec::new(),
        }
    }

    fn run(&mut self) {
        self.happen(Event { name: "start".into(), ..Event::default() });
        while let Some(line) = read_line() {
            let message: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
            let name = message["method"].as_str().unwrap_or("response").to_owned();
            self.happen(Event { name, line, message, count: 0 });
        }
        self.happen(Event { name: "eof".into(), ..Event::default() });
    }

    /// Does what the script says of an event, or what is sound.
    fn happen(&mut self, mut event: Event) {
        let count = self.counts.entry(event.name.clone()).or_default();
        *count += 1;
        event.count = *count;
        if !event.line.is_empty() {
            self.perform("before", "any", &event);
        }
        self.perform("before", &event.name, &event);
        if !self.perform("on", &event.name, &event) {
            self.soundly(&event);
        }
        self.perform("after", &event.name, &event);
    }

    fn perform(&mut self, when: &str, name: &str, event: &Event) -> bool {
        let here: Vec<usize> = (0..self.script.len())
            .filter(|n| self.script[*n].when == when && self.script[*n].event == name && event.fits(&self.script[*n]))
            .collect();
        let particular = here.iter().any(|n| self.script[*n].is_particular());
        for n in &here {
            let rule = &self.script[*n];
            if rule.is_particular() == particular {
                let (verb, rest) = (rule.verb.clone(), rule.rest.clone());
                self.act(&verb, &rest, event);
            }
        }
        !here.is_empty()
    }

    fn act(&mut self, verb: &str, rest: &str, event: &Event) {
        let text = expand(rest, event);
        let word = String::from_utf8_lossy(&text).into_owned();
        let value = |json: &str| serde_json::from_str::<Value>(json).unwrap_or_else(|e| usage(&format!("`{json}`: {e}")));
        match verb {
            "print" => self.line(&text),
            "write" => self.put(&text),
            "stderr" => complain(&[&text[..], b"\n"].concat()),
            "reply" => match word.split_once(' ') {
                Some(("with", json)) => {
                    let more = value(json).as_object().cloned().unwrap_or_default();
                    self.reply(event, |result| result.extend(more));
                }
                Some(("without", key)) => self.reply(event, |result| drop(result.remove(key))),
                _ => self.soundly(event),
            },
            "result" => self.line(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{word}}}"#, event.message["id"]).as_bytes()),
            "error" => {
                let (code, message) = word.split_once(' ').unwrap_or((&word, "no"));
                self.line(format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":"{message}"}}}}"#, event.message["id"]).as_bytes());
            }
            "sleep" => thread::sleep(Duration::from_millis(word.trim_end_matches("ms").parse().unwrap_or_else(|_| usage("sleep 200ms")))),
            "hang" => thread::sleep(Duration::MAX),
            "spin" => while !std::hint::black_box(false) {},
            "ignore" => {}
            "exit" => process::exit(word.parse().unwrap_or(0)),
            "abort" => process::abort(),
            "wait" => while read_line().is_some_and(|line| !line.contains(&word)) {},
            "take" => self.taken.push(vec![1; word.parse::<usize>().unwrap_or_else(|_| usage("take 80")) << 20]),
            "spawn" => drop(process::Command::new("sh").args(["-c", &word]).stdin(process::Stdio::null()).spawn()),
            "flood" => loop {
                self.put(&text);
            },
            "era" => self.era = word,
            "version" => self.version = Some(word),
            "offer" => self.offers = word.split_whitespace().map(str::to_owned).collect(),
            "tools" | "prompts" | "resources" | "resourceTemplates" => {
                self.lists.insert(verb.to_owned(), value(&word));
            }
            "newline" => self.newline = text,
            "chunk" => self.chunk = word.parse().unwrap_or_else(|_| usage("chunk 1")),
            "utf16" => self.utf16 = true,
            _ => usage(&format!("no such action: {verb}")),
        }
    }

    fn soundly(&mut self, event: &Event) {
        if event.name == "eof" {
            process::exit(0);
        }
        self.reply(event, |_| {});
    }

    /// The sound reply, its result changed by `change`.
    fn reply(&mut self, event: &Event, change: impl FnOnce(&mut Map<String, Value>)) {
        if event.message["method"].is_null() || event.message["id"].is_null() {
            return;
        }
        let mut reply = json!({ "jsonrpc": "2.0", "id": event.message["id"] });
        match self.result(&event.message) {
            Ok(mut result) => {
                result.as_object_mut().map(change);
                reply["result"] = result;
            }
            Err(error) => reply["error"] = error,
        }
        self.line(reply.to_string().as_bytes());
    }

    fn result(&self, request: &Value) -> Result<Value, Value> {
        let method = request["method"].as_str().unwrap_or_default();
        let capabilities: Map<String, Value> = self.offers.iter().map(|name| (name.clone(), json!({}))).collect();
        let server = json!({ "name": "liar", "version": "1" });
        let is_modern = self.era != "legacy" && request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == MODERN;
        let mut result = match method {
            "server/discover" if self.era != "legacy" => json!({ "supportedVersions": [MODERN], "capabilities": capabilities }),
            "initialize" if self.era == "modern" => {
                return Err(
                    json!({ "code": -32022, "message": "modern only", "data": { "supported": [MODERN], "requested": request["params"]["protocolVersion"] } }),
                );
            }
            "initialize" => {
                let asked = request["params"]["protocolVersion"].as_str().filter(|v| LEGACY.contains(v)).unwrap_or(LEGACY[3]);
                json!({ "protocolVersion": self.version.as_deref().unwrap_or(asked), "capabilities": capabilities, "serverInfo": server })
            }
            "ping" if !is_modern => json!({}),
            "tools/list" if self.offers("tools") => json!({ "tools": self.lists["tools"] }),
            "prompts/list" if self.offers("prompts") => json!({ "prompts": self.lists["prompts"] }),
            "resources/list" if self.offers("resources") => json!({ "resources": self.lists["resources"] }),
            "resources/templates/list" if self.offers("resources") => json!({ "resourceTemplates": self.lists["resourceTemplates"] }),
            _ => return Err(json!({ "code": -32601, "message": "Method not found" })),
        };
        if is_modern {
            (result["resultType"], result["ttlMs"], result["cacheScope"]) = ("complete".into(), 60_000.into(), "public".into());
            result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": server });
        }
        Ok(result)
    }

    fn offers(&self, list: &str) -> bool {
        self.offers.iter().any(|name| name == list)
    }

    fn line(&mut self, text: &[u8]) {
        let text = [text, &self.newline].concat();
        self.put(&text);
    }

    /// Writes to stdout. When nobody listens any more, that is the end.
    fn put(&mut self, text: &[u8]) {
        let text = if self.utf16 { String::from_utf8_lossy(text).encode_utf16().flat_map(u16::to_le_bytes).collect() } else { text.to_vec() };
        let mut stdout = io::stdout().lock();
        for part in text.chunks(self.chunk) {
            if stdout.write_all(part).and_then(|()| stdout.flush()).is_err() {
                process::exit(0);
            }
        }
    }
}

fn read_line() -> Option<String> {
    let mut line = Vec::new();
    let length = io::stdin().lock().read_until(b'\n', &mut line).unwrap_or(0);
    (length > 0).then(|| String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn complain(text: &[u8]) {
    let _ = io::stderr().write_all(text);
}

fn usage(problem: &str) -> ! {
    complain(format!("liar: {problem}\n").as_bytes());
    process::exit(64)
}

/// Resolves what the module's documentation lists.
fn expand(text: &str, event: &Event) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '$']) {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        let byte = rest.strip_prefix("\\x").and_then(|hex| u8::from_str_radix(hex.get(..2)?, 16).ok());
        let word = &rest[1..1 + rest[1..].bytes().take_while(u8::is_ascii_lowercase).count()];
        let after = &rest[1 + word.len()..];
        let inside = after.strip_prefix('(').and_then(|tail| tail.split_once(')'));
        let (bytes, tail) = match (byte, word, inside) {
            (Some(byte), _, _) => (vec![byte], &rest[4..]),
            (None, "id", _) => (event.message["id"].to_string().into_bytes(), after),
            (None, "idtext", _) => (event.message["id"].to_string().trim_matches('"').into(), after),
            (None, "n", _) => (event.count.to_string().into_bytes(), after),
            (None, "line", _) => (event.line.clone().into_bytes(), after),
            (None, "env", Some((name, tail))) => (env::var(name).unwrap_or_default().into_bytes(), tail),
            (None, "repeat", Some((inside, tail))) => {
                let (times, what) = inside.split_once(',').unwrap_or(("0", ""));
                (expand(what, event).repeat(times.parse().unwrap_or(0)), tail)
            }
            _ => (rest.as_bytes()[..1].to_vec(), &rest[1..]),
        };
        out.extend_from_slice(&bytes);
        rest = tail;
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

fn main() {
    let script = env::args().nth(1).unwrap_or_default();
    let text = fs::read_to_string(&script).unwrap_or(script);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rules = lines.map(|line| Rule::read(line).unwrap_or_else(|| usage(&format!("`{line}` is no directive")))).collect();
    Liar::new(rules).run();
}
