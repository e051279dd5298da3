//! What a probe costs, against the least that it can cost (`floor.c`): `cargo bench --bench probe -- [ROUNDS [PROBES]]`.
//!
//! Rounds of all kinds are run in turns, in one order and then in the other, and the ratios are the
//! medians of each round's own: the machine's moods fall out. Needs a C compiler.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark runs programs, reads clocks, prints and panics"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use stdiowatch::judge::{Rules, Verdict};
use stdiowatch::outside::process::{GuardCommand, Kin, LaunchSpec, Launcher, guard_main};
use stdiowatch::probe::Plan;
use stdiowatch::protocol::Era;
use stdiowatch::running::{Job, Known, Launchpad, Onlooker, Watched, drive};
use stdiowatch::words::ServerName;
use tokio::sync::watch;

/// What is measured: its name, what runs it, and the megabytes of memory that it has besides.
const KINDS: [(&str, &str, usize); 6] = [
    ("process: launch, talk, end, sweep", "process", 0),
    ("  and the tree's memory looked at", "measured", 0),
    ("drive: read and hashed too", "drive", 0),
    ("sidecar: judged, as serve does", "sidecar", 0),
    ("process, 1 GiB of ballast", "process", 1024),
    ("sidecar, 1 GiB of ballast", "sidecar", 1024),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["guard"] => return guard_main(),
        [kind @ ("process" | "measured" | "drive" | "sidecar"), probes, ballast, server] => {
            measure(kind, probes.parse().unwrap(), ballast.parse().unwrap(), server)
        }
        [] => compare(21, 300),
        [rounds] => compare(rounds.parse().unwrap(), 300),
        [rounds, probes] => compare(rounds.parse().unwrap(), probes.parse().unwrap()),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

/// Wall and own CPU time of one probe, in microseconds.
#[derive(Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: f64,
}

impl Cost {
    fn read(text: &str) -> Cost {
        let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap());
        Cost { wall: numbers.next().unwrap(), cpu: numbers.next().unwrap() }
    }
}

/// Runs everything and prints the table.
fn compare(rounds: usize, probes: usize) {
    let (floor, server) = (compile("floor"), compile("echo"));
    let (server, probes) = (server.to_str().unwrap(), probes.to_string());
    let own = std::env::current_exe().unwrap();
    let mut costs: Vec<Vec<Cost>> = vec![Vec::new(); 1 + KINDS.len()];
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..costs.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for n in order {
            costs[n].push(match n.checked_sub(1).map(|n| KINDS[n]) {
                None => run(&floor, &[&probes, server]),
                Some((_, kind, ballast)) => run(&own, &[kind, &probes, &ballast.to_string(), server]),
            });
        }
    }
    print!("{}", table(&costs));
}

fn table(costs: &[Vec<Cost>]) -> String {
    let floor = &costs[0];
    let of = |part: fn(&Cost) -> f64, n: usize| median(costs[n].iter().map(part).collect());
    let ratio = |part: fn(&Cost) -> f64, n: usize, to: &[Cost]| median(costs[n].iter().zip(to).map(|(a, b)| part(a) / part(b)).collect());
    let mut text = format!("{:<40} {:>9} {:>7} {:>9} {:>7}\n", "one probe", "wall µs", "×", "CPU µs", "×");
    let names = std::iter::once("floor: C, vfork, nothing parsed").chain(KINDS.map(|(name, ..)| name));
    for (n, name) in names.enumerate() {
        let (wall, cpu) = (of(|c| c.wall, n), of(|c| c.cpu, n));
        let _ = writeln!(text, "{name:<40} {wall:>9.1} {:>7.2} {cpu:>9.1} {:>7.2}", ratio(|c| c.wall, n, floor), ratio(|c| c.cpu, n, floor));
    }
    for (with, without, kind) in [(5, 1, "process"), (6, 4, "sidecar")] {
        let _ = writeln!(text, "{kind}: own CPU with 1 GiB of ballast, against without: {:.2}", ratio(|c| c.cpu, with, &costs[without]));
    }
    text
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn run(program: &Path, args: &[&str]) -> Cost {
    let output = Command::new(program).args(args).stdin(Stdio::null()).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{} {args:?}: {}", program.display(), output.status);
    Cost::read(&String::from_utf8(output.stdout).unwrap())
}

fn compile(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(name).with_extension("c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiled = Command::new("cc").args(["-O2", "-static", "-o"]).arg(&program).arg(source).status().unwrap();
    assert!(compiled.success());
    program
}

/// Makes so many probes, on a thread that is not the main one, and prints what one cost.
fn measure(kind: &str, probes: usize, ballast: usize, server: &str) {
    let ballast = vec![1u8; ballast << 20];
    let spec = LaunchSpec { command: server.to_owned(), ..LaunchSpec::default() };
    let server = Watched::new(ServerName::new("echo").unwrap(), spec, Duration::from_secs(60));
    match kind {
        "process" => std::thread::spawn(move || alone(&server.spec, probes, false)).join().unwrap(),
        "measured" => std::thread::spawn(move || alone(&server.spec, probes, true)).join().unwrap(),
        "drive" => std::thread::spawn(move || driven(&server, probes)).join().unwrap(),
        _ => judged(&server, probes),
    }
    std::hint::black_box(ballast);
}

/// What a server is known by that has been probed often.
fn known() -> Known {
    Known { era: Some(Era::Legacy), launched: true, ..Known::default() }
}

/// A plan as `serve` has it nine times out of ten.
fn plan(server: &Watched) -> Plan {
    Plan { measure: false, ..server.plan(known(), false) }
}

/// What the floor does, by the process room; nothing is parsed.
fn alone(spec: &LaunchSpec, probes: usize, measured: bool) {
    const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"0"}}}
"#;
    const LIST: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
"#;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let inside = runtime.enter();
    let launcher = Launcher::start(GuardCommand::own()).unwrap();
    drop(inside);
    let mut line = vec![0; 1 << 16];
    time(probes, || {
        runtime.block_on(async {
            let mut child = launcher.launch(spec).unwrap();
            for request in [INITIALIZE, LIST] {
                assert_eq!(child.write_stdin(request).await.unwrap(), request.len());
                let mut last = 0;
                while last != b'\n' {
                    let length = child.read_stdout(&mut line).await.unwrap();
                    last = line[length - 1];
                }
            }
            if measured {
                child.measure();
            } else {
                child.note();
            }
            child.close_stdin();
            assert_eq!(child.read_stdout(&mut line).await.unwrap(), 0);
            child.exited().await;
            child.sweep(Duration::from_secs(1)).await;
        });
    });
}

fn driven(server: &Watched, probes: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let launcher = Launcher::start(GuardCommand::own()).unwrap();
    let (_stop, stopped) = watch::channel(false);
    time(probes, || {
        let plan = Arc::new(plan(server));
        let seen = runtime.block_on(drive(&launcher, plan, &server.spec, stopped.clone(), None, |_, _| {}, &mut Kin::default()));
        assert!(seen.judged().is_some_and(|launch| launch.listed.is_some()));
    });
}

fn judged(server: &Watched, probes: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_stop, stopped) = watch::channel(false);
    let launchpad = Launchpad::start(GuardCommand::own(), stopped).unwrap();
    let mut accepted = None;
    time(probes, || {
        let job = Job {
            name: server.name.clone(),
            spec: Arc::clone(&server.spec),
            plan: plan(server),
            rules: Arc::new(Rules::default()),
            accepted: accepted.clone(),
            record: false,
            coexists: false,
            onlooker: Onlooker::default(),
        };
        let outcome = runtime.block_on(launchpad.probe(job)).unwrap();
        assert_eq!(outcome.report.verdict, Verdict::Pass, "{:?}", outcome.report);
        let listing = outcome.listed.map(Arc::new);
        accepted = accepted.take().or(listing.map(|listing| stdiowatch::judge::Accepted { listing, source: stdiowatch::judge::Source::Seen }));
    });
}

/// Does it so many times, a tenth more to get warm, and prints what it cost.
fn time(probes: usize, mut probe: impl FnMut()) {
    (0..probes / 10).for_each(|_| probe());
    let cpu = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
    };
    let before = cpu();
    let mut walls = Vec::with_capacity(probes);
    for _ in 0..probes {
        let began = Instant::now();
        probe();
        walls.push(began.elapsed().as_secs_f64() * 1e6);
    }
    println!("{:.2} {:.2}", median(walls), (cpu() - before) / probes as f64);
}
