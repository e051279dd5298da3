use std::time::Duration;

use super::fixture::*;
use super::parser::parse;
use crate::probe::{Input, Plan, Recording, Swept, Tape, Usage};
use crate::show::exposition::Format;
use crate::show::on_demand::{Came, ON_DEMAND_METRICS, debug, series};
use crate::words::At;

#[test]
fn one_server_is_answered_with_what_came_of_asking() {
    let waited = Duration::from_millis(9500);
    for (server, came, success, duration, word) in [
        (passing("s"), Came::Probed, 1.0, 0.095, "probed"),
        (warning("s"), Came::Again, 1.0, 0.095, "again"),
        (failing("s"), Came::Probed, 0.0, 0.095, "probed"),
        (passing("s"), Came::Late { waited }, 0.0, 9.5, "late"),
        (passing("s"), Came::Held, 0.0, 0.0, "held"),
        (unprobed("s"), Came::Late { waited }, 0.0, 9.5, "late"),
    ] {
        for format in [Format::Text, Format::OpenMetrics] {
            let parsed = parse(&series(&server, came, at(61), format), format);
            assert_eq!((parsed.value("probe_success", &[]), parsed.value("probe_duration_seconds", &[])), (success, duration), "{came:?}");
            let set: Vec<_> = parsed.all("stdiowatch_on_demand").filter(|(_, v)| *v == 1.0).map(|(labels, _)| labels["answer"].as_str()).collect();
            assert_eq!((set, parsed.all("stdiowatch_on_demand").count()), (vec![word], 4));
            assert!(parsed.series.keys().all(|(name, labels)| {
                let own = ON_DEMAND_METRICS.iter().find(|m| m.name == name);
                own.map_or(labels.get("server").is_some_and(|s| s == "s"), |m| labels.keys().all(|l| m.labels.contains(&l.as_str())))
            }));
            assert_eq!(parsed.value("stdiowatch_probes_total", &["server=s"]), server.probes as f64);
        }
    }
}

#[test]
fn a_transcript_is_read_line_by_line_and_escapes_what_is_hostile() {
    let mut tape = Tape::new(Default::default());
    let ms = |ms| At::after(Duration::from_millis(ms));
    tape.input(ms(2), &Input::Spawned);
    tape.input(ms(3), &Input::Stdout(b"{\"a\":\"\x1b[2J\"}\none\n"));
    tape.input(ms(4), &Input::Stderr(b"\xff\xfe\n"));
    tape.input(ms(5), &Input::StdoutClosed);
    tape.input(ms(6), &Input::Swept(Swept::default(), Usage::default()));
    let recording = Recording::new("s".to_owned(), String::new(), Plan::new(), Default::default(), tape);
    let text = debug(&failing("s"), Came::Probed, Some(&recording), at(61));
    let (transcript, rest) = text.split_once("\nReport:\n\n").unwrap();
    assert_eq!(
        transcript,
        "Transcript of the probe:\n\n    0.003 s  ← {\"a\":\"\\x1b[2J\"}\n    0.003 s  ← one\n    0.004 s  stderr: fffe0a (no UTF-8, 3 bytes in all)\n    \
         0.005 s  stdout ended\n    0.006 s  cleared away\n"
    );
    assert!(rest.starts_with("FAIL") && rest.contains("\nprobe_success 0\n"), "{rest}");
    assert!(
        debug(&unprobed("s"), Came::Held, None, at(0))
            .starts_with("Transcript of the probe:\n\nnone was recorded: held\n\nReport:\n\nnot probed yet\n")
    );
}
