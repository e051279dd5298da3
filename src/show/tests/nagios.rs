use std::collections::BTreeMap;
use std::time::Duration;

use super::fixture::{drift, finding, hostile, report};
use crate::judge::{Report, Rules, Severity, Verdict};
use crate::ledger::Unwatched;
use crate::probe::{Fetches, Plan};
use crate::show::nagios::{Probed, State, output, unusable};

fn told(reports: &[Report], rules: &Rules) -> String {
    let plan = Plan::new();
    let probed: Vec<Probed<'_>> = reports.iter().map(|report| Probed { report, plan: &plan, rules }).collect();
    output(&probed, &[], false)
}

/// Label, value, unit, warning, critical and least value of each item, as the guidelines write them:
/// `'label'=value[UOM];[warn];[crit];[min];[max]`.
fn data(line: &str) -> BTreeMap<String, (f64, String, String, String)> {
    let (_, mut rest) = line.split_once('|').unwrap();
    assert!(!rest.contains('|'), "{line}");
    let mut found = BTreeMap::new();
    loop {
        rest = rest.trim_start();
        let Some(quoted) = rest.strip_prefix('\'') else { break };
        let end = quoted.match_indices('\'').map(|(at, _)| at).scan(false, |skip, at| {
            let is_doubled = quoted[at + 1..].starts_with('\'');
            let skipped = std::mem::replace(skip, is_doubled && !*skip);
            Some((at, is_doubled, skipped))
        });
        let end = end.filter(|(_, doubled, skipped)| !doubled && !skipped).map(|(at, ..)| at).next().unwrap();
        let label = quoted[..end].replace("''", "'");
        let after = quoted[end + 1..].strip_prefix('=').unwrap();
        let (item, tail) = after.split_once(' ').unwrap_or((after, ""));
        let fields: Vec<&str> = item.split(';').collect();
        let digits = fields[0].find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(fields[0].len());
        let (value, unit) = fields[0].split_at(digits);
        assert!(["", "s", "B"].contains(&unit), "{item}");
        let field = |n: usize| fields.get(n).copied().unwrap_or_default().to_owned();
        assert!(found.insert(label, (value.parse().unwrap(), unit.to_owned(), field(1), field(2))).is_none(), "twice: {item}");
        rest = tail;
    }
    assert!(rest.is_empty(), "{rest}");
    found
}

#[test]
fn one_line_says_it_all_and_measures() {
    let rules = Rules { objectives: BTreeMap::from([("startup", Duration::from_secs(2))]), ..Rules::default() };
    let text = told(&[report("sound", vec![])], &rules);
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("STDIOWATCH OK - sound: 1 tool; answered after 50 ms | 'startup'=0.050s;2;30;0 "), "{first}");
    let data = data(first);
    assert_eq!(data["startup"], (0.05, "s".into(), "2".into(), "30".into()));
    assert_eq!(data["shutdown"], (0.01, "s".into(), "5".into(), String::new()));
    assert_eq!(data["total"], (0.095, "s".into(), String::new(), "180".into()));
    assert_eq!((data["cpu"].clone(), data["launches"].0), ((0.034, "s".into(), String::new(), String::new()), 1.0));
    assert_eq!((data["tools"].0, data["memory"].clone()), (1.0, (f64::from(12 << 20), "B".into(), String::new(), String::new())));
}

#[test]
fn a_launcher_that_may_install_has_longer() {
    let plan = Plan { fetches: Fetches::Package, ..Plan::new() };
    let (report, rules) = (report("npx", vec![]), Rules::default());
    let text = output(&[Probed { report: &report, plan: &plan, rules: &rules }], &[], false);
    assert_eq!(data(text.lines().next().unwrap())["startup"].3, "120");
}

#[test]
fn the_state_is_the_worst_of_all() {
    let of = |verdicts: &[Verdict], strict| {
        let reports: Vec<Report> = verdicts.iter().map(|v| Report { verdict: *v, ..report("s", vec![]) }).collect();
        State::of(&reports, false, strict).exit_status()
    };
    use Verdict::{Fail, Pass, Unknown, Warn};
    assert_eq!((of(&[Pass], false), of(&[Pass, Warn], false), of(&[Warn, Fail, Unknown], false), of(&[Warn, Unknown], false)), (0, 1, 2, 3));
    assert_eq!((of(&[Pass], true), of(&[Warn], true), of(&[], false)), (0, 2, 3));
}

#[test]
fn several_servers_are_one_service() {
    let servers = [report("a", vec![]), report("it's b=c", vec![finding("stdout.noise", Severity::Fail, "text")]), report("c", vec![])];
    let text = told(&servers, &Rules::default());
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("STDIOWATCH CRITICAL - 3 servers: 2 pass, 1 fail; it's b=c: stdout.noise: text | "), "{first}");
    let data = data(first);
    assert_eq!((data["pass"].0, data["warn"].0, data["fail"].0), (2.0, 0.0, 1.0));
    assert!(data.contains_key("a startup") && data.contains_key("it's b_c startup"), "{data:?}");
    assert!(text.contains("\nfail stdout.noise: text: secret-evidence\n"), "{text}");
    assert!(told(&servers[..1], &Rules::default()).starts_with("STDIOWATCH OK - a: "));
    let sound = [report("a", vec![]), report("b", vec![])];
    assert!(told(&sound, &Rules::default()).starts_with("STDIOWATCH OK - 2 servers: 2 pass | "));
}

#[test]
fn hostile_text_ends_neither_the_text_nor_the_line() {
    let text = told(&[hostile()], &Rules::default());
    let mut lines = text.lines();
    assert_eq!(data(lines.next().unwrap()).len(), 8);
    assert!(lines.all(|line| !line.contains('|')), "more lines could hold more data: {text}");
    assert!(!text.contains('<') && !text.contains('\x1b') && !text.contains('\r'), "{text:?}");
    assert!(text.contains("\n! tool99 /inputSchema/required/0: it is required now (breaking): nothing → \"name\"\n"), "{text}");
}

#[test]
fn it_is_bounded_as_nagios_reads_it() {
    let long = "x".repeat(480);
    let changed =
        |n| Report { drift: drift(30), ..report(&format!("server-{n}-{}", "y".repeat(80)), vec![finding("drift.changed", Severity::Fail, &long)]) };
    let text = told(&(0..100).map(changed).collect::<Vec<_>>(), &Rules::default());
    assert!(text.len() <= 8 << 10 && text.ends_with("…\n"), "{}", text.len());
    assert!(data(text.lines().next().unwrap()).len() > 20, "{text}");
}

#[test]
fn an_entry_that_is_broken_is_critical() {
    let entry = |name: &str, broken| Unwatched {
        name: name.to_owned(),
        file: "mcp.json".to_owned(),
        line: 3,
        column: 5,
        why: "no | command".to_owned(),
        broken,
    };
    let (report, plan, rules) = (report("sound", vec![]), Plan::new(), Rules::default());
    let text = output(&[Probed { report: &report, plan: &plan, rules: &rules }], &[entry("far", false), entry("wrong", true)], false);
    assert!(text.starts_with("STDIOWATCH CRITICAL - 1 entry broken in the configuration, mcp.json:3:5: no ¦ command; sound: 1 tool; "), "{text}");
    assert!(text.contains("\nBROKEN wrong: mcp.json:3:5: no ¦ command\nPASS sound: ") && !text.contains("far"), "{text}");
    assert_eq!(State::of([&report], true, false).exit_status(), 2);
}

#[test]
fn a_mistake_of_ours_is_unknown() {
    assert_eq!(unusable("no command | at\nall"), "STDIOWATCH UNKNOWN - no command ¦ at\\nall\n");
}
