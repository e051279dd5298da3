//! What each server's last probe knew of its lists, until the next one.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::outside::process::LaunchSpec;
use crate::probe::Pages;
use crate::words::ServerName;

/// The list pages of the servers' last probes.
#[derive(Debug, Default)]
pub(super) struct KnownPages {
    /// With the launch that the server is configured by: when that is gone, so is the server.
    of: BTreeMap<ServerName, (Weak<LaunchSpec>, Arc<Pages>)>,
    /// So many may be there before it is looked for those of servers that are gone.
    room: usize,
}

impl KnownPages {
    /// Those of the server `name`, none if it is not launched as it was.
    pub(super) fn of(&self, name: &ServerName, spec: &Arc<LaunchSpec>) -> Arc<Pages> {
        let known = self.of.get(name).filter(|(of, _)| Weak::as_ptr(of) == Arc::as_ptr(spec));
        known.map(|(_, pages)| Arc::clone(pages)).unwrap_or_default()
    }

    /// A probe of the server has ended, and has seen these. One that saw none has nothing to say.
    pub(super) fn keep(&mut self, name: &ServerName, spec: &Arc<LaunchSpec>, pages: &Arc<Pages>) {
        if pages.is_empty() {
            return;
        }
        if self.of.len() >= self.room {
            self.of.retain(|_, (of, _)| of.strong_count() > 0);
            self.room = self.of.len() * 2 + 8;
        }
        self.of.insert(name.clone(), (Arc::downgrade(spec), Arc::clone(pages)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::probe::{Exit, Input, Machine, Plan, Swept, Usage};
    use crate::words::At;

    fn pages() -> Arc<Pages> {
        let plan = Plan { era: crate::probe::EraChoice::Fixed(crate::protocol::Era::Legacy), list_twice: false, ..Plan::new() };
        let mut machine = Machine::new(Arc::new(plan), At::after(Duration::ZERO));
        let mut tell = |input: Input<'_>| {
            while machine.poll().is_some() {}
            machine.handle(At::START, input);
        };
        tell(Input::Spawned);
        tell(Input::Stdout(
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}\n",
        ));
        tell(Input::Stdout(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}}]}}\n"));
        tell(Input::StdoutClosed);
        tell(Input::Exited(Exit::Code(0)));
        tell(Input::Swept(Swept::default(), Usage::default()));
        Arc::clone(&machine.into_observation().judged().unwrap().pages)
    }

    #[test]
    fn they_are_kept_for_as_long_as_the_server_is_configured_as_it_was() {
        let mut known = KnownPages::default();
        let name = ServerName::new("a").unwrap();
        let spec = Arc::new(LaunchSpec::default());
        known.keep(&name, &spec, &pages());
        assert!(!known.of(&name, &spec).is_empty());
        known.keep(&name, &spec, &Arc::default());
        assert!(!known.of(&name, &spec).is_empty(), "a probe that saw none has nothing to say");
        assert!(known.of(&name, &Arc::new(LaunchSpec::default())).is_empty(), "configured anew");
        assert!(known.of(&ServerName::new("b").unwrap(), &spec).is_empty());
    }

    #[test]
    fn those_of_servers_that_are_gone_go_too() {
        let mut known = KnownPages::default();
        let pages = pages();
        for n in 0..100 {
            known.keep(&ServerName::new(&format!("s{n}")).unwrap(), &Arc::new(LaunchSpec::default()), &pages);
        }
        assert!(known.of.len() <= 10, "{}", known.of.len());
        let stay: Vec<_> = (0..100).map(|n| (ServerName::new(&format!("t{n}")).unwrap(), Arc::new(LaunchSpec::default()))).collect();
        stay.iter().for_each(|(name, spec)| known.keep(name, spec, &pages));
        assert!(stay.iter().all(|(name, spec)| !known.of(name, spec).is_empty()));
    }
}
