//! The house rules of docs/architecture.md, held against the source.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each room and its floor. A room imports from rooms below it, and from those named beside it.
const ROOMS: [(&str, u32, &[&str]); 12] = [
    ("words", 0, &[]),
    ("protocol", 1, &[]),
    ("probe", 2, &[]),
    ("judge", 3, &[]),
    ("ledger", 4, &[]),
    ("outside", 5, &[]),
    ("running", 6, &[]),
    ("show", 7, &[]),
    ("serve", 7, &["show"]),
    ("config", 7, &[]),
    ("cli", 8, &[]),
    // A server of its own: it shares nothing with what probes it, so that no mistake is made twice.
    ("sample", 0, &[]),
];

/// Rooms that know no runtime, no clock, no file, no process and no socket.
const PURE: [&str; 6] = ["words", "protocol", "probe", "judge", "ledger", "show"];

/// What a pure room may not name.
const IMPURE: [&str; 10] =
    ["tokio::", "std::fs", "std::net", "std::process", "std::thread", "std::env", "Instant", "SystemTime", "crate::outside", "crate::running"];

/// A file is read in one sitting.
const LONGEST: usize = 600;

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Every source file: its path below `src`, its room, and its lines without comments, up to its tests.
fn files() -> Vec<(String, String, Vec<String>)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&src, &mut paths);
    paths
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
            let room = name.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let lines = code.lines().filter(|l| !l.trim_start().starts_with("//")).map(str::to_owned).collect();
            (name, room, lines)
        })
        .filter(|(name, _, _)| !name.contains("tests"))
        .collect()
}

/// The rooms that a text names, as `crate::ROOM` or in `crate::{ROOM, …}`, over several lines too.
fn rooms_named(text: &str) -> Vec<String> {
    let word = |text: &str| text.trim_start().split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default().to_owned();
    let mut named = Vec::new();
    for (at, found) in text.match_indices("crate::") {
        let rest = &text[at + found.len()..];
        let Some(inner) = rest.strip_prefix('{') else {
            named.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut begin = 0;
        for (at, c) in inner.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    named.push(word(&inner[begin..at]));
                    begin = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    named
}

#[test]
fn imports_are_found_however_they_are_written() {
    assert_eq!(rooms_named("use crate::words::At; crate::probe::Plan"), ["words", "probe"]);
    assert_eq!(rooms_named("use crate::{serve as _a, show::{x, y},\n    words};"), ["serve", "show", "words"]);
}

#[test]
fn a_room_imports_only_from_floors_below_it() {
    let floors: BTreeMap<&str, (u32, &[&str])> = ROOMS.iter().map(|(room, floor, also)| (*room, (*floor, *also))).collect();
    let mut wrong = Vec::new();
    for (name, room, lines) in files() {
        if room == "lib" || room == "main" {
            continue;
        }
        let (floor, also) = floors.get(room.as_str()).unwrap_or_else(|| panic!("{name}: the room {room} is not in the plan of the house"));
        for other in rooms_named(&lines.join("\n")) {
            let Some((others, _)) = floors.get(other.as_str()).filter(|_| other != room) else { continue };
            if others >= floor && !also.contains(&other.as_str()) {
                wrong.push(format!("{name}: crate::{other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "imports from the same floor or above:\n{}", wrong.join("\n"));
}

#[test]
fn pure_rooms_know_nothing_of_the_outside() {
    let mut wrong = Vec::new();
    for (name, room, lines) in files() {
        if !PURE.contains(&room.as_str()) {
            continue;
        }
        for line in &lines {
            if IMPURE.iter().any(|word| line.contains(word)) {
                wrong.push(format!("{name}: {}", line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_process_room_launches_and_only_the_clock_reads_clocks() {
    let rules: [(&str, &[&str]); 3] = [
        ("Command::new", &["outside/process/", "sample/stdio.rs"]),
        ("SystemTime::now", &["sample/tools.rs"]),
        ("Timestamp::now", &["outside/clock.rs"]),
    ];
    let mut wrong = Vec::new();
    for (name, _, lines) in files() {
        for (what, places) in rules {
            if lines.iter().any(|line| line.contains(what)) && !places.iter().any(|place| name.starts_with(place)) {
                wrong.push(format!("{name}: {what}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn one_call_alone_is_unsafe() {
    let unsafe_lines = |(name, _, lines): (String, String, Vec<String>)| {
        let unsafe_lines: Vec<String> = lines.into_iter().filter(|line| line.contains("unsafe {") || line.contains("unsafe fn")).collect();
        unsafe_lines.into_iter().map(move |line| format!("{name}: {}", line.trim()))
    };
    let found: Vec<String> = files().into_iter().flat_map(unsafe_lines).collect();
    assert_eq!(found, ["main.rs: let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD) };"]);
    assert!(fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap().contains("#![forbid(unsafe_code)]"));
}

#[test]
fn a_file_is_read_in_one_sitting() {
    let long: Vec<String> =
        files().into_iter().filter(|(_, _, lines)| lines.len() > LONGEST).map(|(name, _, lines)| format!("{name}: {} lines", lines.len())).collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn the_plan_of_the_house_is_the_one_in_the_documentation() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md")).unwrap();
    for (room, floor, _) in ROOMS {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{room}`")));
        let row = row.unwrap_or_else(|| panic!("docs/architecture.md has no row for the room {room}"));
        assert!(row.contains(&format!("| {floor} |")), "docs/architecture.md has another floor for {room}: {row}");
    }
}

/// The variants of `enum NAME` in a source text.
fn variants(text: &str, name: &str) -> Vec<String> {
    let body = text.split(&format!("pub enum {name} {{\n")).nth(1).unwrap_or_else(|| panic!("no enum {name}"));
    let body = body.split("\n}\n").next().unwrap();
    let variant = |line: &&str| line.starts_with("    ") && line[4..].starts_with(char::is_uppercase);
    body.lines().filter(variant).map(|l| l[4..].split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned()).collect()
}

#[test]
fn there_is_a_sample_of_everything_that_can_be_seen() {
    // `judge::tests::everything` is written by hand; what is missing there is tested nowhere.
    let read = |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path)).unwrap();
    let tests = read("judge/tests.rs");
    let samples = tests.split("fn everything()").nth(1).unwrap().split("\n}\n").next().unwrap();
    for (path, name) in [("probe/observation.rs", "What"), ("protocol/wire/line.rs", "Fault"), ("protocol/mcp/schema.rs", "ToolFlaw")] {
        for variant in variants(&read(path), name) {
            let named = samples.contains(&format!("{name}::{variant}")) || name == "What" && variant == "Overslept";
            assert!(named, "judge/tests.rs: `everything` has no {name}::{variant}");
        }
    }
}

#[test]
fn every_test_that_security_md_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let mut paths = Vec::new();
    ["src", "tests"].iter().for_each(|dir| sources(&root.join(dir), &mut paths));
    let code: String = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let held: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).filter_map(|line| line.rsplit('|').nth(1)).collect();
    let named: Vec<&str> = held.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(named.len() > 30, "{named:?}");
    for name in named {
        let there = code.contains(&format!("fn {name}(")) || root.join(name).exists();
        assert!(there || root.join("tests/fuzzed").join(format!("{name}.rs")).exists(), "no test is called {name}");
    }
}

#[test]
fn the_bill_of_materials_is_of_these_crates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let (bom, lock, manifest) = (read("deploy/stdiowatch.cdx.json"), read("Cargo.lock"), read("Cargo.toml"));
    let bom: serde_json::Value = serde_json::from_str(&bom).unwrap();
    let listed: Vec<(&str, &str)> =
        bom["components"].as_array().unwrap().iter().map(|c| (c["name"].as_str().unwrap(), c["version"].as_str().unwrap())).collect();
    let hint = "write it anew with deploy/sbom.sh";
    for (name, version) in &listed {
        assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n")), "{name} {version} is not in Cargo.lock; {hint}");
    }
    let direct = manifest.split("[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    for name in direct.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name) {
        assert!(listed.iter().any(|(listed, _)| *listed == name), "{name} is not in it; {hint}");
    }
}
