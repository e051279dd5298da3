//! The machine against servers of every manner, each in virtual time.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::world::*;
use crate::probe::*;
use crate::protocol::Era;
use crate::protocol::mcp::ListKind;
use crate::words::At;

fn probe(plan: Plan, mut launch: impl FnMut() -> Box<dyn Server>) -> Observation {
    World::new(plan, &mut launch).run()
}

fn plain(hook: fn(&Value, &mut Later) -> bool) -> Observation {
    probe(Plan::new(), || Box::new(sound(hook)))
}

fn is(line: &Value, method: &str) -> bool {
    line["method"] == method
}

/// The names of what was noticed on the judged launch.
fn seen(observation: &Observation) -> Vec<String> {
    let launch = observation.judged().unwrap();
    launch.seen.iter().map(|s| format!("{:?}", s.what).split([' ', '(', '{']).next().unwrap_or_default().to_owned()).collect()
}

fn tools(observation: &Observation) -> Option<usize> {
    let lists = &observation.judged().unwrap().lists;
    lists.iter().find(|l| l.kind == ListKind::Tools && !l.unknown).map(|l| l.items.len())
}

fn ended_by(observation: &Observation) -> EndedBy {
    observation.judged().unwrap().end.as_ref().unwrap().by
}

#[test]
fn a_legacy_server_takes_two_launches_until_its_era_is_known() {
    let o = plain(|_, _| false);
    assert_eq!((o.launches.len(), o.judged, tools(&o)), (2, 1, Some(2)));
    assert!(seen(&o).is_empty());
    let launch = o.judged().unwrap();
    assert_eq!((launch.opening, launch.version.as_deref()), (Era::Legacy, Some("2025-11-25")));
    assert_eq!(launch.first_reply.unwrap() - launch.started, ms(3));
    assert_eq!(ended_by(&o), EndedBy::Eof);

    let known = Plan { era: EraChoice::Auto { remembered: Some(Era::Legacy) }, ..Plan::new() };
    assert_eq!(probe(known, || Box::new(sound(|_: &Value, _: &mut Later| false))).launches.len(), 1);
}

#[test]
fn a_modern_server_takes_one() {
    let o = probe(Plan::new(), || Box::new(Modern(|_: &Value, _: &mut Later| false)));
    assert_eq!((o.launches.len(), tools(&o), o.judged().unwrap().version.as_deref()), (1, Some(1), Some("2026-07-28")));
    assert!(seen(&o).is_empty());
}

#[test]
fn the_order_of_a_legacy_session() {
    let plan = Plan { era: EraChoice::Fixed(Era::Legacy), list_twice: false, ..Plan::new() };
    let mut launch = || -> Box<dyn Server> { Box::new(sound(|_: &Value, _: &mut Later| false)) };
    let (_, trace) = World::new(plan, &mut launch).run_traced();
    assert_eq!(
        trace,
        ["0.000 s Spawn", "0.000 s initialize", "0.003 s notifications/initialized", "0.003 s tools/list", "0.006 s CloseStdin", "0.011 s Sweep"]
    );
}

#[test]
fn every_refusal_of_discover_leads_to_initialize() {
    for code in [-32601, -32602, -32600, -32001, 0, -32603] {
        let o = probe(Plan::new(), move || {
            Box::new(sound(move |line: &Value, later: &mut Later| {
                let refuse = is(line, "server/discover");
                if refuse {
                    later.send(1, &error(line, code));
                }
                refuse
            }))
        });
        assert_eq!((o.launches.len(), tools(&o), seen(&o)), (2, Some(2), vec![]), "{code}");
    }
    let exits = plain(|line, later| {
        later.after(ms(1), if is(line, "server/discover") { Act::Exit(1) } else { return false });
        true
    });
    assert_eq!((exits.launches.len(), tools(&exits), seen(&exits)), (2, Some(2), vec![]));
    let silent = plain(|line, _| is(line, "server/discover"));
    assert_eq!((silent.launches.len(), tools(&silent), seen(&silent)), (2, Some(2), vec![]));
    assert!(silent.total > Times::default().discovery);
    let anything = plain(|line, later| {
        let discover = is(line, "server/discover");
        if discover {
            later.send(1, &result(line, json!({})));
        }
        discover
    });
    assert_eq!((anything.launches.len(), tools(&anything)), (2, Some(2)));
}

#[test]
fn a_slow_modern_server_is_not_taken_for_a_dead_legacy_one() {
    // It needs longer than the wait for discover, and refuses initialize by naming its versions.
    let o = probe(Plan::new(), || {
        Box::new(Modern(|line: &Value, later: &mut Later| {
            if is(line, "server/discover") {
                later.send(12_000, &result(line, discover_result()));
                return true;
            }
            false
        }))
    });
    assert_eq!((o.launches.len(), tools(&o)), (3, Some(1)));
    assert_eq!(o.judged().unwrap().first_reply.unwrap() - o.judged().unwrap().started, ms(12_000));
}

#[test]
fn an_answer_that_comes_while_leaving_tells_the_era() {
    struct Installing;
    impl Server for Installing {
        fn line(&mut self, line: &Value, later: &mut Later) {
            let delay = if is(line, "server/discover") { 40_000 } else { 5 };
            later.send(delay, &if is(line, "server/discover") { result(line, discover_result()) } else { error(line, -32601) });
        }
        fn eof(&mut self, later: &mut Later) {
            // Goes on installing, starts the server, and only then is there somebody to see the end.
            later.after(ms(40_000), Act::Exit(0));
        }
    }
    let mut launches = 0;
    let mut launch = || -> Box<dyn Server> {
        launches += 1;
        if launches == 1 { Box::new(Installing) } else { Box::new(Modern(|_: &Value, _: &mut Later| false)) }
    };
    let plan = Plan { fetches: Fetches::Package, ..Plan::new() };
    let o = World::new(plan, &mut launch).run();
    assert_eq!((o.launches.len(), o.judged().unwrap().opening, tools(&o)), (2, Era::Modern, Some(1)));
    assert_eq!(o.launches[0].end.as_ref().unwrap().by, EndedBy::Eof, "the install was not killed");
}

#[test]
fn our_own_trouble_in_the_second_launch_is_not_blamed_on_a_server_of_another_era_now() {
    let plan = Plan { era: EraChoice::Auto { remembered: Some(Era::Modern) }, ..Plan::new() };
    let mut count = 0;
    let mut launch = || -> Box<dyn Server> {
        count += 1;
        if count == 1 { Box::new(sound(|_: &Value, _: &mut Later| false)) } else { Box::new(NoRoom) }
    };
    let seen = World::new(plan, &mut launch).run();
    assert_eq!(seen.launches.len(), 2);
    assert!(matches!(seen.judged().unwrap().failure, Some(LaunchError::Resources { .. })), "{seen:#?}");
}

struct NoRoom;

impl Server for NoRoom {
    fn line(&mut self, _: &Value, _: &mut Later) {}
    fn refuses_to_start(&self) -> Option<LaunchError> {
        Some(LaunchError::Resources { error: "EMFILE".to_owned() })
    }
}

#[test]
fn a_remembered_era_is_looked_for_again_when_it_is_refused() {
    let legacy = Plan { era: EraChoice::Auto { remembered: Some(Era::Legacy) }, ..Plan::new() };
    let o = probe(legacy, || Box::new(Modern(|_: &Value, _: &mut Later| false)));
    assert_eq!((o.launches.len(), o.judged().unwrap().opening, tools(&o)), (2, Era::Modern, Some(1)));
    let modern = Plan { era: EraChoice::Auto { remembered: Some(Era::Modern) }, ..Plan::new() };
    let o = probe(modern.clone(), || Box::new(sound(|_: &Value, _: &mut Later| false)));
    assert_eq!((o.launches.len(), o.judged().unwrap().opening, tools(&o)), (2, Era::Legacy, Some(2)));
    // One that is silent is judged as what it was, with all of the time it may take.
    let o = probe(modern, || Box::new(sound(|_: &Value, _: &mut Later| true)));
    assert_eq!((o.launches.len(), seen(&o)), (1, vec!["Timeout".to_owned()]));
    assert!(o.total >= Times::default().startup);
}

#[test]
fn a_fixed_era_is_the_only_one() {
    let o = probe(Plan { era: EraChoice::Fixed(Era::Modern), ..Plan::new() }, || Box::new(sound(|_: &Value, _: &mut Later| false)));
    assert_eq!((o.launches.len(), seen(&o)), (1, vec!["Refused".to_owned()]));
}

#[test]
fn waits_end() {
    let mute = plain(|_, _| true);
    assert_eq!(seen(&mute), ["Timeout"]);
    let expected = Times::default().discovery + Times::default().startup;
    assert!(mute.total >= expected && mute.total < expected + ms(100), "{:?}", mute.total);
    let hangs = plain(|line, _| is(line, "tools/list"));
    assert_eq!(seen(&hangs), ["Timeout"]);
    assert_eq!(tools(&hangs), None);
}

#[test]
fn the_budget_bounds_everything() {
    struct Stubborn;
    impl Server for Stubborn {
        fn line(&mut self, _: &Value, _: &mut Later) {}
        fn eof(&mut self, _: &mut Later) {}
        fn term(&mut self, _: &mut Later) {}
    }
    for total in [1, 7, 20, 60] {
        let times = Times { total: Duration::from_secs(total), ..Times::default() };
        let o = probe(Plan { times, ..Plan::new() }, || Box::new(Stubborn));
        assert!(o.total <= times.total, "{total} s: {:?}", o.total);
        assert_eq!(ended_by(&o), EndedBy::Sigkill);
    }
}

#[test]
fn exits_are_told_from_silence() {
    let at_once = plain(|line, later| {
        later.after(ms(0), Act::Exit(3));
        line.is_object()
    });
    assert_eq!((seen(&at_once), ended_by(&at_once)), (vec!["Exited".to_owned()], EndedBy::Itself));
    let midway = plain(|line, later| {
        let list = is(line, "tools/list");
        if list {
            later.after(ms(0), Act::Crash(11));
        }
        list
    });
    let What::Exited { exit: Exit::Signal(11), after_reply: true, held: false, .. } = midway.judged().unwrap().seen[0].what else {
        panic!("{:?}", midway.judged().unwrap().seen)
    };
    let closes = plain(|line, later| {
        let init = is(line, "initialize");
        if init {
            later.after(ms(1), Act::CloseStdout);
        }
        init
    });
    assert_eq!(seen(&closes), ["StdoutClosed"]);
    let deaf = plain(|line, later| {
        if is(line, "initialize") {
            later.after(ms(0), Act::CloseStdin);
        }
        false
    });
    assert_eq!(seen(&deaf), ["StdinClosed"]);
}

#[test]
fn a_detached_server_is_listened_to_after_its_leader_has_gone() {
    struct Detached(bool);
    impl Server for Detached {
        fn start(&mut self, later: &mut Later) {
            later.after(ms(1), Act::Exit(0));
        }
        fn line(&mut self, line: &Value, later: &mut Later) {
            if self.0 && is(line, "initialize") {
                later.send(900, &result(line, initialize_result(&json!({}))));
            } else if is(line, "server/discover") {
                later.send(900, &error(line, -32601));
            }
            later.after(ms(2000), Act::CloseStdout);
        }
        fn leftovers(&self) -> Swept {
            Swept { escaped: vec![leftover(7)], ..Swept::default() }
        }
    }
    let o = probe(Plan::new(), || Box::new(Detached(true)));
    assert_eq!((o.launches.len(), seen(&o), o.judged().unwrap().ready.is_some()), (2, vec!["Detached".to_owned()], true));
    let o = probe(Plan::new(), || Box::new(Detached(false)));
    assert_eq!(seen(&o), ["Exited"]);
}

#[test]
fn the_ladder_is_climbed_one_rung_at_a_time() {
    struct Ends(Option<u64>, Option<u64>);
    impl Server for Ends {
        fn line(&mut self, line: &Value, later: &mut Later) {
            sound(|_: &Value, _: &mut Later| false).line(line, later);
        }
        fn eof(&mut self, later: &mut Later) {
            if let Some(delay) = self.0 {
                later.after(ms(delay), Act::Exit(0));
            }
        }
        fn term(&mut self, later: &mut Later) {
            if let Some(delay) = self.1 {
                later.after(ms(delay), Act::Exit(0));
            }
        }
    }
    for (eof, term, by) in [(Some(4900), None, EndedBy::Eof), (None, Some(10), EndedBy::Sigterm), (None, None, EndedBy::Sigkill)] {
        let o = probe(Plan::new(), || Box::new(Ends(eof, term)));
        assert_eq!((ended_by(&o), tools(&o)), (by, Some(2)));
    }
}

#[test]
fn after_a_signal_stdout_is_not_judged_and_before_it_is() {
    struct Chatty;
    impl Server for Chatty {
        fn line(&mut self, line: &Value, later: &mut Later) {
            sound(|_: &Value, _: &mut Later| false).line(line, later);
        }
        fn eof(&mut self, later: &mut Later) {
            later.say(1, "saving\n");
        }
        fn term(&mut self, later: &mut Later) {
            later.say(1, "bye\n{\"half");
            later.after(ms(2), Act::Exit(0));
        }
    }
    let o = probe(Plan::new(), || Box::new(Chatty));
    assert_eq!(seen(&o), ["Line"]);
    assert!(o.judged().unwrap().seen[0].excerpt.as_str().contains("saving"));
}

#[test]
fn replies_that_wait_for_the_end_of_input_are_seen() {
    struct Unflushed(Vec<Value>);
    impl Server for Unflushed {
        fn line(&mut self, line: &Value, _: &mut Later) {
            self.0.push(error(line, -32601));
        }
        fn eof(&mut self, later: &mut Later) {
            self.0.drain(..).for_each(|reply| later.send(1, &reply));
            later.after(ms(2), Act::Exit(0));
        }
    }
    let o = probe(Plan::new(), || Box::new(Unflushed(Vec::new())));
    assert_eq!(seen(&o), ["Timeout", "ReplyAfterEof"]);
}

#[test]
fn a_server_that_asks_is_answered_at_once() {
    let mut waiting = None;
    let mut hook = move |line: &Value, later: &mut Later| {
        if is(line, "tools/list") {
            waiting = Some(line.clone());
            later.send(1, &json!({ "jsonrpc": "2.0", "id": "r1", "method": "roots/list" }));
            later.send(1, &json!({ "jsonrpc": "2.0", "id": 0, "method": "ping" }));
            later.send(1, &json!({ "jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {} }));
            return true;
        }
        if line["id"] == 7
            && line["error"]["code"] == -32601
            && let Some(list) = waiting.take()
        {
            later.send(1, &result(&list, json!({ "tools": [tool("a")] })));
        }
        if line["id"] == "r1" || line["id"] == 0 {
            assert!(line["result"]["roots"].is_array() || line["id"] == 0 && line["result"].is_object());
        }
        line.get("method").is_none()
    };
    let plan = Plan { era: EraChoice::Fixed(Era::Legacy), list_twice: false, ..Plan::new() };
    let mut server = Some(sound(move |line: &Value, later: &mut Later| hook(line, later)));
    let o = probe(plan, || Box::new(server.take().unwrap()));
    assert_eq!((tools(&o), seen(&o)), (Some(1), vec![]));

    let modern = probe(Plan::new(), || {
        Box::new(Modern(|line: &Value, later: &mut Later| {
            if is(line, "tools/list") {
                later.send(1, &json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" }));
            }
            assert!(line.get("method").is_some(), "a modern client never replies");
            false
        }))
    });
    assert_eq!(seen(&modern)[0], "ServerRequest");
}

#[test]
fn ids_are_compared_with_their_type() {
    let text = plain(|line, later| {
        let init = is(line, "initialize");
        if init {
            let mut reply = result(line, initialize_result(&json!({ "tools": {} })));
            reply["id"] = json!(line["id"].to_string());
            later.send(1, &reply);
        }
        init
    });
    assert_eq!((seen(&text), tools(&text)), (vec!["IdMismatch".to_owned()], Some(2)), "it goes on all the same");
    let strange = plain(|line, later| {
        if is(line, "tools/list") {
            later.send(1, &json!({ "jsonrpc": "2.0", "id": 999, "result": {} }));
            later.send(2, &result(line, json!({ "tools": [tool("a")] })));
            later.send(3, &result(line, json!({ "tools": [tool("b")] })));
        }
        is(line, "tools/list")
    });
    assert_eq!(tools(&strange), Some(1));
    assert!(seen(&strange).starts_with(&["IdMismatch".to_owned(), "DuplicateReply".to_owned()]), "{:?}", seen(&strange));
    let to_notification = plain(|line, later| {
        let note = line.get("id").is_none();
        if note {
            later.send(1, &json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32601, "message": "no" } }));
        }
        note
    });
    assert_eq!((seen(&to_notification), tools(&to_notification)), (vec!["ReplyToNotification".to_owned()], Some(2)));
}

#[test]
fn our_own_lines_are_no_replies() {
    struct Cat;
    impl Server for Cat {
        fn line(&mut self, line: &Value, later: &mut Later) {
            later.send(0, line);
        }
    }
    let o = probe(Plan::new(), || Box::new(Cat));
    assert_eq!(seen(&o), ["Echo", "Timeout"]);
}

#[test]
fn lists_are_read_to_their_end() {
    let paged = |next: fn(&str) -> Option<&'static str>| {
        probe(Plan::new(), move || {
            Box::new(sound(move |line: &Value, later: &mut Later| {
                let list = is(line, "tools/list");
                if list {
                    let cursor = line["params"]["cursor"].as_str();
                    let mut page = json!({ "tools": [tool(cursor.unwrap_or("first"))] });
                    if let Some(next) = next(cursor.unwrap_or("first")) {
                        page["nextCursor"] = json!(next);
                    }
                    later.send(1, &result(line, page));
                }
                list
            }))
        })
    };
    let three = paged(|cursor| match cursor {
        "first" => Some(""),
        "" => Some("last"),
        _ => None,
    });
    assert_eq!((tools(&three), seen(&three)), (Some(3), vec![]));
    let stuck = paged(|_| Some("8"));
    assert_eq!((tools(&stuck), seen(&stuck)), (Some(2), vec!["CursorLoop".to_owned()]));
}

/// What is kept of the lists is bounded: all pages together, and one page alone.
#[test]
fn lists_without_end_are_cut() {
    let lists = |per_page: usize, length: usize| {
        let plan = Plan { list_twice: false, ..Plan::new() };
        probe(plan, move || {
            let mut page = 0;
            Box::new(sound(move |line: &Value, later: &mut Later| {
                let list = is(line, "tools/list");
                if list {
                    page += 1;
                    let tools = (0..per_page)
                        .map(|n| json!({ "name": format!("{page}.{n}"), "description": "x".repeat(length), "inputSchema": { "type": "object" } }));
                    let next = (page < 12).then(|| page.to_string());
                    later.send(1, &result(line, json!({ "tools": tools.collect::<Vec<_>>(), "nextCursor": next })));
                }
                list
            }))
        })
    };
    let whole = lists(1, 100 << 10);
    assert_eq!((tools(&whole), seen(&whole)), (Some(12), vec!["NullCursor".to_owned()]));
    let paged = lists(1, 1 << 20);
    assert_eq!((tools(&paged), seen(&paged)), (Some(7), vec!["Incomplete".to_owned()]));
    let wide = lists(12, 1 << 20);
    assert_eq!((tools(&wide), seen(&wide)), (Some(7), vec!["Incomplete".to_owned()]));
    let many = lists(40_000, 1);
    let kept = tools(&many).unwrap();
    assert!((20_000..35_000).contains(&kept), "{kept}");
    let one = lists(1, 9 << 20);
    assert_eq!((tools(&one), seen(&one)), (Some(0), vec!["Incomplete".to_owned()]));
}

#[test]
fn an_empty_tool_list_is_given_time() {
    fn late(after: usize, changed: bool) -> Observation {
        let plan = Plan { era: EraChoice::Fixed(Era::Legacy), ..Plan::new() };
        let mut asked = 0;
        let mut hook = move |line: &Value, later: &mut Later| {
            let list = is(line, "tools/list");
            if list {
                asked += 1;
                let tools = if asked > after { vec![tool("a")] } else { vec![] };
                later.send(1, &result(line, json!({ "tools": tools })));
                if changed && asked == 1 {
                    later.send(500, &json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                }
            }
            list
        };
        let mut server = Some(sound(move |line: &Value, later: &mut Later| hook(line, later)));
        probe(plan, || Box::new(server.take().unwrap()))
    }
    let waited = late(1, false);
    assert_eq!((tools(&waited), seen(&waited)), (Some(1), vec!["LateTools".to_owned()]));
    assert!(waited.total > ms(2000));
    let told = late(1, true);
    assert_eq!((tools(&told), seen(&told)), (Some(1), vec!["LateTools".to_owned()]));
    assert!(told.total < ms(1000));
    assert_eq!((tools(&late(99, false)), seen(&late(99, false))), (Some(0), vec![]), "no tools is no fault");
}

#[test]
fn what_is_done_twice_is_done_when_there_is_time_for_it() {
    // An empty list is given 2 s, and every list is read twice; none of it may fail a short probe.
    for (total, hangs_at) in [(3_000, 0), (1_000, 0), (1_000, 2)] {
        let times = Times { total: ms(total), ..Times::default() };
        let plan = Plan { era: EraChoice::Fixed(Era::Legacy), times, ..Plan::new() };
        let mut listed = 0;
        let mut hook = move |line: &Value, _: &mut Later| {
            listed += u32::from(is(line, "tools/list"));
            is(line, "tools/list") && listed == hangs_at
        };
        let mut server = Some(sound(move |line: &Value, later: &mut Later| hook(line, later)));
        if hangs_at == 0 {
            server.as_mut().unwrap().tools.clear();
        }
        let o = probe(plan, || Box::new(server.take().unwrap()));
        assert_eq!((seen(&o), tools(&o).is_some()), (vec![], true), "{total} ms");
    }
}

#[test]
fn what_differs_within_one_session_is_volatile() {
    let plan = || Plan { era: EraChoice::Fixed(Era::Legacy), ..Plan::new() };
    let mut n = 0;
    let mut hook = move |line: &Value, later: &mut Later| {
        let list = is(line, "tools/list");
        if list {
            n += 1;
            let mut changing = tool("b");
            changing["description"] = json!(format!("now {n}"));
            later.send(1, &result(line, json!({ "tools": if n == 1 { [tool("a"), changing] } else { [changing, tool("a")] } })));
        }
        list
    };
    let mut server = Some(sound(move |line: &Value, later: &mut Later| hook(line, later)));
    let o = probe(plan(), || Box::new(server.take().unwrap()));
    let What::Volatile { item, pointer, .. } = &o.judged().unwrap().seen[0].what else { panic!("{:?}", seen(&o)) };
    assert_eq!((item.as_str(), pointer.as_str(), seen(&o).len()), ("b", "/description", 1));
}

#[test]
fn a_changed_list_is_read_again_and_not_for_ever() {
    let plan = Plan { era: EraChoice::Fixed(Era::Legacy), ..Plan::new() };
    let o = probe(plan, || {
        Box::new(sound(|line: &Value, later: &mut Later| {
            if is(line, "tools/list") {
                later.send(4, &json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
            }
            false
        }))
    });
    assert_eq!((tools(&o), seen(&o)), (Some(2), vec!["ChangedLoop".to_owned()]));
}

#[test]
fn a_list_that_is_refused_does_not_stop_the_others() {
    let o = probe(Plan::new(), || {
        let mut server = sound(|line: &Value, later: &mut Later| {
            if is(line, "prompts/list") {
                later.send(1, &result(line, json!({ "prompts": [{ "name": "p" }] })));
            }
            is(line, "prompts/list")
        });
        server.capabilities = json!({ "resources": {}, "prompts": {} });
        Box::new(server)
    });
    assert_eq!(seen(&o), ["Refused"], "templates are extra");
    let lists = &o.judged().unwrap().lists;
    assert_eq!(lists.iter().map(|l| (l.kind, l.unknown)).collect::<Vec<_>>(), [(ListKind::Prompts, false), (ListKind::Resources, true)]);
}

#[test]
fn a_canary_call_is_made_when_the_lists_are_read() {
    fn call(result: Option<Value>, insist: bool) -> Observation {
        let call = Call { tool: "a".into(), arguments: r#"{"x":1}"#.into(), contains: Some("yes".into()), equals: vec![], insist };
        let plan = Plan { era: EraChoice::Fixed(Era::Legacy), list_twice: false, call: Some(call), ..Plan::new() };
        probe(plan, move || {
            let result = result.clone();
            let mut server = sound(move |line: &Value, later: &mut Later| {
                let called = is(line, "tools/call");
                if called {
                    assert_eq!(line["params"], json!({ "name": "a", "arguments": { "x": 1 } }));
                    if let Some(r) = &result {
                        later.send(1, &super::world::result(line, r.clone()));
                    }
                }
                called
            });
            server.tools[0]["annotations"] = json!({ "destructiveHint": true });
            Box::new(server)
        })
    }
    let text = |text: &str| Some(json!({ "content": [{ "type": "text", "text": text }] }));
    assert_eq!(seen(&call(text("yes, it works"), true)), Vec::<String>::new());
    assert_eq!(seen(&call(text("no"), true)), ["CallFailed"]);
    assert_eq!(seen(&call(None, true)), ["Timeout"]);
    let refused = call(text("yes"), false);
    assert_eq!((seen(&refused), refused.judged().unwrap().called), (vec!["CallFailed".to_owned()], None));
}

#[test]
fn too_many_lines_end_the_probe() {
    struct Blank;
    impl Server for Blank {
        fn start(&mut self, later: &mut Later) {
            for n in 0..100 {
                later.say(n, vec![b'\n'; 65536]);
            }
        }
        fn line(&mut self, _: &Value, _: &mut Later) {}
    }
    let o = probe(Plan::new(), || Box::new(Blank));
    assert_eq!((o.launches.len(), seen(&o).last().map(String::as_str)), (1, Some("TooManyLines")));
    assert!(o.judged().unwrap().io.stdout_bytes < 17 * 65536);
}

#[test]
fn too_much_output_ends_the_probe() {
    struct Flood;
    impl Server for Flood {
        fn start(&mut self, later: &mut Later) {
            for n in 0..100 {
                later.say(n, vec![b'A'; 65536]);
            }
        }
        fn line(&mut self, _: &Value, _: &mut Later) {}
    }
    let limits = Limits { line: 1 << 20, output: 4 << 20, ..Limits::default() };
    let o = probe(Plan { limits, ..Plan::new() }, || Box::new(Flood));
    assert_eq!((o.launches.len(), seen(&o)), (1, vec!["Line".to_owned(), "OutputLimit".to_owned()]));
    assert_eq!(o.judged().unwrap().io.stdout_bytes, 4 << 20);
}

#[test]
fn a_failed_launch_ends_the_probe() {
    struct Missing;
    impl Server for Missing {
        fn line(&mut self, _: &Value, _: &mut Later) {}
        fn refuses_to_start(&self) -> Option<LaunchError> {
            Some(LaunchError::NotFound { command: "nope".to_owned(), searched: None })
        }
    }
    let o = probe(Plan::new(), || Box::new(Missing));
    assert_eq!((o.launches.len(), o.judged().unwrap().failure.is_some()), (1, true));
}

#[test]
fn a_cancelled_probe_leaves_politely_and_soon() {
    for at in [0, 1, 4, 8, 5000, 10_500] {
        let mut launch =
            || -> Box<dyn Server> { Box::new(sound(|line: &Value, _: &mut Later| is(line, "server/discover") || is(line, "tools/list"))) };
        let mut world = World::new(Plan::new(), &mut launch);
        world.cancel_at = Some(At::after(ms(at)));
        let (o, trace) = world.run_traced();
        assert!(o.cancelled && o.total <= ms(at + 10), "{at}: {:?} {trace:?}", o.total);
    }
}

#[test]
fn only_a_late_end_of_a_wait_for_an_answer_is_ours() {
    for leaving in [false, true] {
        let plan = Plan { era: EraChoice::Fixed(Era::Legacy), ..Plan::new() };
        let mut machine = Machine::new(std::sync::Arc::new(plan), At::START);
        machine.handle(At::START, Input::Spawned);
        if leaving {
            machine.cancel(At::START);
        }
        machine.handle(At::after(ms(34_000)), Input::Overslept(ms(4000)));
        machine.cancel(At::after(ms(34_000)));
        machine.handle(At::after(ms(34_001)), Input::StdoutClosed);
        machine.handle(At::after(ms(34_001)), Input::Exited(Exit::Code(0)));
        machine.handle(At::after(ms(34_001)), Input::Swept(Swept::default(), Usage::default()));
        let expected: &[&str] = if leaving { &[] } else { &["Overslept"] };
        assert_eq!(seen(&machine.into_observation()), expected);
    }
}

#[test]
fn what_is_asked_after_we_did_not_look_has_all_of_its_time() {
    // Each reply takes nine seconds; that to the first request is read when the time for the whole is nearly up, or has been
    // for long.
    for (opening, late) in [(Era::Legacy, 170), (Era::Legacy, 500), (Era::Modern, 170), (Era::Modern, 500)] {
        let remembered = (opening == Era::Legacy).then_some(Era::Legacy);
        let slowly = |line: &Value, later: &mut Later| {
            let reply = match line["method"].as_str() {
                Some("initialize") => result(line, initialize_result(&json!({ "tools": {} }))),
                Some("tools/list") => result(line, json!({ "tools": [tool("a")] })),
                _ => return line.get("id").is_some(),
            };
            later.send(9000, &reply);
            true
        };
        let mut launch = || -> Box<dyn Server> { Box::new(sound(slowly)) };
        let mut world = World::new(Plan { era: EraChoice::Auto { remembered }, ..Plan::new() }, &mut launch);
        assert!(world.settle().is_none());
        world.advance_late(At::after(ms(late * 1000)));
        let (observation, trace) = world.run_traced();
        assert!(seen(&observation).is_empty(), "{opening} {late}: {:?} {trace:#?}", seen(&observation));
        assert!(observation.total < ms((late + 60) * 1000), "{:?}", observation.total);
    }
}

#[test]
fn what_came_while_we_did_not_look_is_heard_again_where_it_is_replayed() {
    let plan = Plan { era: EraChoice::Fixed(Era::Legacy), ..Plan::new() };
    let mut launch = || -> Box<dyn Server> { Box::new(sound(|_: &Value, _: &mut Later| false)) };
    let mut world = World::new(plan.clone(), &mut launch).taped();
    // The reply is there after milliseconds, and read when the time for it has long been up.
    while !world.machine().has_reply() {
        assert!(world.settle().is_none());
        world.advance_late(At::after(ms(40_000)));
    }
    let observation = world.run_traced().0;
    assert!(seen(&observation).is_empty(), "{:?}", seen(&observation));
    let recording = Recording::new("s".to_owned(), String::new(), plan, Peers::default(), world.tape.take().unwrap());
    let lines = recording.to_lines();
    let again = Recording::from_lines(&lines).unwrap().replay();
    assert!(seen(&again).is_empty(), "{:?}", seen(&again));
    // Those of the first format do not say when a wait was over: then it was over in time.
    let first = lines.replacen("\"stdiowatch_recording\":2", "\"stdiowatch_recording\":1", 1);
    let shown = Recording::from_lines(&first).unwrap().replay();
    assert_eq!(seen(&shown), ["Timeout"]);
    assert!(Recording::from_lines(&lines.replacen(":2", ":3", 1)).unwrap_err().to_string().contains("format 2 or an earlier one"));
}

#[test]
fn secrets_do_not_get_into_what_is_kept() {
    struct Leaky;
    impl Server for Leaky {
        fn line(&mut self, _: &Value, later: &mut Later) {
            later.say(1, "token hunter2secret\n");
        }
    }
    let redactor = crate::words::Redactor::new([b"hunter2secret".as_slice()]);
    let o = probe(Plan { redactor: std::sync::Arc::new(redactor), ..Plan::new() }, || Box::new(Leaky));
    assert!(!format!("{o:?}").contains("hunter2"));
}

/// What a report has of the stderr of a server that wrote it like this.
fn stderr_of(reads: &[&[u8]], limit: usize, redactor: crate::words::Redactor) -> String {
    let limits = Limits { stderr_tail: limit, ..Limits::default() };
    let mut machine = Machine::new(Arc::new(Plan { limits, redactor: Arc::new(redactor), ..Plan::new() }), At::START);
    machine.handle(At::START, Input::Spawned);
    reads.iter().for_each(|read| machine.handle(At::START, Input::Stderr(read)));
    machine.cancel(At::START);
    machine.handle(At::START, Input::Exited(Exit::Code(0)));
    machine.handle(At::START, Input::Swept(Swept::default(), Usage::default()));
    machine.into_observation().launches[0].stderr_tail.clone()
}

#[test]
fn the_end_of_stderr_begins_with_a_line_however_it_was_read() {
    let text: Vec<u8> = (0..40).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
    for limit in [10, 50, 100, 149, 200, text.len() - 1, text.len(), 1000] {
        let whole = stderr_of(&[&text], limit, crate::words::Redactor::none());
        assert!(whole.starts_with("line ") && whole.ends_with("line 39\n"), "{limit}: {whole}");
        for n in [1, 7, 90, 250] {
            assert_eq!(stderr_of(&text.chunks(n).collect::<Vec<_>>(), limit, crate::words::Redactor::none()), whole, "{limit} {n}");
        }
    }
}

#[test]
fn no_end_of_a_secret_is_left_at_the_beginning_of_what_is_kept_of_stderr() {
    let secret = "hunter2secret-that-is-longer-than-its-mask";
    for before in 0..60 {
        let text = format!("{}{}", "x".repeat(before), format!("{secret} ").repeat(20));
        let kept = stderr_of(&[text.as_bytes()], 200, crate::words::Redactor::new([secret.as_bytes()]));
        let rest = kept.replace("[redacted]", "").replace(['[', ']', ' '], "");
        assert!(kept.contains("[redacted]") && "redacted".ends_with(&rest), "{before}: {kept}");
    }
}

#[test]
fn a_server_that_took_too_much_is_killed_at_once_and_tried_in_no_other_way() {
    let excess = Excess { of: Taken::Memory, figure: 9, limit: 8, processes: 1 };
    let at = |n| At::after(ms(n));
    let plan = Arc::new(Plan::new());
    let mut machine = Machine::new(Arc::clone(&plan), At::START);
    let mut tape = Tape::new(Arc::clone(&plan.redactor));
    let mut done = Vec::new();
    let inputs = [Input::Spawned, Input::TookTooMuch(excess), Input::Exited(Exit::Signal(9)), Input::Swept(Swept::default(), Usage::default())];
    for (n, input) in (1..).zip(inputs) {
        tape.input(at(n), &input);
        machine.handle(at(n), input);
        done.extend(std::iter::from_fn(|| machine.poll()));
    }
    assert!(matches!(done[..], [Effect::Spawn, Effect::Write(_), Effect::CloseStdin, Effect::Kill, Effect::Sweep]), "{done:?}");
    let recording = Recording::new("s".to_owned(), String::new(), Plan::clone(&plan), Peers::default(), tape);
    let replayed = Recording::from_lines(&recording.to_lines()).unwrap().replay();
    for observation in [machine.into_observation(), replayed] {
        let [launch] = &observation.launches[..] else { panic!("{:?}", observation.launches) };
        assert!(
            matches!(&launch.seen[..], [Seen { what: What::TookTooMuch(seen), phase: Phase::Handshake, .. }] if *seen == excess),
            "{:?}",
            launch.seen
        );
        assert_eq!(launch.end.as_ref().unwrap().by, EndedBy::Sigkill);
    }
}
