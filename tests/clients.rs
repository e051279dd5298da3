//! Files as MCP clients have them, in `tests/clients/`: what is found in each, and what is named.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use stdiowatch::config::clients::{self, Found, MAX_BYTES};
use stdiowatch::config::tree::Problem;
use stdiowatch::outside::process::EnvMode;
use stdiowatch::running::Watched;

/// `tests/clients`: `home` is a user's home there, and `project` a project of theirs.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// The environment that the files are read with.
fn env(name: &str) -> Option<String> {
    let value = match name {
        "HOME" => return Some(root().join("home").to_string_lossy().into_owned()),
        "PATH" => "/usr/bin",
        "USER" => "ada",
        "API_KEY" => "key-of-ours",
        "GITHUB_TOKEN" => "gh-1",
        "DB_URL" => "postgres://db",
        "STDIOWATCH_INPUT_GIVEN" => "tok-1",
        _ => return None,
    };
    Some(value.to_owned())
}

fn read(text: &str, file: &Path) -> Result<Found, Vec<Problem>> {
    clients::read(text, file, &|name, spec| Watched::new(name, spec, Duration::from_secs(60)), &env)
}

/// A line for each server (`NAME = COMMAND [ARGS] {ENVIRONMENT} mode @ DIRECTORY`) and for each entry
/// that was skipped (`LINE:COLUMN NAME - WHY`, `!` for a broken one).
fn shown(found: &Found) -> String {
    let mut lines = String::new();
    for server in &found.servers {
        let Watched { name, spec, times, .. } = &server.watched;
        let env: Vec<String> = spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let _ = write!(lines, "{name} = {} {:?} {{{}}}", spec.command, spec.args, env.join(", "));
        if spec.env_mode != EnvMode::Sdk {
            let _ = write!(lines, " {}", spec.env_mode.as_str());
        }
        if let Some(cwd) = &spec.cwd {
            let _ = write!(lines, " @ {}", cwd.display());
        }
        if times.startup != Duration::from_secs(30) {
            let _ = write!(lines, " in {:?} of {:?}", times.startup, times.total);
        }
        lines.push('\n');
    }
    for skipped in &found.skipped {
        let mark = if skipped.broken { '!' } else { '-' };
        let _ = writeln!(lines, "{} {} {mark} {}", skipped.at, skipped.name, skipped.why);
    }
    let home = root().join("home").to_string_lossy().into_owned();
    let project = root().join("project").to_string_lossy().into_owned();
    lines.replace(&home, "~").replace(&project, "P")
}

const EXPECTED: [(&str, &str); 22] = [
    (
        "home/.config/Claude/claude_desktop_config.json",
        r#"filesystem = npx ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada/Documents", "/home/ada/My Pictures"] {}
        brave-search = docker ["run", "-i", "--rm", "-e", "BRAVE_API_KEY", "mcp/brave-search"] {BRAVE_API_KEY=BSA-0123456789}
        everything = npx -y @modelcontextprotocol/server-everything [] {}
        17:15 sqlite ! `args` is a text; wanted a list of texts"#,
    ),
    (
        "home/.claude.json",
        r#"context7 = npx ["-y", "@upstash/context7-mcp@latest"] {}
        context7@shop = ./node_modules/.bin/context7-mcp [] {CONTEXT7_API_KEY=none} @ /work/shop
        12:7 sentry - it is remote (http), and only servers on stdio can be watched
        27:9 db@shop - it is switched off by `disabledMcpServers`"#,
    ),
    (
        "project/.mcp.json",
        r#"api = python3 ["-m", "shop.mcp", "--base", "https://api.example.com/mcp", "--level=$LEVEL"] {API_KEY=key-of-ours, CACHE_DIR=/tmp/ada-cache} @ P
        git-local = uvx ["mcp-server-git", "--repository", "."] {} @ P
        12:7 github/mcp - it is remote (http), and only servers on stdio can be watched
        23:33 reports ! the environment variable REPORTS_TOKEN is not set, and it has no default as in ${NAME:-default}"#,
    ),
    (
        "home/.cursor/mcp.json",
        r#"playwright = npx ["@playwright/mcp@latest", "--user-data-dir", "~/.cache/playwright"] {}
        4:43 here - ${workspaceFolder} is the folder that is open in the editor, and this file belongs to no project
        5:17 linear - it is remote (`url`), and only servers on stdio can be watched"#,
    ),
    (
        "project/.cursor/mcp.json",
        r#"local-server = python ["P/tools/mcp_server.py", "--name", "project"] {API_KEY=key-of-ours, DATABASE_URL=postgres://localhost/shop, LOG_LEVEL=debug, SEPARATOR=//} @ P
        15:7 remote-server - it is remote (`url`), and only servers on stdio can be watched
        19:66 no-file ! `envFile`: P/.env.missing: there is no such file"#,
    ),
    (
        "home/.codeium/windsurf/mcp_config.json",
        r#"github = npx ["-y", "@modelcontextprotocol/server-github"] {GITHUB_PERSONAL_ACCESS_TOKEN=gh-1}
        12:7 remote-http-mcp - it is remote (`serverUrl`), and only servers on stdio can be watched
        18:7 puppeteer - it is switched off by `disabled: true`"#,
    ),
    (
        "home/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        r#"weather = node ["/home/ada/Documents/Cline/MCP/weather-server/build/index.js"] {OPENWEATHER_API_KEY=k-1, PORT=8080, VERBOSE=true}
        both = node ["a.js"] {}
        13:104 events - it is remote (sse), and only servers on stdio can be watched
        14:51 off - it is switched off by `disabled: true`
        15:5 half ! it has neither `command` nor `url`"#,
    ),
    (
        "project/.roo/mcp.json",
        r#"memory = npx ["-y", "@modelcontextprotocol/server-memory"] {MEMORY_FILE_PATH=P/.roo/memory.jsonl, TOKEN=key-of-ours} @ P
        12:15 docs - it is remote (streamable-http), and only servers on stdio can be watched"#,
    ),
    (
        "home/.lmstudio/mcp.json",
        r#"time = uvx ["mcp-server-time"] {}
        4:7 hf-mcp-server - it is remote (`url`), and only servers on stdio can be watched
        7:5 time ! its name stands again at 8:5, and clients take the last"#,
    ),
    (
        "home/.gemini/settings.json",
        r#"pythonTools = python ["-m", "my_mcp_server", "--port", "8080", "--price", "$5"] {API_KEY=key-of-ours, DATABASE_URL=postgres://db/main} @ ~/.gemini/mcp-servers/python
        13:21 httpServer - it is remote (`httpUrl`), and only servers on stdio can be watched
        14:22 eventServer - it is remote (`url`), and only servers on stdio can be watched"#,
    ),
    (
        "project/.gemini/settings.json",
        r#"nodeServer = node ["dist/server.js", "--verbose"] {} @ P/mcp-servers/node
        10:130 docker ! the environment variable NO_SUCH_KEY is not set"#,
    ),
    (
        "home/.config/amp/settings.json",
        r#"notra = npx ["-y", "@usenotra/mcp"] {NOTRA_API_KEY=key-of-ours}
        4:17 remote - it is remote (`url`), and only servers on stdio can be watched"#,
    ),
    (
        "project/.vscode/mcp.json",
        r#"asked = npx ["-y", "asked-mcp", "--token", "tok-1"] {} inherit @ P
        my-server = P/bin/server ["~/data", "~/more", "${HOME}", "P"] {API_KEY=key-of-ours, DATABASE_URL=postgres://localhost/shop, LOG_LEVEL=debug, PATH=/usr/bin:/opt/tools} inherit @ P/sub
        plain = ~/bin/plain ["${HOME}"] {API_KEY=of-the-file, DATABASE_URL=postgres://localhost/shop, LOG_LEVEL=debug, NUMBER=1, PATH=/usr/bin:/opt/tools} inherit @ P
        13:38 Perplexity - it asks for the input "perplexity-key" (Perplexity API Key): give it as the environment variable STDIOWATCH_INPUT_PERPLEXITY_KEY
        26:28 python - only the editor knows what ${command:python.interpreterPath} is
        27:17 github - it is remote (http), and only servers on stdio can be watched
        28:5 nothing ! it has neither `command` nor `url`"#,
    ),
    (
        "project/.vscode/settings.json",
        r#"time = python ["-m", "mcp_server_time", "--local-timezone=America/Los_Angeles"] {} inherit @ P
        7:51 cloud - it asks for the input "region" (Which region): give it as the environment variable STDIOWATCH_INPUT_REGION"#,
    ),
    (
        "home/.config/Code/User/settings.json",
        r#"context7 = npx ["-y", "@upstash/context7-mcp@latest"] {} inherit @ ~
        relative = node ["x.js"] {} inherit @ ~/tools
        playwright = npx ["-y", "@playwright/mcp@latest", "--headless", "--isolated"] {}
        9:18 semgrep - it is remote (`url`), and only servers on stdio can be watched"#,
    ),
    (
        "home/.config/Code/User/mcp.json",
        r#"everything = npx ["-y", "@modelcontextprotocol/server-everything"] {} inherit @ ~
        4:41 open - ${workspaceFolder} is the folder that is open in the editor, and this file belongs to no project"#,
    ),
    ("project/.devcontainer/devcontainer.json", r#"playwright = npx ["-y", "@microsoft/mcp-server-playwright"] {} inherit @ P"#),
    (
        "home/.config/zed/settings.json",
        r#"local-mcp-server = some-command ["arg-1", "${HOME}"] {KEY=$VALUE} inherit
        flat = uvx ["mcp-server-git"] {} inherit
        12:34 off - it is switched off by `enabled: false`
        13:5 mcp-server-github - its command comes from an extension of Zed
        14:5 postgres-context-server - its command comes from an extension of Zed
        15:17 remote - it is remote (`url`), and only servers on stdio can be watched"#,
    ),
    (
        "project/.zed/settings.json",
        r#"old = ./bin/context-server ["run"] {DEBUG=1} inherit @ P
        older = node ["x.js"] {} inherit @ P
        8:30 pathless ! `command` has no `path`"#,
    ),
    (
        "home/.codex/config.toml",
        r#"context7 = npx ["-y", "@upstash/context7-mcp"] {MY_ENV_VAR=${NOT_FILLED}} in 20s of 180s
        docs = docs-server [] {API_KEY=key-of-ours, GITHUB_TOKEN=gh-1, LANG=C} @ /srv/docs in 1.5s of 180s
        slow = slow-server [] {} in 300.5s of 450.5s
        25:1 figma - it is remote (`url`), and only servers on stdio can be watched
        32:1 chrome_devtools - it is switched off by `enabled: false`
        36:1 mixed ! `command` and `url` stand together, which Codex refuses: wanted one of them
        40:23 never ! `startup_timeout_sec` is no time; wanted a number above 0, and a day at the most"#,
    ),
    (
        "home/.config/opencode/opencode.jsonc",
        r#"my-local-mcp-server = npx ["-y", "my-mcp-command", "{\"json\": {}}"] {MY_ENV_VAR=key-of-ours, TOKEN=s3cret-of-a-file} inherit
        10:24 my-remote-mcp - it is remote (remote), and only servers on stdio can be watched
        11:20 inherited - it is switched off by `enabled: false`
        12:47 one-text ! `command` is a text; wanted a list ["PROGRAM", "ARG"]"#,
    ),
    (
        "project/opencode.json",
        r#"my-server = npx ["-y", "example-mcp-server"] {} inherit @ P/packages/a
        6:55 resting - it is switched off by `disabled: true`
        7:16 far - it is remote (remote), and only servers on stdio can be watched"#,
    ),
];

#[test]
fn every_file_is_read_as_its_client_reads_it() {
    let mut wrong = String::new();
    for (name, wanted) in EXPECTED {
        let path = root().join(name);
        let text = fs::read_to_string(&path).unwrap();
        let seen = match read(&text, &path) {
            Ok(found) => shown(&found),
            Err(problems) => format!("{problems:?}\n"),
        };
        let wanted: String = wanted.lines().map(|line| format!("{}\n", line.trim())).collect();
        if seen != wanted {
            let _ = write!(wrong, "{name}\n--- wanted\n{wanted}--- found\n{seen}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The same for one entry, or for more, in a file of this name.
fn of(file: &str, text: &str) -> String {
    match read(text, Path::new(file)) {
        Ok(found) => shown(&found),
        Err(problems) => problems.iter().map(|problem| format!("{} {}\n", problem.at, problem.message)).collect(),
    }
}

#[test]
fn a_bad_entry_is_named_and_loses_no_other() {
    for (entry, wanted) in [
        (r#""npx""#, "1:22 a ! it is a text; wanted a mapping with `command`"),
        (r#"{"command": 5}"#, "1:34 a ! `command` is a number; wanted the program to run, as a text"),
        (r#"{"command": ["npx", "-y"]}"#, "1:34 a ! `command` is a list; wanted a text, and the arguments in `args`"),
        (r#"{"command": " "}"#, "1:34 a ! `command` is empty"),
        (r#"{"command": null}"#, "1:17 a ! it has neither `command` nor `url`"),
        (r#"{"command": "a\u0000b"}"#, "1:34 a ! it holds a NUL, which no program can be given"),
        (r#"{"command": "x", "args": [8080]}"#, "1:48 a ! an argument is a number; wanted a text, in quotes"),
        (r#"{"command": "x", "args": ["a\u0000"]}"#, "1:48 a ! it holds a NUL, which no program can be given"),
        (r#"{"command": "x", "env": ["A=1"]}"#, "1:46 a ! `env` is a list; wanted a mapping from names to texts"),
        (r#"{"command": "x", "env": {"A": {}}}"#, "1:52 a ! the value of A in `env` is a mapping; wanted a text"),
        (r#"{"command": "x", "env": {"A=B": "1"}}"#, "1:47 a ! \"A=…\" cannot be the name of a variable"),
        (r#"{"command": "x", "env": {"A": "\u0000"}}"#, "1:52 a ! it holds a NUL, which no variable can"),
        (r#"{"command": "x", "cwd": 5}"#, "1:46 a ! `cwd` is a number; wanted a path"),
        (r#"{"command": "x", "disabled": "yes"}"#, "1:51 a ! `disabled` is a text; wanted true or false"),
        (r#"{"type": "stdio", "url": "http://x"}"#, "1:17 a ! it is said to be on stdio, and has no `command`"),
        (r#"{"type": "sdk", "name": "x"}"#, "1:23 a - its kind is \"sdk\", which is not stdio"),
        (r#"{"command": "x", "envFile": "/"}"#, "1:50 a ! `envFile`: /: it is a directory"),
        (
            r#"{"command": "x", "envFile": "${NO_SUCH_KEY}"}"#,
            "1:50 a ! the environment variable NO_SUCH_KEY is not set, and it has no default as in ${NAME:-default}",
        ),
    ] {
        let text = format!(r#"{{"mcpServers": {{"a": {entry}, "b": {{"command": "y"}}}}}}"#);
        assert_eq!(of("/x/mcp.json", &text), format!("b = y [] {{}}\n{wanted}\n"), "{entry}");
    }
}

#[test]
fn a_misspelt_key_is_told_with_what_was_meant_and_its_place() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "agrs": ["y"]}, "b": {"comand": "y"}, "c": {"url": "http://x", "comand": "y"}}}"#;
    let found = read(text, Path::new("/x/mcp.json")).unwrap();
    let slips: Vec<String> = found.slips.iter().map(|slip| format!("{} {}", slip.at, slip.message)).collect();
    assert_eq!(slips, ["1:39 clients pass over `agrs`; did you mean `args`?"]);
    let wanted = "a = x [] {}\n1:55 b ! it has neither `command` nor `url`; 1:61: clients pass over `comand`; did you mean `command`?\n1:83 c - it is remote (`url`), and only servers on stdio can be watched\n";
    assert_eq!(shown(&found), wanted);
    assert_eq!(of("/x/mcp.json", r#"{"mcpServer": {"a": {"command": "x"}}}"#), "1:2 `mcpServer` names no servers; did you mean `mcpServers`?\n");
    assert_eq!(of("/x/config.toml", "[mcp_server.a]\ncommand = \"x\"\n"), "1:2 `mcp_server` names no servers; did you mean `mcp_servers`?\n");
}

#[test]
fn the_files_that_entries_point_at_are_told() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "envFile": "/nowhere/a.env"}, "b": {"command": "y", "envFile": "b.env"}}}"#;
    assert_eq!(
        read(text, Path::new("/x/mcp.json")).unwrap().files,
        [Path::new("/nowhere/a.env"), Path::new("/x/b.env")],
        "those that are missing too"
    );
    let text = r#"{"mcp": {"c": {"type": "local", "command": ["{file:/nowhere/c}"]}}}"#;
    assert_eq!(read(text, Path::new("/x/opencode.json")).unwrap().files, [Path::new("/nowhere/c")]);
}

#[test]
fn placeholders() {
    for (arg, wanted) in [
        ("${USER}${API_KEY}", "adakey-of-ours"),
        ("${NO_SUCH_KEY:-}|${NO_SUCH_KEY:-a:-b}|${USER:-x}", "|a:-b|ada"),
        // As Claude Code does it: the first brace closes.
        ("${NO_SUCH_KEY:-${USER}}", "${USER}"),
        ("$USER $$ ${} ${USER", "$USER $$ ${} ${USER"),
        ("${not a name} ${5} ${unknown:x}", "${not a name} ${5} ${unknown:x}"),
        ("${env:USER}", "ada"),
    ] {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "x", "args": [{arg:?}]}}}}}}"#);
        assert_eq!(of("/x/mcp.json", &text), format!("a = x [{wanted:?}] {{}}\n"), "{arg}");
    }
    let of_a_file = r#"{"mcpServers": {"a": {"command": "x", "args": ["${file:/run/key}"]}}}"#;
    let wanted = "1:48 a - ${file:/run/key} takes its value from a file, which is not done here; ${NAME} takes it from a variable\n";
    assert_eq!(of("/x/mcp_config.json", of_a_file), wanted);
    let long = format!(r#"{{"mcpServers": {{"a": {{"command": "x", "args": ["{}"]}}}}}}"#, "${API_KEY}".repeat(12_000));
    assert_eq!(of("/x/mcp.json", &long), "1:48 a ! a text of 128 KiB or more is more than Linux hands to a program\n");
}

#[test]
fn an_input_that_is_not_described_is_a_mistake() {
    let of_input = |id: &str| {
        let text =
            format!(r#"{{"inputs": [{{"type": "promptString", "id": "perplexity-key"}}], "servers": {{"a": {{"command": "${{input:{id}}}"}}}}}}"#);
        of("/x/.vscode/mcp.json", &text)
    };
    assert_eq!(of_input("given"), "a = tok-1 [] {} inherit @ /x\n", "whoever gives a value means it");
    assert!(
        of_input("perplexity-key").starts_with("1:93 a - it asks for the input \"perplexity-key\": give it as"),
        "{}",
        of_input("perplexity-key")
    );
    let (slip, other) = (of_input("perplexty_key"), of_input("token"));
    assert_eq!(slip, "1:93 a ! it asks for the input \"perplexty_key\", which `inputs` does not have; did you mean \"perplexity-key\"?\n");
    assert_eq!(other, "1:93 a ! it asks for the input \"token\", which `inputs` does not have\n");
}

#[test]
fn a_key_that_stands_twice_counts_once() {
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}},\n\"mcpServers\": {\"b\": {\"command\": \"y\", \"command\": \"z\"}}}";
    assert_eq!(of("/x/mcp.json", text), "b = z [] {}\n1:17 a ! the mapping that it is in stands again at 2:1, and clients take the last\n");
}

#[test]
fn names_are_made_possible() {
    let text = r#"{"mcpServers": {"github/mcp": {"command": "a"}, "github-mcp": {"command": "b"}, "x\u0000\u001b[2J": {"command": "c"},
        "y\n": {}, "": {"command": "d"}}, "amp.mcpServers": {"github-mcp": {"command": "e"}}}"#;
    let wanted = "github-mcp-2 = a [] {}\ngithub-mcp = b [] {}\nx--[2J = c [] {}\ngithub-mcp-3 = e [] {}\n\
                  2:9 y\\n ! it has neither `command` nor `url`\n2:20  ! it has no name\n";
    assert_eq!(of("/x/mcp.json", text), wanted);
}

#[test]
fn what_makes_a_file_useless_is_told_with_its_place() {
    for (file, text, wanted) in [
        ("/x/mcp.json", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\" \"args\": []}\n", "3:25 this is no JSON: expected comma\n"),
        ("/x/mcp.json", "{\"mcpServers\": [1]}", "1:16 `mcpServers` is a list; wanted a mapping from names to servers\n"),
        (
            "/x/mcp.json",
            "{\"mcpServers\": 1, \"servers\": 2}",
            "1:16 `mcpServers` is a number; wanted a mapping from names to servers\n1:30 `servers` is a number; wanted a mapping from names to servers\n",
        ),
        (
            "/x/mcp.json",
            "// nothing\n{\"mcp\": {\"inputs\": []}}",
            "2:1 no servers are named here: wanted `mcpServers`, `servers` (VS Code), `context_servers` (Zed), `mcp` (opencode) or `amp.mcpServers`\n",
        ),
        ("/x/config.toml", "[servers.x]\n", "1:1 no servers are named here: wanted tables `[mcp_servers.NAME]`, as Codex has them\n"),
        ("/x/config.toml", "[mcp_servers.a]\ncommand = npx\n", "2:11 this is no TOML: string values must be quoted\n"),
    ] {
        assert_eq!(of(file, text), wanted, "{text}");
    }
    assert_eq!(of("/x/mcp.json", "{\"mcpServers\": {}}"), "");
    assert_eq!(of("/x/mcp.json", "{\"mcpServers\": null}"), "");
}

#[test]
fn encodings() {
    let text = "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"command\": \"x\"},\r\n\t\t\"é\": {\"url\": \"http://x\"}\r\n\t}\r\n}\r\n";
    let wanted = "a = x [] {}\n4:9 é - it is remote (`url`), and only servers on stdio can be watched\n";
    assert_eq!(of("/x/mcp.json", text), wanted);
    assert_eq!(of("/x/mcp.json", &format!("\u{feff}{text}")), wanted);
    assert_eq!(clients::decode(format!("\u{feff}{text}").as_bytes()), Ok(text));

    let refused = |bytes: &[u8]| clients::decode(bytes).map_err(|problem| format!("{} {}", problem.at, problem.message)).unwrap_err();
    let hint = "1:1 the file is UTF-16; wanted UTF-8: save it with that encoding";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [little.clone(), big.clone(), [vec![0xff, 0xfe], little].concat(), [vec![0xfe, 0xff], big].concat()] {
        assert_eq!(refused(&bytes), hint);
    }
    assert_eq!(refused(b"{\"a\":\n \"\xc3\xa9\xff\"}"), "2:4 a byte here is not UTF-8");
}

#[test]
fn the_size_of_a_file_is_bounded() {
    let large = " ".repeat(50_000_000);
    let wanted = format!("1:1 the file has 50000000 bytes; {MAX_BYTES} are read at the most\n");
    assert_eq!(of("/x/mcp.json", &large), wanted);
    for text in ["[".repeat(200_000), "{\"mcpServers\":".repeat(200_000), format!("a = {}", "[".repeat(200_000))] {
        assert!(read(&text, Path::new("/x/mcp.json")).is_err());
        assert!(read(&text, Path::new("/x/config.toml")).is_err());
    }
    let entries: Vec<String> = (0..20_000).map(|n| format!("\"s/{n}\": {{\"command\": \"x\"}}")).collect();
    let many = read(&format!("{{\"mcpServers\": {{{}}}}}", entries.join(",")), Path::new("/x/mcp.json")).unwrap();
    assert_eq!(many.servers.len(), 20_000);
}

#[test]
fn files_are_known_by_their_names() {
    for (file, wanted) in [("/x/.mcp.json", true), ("mcp.JSON", true), ("a.jsonc", true), ("config.toml", true), ("a.yaml", false), ("json", false)] {
        assert_eq!(clients::is_named_like_one(Path::new(file)), wanted, "{file}");
    }
}

/// The examples of the page for users: the name of the file that each is, and its text.
fn examples(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.filter_map(|block| block.split_once('\n')).filter_map(|(head, text)| Some((head.split_once(' ')?.1, text))).collect()
}

#[test]
fn the_page_for_users_tells_the_truth() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/clients.md")).unwrap();
    let given = |name: &str| if name == "STDIOWATCH_INPUT_PERPLEXITY_KEY" { Some("given".to_owned()) } else { env(name) };
    let examples = examples(&page);
    assert_eq!(examples.len(), 3);
    for (file, text) in examples {
        let found = clients::read(text, &Path::new("/work/p").join(file), &|name, spec| Watched::new(name, spec, Duration::from_secs(60)), &given);
        let found = found.unwrap_or_else(|problems| panic!("{file}: {problems:?}"));
        assert_eq!((found.servers.len(), found.skipped), (1, Vec::new()), "{file}");
        assert_eq!(found.servers[0].watched.spec.cwd.as_deref(), Some(Path::new("/work/p")), "{file}");
    }
    // Each file that is tried here is named there.
    for (file, _) in EXPECTED {
        let shown = file.strip_prefix("home/").map_or_else(|| file.replace("project/", ""), |rest| format!("~/{rest}"));
        assert!(page.contains(&format!("`{shown}`")), "docs/clients.md does not name {shown}");
    }
}

/// A change to a document: at this part of it (in 65536ths), this many bytes become these.
type Change = (u16, u8, Vec<u8>);

fn changed(text: &str, changes: &[Change]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (at, length, new) in changes {
        let at = bytes.len() * usize::from(*at) / 65536;
        let end = (at + usize::from(*length)).min(bytes.len());
        bytes.splice(at..end, new.iter().copied());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "null",
        "${",
        "}",
        "\\u0000",
        "\\ud800",
        "/*",
        "//",
        "\n",
        "\u{feff}",
        "\"command\":",
        "é",
        "1e999",
        "$A",
        "=",
    ];
    prop_oneof![proptest::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec()), proptest::collection::vec(any::<u8>(), 0..6)]
}

proptest! {
    #[test]
    fn nothing_in_a_file_is_a_surprise(which in 0..EXPECTED.len(), changes in proptest::collection::vec((any::<u16>(), 0..20_u8, pieces()), 0..6)) {
        let path = root().join(EXPECTED[which].0);
        let text = changed(&fs::read_to_string(&path).unwrap(), &changes);
        let lines = text.split('\n').count();
        match read(&text, &path) {
            Ok(found) => {
                let names: BTreeSet<&str> = found.servers.iter().map(|server| server.watched.name.as_str()).collect();
                prop_assert_eq!(names.len(), found.servers.len());
                for server in &found.servers {
                    let spec = &server.watched.spec;
                    prop_assert!(!spec.command.trim().is_empty());
                    let texts = spec.args.iter().chain([&spec.command]).chain(spec.env.iter().flat_map(|(name, value)| [name, value]));
                    prop_assert!(!texts.into_iter().any(|text| text.contains('\0')));
                    prop_assert!(usize::try_from(server.at.line).unwrap() <= lines);
                }
                for skipped in &found.skipped {
                    prop_assert!(usize::try_from(skipped.at.line).unwrap() <= lines);
                    prop_assert!(!skipped.why.contains(char::is_control) && !skipped.name.contains(char::is_control));
                }
            }
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                prop_assert!(problems.iter().all(|problem| usize::try_from(problem.at.line).unwrap() <= lines && !problem.message.contains(char::is_control)));
            }
        }
    }
}
