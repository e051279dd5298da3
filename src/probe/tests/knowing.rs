//! What a probe knows of the one before it: lists that are the same bytes are not read again, and nobody
//! can tell.

use std::sync::Arc;

use serde_json::{Value, json};

use super::world::*;
use crate::probe::*;
use crate::protocol::Era;
use crate::words::Redactor;

/// One probe of a legacy server that answers `tools/list` with what `list` makes of its request.
fn probe(pages: &Arc<Pages>, change: impl FnOnce(&mut Plan), list: impl Fn(&Value) -> String + Clone + 'static) -> Observation {
    let mut plan = Plan { era: EraChoice::Fixed(Era::Legacy), list_twice: false, pages: Arc::clone(pages), ..Plan::new() };
    change(&mut plan);
    let mut launch = move || -> Box<dyn Server> {
        let list = list.clone();
        Box::new(sound(move |line: &Value, later: &mut Later| {
            let is_list = line["method"] == "tools/list";
            if is_list {
                later.say(1, list(line));
            }
            is_list
        }))
    };
    World::new(plan, &mut launch).run()
}

fn tools(line: &Value) -> String {
    format!("{}\n", result(line, json!({ "tools": [tool("a"), tool("b"), { "name": "flawed", "inputSchema": { "type": "objekt" } }, 7] })))
}

fn pages(observation: &Observation) -> Arc<Pages> {
    Arc::clone(&observation.judged().unwrap().pages)
}

/// How many pages were known; and everything that was seen, but for that.
fn told(mut observation: Observation) -> (usize, String) {
    let known = pages(&observation).recalled;
    observation.launches.iter_mut().for_each(|launch| launch.pages = Arc::default());
    (known, format!("{observation:#?}"))
}

#[test]
fn the_same_bytes_are_known_again_and_say_the_same() {
    let none = Arc::default();
    let first = probe(&none, |_| {}, tools);
    let known = pages(&first);
    let (recalled, anew) = told(first);
    assert!(recalled == 0 && anew.contains("DeadRef") | anew.contains("Invalid") && anew.contains("tools[3]"), "its flaws are seen: {anew}");
    let second = probe(&known, |_| {}, tools);
    let handed_on = pages(&second);
    assert_eq!(told(second), (1, anew.clone()));
    assert_eq!(told(probe(&handed_on, |_| {}, tools)), (1, anew), "and again");
}

#[test]
fn what_is_the_same_is_held_once() {
    let first = probe(&Arc::default(), |_| {}, tools);
    // A second listing in one session: other ids, so other lines, and the same tools.
    let second = probe(&pages(&first), |plan| plan.list_twice = true, tools);
    assert_eq!(pages(&second).recalled, 1);
    let items = |observation: &Observation| observation.judged().unwrap().lists[0].items.clone();
    for (one, other) in items(&first).iter().zip(&items(&second)) {
        assert!(Arc::ptr_eq(&one.canonical, &other.canonical));
    }
    // Both listings are known next time.
    assert_eq!(pages(&probe(&pages(&second), |plan| plan.list_twice = true, tools)).recalled, 2);
}

#[test]
fn nothing_is_known_where_anything_is_different() {
    let known = pages(&probe(&Arc::default(), |_| {}, tools));
    let unknown = |change: fn(&mut Plan), list: fn(&Value) -> String| {
        let (recalled, seen) = told(probe(&known, change, list));
        assert_eq!(recalled, 0);
        assert_eq!(seen, told(probe(&Arc::default(), change, list)).1);
    };
    unknown(|_| {}, |line| tools(line).replace("\"d\"", "\"e\""));
    unknown(|_| {}, |line| tools(line).replace('\n', " \n"));
    unknown(|_| {}, |line| tools(line).replace('\n', "\r\n"));
    unknown(|_| {}, |line| format!("x{}", tools(line)));
    // The same bytes, where they are no answer: the id is not the one that was asked with.
    unknown(|plan| plan.era = EraChoice::Auto { remembered: None }, |line| tools(&json!({ "id": 2, "method": line["method"] })));
    // Other secrets are masked.
    unknown(|plan| plan.redactor = Arc::new(Redactor::new([b"flawed".as_slice()])), tools);
}

#[test]
fn a_line_with_which_anything_is_wrong_is_not_kept() {
    let nothing_kept = |list: fn(&Value) -> String| {
        let first = probe(&Arc::default(), |_| {}, list);
        assert!(first.judged().unwrap().lists[0].items.len() > 1, "it is read all the same");
        assert!(pages(&first).is_empty());
    };
    nothing_kept(|line| tools(line).replace('\n', "\r\n"));
    nothing_kept(|line| format!("\u{feff}{}", tools(line)));
    nothing_kept(|line| format!("x{}", tools(line)));
    nothing_kept(|line| format!("{}x\n", tools(line).trim_end()));
    nothing_kept(|line| tools(line).replace("\"name\":\"a\"", "\"name\":\"a\",\"name\":\"a\""));
    nothing_kept(|line| tools(line).replace("\"d\"", "\"\\ud800\""));
    nothing_kept(|line| tools(line).replace("\"d\"", "NaN"));
    nothing_kept(|line| tools(line).replace("\"2.0\"", "\"1.0\""));
    nothing_kept(|line| tools(line).replace("{\"id\"", "{\"took\":1,\"id\""));
    nothing_kept(|line| tools(line).replace("\"id\":2", "\"id\":\"2\""));
    nothing_kept(|line| tools(line).replace("{\"tools\"", "{\n\"tools\""));
}

#[test]
fn a_list_that_is_never_the_same_is_called_so_by_who_knows_it() {
    // The first listing of each probe is known, and the second one differs from it.
    let list = |line: &Value| format!("{}\n", result(line, json!({ "tools": [tool(&format!("t{}", line["id"]))] })));
    let first = probe(&Arc::default(), |plan| plan.list_twice = true, list);
    let known = pages(&first);
    let (_, anew) = told(first);
    assert!(anew.contains("Volatile"));
    let second = probe(&known, |plan| plan.list_twice = true, list);
    assert_eq!(told(second), (2, anew));
}

#[test]
fn what_a_page_says_by_null_is_known_with_it() {
    let list = |line: &Value| tools(line).replace("{\"tools\"", "{\"nextCursor\":null,\"tools\"");
    let first = probe(&Arc::default(), |_| {}, list);
    let known = pages(&first);
    let (_, anew) = told(first);
    assert!(anew.contains("NullCursor"));
    assert_eq!(told(probe(&known, |_| {}, list)), (1, anew));
}

#[test]
fn what_is_kept_is_bounded() {
    let huge = |line: &Value| {
        let text = "x".repeat(1 << 20);
        let tools: Vec<Value> = (0..9).map(|n| json!({ "name": n.to_string(), "description": text, "inputSchema": { "type": "object" } })).collect();
        format!("{}\n", result(line, json!({ "tools": tools })))
    };
    let first = probe(&Arc::default(), |_| {}, huge);
    assert_eq!(first.judged().unwrap().lists[0].items.len(), 7);
    assert!(pages(&first).is_empty());
}
