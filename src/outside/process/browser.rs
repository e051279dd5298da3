//! Login pages: a probe must open none, and has to say that the server wanted one.
//!
//! Every server is given `BROWSER=/proc/PID/exe`: this program, whatever has become of its file, with
//! no directory that could be written to and no shell. Python's `webbrowser`, `xdg-open` and so Node's
//! `open` run what BROWSER names with the page's address. Run under that name we open nothing, tell the
//! sidecar, and succeed: whoever calls would try the next browser otherwise.
//!
//! What is told goes to a socket of the launch's own, in the abstract namespace, where a name is no
//! file. From another network namespace it cannot be reached, and in another pid namespace the path
//! leads elsewhere: there no page is opened either, and none is noticed.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use super::environment::MARKER;
use crate::outside::clock;
use crate::words::{Digest, printable};

/// The variable that names a browser.
pub(super) const BROWSER: &str = "BROWSER";

/// The longest message that is read: mark, time, and where the page is.
const MOST: usize = 1024;
/// So many calls of one launch are read. More do not fit into the socket's queue on most systems.
const CALLS: usize = 16;

/// A server's call for a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserCall {
    /// How long ago it was.
    pub ago: Duration,
    /// The page's scheme and host; no more of an address can be shown.
    pub origin: String,
}

/// What BROWSER is set to.
pub(super) fn stub() -> OsString {
    format!("/proc/{}/exe", std::process::id()).into()
}

/// Where the calls of one launch arrive.
pub(super) struct Calls {
    socket: OwnedFd,
    mark: String,
}

impl Calls {
    pub(super) fn new(mark: &str) -> Result<Calls, Errno> {
        let socket = socket()?;
        rustix::net::bind(&socket, &address(mark)?)?;
        Ok(Calls { socket, mark: mark.to_owned() })
    }

    /// The calls that there were.
    pub(super) fn read(&self) -> Vec<BrowserCall> {
        let mut calls = Vec::new();
        let mut message = [0; MOST];
        while calls.len() < CALLS
            && let Ok((length, _)) = rustix::net::recv(&self.socket, &mut message, RecvFlags::DONTWAIT)
        {
            calls.extend(call(&message[..length], &self.mark, clock::up()));
        }
        calls
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
}

/// The name is for all to see (`/proc/net/unix`); the mark, by which a message is believed, is not.
fn address(mark: &str) -> Result<SocketAddrUnix, Errno> {
    let digest = Digest::of(mark.as_bytes()).to_string();
    SocketAddrUnix::new_abstract_name(format!("stdiowatch-browser-{}", &digest[..32]).as_bytes())
}

/// Reads a message: the mark, when it was sent, and the origin, each on a line.
fn call(message: &[u8], mark: &str, now: Duration) -> Option<BrowserCall> {
    let mut lines = std::str::from_utf8(message).ok()?.splitn(3, '\n');
    if lines.next()? != mark {
        return None;
    }
    let sent = Duration::from_micros(lines.next()?.parse().ok()?);
    Some(BrowserCall { ago: now.saturating_sub(sent), origin: printable(lines.next()?, 200) })
}

/// What this program does under the name that BROWSER gives it; `None` under any other name.
#[must_use]
pub fn browser_main() -> Option<ExitCode> {
    let mut args = std::env::args_os();
    if !is_stub(&args.next()?) {
        return None;
    }
    if let Some(marker) = std::env::var(MARKER).ok().as_deref().and_then(|marker| marker.rsplit(',').next()) {
        // Nobody who calls a browser can do anything about this.
        let _ = tell(marker, &origin_of(args));
    }
    Some(ExitCode::SUCCESS)
}

/// Whether a program's name is one that [`stub`] gives.
fn is_stub(name: &OsStr) -> bool {
    let pid = name.as_bytes().strip_prefix(b"/proc/").and_then(|name| name.strip_suffix(b"/exe"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
}

fn tell(mark: &str, origin: &str) -> Result<(), Errno> {
    let message = format!("{mark}\n{}\n{origin}", clock::up().as_micros());
    rustix::net::sendto(&socket()?, message.as_bytes(), SendFlags::DONTWAIT, &address(mark)?)?;
    Ok(())
}

/// Where the page is that a browser is called with: what looks like an address, else the last word.
fn origin_of(args: impl Iterator<Item = OsString>) -> String {
    let words: Vec<String> = args.map(|word| word.to_string_lossy().into_owned()).collect();
    let page = words.iter().find(|word| word.contains("://")).or(words.last());
    page.map_or_else(|| "no page".to_owned(), |page| origin(page))
}

/// Scheme and host of an address. The rest can hold codes and tokens, and so can the user's part.
fn origin(page: &str) -> String {
    let Some((scheme, rest)) = page.split_once("://") else {
        return "a page without a host".to_owned();
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | ':' | '[' | ']' | '_');
    if host.is_empty() || !host.chars().chain(scheme.chars()).all(plain) {
        return "a page without a host".to_owned();
    }
    printable(&format!("{scheme}://{host}"), 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_origin_is_told() {
        assert_eq!(origin("https://login.example/authorize?token=x#y"), "https://login.example");
        assert_eq!(origin("http://user:secret@localhost:8080?code=x"), "http://localhost:8080");
        assert_eq!(origin("https://[::1]:80/a@b"), "https://[::1]:80");
        assert_eq!(origin("file:///tmp/secret.html"), "a page without a host");
        assert_eq!(origin("https://a\nb/"), "a page without a host");
        assert_eq!(origin("mailto:me@example"), "a page without a host");
        let words = |words: &[&str]| origin_of(words.iter().map(OsString::from));
        assert_eq!(words(&["--new-tab", "https://a.example/x", "y"]), "https://a.example");
        assert_eq!(words(&[]), "no page");
    }

    #[test]
    fn the_stub_is_known_by_its_name() {
        assert!(is_stub(&stub()));
        for name in ["/proc/self/exe", "/proc//exe", "/proc/1/exe/x", "/usr/bin/stdiowatch", "", "mcp-guard"] {
            assert!(!is_stub(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_call_is_heard_by_the_launch_it_is_for() {
        let (mine, other) = (Calls::new("test-mark.1").unwrap(), Calls::new("test-mark.2").unwrap());
        for _ in 0..2 * CALLS {
            let _ = tell("test-mark.1", "https://a.example");
        }
        let calls = mine.read();
        assert!(!calls.is_empty() && calls.iter().all(|call| call.origin == "https://a.example" && call.ago < Duration::from_secs(60)));
        assert_eq!(other.read(), []);
        assert!(tell("test-mark.3", "x").is_err());
    }

    #[test]
    fn a_message_without_the_mark_is_not_believed() {
        let now = Duration::from_secs(9);
        assert_eq!(call(b"m.1\n8000000\nhttps://a", "m.1", now), Some(BrowserCall { ago: Duration::from_secs(1), origin: "https://a".to_owned() }));
        for message in ["m.2\n8\nhttps://a", "m.1\n-8\nx", "m.1\nx", "m.1", "", "\n\n\n"] {
            assert_eq!(call(message.as_bytes(), "m.1", now), None, "{message}");
        }
        assert_eq!(call(b"m.1\n1\n\xff", "m.1", now), None);
    }
}
