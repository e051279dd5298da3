//! The schema digest, as `docs/digest.md` says it: against digests that another program computed, and
//! against that program.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use stdiowatch::protocol::Era;
use stdiowatch::protocol::json::{Doc, write_canonical};
use stdiowatch::protocol::mcp::{Item, ListKind, read_list, set_digest};
use stdiowatch::words::{Digest, Redactor};

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/digest")
}

fn canonical(text: &str) -> String {
    let doc = Doc::parse(text.as_bytes()).unwrap();
    let mut out = Vec::new();
    write_canonical(doc.root(), &mut out);
    String::from_utf8(out).unwrap()
}

fn items(result: &[u8]) -> Vec<(ListKind, Item)> {
    let doc = Doc::parse(result).unwrap();
    let mut all = Vec::new();
    for kind in ListKind::ALL {
        if doc.root().get(kind.key()).is_some() {
            all.extend(read_list(kind, Era::Legacy, doc.root(), &Redactor::default(), usize::MAX).items.into_iter().map(|item| (kind, item)));
        }
    }
    all
}

fn set(items: &[(ListKind, Item)]) -> Digest {
    set_digest(items.iter().map(|(kind, item)| (*kind, item)))
}

/// What `digest.py` prints of the result of a list.
fn told(name: &str, result: &[u8]) -> String {
    let items = items(result);
    let mut text = String::new();
    for (n, (_, item)) in items.iter().enumerate().filter(|_| items.len() <= 20) {
        writeln!(text, "{name} {n} {} {}", item.digest, item.odd.map_or("-", |odd| odd.as_str())).unwrap();
    }
    writeln!(text, "{name} set {} -", set(&items)).unwrap();
    text
}

/// Runs `digest.py`, if there is a Python.
fn python(arguments: &[PathBuf], lines: bool) -> Option<String> {
    if Command::new("python3").arg("--version").output().is_err() {
        // Past the test's own output, which is shown only where it fails.
        std::io::stderr().write_all(b"skipped: there is no python3 here to compute the digests a second time\n").unwrap();
        return None;
    }
    let mut command = Command::new("python3");
    command.arg(goldens().join("digest.py")).args(lines.then_some("--lines")).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn golden_files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(goldens()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "json"));
    files.sort();
    files
}

#[test]
fn every_digest_is_the_one_in_the_table() {
    let table = fs::read_to_string(goldens().join("digests.txt")).unwrap();
    let ours: String = golden_files().iter().map(|path| told(path.file_name().unwrap().to_str().unwrap(), &fs::read(path).unwrap())).collect();
    assert!(ours.lines().count() > 80);
    for (ours, table) in ours.lines().zip(table.lines()) {
        assert_eq!(ours, table);
    }
    assert_eq!(ours, table);
}

#[test]
fn the_table_is_what_another_program_computes() {
    let Some(theirs) = python(&golden_files(), false) else { return };
    assert_eq!(theirs, fs::read_to_string(goldens().join("digests.txt")).unwrap());
}

#[test]
fn another_program_computes_the_same_of_whatever_there_may_be() {
    let mut runner = TestRunner::deterministic();
    let results: Vec<String> = (0..1500).map(|_| result().new_tree(&mut runner).unwrap().current()).collect();
    let file = std::env::temp_dir().join(format!("stdiowatch-digest-{}.jsonl", std::process::id()));
    fs::write(&file, results.join("\n")).unwrap();
    let theirs = python(std::slice::from_ref(&file), true);
    fs::remove_file(&file).unwrap();
    let Some(theirs) = theirs else { return };
    let ours: String = results.iter().enumerate().map(|(n, result)| told(&n.to_string(), result.as_bytes())).collect();
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        let line: usize = ours.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(ours, theirs, "of {}", results[line]);
    }
    assert_eq!(ours, theirs);
    let odd: usize = ours.lines().filter(|line| !line.ends_with('-')).count();
    assert!(odd > 100 && odd < ours.lines().count() / 2, "odd ones among others: {odd}");
}

/// The result of a list, as text: everything that JSON allows, and what only some readers do.
fn result() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        6 => "[a-c]{0,2}",
        2 => prop::sample::select(vec!["_meta", "icons", "size", "annotations", "lastModified", "name", "uri"]).prop_map(str::to_owned),
        2 => string_text(),
        1 => prop::sample::select(vec!["\\u0061", "\u{ffff}", "\u{1f600}", "\\ud83d\\ude00", "\u{e000}", "é", "abcdefgh", "abcdefghi"]).prop_map(str::to_owned),
    ];
    let number = prop_oneof![
        "-?(0|[1-9][0-9]{0,5})",
        "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(|f| format!("{f:e}")),
        any::<i64>().prop_map(|n| n.to_string()),
        prop::sample::select(vec!["9007199254740992", "9007199254740993", "-0", "1e21", "1E-7", "1e400"]).prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        20 => prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["NaN", "Infinity", "-Infinity"]).prop_map(str::to_owned),
        10 => number,
        20 => string_text().prop_map(|text| format!("\"{text}\"")),
    ];
    let object = move |inner: BoxedStrategy<String>| {
        prop::collection::vec((key.clone(), inner), 0..7)
            .prop_map(|members| format!("{{{}}}", members.iter().map(|(k, v)| format!("\"{k}\" :{v}")).collect::<Vec<_>>().join(",\t")))
    };
    let of_objects = object.clone();
    let value = leaf.prop_recursive(4, 20, 6, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..5).prop_map(|elements| format!("[ {} ]", elements.join(" , ")));
        prop_oneof![list, of_objects(inner.boxed())]
    });
    let list = prop::sample::select(vec!["tools", "prompts", "resources", "resourceTemplates"]);
    (list, prop::collection::vec(object(value.boxed()), 0..4)).prop_map(|(list, items)| format!("{{\"{list}\":[{}]}}", items.join(",")))
}

/// What may stand between quotes, on one line.
fn string_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        10 => "[ -!#-\\[\\]-~]{1,8}",
        2 => prop::sample::select(vec!["\\n", "\\t", "\\b", "\\f", "\\r", "\\/", "\\\\", "\\\"", "\\u0000", "\\u001F", "\\u007f", "\\u2028"]).prop_map(str::to_owned),
        2 => any::<char>().prop_filter("stands as it is", |c| *c >= ' ' && !matches!(c, '"' | '\\')).prop_map(|c| c.to_string()),
        1 => any::<char>().prop_map(|c| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect()),
    ];
    let lone = prop::sample::select(vec!["\\ud800", "\\uDFFF", "\\udc00\\ud800"]).prop_map(str::to_owned);
    prop_oneof![40 => prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat()), 1 => lone]
}

#[test]
fn the_samples_of_rfc_8785_have_its_forms() {
    // RFC 8785, appendix B: a double's bits, and how it is written. NaN and infinities aside.
    for (bits, wanted) in [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        let double = f64::from_bits(bits);
        // In the fewest digits that say it, in all that a double may need, and as the RFC has it.
        for token in [format!("{double:e}"), format!("{double:.16e}"), wanted.to_owned()] {
            assert_eq!(canonical(&token), wanted, "{token}");
        }
    }
}

#[test]
fn the_example_of_rfc_8785_has_its_bytes() {
    // RFC 8785, sections 3.2.2 to 3.2.4.
    let text = r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#;
    let wanted = "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b3333333333333333332e333333333333332c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac245c75303030665c6e4127425c225c5c5c5c5c222f227d";
    let hex: String = canonical(text).bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, wanted);
}

#[test]
fn what_is_beside_the_items_is_not_hashed() {
    let item = r#"{"name":"t","inputSchema":{"type":"object"}}"#;
    let bare = set(&items(format!(r#"{{"tools":[{item}]}}"#).as_bytes()));
    for beside in [
        r#""ttlMs":1"#,
        r#""ttlMs":60000,"cacheScope":"private""#,
        r#""resultType":"complete""#,
        r#""nextCursor":"2026-01-01""#,
        r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n"}}"#,
        r#""made":"up""#,
    ] {
        assert_eq!(set(&items(format!(r#"{{{beside},"tools":[{item}]}}"#).as_bytes())), bare, "{beside}");
    }
    assert_ne!(set(&items(format!(r#"{{"prompts":[{item}]}}"#).as_bytes())), bare, "which list it is on counts");
}

#[test]
fn what_of_an_item_counts() {
    let digest = |list: &str, members: &str| items(format!(r#"{{"{list}":[{{"name":"n"{members}}}]}}"#).as_bytes())[0].1.digest;
    let none = [r#","_meta":{"a":1}"#, r#","icons":[{"src":"https://example.com/i.png"}]"#];
    let of_content = [r#","annotations":{"lastModified":"2026-01-01T00:00:00Z"}"#, r#","annotations":{}"#];
    let size = [r#","size":5"#];
    for (list, left_out, counted) in [
        ("tools", [&none[..], &[]].concat(), [&of_content[..], &size].concat()),
        ("prompts", [&none[..], &[]].concat(), [&of_content[..], &size].concat()),
        ("resources", [&none[..], &of_content, &size].concat(), vec![]),
        ("resourceTemplates", [&none[..], &of_content].concat(), size.to_vec()),
    ] {
        for members in left_out {
            assert_eq!(digest(list, members), digest(list, ""), "{list}: {members}");
        }
        let always = [
            r#","title":"t""#,
            r#","description":"d""#,
            r#","execution":{"taskSupport":"required"}"#,
            r#","annotations":{"readOnlyHint":true}"#,
            r#","annotations":{"audience":["user"],"lastModified":"2026"}"#,
            r#","mimeType":"text/plain""#,
            r#","inputSchema":{"properties":{"_meta":{},"icons":{},"size":{}}}"#,
            r#","outputSchema":{"_meta":1}"#,
            r#","arguments":[{"name":"a","icons":[]}]"#,
            r#","lastModified":"2026""#,
            r#","made":"up""#,
        ];
        for members in counted.into_iter().chain(always) {
            assert_ne!(digest(list, members), digest(list, ""), "{list}: {members}");
        }
    }
    let properties = |of: &str| digest("tools", &format!(r#","inputSchema":{{"properties":{of}}}"#));
    for name in ["_meta", "icons", "size", "annotations"] {
        assert_ne!(properties(&format!(r#"{{"{name}":{{}}}}"#)), properties("{}"), "a parameter called {name}");
    }
}

/// Any value, for `spelled` to write in ever other ways.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        (-9_007_199_254_740_992i64..=9_007_199_254_740_992).prop_map(Into::into),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Bits to decide by.
struct Choices(u64);

impl Choices {
    /// One of `n`.
    fn of(&mut self, n: usize) -> usize {
        // Knuth's MMIX generator: any will do.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for n in (1..items.len()).rev() {
            items.swap(n, self.of(n + 1));
        }
    }

    fn space(&mut self, out: &mut String) {
        out.push_str(["", "", " ", "\t", "  "][self.of(5)]);
    }
}

/// Writes `value`: members in any order, white space anywhere, characters as they are or escaped,
/// numbers with or without an exponent.
fn spelled(value: &Value, choices: &mut Choices, out: &mut String) {
    choices.space(out);
    match value {
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
        Value::Number(n) if n.is_f64() => {
            let double = n.as_f64().unwrap();
            out.push_str(&[format!("{double:?}"), format!("{double:e}"), format!("{double:.16E}")][choices.of(3)]);
        }
        Value::Number(n) => out.push_str(&n.to_string()),
        Value::String(text) => quoted(text, choices, out),
        Value::Array(elements) => {
            out.push('[');
            for (n, element) in elements.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                spelled(element, choices, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            choices.shuffle(&mut members);
            out.push('{');
            for (n, (key, member)) in members.into_iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                choices.space(out);
                quoted(key, choices, out);
                choices.space(out);
                out.push(':');
                spelled(member, choices, out);
            }
            out.push('}');
        }
    }
    choices.space(out);
}

fn quoted(text: &str, choices: &mut Choices, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        let short = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '/' => "\\/",
            '\n' => "\\n",
            _ => "",
        };
        match choices.of(4) {
            0 if !short.is_empty() => out.push_str(short),
            1 => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| write!(out, "\\u{unit:04x}").unwrap()),
            2 => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| write!(out, "\\u{unit:04X}").unwrap()),
            _ if c >= ' ' && !matches!(c, '"' | '\\') => out.push(c),
            _ => {
                let json = serde_json::to_string(&c).unwrap();
                out.push_str(&json[1..json.len() - 1]);
            }
        }
    }
    out.push('"');
}

proptest! {
    #[test]
    fn the_digest_is_the_same_however_the_list_is_written(tools in prop::collection::vec(prop::collection::btree_map("[a-zA-Z_ ]{0,9}", value(), 0..5), 0..5), seed in any::<u64>()) {
        let mut tools: Vec<Value> = tools.into_iter().map(|members| Value::Object(members.into_iter().collect())).collect();
        let mut choices = Choices(seed);
        let mut write = |tools: &[Value]| {
            let mut text = String::new();
            spelled(&serde_json::json!({ "tools": tools }), &mut choices, &mut text);
            text
        };
        let (one, other) = (write(&tools), write(&tools));
        Choices(seed).shuffle(&mut tools);
        let shuffled = write(&tools);
        let each = |text: &str| items(text.as_bytes()).into_iter().map(|(_, item)| (item.digest, item.odd)).collect::<Vec<_>>();
        prop_assert_eq!(each(&one), each(&other));
        prop_assert!(each(&one).iter().all(|(_, odd)| odd.is_none()), "nothing is odd in {}", one);
        prop_assert_eq!(set(&items(one.as_bytes())), set(&items(shuffled.as_bytes())));
    }

    #[test]
    fn another_value_has_another_digest(a in value(), b in value()) {
        // serde_json knows 0.0 and -0.0, 1 and 1.0 for different; they are the same number.
        let digest = |v: &Value| items(format!("{{\"tools\":[{{\"v\":{v}}}]}}").as_bytes())[0].1.digest;
        let same = canonical(&a.to_string()) == canonical(&b.to_string());
        prop_assert_eq!(digest(&a) == digest(&b), same);
        let theirs = serde_json_canonicalizer::to_vec(&a).unwrap();
        prop_assert_eq!(canonical(&a.to_string()).into_bytes(), theirs);
    }
}
