//! Passwords: slow to check on purpose, so checked away from the thread that answers, one at a time, and once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use parking_lot::Mutex;
use rustls::crypto::ring;
use tokio::task::spawn_blocking;

use super::turns::{Turns, Whose};
use crate::words::Digest;

/// How many credentials are remembered that were right, and that were wrong.
const MOST_RIGHT: usize = 256;
const MOST_WRONG: usize = 1024;

/// What came of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// That user has that password.
    Right,
    /// There is no such user, or it has another one.
    Wrong,
    /// Too many wait to be checked.
    Crowded,
}

/// Checks passwords.
pub(super) struct Passwords {
    /// So that what is remembered says nothing outside of this process.
    salt: [u8; 32],
    known: Mutex<Known>,
    turns: Turns,
}

/// Digests of credentials, with the hash that they were held against.
#[derive(Default)]
struct Known {
    right: BTreeSet<Digest>,
    wrong: BTreeSet<Digest>,
}

impl Known {
    fn find(&self, what: &Digest) -> Option<Checked> {
        if self.right.contains(what) {
            return Some(Checked::Right);
        }
        self.wrong.contains(what).then_some(Checked::Wrong)
    }

    /// What is wrong takes no place of what is right.
    fn keep(&mut self, what: Digest, is_right: bool) {
        let (kept, most) = if is_right { (&mut self.right, MOST_RIGHT) } else { (&mut self.wrong, MOST_WRONG) };
        if kept.len() >= most {
            kept.clear();
        }
        kept.insert(what);
    }
}

impl Passwords {
    pub(super) fn new() -> Passwords {
        let mut salt = [0; 32];
        // Without random bytes there is no TLS either; what is remembered is still a digest.
        let _ = ring::default_provider().secure_random.fill(&mut salt);
        Passwords { salt, known: Mutex::default(), turns: Turns::default() }
    }

    /// Whether this user, who asks from that address, has this password. It takes as long for a user that there is not as
    /// for the one whose hash costs most.
    pub(super) async fn check(&self, users: &BTreeMap<String, String>, user: &str, password: Vec<u8>, peer: Option<IpAddr>) -> Checked {
        let is_user = users.contains_key(user);
        let Some(hash) = users.get(user).cloned().or_else(|| dearest(users).map(nobodys)) else { return Checked::Wrong };
        let what = Digest::of_pieces([&self.salt[..], user.as_bytes(), hash.as_bytes(), &password]);
        if let Some(known) = self.known.lock().find(&what) {
            return known;
        }
        // Names that are made up are all the same one.
        let Some(turn) = self.turns.turn(Whose::new(is_user.then_some(user), peer)).await else { return Checked::Crowded };
        // Another one may have come with the same meanwhile.
        if let Some(known) = self.known.lock().find(&what) {
            return known;
        }
        // The turn ends with the work, also when nobody waits for it any more.
        let checked = spawn_blocking(move || {
            let _turn = turn;
            bcrypt::verify(&password, &hash).unwrap_or(false)
        });
        let is_right = checked.await.unwrap_or(false) && is_user;
        self.known.lock().keep(what, is_right);
        if is_right { Checked::Right } else { Checked::Wrong }
    }
}

/// The hash that takes longest to check.
fn dearest(users: &BTreeMap<String, String>) -> Option<&str> {
    /// After `$2y$`: two digits, so that they compare as numbers do.
    const COST: std::ops::Range<usize> = 4..6;
    users.values().map(String::as_str).max_by_key(|hash| hash.get(COST))
}

/// A hash that costs as much as this one, and that no password has.
fn nobodys(hash: &str) -> String {
    /// `$2y$10$`, and the salt.
    const HEAD: usize = 7 + 22;
    format!("{}{}", hash.get(..HEAD).unwrap_or_default(), ".".repeat(31))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> BTreeMap<String, String> {
        [("alice", "secret"), ("bob", "other")].map(|(user, password)| (user.to_owned(), bcrypt::hash(password, 4).unwrap())).into()
    }

    fn check(passwords: &Passwords, user: &str, password: &str) -> Checked {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(passwords.check(&users_once(), user, password.as_bytes().to_vec(), None))
    }

    fn users_once() -> BTreeMap<String, String> {
        static USERS: std::sync::LazyLock<BTreeMap<String, String>> = std::sync::LazyLock::new(users);
        USERS.clone()
    }

    #[test]
    fn a_user_has_its_own_password() {
        let passwords = Passwords::new();
        for _ in 0..2 {
            assert_eq!(check(&passwords, "alice", "secret"), Checked::Right);
            for (user, password) in [("alice", "other"), ("bob", "secret"), ("carol", "secret"), ("", ""), ("alice", "")] {
                assert_eq!(check(&passwords, user, password), Checked::Wrong, "{user} {password}");
            }
        }
        let known = passwords.known.lock();
        assert_eq!((known.right.len(), known.wrong.len()), (1, 5), "each is checked once");
    }

    #[test]
    fn what_is_remembered_is_bounded_and_right_outlasts_wrong() {
        let mut known = Known::default();
        known.keep(Digest::of(b"right"), true);
        for n in 0..MOST_WRONG * 3 {
            known.keep(Digest::of(&n.to_be_bytes()), false);
            assert!(known.wrong.len() <= MOST_WRONG);
        }
        assert_eq!(known.find(&Digest::of(b"right")), Some(Checked::Right));
    }

    #[test]
    fn nobody_costs_as_much_as_who_costs_most() {
        let users = |costs: [u32; 3]| ["a", "b", "c"].into_iter().zip(costs).map(|(user, cost)| (user.to_owned(), bcrypt::hash("x", cost).unwrap()));
        for costs in [[4, 5, 6], [6, 5, 4], [5, 6, 4]] {
            assert_eq!(&nobodys(dearest(&users(costs).collect()).unwrap())[4..6], "06", "{costs:?}");
        }
        let ten = BTreeMap::from(["$2b$09$".to_owned(), "$2b$10$".to_owned()].map(|hash| (hash.clone(), hash)));
        assert_eq!((dearest(&ten), dearest(&BTreeMap::new())), (Some("$2b$10$"), None));
    }

    #[test]
    fn nobodys_hash_is_one_of_the_same_cost() {
        let hash = bcrypt::hash("x", 5).unwrap();
        let nobodys = nobodys(&hash);
        assert_eq!((nobodys.len(), &nobodys[..29]), (60, &hash[..29]));
        assert!(!bcrypt::verify("x", &nobodys).unwrap());
    }
}
