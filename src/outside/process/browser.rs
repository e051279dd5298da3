//! Login pages: a probe must open none, and has to say that the server wanted one.
//!
//! Every server is given `BROWSER=/proc/PID/exe`: this program, whatever has become of its file, with
//! no directory that could be written to and no shell. Python's `webbrowser`, `xdg-open` and so Node's
//! `open` run what BROWSER names with the page's address. Run under that name we open nothing, tell the
//! sidecar, and succeed: whoever calls would try the next browser otherwise.
//!
//! What is told goes to a socket of the sidecar's own, in the abstract namespace, where a name is no
//! file. From another network namespace it cannot be reached, and in another pid namespace the path
//! leads elsewhere: there no page is opened either, and none is noticed.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use super::environment::MARKER;
use crate::outside::clock;
use crate::words::{Digest, printable};

/// The variable that names a browser.
pub(super) const BROWSER: &str = "BROWSER";

/// The longest message that is read: mark, time, and where the page is.
const MOST: usize = 1024;
/// So many calls of one launch are kept.
const CALLS: usize = 16;
/// The same for all of them together.
const ALL_CALLS: usize = 1024;

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

/// Where the calls of a family's servers arrive: one socket for all, since one for each would be a
/// twentieth of what a short probe costs.
pub(super) struct Calls {
    socket: OwnedFd,
    /// Those that were not asked for yet, the oldest first.
    unread: Mutex<VecDeque<Message>>,
}

/// What is told of a call.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    /// The tree's.
    mark: String,
    /// After the start of the machine.
    sent: Duration,
    origin: String,
}

impl Calls {
    /// For the marks that begin with `family`.
    pub(super) fn new(family: &str) -> Result<Calls, Errno> {
        let socket = socket()?;
        rustix::net::bind(&socket, &address(family)?)?;
        Ok(Calls { socket, unread: Mutex::default() })
    }

    /// The calls of the tree `mark` that were not asked for yet.
    pub(super) fn read(&self, mark: &str) -> Vec<BrowserCall> {
        let mut unread = self.unread.lock();
        let mut message = [0; MOST];
        while let Ok((length, _)) = rustix::net::recv(&self.socket, &mut message, RecvFlags::DONTWAIT) {
            let Some(call) = read(&message[..length]) else { continue };
            if unread.iter().filter(|other| other.mark == call.mark).count() < CALLS {
                unread.push_back(call);
            }
            // Those are of trees that nobody asks for any more.
            let excess = unread.len().saturating_sub(ALL_CALLS);
            unread.drain(..excess);
        }
        if unread.is_empty() {
            return Vec::new();
        }
        let now = clock::up();
        let (asked, rest): (VecDeque<_>, VecDeque<_>) = unread.drain(..).partition(|call| call.mark == mark);
        *unread = rest;
        asked.into_iter().map(|call| BrowserCall { ago: now.saturating_sub(call.sent), origin: call.origin }).collect()
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
}

/// The name is for all to see (`/proc/net/unix`); the marks, by which a message is believed, are not.
fn address(family: &str) -> Result<SocketAddrUnix, Errno> {
    let digest = Digest::of(family.as_bytes()).to_string();
    SocketAddrUnix::new_abstract_name(format!("stdiowatch-browser-{}", &digest[..32]).as_bytes())
}

/// Reads a message: the mark, when it was sent, and the origin, each on a line.
fn read(message: &[u8]) -> Option<Message> {
    let mut lines = std::str::from_utf8(message).ok()?.splitn(3, '\n');
    let mark = lines.next()?.to_owned();
    let sent = Duration::from_micros(lines.next()?.parse().ok()?);
    Some(Message { mark, sent, origin: printable(lines.next()?, 200) })
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
    rustix::net::sendto(&socket()?, message.as_bytes(), SendFlags::DONTWAIT, &address(mark.split('.').next().unwrap_or_default())?)?;
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
        let calls = Calls::new("test-mark").unwrap();
        for _ in 0..2 * CALLS {
            let _ = tell("test-mark.1", "https://a.example");
            assert_eq!(calls.read("test-mark.2"), []);
        }
        tell("test-mark.2", "https://b.example").unwrap();
        let one = calls.read("test-mark.1");
        assert_eq!(one.len(), CALLS);
        assert!(one.iter().all(|call| call.origin == "https://a.example" && call.ago < Duration::from_secs(60)));
        assert_eq!(calls.read("test-mark.1"), []);
        assert_eq!(calls.read("test-mark.2").len(), 1);
        for n in 0..ALL_CALLS + 9 {
            tell(&format!("test-mark.x{n}"), "https://a.example").unwrap();
            calls.read("test-mark.1");
        }
        assert_eq!((calls.read("test-mark.x8").len(), calls.read("test-mark.x9").len()), (0, 1));
        assert!(tell("other-mark.3", "x").is_err());
    }

    #[test]
    fn a_message_is_read_or_not_believed() {
        let sent = Duration::from_secs(8);
        assert_eq!(read(b"m.1\n8000000\nhttps://a"), Some(Message { mark: "m.1".to_owned(), sent, origin: "https://a".to_owned() }));
        for message in ["m.1\n-8\nx", "m.1\nx", "m.1", "", "\n\n\n"] {
            assert_eq!(read(message.as_bytes()), None, "{message}");
        }
        assert_eq!(read(b"m.1\n1\n\xff"), None);
    }
}
