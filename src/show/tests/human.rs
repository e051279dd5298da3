use super::fixture::{drift, finding, hostile, report};
use crate::judge::{Report, Severity};
use crate::show::human::{Look, reports};

fn twenty() -> Vec<Report> {
    let mut all = vec![
        report("broken", vec![finding("stdout.noise", Severity::Fail, "a line of text is on stdout")]),
        report("held", vec![finding("peer.second_instance", Severity::Unknown, "a copy lives")]),
    ];
    all.extend((0..17).map(|n| report(&format!("sound{n}"), vec![finding("stdout.crlf", Severity::Info, "lines end in CRLF")])));
    all.push(report("slow", vec![finding("latency.slow", Severity::Warn, "start-up took long")]));
    all
}

#[test]
fn of_many_servers_the_sound_ones_are_a_line_and_the_worst_stands_last() {
    let text = reports(&twenty(), Look::default());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "PASS  sound0  1 tool; answered after 50 ms");
    assert!(lines[..17].iter().all(|l| l.starts_with("PASS  sound")), "{text}");
    let heads: Vec<&str> = lines.iter().filter_map(|l| l.split("  ").next()).filter(|w| ["WARN", "UNKNOWN", "FAIL"].contains(w)).collect();
    assert_eq!(heads, ["WARN", "UNKNOWN", "FAIL"], "{text}");
    assert_eq!(lines.last(), Some(&"20 servers: 17 pass, 1 warn, 1 unknown, 1 fail"));
    assert!(text.contains("  fail: A line of text is on stdout.\n    stdout.noise: secret-evidence\n    What to do: Write logs"), "{text}");
}

#[test]
fn quietly_it_says_only_what_is_wrong() {
    let quiet = Look { quiet: true, ..Look::default() };
    let text = reports(&twenty(), quiet);
    assert!(text.starts_with("WARN  slow") && !text.contains("PASS") && !text.contains("Seen:") && !text.contains("servers:"), "{text}");
    assert_eq!(reports(&[report("sound", vec![])], quiet), "");
}

#[test]
fn one_server_is_told_in_words_for_a_newcomer() {
    let text = reports(&[report("mine", vec![])], Look::default());
    let seen = "  Seen: speaks MCP 2025-11-25 (legacy era); calls itself sample \"x\"\\\\n 1.2.3; offers 1 tool; answered 50 ms after its launch; \
                ended 10 ms after its input was closed; used 12 MiB of memory; 1 launch and 95 ms in all.\n";
    assert_eq!(text, format!("PASS  mine  a client that launched this server now could use it\n\n{seen}"));
}

#[test]
fn what_changed_reads_as_a_difference() {
    let changed = Report { drift: drift(2), ..report("s", vec![finding("drift.changed", Severity::Warn, "3 items changed")]) };
    let text = reports(&[changed], Look::default());
    let wanted = "  Since the schema was accepted:\n    - gone\n    ! tool99 /inputSchema/required/0: it is required now (breaking): nothing → \"name\"\n    \
                  ! tool0 /description: its description is another (description)\n        Echoes [-the-]{+a+} message back\n    ! tool1";
    assert!(text.contains(wanted) && text.contains("    + fresh\n"), "{text}");
    let many = Report { drift: drift(30), ..report("s", vec![]) };
    assert!(reports(&[many], Look::default()).contains("\n    and 13 more\n"));
}

#[test]
fn it_is_wrapped_to_the_terminal() {
    for width in [20, 40, 60, 100] {
        let text = reports(&[hostile()], Look { width: Some(width), ..Look::default() });
        let widest = text.lines().map(textwrap::core::display_width).max().unwrap();
        assert!(widest <= width.max(30), "{widest} > {width}: {text}");
        assert!(!text.contains("\n\n\n"), "{text}");
    }
}

#[test]
fn colours_are_the_only_control_characters() {
    let plain = reports(&[hostile()], Look::default());
    assert!(plain.chars().all(|c| c == '\n' || crate::words::is_printable(c)), "{plain:?}");
    let coloured = reports(&[hostile()], Look { colours: true, ..Look::default() });
    let mut without = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        let (code, after) = after.split_once('m').unwrap();
        assert!(["0", "2", "31", "32", "33", "1;31"].contains(&code), "{code}");
        without.push_str(before);
        rest = after;
    }
    assert_eq!(without + rest, plain);
}

#[test]
fn a_ci_system_that_reads_the_log_finds_no_command_in_it() {
    let text = reports(&[hostile()], Look::default());
    assert!(text.lines().all(|l| !l.trim_start().starts_with("::") && !l.contains("##[")), "{text}");
}
