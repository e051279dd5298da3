//! As whom a server runs that is not to run as us.
//!
//! `/etc/passwd` and `/etc/group` are read, and nothing else: a static program has no name service.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::words::printable;

/// A user, and a group if another one than the user's own: `NAME`, `UID`, `NAME:GROUP`, `UID:GID`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    user: String,
    group: Option<String>,
}

impl FromStr for User {
    type Err = String;

    /// # Errors
    ///
    /// In words, with what would be right.
    fn from_str(text: &str) -> Result<User, String> {
        let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
        let is_name = |name: &str| !name.is_empty() && !name.contains(|c: char| c == ':' || c == ',' || c.is_whitespace() || c.is_control());
        if is_name(user) && group.is_none_or(is_name) {
            Ok(User { user: user.to_owned(), group: group.map(str::to_owned) })
        } else {
            Err(format!("is \"{}\"; write a user, as in nobody, 65534, nobody:nogroup or 65534:65534", printable(text, 60)))
        }
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.user)?;
        self.group.iter().try_for_each(|group| write!(f, ":{group}"))
    }
}

/// The numbers of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its own.
    pub uid: u32,
    /// That of its first group.
    pub gid: u32,
    /// All its groups, `gid` among them, sorted.
    pub groups: Vec<u32>,
}

impl User {
    /// Looks the numbers up.
    ///
    /// # Errors
    ///
    /// In words: there is no such user or group.
    pub fn look_up(&self) -> Result<Account, String> {
        let read = |path: &str| std::fs::read(Path::new(path)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        self.among(&read("/etc/passwd"), &read("/etc/group"))
    }

    fn among(&self, passwd: &str, group: &str) -> Result<Account, String> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|id| *id != u32::MAX);
        let uid = number(&self.user);
        let user = passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, _, id, gid) = (fields.next()?, fields.next()?, number(fields.next()?)?, number(fields.next()?)?);
            (name == self.user || uid == Some(id)).then(|| (name.to_owned(), id, gid))
        });
        let groups = group.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let (name, _, id) = (fields.next()?, fields.next()?, number(fields.next()?)?);
            Some((name, id, fields.next().unwrap_or_default()))
        });
        let (name, uid) = match (&user, uid) {
            (Some((name, id, _)), _) => (Some(name), *id),
            (None, Some(uid)) => (None, uid),
            (None, None) => return Err(format!("there is no user \"{}\" in /etc/passwd", printable(&self.user, 60))),
        };
        let gid = match (&self.group, &user) {
            (Some(wanted), _) => groups
                .clone()
                .find(|(name, ..)| name == wanted)
                .map(|(_, id, _)| id)
                .or_else(|| number(wanted))
                .ok_or_else(|| format!("there is no group \"{}\" in /etc/group", printable(wanted, 60)))?,
            (None, Some((_, _, gid))) => *gid,
            (None, None) => return Err(format!("the user {uid} is not in /etc/passwd, so its group has to be given: {uid}:GID")),
        };
        let is_member = |members: &str| name.is_some_and(|name| members.split(',').any(|member| member == name));
        let mut all: Vec<u32> = groups.filter(|(_, _, members)| is_member(members)).map(|(_, id, _)| id).chain([gid]).collect();
        all.sort_unstable();
        all.dedup();
        Ok(Account { uid, gid, groups: all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nbroken\nmcp:x:1001:100::/:/bin/false\n";
    const GROUP: &str = "root:x:0:\nusers:x:100:\nextra:x:200:a,mcp\nother:x:300:mcpx\nlast:x:201:mcp\n";

    fn look_up(text: &str) -> Result<(u32, u32, Vec<u32>), String> {
        text.parse::<User>()?.among(PASSWD, GROUP).map(|account| (account.uid, account.gid, account.groups))
    }

    #[test]
    fn a_user_has_numbers_and_groups() {
        for text in ["mcp", "1001", "mcp:users", "mcp:100"] {
            assert_eq!(look_up(text), Ok((1001, 100, vec![100, 200, 201])), "{text}");
        }
        assert_eq!(look_up("mcp:root"), Ok((1001, 0, vec![0, 200, 201])));
        assert_eq!(look_up("7:8"), Ok((7, 8, vec![8])));
        assert_eq!(look_up("0"), Ok((0, 0, vec![0])));
    }

    #[test]
    fn who_is_not_there_is_said() {
        assert_eq!(look_up("nemo").unwrap_err(), "there is no user \"nemo\" in /etc/passwd");
        assert_eq!(look_up("mcp:nemo").unwrap_err(), "there is no group \"nemo\" in /etc/group");
        assert_eq!(look_up("7").unwrap_err(), "the user 7 is not in /etc/passwd, so its group has to be given: 7:GID");
        assert!(look_up("4294967295:1").is_err(), "which means nobody to setresuid(2)");
        for text in ["", ":", "a:", ":a", "a:b:c", "a b", "a,b"] {
            assert!(text.parse::<User>().unwrap_err().contains("nobody:nogroup"), "{text}");
        }
        assert_eq!("a:b".parse::<User>().unwrap().to_string(), "a:b");
    }
}
