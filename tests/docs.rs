//! The documentation's tables are the code's. `STDIOWATCH_WRITE_DOCS=1 cargo test --test docs` writes
//! them anew.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use stdiowatch::config::web::WEB;
use stdiowatch::config::{FILE, Keys, Kind as KindOfKey, Names};
use stdiowatch::judge::CHECKS;
use stdiowatch::judge::compare::{ITEM_RULES, SCHEMA_RULES};
use stdiowatch::show::exposition::Kind;
use stdiowatch::show::metrics::{METRICS, SIDECAR_METRICS};
use stdiowatch::show::on_demand::ON_DEMAND_METRICS;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Holds the part of a page below its marker line against `wanted`, or writes it.
fn is_in(page: &str, marker: &str, wanted: &str) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let line = format!("<!-- {marker}: written by tests/docs.rs -->\n");
    let (head, rest) = text.split_once(&line).unwrap_or_else(|| panic!("{page} has no line {line}"));
    let end = "<!-- end -->\n";
    let (now, tail) = rest.split_once(end).unwrap_or_else(|| panic!("{page} has no line {end}"));
    if std::env::var_os("STDIOWATCH_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{head}{line}{wanted}{end}{tail}")).unwrap();
        return;
    }
    assert!(now == wanted, "{page} is not up to date: run STDIOWATCH_WRITE_DOCS=1 cargo test --test docs");
}

#[test]
fn every_finding_is_documented() {
    let mut pages = String::new();
    let mut family = "";
    for check in CHECKS.iter() {
        let of = check.code.split('.').next().unwrap();
        if of != family {
            family = of;
            let _ = writeln!(pages, "\n## {family}");
        }
        let _ = writeln!(pages, "\n### `{}`\n\nDefault: `{}`. {}\n\n*What to do:* {}", check.code, check.severity, check.about, check.mend);
    }
    pages.push('\n');
    is_in("docs/findings.md", "findings", &pages);
}

fn kind(kind: Kind) -> String {
    format!("{kind:?}").to_lowercase()
}

#[test]
fn every_metric_is_documented() {
    let mut table = String::from("\n| metric | kind | labels besides `server` | what it says |\n|---|---|---|---|\n");
    for metric in METRICS {
        let labels: Vec<String> = metric.labels.iter().map(|l| format!("`{l}`")).collect();
        let _ = writeln!(table, "| `{}` | {} | {} | {} |", metric.name, kind(metric.kind), labels.join(", "), metric.help);
    }
    table.push_str("\nWithout `server`:\n\n| metric | kind | what it says |\n|---|---|---|\n");
    for metric in SIDECAR_METRICS {
        let _ = writeln!(table, "| `{}` | {} | {} |", metric.name, kind(metric.kind), metric.help);
    }
    table.push_str("\nOnly in answers of `/probe`, without `server`:\n\n| metric | kind | labels | what it says |\n|---|---|---|---|\n");
    for metric in ON_DEMAND_METRICS {
        let labels: Vec<String> = metric.labels.iter().map(|l| format!("`{l}`")).collect();
        let _ = writeln!(table, "| `{}` | {} | {} | {} |", metric.name, kind(metric.kind), labels.join(", "), metric.help);
    }
    table.push('\n');
    is_in("docs/metrics.md", "metrics", &table);
}

/// Rows for the keys of a mapping, and for those of the mappings in it.
fn rows(keys: &'static Keys, above: &str, table: &mut String) {
    for key in keys.iter() {
        let path = format!("{above}{}", key.name);
        let default = if key.required {
            "required".to_owned()
        } else {
            Some(key.default).filter(|d| !d.is_empty()).map_or(String::new(), |d| format!("`{d}`"))
        };
        let _ = writeln!(table, "| `{path}` | {} | {default} | {} |", key.kind.name(), key.about);
        let kinds = if let KindOfKey::Either(kinds) = &key.kind { kinds } else { std::slice::from_ref(&key.kind) };
        for kind in kinds {
            if let KindOfKey::Keys(inner) = kind
                && key.name != "defaults"
            {
                rows(inner, &format!("{path}."), table);
            }
        }
    }
}

#[test]
fn every_key_of_the_configuration_is_documented() {
    const HEAD: &str = "| key | what it takes | default | what it means |\n|---|---|---|---|\n";
    let mut text = format!("\n{HEAD}");
    rows(&FILE, "", &mut text);
    let server = FILE
        .get("servers")
        .and_then(|key| if let KindOfKey::Named(Names::Servers, KindOfKey::Keys(server)) = key.kind { Some(server) } else { None });
    text.push_str("\nOf a server:\n\n");
    text.push_str(HEAD);
    rows(server.unwrap(), "", &mut text);
    text.push('\n');
    is_in("docs/configuration.md", "keys", &text);
}

#[test]
fn every_key_of_a_web_configuration_is_documented() {
    let mut text = String::from("\n| key | what it takes | default | what it means |\n|---|---|---|---|\n");
    rows(&WEB, "", &mut text);
    text.push('\n');
    is_in("docs/security.md", "web keys", &text);
}

#[test]
fn the_example_of_a_configuration_is_one() {
    let page = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let example = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let path = std::env::temp_dir().join(format!("stdiowatch-example-{}.yaml", std::process::id()));
    fs::write(&path, example).unwrap();
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_stdiowatch")).arg("config").arg("check").arg(&path).env("API_KEY", "k").output().unwrap();
    fs::remove_file(&path).unwrap();
    // What it needs is not there, which is told on stderr.
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.ends_with(": ok, 1 server\n"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_rule_of_drift_is_documented() {
    let mut tables = String::from("\n| at | change | in an input | in an output |\n|---|---|---|---|\n");
    for rule in SCHEMA_RULES {
        let (input, output) = (rule.input, rule.output);
        let what = if input.what == output.what { input.what.to_owned() } else { format!("{} / {}", input.what, output.what) };
        let _ = writeln!(tables, "| {} | {what} | {} | {} |", rule.at, input.class.as_str(), output.class.as_str());
    }
    tables.push_str("\nOutside of schemas:\n\n| at | change | class |\n|---|---|---|\n");
    for rule in ITEM_RULES {
        let _ = writeln!(tables, "| {} | {} | {} |", rule.at, rule.input.what, rule.input.class.as_str());
    }
    tables.push('\n');
    is_in("docs/drift.md", "rules", &tables);
}

/// The names of all members of an object and of the objects in it.
fn members(value: &serde_json::Value, found: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        found.push(name.clone());
        if name == "items" {
            // What the server lists has names of its own.
            continue;
        }
        members(value, found);
        value.as_array().into_iter().flatten().for_each(|element| members(element, found));
    }
}

#[test]
fn every_member_of_a_report_is_documented() {
    let program = env!("CARGO_BIN_EXE_stdiowatch");
    let output = std::process::Command::new(program).args(["check", "--format", "json", "--", program, "sample-server", "banner"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let page = fs::read_to_string(root().join("docs/report.md")).unwrap();
    let mut names = Vec::new();
    members(&report, &mut names);
    assert!(names.len() > 40);
    for name in names {
        let is_named = page.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == name);
        assert!(is_named, "docs/report.md does not say what `{name}` is");
    }
}

#[test]
fn the_readme_names_only_metrics_options_and_paths_that_exist() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| w.starts_with("stdiowatch_")) {
        assert!(METRICS.iter().any(|m| m.name == word) || SIDECAR_METRICS.iter().any(|m| m.name == word), "README names {word}");
    }
    let help: String = ["check", "serve"]
        .iter()
        .map(|sub| {
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_stdiowatch")).args([sub, "--help"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    for option in text
        .split(|c: char| !(c.is_alphanumeric() || c == '-'))
        .filter(|w| w.starts_with("--") && w.ends_with(char::is_alphabetic) && !matches!(*w, "--release" | "--path"))
    {
        assert!(help.contains(option), "README names {option}");
    }
    for path in text.split('`').filter(|w| w.ends_with('/') || w.ends_with(".md")).filter(|w| !w.starts_with('/') && !w.contains(' ')) {
        assert!(root().join(path).exists(), "README names {path}");
    }
}

#[test]
fn the_index_has_every_page_and_every_link_leads_somewhere() {
    let docs = root().join("docs");
    let index = fs::read_to_string(docs.join("README.md")).unwrap();
    let pages: Vec<String> = fs::read_dir(&docs).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    for page in pages.iter().filter(|page| *page != "README.md") {
        assert!(index.contains(&format!("({page})")), "docs/README.md does not list {page}: add a row");
    }
    for page in pages.iter().filter(|page| page.ends_with(".md")) {
        let text = fs::read_to_string(docs.join(page)).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).filter(|link| !link.contains(':') && !link.starts_with('#')) {
            let path = link.split('#').next().unwrap();
            assert!(docs.join(path).exists(), "docs/{page} links to {link}");
        }
    }
}
