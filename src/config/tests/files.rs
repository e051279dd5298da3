//! Several files, and files of other kinds.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::{Configuration, load};
use super::env;

/// A directory of one test, removed with it.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("stdiowatch-config-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// What is wrong with these files, without the directory in front.
    fn wrong(&self, files: &[PathBuf]) -> String {
        let lines: Vec<String> = load(files, &env).unwrap_err().iter().map(ToString::to_string).collect();
        lines.join("\n").replace(&format!("{}/", self.0.display()), "")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(configuration: &Configuration) -> Vec<&str> {
    configuration.servers.iter().map(|server| server.watched.name.as_str()).collect()
}

const ONE: &str = "servers: {files: {command: x}}\n";

#[test]
fn a_name_in_several_files_is_told_apart_by_them() {
    let dir = Dir::new("apart");
    let a = dir.file("a.yaml", "servers: {files: {command: x}, other: {command: x}}\n");
    let cursor = dir.file(".cursor/mcp.yaml", ONE);
    let in_one = dir.file("one/mcp.yaml", ONE);
    let in_two = dir.file("two/mcp.yaml", ONE);
    let load = |files: &[&PathBuf]| load(&files.iter().map(|f| (*f).clone()).collect::<Vec<_>>(), &env).unwrap();
    assert_eq!(names(&load(&[&a])), ["files", "other"]);
    assert_eq!(names(&load(&[&a, &cursor])), ["files (a.yaml)", "other", "files (cursor)"]);
    assert_eq!(names(&load(&[&in_one, &in_two])), ["files (one mcp.yaml)", "files (two mcp.yaml)"]);
    // The same file by another path is the same file.
    assert_eq!(names(&load(&[&a, &dir.0.join("one/../a.yaml")])), ["files", "other"]);
    // A name that is taken is not given.
    let taken = dir.file("b.yaml", "servers: {files (a.yaml): {command: x}, files: {command: x}}\n");
    let all = load(&[&a, &taken]);
    let mut different = names(&all);
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), 4, "{different:?}");
    // Long names stay names.
    let long = format!("servers: {{{}: {{command: x}}}}\n", "é".repeat(50));
    let all = load(&[&dir.file("c.yaml", &long), &dir.file("d.yaml", &long)]);
    assert!(names(&all).iter().all(|name| name.len() <= 100 && name.ends_with(".yaml)")), "{:?}", names(&all));
}

#[test]
fn what_concerns_all_is_said_once() {
    let dir = Dir::new("global");
    let a = dir.file("a.yaml", format!("listen: :1\n{ONE}"));
    let same = dir.file("b.yaml", format!("listen: :1\nstate_dir: s\n{ONE}"));
    let other = dir.file("c.yaml", format!("{ONE}listen: :2\n"));
    let both = load(&[a.clone(), same], &env).unwrap();
    assert_eq!((both.listen.as_deref(), both.state_dir), (Some(":1"), Some(dir.0.join("s"))));
    assert_eq!(dir.wrong(&[a, other]), "c.yaml:2:9: `listen` is something else in a.yaml:1:9");
}

#[test]
fn secrets_stand_in_files() {
    let dir = Dir::new("secrets");
    dir.file("token", "s3cret\n");
    dir.file("two", "line\r\nline\r\n");
    dir.file("more.env", "# c\nexport A=1\nTOKEN='env # file'\n");
    dir.file("last.env", "A=2\n");
    let text = "defaults: {env_from_file: {TOKEN: two}}\nservers:\n  a: {command: x, env_from_file: {TOKEN: token, TWO: two}, env: {OWN: 1}, schema: {lock: l.json}}\n  b: {command: x, env_from_file: more.env, env: {TOKEN: own}}\n  c: {command: x, env_from_file: [more.env, last.env]}\n  d: {command: x}\n";
    let file = dir.file("f.yaml", text);
    let all = load(std::slice::from_ref(&file), &env).unwrap();
    let env_of = |i: usize| {
        let pairs = all.servers[i].watched.spec.env.iter();
        pairs.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(env_of(0), ["TOKEN=s3cret", "TWO=line\r\nline", "OWN=1"]);
    assert_eq!(env_of(1), ["A=1", "TOKEN=own"]);
    assert_eq!(env_of(2), ["A=2", "TOKEN=env # file"]);
    assert_eq!(env_of(3), ["TOKEN=line\r\nline"]);
    let read: Vec<PathBuf> = ["f.yaml", "token", "two", "l.json", "more.env", "last.env"].map(|name| dir.0.join(name)).into();
    assert_eq!(all.files, read);
}

#[test]
fn what_is_wrong_with_other_files_is_told_with_the_place_that_names_them() {
    let dir = Dir::new("wrong");
    dir.file("binary", b"ab\xff");
    dir.file("nul", b"a\0b");
    dir.file("large", vec![b'x'; (64 << 10) + 1]);
    dir.file("bad.env", "A=1\nnonsense\n");
    let text = "servers: {a: {command: x, env_from_file: {A: binary, B: nul, C: large, D: none, E: .}}, b: {command: x, env_from_file: [bad.env]}}\n";
    let said = dir.wrong(&[dir.file("f.yaml", text)]);
    let here = dir.0.display().to_string();
    let wanted = [
        "bad.env:2:1: there is no = in it; a line is NAME=VALUE".to_owned(),
        "f.yaml:1:46: binary:1:3: not UTF-8 at byte 2".to_owned(),
        "f.yaml:1:57: B: a value cannot contain a NUL byte".to_owned(),
        "f.yaml:1:65: large: it is larger than 64KiB".to_owned(),
        "f.yaml:1:75: none: there is no such file".to_owned(),
        format!("f.yaml:1:84: {here}: it is a directory"),
    ];
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, wanted);
}

#[test]
fn files_that_cannot_be_read_are_told_all_of_them() {
    let dir = Dir::new("unreadable");
    let utf16 = dir.file("b.yaml", b"\xff\xfea\0");
    let large = dir.file("c.yaml", vec![b' '; (4 << 20) + 1]);
    let bad = dir.file("d.yaml", "servers:\n  a: {command: x, era: old}\n");
    let said = dir.wrong(&[dir.0.join("a.yaml"), utf16, large, bad]);
    let wanted = [
        "a.yaml: there is no such file",
        "b.yaml:1:1: not UTF-8 at byte 0; it looks like UTF-16, save it as UTF-8",
        "c.yaml: it is larger than 4MiB",
        "d.yaml:2:24: `era` is \"old\"; write auto, modern or legacy",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn a_command_line_under_command_is_refused_where_there_is_no_such_file() {
    let dir = Dir::new("command");
    dir.file("with space", "");
    let say = |keys: &str| load(&[dir.file("f.yaml", format!("servers: {{a: {keys}}}\n"))], &env).map(drop).map_err(|p| p[0].to_string());
    let told = say("{command: npx -y some-package}").unwrap_err();
    assert!(told.ends_with("f.yaml:1:24: `command` is \"npx -y some-package\", and there is no such file; did you mean command: npx, args: [\"-y\", \"some-package\"]?"), "{told}");
    assert!(say("{command: /bin/sh -c true}").is_err());
    assert_eq!(say("{command: with space, cwd: .}"), Ok(()));
    assert_eq!(say("{command: /opt/my server/bin/start}"), Ok(()));
}

#[test]
fn files_of_clients_stand_beside_ours() {
    let dir = Dir::new("clients");
    let ours = dir.file("f.yaml", "servers: {files: {command: x}}\n");
    let entries = r#"{"mcpServers": {"files": {"command": "y", "args": ["a"]}, "far": {"url": "https://example.com/mcp"}}}"#;
    let cursor = dir.file(".cursor/mcp.json", entries);
    let all = load(&[ours.clone(), cursor.clone()], &env).unwrap();
    assert_eq!(names(&all), ["files (f.yaml)", "files (cursor)"]);
    assert_eq!((all.skipped.len(), all.skipped[0].name.as_str(), all.skipped[0].broken), (1, "far", false));
    assert_eq!(all.files, [ours, cursor]);
    assert_eq!(names(&load(&[dir.file("no-extension", entries)], &env).unwrap()), ["files"]);
    assert!(dir.wrong(&[dir.file("bad.json", "{\n  \"mcpServers\": [}\n")]).starts_with("bad.json:2:"));
}

#[test]
fn the_language_of_a_file_is_known_by_its_name_or_its_beginning() {
    let dir = Dir::new("language");
    for (name, text) in
        [("plain", ONE), ("x.conf", "# c\n\nservers:\n  a:\n    command: x\n"), ("x.yml", "{\"servers\": {\"a\": {\"command\": \"x\"}}}")]
    {
        assert_eq!(load(&[dir.file(name, text)], &env).unwrap().servers.len(), 1, "{name}");
    }
    assert!(load(&[Path::new("/nonexistent.json").to_owned()], &env).is_err());
}
