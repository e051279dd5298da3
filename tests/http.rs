//! The HTTP side over raw TCP, as health checkers, scrapers and worse really speak to it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may give up, reads the clock, and runs programs")]

#[path = "common/side.rs"]
mod side;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use side::{Answer, PATIENCE, Side};
use stdiowatch::judge::{Reference, Report, Rules, Verdict, judge};
use stdiowatch::ledger::{Fact, ServerState, Terms};
use stdiowatch::outside::clock;
use stdiowatch::probe::{Observation, Peers, Phase};
use stdiowatch::serve::listen::{Limits, bind};
use stdiowatch::serve::routes::{routes, with_manners};
use stdiowatch::words::{Moment, ServerName};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

fn server(name: &str, verdict: Option<Verdict>) -> ServerState {
    let seconds = Duration::from_secs;
    let terms = Terms {
        interval: seconds(60),
        timeouts: vec![(Phase::List, seconds(10))],
        objectives: Default::default(),
        total: seconds(180),
        failures: 1,
        successes: 1,
        acceptance: Default::default(),
    };
    let name = ServerName::new(name).unwrap();
    let mut state = ServerState::new(name.clone(), terms);
    if let Some(verdict) = verdict {
        let nothing = Observation { launches: vec![], judged: 0, total: seconds(1), cancelled: false, peers: Peers::default(), container: None };
        let report = Report { verdict, ..judge(&name, String::new(), &nothing, &Rules::default(), Reference::nothing()) };
        state.apply(Fact { report: Arc::new(report), at: clock::now(), listed: None, reel: None });
    }
    state
}

impl Side {
    fn of(servers: Vec<ServerState>) -> Side {
        Side::with(servers, Limits::default(), clock::now)
    }

    fn with(servers: Vec<ServerState>, limits: Limits, now: fn() -> Moment) -> Side {
        // What is merged in later has the same manners.
        let more = axum::Router::new().route("/panic", axum::routing::get(panics)).route(
            "/slow",
            axum::routing::get(|| async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                "slow"
            }),
        );
        Side::showing(servers, limits, now, |sources| with_manners(routes(sources).merge(more)))
    }

    /// What comes back for these bytes, until the connection is closed.
    fn raw(&self, bytes: impl AsRef<[u8]>) -> Answer {
        Answer::parse(&self.bytes(bytes))
    }

    fn bytes(&self, bytes: impl AsRef<[u8]>) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(bytes.as_ref()).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all
    }

    /// The same for GET `/metrics` with these fields, unpacked.
    fn unpacked(&self, version: &str, fields: &str) -> Answer {
        let all = self.bytes(format!("GET /metrics HTTP/{version}\r\nHost: x\r\nConnection: close\r\n{fields}\r\n"));
        let at = memchr::memmem::find(&all, b"\r\n\r\n").unwrap();
        let mut answer = Answer::new(std::str::from_utf8(&all[..at]).unwrap(), String::new());
        let mut packed = all[at + 4..].to_vec();
        if answer.header("transfer-encoding") == Some("chunked") {
            packed = dechunked(&packed);
        }
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut answer.body).unwrap();
        answer
    }

    fn ask(&self, method: &str, target: &str, headers: &str) -> Answer {
        self.raw(format!("{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n"))
    }

    fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, "")
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Answer {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let mut answer = Answer::new(head, body.to_owned());
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = String::from_utf8(dechunked(body.as_bytes())).unwrap();
        }
        answer
    }

    /// The head, without the time of day.
    fn lasting(&self) -> Vec<&str> {
        self.head.split("\r\n").filter(|line| !line.starts_with("date:")).collect()
    }
}

fn dechunked(mut body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while !body.is_empty() {
        let end = memchr::memmem::find(body, b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        out.extend_from_slice(&body[end + 2..][..size]);
        body = &body[end + 2 + size + 2..];
    }
    out
}

async fn panics() -> &'static str {
    panic!("on purpose")
}

fn healthy() -> Vec<ServerState> {
    vec![server("files", Some(Verdict::Pass)), server("näme \"x\" %41", Some(Verdict::Warn))]
}

#[test]
fn health_is_answered_however_it_is_asked() {
    let side = Side::of(healthy());
    let first = side.get("/health");
    assert_eq!((first.status, first.header("content-type")), (200, Some("application/health+json")));
    assert!(first.body.starts_with("{\"status\":\"warn\","), "{}", first.body);
    for request in [
        "GET /health HTTP/1.0\r\n\r\n",
        "GET /health HTTP/1.0\r\nAccept: text/html\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: 10.0.0.1:1\r\nAccept: image/png;q=1\r\nConnection: close\r\n\r\n",
        "GET /health?_=1&x=%ff%00%zz&&== HTTP/1.1\r\nhost:\r\nConnection: close\r\n\r\n",
        "GET http://elsewhere/health HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
        "\r\nGET /health HTTP/1.0\r\n\r\n",
    ] {
        let answer = side.raw(request);
        assert_eq!((answer.status, &answer.body), (200, &first.body), "{request}");
    }
    for (name, value) in [("cache-control", "no-store"), ("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer")] {
        assert_eq!(first.header(name), Some(value));
    }
}

#[test]
fn head_has_the_same_status_and_headers_and_no_body() {
    let side = Side::of(vec![server("a", Some(Verdict::Pass)), server("b", Some(Verdict::Fail))]);
    for target in ["/", "/health", "/health/a", "/health/nobody", "/health?format=text", "/livez", "/readyz", "/metrics", "/nothing"] {
        let (get, head) = (side.get(target), side.ask("HEAD", target, ""));
        assert_eq!(head.body, "", "{target}");
        if target == "/metrics" {
            // What the process uses changes from one to the other.
            assert!(head.header("content-length").is_some());
        } else {
            assert_eq!(get.lasting(), head.lasting(), "{target}");
            assert_eq!(get.header("content-length"), Some(get.body.len().to_string().as_str()), "{target}");
        }
    }
}

#[test]
fn options_is_answered_everywhere() {
    let side = Side::of(healthy());
    for target in ["/", "*", "/health", "/health/files", "/health/nobody", "/livez", "/readyz", "/metrics", "/nothing", "/a/b/c?d"] {
        for request in [format!("OPTIONS {target} HTTP/1.0\r\n\r\n"), format!("OPTIONS {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")] {
            let answer = side.raw(&request);
            assert_eq!((answer.status, answer.header("allow"), answer.body.as_str()), (204, Some("GET, HEAD, OPTIONS"), ""), "{request}");
        }
    }
}

#[test]
fn other_methods_are_refused_and_unknown_paths_not_found() {
    let side = Side::of(healthy());
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND"] {
        for target in ["/", "/health", "/health/files", "/metrics", "/livez", "/readyz"] {
            let answer = side.ask(method, target, "Content-Length: 0\r\n");
            assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD, OPTIONS")), "{method} {target}");
        }
    }
    for target in ["/nothing", "/health/", "/health/files/", "/health/a/b", "//health", "/health%2Ffiles", "/Health", "/.", "/metrics/"] {
        let answer = side.get(target);
        assert_eq!((answer.status, answer.header("location")), (404, None), "{target}");
    }
    assert!(side.raw("CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\nConnection: close\r\n\r\n").status >= 400);
}

#[test]
fn a_server_is_looked_up_by_its_decoded_name() {
    let side = Side::of(healthy());
    for target in ["/health/files", "/health/%66iles", "/health/n%C3%A4me%20%22x%22%20%2541?verbose=1&_=2"] {
        assert_eq!(side.get(target).status, 200, "{target}");
    }
    for target in [
        "/health/n%C3%A4me%20%22x%22%20%41",
        "/health/%ff",
        "/health/%00",
        "/health/%",
        "/health/file%73%",
        "/health/..%2Ffiles",
        &format!("/health/{}", "a".repeat(8000)),
    ] {
        let answer = side.get(target);
        assert_eq!((answer.status, answer.header("content-type")), (404, Some("application/health+json")), "{target}");
        assert_eq!(answer.body, "{\"status\":\"fail\",\"output\":\"no server has this name\"}\n");
    }
}

#[test]
fn what_is_not_known_to_be_well_is_unavailable() {
    let side = Side::of(vec![server("a", Some(Verdict::Pass)), server("new", None)]);
    let answer = side.get("/health");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")));
    assert_eq!(side.get("/health/a").status, 200);
    assert_eq!(side.get("/health?exclude=new").status, 200);
    assert_eq!(side.get("/health/new?format=text").body, "fail\nunprobed new\n");
    side.hub.update_server(&ServerName::new("new").unwrap(), |state| *state = server("new", Some(Verdict::Pass)));
    assert_eq!(side.get("/health").status, 200);
    side.hub.update_server(&ServerName::new("new").unwrap(), |state| *state = server("new", Some(Verdict::Unknown)));
    assert_eq!(side.get("/health").status, 503);

    let much_later = || Moment { up: clock::up() + Duration::from_secs(3600), ..clock::now() };
    let side = Side::with(healthy(), Limits::default(), much_later);
    let answer = side.get("/health");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{}", answer.body);
    assert!(answer.body.contains("stale"));
    assert_eq!(side.get("/livez").status, 503);
    assert!(side.get("/metrics").body.contains("stdiowatch_up{server=\"files\"} 0\n"));
}

#[test]
fn livez_is_the_scheduler_and_readyz_the_first_round() {
    let side = Side::of(vec![server("a", None)]);
    assert_eq!((side.get("/livez").status, side.get("/readyz").status), (200, 503));
    assert_eq!(side.get("/readyz").body, "the first round is not done: 0 of 1 servers probed\n");
    side.hub.update(|snapshot| snapshot.sidecar.first_round_done = true);
    assert_eq!(side.get("/readyz").status, 200);
    side.hub.update(|snapshot| {
        snapshot.sidecar.started = Moment::default();
        snapshot.sidecar.last_tick = clock::up().saturating_sub(Duration::from_secs(11));
    });
    let answer = side.get("/livez");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{}", answer.body);
}

#[test]
fn metrics_are_in_the_format_that_is_asked_for() {
    let side = Side::of(healthy());
    for (accept, content_type) in [
        ("", TEXT),
        ("Accept: */*\r\n", TEXT),
        ("Accept: text/html\r\n", TEXT),
        ("Accept: text/plain;version=0.0.4;q=1,*/*;q=0.1\r\n", TEXT),
        ("Accept: application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.5\r\nAccept-Encoding: identity\r\n", OPEN_METRICS),
    ] {
        let answer = side.ask("GET", "/metrics", accept);
        let fields = ["content-type", "vary", "content-encoding"].map(|name| answer.header(name));
        assert_eq!((answer.status, fields), (200, [Some(content_type), Some("Accept, Accept-Encoding"), None]), "{accept}");
        assert_eq!(answer.body.ends_with("\n# EOF\n"), content_type == OPEN_METRICS);
        for series in [
            "stdiowatch_build_info{version=",
            "process_open_fds ",
            "stdiowatch_config_last_reload_successful 1\n",
            "stdiowatch_up{server=\"files\"} 1\n",
        ] {
            assert!(answer.body.contains(series), "{series}");
        }
    }
}

#[test]
fn a_large_scrape_is_whole_for_every_version_of_http() {
    let side = Side::of((0..200).map(|n| server(&format!("server {n}"), Some(Verdict::Pass))).collect());
    let chunked = side.get("/metrics");
    assert_eq!((chunked.header("transfer-encoding"), chunked.header("content-length")), (Some("chunked"), None));
    let until_closed = side.raw("GET /metrics HTTP/1.0\r\n\r\n");
    assert_eq!(until_closed.header("transfer-encoding"), None);
    for answer in [chunked, until_closed] {
        assert_eq!(answer.body.matches("\nstdiowatch_up{").count(), 200);
        assert!(answer.body.lines().last().unwrap().starts_with("stdiowatch_config_last_reload"), "{:?}", answer.body.lines().last());
    }
    assert_eq!(side.ask("HEAD", "/metrics", "").body, "");
}

#[test]
fn metrics_are_packed_for_who_can_unpack_them() {
    for count in [1, 200] {
        let side = Side::of((0..count).map(|n| server(&format!("server {n}"), Some(Verdict::Pass))).collect());
        for version in ["1.1", "1.0"] {
            let fields = "Accept: application/openmetrics-text\r\nAccept-Encoding: deflate, gzip\r\n";
            let answer = side.unpacked(version, fields);
            assert_eq!(
                (answer.status, answer.header("content-type"), answer.header("vary")),
                (200, Some(OPEN_METRICS), Some("Accept, Accept-Encoding"))
            );
            assert_eq!((answer.body.matches("\nstdiowatch_up{").count(), answer.body.ends_with("\n# EOF\n")), (count, true));
            let series = |body: &str| body.lines().filter(|l| l.starts_with("stdiowatch_")).map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(series(&answer.body), series(&side.ask("GET", "/metrics", "Accept: application/openmetrics-text\r\n").body));
            let head = side.raw(format!("HEAD /metrics HTTP/{version}\r\nHost: x\r\nConnection: close\r\n{fields}\r\n"));
            assert_eq!(head.body, "");
            for name in ["content-type", "content-encoding", "vary"] {
                assert_eq!(head.header(name), answer.header(name), "{name}");
            }
            assert_eq!(head.header("content-length").is_some(), answer.header("content-length").is_some());
        }
    }
}

#[test]
fn who_reads_slowly_is_served_and_who_does_not_read_is_cut() {
    let limits = Limits { idle: Duration::from_millis(800), ..Limits::default() };
    let side = Side::with((0..600).map(|n| server(&format!("server {n}"), Some(Verdict::Pass))).collect(), limits, clock::now);
    let whole = side.get("/metrics").body;
    let ask = || {
        let mut stream = side.connect();
        rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 16 << 10).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        stream
    };
    // How many hold what is answered: we, the hub, and each answer that is being sent.
    let holders = || Arc::strong_count(&side.hub.snapshot());
    let began = Instant::now();
    // Twice as long as nothing may be read.
    let mut slow = ask();
    let mut answer = Vec::new();
    while began.elapsed() < Duration::from_millis(1600) {
        std::thread::sleep(Duration::from_millis(15));
        (&mut slow).take(48 << 10).read_to_end(&mut answer).unwrap();
    }
    slow.read_to_end(&mut answer).unwrap();
    assert!(answer.len() > whole.len() && answer.len() < whole.len() + 2000, "{} of {}", answer.len(), whole.len());

    let mut never = ask();
    while holders() < 3 {
        assert!(began.elapsed() < PATIENCE, "it is not answered");
    }
    while holders() > 2 {
        assert!(began.elapsed() < PATIENCE, "it is never cut");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut answer = Vec::new();
    let _ = never.read_to_end(&mut answer);
    assert!(answer.len() < whole.len(), "{} of {}", answer.len(), whole.len());
}

#[test]
fn a_body_that_nobody_wants_is_not_waited_for() {
    let limits = Limits { head: Duration::from_millis(400), ..Limits::default() };
    let side = Side::with(healthy(), limits, clock::now);
    for request in ["GET /health", "POST /-/reload"] {
        let mut stream = side.connect();
        let began = Instant::now();
        stream.write_all(format!("{request} HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\n").as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        let status = if request.starts_with("GET") { "200" } else { "403" };
        assert_eq!(answer, format!("HTTP/1.1 {status}").as_bytes());
        assert!(began.elapsed() < Duration::from_millis(300), "{:?}", began.elapsed());
        // Sent all the same, it is read for no longer than a head is.
        while stream.write_all(&[b'x'; 100]).is_ok() {
            assert!(began.elapsed() < PATIENCE, "never cut");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_connection_is_kept_and_requests_may_queue() {
    let side = Side::of(healthy());
    let mut stream = side.connect();
    for _ in 0..3 {
        stream.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = [0; 2048];
        let mut got = 0;
        while !answer[..got].ends_with(b"\r\n\r\nok\n") {
            got += stream.read(&mut answer[got..]).unwrap();
        }
    }
    let queued = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n".repeat(20) + "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(queued.as_bytes()).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    assert_eq!((all.matches("HTTP/1.1 200").count(), all.matches("HTTP/1.1 503").count()), (20, 1));
}

#[test]
fn a_client_that_has_closed_its_own_side_is_answered() {
    let side = Side::of(healthy());
    let mut stream = side.connect();
    stream.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    assert!(all.ends_with("slow"), "{all}");
}

#[test]
fn a_panic_is_one_requests_own() {
    let side = Side::of(healthy());
    assert_eq!(side.get("/panic").status, 500);
    assert_eq!(side.get("/health").status, 200);
}

#[test]
fn what_is_no_http_is_refused() {
    let side = Side::of(healthy());
    for (request, status) in [
        ("GARBAGE\r\n\r\n".to_owned(), 400),
        ("\u{16}\u{3}\u{1}\u{2}\r\n\r\n".to_owned(), 400),
        ("GET /health HTTP/1.1\r\nHost x\r\n\r\n".to_owned(), 400),
        ("GET /health HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(), 400),
        (format!("GET /health HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "a".repeat(100_000)), 431),
        (format!("GET /health HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: y\r\n".repeat(1000)), 431),
        (format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(100_000)), 431),
    ] {
        let mut stream = side.connect();
        // Part of it may be refused before all of it is sent.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = [0; 12];
        match stream.read_exact(&mut answer) {
            Ok(()) => assert_eq!(answer, format!("HTTP/1.1 {status}").as_bytes(), "{}", &request[..20]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{}", &request[..20]),
        }
    }
    assert_eq!(side.get("/health").status, 200);
}

/// What may be taken for one request by some and for two by others, or for another one than it is.
#[test]
fn what_is_ambiguous_is_one_request_or_none() {
    let side = Side::of(healthy());
    // A second request, which is answered where the first one ends for us.
    const SECOND: &str = "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let post = |fields: &str, body: &str| format!("POST /livez HTTP/1.1\r\nHost: x\r\n{fields}\r\n{body}{SECOND}");
    let get = |fields: &str| format!("GET /livez HTTP/1.1\r\n{fields}\r\n");
    let chunked = "Transfer-Encoding: chunked\r\n";
    let requests: Vec<(String, &[u16])> = vec![
        // Two lengths: one answer, and the connection is closed.
        (post(&format!("Content-Length: 4\r\n{chunked}"), "0\r\n\r\n"), &[405]),
        (post(&format!("{chunked}Content-Length: 4\r\n"), "0\r\n\r\n"), &[405]),
        (post("Content-Length: 5\r\nContent-Length: 6\r\n", "abcde"), &[400]),
        (post("Content-Length: 5, 5\r\n", "abcde"), &[400]),
        (post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), &[400]),
        (post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"), &[400]),
        (post(&format!("{chunked}Transfer-Encoding: identity\r\n"), "0\r\n\r\n"), &[400]),
        (post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), &[400]),
        (post(chunked, "0\r\n\r\n").replacen("1.1", "1.0", 1), &[400]),
        // The same length twice is one.
        (post("Content-Length: 5\r\nContent-Length: 5\r\n", "abcde"), &[405, 503]),
        // Lengths that are none.
        (post("Content-Length: +5\r\n", "abcde"), &[400]),
        (post("Content-Length: -1\r\n", ""), &[400]),
        (post("Content-Length: 0x5\r\n", "abcde"), &[400]),
        (post("Content-Length: \r\n", ""), &[400]),
        (post("Content-Length: 99999999999999999999999\r\n", ""), &[400]),
        (post(chunked, "FFFFFFFFFFFFFFFFF\r\n"), &[405]),
        (post(chunked, "zz\r\n"), &[405]),
        (post(chunked, "-1\r\n"), &[405]),
        (post(chunked, "1\nA\n0\n\n"), &[405]),
        // Lines that do not end where they seem to.
        (get("Host: x\r\nX: a\r\n b\r\n"), &[400]),
        (get(" Host: x\r\n"), &[400]),
        (get("Host: x\r\nX: a\rb\r\n"), &[400]),
        (get("Host: x\r\nX: a\0b\r\n"), &[400]),
        (get("Host: x\r\nX\0: a\r\n"), &[400]),
        ("GET /livez HTTP/1.1\rHost: x\r\r".to_owned() + SECOND, &[400]),
        // Other versions.
        ("GET /livez\r\n\r\n".to_owned(), &[400]),
        ("GET /livez HTTP/3.7\r\n\r\n".to_owned(), &[400]),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), &[]),
        (get("Host: x\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"), &[200]),
        // Targets.
        ("GET /li\0vez HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), &[400]),
        ("GET /li vez HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), &[400]),
        ("GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), &[400]),
        ("GET http:///livez HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), &[400]),
        ("GET http://a:b@evil.example/livez HTTP/1.0\r\n\r\n".to_owned(), &[200]),
        ("GET livez HTTP/1.0\r\n\r\n".to_owned(), &[404]),
        ("GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.0\r\n\r\n".to_owned(), &[404]),
        ("GET /health/%2e%2e%2fmetrics HTTP/1.0\r\n\r\n".to_owned(), &[404]),
        ("GET /health/..%c0%af..%c0%afetc HTTP/1.0\r\n\r\n".to_owned(), &[404]),
        ("GET /../../etc/passwd HTTP/1.0\r\n\r\n".to_owned(), &[404]),
        ("GET /servers/%00%0d%0aX:%20y HTTP/1.0\r\n\r\n".to_owned(), &[404]),
    ];
    for (request, wanted) in requests {
        let mut stream = side.connect();
        let _ = stream.write_all(request.as_bytes());
        let mut all = Vec::new();
        // Closed with something unread, it is reset once all of the answer has come.
        if let Err(error) = stream.read_to_end(&mut all) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{request:?}");
        }
        let all = String::from_utf8(all).unwrap();
        let got: Vec<u16> = all.split("HTTP/1.").skip(1).map(|rest| rest[2..5].parse().unwrap()).collect();
        assert_eq!(got, wanted, "{request:?}: {all}");
        assert!(!all.contains("root:") && !all.contains("\nX: y"), "{all}");
    }
    assert_eq!(side.get("/health").status, 200);
}

/// How long it takes until the connection is closed by the other side.
fn closed_after(stream: &mut TcpStream) -> Duration {
    let began = Instant::now();
    match stream.read(&mut [0; 16]) {
        Ok(0) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        other => panic!("{other:?}"),
    }
    began.elapsed()
}

#[test]
fn who_dribbles_is_cut() {
    let limits = Limits { head: Duration::from_millis(400), ..Limits::default() };
    let side = Side::with(healthy(), limits, clock::now);
    let mut dribbling = side.connect();
    let mut writing = dribbling.try_clone().unwrap();
    let began = Instant::now();
    let dribble = std::thread::spawn(move || {
        for byte in b"GET /health HTTP/1.1\r\nHost: x\r\nX: ".iter().chain(std::iter::repeat(&b'y')) {
            if writing.write_all(&[*byte]).is_err() || began.elapsed() > PATIENCE {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    closed_after(&mut dribbling);
    assert!(began.elapsed() >= Duration::from_millis(390), "{:?}", began.elapsed());
    dribble.join().unwrap();
    // The limit begins anew with every request.
    let mut kept = side.connect();
    for _ in 0..3 {
        kept.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert!(kept.read(&mut [0; 2048]).unwrap() > 0);
        std::thread::sleep(Duration::from_millis(250));
    }
}

#[test]
fn who_is_idle_is_cut_in_the_end() {
    let side = Side::with(healthy(), Limits { idle: Duration::from_millis(300), ..Limits::default() }, clock::now);
    let mut stream = side.connect();
    assert!(closed_after(&mut stream) >= Duration::from_millis(290));
    let mut stream = side.connect();
    stream.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("slow"), "who waits for an answer is not idle: {answer}");
}

/// A program's standard output and error, for this input; it has to end with status 0.
fn told_by(program: &str, args: &[&str], input: &str) -> String {
    let mut command = std::process::Command::new(program);
    let piped = std::process::Stdio::piped;
    let mut child = command.args(args).stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {told}");
    told
}

/// Debian's `prometheus` and PyPI's `prometheus-client`.
#[test]
#[ignore = "needs promtool and python's prometheus_client; CI has them"]
fn the_readers_of_metrics_have_nothing_to_say() {
    let hostile = "a\"b\\n{}=,# 日本";
    let side = Side::of(vec![server("new", None), server("a", Some(Verdict::Pass)), server(hostile, Some(Verdict::Fail))]);
    assert_eq!(told_by("promtool", &["check", "metrics"], &side.get("/metrics").body), "");
    let count = "import sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as read; \
                 print(sum(1 for family in read(sys.stdin.read()) for sample in family.samples if sample.name == 'stdiowatch_up'))";
    let open_metrics = side.ask("GET", "/metrics", "Accept: application/openmetrics-text\r\n").body;
    assert_eq!(told_by("python3", &["-c", count], &open_metrics), "3\n");
}

#[test]
fn connections_kept_for_nothing_keep_nobody_out() {
    let limits = Limits { connections: 100, ..Limits::default() };
    let side = Side::with(healthy(), limits, clock::now);
    let mut idle: Vec<TcpStream> = (0..100).map(|_| side.connect()).collect();
    let deadline = Instant::now() + PATIENCE;
    // Once they have been idle for a moment, the one that has been so longest makes room.
    loop {
        let mut stream = side.connect();
        let _ = stream.write_all(b"GET /health HTTP/1.0\r\n\r\n");
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        if read.is_ok() && answer.starts_with("HTTP/1.0 200") {
            break;
        }
        assert!(Instant::now() < deadline, "never let in");
        std::thread::sleep(Duration::from_millis(50));
    }
    closed_after(&mut idle[0]);
    idle[99].write_all(b"GET /health HTTP/1.0\r\n\r\n").unwrap();
    assert!(idle[99].read(&mut [0; 16]).unwrap() > 0, "the last one is still there");
}

#[test]
fn who_dribbles_keeps_nobody_out() {
    let limits = Limits { connections: 20, head: PATIENCE * 2, ..Limits::default() };
    let side = Side::with(healthy(), limits, clock::now);
    let begun = || {
        let mut stream = side.connect();
        stream.write_all(b"GET /livez HTTP/1.1\r\nX: ").unwrap();
        stream
    };
    let mut kept = side.connect();
    let ask = |kept: &mut TcpStream| {
        kept.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let (mut answer, mut got) = ([0; 2048], 0);
        while !answer[..got].ends_with(b"\r\n\r\nok\n") {
            let n = kept.read(&mut answer[got..]).unwrap();
            assert!(n > 0, "who is answered now and then is not ended");
            got += n;
        }
    };
    ask(&mut kept);
    let mut dribbling: Vec<TcpStream> = (0..19).map(|_| begun()).collect();
    let began = Instant::now();
    let mut answered = 0;
    // Nobody is idle: each sends a byte all the time, and comes again when it is ended.
    while began.elapsed() < Duration::from_secs(2) {
        for stream in &mut dribbling {
            if stream.write_all(b"y").is_err() {
                *stream = begun();
            }
        }
        ask(&mut kept);
        let mut stream = side.connect();
        stream.write_all(b"GET /livez HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        if stream.read_to_end(&mut answer).is_ok() && answer.starts_with(b"HTTP/1.0 200") {
            answered += 1;
        }
    }
    assert!(answered > 10, "{answered} came through");
}

#[test]
fn a_hundred_idle_connections_slow_nobody_down() {
    let side = Side::of(healthy());
    let _idle: Vec<TcpStream> = (0..100).map(|_| side.connect()).collect();
    let began = Instant::now();
    assert_eq!(side.get("/health").status, 200);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[test]
fn stopping_answers_what_is_in_flight() {
    let mut side = Side::of(healthy());
    let mut idle = side.connect();
    let mut slow = side.connect();
    slow.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    // Its head is read when another connection, opened later, has been answered.
    assert_eq!(side.get("/livez").status, 200);
    side.stop();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("slow") && answer.contains("connection: close"), "{answer}");
    assert!(closed_after(&mut idle) < Duration::from_secs(1));
    assert_eq!(TcpStream::connect(side.address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn stopping_waits_for_nobody_for_long() {
    let limits = Limits { drain: Duration::from_millis(200), ..Limits::default() };
    let mut side = Side::with(healthy(), limits, clock::now);
    let mut half = side.connect();
    half.write_all(b"GET /health HTTP/1.1\r\nHo").unwrap();
    assert_eq!(side.get("/livez").status, 200);
    let began = Instant::now();
    side.stop();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    closed_after(&mut half);
}

#[test]
fn an_address_that_cannot_be_had_is_named() {
    let taken = bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let told = |address: &str| bind(address).unwrap_err().to_string();
    assert_eq!(told(&address), format!("cannot listen on {address}: address already in use; something else listens there, and `ss -ltnp` says what"));
    assert_eq!(told("192.0.2.1:1"), "cannot listen on 192.0.2.1:1: this machine has no such address");
    for wrong in ["", "localhost", "127.0.0.1", "::1:80", "1.2.3.4:", "1.2.3.4:70000", "http://x/", ":http", "[::1]"] {
        assert!(told(wrong).contains("an address is HOST:PORT, as in 127.0.0.1:10779"), "{wrong}: {}", told(wrong));
    }
    assert!(told("no-such-host.invalid:80").starts_with("cannot listen on no-such-host.invalid:80: the host is not known"));
    let everywhere = bind(":0").unwrap();
    TcpStream::connect(("127.0.0.1", everywhere.local_addr().unwrap().port())).unwrap();
    bind("localhost:0").unwrap();
}
