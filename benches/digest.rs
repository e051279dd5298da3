//! The schema digest beside the idiom, on the same bytes: `cargo bench --bench digest`.
//!
//! Ours is all that a probe pays for a `tools/list` reply: the machine is told of its bytes as they come
//! out of a pipe, makes lines and messages of them, checks the schemas, and digests each item and all of
//! them together. The idiom is `serde_json::Value`, `serde_json_canonicalizer` and SHA-256 per item.
//!
//! Rounds are interleaved, each measuring the idiom, a changed list and an unchanged one, in turns of
//! order; what is told is the median of the rounds' ratios. Exit status 0 whatever they are.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark reads clocks, prints and panics")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use sha2::{Digest as _, Sha256};
use stdiowatch::probe::{EraChoice, Exit, Input, Machine, Observation, Plan, Swept, Usage};
use stdiowatch::protocol::Era;
use stdiowatch::protocol::mcp::set_digest;
use stdiowatch::words::{At, Digest};

/// What a pipe gives at once.
const CHUNK: usize = 64 << 10;
/// How many times faster than the idiom a list that was not seen before, and one that was, should be.
const BARS: [(&str, f64); 2] = [("changed", 5.0), ("unchanged", 20.0)];

fn main() {
    println!("times the idiom's speed, medians of interleaved rounds; the bars are for 2 MiB\n");
    for (tools, rounds, repeats) in [(12, 200, 50), (126, 60, 5), (2600, 25, 1)] {
        let measured = measure(&reply(tools, "a"), &reply(tools, "b"), rounds, repeats);
        let size = reply(tools, "a").len();
        let shown = |n: usize| if n < 1 << 20 { format!("{:.1} KiB", n as f64 / 1024.0) } else { format!("{:.2} MiB", n as f64 / 1048576.0) };
        println!("{tools} tools, {}: the idiom takes {:.0} µs", shown(size), measured.idiom * 1e6);
        for ((name, bar), ratio) in BARS.into_iter().zip(measured.ratios) {
            let bar = if tools == 2600 { format!(" (bar: {bar:.0}×, {})", if ratio >= bar { "met" } else { "missed" }) } else { String::new() };
            println!("  {name}: ours is {ratio:.1}× faster than the idiom{bar}");
        }
    }
}

struct Measured {
    /// Seconds, the median.
    idiom: f64,
    /// Of a changed list and of an unchanged one.
    ratios: [f64; 2],
}

fn measure(line: &[u8], other: &[u8], rounds: usize, repeats: usize) -> Measured {
    assert_eq!(line.len(), other.len(), "the length alone must not tell them apart");
    let sides: [&dyn Fn(); 3] = [&|| _ = black_box(idiom(black_box(line))), &|| _ = black_box(digest(&probe(black_box(line)))), &|| {
        _ = black_box(digest(&probe(black_box(line))))
    }];
    let mut times: [Vec<f64>; 3] = Default::default();
    for round in 0..=rounds {
        for turn in 0..3 {
            let side = (round + turn) % 3;
            let begun = Instant::now();
            (0..repeats).for_each(|_| sides[side]());
            // The first round only warms up.
            if round > 0 {
                times[side].push(begun.elapsed().as_secs_f64() / repeats as f64);
            }
        }
    }
    let [idiom, changed, unchanged] = &times;
    let ratio = |ours: &[f64]| median(idiom.iter().zip(ours).map(|(idiom, ours)| idiom / ours).collect());
    Measured { idiom: median(idiom.clone()), ratios: [ratio(changed), ratio(unchanged)] }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The idiom: a tree of values, the canonicaliser that is there for it, and a hash of each item.
fn idiom(line: &[u8]) -> Digest {
    let message: serde_json::Value = serde_json::from_slice(line).unwrap();
    let mut lines: Vec<String> = message["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            let canonical = serde_json_canonicalizer::to_vec(tool).unwrap();
            let hash: String = Sha256::digest(&canonical).iter().map(|byte| format!("{byte:02x}")).collect();
            format!("tools {hash}\n")
        })
        .collect();
    lines.sort_unstable();
    Digest::of(lines.concat().as_bytes())
}

/// One whole probe of a legacy server whose era is known.
fn probe(line: &[u8]) -> Observation {
    let plan = Plan { era: EraChoice::Auto { remembered: Some(Era::Legacy) }, list_twice: false, ..Plan::new() };
    let mut machine = Machine::new(Arc::new(plan), At::START);
    let mut tell = |input: Input<'_>| {
        while machine.poll().is_some() {}
        machine.handle(At::START, input);
    };
    tell(Input::Spawned);
    tell(Input::Stdout(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}\n"));
    line.chunks(CHUNK).for_each(|chunk| tell(Input::Stdout(chunk)));
    tell(Input::StdoutClosed);
    tell(Input::Exited(Exit::Code(0)));
    tell(Input::Swept(Swept::default(), Usage::default()));
    machine.into_observation()
}

fn digest(observation: &Observation) -> Digest {
    let launch = observation.judged().unwrap();
    assert!(launch.seen.is_empty() && launch.lists[0].complete, "{:?}", launch.seen);
    set_digest(launch.lists.iter().flat_map(|list| list.items.iter().map(|item| (list.kind, item))))
}

/// A `tools/list` reply, as servers write it.
fn reply(tools: usize, tag: &str) -> Vec<u8> {
    let tools: Vec<String> = (0..tools).map(|n| tool(n, tag)).collect();
    format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"tools\":[{}]}}}}\n", tools.join(",")).into_bytes()
}

fn tool(n: usize, tag: &str) -> String {
    format!(
        concat!(
            r#"{{"name":"tool_{n:05}","title":"Tool number {n} {tag}","description":"Does a thing with the given arguments and returns a structured answer.\n\n"#,
            r#"Does it with \"care\", relative to the root, and never twice – unless asked to. See also tool_{m:05}.","inputSchema":{{"type":"object","#,
            r#""properties":{{"path":{{"type":"string","description":"The path to operate on, relative to the root"}},"limit":{{"type":"integer","minimum":0,"#,
            r#""maximum":1000,"default":100}},"ratio":{{"type":"number","exclusiveMaximum":0.75}},"recursive":{{"type":"boolean","default":false}},"tags":"#,
            r#"{{"type":"array","items":{{"type":"string","enum":["a","b","c","d"]}}}}}},"required":["path"],"additionalProperties":false}},"#,
            r#""annotations":{{"readOnlyHint":true,"openWorldHint":false}}}}"#
        ),
        n = n,
        m = n / 2,
        tag = tag
    )
}
