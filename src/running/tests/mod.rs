//! The event order between processes, simulated: the real fleet, watchers, hub, launchpad, machine, judge
//! and ledger in virtual time, among servers, people and hosts that a seed makes up. No process is launched,
//! and no time passes. A run that goes wrong says its seed, and `STDIOWATCH_SIM_SEED=SEED` runs that one alone;
//! `STDIOWATCH_SIM_RUNS=10000` runs more of them.
//!
//! ```text
//! dice    what is random, from a seed
//! world   servers, and the ground they run on
//! model   what should be known, told anew; and what may never be
//! sim     one run: a fleet, and what happens to it
//! ```

mod dice;
mod model;
mod sim;
mod world;

/// As many as a test may take; CI runs more.
const RUNS: u64 = 100;
/// A reply that was there after a suspension used up the whole probe's time: the next request had none left.
const FOUND: [u64; 1] = [880];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn whatever_happens_in_whatever_order() {
    let seeds = match number("STDIOWATCH_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("STDIOWATCH_SIM_RUNS").unwrap_or(RUNS),
    };
    // What was found before is looked for again.
    let seeds: Vec<u64> = seeds.chain(FOUND.into_iter().filter(|_| number("STDIOWATCH_SIM_SEED").is_none())).collect();
    let mut told = sim::Told::default();
    let runs = seeds.len();
    for seed in seeds {
        match sim::run(seed) {
            Ok(run) => told.add(run),
            Err(wrong) => panic!("STDIOWATCH_SIM_SEED={seed}: {wrong}"),
        }
    }
    println!("{runs} runs: {told:?}");
    // A simulation in which nothing happens finds nothing.
    assert!(runs < 100 || told.is_of_everything(), "{told:?}");
}
