use super::fixture::{HOSTILE, drift, finding, hostile, report};
use crate::judge::{Report, Severity, Verdict};
use crate::ledger::Unwatched;
use crate::show::github::{MAX_SUMMARY, annotations, summary, unwatched};

/// The commands that the runner would carry out, as `ActionCommand.cs` reads a line: kind, title, data.
fn commands(log: &str) -> Vec<(String, String, String)> {
    let decoded = |text: &str| text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%");
    let mut found = Vec::new();
    // .NET's reader ends a line at a lone carriage return too.
    for line in log.split(['\n', '\r']) {
        let Some(rest) = line.trim_start().strip_prefix("::") else {
            assert!(!line.contains("##["), "an old command: {line}");
            continue;
        };
        let (info, data) = rest.split_once("::").unwrap();
        let (kind, properties) = info.split_once(' ').unwrap();
        let properties: Vec<&str> = properties.split(',').collect();
        let [title] = properties[..] else { panic!("{line}") };
        let title = title.strip_prefix("title=").unwrap().replace("%2C", ",").replace("%3A", ":");
        found.push((kind.to_owned(), decoded(&title), decoded(data)));
    }
    found
}

#[test]
fn an_annotation_for_each_finding_that_weighs_something() {
    let mut noisy =
        report("noisy", vec![finding("stdout.crlf", Severity::Info, "lines end in CRLF"), finding("stdout.noise", Severity::Fail, "100% text")]);
    noisy.findings.push(finding("latency.slow", Severity::Warn, "slow"));
    let log =
        annotations(&[report("sound", vec![]), noisy, report("held", vec![finding("peer.second_instance", Severity::Unknown, "a copy lives")])]);
    let found = commands(&log);
    let heads: Vec<(&str, &str)> = found.iter().map(|(kind, title, _)| (kind.as_str(), title.as_str())).collect();
    assert_eq!(heads, [("error", "noisy: stdout.noise"), ("error", "held: peer.second_instance"), ("warning", "noisy: latency.slow")]);
    assert!(found[0].2.starts_with("100% text: secret-evidence\nWhat to do: Write logs"), "{:?}", found[0]);
    assert!(log.contains("\nPASS  sound\n") && log.ends_with("3 servers: 1 pass, 1 unknown, 1 fail\n"), "{log}");
}

#[test]
fn a_server_that_was_never_launched_is_an_error_too() {
    let never = Report { verdict: Verdict::Unknown, ..report("never", vec![]) };
    assert_eq!(commands(&annotations(&[never])).len(), 1);
}

#[test]
fn no_more_than_are_shown() {
    let many: Vec<Report> = (0..8)
        .map(|n| report(&format!("s{n}"), vec![finding("stdout.noise", Severity::Fail, "first"), finding("rpc.malformed", Severity::Fail, "second")]))
        .collect();
    let found = commands(&annotations(&many));
    assert_eq!(found.len(), 10);
    assert!(found[..8].iter().all(|(_, title, _)| title.ends_with("stdout.noise")), "each server's first before any server's second");
    assert!(found[9].2.contains("and 7 more"), "{:?}", found[9]);
    let ten: Vec<Report> = many.iter().take(5).cloned().collect();
    assert!(commands(&annotations(&ten)).iter().all(|(_, _, data)| !data.contains("more of this kind")));
}

#[test]
fn no_line_of_a_servers_is_a_command() {
    let log = annotations(&[hostile()]);
    let kinds: Vec<String> = commands(&log).into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(kinds, ["error", "error"], "{log}");
    // What was `%0A` in a server's text is not a newline after decoding.
    assert!(commands(&log).iter().any(|(_, _, data)| data.contains("%0A::notice::z")), "{log}");
    assert!(!log.contains('\x1b') && !log.contains('\r'), "{log:?}");
}

#[test]
fn what_changed_is_told_where_it_belongs() {
    let findings = vec![finding("drift.added", Severity::Warn, "new"), finding("drift.changed", Severity::Fail, "changed")];
    let changed = Report { drift: drift(30), ..report("s", findings) };
    let found = commands(&annotations(std::slice::from_ref(&changed)));
    let [(_, _, changes), (_, _, new)] = &found[..] else { panic!("{found:?}") };
    assert!(changes.contains("\n! tool99 /inputSchema/required/0: it is required now (breaking): nothing → \"name\"\n"), "{changes}");
    assert!(changes.contains("\nand 11 more\n") && !changes.contains("fresh"), "{changes}");
    assert!(new.contains("\n+ fresh\n") && !new.contains("tool0"), "{new}");
    let page = summary(&[changed], &[], MAX_SUMMARY);
    assert!(page.contains("\n```diff\n- gone\n! tool99 ") && page.contains("\nand 13 more\n```\n"), "{page}");
}

#[test]
fn the_summary_is_a_table_the_worst_first() {
    let reports = [report("sound", vec![]), report("noisy", vec![finding("stdout.noise", Severity::Fail, "text")])];
    let page = summary(&reports, &[], MAX_SUMMARY);
    let rows: Vec<&str> = page.lines().filter(|l| l.starts_with("| ")).collect();
    assert_eq!(rows[0], "| server | verdict | why | answered after | tools |");
    assert_eq!(rows[1], "| noisy | ❌ fail | stdout&#46;noise&#58; text | 50 ms | 1 |");
    assert_eq!(rows[2], "| sound | ✅ pass |  | 50 ms | 1 |");
    assert!(page.starts_with("### stdiowatch: 2 servers: 1 pass, 1 fail\n") && page.contains("#### noisy"), "{page}");
}

#[test]
fn the_summary_holds_no_markup_of_a_servers() {
    let page = summary(&[hostile()], &[], MAX_SUMMARY);
    let (head, rest) = page.split_once("<details>").unwrap();
    let fences: Vec<&str> = head.lines().filter(|l| l.trim_start().starts_with("```")).collect();
    assert_eq!(fences, ["```diff", "```"], "{page}");
    let outside: String = head.split("```").step_by(2).collect();
    assert!(!outside.contains('<') && !outside.contains("[["), "{outside}");
    let row = head.lines().find(|l| l.starts_with("| evil")).unwrap();
    assert_eq!(row.matches('|').count(), 6, "{row}");
    // All of stderr is an indented block, from which nothing breaks out.
    let body = rest.split_once("</summary>\n\n").unwrap().1.rsplit_once("\n\n</details>\n").unwrap().0;
    assert!(body.lines().count() >= 4 && body.lines().all(|l| l.starts_with("    ")), "{body}");
}

#[test]
fn the_summary_is_bounded() {
    let long = "x".repeat(1500);
    let many: Vec<Report> = (0..1000).map(|n| report(&format!("s{n}"), vec![finding("stdout.noise", Severity::Fail, &long)])).collect();
    let page = summary(&many, &[], MAX_SUMMARY);
    assert!(page.len() <= MAX_SUMMARY && page.len() > MAX_SUMMARY / 2, "{}", page.len());
    assert!(page.ends_with("see `--format json`.*\n"));
    for room in 0..2000 {
        assert!(summary(&many[..3], &[], room).len() <= room);
    }
}

#[test]
fn entries_that_are_not_watched_are_annotated_where_they_stand() {
    let entry =
        |name: &str, broken| Unwatched { name: name.to_owned(), file: "a,b:c.json".to_owned(), line: 3, column: 5, why: HOSTILE.to_owned(), broken };
    let log = unwatched(&[entry("far", false), entry("wrong", true)]);
    assert!(log.starts_with("::error file=a%2Cb%3Ac.json,line=3,col=5,title=wrong is broken::\\n"), "{log}");
    assert!(log.contains("\n::notice file=a%2Cb%3Ac.json,line=3,col=5,title=far is not watched::") && log.lines().count() == 2, "{log}");
    let page = summary(&[report("sound", vec![])], &[entry("far", false), entry("wrong", true)], MAX_SUMMARY);
    assert!(page.contains("| wrong | ❌ broken entry | a,b&#58;c&#46;json&#58;3&#58;5&#58; ") && !page.contains("far"), "{page}");
}
