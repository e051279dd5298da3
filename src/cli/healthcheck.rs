//! `stdiowatch healthcheck`: asks /health and exits accordingly, for images without a shell or curl.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use super::args::HealthcheckArgs;
use crate::config::file;
use crate::config::tree::Problem;
use crate::outside::tls::{Trust, asking};

/// How long each step may take.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The largest file with certificates or a password, in bytes.
const LARGEST: u64 = 1 << 20;
/// Holds `USER:PASSWORD`, which does not belong into a command line.
const CREDENTIALS: &str = "STDIOWATCH_BASIC_AUTH";

pub(super) fn run(args: &HealthcheckArgs) -> ExitCode {
    let url = &args.url;
    match ask(args) {
        Ok(200..=299) => ExitCode::SUCCESS,
        Ok(status) => {
            eprintln!("stdiowatch: {url} answered {status}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("stdiowatch: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The parts of a URL.
struct Address<'u> {
    tls: bool,
    /// The host and the port, as they are written.
    authority: &'u str,
    /// The host alone, without brackets.
    host: &'u str,
    port: u16,
    path: &'u str,
}

impl<'u> Address<'u> {
    fn parse(url: &'u str) -> anyhow::Result<Address<'u>> {
        let wrong = || anyhow!("{url} is no http:// or https:// address");
        let (tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(wrong()),
        };
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        if authority.contains('@') {
            bail!("a user and a password do not belong into a command line, which everybody here can read: use --basic-auth-file or {CREDENTIALS}");
        }
        let has_port = authority.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
        let (host, port) = match authority.rsplit_once(':').filter(|_| has_port) {
            Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
            None => (authority, if tls { 443 } else { 80 }),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(wrong());
        }
        Ok(Address { tls, authority, host, port, path })
    }

    fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost") || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// The status of the answer to GET.
fn ask(args: &HealthcheckArgs) -> anyhow::Result<u16> {
    let address = Address::parse(&args.url)?;
    let credentials = credentials(args.basic_auth_file.as_deref())?;
    if !address.tls && credentials.is_some() && !address.is_loopback() {
        bail!("a password is not sent over http:// to another machine");
    }
    let tls = address.tls.then(|| tls(args, &address)).transpose()?;
    let to = (address.host, address.port).to_socket_addrs().with_context(|| format!("cannot resolve {}", address.host))?;
    let to = to.into_iter().next().context("no address")?;
    let stream = TcpStream::connect_timeout(&to, TIMEOUT).with_context(|| format!("cannot reach {}", address.authority))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    match tls {
        None => status(stream, &address, credentials.as_deref()),
        Some(tls) => {
            let mut stream = StreamOwned::new(tls, stream);
            while stream.conn.is_handshaking() {
                stream.conn.complete_io(&mut stream.sock).with_context(|| format!("no TLS with {}", address.authority))?;
            }
            status(stream, &address, credentials.as_deref())
        }
    }
}

fn tls(args: &HealthcheckArgs, address: &Address<'_>) -> anyhow::Result<ClientConnection> {
    let pem = args.ca.as_deref().map(|path| read(path, file::pem)).transpose()?;
    let trust = match &pem {
        Some(pem) => Trust::Authority(pem),
        None if args.insecure && address.is_loopback() => Trust::Anybody,
        None if args.insecure => bail!("--insecure is for 127.0.0.1, [::1] and localhost; use --ca FILE for {}", address.host),
        None => bail!("nobody is known who vouches for {}: use --ca FILE, or --insecure on this machine", address.host),
    };
    let config = asking(trust).map_err(|why| anyhow!("{} {why}", args.ca.as_deref().unwrap_or(Path::new("")).display()))?;
    let name = ServerName::try_from(address.host.to_owned()).with_context(|| format!("{} is no name of a host", address.host))?;
    Ok(ClientConnection::new(config, name)?)
}

/// `USER:PASSWORD`, if there is one.
fn credentials(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let (text, from) = match file {
        Some(file) => (read(file, file::text)?, file.display().to_string()),
        None => match std::env::var(CREDENTIALS) {
            Ok(text) => (text, CREDENTIALS.to_owned()),
            Err(_) => return Ok(None),
        },
    };
    let line = text.lines().next().unwrap_or_default();
    if !line.contains(':') {
        bail!("{from} does not hold USER:PASSWORD");
    }
    Ok(Some(line.to_owned()))
}

fn read(path: &Path, read: fn(&Path, u64) -> Result<String, Problem>) -> anyhow::Result<String> {
    read(path, LARGEST).map_err(|problem| anyhow!("{}: {}", path.display(), problem.message))
}

fn status(mut stream: impl Read + Write, address: &Address<'_>, credentials: Option<&str>) -> anyhow::Result<u16> {
    let Address { authority, path, .. } = address;
    let authorization = credentials.map(|pair| format!("Authorization: Basic {}\r\n", STANDARD.encode(pair))).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.0\r\nHost: {authority}\r\nUser-Agent: stdiowatch-healthcheck\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).with_context(|| format!("{authority} does not listen"))?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).with_context(|| format!("{authority} did not answer"))?;
    let status = answer.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5)).and_then(|s| std::str::from_utf8(s).ok());
    status.and_then(|s| s.parse().ok()).with_context(|| format!("{authority} did not answer in HTTP"))
}
