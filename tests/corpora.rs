//! What is fuzzed (see `fuzz/README.md`), over the inputs that are kept: those that reach everything, and those that once
//! found something.
#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub, reason = "tests panic")]

mod fuzzed;

// Where the reader of expositions looks for it.
use stdiowatch::show;

use std::path::Path;

/// A target's name, and what it does with an input.
type Target = (&'static str, fn(&[u8]));

/// Every target, by its name.
const TARGETS: [Target; 15] = [
    ("call", fuzzed::call::run),
    ("clients", fuzzed::clients::run),
    ("compare", fuzzed::compare::run),
    ("dotenv", fuzzed::dotenv::run),
    ("exposition", fuzzed::exposition::run),
    ("framing", fuzzed::framing::run),
    ("http", fuzzed::http::run),
    ("json", fuzzed::json::run),
    ("lock", fuzzed::lock::run),
    ("mcp", fuzzed::mcp::run),
    ("probe", fuzzed::probe::run),
    ("record", fuzzed::record::run),
    ("replay", fuzzed::replay::run),
    ("web", fuzzed::web::run),
    ("yaml", fuzzed::yaml::run),
];

#[test]
fn nothing_breaks_on_what_is_kept() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/corpora");
    for (target, run) in TARGETS {
        let mut inputs: Vec<_> = std::fs::read_dir(corpora.join(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "{target} has no inputs");
        for input in inputs {
            // Before, so that it is known of which one a panic was.
            eprintln!("{}", input.display());
            run(&std::fs::read(&input).unwrap());
        }
    }
}

#[test]
fn every_target_is_tried_here() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.toml")).unwrap();
    let named: Vec<&str> = manifest.split("[[bin]]\nname = \"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(named, TARGETS.map(|(name, _)| name));
}

#[test]
fn what_is_kept_is_small() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/corpora");
    let sizes =
        TARGETS.iter().flat_map(|(target, _)| std::fs::read_dir(corpora.join(target)).unwrap()).map(|entry| entry.unwrap().metadata().unwrap().len());
    let sizes: Vec<u64> = sizes.collect();
    let sum: u64 = sizes.iter().sum();
    assert!(sizes.len() <= 300 && sum <= 1 << 20, "{} files, {sum} bytes", sizes.len());
}
