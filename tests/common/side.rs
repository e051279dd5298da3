//! The HTTP side alone, in a thread of the test's own process.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use stdiowatch::ledger::ServerState;
use stdiowatch::outside::clock;
use stdiowatch::running::hub::Hub;
use stdiowatch::serve::actions::Actions;
use stdiowatch::serve::listen::{Limits, bind, run};
use stdiowatch::serve::own::Own;
use stdiowatch::serve::routes::Sources;
use stdiowatch::words::Moment;
use tokio::sync::oneshot;

/// How long anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running server; it is stopped in good order when dropped.
pub struct Side {
    pub address: SocketAddr,
    pub hub: Arc<Hub>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Side {
    /// One that shows these servers, by what `router` makes of them.
    pub fn showing(servers: Vec<ServerState>, limits: Limits, now: fn() -> Moment, router: impl FnOnce(Sources) -> Router) -> Side {
        let hub = Arc::new(Hub::new(servers));
        hub.update(|snapshot| {
            snapshot.sidecar.started = clock::now();
            snapshot.sidecar.last_tick = clock::up();
        });
        let own = Arc::new(Own::new(clock::now()).unwrap());
        let sources = Sources { hub: Arc::clone(&hub), own, now, actions: Actions::Off, fleet: None, reloader: None, show_private: None };
        let router = router(sources);
        let listener = bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let stopped = async {
                let _ = stopped.await;
            };
            runtime.block_on(run(listener, router, limits, stopped)).unwrap();
        });
        Side { address, hub, stop: Some(stop), thread: Some(thread) }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub fn stop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        self.thread.take().map(JoinHandle::join);
    }
}

/// What came back, its body whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// With this head.
    pub fn new(head: &str, body: String) -> Answer {
        Answer { status: head.split(' ').nth(1).unwrap().parse().unwrap(), head: head.to_owned(), body }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.split("\r\n").skip(1).filter_map(|line| line.split_once(": "));
        fields.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}
