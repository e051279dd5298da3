//! `stdiowatch healthcheck`: asks /health and exits accordingly, for images without a shell or curl.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};

/// How long each step may take.
const TIMEOUT: Duration = Duration::from_secs(3);

pub(super) fn run(url: &str) -> ExitCode {
    match ask(url) {
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

/// The status of the answer to GET `url`.
fn ask(url: &str) -> anyhow::Result<u16> {
    let rest = url.strip_prefix("http://").ok_or_else(|| anyhow!("{url} is no http:// address"))?;
    let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    if host.is_empty() || path.contains(|c: char| c.is_whitespace() || c.is_control()) {
        bail!("{url} is no http:// address");
    }
    let with_port = if host.rsplit(']').next().is_some_and(|h| h.contains(':')) { host.to_owned() } else { format!("{host}:80") };
    let address = with_port.to_socket_addrs().with_context(|| format!("cannot resolve {host}"))?.next().context("no address")?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).with_context(|| format!("cannot reach {host}"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\nUser-Agent: stdiowatch-healthcheck\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(64).read_to_end(&mut answer).with_context(|| format!("{host} did not answer"))?;
    let status = answer.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5)).and_then(|s| std::str::from_utf8(s).ok());
    status.and_then(|s| s.parse().ok()).with_context(|| format!("{host} did not answer in HTTP"))
}
