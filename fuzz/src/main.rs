//! What is fuzzed is in `tests/fuzzed`: `cargo test` runs it too, over what is kept. One program for all of it, since
//! most of a program's time is in its linking; the variable `STDIOWATCH_FUZZ` names the target.
#![no_main]

use std::sync::LazyLock;

#[path = "../../tests/fuzzed/mod.rs"]
mod fuzzed;

// Where the reader of expositions looks for it.
use stdiowatch::show;

static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("STDIOWATCH_FUZZ").unwrap_or_default();
    let target = fuzzed::TARGETS.iter().find(|(target, _)| *target == name);
    target.unwrap_or_else(|| panic!("STDIOWATCH_FUZZ is `{name}`, and no target's name")).1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| RUN(data));
