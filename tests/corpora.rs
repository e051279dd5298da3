//! What is fuzzed (see `fuzz/README.md`), over the inputs that are kept: those that reach everything, and those that once
//! found something. `STDIOWATCH_CORPORA=FOLDER` takes those of another folder, `STDIOWATCH_FUZZ=TARGET` those of one target.
#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub, reason = "tests panic")]

mod fuzzed;

// Where the reader of expositions looks for it.
use stdiowatch::show;

use std::path::{Path, PathBuf};

use fuzzed::TARGETS;

fn corpora() -> PathBuf {
    let kept = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/corpora");
    std::env::var_os("STDIOWATCH_CORPORA").map_or_else(kept, PathBuf::from)
}

#[test]
fn nothing_breaks_on_what_is_kept() {
    let only = std::env::var("STDIOWATCH_FUZZ").ok();
    for (target, run) in TARGETS.iter().filter(|(target, _)| only.as_deref().is_none_or(|only| only == *target)) {
        let mut inputs: Vec<_> = std::fs::read_dir(corpora().join(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
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
fn what_is_kept_is_of_a_target_and_small() {
    let mut folders: Vec<_> = std::fs::read_dir(corpora()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    folders.sort();
    assert_eq!(folders, TARGETS.map(|(name, _)| name));
    let sizes = TARGETS.iter().flat_map(|(target, _)| std::fs::read_dir(corpora().join(target)).unwrap());
    let sizes: Vec<u64> = sizes.map(|entry| entry.unwrap().metadata().unwrap().len()).collect();
    let sum: u64 = sizes.iter().sum();
    assert!(std::env::var_os("STDIOWATCH_CORPORA").is_some() || sizes.len() <= 300 && sum <= 1 << 20, "{} files, {sum} bytes", sizes.len());
}

#[test]
fn what_fuzzes_is_built_of_the_libraries_of_the_tests() {
    let read = |path: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let (ours, theirs) = (read("Cargo.toml"), read("fuzz/Cargo.toml"));
    for line in ours.split("[dev-dependencies]\n").nth(1).unwrap().split("\n\n").next().unwrap().lines() {
        assert!(theirs.contains(line), "fuzz/Cargo.toml has not: {line}");
    }
    let (ours, theirs) = (read("Cargo.lock"), read("fuzz/Cargo.lock"));
    for package in theirs.split("[[package]]\n").skip(1).filter(|package| package.contains("\nsource = ")) {
        let (name, rest) = package.split_once('\n').unwrap();
        let version = rest.lines().next().unwrap();
        let same = ours.contains(&format!("{name}\n{version}\n"));
        assert!(same || !ours.contains(&format!("{name}\n")), "fuzz/Cargo.lock has {name} in another version: {version}");
    }
}
