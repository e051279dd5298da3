//! The pages, the events, the badges and the API over HTTP, for made-up servers in every state.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may give up, reads the clock, and runs programs")]

#[path = "gallery/made_up.rs"]
mod made_up;
#[path = "common/side.rs"]
mod side;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use made_up::{HOSTILE_NAME, KINDS, Kind};
use serde_json::{Value, json};
use side::{Answer, PATIENCE, Side};
use stdiowatch::ledger::ServerState;
use stdiowatch::outside::clock;
use stdiowatch::running::hub::Hub;
use stdiowatch::serve::listen::Limits;
use stdiowatch::serve::routes::{Sources, routes, with_manners};

impl Side {
    fn of(servers: Vec<ServerState>, show_private: bool) -> Side {
        let router = |sources| with_manners(routes(Sources { show_private: Some(show_private), ..sources }));
        Side::showing(servers, Limits::default(), clock::now, router)
    }

    /// The same servers, at each call, in every state there is, of a configuration that is not used as it stands.
    fn of_all(show_private: bool) -> Side {
        let side = Side::of(made_up::servers(12, clock::now()), show_private);
        side.hub.update(|snapshot| {
            snapshot.read(made_up::unwatched());
            snapshot.refuse(clock::now(), made_up::REFUSED.to_owned());
        });
        side
    }

    fn send(&self, method: &str, target: &str) -> TcpStream {
        let mut stream = self.connect();
        write!(stream, "{method} {target} HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
        stream
    }

    fn ask(&self, method: &str, target: &str) -> Answer {
        let mut text = String::new();
        self.send(method, target).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Answer::new(head, body.to_owned())
    }

    fn get(&self, target: &str) -> Answer {
        self.ask("GET", target)
    }

    /// The address of everything there is of every server.
    fn targets(&self) -> Vec<String> {
        let names: Vec<String> = self.hub.snapshot().servers.iter().map(|s| encoded(s.name.as_str())).collect();
        let of = |name: &String| {
            ["/servers/*", "/api/v1/servers/*", "/api/v1/servers/*/history", "/health/*?verbose", "/badge/*.svg", "/badge/*.json"]
                .map(|target| target.replace('*', name))
        };
        let all = ["/", "/api/v1/servers", "/health", "/health?verbose", "/metrics"].map(str::to_owned);
        all.into_iter().chain(names.iter().flat_map(of)).collect()
    }
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

fn encoded(name: &str) -> String {
    name.bytes().map(|b| if b.is_ascii_alphanumeric() || b == b'-' { char::from(b).to_string() } else { format!("%{b:02x}") }).collect()
}

#[test]
fn the_pages_may_load_nothing_but_what_is_theirs() {
    let side = Side::of_all(false);
    for target in ["/", "/servers/search", "/servers/nobody"] {
        let page = side.get(target);
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(page.header("cache-control"), Some("no-store"));
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';") && !policy.contains("unsafe"), "{policy}");
        for part in ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        for forbidden in ["style=", "<style", "onclick", "http://", "https://", "javascript:", "//cdn"] {
            assert!(!page.body.contains(forbidden), "{target}: {forbidden}");
        }
        assert_eq!(page.body.matches("<script").count(), 1, "{target}");
    }
    for (target, content_type) in
        [("/page.css", "text/css; charset=utf-8"), ("/page.js", "text/javascript; charset=utf-8"), ("/icon.svg", "image/svg+xml")]
    {
        let answer = side.get(target);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(content_type)));
        assert_eq!((answer.header("x-content-type-options"), answer.header("cache-control")), (Some("nosniff"), Some("public, max-age=86400")));
    }
}

#[test]
fn a_page_is_asked_for_as_anything_else_is() {
    let side = Side::of_all(false);
    for target in ["/", "/servers/search", "/page.css", "/badge/search.svg", "/badge/search.json", "/api/v1/servers/search/history", "/events"] {
        let head = side.ask("HEAD", target);
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{target}");
        let options = side.ask("OPTIONS", target);
        assert_eq!((options.status, options.header("allow")), (204, Some("GET, HEAD, OPTIONS")), "{target}");
        assert_eq!(side.ask("POST", target).status, 405, "{target}");
    }
    for target in [
        "/servers/",
        "/servers/nobody",
        "/servers/%ff",
        "/servers/a/b",
        "/badge/search",
        "/badge/search.png",
        "/badge/nobody.svg",
        "/badge/nobody.json",
        "/api/v1/servers/nobody/history",
        "/page.html",
    ] {
        assert_eq!(side.get(target).status, 404, "{target}");
    }
}

#[test]
fn twelve_servers_take_little_and_two_hundred_not_much() {
    let size = |count| {
        let side = Side::of(made_up::servers(count, clock::now()), false);
        ["/", "/page.css", "/page.js", "/icon.svg"].map(|target| side.get(target).body.len()).iter().sum::<usize>()
    };
    let (twelve, two_hundred) = (size(12), size(200));
    assert!(twelve < 100 << 10, "{twelve}");
    assert!(two_hundred < 400 << 10, "{two_hundred}");
}

/// What is kept from whoever may not see it.
const SECRETS: [&str; 10] = [
    "/etc/stdiowatch",
    "/home/ada",
    "SLACK_TOKEN",
    "secret-evidence",
    "secret-stderr",
    "secret-transcript",
    "SECRET_NAME",
    "1.2.3",
    "1.2.2",
    env!("CARGO_PKG_VERSION"),
];

#[test]
fn what_is_private_is_shown_only_where_it_is_said_to_be() {
    let (closed, open) = (Side::of_all(false), Side::of_all(true));
    for target in closed.targets() {
        let body = closed.get(&target).body;
        for secret in SECRETS.iter().filter(|_| target != "/metrics") {
            assert!(!body.contains(secret), "{target} has {secret}");
        }
    }
    let shown = |target: &str, secrets: &[&str]| {
        let body = open.get(target).body;
        for secret in secrets {
            assert!(body.contains(secret), "{target} has no {secret}");
        }
    };
    shown("/", &["/etc/stdiowatch", "/home/ada", "SLACK_TOKEN"]);
    shown("/servers/search", &["secret-evidence", "secret-stderr", "secret-transcript", "SECRET_NAME"]);
    shown("/servers/files", &["1.2.3"]);
    shown("/api/v1/servers/search", &["secret-evidence", "secret-stderr", "SECRET_NAME"]);
}

#[test]
fn whatever_a_server_says_and_is_called_stays_text() {
    for show_private in [false, true] {
        let side = Side::of_all(show_private);
        let name = encoded(HOSTILE_NAME);
        for target in ["/".to_owned(), format!("/servers/{name}"), format!("/badge/{name}.svg")] {
            let answer = side.get(&target);
            assert_eq!(answer.status, 200, "{target}");
            let body = answer.body;
            for markup in ["<script>", "<img", "<b>", "</code></script>", "\u{202e}", "\u{1b}", "\0"] {
                assert!(!body.contains(markup), "{target}: {markup:?}");
            }
            assert!(body.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;b&gt;&quot;&amp;#39; שלום {job=~&quot;.*&quot;} %2e%2e"), "{target}");
        }
        let page = side.get("/").body;
        let link = page.split("href=\"servers/").map(|rest| rest.split('"').next().unwrap()).find(|link| link.contains("script")).unwrap();
        assert_eq!(side.get(&format!("/servers/{link}")).status, 200, "{link}");
        for target in [format!("/api/v1/servers/{name}"), format!("/api/v1/servers/{name}/history"), format!("/badge/{name}.json")] {
            let value = side.get(&target).json();
            assert!([&value["server"], &value["label"]].contains(&&json!(HOSTILE_NAME)), "{value}");
        }
        let metrics = side.get("/metrics").body;
        assert_eq!(metrics.lines().filter(|line| line.starts_with("stdiowatch_up{")).count(), 12);
    }
}

#[test]
fn what_needs_a_look_comes_first() {
    let side = Side::of(made_up::servers(200, clock::now()), false);
    let page = side.get("/").body;
    let places: Vec<usize> = [">Down <", ">Not known to be up <", ">Up, with a warning <", ">Up <"].iter().map(|t| page.find(t).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    let place = |name: &str| page.find(&format!("<bdi>{name}</bdi>")).unwrap();
    assert!(place("postgres-011") < place("postgres-051") && place("postgres-171") < place("search"));
    assert!(page.contains("<h1 id=\"headline\">190 of 200 MCP servers up</h1>"));
}

/// The next event or comment of a stream, as its lines.
fn next(stream: &mut BufReader<TcpStream>) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "it ended");
        match line.trim_end() {
            "" => return lines,
            line => lines.push(line.to_owned()),
        }
    }
}

fn flip(hub: &Hub, kind: Kind) {
    let name = hub.snapshot().servers[0].name.clone();
    hub.update_server(&name, |state| made_up::apply(state, kind, 70, 74, 0, clock::now())).unwrap();
}

#[test]
fn who_listens_is_told_of_changes_but_not_too_often() {
    let mut side = Side::of_all(false);
    let page = side.get("/").body;
    let revision = page.split("data-revision=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let mut stream = BufReader::new(side.send("GET", "/events"));
    let head = next(&mut stream);
    assert!(head[0].ends_with("200 OK") && head.iter().any(|line| line == "content-type: text/event-stream"), "{head:?}");
    // What the page says it is, until something changes.
    assert_eq!(next(&mut stream), ["retry: 3000".to_owned(), "event: change".to_owned(), format!("data: {revision}")]);
    // The scheduler's life sign is none.
    side.hub.update(|snapshot| snapshot.sidecar.last_tick = clock::up());
    let began = Instant::now();
    for _ in 0..50 {
        flip(&side.hub, Kind::Down);
        flip(&side.hub, Kind::Well);
    }
    let told = next(&mut stream);
    assert_eq!(told[0], "event: change");
    assert!(told[1] != format!("data: {revision}") && told[1].ends_with("-102"), "{told:?}");
    flip(&side.hub, Kind::Down);
    assert!(next(&mut stream)[1].ends_with("-103"));
    assert!(began.elapsed() >= Duration::from_millis(1900), "{:?}", began.elapsed());
    // Who listens does not keep stdiowatch from ending.
    let began = Instant::now();
    side.stop();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[test]
fn only_so_many_listen() {
    let side = Side::of_all(false);
    let listen = || {
        let mut stream = BufReader::new(side.send("GET", "/events"));
        (next(&mut stream)[0].clone(), stream)
    };
    let mut listening: Vec<_> = (0..64).map(|_| listen()).collect();
    assert!(listening.iter().all(|(status, _)| status.ends_with("200 OK")));
    let refused = side.get("/events");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("60")));
    assert_eq!(side.get("/health/files").status, 200);
    // One who goes makes room as soon as he is missed: with the next message.
    drop(listening.pop());
    let deadline = Instant::now() + PATIENCE;
    while listen().0.ends_with("503 Service Unavailable") {
        assert!(Instant::now() < deadline, "the place is never free");
        flip(&side.hub, Kind::Down);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_badge_is_as_wide_as_what_it_says() {
    let side = Side::of_all(false);
    let width = |target: &str| {
        let svg = side.get(target).body;
        let all: u32 = svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        let texts: u32 = svg.split("textLength=\"").skip(1).map(|rest| rest.split('"').next().unwrap().parse::<u32>().unwrap()).sum();
        assert_eq!(all, texts + 20, "{svg}");
        all
    };
    assert!(width("/badge/git.svg") > width("/badge/files.svg"));
    assert!(width(&format!("/badge/{}.svg", encoded(HOSTILE_NAME))) > 350);
    for (name, message, colour, wrong) in [
        ("files", "up", "success", false),
        ("git", "up, with a warning", "yellow", false),
        ("search", "down", "critical", true),
        ("postgres", "unknown", "inactive", true),
        ("tickets", "stale", "inactive", true),
        ("mail", "unprobed", "inactive", true),
    ] {
        let wanted = json!({ "schemaVersion": 1, "label": name, "message": message, "color": colour, "isError": wrong });
        assert_eq!(side.get(&format!("/badge/{name}.json")).json(), wanted);
        assert!(side.get(&format!("/badge/{name}.svg")).body.contains(&format!("<title>{name}: {message}</title>")));
    }
}

fn openapi() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_route_is_in_the_openapi_document_and_no_other() {
    let mut routes = BTreeSet::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for route in text.split(".route(\"").skip(1) {
            let (path, handler) = route.split_once("\", ").unwrap();
            let method = handler.split('(').next().unwrap();
            routes.insert((path.replace("{name}", "{NAME}").replace("{file}", "{FILE}"), method.to_owned()));
        }
    }
    let methods = |(path, item): (&String, &Value)| item.as_object().unwrap().keys().map(|method| (path.clone(), method.clone())).collect::<Vec<_>>();
    let documented: BTreeSet<(String, String)> = openapi()["paths"].as_object().unwrap().iter().flat_map(methods).collect();
    assert_eq!(routes, documented);
}

/// The path of the document that a target is of.
fn path_of(target: &str) -> String {
    let target = target.split('?').next().unwrap();
    for (prefix, path) in [("/api/v1/servers/", "{NAME}"), ("/health/", "{NAME}"), ("/servers/", "{NAME}"), ("/badge/", "{FILE}")] {
        if let Some(rest) = target.strip_prefix(prefix) {
            let tail = if rest.ends_with("/history") { "/history" } else { "" };
            return format!("{prefix}{path}{tail}");
        }
    }
    target.to_owned()
}

#[test]
fn every_answer_is_what_the_openapi_document_says() {
    let document = openapi();
    let mut seen = BTreeSet::new();
    for show_private in [false, true] {
        let side = Side::of_all(show_private);
        let more =
            ["/livez", "/readyz", "/page.css", "/page.js", "/icon.svg", "/servers/x", "/health/x", "/api/v1/servers/x", "/badge/x.json", "/badge/x"];
        for target in side.targets().into_iter().chain(more.map(str::to_owned)) {
            let answer = side.get(&target);
            let path = path_of(&target);
            let response = &document["paths"][&path]["get"]["responses"][answer.status.to_string()];
            let content = &response["content"][answer.header("content-type").unwrap()];
            assert!(content.is_object(), "{target}: {} {:?} is not documented", answer.status, answer.header("content-type"));
            if answer.header("content-type").unwrap().contains("json") {
                let schema = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "allOf": [content["schema"]], "components": document["components"] });
                let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
                let value = answer.json();
                let wrong: Vec<String> = validator.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
                assert!(wrong.is_empty(), "{target}: {}\n{value}", wrong.join("\n"));
            }
            seen.insert(path);
        }
    }
    let documented = document["paths"].as_object().unwrap();
    let others: Vec<&String> = documented.keys().filter(|path| !seen.contains(*path)).collect();
    assert_eq!(others, ["/-/accept/{NAME}", "/-/reload", "/-/resume/{NAME}", "/events", "/probe"], "these have tests of their own");
}

#[test]
fn history_tells_the_last_probes_and_older_troubles() {
    let side = Side::of_all(false);
    let history = side.get("/api/v1/servers/files/history").json();
    let list = |name: &str| history[name].as_array().unwrap().clone();
    assert_eq!((list("recent").len(), list("troubles").len(), &history["verdict"]), (60, 1, &json!("pass")));
    assert_eq!((&list("troubles")[0]["code"], &list("troubles")[0]["startup_ms"]), (&json!("stdout.noise"), &Value::Null));
    let times: Vec<String> = list("troubles").into_iter().chain(list("recent")).map(|p| p["at"].as_str().unwrap().to_owned()).collect();
    assert!(times.is_sorted());
    let unprobed = side.get("/api/v1/servers/mail/history").json();
    assert_eq!((&unprobed["verdict"], &unprobed["since"], &unprobed["recent"]), (&json!("unknown"), &Value::Null, &json!([])));
}

#[test]
fn every_state_is_made_up() {
    let now = clock::now();
    let states: BTreeSet<String> = KINDS.iter().map(|kind| format!("{:?}", made_up::server("x", *kind, now).health(now))).collect();
    assert_eq!(states.len(), 6, "{states:?}");
}
