//! Every mistake with the words that it is told in.

use super::{read, server};

/// A whole file, and what is said of it.
const FILES: &[(&str, &str)] = &[
    ("", "1:1: there is nothing in it; a configuration has at least `servers`"),
    ("# only a comment\n", "1:1: there is nothing in it; a configuration has at least `servers`"),
    ("just text\n", "1:1: the document is a text; write a mapping, as in servers: {files: {command: npx}}"),
    ("- a\n- b\n", "1:1: the document is a list; write a mapping, as in servers: {files: {command: npx}}"),
    ("listen: :1\n", "1:1: a configuration has no `servers`; write a mapping from names to servers, as in {files: {command: npx}}"),
    ("servers:\n", "1:1: `servers` is nothing; write a mapping from names to servers, as in {files: {command: npx}}"),
    ("servers: {}\n", "1:10: `servers` is empty; name at least one server, as in {files: {command: npx}}"),
    ("servers: [a]\n", "1:10: `servers` is a list; write a mapping from names to servers, as in {files: {command: npx}}"),
    ("servers: {a: npx}\n", "1:14: `servers.a` is a text; write a mapping, as in {command: npx, args: [\"-y\", \"some-package\"]}"),
    ("servers: {a: }\n", "1:11: `servers.a` is nothing; write a mapping, as in {command: npx, args: [\"-y\", \"some-package\"]}"),
    ("servers: {a: {}}\n", "1:14: `servers.a` has no `command`; write a command, as in npx"),
    ("servers: {a: {command: x}, a: {command: y}}\n", "1:28: \"a\" stands here a second time; the first is at 1:11"),
    ("servers: {a/b: {command: x}}\n", "1:11: \"a/b\": a server name may not contain '/'"),
    ("servers: {\"\": {command: x}}\n", "1:11: \"\": a server name may not be empty"),
    ("servers: {\"a\\tb\": {command: x}}\n", "1:11: \"a\\tb\": a server name may not contain '\\t'"),
    (
        "mcpServers: {a: {command: x}}\n",
        "1:1: unknown key \"mcpServers\" in a configuration; that is how files of MCP clients say it; here it is `servers`",
    ),
    ("servers: {a: {command: x}}\nlistn: :1\n", "2:1: unknown key \"listn\" in a configuration; did you mean `listen`?"),
    (
        "servers: {a: {command: x}}\ncolour: red\n",
        "2:1: unknown key \"colour\" in a configuration; the keys there are listen, state_dir, web_config, show_private, defaults, servers",
    ),
    (
        "listen: localhost\nservers: {a: {command: x}}\n",
        "1:9: `listen` is \"localhost\"; an address is HOST:PORT, as in 127.0.0.1:10779, [::1]:10779, or :10779 for every interface",
    ),
    ("listen: 10779\nservers: {a: {command: x}}\n", "1:9: `listen` is a number; write an address, as in 127.0.0.1:10779"),
    (
        "listen: 127.0.0.1:99999\nservers: {a: {command: x}}\n",
        "1:9: `listen` is \"127.0.0.1:99999\"; an address is HOST:PORT, as in 127.0.0.1:10779, [::1]:10779, or :10779 for every interface",
    ),
    (
        "listen: ::1:80\nservers: {a: {command: x}}\n",
        "1:9: `listen` is \"::1:80\"; an address is HOST:PORT, as in 127.0.0.1:10779, [::1]:10779, or :10779 for every interface",
    ),
    ("state_dir: ''\nservers: {a: {command: x}}\n", "1:12: `state_dir` is empty; write a path"),
    ("state_dir: ~\nservers: {a: {command: x}}\n", "1:1: `state_dir` is nothing; write a path"),
    ("defaults: {command: x}\nservers: {a: {command: x}}\n", "1:12: unknown key \"command\" in `defaults`; a command is each server's own"),
    ("defaults: 60s\nservers: {a: {command: x}}\n", "1:11: `defaults` is a text; write a mapping, as in {interval: 60s}"),
    (
        "defaults: {interval: 5}\nservers: {a: {command: x}, b: {command: y}}\n",
        "1:22: `defaults.interval` is a number; a duration has a unit, as in 5s",
    ),
    ("servers: {a: {command: x}}\n---\nservers: {}\n", "2:1: a second document begins here; a configuration is one document"),
    (
        "servers:\n\ta: {command: x}\n",
        "2:2: not YAML: tabs disallowed within this context (block indentation); YAML is indented with spaces, never with tabs",
    ),
    ("servers:\n  a: {command: x\n", "3:1: not YAML: while parsing a flow mapping, did not find expected ',' or '}'"),
    (
        "servers: a: b\n",
        "1:11: not YAML: mapping values are not allowed in this context; a text with \": \" in it has to stand in quotes, and keys of one mapping below each other",
    ),
    ("servers: @x\n", "1:10: not YAML: unexpected character: `@'; a text that begins with it has to stand in quotes"),
    (
        "servers: {a: {command: x, env: {K: ${API_KEY}}}}\n",
        "1:37: not YAML: while parsing a flow mapping, did not find expected ',' or '}'; inside of { } and [ ] write \"${NAME}\" in quotes",
    ),
    (
        "servers: *x\n",
        "1:10: not YAML: while parsing node, found unknown anchor; no anchor with this name stands before it; a text that begins with * has to stand in quotes",
    ),
    ("servers: &x {a: *x}\n", "1:17: an alias cannot stand inside of what it stands for"),
    ("servers: {a: {command: !secret x}}\n", "1:24: the tag !secret means nothing here"),
    ("servers: {a: {command: x\u{7}}}\n", "1:25: a control character (U+0007) may not stand in YAML; in double quotes it is written \\x07"),
    (
        "servers: {? [a] : {command: x}}\n",
        "1:10: `servers` is empty; name at least one server, as in {files: {command: npx}}\n1:13: a key has to be a text, and this is a list",
    ),
    ("servers: {a: {<<: 5, command: x}}\n", "1:19: `<<` takes a mapping, or a list of mappings"),
    ("servers: {a: {command: \"x}}\n", "1:24: not YAML: while scanning a quoted scalar, found unexpected end of stream; a quote is not closed"),
    (
        "servers: {a: {command: \"C:\\dir\"}}\n",
        "1:24: not YAML: while parsing a quoted scalar, found unknown escape character; in double quotes a backslash is written twice",
    ),
    (
        "interval: 60s\nservers: {a: {command: x}}\n",
        "1:1: unknown key \"interval\" in a configuration; `interval` belongs under `defaults`, for all servers, or below a server's name in `servers`",
    ),
    ("args: [a]\nservers: {a: {command: x}}\n", "1:1: unknown key \"args\" in a configuration; `args` belongs below a server's name in `servers`"),
    ("a: {command: x}\nservers: {b: {command: x}}\n", "1:1: unknown key \"a\" in a configuration; a server stands below `servers`, indented"),
    (
        "servers:\n  a: {command: x}\n  args: [y]\n  env: {K: v}\n",
        "3:3: `servers.args` is a list; `args` is a key of a server: indent it below the server's name\n4:3: `servers.env` is a mapping; `env` is a key of a server: indent it below the server's name",
    ),
    (
        "servers:\n  a:\n    command: x\n   args: [y]\n",
        "4:4: not YAML: while parsing a block mapping, did not find expected key; keys of one mapping stand right below each other: this line may be indented by too much or too little",
    ),
    // Everything at once, in the order of the places.
    (
        "listen: x\nservers:\n  a:\n    comand: x\n    interval: 5\n  b/c: {}\n  d: {command: y, era: old}\n",
        "1:9: `listen` is \"x\"; an address is HOST:PORT, as in 127.0.0.1:10779, [::1]:10779, or :10779 for every interface\n4:5: unknown key \"comand\" in a server; did you mean `command`?\n5:15: `interval` is a number; a duration has a unit, as in 5s\n6:3: \"b/c\": a server name may not contain '/'\n7:24: `era` is \"old\"; write auto, modern or legacy",
    ),
];

/// Keys of one server, which begin at 4:5, and what is said of them.
const SERVERS: &[(&str, &str)] = &[
    ("intervall: 60s", "4:5: unknown key \"intervall\" in a server; did you mean `interval`?"),
    ("enviroment: {A: b}", "4:5: unknown key \"enviroment\" in a server; here it is `env`"),
    ("envMode: sdk", "4:5: unknown key \"envMode\" in a server; did you mean `env_mode`?"),
    (
        "url: https://example.com/mcp",
        "4:5: unknown key \"url\" in a server; a server that is reached over HTTP is monitored over HTTP; here it is a `command`",
    ),
    ("timeout: 5s", "4:5: unknown key \"timeout\" in a server; here it is `timeouts: {startup: 30s, request: 10s, total: 180s}`"),
    (
        "frobnicate: 1",
        "4:5: unknown key \"frobnicate\" in a server; the keys there are command, args, env, env_from_file, env_mode, cwd, stdio, era, interval, timeouts, shutdown, objectives, thresholds, severity, schema, call, leftovers, user, no_new_privs, private_tmp, cgroup, limits",
    ),
    ("command: y", "4:5: \"command\" stands here a second time; the first is at 3:5"),
    ("args: a b", "4:11: `args` is a text; write a list, here [\"a\", \"b\"]"),
    ("args: [a, true]", "4:15: `args[1]` is a boolean; write it in quotes, \"true\""),
    ("args: [a, , b]", "4:15: not YAML: while parsing a node, did not find expected node content"),
    ("args: [[a]]", "4:12: `args[0]` is a list; write a text or a number"),
    ("args: [\"a\\0b\"]", "4:12: `args[0]` contains a NUL byte, which no argument and no variable can"),
    ("env: [A=1]", "4:10: `env` is a list; write a mapping from names to values, as in {NAME: value}"),
    ("env: {A: yes, B: true}", "4:22: `env.B` is a boolean; write it in quotes, \"true\""),
    ("env: {A: }", "4:11: `env.A` is nothing; write it in quotes, \"\" for an empty text"),
    ("env: {A: {B: c}}", "4:14: `env.A` is a mapping; write a text or a number"),
    ("env: {A=B: c}", "4:11: \"A=B\": the name of a variable may not contain '='"),
    ("env: {\"\": c}", "4:11: the name of a variable is empty"),
    ("env: {\"${API_KEY}\": c}", "4:11: \"${API_KEY}\": the name of a variable is never expanded"),
    ("env: {A: \"${NONE}\"}", "4:14: `env.A`: the variable NONE is not set, and there is no default for it as in ${NONE:-default}"),
    ("env: {A: \"${API_KEY\"}", "4:14: `env.A`: ${ has no } after it; a dollar that is no variable is written $$"),
    ("env: {A: \"${env:API_KEY}\"}", "4:14: `env.A`: ${env:API_KEY} is no variable; write ${NAME} or ${NAME:-default}, and $$ for a dollar"),
    ("env_from_file: {A: /nonexistent/a}", "4:24: /nonexistent/a: there is no such file"),
    (
        "env_from_file: [/nonexistent/a, relative]",
        "4:21: /nonexistent/a: there is no such file\n4:37: /etc/stdiowatch/relative: there is no such file",
    ),
    ("env_from_file: 5", "4:20: `env_from_file` is a number; write a mapping from names to paths, as in {NAME: path}, or a path, or a list of paths"),
    ("env_from_file: {A: [b]}", "4:24: `env_from_file.A` is a list; write a path"),
    ("env_mode: none", "4:15: `env_mode` is \"none\"; write sdk, inherit or clean"),
    ("env_mode: SDK", "4:15: `env_mode` is \"SDK\"; did you mean `sdk`?"),
    ("cwd: [a]", "4:10: `cwd` is a list; write a path"),
    ("cwd: 5", "4:10: `cwd` is a number; write it in quotes, \"5\""),
    ("cwd: ''", "4:10: `cwd` is empty; write a path"),
    ("stdio: sockets", "4:12: `stdio` is \"sockets\"; write pipe or socketpair"),
    ("era: 2025", "4:10: `era` is a number; write auto, modern or legacy"),
    ("interval: 60", "4:15: `interval` is a number; a duration has a unit, as in 60s"),
    ("interval: 1 minute", "4:15: `interval` is \"1 minute\": \" minute\" is no unit of time; write it with a unit, as in 1500ms, 5s, 2m or 1h"),
    ("interval: 500ms", "4:15: `interval` is \"500ms\": a server is launched at most once a second; give 1s or more"),
    ("interval: 2y", "4:15: `interval` is \"2y\": \"y\" is no unit of time; write it with a unit, as in 1500ms, 5s, 2m or 1h"),
    ("interval: -5s", "4:15: `interval` is \"-5s\": a duration cannot be negative; write it with a unit, as in 1500ms, 5s, 2m or 1h"),
    ("interval: 99999h", "4:15: `interval` is \"99999h\": longer than a year"),
    ("interval: ${NONE}", "4:15: `interval`: the variable NONE is not set, and there is no default for it as in ${NONE:-default}"),
    ("interval: ${API_KEY}", "4:15: `interval` is \"${API_KEY}\", whose value is not a duration, as in 1500ms, 5s, 2m or 1h"),
    ("interval: ${NONE:-5}", "4:15: `interval` is \"5\": the unit is missing; write it with a unit, as in 1500ms, 5s, 2m or 1h"),
    ("era: ${API_KEY}", "4:10: `era` is \"${API_KEY}\", whose value is not auto, modern or legacy"),
    ("thresholds: {failure: \"${N}0${N}\"}", "4:27: `thresholds.failure` is \"${N}0${N}\", whose value is not a whole number from 1 to 100"),
    ("call: {tool: echo, insist: \"${NONE:-yes}\"}", "4:32: `call.insist` is \"yes\"; write true or false"),
    ("timeouts: 30s", "4:15: `timeouts` is a text; write a mapping with keys out of startup, cold_start, request or total"),
    ("timeouts: {start: 5s}", "4:16: unknown key \"start\" in `timeouts`; the keys there are startup, cold_start, request, total"),
    ("timeouts: {request: 0s}", "4:25: `timeouts.request` is \"0s\": it has to be longer than zero"),
    ("timeouts: {startup: 10s, total: 5s}", "4:37: `total` (5s) is shorter than `startup` (10s), which is part of it"),
    ("timeouts: {total: 5s}", "4:23: `total` (5s) is shorter than `startup` (30s by default), which is part of it"),
    ("timeouts: {startup: 5m}", "4:25: `total` (3m by default) is shorter than `startup` (5m), which is part of it"),
    ("shutdown: {kill: 5s}", "4:16: unknown key \"kill\" in `shutdown`; SIGKILL comes when `term` has passed"),
    ("objectives: {spawn: 1s}", "4:18: unknown key \"spawn\" in `objectives`; the keys there are startup, list, call, shutdown"),
    ("thresholds: {failure: 0}", "4:27: `thresholds.failure` is 0: it has to be a whole number from 1 to 100"),
    ("thresholds: {failure: 101}", "4:27: `thresholds.failure` is 101: it has to be a whole number from 1 to 100"),
    ("thresholds: {success: \"2\"}", "4:27: `thresholds.success` is a text; write a whole number from 1 to 100"),
    ("thresholds: {success: 1.5}", "4:27: `thresholds.success` is 1.5: it has to be a whole number from 1 to 100"),
    ("severity: {stdout.nois: warn}", "4:16: there is no finding \"stdout.nois\"; did you mean `stdout.noise`?"),
    ("severity: {my.code: warn}", "4:16: there is no finding \"my.code\"; `stdiowatch explain` lists them"),
    ("severity: {stdout.noise: error}", "4:30: `severity.stdout.noise` is \"error\"; write info, warn, fail or unknown"),
    ("schema: mcp.lock.json", "4:13: `schema` is a text; write a mapping with keys out of lock, ignore or accept_after"),
    ("schema: {ignore: description}", "4:22: `schema.ignore` is a text; write a list, here [\"description\"]"),
    ("schema: {ignore: [descriptions]}", "4:23: `schema.ignore[0]` is \"descriptions\"; did you mean `description`?"),
    ("schema: {accept_after: 0}", "4:28: `schema.accept_after` is 0: it has to be a whole number from 1 to 1000000"),
    ("call: [echo]", "4:11: `call` is a list; write a mapping with keys out of tool, arguments, expect or insist, or a tool's name"),
    ("call: ''", "4:11: `call` is empty; write a tool's name"),
    ("call: {arguments: {a: 1}}", "4:11: `call` has no `tool`; write a tool's name"),
    ("call: {tool: echo, args: {a: 1}}", "4:24: unknown key \"args\" in `call`; here it is `arguments`, a mapping"),
    ("call: {tool: echo, arguments: [1]}", "4:35: `call.arguments` is a list; write a mapping"),
    ("call: {tool: echo, arguments: {a: .inf}}", "4:39: `call.arguments` is .inf, which JSON cannot say"),
    ("call: {tool: echo, expect: {contains: 5}}", "4:43: `call.expect.contains` is a number; write it in quotes, \"5\""),
    ("call: {tool: echo, expect: {equals: {a: 1}}}", "4:42: \"a\" is no JSON pointer, which begins with /"),
    ("call: {tool: echo, insist: yes}", "4:32: `call.insist` is a text; write true or false"),
    ("leftovers: leave", "4:16: `leftovers` is \"leave\"; write kill or report"),
    ("limits: {line: 16M}", "4:20: `limits.line` is \"16M\": \"M\" is no unit of size; write it as in 512KiB, 16MiB, 1GiB or, in bytes, 1048576"),
    (
        "limits: {line: 1.5MiB}",
        "4:20: `limits.line` is \"1.5MiB\": a size is a whole number; write it as in 512KiB, 16MiB, 1GiB or, in bytes, 1048576",
    ),
    ("limits: {memory: 512}", "4:22: `limits.memory` is 512: too little; it is 1MiB at the least"),
    ("limits: {line: 2GiB}", "4:20: `limits.line` is \"2GiB\": too much; it is 1GiB at the most"),
    ("limits: {pages: 0}", "4:21: `limits.pages` is 0: it has to be a whole number from 1 to 1000000"),
    ("limits: {open_files: many}", "4:26: `limits.open_files` is a text; write a whole number from 3 to 1000000000"),
    ("limits: {cpu: 1}", "4:19: `limits.cpu` is a number; a duration has a unit, as in 1s"),
    ("user: a b", "4:11: `user` is \"a b\"; write a user, as in nobody, 65534, nobody:nogroup or 65534:65534"),
    (
        "limits: {disk: 1}",
        "4:14: unknown key \"disk\" in `limits`; the keys there are line, output, pages, memory, processes, open_files, cpu, file_size",
    ),
];

#[test]
fn a_mistake_in_a_file_is_told_word_for_word() {
    for (text, wanted) in FILES {
        assert_eq!(read(text).unwrap_err(), *wanted, "{text}");
    }
}

#[test]
fn a_mistake_in_a_server_is_told_word_for_word() {
    for (keys, wanted) in SERVERS {
        assert_eq!(server(keys).unwrap_err(), *wanted, "{keys}");
    }
}

/// All of them, as whole files.
pub(super) fn texts() -> Vec<String> {
    let of_server = |keys: &str| format!("servers:\n  s:\n    command: x\n    {keys}\n");
    FILES.iter().map(|(text, _)| (*text).to_owned()).chain(SERVERS.iter().map(|(keys, _)| of_server(keys))).collect()
}
