//! What holds whatever the server does: every probe ends, in time, swept, and what it saw does not
//! depend on how the bytes were cut.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::*;
use crate::probe::*;

/// A server made by chance: what it does at its start, for each line, at end-of-file and at SIGTERM.
#[derive(Clone, Debug)]
struct Random {
    start: Vec<(u64, Part)>,
    lines: Vec<Vec<(u64, Part)>>,
    eof: Vec<(u64, Part)>,
    term: Vec<(u64, Part)>,
    count: usize,
}

#[derive(Clone, Debug)]
enum Part {
    Raw(Vec<u8>),
    /// A reply to the line, or to what stands in for one.
    Reply(Reply),
    CloseStdout,
    CloseStdin,
    Exit(i32),
}

#[derive(Clone, Debug)]
enum Reply {
    Right,
    Empty,
    Error(i64),
    WrongId,
    TextId,
    Twice,
    Page,
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        8 => prop_oneof![
            6 => Just(Reply::Right), 1 => Just(Reply::Empty), 1 => Just(Reply::Error(-32601)), 1 => Just(Reply::Error(-32022)),
            1 => Just(Reply::WrongId), 1 => Just(Reply::TextId), 1 => Just(Reply::Twice), 1 => Just(Reply::Page)
        ].prop_map(Part::Reply),
        2 => prop_oneof![
            Just(b"noise\n".to_vec()), Just(b"{\n".to_vec()), Just(b"}\n".to_vec()), Just(b"\n".to_vec()), Just(b"half".to_vec()),
            Just(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n".to_vec()),
            Just(b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}\n".to_vec()),
            prop::collection::vec(any::<u8>(), 0..300),
        ].prop_map(Part::Raw),
        1 => Just(Part::CloseStdout),
        1 => Just(Part::CloseStdin),
        1 => prop_oneof![Just(0), Just(1)].prop_map(Part::Exit),
    ]
}

fn parts(max: usize) -> impl Strategy<Value = Vec<(u64, Part)>> {
    prop::collection::vec((prop_oneof![Just(0u64), 1..50u64, 50..20_000u64], part()), 0..max)
}

fn random() -> impl Strategy<Value = Random> {
    (parts(2), prop::collection::vec(parts(4), 1..6), parts(3), parts(3)).prop_map(|(start, lines, eof, term)| Random {
        start,
        lines,
        eof,
        term,
        count: 0,
    })
}

impl Random {
    fn act(parts: &[(u64, Part)], line: &Value, later: &mut Later) {
        for (delay, part) in parts {
            match part {
                Part::Raw(bytes) => later.say(*delay, bytes.clone()),
                Part::CloseStdout => later.after(ms(*delay), Act::CloseStdout),
                Part::CloseStdin => later.after(ms(*delay), Act::CloseStdin),
                Part::Exit(code) => later.after(ms(*delay), Act::Exit(*code)),
                Part::Reply(reply) => Random::reply(reply, *delay, line, later),
            }
        }
    }

    fn reply(reply: &Reply, delay: u64, line: &Value, later: &mut Later) {
        let right = || match line["method"].as_str() {
            Some("initialize") => result(line, initialize_result(&json!({ "tools": {}, "prompts": {} }))),
            Some("server/discover") => result(line, discover_result()),
            _ => result(line, json!({ "tools": [tool("a")], "prompts": [] })),
        };
        let mut message = match reply {
            Reply::Right | Reply::WrongId | Reply::TextId | Reply::Twice => right(),
            Reply::Empty => result(line, json!({})),
            Reply::Error(code) => error(line, *code),
            Reply::Page => result(line, json!({ "tools": [tool("a")], "nextCursor": "more" })),
        };
        match reply {
            Reply::WrongId => message["id"] = json!(77),
            Reply::TextId => message["id"] = json!(line["id"].to_string()),
            Reply::Twice => later.send(delay, &message),
            Reply::Right | Reply::Empty | Reply::Error(_) | Reply::Page => {}
        }
        later.send(delay, &message);
    }
}

impl Server for Random {
    fn start(&mut self, later: &mut Later) {
        Random::act(&self.start, &json!({ "id": 1 }), later);
    }
    fn line(&mut self, line: &Value, later: &mut Later) {
        Random::act(&self.lines[self.count.min(self.lines.len() - 1)], line, later);
        self.count += 1;
    }
    fn eof(&mut self, later: &mut Later) {
        Random::act(&self.eof, &json!({ "id": 2 }), later);
    }
    fn term(&mut self, later: &mut Later) {
        Random::act(&self.term, &json!({ "id": 3 }), later);
    }
}

fn run(server: &Random, cut: Cut) -> Observation {
    run_knowing(server, cut, Arc::default())
}

fn run_knowing(server: &Random, cut: Cut, pages: Arc<Pages>) -> Observation {
    let limits = Limits { line: 2000, output: 20_000, ..Limits::default() };
    let mut launch = || -> Box<dyn Server> { Box::new(server.clone()) };
    World::new(Plan { limits, pages, ..Plan::new() }, &mut launch).cut(cut).run()
}

/// What is seen where we look late now and then, in turn by so many milliseconds; and what its recording shows.
fn run_late(server: &Random, late: &[u64], cut: Cut) -> (Observation, Observation) {
    let plan = Plan { limits: Limits { line: 2000, output: 20_000, ..Limits::default() }, ..Plan::new() };
    let mut launch = || -> Box<dyn Server> { Box::new(server.clone()) };
    let mut world = World::new(plan.clone(), &mut launch).cut(cut).taped();
    let mut late = late.iter().cycle();
    let observation = loop {
        if let Some(observation) = world.settle() {
            break observation;
        }
        world.advance_late(world.next() + ms(*late.next().expect("it has no end")));
    };
    let tape = world.tape.take().expect("it is taped");
    let recording = Recording::new("s".to_owned(), String::new(), plan, Peers::default(), tape);
    let replayed = Recording::from_lines(&recording.to_lines()).expect("what was written is read").replay();
    (observation, replayed)
}

/// Everything that was seen.
fn everything(mut observation: Observation) -> String {
    observation.launches.iter_mut().for_each(|launch| launch.pages = Arc::default());
    format!("{observation:#?}")
}

/// As many as `PROPTEST_CASES` says; a run is worth more than most properties' cases.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn every_probe_ends_in_time_and_swept(server in random()) {
        let o = run(&server, Cut::Whole);
        prop_assert!(o.total <= Times::default().total + Duration::from_secs(3), "{:?}", o.total);
        prop_assert!(!o.launches.is_empty() && o.launches.len() <= 3);
        for launch in &o.launches {
            let end = launch.end.as_ref().expect("launched, so ended");
            prop_assert!(end.exit.is_some());
            prop_assert!(launch.seen.iter().all(|s| s.at >= launch.started && s.times >= 1));
        }
        let judged = o.judged().unwrap();
        let explained = !judged.seen.is_empty() || judged.listed.is_some();
        prop_assert!(explained || judged.ready.is_some(), "a handshake that did not come about has a reason");
    }

    #[test]
    fn what_is_seen_does_not_depend_on_how_the_bytes_were_cut(server in random(), n in 1usize..60) {
        let told = |o: &Observation| format!("{:?}", o.launches.iter().map(|l| (&l.seen, &l.lists, l.io, l.end.as_ref().map(|e| e.by))).collect::<Vec<_>>());
        prop_assert_eq!(told(&run(&server, Cut::Whole)), told(&run(&server, Cut::Every(n))));
    }

    #[test]
    fn a_recording_shows_the_same_however_late_we_looked(
        server in random(), late in prop::collection::vec(prop_oneof![3 => Just(0u64), 1 => 0..20_000u64], 1..8), n in 1usize..60
    ) {
        for cut in [Cut::Whole, Cut::Every(n)] {
            let (seen, shown) = run_late(&server, &late, cut);
            prop_assert_eq!(everything(shown), everything(seen));
        }
    }

    #[test]
    fn what_is_seen_does_not_depend_on_what_is_known_of_an_earlier_probe(server in random(), other in random(), n in 1usize..60) {
        let anew = everything(run(&server, Cut::Whole));
        for before in [&server, &other] {
            // Of launches that the server is not judged on too: the more is known, the more could go wrong.
            for launch in run(before, Cut::Whole).launches {
                for cut in [Cut::Whole, Cut::Every(n)] {
                    let knowing = run_knowing(&server, cut, Arc::clone(&launch.pages));
                    prop_assert_eq!(&everything(knowing), &anew);
                }
            }
        }
    }
}
