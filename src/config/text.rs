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
    /// The path of a URL, for everybody.
    Route,
    /// A bcrypt hash; never shown.
    Bcrypt,
    /// The value of a header field.
    Header,
    /// A user, and a group.
    User,
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
            Texts::Route => "a path, as in /livez",
            Texts::Bcrypt => "a bcrypt hash in quotes, as `htpasswd -nBC 10 NAME` makes it: $2y$10$…",
            Texts::Header => "a text",
            Texts::User => "a user, as in nobody or \"65534:65534\"",
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
            Texts::Route => route(text),
            Texts::Bcrypt => bcrypt(text),
            Texts::Header if text.bytes().all(|b| b == b'\t' || (0x20..0x7f).contains(&b)) => Ok(()),
            Texts::Header => Err("holds characters that no header field can; write printable ASCII".to_owned()),
            Texts::Command | Texts::Path | Texts::Tool if text.is_empty() => Err(format!("is empty; write {}", self.right())),
            Texts::Command | Texts::Path if text.contains('\0') => Err("contains a NUL byte, which no path can".to_owned()),
            Texts::Command | Texts::Path | Texts::Tool => Ok(()),
            Texts::Address => address(text),
            Texts::User => text.parse::<crate::outside::process::User>().map(drop),
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

/// What changes something is never for everybody.
fn route(text: &str) -> Result<(), String> {
    let shown = printable(text, 60);
    if text.starts_with("/-/") {
        return Err(format!("is \"{shown}\", which changes something; such paths are for who has authenticated"));
    }
    let fits = |b: u8| (0x21..0x7f).contains(&b) && !matches!(b, b'?' | b'#');
    if text.starts_with('/') && text.bytes().all(fits) {
        Ok(())
    } else {
        Err(format!("is \"{shown}\"; write the path as it is asked for, as in /livez, without a query"))
    }
}

/// `$2y$COST$` and 53 characters of bcrypt's base64. Whatever it is may be a password, and is not shown.
fn bcrypt(text: &str) -> Result<(), String> {
    /// At 16 one check takes some four seconds.
    const COSTS: std::ops::RangeInclusive<u32> = 4..=16;
    let rest = ["$2a$", "$2b$", "$2x$", "$2y$"].iter().find_map(|version| text.strip_prefix(version));
    let parts = rest.and_then(|rest| rest.split_once('$')).filter(|(cost, _)| cost.len() == 2);
    let is_hash = |hash: &str| hash.len() == 53 && hash.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'/'));
    match parts.and_then(|(cost, hash)| Some((cost.parse::<u32>().ok()?, hash))) {
        Some((cost, hash)) if is_hash(hash) && COSTS.contains(&cost) => Ok(()),
        Some((cost, hash)) if is_hash(hash) => Err(format!("has cost {cost}; write one of cost 4 to 16, of which each makes a check twice as long")),
        _ => Err(format!("is no bcrypt hash; write {}", Texts::Bcrypt.right())),
    }
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
