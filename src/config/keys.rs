//! The keys of a configuration: one table, from which come the reader, the JSON Schema and the
//! documentation.

use std::time::Duration;

use super::kind::{Key, Keys, Kind, Names};
use super::quantity::{Amount, SECOND};
use super::text::Texts;

/// The address to listen on, where none is given.
pub const LISTEN: &str = "127.0.0.1:10779";
/// From one probe to the next, where nothing is said.
pub const INTERVAL: Duration = Duration::from_secs(60);

const POSITIVE: Kind = Kind::Amount(Amount::Duration(Duration::from_nanos(1)));
const GRACE: Kind = Kind::Amount(Amount::Duration(Duration::ZERO));
const PATH: Kind = Kind::Text(Texts::Path);

/// A key that need not be there.
const fn key(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { name, kind, required: false, default, about }
}

/// A key that has to be there.
const fn required(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, required: true, default: "", about }
}

/// A whole file.
pub static FILE: Keys = Keys {
    what: "a configuration",
    example: "servers: {files: {command: npx}}",
    keys: &[&[
        key("listen", Kind::Text(Texts::Address), LISTEN, "Where `serve` listens. `:PORT` is every interface."),
        key("state_dir", PATH, "", "A directory for what is remembered from one run of `serve` to the next. From the file's own directory."),
        key(
            "web_config",
            PATH,
            "",
            "A file with TLS, users and header fields, as Prometheus' exporters take it: `docs/security.md`. From the file's own directory.",
        ),
        key(
            "show_private",
            Kind::Bool,
            "",
            "Whether evidence, stderr, environment, versions and transcripts are shown: `true` to everybody, `false` to nobody; without it, to who has authenticated.",
        ),
        key(
            "defaults",
            Kind::Keys(&DEFAULTS),
            "",
            "What holds for every server of this file that does not say otherwise: any key of a server but `command` and `args`.",
        ),
        required(
            "servers",
            Kind::Named(Names::Servers, &Kind::Keys(&SERVER)),
            "The servers, each under its name: 1 to 100 bytes, no `/`, no control or invisible characters.",
        ),
    ]],
    hints: &[
        ("mcpServers", "that is how files of MCP clients say it; here it is `servers`"),
        ("mcp_servers", "here it is `servers`"),
        ("context_servers", "here it is `servers`"),
        ("server", "here it is `servers`, a mapping from names to servers"),
        ("default", "here it is `defaults`"),
        ("port", "here it is `listen: HOST:PORT`"),
    ],
};

/// One server.
pub(super) static SERVER: Keys = Keys {
    what: "a server",
    example: "{command: npx, args: [\"-y\", \"some-package\"]}",
    keys: &[
        &[
            required(
                "command",
                Kind::Text(Texts::Command),
                "A path, or a name that is looked for on the server's PATH. A relative path is taken from `cwd`. `~/` is our home directory.",
            ),
            key("args", Kind::List(&Kind::Scalar), "[]", "Its arguments, one element each. No shell reads them."),
        ],
        SHARED,
    ],
    hints: SERVER_HINTS,
};

/// What holds for all servers.
pub(super) static DEFAULTS: Keys = Keys {
    what: "`defaults`",
    example: "{interval: 60s}",
    keys: &[SHARED],
    hints: &[
        ("command", "a command is each server's own"),
        ("args", "arguments are each server's own"),
        ("environment", "here it is `env`"),
        ("envFile", "here it is `env_from_file`"),
        ("timeout", "here it is `timeouts: {startup: 30s, request: 10s, total: 180s}`"),
    ],
};

const SERVER_HINTS: &[(&str, &str)] = &[
    ("url", "a server that is reached over HTTP is monitored over HTTP; here it is a `command`"),
    ("type", "every server here speaks over stdio"),
    ("transport", "every server here speaks over stdio"),
    ("name", "its name is the key that it stands under"),
    ("environment", "here it is `env`"),
    ("envFile", "here it is `env_from_file`"),
    ("env_file", "here it is `env_from_file`"),
    ("arguments", "here it is `args`"),
    ("cmd", "here it is `command`"),
    ("dir", "here it is `cwd`"),
    ("workdir", "here it is `cwd`"),
    ("working_directory", "here it is `cwd`"),
    ("timeout", "here it is `timeouts: {startup: 30s, request: 10s, total: 180s}`"),
    ("lock", "here it is `schema: {lock: FILE}`"),
];

const CALL_OR_TOOL: &[Kind] = &[Kind::Keys(&CALL), Kind::Text(Texts::Tool)];

const SHARED: &[Key] = &[
    key("env", Kind::Named(Names::Variables, &Kind::Scalar), "{}", "Variables of the server's environment. Their values are shown nowhere."),
    key(
        "env_from_file",
        Kind::Either(&[Kind::Named(Names::Variables, &PATH), PATH, Kind::List(&PATH)]),
        "{}",
        "Variables whose values stand in files, for mounted secrets: a mapping from names to files, of which each holds one value (one newline at its end is not part of it); or the path of a `.env` file with lines NAME=VALUE; or a list of such paths. `env` wins over them. Each file is UTF-8, 64 KiB at the most.",
    ),
    key(
        "env_mode",
        Kind::Word(&["sdk", "inherit", "clean"]),
        "sdk",
        "Which of stdiowatch's own environment the server gets: `sdk` HOME LOGNAME PATH SHELL TERM USER, as MCP clients do; `inherit` all of it; `clean` nothing.",
    ),
    key(
        "cwd",
        PATH,
        "",
        "The server's working directory; stdiowatch's own, unless told otherwise. From the file's own directory; `~/` is our home directory.",
    ),
    key("stdio", Kind::Word(&["pipe", "socketpair"]), "pipe", "What the server's stdin and stdout are: pipes, or sockets as from Node's clients."),
    key(
        "era",
        Kind::Word(&["auto", "modern", "legacy"]),
        "auto",
        "Which era of the protocol to open in: `modern` is 2026-07-28 and later, `legacy` up to 2025-11-25; `auto` finds out.",
    ),
    key("interval", Kind::Amount(Amount::Duration(SECOND)), "60s", "From one probe to the next while all is well."),
    key("timeouts", Kind::Keys(&TIMEOUTS), "", "How long a probe may wait."),
    key("shutdown", Kind::Keys(&SHUTDOWN), "", "How a server is ended that does not end by itself."),
    key("objectives", Kind::Keys(&OBJECTIVES), "", "How long a phase may take before it is `latency.slow`."),
    key("thresholds", Kind::Keys(&THRESHOLDS), "", "How many probes in a row it takes until a server counts as something else."),
    key(
        "severity",
        Kind::Named(Names::Codes, &Kind::Word(&["info", "warn", "fail", "unknown"])),
        "{}",
        "Other severities for findings, by their codes; `stdiowatch explain` lists them.",
    ),
    key("schema", Kind::Keys(&SCHEMA), "", "What a server's lists are compared with."),
    key("call", Kind::Either(CALL_OR_TOOL), "", "A tool to call in each probe; its name alone will do."),
    key(
        "leftovers",
        Kind::Word(&["kill", "report"]),
        "kill",
        "What becomes of descendants that outlive the server: they are ended, or told of and left alone.",
    ),
    key(
        "user",
        Kind::Text(Texts::User),
        "",
        "As whom the server runs: `NAME`, `UID`, `NAME:GROUP` or `UID:GID`, with the user's own groups. Takes the privileges of root.",
    ),
    key(
        "no_new_privs",
        Kind::Bool,
        "",
        "Whether no program that the server executes gives it privileges (`sudo`, setuid, file capabilities). `true` where `user` is given, otherwise `false`: launchers may need one.",
    ),
    key(
        "private_tmp",
        Kind::Bool,
        "false",
        "Whether each probe's server gets a directory of its own for temporary files (TMPDIR, TMP, TEMP), which is removed afterwards with all that is in it.",
    ),
    key(
        "cgroup",
        Kind::Bool,
        "false",
        "Whether each probe's server gets a control group of its own (version 2), by which all of it is ended at once. Where none can be made it is launched without, and the log says why.",
    ),
    key("limits", Kind::Keys(&LIMITS), "", "How much is read of a server, and how much it may take."),
];

static TIMEOUTS: Keys = Keys {
    what: "`timeouts`",
    example: "",
    keys: &[&[
        key("startup", POSITIVE, "30s", "From the launch to the first reply."),
        key(
            "cold_start",
            POSITIVE,
            "120s",
            "How long a launcher (npx, uvx, docker run …) that has not answered in time is left to finish what it may be fetching.",
        ),
        key("request", POSITIVE, "10s", "From each later request to its reply."),
        key("total", POSITIVE, "180s", "The whole probe, shutdown included; not less than `startup`."),
    ]],
    hints: &[
        ("init", "here it is `startup`"),
        ("handshake", "here it is `startup`"),
        ("shutdown", "here it is `shutdown: {eof: 5s, term: 5s}`, beside `timeouts`"),
    ],
};

static SHUTDOWN: Keys = Keys {
    what: "`shutdown`",
    example: "",
    keys: &[&[key("eof", GRACE, "5s", "From the end of the server's input to SIGTERM."), key("term", GRACE, "5s", "From SIGTERM to SIGKILL.")]],
    hints: &[("kill", "SIGKILL comes when `term` has passed")],
};

static OBJECTIVES: Keys = Keys {
    what: "`objectives`",
    example: "",
    keys: &[&[
        key("startup", POSITIVE, "", "From the launch to the first reply."),
        key("list", POSITIVE, "", "All lists."),
        key("call", POSITIVE, "", "The call of `call`."),
        key("shutdown", POSITIVE, "", "From the end of the server's input to its end."),
    ]],
    hints: &[],
};

static THRESHOLDS: Keys = Keys {
    what: "`thresholds`",
    example: "",
    keys: &[&[
        key("failure", Kind::Amount(Amount::Count(1, 100)), "1", "Failures, until it counts as failing."),
        key("success", Kind::Amount(Amount::Count(1, 100)), "1", "Successes, until it counts as well again."),
    ]],
    hints: &[],
};

static SCHEMA: Keys = Keys {
    what: "`schema`",
    example: "",
    keys: &[&[
        key("lock", PATH, "", "A lock file, which `stdiowatch lock` writes; without one, what was accepted last. From the file's own directory."),
        key(
            "ignore",
            Kind::List(&Kind::Word(&["annotation", "description", "compatible", "breaking"])),
            "[]",
            "Classes of changes that are told, and weigh nothing.",
        ),
        key(
            "accept_after",
            Kind::Amount(Amount::Count(1, 1_000_000)),
            "",
            "Accept another schema by itself once so many probes in a row have listed it.",
        ),
    ]],
    hints: &[],
};

/// A canary call.
pub(super) static CALL: Keys = Keys {
    what: "`call`",
    example: "",
    keys: &[&[
        required("tool", Kind::Text(Texts::Tool), "The tool's name."),
        key("arguments", Kind::Object, "{}", "What it is called with."),
        key("expect", Kind::Keys(&EXPECT), "", "What its result has to hold."),
        key("insist", Kind::Bool, "false", "Call it even though the server marks it destructive."),
    ]],
    hints: &[
        ("args", "here it is `arguments`, a mapping"),
        ("name", "here it is `tool`"),
        ("contains", "it stands in `expect`"),
        ("equals", "it stands in `expect`"),
    ],
};

static EXPECT: Keys = Keys {
    what: "`expect`",
    example: "",
    keys: &[&[
        key("contains", Kind::Text(Texts::Any), "", "What the texts of the result have to contain."),
        key("equals", Kind::Named(Names::Pointers, &Kind::Json), "{}", "What has to stand where in the result: JSON pointers (RFC 6901) and values."),
    ]],
    hints: &[],
};

static LIMITS: Keys = Keys {
    what: "`limits`",
    example: "",
    keys: &[&[
        key("line", Kind::Amount(Amount::Size(1 << 10, 1 << 30)), "16MiB", "The longest line on stdout."),
        key("output", Kind::Amount(Amount::Size(1 << 10, 1 << 40)), "64MiB", "All of stdout in one launch."),
        key("pages", Kind::Amount(Amount::Count(1, 1_000_000)), "100", "Pages of one list."),
        key("memory", Kind::Amount(Amount::Size(1 << 20, 1 << 50)), "", "Resident memory of the server and its descendants together."),
        key("processes", Kind::Amount(Amount::Count(1, 1_000_000)), "", "Processes of a server, itself included."),
        key("open_files", Kind::Amount(Amount::Count(3, 1_000_000_000)), "", "Open descriptors of each process."),
        key("cpu", POSITIVE, "", "CPU time of the server and its descendants together, in one launch."),
        key("file_size", Kind::Amount(Amount::Size(0, 1 << 50)), "", "The largest file that each process may write. Pipes and sockets are none."),
    ]],
    hints: &[],
};
