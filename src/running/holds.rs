//! What servers are held for, and how those were launched: a new configuration may call a server something else, or have it
//! again that it left out.

use std::sync::Arc;

use super::watched::Watched;
use crate::ledger::{Held, ServerState};
use crate::outside::process::LaunchSpec;
use crate::words::ServerName;

/// As many as are remembered; of more the oldest are forgotten.
const MOST: usize = 1024;

/// One hold, and whose it is or was.
#[derive(Debug)]
struct Hold {
    name: ServerName,
    spec: Arc<LaunchSpec>,
    held: Held,
}

/// Holds, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Holds(Vec<Hold>);

impl Holds {
    /// A server is held, launched like this.
    pub(super) fn add(&mut self, server: &Watched, held: &Held) {
        self.0.retain(|hold| hold.name != server.name || hold.spec != server.spec);
        self.0.push(Hold { name: server.name.clone(), spec: Arc::clone(&server.spec), held: held.clone() });
        let over = self.0.len().saturating_sub(MOST);
        self.0.drain(..over);
    }

    /// A server that is watched is in this state. If it is not held, a person has resumed it, and knows of all that it was
    /// held for.
    pub(super) fn see(&mut self, server: &Watched, state: &ServerState) {
        match &state.held {
            Some(held) => self.add(server, held),
            None => self.0.retain(|hold| hold.name != server.name),
        }
    }

    /// What a server that is new is held for: one of its name was, or one that was launched as it is.
    pub(super) fn of_added(&self, server: &Watched) -> Option<Held> {
        let by_name = || self.0.iter().rev().find(|hold| hold.name == server.name).map(|hold| hold.held.clone());
        self.of_launch(server).or_else(by_name)
    }

    /// What a server that is launched in another way from now on is held for: one that was launched like that was.
    pub(super) fn of_launch(&self, server: &Watched) -> Option<Held> {
        self.0.iter().rev().find(|hold| hold.spec == server.spec).map(|hold| hold.held.clone())
    }

    /// A server that is launched as the held ones were has that hold now, or was told not to have it.
    pub(super) fn hand_over(&mut self, server: &Watched) {
        self.0.retain(|hold| hold.spec != server.spec);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::words::Moment;

    fn server(name: &str, command: &str) -> Watched {
        let spec = LaunchSpec { command: command.to_owned(), ..LaunchSpec::default() };
        Watched::new(ServerName::new(name).unwrap(), spec, Duration::from_secs(60))
    }

    fn held(why: &str) -> Held {
        Held { since: Moment { up: Duration::ZERO, unix_ms: 7 }, why: why.to_owned() }
    }

    #[test]
    fn a_hold_is_found_by_the_name_and_by_the_launch() {
        let mut holds = Holds::default();
        holds.add(&server("a", "x"), &held("one"));
        holds.add(&server("b", "y"), &held("two"));
        assert_eq!(holds.of_added(&server("a", "z")), Some(held("one")));
        assert_eq!(holds.of_added(&server("a", "y")), Some(held("two")), "what is launched tells more than a name");
        assert_eq!(holds.of_launch(&server("c", "x")), Some(held("one")));
        assert_eq!((holds.of_launch(&server("a", "z")), holds.of_added(&server("c", "z"))), (None, None));
        holds.hand_over(&server("c", "x"));
        assert_eq!((holds.of_added(&server("a", "x")), holds.of_launch(&server("d", "y"))), (None, Some(held("two"))));
    }

    #[test]
    fn who_was_resumed_is_held_for_nothing_that_was_before() {
        let mut holds = Holds::default();
        let (was, is) = (server("a", "x"), server("a", "y"));
        let mut state = ServerState::new(is.name.clone(), is.terms());
        state.held = Some(held("one"));
        holds.see(&was, &state);
        holds.see(&is, &state);
        assert_eq!(holds.of_launch(&was), Some(held("one")));
        state.held = None;
        holds.see(&is, &state);
        assert_eq!((holds.of_launch(&was), holds.of_added(&is)), (None, None));
    }

    #[test]
    fn so_many_are_remembered_and_no_more() {
        let mut holds = Holds::default();
        for n in 0..MOST + 3 {
            holds.add(&server(&format!("s{n}"), &format!("x{n}")), &held("one"));
            holds.add(&server(&format!("s{n}"), &format!("x{n}")), &held("again"));
        }
        assert_eq!(holds.0.len(), MOST);
        assert!(holds.of_added(&server("s2", "x2")).is_none() && holds.of_added(&server("s3", "x3")) == Some(held("again")));
    }
}
