//! Who may ask: TLS, certificates, users and what is for everybody, as its users run the program.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs, read clocks and panic")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use common::*;
use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};
use serde_json::Value;
use stdiowatch::outside::clock;

/// Cost 4, so that it is quick: the password is `secret`.
fn alice() -> String {
    format!("basic_auth_users: {{alice: {}}}\n", bcrypt::hash("secret", 4).unwrap())
}

fn basic(pair: &str) -> String {
    format!("Authorization: Basic {}\r\n", base64::engine::general_purpose::STANDARD.encode(pair))
}

/// An authority, and what it vouches for.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for these names and its key, in PEM.
    fn pair(&self, names: &[&str], usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names
            .iter()
            .map(|name| match (name.parse(), name.contains('@'), name.contains("://")) {
                (Ok(address), ..) => SanType::IpAddress(address),
                (_, true, _) => SanType::Rfc822Name((*name).try_into().unwrap()),
                (_, _, true) => SanType::URI((*name).try_into().unwrap()),
                _ => SanType::DnsName((*name).try_into().unwrap()),
            })
            .collect();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    fn server(&self) -> (String, String) {
        self.pair(&["localhost", "127.0.0.1"], ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn server_until(&self, day: Date) -> (String, String) {
        let (key, mut params) = (KeyPair::generate().unwrap(), CertificateParams::new(vec!["localhost".to_owned()]).unwrap());
        params.not_after = date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs());
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    fn client(&self, names: &[&str]) -> (String, String) {
        self.pair(names, ExtendedKeyUsagePurpose::ClientAuth)
    }
}

/// How somebody asks.
#[derive(Clone)]
struct Asker(Arc<ClientConfig>);

impl Asker {
    fn new(authority: &Authority, versions: &[&'static SupportedProtocolVersion], own: Option<&(String, String)>) -> Asker {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_protocol_versions(versions).unwrap();
        let builder = builder.with_root_certificates(roots);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap()
            }
        };
        Asker(Arc::new(config))
    }

    fn usual(authority: &Authority) -> Asker {
        Asker::new(authority, rustls::ALL_VERSIONS, None)
    }

    /// Speaks TLS with 127.0.0.1:PORT.
    fn connect(&self, port: u16) -> StreamOwned<ClientConnection, TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        StreamOwned::new(ClientConnection::new(Arc::clone(&self.0), name).unwrap(), stream)
    }

    /// The status, the head and the body of the answer to GET; the error where there is none.
    fn get(&self, port: u16, path: &str, headers: &str) -> Result<(u16, String, String), std::io::Error> {
        self.ask(port, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"))
    }

    fn ask(&self, port: u16, request: &str) -> Result<(u16, String, String), std::io::Error> {
        let mut stream = self.connect(port);
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        Ok((head[9..12].parse().unwrap(), head.to_owned(), body.to_owned()))
    }

    fn status(&self, port: u16, path: &str) -> Option<u16> {
        self.get(port, path, "").ok().map(|(status, ..)| status)
    }

    /// The certificate that is shown; the error where there is none.
    fn shown(&self, port: u16) -> Result<Vec<u8>, String> {
        let mut stream = self.connect(port);
        stream.conn.complete_io(&mut stream.sock).map_err(|error| format!("{:?}: {error}", error.kind()))?;
        Ok(stream.conn.peer_certificates().unwrap()[0].to_vec())
    }
}

fn der(pem: &str) -> Vec<u8> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec()
}

/// A directory with a web configuration, and what it names.
struct Door {
    dir: Scratch,
    run: Run,
    authority: Authority,
}

impl Door {
    fn new() -> Door {
        let door = Door { dir: Scratch::new(), run: Run::new(), authority: Authority::new() };
        door.certify();
        door.dir.write("ca.crt", &door.authority.pem);
        door
    }

    /// A new certificate with its key, put in place as it is done: renamed.
    fn certify(&self) -> Vec<u8> {
        let (certificate, key) = self.authority.server();
        self.put("server.crt", &certificate);
        self.put("server.key", &key);
        der(&certificate)
    }

    fn put(&self, name: &str, text: &str) {
        self.dir.write("new", text);
        fs::rename(self.dir.0.join("new"), self.dir.0.join(name)).unwrap();
    }

    /// TLS, with these further lines in `tls_server_config`, and these after it.
    fn tls(&self, inside: &str, after: &str) -> String {
        let inside: String = inside.lines().map(|line| format!("  {line}\n")).collect();
        format!("tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n{inside}{after}")
    }

    fn serve(&self, web: &str, more: &[&str]) -> Serving {
        self.serve_with(web, more, &["--name", "mine", "--", PROGRAM, "sample-server", "sound"])
    }

    fn serve_with(&self, web: &str, more: &[&str], server: &[&str]) -> Serving {
        let web = self.dir.write("web.yml", web);
        let mut args = vec!["--web-config", &web];
        args.extend(more);
        args.extend(server);
        Serving::start(&self.run, &args)
    }
}

/// Every path of the OpenAPI document, for the server `mine`.
fn targets() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    let document: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let paths: Vec<String> =
        document["paths"].as_object().unwrap().keys().map(|p| p.replace("{NAME}", "mine").replace("{FILE}", "mine.svg")).collect();
    assert!(paths.len() > 15 && paths.contains(&"/-/reload".to_owned()), "{paths:?}");
    paths
}

#[test]
fn who_is_nobody_gets_401_everywhere_but_where_everybody_may() {
    let door = Door::new();
    let web = format!("{}auth_excluded_paths: [/livez, /readyz, /health]\nhttp_server_config: {{headers: {{X-Frame-Options: deny}}}}\n", alice());
    let serving = door.serve(&web, &["--enable-actions"]);
    let ask = |method: &str, target: &str, headers: &str| {
        serving.exchange(&format!("{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{headers}\r\n"))
    };
    serving.becomes("/readyz", 200);
    assert_eq!(serving.get("/health").0, 200, "everybody may see whether all is well");
    let free = ["/livez", "/readyz", "/health"];
    let odd = ["/nothing", "/livez/", "//livez", "/%6civez", "/LIVEZ", "/health/mine", "/health/../metrics", "/-/", "*"].map(str::to_owned);
    let wrong = [
        "",
        "Authorization: Basic\r\n",
        "Authorization: Bearer secret\r\n",
        &basic("alice:wrong"),
        &basic("bob:secret"),
        &basic("alice"),
        &basic(":"),
    ];
    for target in targets().into_iter().filter(|target| !free.contains(&target.as_str())).chain(odd) {
        for method in ["GET", "HEAD", "POST", "OPTIONS", "DELETE"] {
            if target == "*" && method != "OPTIONS" {
                continue;
            }
            let (status, head, body) = ask(method, &target, "");
            assert_eq!(status, 401, "{method} {target}");
            for field in [
                "www-authenticate: Basic realm=\"stdiowatch\", charset=\"UTF-8\"",
                "cache-control: no-store",
                "x-content-type-options: nosniff",
                "referrer-policy: no-referrer",
                "content-security-policy: default-src 'none'; frame-ancestors 'none'",
                "x-frame-options: deny",
            ] {
                assert!(head.lines().any(|line| line == field), "{method} {target}: no {field} in {head}");
            }
            assert!(!body.contains("mine"), "{body}");
        }
        for headers in wrong {
            assert_eq!(ask("GET", &target, headers).0, 401, "{target}: {headers}");
        }
        if target != "*" {
            // `/events` has no end, so its head is all that is read.
            let head = head_of(&serving, &format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{}\r\n", basic("alice:secret")));
            let lasting = ["/page.css", "/page.js", "/icon.svg"].contains(&target.as_str());
            let cache = if lasting { "cache-control: public, max-age=86400" } else { "cache-control: no-store" };
            assert!(!head.starts_with("HTTP/1.1 401"), "{target}: {head}");
            for field in [
                cache,
                "x-content-type-options: nosniff",
                "referrer-policy: no-referrer",
                "content-security-policy: default-src 'none';",
                "x-frame-options: deny",
            ] {
                assert!(head.lines().any(|line| line.starts_with(field)), "{target}: no {field} in {head}");
            }
        }
    }
    for target in free {
        assert_eq!((ask("GET", target, "").0, ask("GET", &format!("{target}?x=/metrics"), "").0), (200, 200), "{target}");
        assert_eq!(ask("GET", target, &basic("alice:wrong")).0, 200, "{target}");
    }
    // The scheme is case-insensitive, and what stands twice is not looked for a second time.
    let scheme = basic("alice:secret").replace("Basic", "bAsIc");
    assert_eq!(ask("GET", "/metrics", &scheme).0, 200);
    assert_eq!(ask("GET", "/metrics", &(basic("alice:wrong") + &basic("alice:secret"))).0, 401);
}

/// The head of the answer to these bytes; the connection is closed then.
fn head_of(serving: &Serving, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", serving.port)).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    head_from(&mut stream)
}

fn head_from(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    String::from_utf8(head).unwrap()
}

#[test]
fn a_connection_from_before_there_was_tls_is_told_so() {
    let door = Door::new();
    let serving = door.serve("{}\n", &[]);
    let mut kept = TcpStream::connect(("127.0.0.1", serving.port)).unwrap();
    let mut ask = || {
        kept.write_all(b"HEAD /livez HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        head_from(&mut kept)[9..12].to_owned()
    };
    assert_eq!(ask(), "200");
    door.put("web.yml", &door.tls("", ""));
    let last = poll(LONG, || Some(ask()).filter(|status| status != "200"));
    assert_eq!(last.as_deref(), Some("400"));
    assert_eq!(Asker::usual(&door.authority).status(serving.port, "/livez"), Some(200));
}

#[test]
fn what_is_private_is_for_who_has_authenticated() {
    let door = Door::new();
    let broken = ["--name", "mine", "--", PROGRAM, "sample-server", "exit"];
    let report = |serving: &Serving, headers: &str| {
        let ask = || serving.exchange(&format!("GET /api/v1/servers/mine HTTP/1.0\r\n{headers}\r\n"));
        let (_, _, body) = poll(LONG, || Some(ask()).filter(|(status, ..)| *status == 200)).expect("it was probed");
        serde_json::from_str::<Value>(&body).unwrap()["stderr_tail"].clone()
    };
    let known = basic("alice:secret");
    let serving = door.serve_with(&alice(), &[], &broken);
    assert!(report(&serving, &known).as_str().unwrap().contains("SAMPLE_API_KEY"));
    let debug = |serving: &Serving, headers: &str| serving.exchange(&format!("GET /probe?target=mine&debug=true HTTP/1.0\r\n{headers}\r\n")).0;
    assert_eq!(debug(&serving, &known), 200, "the transcript too");
    drop(serving);
    // A path for everybody is for everybody.
    let serving = door.serve_with(&format!("{}auth_excluded_paths: [/api/v1/servers/mine]\n", alice()), &[], &broken);
    assert_eq!((report(&serving, ""), report(&serving, &known)), (Value::Null, Value::Null));
    drop(serving);
    for (key, authenticated, nobody) in [("show_private: false", false, None), ("show_private: true", true, Some(true)), ("", false, Some(false))] {
        let web = if nobody.is_none() { alice() } else { "{}\n".to_owned() };
        door.dir.write("web.yml", &web);
        let config = door
            .dir
            .write("own.yml", &format!("web_config: web.yml\n{key}\nservers: {{mine: {{command: {PROGRAM}, args: [sample-server, exit]}}}}\n"));
        let serving = Serving::start(&door.run, &["--config", &config]);
        let seen = report(&serving, if nobody.is_none() { &known } else { "" });
        assert_eq!(seen.is_string(), authenticated, "{key}: {seen}");
        assert_eq!(debug(&serving, if nobody.is_none() { &known } else { "" }), if authenticated { 200 } else { 403 }, "{key}");
    }
}

#[test]
fn a_path_for_everybody_shows_no_transcript() {
    let door = Door::new();
    let debug = |serving: &Serving, headers: &str| {
        let (status, _, body) = serving.exchange(&format!("GET /probe?target=mine&debug=true HTTP/1.0\r\n{headers}\r\n"));
        (status, body.contains("SAMPLE_API_KEY"))
    };
    let free = "auth_excluded_paths: [/probe]\n";
    let (shown, hidden) = ((200, true), (403, false));
    for (web, key, wanted) in [
        (format!("{}{free}", alice()), "", hidden),
        (format!("{}{free}", alice()), "show_private: false", hidden),
        (format!("{}{free}", alice()), "show_private: true", shown),
        // Where nobody is asked, this machine's users may.
        ("{}\n".to_owned(), "", shown),
        ("{}\n".to_owned(), "show_private: false", hidden),
    ] {
        door.dir.write("web.yml", &web);
        let config = format!("web_config: web.yml\n{key}\nservers: {{mine: {{command: {PROGRAM}, args: [sample-server, exit]}}}}\n");
        let config = door.dir.write("own.yml", &config);
        let serving = Serving::start(&door.run, &["--config", &config, "--enable-actions"]);
        assert_eq!(debug(&serving, ""), wanted, "{web} {key}");
        assert_eq!(serving.exchange("GET /probe?target=mine HTTP/1.0\r\n\r\n").0, 200, "the series are for everybody");
    }
    // Also where users come later than the start.
    door.dir.write("web.yml", "{}\n");
    let serving = door.serve_with("{}\n", &["--enable-actions"], &["--name", "mine", "--", PROGRAM, "sample-server", "exit"]);
    assert_eq!(debug(&serving, ""), shown);
    door.put("web.yml", &format!("{}{free}", alice()));
    poll(LONG, || (debug(&serving, "") == hidden).then_some(())).expect("who has not authenticated is nobody");
}

#[test]
fn what_is_put_back_is_no_longer_refused() {
    let door = Door::new();
    let web = alice() + "auth_excluded_paths: [/metrics]\n";
    let serving = door.serve(&web, &[]);
    const OK: &str = "stdiowatch_web_config_last_reload_successful";
    serving.metric_becomes(OK, 1.0);
    let pipe = door.dir.0.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for _ in 0..2 {
        door.put("web.yml", "garbage\n");
        serving.metric_becomes(OK, 0.0);
        door.put("web.yml", &web);
        serving.metric_becomes(OK, 1.0);
        // A pipe that nobody writes to is not waited for.
        fs::remove_file(door.dir.0.join("web.yml")).unwrap();
        std::os::unix::fs::symlink(&pipe, door.dir.0.join("web.yml")).unwrap();
        serving.metric_becomes(OK, 0.0);
        door.put("web.yml", &web);
        serving.metric_becomes(OK, 1.0);
    }
    assert_eq!(serving.exchange(&format!("GET /health/mine HTTP/1.0\r\n{}\r\n", basic("bob:secret"))).0, 401);
}

#[test]
fn who_is_removed_listens_no_more() {
    let door = Door::new();
    let serving = door.serve(&alice(), &[]);
    let mut listening = TcpStream::connect(("127.0.0.1", serving.port)).unwrap();
    listening.set_read_timeout(Some(LONG)).unwrap();
    listening.write_all(format!("GET /events HTTP/1.0\r\n{}\r\n", basic("alice:secret")).as_bytes()).unwrap();
    assert!(head_from(&mut listening).starts_with("HTTP/1.0 200"));
    door.put("web.yml", &alice().replace("alice", "bob"));
    let mut said = Vec::new();
    listening.read_to_end(&mut said).expect("it ends");
}

#[test]
fn who_asks_from_elsewhere_is_not_behind_a_flood() {
    let door = Door::new();
    // A check takes a tenth of a second or more.
    let web = format!("basic_auth_users: {{alice: {}}}\n", bcrypt::hash("secret", 11).unwrap());
    let serving = door.serve(&web, &[]);
    let flood: Vec<TcpStream> = (0..100)
        .map(|n| {
            let mut stream = TcpStream::connect(("127.0.0.1", serving.port)).unwrap();
            stream.write_all(format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{}\r\n", basic(&format!("nobody:{n}"))).as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(serving.exchange(&format!("GET /metrics HTTP/1.0\r\n{}\r\n", basic("alice:secret"))).0, 200, "she is not sent away");
    drop(flood);
}

#[test]
fn actions_are_for_who_is_known_and_for_no_page() {
    let door = Door::new();
    let serving = door.serve(&alice(), &["--enable-actions"]);
    let resume =
        |headers: &str| serving.exchange(&format!("POST /-/resume/mine HTTP/1.1\r\nHost: public.example\r\nConnection: close\r\n{headers}\r\n")).0;
    let known = basic("alice:secret");
    assert_eq!((resume(""), resume(&known)), (401, 200));
    for page in ["Origin: https://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-origin\r\n"] {
        assert_eq!(resume(&format!("{known}{page}")), 403, "{page}: a browser sends the password by itself");
    }
    assert_eq!(serving.exchange(&format!("POST /-/reload HTTP/1.0\r\n{known}\r\n")).0, 200, "there is a web configuration to be read again");
}

#[test]
fn tls_is_spoken_in_both_versions_and_nothing_else_is() {
    let door = Door::new();
    let serving = door.serve(&door.tls("", ""), &[]);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let asker = Asker::new(&door.authority, &[version], None);
        let (status, head, body) = asker.get(serving.port, "/livez", "").unwrap();
        assert_eq!((status, body.as_str()), (200, "ok\n"), "{head}");
        // One connection, several requests.
        let mut stream = asker.connect(serving.port);
        for _ in 0..3 {
            stream.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut got = Vec::new();
            while !got.ends_with(b"\r\n\r\nok\n") {
                let mut part = [0; 1024];
                let n = stream.read(&mut part).unwrap();
                assert!(n > 0);
                got.extend_from_slice(&part[..n]);
            }
        }
        assert_eq!(stream.conn.alpn_protocol(), None);
    }
    let (status, head, body) = serving.exchange("GET /health HTTP/1.1\r\nHost: x\r\nX-More: of it\r\n\r\n");
    assert_eq!((status, body.as_str()), (400, "this is HTTPS: the request came over plain HTTP\n"), "{head}");
    let speaking = |protocol: &[u8]| {
        let mut config = (*Asker::usual(&door.authority).0).clone();
        config.alpn_protocols = vec![protocol.to_vec()];
        Asker(Arc::new(config)).status(serving.port, "/livez")
    };
    assert_eq!((speaking(b"http/1.1"), speaking(b"h2")), (Some(200), None));
    // A stranger's authority is none of ours, which is for the one who asks to see.
    assert_eq!(Asker::usual(&Authority::new()).status(serving.port, "/livez"), None);
    drop(serving);
    let narrow = "min_version: TLS13\ncurve_preferences: [CurveP256]\ncipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]";
    let serving = door.serve(&door.tls(narrow, ""), &[]);
    assert_eq!(Asker::new(&door.authority, &[&rustls::version::TLS12], None).status(serving.port, "/livez"), None);
    assert_eq!(Asker::new(&door.authority, &[&rustls::version::TLS13], None).status(serving.port, "/livez"), Some(200));
}

#[test]
fn a_certificate_is_swapped_while_it_is_used() {
    let door = Door::new();
    let first = door.certify();
    let serving = door.serve(&door.tls("", &alice()), &[]);
    let (asker, port, known) = (Asker::usual(&door.authority), serving.port, basic("alice:secret"));
    assert_eq!(asker.shown(port), Ok(first));
    let (stop, asked) = (AtomicBool::new(false), AtomicU32::new(0));
    let reloaded = || {
        let (_, _, body) = asker.get(port, "/metrics", &known).unwrap();
        body.lines().find_map(|line| line.strip_prefix("stdiowatch_web_config_last_reload_successful ")).map(str::to_owned)
    };
    assert_eq!(reloaded().as_deref(), Some("1"));
    let becomes = |wanted: &[u8]| poll(LONG, || (asker.shown(port).as_deref() == Ok(wanted)).then_some(())).expect("the new certificate is shown");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(asker.get(port, "/livez", &known).unwrap().0, 200, "nobody is refused meanwhile");
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
        // Both of them, one after the other: in between they do not fit each other.
        let second = door.certify();
        becomes(&second);
        // A broken one is not taken; the one before stays.
        door.put("server.crt", "garbage\n");
        poll(LONG, || (reloaded().as_deref() == Some("0")).then_some(())).expect("it is told");
        assert_eq!(asker.shown(port), Ok(second));
        fs::remove_file(door.dir.0.join("server.key")).unwrap();
        let third = door.certify();
        becomes(&third);
        assert_eq!(reloaded().as_deref(), Some("1"));
        stop.store(true, Ordering::Relaxed);
    });
    assert!(asked.load(Ordering::Relaxed) > 10, "{asked:?}");
    // Users as well, on connections that there are.
    let mut kept = asker.connect(port);
    let ask = |kept: &mut StreamOwned<ClientConnection, TcpStream>| {
        kept.write_all(format!("HEAD /metrics HTTP/1.1\r\nHost: x\r\n{known}\r\n").as_bytes()).unwrap();
        head_from(kept)[9..12].to_owned()
    };
    assert_eq!(ask(&mut kept), "200");
    let other = format!("basic_auth_users: {{bob: {}}}\n", bcrypt::hash("secret", 4).unwrap());
    door.put("web.yml", &door.tls("", &other));
    poll(LONG, || (ask(&mut kept) == "401").then_some(())).expect("alice is nobody any more");
    assert_eq!(asker.get(port, "/metrics", &basic("bob:secret")).unwrap().0, 200);
    // An empty file lets nobody in who was not in before.
    door.put("web.yml", "");
    let bob = basic("bob:secret");
    poll(LONG, || {
        let (_, _, body) = asker.get(port, "/metrics", &bob).unwrap();
        body.contains("stdiowatch_web_config_last_reload_successful 0\n").then_some(())
    })
    .expect("it is told");
    assert_eq!(asker.get(port, "/metrics", "").unwrap().0, 401);
}

#[test]
fn a_certificate_that_expires_is_told_of_before_it_has() {
    let door = Door::new();
    let now = clock::now().unix_ms / 1000;
    let certify = |days: i64| {
        let day = TimeZone::UTC.to_datetime(Timestamp::from_second(now + days * 86_400).unwrap()).date();
        let (certificate, key) = door.authority.server_until(day);
        door.put("server.crt", &certificate);
        door.put("server.key", &key);
        TimeZone::UTC.to_timestamp(day.to_datetime(Time::midnight())).unwrap().as_second()
    };
    let soon = certify(5);
    let (web, log, port) = (
        door.dir.write("web.yml", &door.tls("client_ca_file: ca.crt\nclient_auth_type: VerifyClientCertIfGiven", "")),
        door.dir.path("log"),
        free_port(),
    );
    let listen = format!("127.0.0.1:{port}");
    let args = ["serve", "--listen", &listen, "--web-config", &web, "--name", "mine", "--", PROGRAM, "sample-server", "sound"];
    let child = door.run.command(&args).stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let serving = Serving { child, port };
    poll(LONG, || TcpStream::connect(("127.0.0.1", port)).ok()).unwrap();
    let told = |what: &str| door.dir.read("log").lines().filter(|line| line.contains(what)).count();
    let asker = Asker::usual(&door.authority);
    let expiry = |certificate: &str| {
        let (_, _, body) = asker.get(port, "/metrics", "").unwrap();
        let series = format!("stdiowatch_web_certificate_expiry_timestamp_seconds{{certificate=\"{certificate}\"}} ");
        body.lines().find_map(|line| line.strip_prefix(&series)?.parse::<f64>().ok())
    };
    assert_eq!(expiry("server"), Some(soon as f64));
    assert!(expiry("client_ca") > Some(soon as f64));
    assert_eq!((told("the certificate of cert_file expires in 4 days"), told("client_ca_file")), (1, 0), "{}", door.dir.read("log"));
    // Once for each reload, though the files are read again by themselves after it.
    serving.signal("HUP");
    let soon = "the certificate of cert_file expires in 4 days";
    poll(LONG, || (told(soon) == 2).then_some(())).expect("it is told again");
    assert!(poll(Duration::from_millis(1500), || (told(soon) > 2).then_some(())).is_none(), "{}", door.dir.read("log"));
    let check = |more: &[&str]| {
        let output = door.run.output(&[&["config", "check", "--web-config", &web], more].concat());
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(check(&[]), (Some(0), format!("{web}: ok\n"), String::new()));
    certify(-2);
    poll(LONG, || (told("the certificate of cert_file has expired") > 0).then_some(())).expect("it is told");
    let (status, said, warned) = check(&[]);
    assert_eq!((status, said), (Some(0), format!("{web}: ok\n")));
    assert!(warned.starts_with(&format!("{web}:2:14: warning: the certificate of cert_file has expired (")), "{warned}");
    assert_eq!(check(&["--strict"]), (Some(2), String::new(), warned));
    let later = certify(100);
    poll(LONG, || asker.shown(port).ok()).expect("it is valid again");
    assert_eq!(expiry("server"), Some(later as f64));
}

/// Who checks such a certificate is not served, though openssl makes it without a word.
#[test]
fn a_certificate_without_names_or_not_valid_yet_is_told_of() {
    let door = Door::new();
    let certify = |names: &[&str], day: Date| {
        let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        params.not_before = date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs());
        let key = KeyPair::generate().unwrap();
        door.dir.write("server.crt", &params.self_signed(&key).unwrap().pem());
        door.dir.write("server.key", &key.serialize_pem());
    };
    let web = door.tls("", "");
    let now = clock::now().unix_ms / 1000;
    let [before, later] = [-2, 9].map(|days| TimeZone::UTC.to_datetime(Timestamp::from_second(now + days * 86_400).unwrap()).date());
    let early = format!("the certificate of cert_file is not valid before {later}T00:00:00.000Z: who checks it is not served");
    let nameless = "the certificate of cert_file has no host and no address in its subjectAltName: Prometheus and browsers refuse it";
    let warning = |what: &str| format!("web.yml:2:14: warning: {what}");
    for (names, day, wanted) in [
        (&["localhost"][..], before, vec![]),
        (&["127.0.0.1"], before, vec![]),
        (&["localhost"], later, vec![warning(&early)]),
        (&[], before, vec![warning(nameless)]),
        (&[], later, vec![warning(&early), warning(nameless)]),
    ] {
        certify(names, day);
        let (status, said) = checked(&door, &web);
        let warned: Vec<_> = said.lines().filter(|line| line.contains("warning")).collect();
        assert!(status == Some(0) && said.starts_with("web.yml: ok\n") && warned.len() == wanted.len(), "{said}");
        assert!(warned.iter().zip(&wanted).all(|(line, wanted)| line.starts_with(wanted)), "{said}");
    }
    // The last one was both.
    let (log, port) = (door.dir.path("log"), free_port());
    let (listen, web) = (format!("127.0.0.1:{port}"), door.dir.path("web.yml"));
    let args = ["serve", "--listen", &listen, "--web-config", &web, "--name", "mine", "--", PROGRAM, "sample-server", "sound"];
    let child = door.run.command(&args).stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let _serving = Serving { child, port };
    let is_told = || [early.as_str(), nameless].iter().all(|why| door.dir.read("log").contains(why));
    assert!(poll(LONG, || is_told().then_some(())).is_some(), "{}", door.dir.read("log"));
}

#[test]
fn sighup_reads_everything_again_or_nothing() {
    let door = Door::new();
    let config = |command: &str| {
        door.dir.write("own.yml", &format!("web_config: web.yml\nservers: {{mine: {{command: {command}, args: [sample-server, sound]}}}}\n"))
    };
    door.dir.write("web.yml", &alice());
    let own = config(PROGRAM);
    let serving = Serving::start(&door.run, &["--config", &own]);
    let known = basic("alice:secret");
    let metric = |name: &str| {
        let (_, _, body) = serving.exchange(&format!("GET /metrics HTTP/1.0\r\n{known}\r\n"));
        body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned)
    };
    let becomes =
        |name: &str, value: &str| poll(LONG, || (metric(name).as_deref() == Some(value)).then_some(())).unwrap_or_else(|| panic!("{name} {value}"));
    door.dir.write("own.yml", &format!("web_config: web.yml\nservers: {{other: {{command: {PROGRAM}, args: [sample-server, sound]}}}}\n"));
    door.dir.write("web.yml", "basic_auth_users: {alice: secret}\n");
    serving.signal("HUP");
    becomes("stdiowatch_config_last_reload_successful", "0");
    assert_ne!(serving.exchange(&format!("GET /health/mine HTTP/1.0\r\n{known}\r\n")).0, 404, "the servers stay what they were");
    door.dir.write("web.yml", &alice());
    serving.signal("HUP");
    becomes("stdiowatch_config_last_reload_successful", "1");
    assert_eq!(serving.exchange(&format!("GET /health/mine HTTP/1.0\r\n{known}\r\n")).0, 404);
    assert_ne!(serving.exchange(&format!("GET /health/other HTTP/1.0\r\n{known}\r\n")).0, 404);
}

#[test]
fn clients_show_certificates() {
    let door = Door::new();
    let (known, stranger) = (door.authority.client(&["scraper.example", "me@a.example"]), Authority::new().client(&["scraper.example"]));
    let other = door.authority.client(&["other.example", "10.0.0.1"]);
    let askers = [None, Some(&known), Some(&other), Some(&stranger)].map(|own| Asker::new(&door.authority, rustls::ALL_VERSIONS, own));
    let authority = "client_ca_file: ca.crt\n";
    let of = |auth: &str, more: &str| format!("client_auth_type: {auth}\n{more}");
    let yes = Some(200);
    for (inside, wanted) in [
        (String::new(), [yes; 4]),
        (of("NoClientCert", ""), [yes; 4]),
        (of("RequestClientCert", ""), [yes; 4]),
        (of("RequireAnyClientCert", ""), [None, yes, yes, yes]),
        (of("VerifyClientCertIfGiven", authority), [yes, yes, yes, None]),
        (of("RequireAndVerifyClientCert", authority), [None, yes, yes, None]),
        (of("RequireAndVerifyClientCert", &format!("{authority}client_allowed_sans: [scraper.example]")), [None, yes, None, None]),
        (of("RequireAndVerifyClientCert", &format!("{authority}client_allowed_sans: [nobody, me@a.example, 10.0.0.1]")), [None, yes, yes, None]),
        (of("RequireAnyClientCert", "client_allowed_sans: [scraper.example]"), [None, yes, None, yes]),
    ] {
        let serving = door.serve(&door.tls(&inside, ""), &[]);
        let got = askers.each_ref().map(|asker| asker.status(serving.port, "/livez"));
        assert_eq!(got, wanted, "{inside}");
    }
    // Where something is for everybody, the rest is refused in words.
    let required = of("RequireAndVerifyClientCert", authority);
    let serving = door.serve(&door.tls(&required, "auth_excluded_paths: [/livez]\n"), &["--enable-actions"]);
    let got = |path: &str| askers.each_ref().map(|asker| asker.status(serving.port, path));
    assert_eq!((got("/livez"), got("/metrics")), ([yes, yes, yes, None], [Some(401), yes, yes, None]));
    let port = serving.port;
    let act = |asker: &Asker| asker.ask(port, "POST /-/resume/mine HTTP/1.1\r\nHost: public.example\r\nConnection: close\r\n\r\n").unwrap().0;
    assert_eq!((act(&askers[0]), act(&askers[1])), (401, 200), "a certificate is as good as a user");
    // Another authority: also for connections that were made before.
    let mut kept = askers[1].connect(port);
    let mut ask = || {
        kept.write_all(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            kept.read_exact(&mut byte).ok()?;
            answer.extend(byte);
        }
        String::from_utf8(answer).unwrap()[9..12].parse::<u16>().ok()
    };
    assert_eq!(ask(), yes);
    door.certify();
    poll(LONG, || askers[1].shown(port).ok()).unwrap();
    assert_eq!(ask(), yes, "another certificate of ours changes nothing for clients");
    door.put("ca.crt", &Authority::new().pem);
    assert_eq!(poll(LONG, || Some(ask()).filter(|status| *status != yes)), Some(Some(401)));
    drop(serving);
    // Both are asked for where both are wanted.
    let serving = door.serve(&door.tls(&of("RequireAnyClientCert", ""), &alice()), &[]);
    assert_eq!(askers[1].get(serving.port, "/livez", "").unwrap().0, 401);
    assert_eq!(askers[1].get(serving.port, "/livez", &basic("alice:secret")).unwrap().0, 200);
    assert!(askers[0].get(serving.port, "/livez", &basic("alice:secret")).is_err());
}

#[test]
fn half_a_handshake_is_in_nobodys_way() {
    let door = Door::new();
    let serving = door.serve(&door.tls("", ""), &[]);
    let asker = Asker::usual(&door.authority);
    let hello = {
        let mut client = ClientConnection::new(Arc::clone(&asker.0), ServerName::try_from("localhost").unwrap()).unwrap();
        let mut hello = Vec::new();
        client.write_tls(&mut hello).unwrap();
        hello
    };
    let begun = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(("127.0.0.1", serving.port)).unwrap();
        stream.write_all(bytes).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    };
    let began = Instant::now();
    let mut half: Vec<TcpStream> = (0..600).map(|n| begun(&hello[..if n % 3 == 0 { 0 } else { hello.len() / 2 }])).collect();
    let garbage: Vec<TcpStream> = [&[22, 3, 1, 255, 255][..], &[22; 5000], &[0; 100], &[128, 46, 1, 0, 2]].map(begun).into();
    for _ in 0..5 {
        // All places are taken: once somebody has done nothing for a second, there is room.
        let came = poll(Duration::from_secs(4), || (asker.status(serving.port, "/livez") == Some(200)).then_some(()));
        assert!(came.is_some(), "nobody gets in");
        let asked = Instant::now();
        if asker.status(serving.port, "/livez") == Some(200) {
            assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
        }
    }
    drop(garbage);
    // The last one that has begun is ended after the time that a request's head has, if not before.
    let mut end = Vec::new();
    let _ = half[598].read_to_end(&mut end);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn a_flood_of_wrong_passwords_does_not_stall_a_scrape() {
    let door = Door::new();
    let web = format!("basic_auth_users: {{alice: {}}}\n", bcrypt::hash("secret", 9).unwrap());
    let serving = door.serve(&web, &[]);
    let scrape = |known: &str| serving.exchange(&format!("GET /metrics HTTP/1.0\r\n{known}\r\n")).0;
    let known = basic("alice:secret");
    assert_eq!(scrape(&known), 200);
    let (stop, refused, crowded) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    let mut slowest = Duration::ZERO;
    std::thread::scope(|scope| {
        for thread in 0..100 {
            let (stop, refused, crowded, scrape) = (&stop, &refused, &crowded, &scrape);
            scope.spawn(move || {
                for n in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    // Users there are and there are not.
                    let user = if n % 2 == 0 { "alice" } else { "nobody" };
                    let counted = match scrape(&basic(&format!("{user}:{thread}-{n}"))) {
                        401 => refused,
                        429 => crowded,
                        other => panic!("{other}"),
                    };
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        poll(LONG, || (refused.load(Ordering::Relaxed) > 20 && crowded.load(Ordering::Relaxed) > 100).then_some(())).expect("a flood");
        for _ in 0..50 {
            let asked = Instant::now();
            assert_eq!(scrape(&known), 200);
            slowest = slowest.max(asked.elapsed());
        }
        stop.store(true, Ordering::Relaxed);
    });
    println!("slowest scrape: {slowest:?}; {refused:?} refused, {crowded:?} sent away");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    assert_eq!(scrape(&basic("alice:wrong")), 401, "and then as before");
}

/// What `config check --web-config` says of this file, with its exit status.
fn checked(door: &Door, web: &str) -> (Option<i32>, String) {
    door.dir.write("web.yml", web);
    let output = door.run.command(&["config", "check", "--web-config", "web.yml"]).current_dir(&door.dir.0).output().unwrap();
    let dir = format!("{}/", door.dir.0.display());
    (output.status.code(), (String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()).replace(&dir, ""))
}

#[test]
fn what_is_wrong_is_told_word_for_word() {
    let door = Door::new();
    let hash = bcrypt::hash("secret", 4).unwrap();
    door.dir.write("empty.pem", "");
    door.dir.write("other.key", &door.authority.server().1);
    std::fs::write(door.dir.path("server.der"), der(&door.authority.pem)).unwrap();
    const KEYS: &str = "tls_server_config, http_server_config, basic_auth_users, auth_excluded_paths";
    for (web, wanted) in [
        ("", "1:1: there is nothing in it; write `basic_auth_users` or `tls_server_config`, or {} to let everybody in".to_owned()),
        ("# nothing yet\n", "1:1: there is nothing in it; write `basic_auth_users` or `tls_server_config`, or {} to let everybody in".to_owned()),
        ("tls: {}\n", format!("1:1: unknown key \"tls\" in a web configuration; the keys there are {KEYS}")),
        ("basic_auth_user: {}\n", "1:1: unknown key \"basic_auth_user\" in a web configuration; did you mean `basic_auth_users`?".to_owned()),
        ("tls_config: {cert_file: server.crt}\n", "1:1: unknown key \"tls_config\" in a web configuration; here it is `tls_server_config`".to_owned()),
        (
            "rate_limit: {interval: 1s, burst: 20}\n",
            "1:1: unknown key \"rate_limit\" in a web configuration; requests are not counted here: connections are bounded, answers come from memory, and passwords are checked one at a time".to_owned(),
        ),
        ("basic_auth_users: {alice: secret}\n", "1:27: `basic_auth_users.alice` is no bcrypt hash; write a bcrypt hash in quotes, as `htpasswd -nBC 10 NAME` makes it: $2y$10$…".to_owned()),
        ("basic_auth_users: {alice: 1234}\n", "1:27: `basic_auth_users.alice` is a number; write a bcrypt hash in quotes, as `htpasswd -nBC 10 NAME` makes it: $2y$10$…".to_owned()),
        (&format!("basic_auth_users: {{alice: {}}}\n", hash.replace("$04$", "$17$")), "1:27: `basic_auth_users.alice` has cost 17; write one of cost 4 to 16, of which each makes a check twice as long".to_owned()),
        (&format!("basic_auth_users: {{'a:b': {hash}}}\n"), "1:20: \"a:b\": the name of a user may not contain ':'".to_owned()),
        ("auth_excluded_paths: [livez]\n", "1:23: `auth_excluded_paths[0]` is \"livez\"; write the path as it is asked for, as in /livez, without a query".to_owned()),
        ("auth_excluded_paths: [/health?verbose]\n", "1:23: `auth_excluded_paths[0]` is \"/health?verbose\"; write the path as it is asked for, as in /livez, without a query".to_owned()),
        ("auth_excluded_paths: [/-/reload]\n", "1:23: `auth_excluded_paths[0]` is \"/-/reload\", which changes something; such paths are for who has authenticated".to_owned()),
        ("auth_excluded_paths: /livez\n", "1:22: `auth_excluded_paths` is a text; write a list, here [\"/livez\"]".to_owned()),
        ("http_server_config: {http2: true}\n", "1:29: `http_server_config.http2` is true; HTTP/1.1 is all that is spoken here: write false, or nothing".to_owned()),
        ("http_server_config: {headers: {Server: x}}\n", "1:32: unknown key \"Server\" in `headers`; the keys there are Content-Security-Policy, X-Frame-Options, X-Content-Type-Options, X-XSS-Protection, Strict-Transport-Security".to_owned()),
        ("http_server_config: {headers: {X-Frame-Options: allow}}\n", "1:49: `http_server_config.headers.X-Frame-Options` is \"allow\"; write deny, sameorigin or nothing".to_owned()),
        ("http_server_config: {headers: {X-XSS-Protection: \"a\\nb: c\"}}\n", "1:50: `http_server_config.headers.X-XSS-Protection` holds characters that no header field can; write printable ASCII".to_owned()),
        ("tls_server_config: {}\n", "1:20: `tls_server_config` has no `cert_file`; write a path".to_owned()),
        ("tls_server_config: {cert_file: none.crt, key_file: server.key}\n", "1:32: none.crt: there is no such file".to_owned()),
        ("tls_server_config: {cert_file: empty.pem, key_file: server.key}\n", "1:32: empty.pem holds no certificate in PEM (-----BEGIN CERTIFICATE-----)".to_owned()),
        (
            "tls_server_config: {cert_file: server.der, key_file: server.key}\n",
            "1:32: server.der: it is DER, and not PEM; openssl x509 -inform DER -in FILE -out NEW makes that of it".to_owned(),
        ),
        ("tls_server_config: {cert_file: server.crt, key_file: ca.crt}\n", "1:54: ca.crt holds no private key in PEM (-----BEGIN PRIVATE KEY-----)".to_owned()),
        ("tls_server_config: {cert_file: server.crt, key_file: other.key}\n", "1:54: other.key is not the key of the certificate".to_owned()),
        ("tls_server_config: {cert_file: server.crt, key_file: server.key, cert: x}\n", "1:32: `tls_server_config.cert_file` and `tls_server_config.cert` say the same thing; leave one of them out".to_owned()),
        (&door.tls("min_version: TLS11", ""), "4:16: `tls_server_config.min_version` is \"TLS11\"; did you mean `TLS12`?".to_owned()),
        (&door.tls("min_version: TLS13\nmax_version: TLS12", ""), "5:16: `tls_server_config.max_version` is older than `min_version`; leave one of them out".to_owned()),
        (&door.tls("curve_preferences: [P256]", ""), "4:23: `tls_server_config.curve_preferences[0]` is \"P256\"; write X25519, CurveP256 or CurveP384".to_owned()),
        (&door.tls("client_auth_type: requireandverifyclientcert", ""), "4:21: `tls_server_config.client_auth_type` is \"requireandverifyclientcert\"; did you mean `RequireAndVerifyClientCert`?".to_owned()),
        (&door.tls("client_auth_type: RequireAndVerifyClientCert", ""), "4:21: `tls_server_config.client_auth_type` needs to know whose certificates to take: write `client_ca_file`".to_owned()),
        (
            &door.tls("client_ca_file: ca.crt", ""),
            "4:19: `tls_server_config` says whose certificates to take, and not to look at them: write `client_auth_type: VerifyClientCertIfGiven or RequireAndVerifyClientCert`".to_owned(),
        ),
        (&door.tls("client_auth_type: VerifyClientCertIfGiven\nclient_ca_file: empty.pem", ""), "5:19: empty.pem holds no certificate in PEM (-----BEGIN CERTIFICATE-----)".to_owned()),
        (
            &door.tls("client_allowed_sans: [a.example]", ""),
            "4:24: `tls_server_config.client_allowed_sans` is for clients that need a certificate: write `client_auth_type: RequireAndVerifyClientCert`".to_owned(),
        ),
        ("basic_auth_users: {a: b\n", "2:1: not YAML: while parsing a flow mapping, did not find expected ',' or '}'".to_owned()),
    ] {
        assert_eq!(checked(&door, web), (Some(2), format!("web.yml:{wanted}\n")), "{web}");
    }
    assert_eq!(checked(&door, &door.tls("cipher_suites: [TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305]", &alice())), (Some(0), "web.yml: ok\n".to_owned()));
    // Nothing is launched then.
    let touched = door.dir.path("touched");
    let output = door.run.output(&["serve", "--listen", "127.0.0.1:0", "--web-config", "/nonexistent/web.yml", "--", "touch", &touched]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.as_str()), (Some(2), "/nonexistent/web.yml: there is no such file\n"));
    assert!(!Path::new(&touched).exists());
    let fresh = "servers: {a: {command: /bin/sh}}\n";
    let own = door.dir.write("fine.yml", fresh);
    let output = door.run.output(&["config", "check", "--web-config", "/nonexistent/web.yml", &own]);
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stdout).unwrap()),
        (Some(2), format!("{own}: 1 server\n")),
        "what is not ok is not called so"
    );
    // The configuration's own key is checked with it, and what it holds is shown nowhere.
    let own = door.dir.write("own.yml", "web_config: web.yml\nservers: {a: {command: x}}\n");
    door.dir.write("web.yml", "basic_auth_users: {alice: hunter2}\n");
    for args in [vec!["config", "check", &own], vec!["serve", "--listen", "127.0.0.1:0", "--config", &own]] {
        let output = door.run.output(&args);
        let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("web.yml:1:27: `basic_auth_users.alice` is no bcrypt hash") && !said.contains("hunter2"), "{said}");
    }
}

#[test]
fn the_log_says_what_others_could_see() {
    let door = Door::new();
    let told = |web: &str, own: &str, more: &[&str]| {
        door.dir.write("web.yml", web);
        let own = door
            .dir
            .write("own.yml", &format!("web_config: web.yml\n{own}\nservers: {{mine: {{command: {PROGRAM}, args: [sample-server, sound]}}}}\n"));
        let mut args = vec!["serve", "--listen", "0.0.0.0:0", "--config", &own];
        args.extend(more);
        let mut child = door.run.command(&args).spawn().unwrap();
        let mut log = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut all = String::new();
        // Signals are caught, and all that is said at the start is said, before the first probe has ended.
        while !all.contains("pass") && !all.contains("verdict") && std::io::BufRead::read_line(&mut log, &mut all).unwrap() > 0 {}
        signal(child.id(), "TERM");
        log.read_to_string(&mut all).unwrap();
        child.wait().unwrap();
        all
    };
    for (web, own, more, wanted) in [
        ("{}\n".to_owned(), "show_private: true", vec![], Some("shown to everybody")),
        ("{}\n".to_owned(), "", vec!["--enable-actions"], Some("--enable-actions has no effect")),
        (alice(), "", vec!["--enable-actions"], Some("passwords are sent in plain text")),
        (door.tls("", &alice()), "show_private: true", vec!["--enable-actions"], None),
        ("{}\n".to_owned(), "", vec![], None),
    ] {
        let log = told(&web, own, &more);
        let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
        match wanted {
            None => assert!(warnings.is_empty(), "{log}"),
            Some(wanted) => assert!(warnings.len() == 1 && warnings[0].contains(wanted), "{wanted}: {log}"),
        }
    }
}

#[test]
fn a_kubelet_needs_no_password_unless_it_is_to() {
    let door = Door::new();
    for (more, path, wanted) in [("", "/livez", 200), ("", "/health", 401), ("auth_excluded_paths: []\n", "/livez", 401)] {
        let serving = door.serve(&door.tls("", &format!("{}{more}", alice())), &[]);
        assert_eq!(Asker::usual(&door.authority).get(serving.port, path, "").unwrap().0, wanted, "{path} {more}");
    }
    // Who requires a certificate has asked for more than an answer of 401.
    let required = "client_auth_type: RequireAndVerifyClientCert\nclient_ca_file: ca.crt";
    let serving = door.serve(&door.tls(required, ""), &[]);
    assert!(Asker::usual(&door.authority).get(serving.port, "/livez", "").is_err());
}

#[test]
fn a_health_check_gets_through() {
    let door = Door::new();
    let serving = door.serve(&door.tls("", &alice()), &[]);
    let url = format!("https://localhost:{}/metrics", serving.port);
    let ca = door.dir.path("ca.crt");
    let stranger = door.dir.write("stranger.crt", &Authority::new().pem);
    let (pair, wrong, none) =
        (door.dir.write("pair", "alice:secret\n"), door.dir.write("wrong", "alice:wrong\n"), door.dir.write("none", "secret\n"));
    let check = |args: &[&str], pair: Option<&str>| {
        let mut command = door.run.command(&["healthcheck"]);
        command.args(args);
        if let Some(pair) = pair {
            command.env("STDIOWATCH_BASIC_AUTH", pair);
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (args, env) in [
        (vec![url.as_str(), "--ca", &ca, "--basic-auth-file", &pair], None),
        (vec![&url, "--ca", &ca], Some("alice:secret")),
        (vec![&url, "--insecure"], Some("alice:secret")),
        (vec![&url, "--insecure", "--basic-auth-file", &pair], Some("alice:wrong")),
    ] {
        assert_eq!(check(&args, env), (Some(0), String::new()), "{args:?}");
    }
    let elsewhere = "https://stdiowatch.example/metrics";
    let plain = url.replace("https", "http");
    for (args, wanted) in [
        (vec![url.as_str(), "--ca", &ca], format!("{url} answered 401")),
        (vec![&url, "--ca", &ca, "--basic-auth-file", &wrong], format!("{url} answered 401")),
        (vec![&url, "--ca", &ca, "--basic-auth-file", &none], format!("{none} does not hold USER:PASSWORD")),
        (vec![&url], "nobody is known who vouches for localhost: use --ca FILE, or --insecure on this machine".to_owned()),
        (vec![&url, "--ca", &stranger], "no TLS with localhost:".to_owned()),
        (vec![&url, "--ca", &pair], "holds no certificate in PEM".to_owned()),
        (vec![elsewhere, "--insecure"], "--insecure is for 127.0.0.1, [::1] and localhost; use --ca FILE for stdiowatch.example".to_owned()),
        (vec!["https://alice:secret@localhost/metrics", "--insecure"], "do not belong into a command line".to_owned()),
        (vec!["http://stdiowatch.example/metrics", "--basic-auth-file", &pair], "a password is not sent over http:// to another machine".to_owned()),
        (vec!["ftp://localhost/"], "is no http:// or https:// address".to_owned()),
        (vec!["https://localhost:x/", "--insecure"], "is no http:// or https:// address".to_owned()),
        (vec![&plain], format!("{plain} answered 400")),
    ] {
        let (status, said) = check(&args, None);
        assert!(status == Some(1) && said.contains(&wanted), "{args:?}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

/// As plain `openssl req -x509` makes it: its own authority, and used as the server's certificate.
#[test]
fn a_health_check_takes_a_certificate_that_is_its_own_authority() {
    let door = Door::new();
    let serve = |names: &[&str], days: [i64; 2]| {
        let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let day = |days| TimeZone::UTC.to_datetime(Timestamp::from_second(clock::now().unix_ms / 1000 + days * 86_400).unwrap()).date();
        let ymd = |day: Date| date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs());
        [params.not_before, params.not_after] = days.map(|days| ymd(day(days)));
        let key = KeyPair::generate().unwrap();
        door.dir.write("server.crt", &params.self_signed(&key).unwrap().pem());
        door.dir.write("server.key", &key.serialize_pem());
        door.serve(&door.tls("", ""), &[])
    };
    let checked = |serving: &Serving, ca: &str| {
        let url = format!("https://localhost:{}/livez", serving.port);
        let output = door.run.output(&["healthcheck", &url, "--ca", &door.dir.path(ca)]);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let serving = serve(&["localhost"], [-2, 9]);
    assert_eq!(checked(&serving, "server.crt"), (Some(0), String::new()));
    let (status, said) = checked(&serving, "ca.crt");
    assert_eq!(status, Some(1), "nobody vouches for it: {said}");
    for (names, days, wanted) in
        [("elsewhere.example", [-2, 9], "not valid for name"), ("localhost", [-9, -2], "expired"), ("localhost", [2, 9], "not valid yet")]
    {
        let (status, said) = checked(&serve(&[names], days), "server.crt");
        assert!(status == Some(1) && said.contains(wanted), "{said}");
    }
}

/// The examples of docs/security.md are used as they stand there.
#[test]
fn the_examples_of_the_documentation_hold() {
    let door = Door::new();
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/security.md")).unwrap();
    let examples: Vec<&str> =
        page.split("```yaml\n# web.yml").skip(1).map(|rest| rest.split_once('\n').unwrap().1.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 3, "{examples:?}");
    for name in ["server.crt", "server.key", "ca.crt"] {
        assert!(page.contains(name), "{name}");
    }
    for example in &examples {
        assert_eq!(checked(&door, example), (Some(0), "web.yml: ok\n".to_owned()), "{example}");
    }
    // The password of the first one is the one that the page names.
    let serving = door.serve(examples[0], &[]);
    let asker = Asker::usual(&door.authority);
    assert_eq!(asker.status(serving.port, "/livez"), Some(200));
    assert_eq!(asker.status(serving.port, "/metrics"), Some(401));
    assert!(page.contains("correct horse"));
    assert_eq!(asker.get(serving.port, "/metrics", &basic("prometheus:correct horse")).unwrap().0, 200);
}
