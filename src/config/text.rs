//! Texts that have to be something: a path, an address.

use crate::words::printable;

/// What a text has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    /// Any text.
    Any,
    /// A path or a name on PATH.
    Command,
    /// A path.
    Path,
    /// `HOST:PORT`.
    Address,
    /// A tool's name.
    Tool,
}

impl Texts {
    /// What it is, for messages.
    pub(super) const fn right(self) -> &'static str {
        match self {
            Texts::Any => "a text",
            Texts::Command => "a command, as in npx",
            Texts::Path => "a path",
            Texts::Address => "an address, as in 127.0.0.1:10779",
            Texts::Tool => "a tool's name",
        }
    }

    /// Whether a text is what it has to be.
    ///
    /// # Errors
    ///
    /// In words, with what would be right.
    pub(super) fn check(self, text: &str) -> Result<(), String> {
        match self {
            Texts::Any => Ok(()),
            Texts::Command | Texts::Path | Texts::Tool if text.is_empty() => Err(format!("is empty; write {}", self.right())),
            Texts::Command | Texts::Path if text.contains('\0') => Err("contains a NUL byte, which no path can".to_owned()),
            Texts::Command | Texts::Path | Texts::Tool => Ok(()),
            Texts::Address => address(text),
        }
    }
}

/// `HOST:PORT`; the host may be empty, for every interface, and IPv6 stands in brackets.
fn address(text: &str) -> Result<(), String> {
    let wrong = || {
        let shown = printable(text, 60);
        Err(format!("is \"{shown}\"; an address is HOST:PORT, as in 127.0.0.1:10779, [::1]:10779, or :10779 for every interface"))
    };
    let Some((host, port)) = text.rsplit_once(':') else { return wrong() };
    let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match in_brackets {
        Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.contains([':', '/', '[', ']', ' ']),
    };
    let is_port = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok();
    if is_host && is_port { Ok(()) } else { wrong() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for text in ["127.0.0.1:10779", "[::1]:1", ":10779", "localhost:0", "0.0.0.0:65535"] {
            assert_eq!(address(text), Ok(()), "{text}");
        }
        for text in ["", "10779", "127.0.0.1", "::1:80", "[::1]", "a:b", "a:65536", "http://a:80", "a:+1", "a:"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
