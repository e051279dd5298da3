//! Names of servers out of the names in client files, which may hold anything.

use std::collections::{BTreeMap, BTreeSet};

use crate::words::{ServerName, is_printable};

/// The longest name, in bytes, before a number is added to it.
const ROOM: usize = 90;

/// The names for `wanted`, one each, all different.
///
/// A name that can be one stays as it is, wherever it stands. In every other one a `-` takes the
/// place of what cannot be in it (clients allow `github/mcp`), and a number is added (`-2`) when that
/// name is taken. Which one stays and which one gets a number follows from the order in the file.
/// `None` for an empty one.
pub(super) fn unique(wanted: &[String]) -> Vec<Option<ServerName>> {
    let mut taken = BTreeSet::new();
    let mut names: Vec<Option<ServerName>> = Vec::with_capacity(wanted.len());
    for name in wanted {
        let name = ServerName::new(name).ok().filter(|name| taken.insert(name.as_str().to_owned()));
        names.push(name);
    }
    let mut next: BTreeMap<String, u32> = BTreeMap::new();
    for (name, wanted) in names.iter_mut().zip(wanted) {
        if name.is_some() || wanted.is_empty() {
            continue;
        }
        let base = possible(wanted);
        let number = next.entry(base.clone()).or_insert(1);
        let mut candidate = if *number == 1 { base.clone() } else { format!("{base}-{number}") };
        while !taken.insert(candidate.clone()) {
            *number = number.saturating_add(1);
            candidate = format!("{base}-{number}");
        }
        *name = ServerName::new(&candidate).ok();
    }
    names
}

/// `name` with a `-` for what cannot be in a name, cut to what fits.
fn possible(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        let c = if c == '/' || !is_printable(c) { '-' } else { c };
        if out.len() + c.len_utf8() > ROOM {
            break;
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(wanted: &[&str]) -> Vec<String> {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        unique(&wanted).into_iter().map(|name| name.map_or_else(|| "none".to_owned(), |name| name.as_str().to_owned())).collect()
    }

    #[test]
    fn every_server_has_a_name_of_its_own() {
        assert_eq!(
            names(&["github/mcp", "github-mcp", "a\nb", "a\u{202e}b", "a-b-2", ""]),
            ["github-mcp-2", "github-mcp", "a-b", "a-b-3", "a-b-2", "none"]
        );
        assert_eq!(names(&["x", "x", "x"]), ["x", "x-2", "x-3"]);
        let long = "é".repeat(200);
        let cut = "é".repeat(45);
        assert_eq!(names(&[&long, &long]), [cut.clone(), format!("{cut}-2")]);
    }

    #[test]
    fn many_alike_take_no_time() {
        let wanted = vec!["a/b".to_owned(); 100_000];
        assert_eq!(unique(&wanted).last().unwrap().as_ref().unwrap().as_str(), "a-b-100000");
    }
}
