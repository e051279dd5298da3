//! What the launchpad's servers run on: the host, or what a simulation makes up.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::drive::drive;
use crate::outside::peers::PeerWatch;
use crate::outside::process::{Kin, LaunchSpec, Launcher};
use crate::probe::{Machine, Observation, Peers, Plan, Tape};
use crate::words::{At, ServerName};

/// How long a live copy of the server that was told to end by ours is given for it, and how often it is
/// looked at meanwhile.
const SETTLE: Duration = Duration::from_millis(250);
const SETTLE_STEP: Duration = Duration::from_millis(10);

/// One probe, as far as it is made and not judged.
pub(super) struct Course<'p> {
    /// Whose; the simulation wants to know.
    #[cfg_attr(not(test), expect(dead_code, reason = "the host needs no name"))]
    pub(super) name: &'p ServerName,
    /// How the server is launched.
    pub(super) spec: &'p Arc<LaunchSpec>,
    /// How it is probed.
    pub(super) plan: Arc<Plan>,
    /// When this becomes true, the probe is cancelled.
    pub(super) stop: watch::Receiver<bool>,
    /// What happens is written on it.
    pub(super) tape: Option<&'p mut Tape>,
}

/// Where servers are launched, and where others may run copies of them.
pub(super) trait Ground {
    /// What was seen of what a server's own trees run as.
    type Kin;

    /// To be called before each probe of a server: looks for its live copies.
    fn before(&self, name: &ServerName, spec: &Arc<LaunchSpec>) -> Self::Kin;

    /// Makes a probe. `look` is called each time before something is waited for.
    async fn observe(&self, course: Course<'_>, look: impl FnMut(&Machine, At), kin: Self::Kin) -> (Observation, Self::Kin);

    /// What has become of the server's live copies in a probe in which its own trees ran as `kin`.
    async fn peers(&self, name: &ServerName, kin: Self::Kin, coexists: bool) -> Peers;

    /// The live copies of a server whose probe began at `since` and failed.
    fn again(&self, name: &ServerName, since: Duration) -> Vec<u32>;

    /// Nobody watches this server any more.
    fn forget(&self, name: &ServerName);

    /// Called now and then: nothing that is dead is left lying about.
    fn tidy(&self);
}

/// This host.
pub(super) struct Host {
    launcher: Launcher,
    /// The live copies of the servers, started by others. Never borrowed across a wait.
    peers: RefCell<PeerWatch>,
}

impl Host {
    pub(super) fn new(launcher: Launcher) -> Host {
        Host { launcher, peers: RefCell::default() }
    }
}

impl Ground for Host {
    type Kin = Kin;

    fn before(&self, name: &ServerName, spec: &Arc<LaunchSpec>) -> Kin {
        self.peers.borrow_mut().before(name, spec, &self.launcher)
    }

    async fn observe(&self, course: Course<'_>, look: impl FnMut(&Machine, At), mut kin: Kin) -> (Observation, Kin) {
        let Course { spec, plan, stop, tape, .. } = course;
        let observation = drive(&self.launcher, plan, spec, stop, tape, look, &mut kin).await;
        (observation, kin)
    }

    async fn peers(&self, name: &ServerName, kin: Kin, coexists: bool) -> Peers {
        if self.peers.borrow_mut().learn(name, kin) {
            let mut waited = Duration::ZERO;
            while waited < SETTLE && self.peers.borrow().all_live(name) {
                sleep(SETTLE_STEP).await;
                waited += SETTLE_STEP;
            }
        }
        let mut peers = self.peers.borrow_mut();
        let found = peers.after(name);
        Peers { looked: peers.can_see(), live: found.live, died: found.died, coexists }
    }

    fn again(&self, name: &ServerName, since: Duration) -> Vec<u32> {
        self.peers.borrow_mut().again(name, since, &self.launcher)
    }

    fn forget(&self, name: &ServerName) {
        self.peers.borrow_mut().forget(name);
    }

    fn tidy(&self) {
        self.launcher.reap_adopted();
    }
}
