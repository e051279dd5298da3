//! The web configuration of `serve`: read before anything is launched, and again whenever something of it changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::{error, info, warn};

use super::expiry;
use super::servers::Wrong;
use crate::config::FileProblem;
use crate::config::tree::Problem;
use crate::config::web::{self, Web};
use crate::outside::clock;
use crate::running::reload::seen;
use crate::serve::access::{Access, Guard};
use crate::serve::own::WebConfig;
use crate::words::{Digest, printable_lines};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Who may ask, where that is said, and what is made of it.
pub(super) struct Doorkeeper {
    guard: Arc<Guard>,
    file: Option<PathBuf>,
    around: Around,
    /// Only this machine can call.
    loopback: bool,
    /// How the last reading went, for `/metrics`.
    pub(super) told: WebConfig,
    used: Mutex<Used>,
    expiry: expiry::Told,
}

/// What the web configuration does not say, and what weighs with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    /// What may be done over HTTP was asked for.
    pub(super) actions: bool,
    /// Whether what is private is shown, if that is said.
    pub(super) show_private: Option<bool>,
}

/// What was read.
struct Used {
    files: Vec<PathBuf>,
    /// What stood in the files; `None` if they are to be read again in any case.
    seen: Option<Digest>,
}

impl Doorkeeper {
    /// Reads the file, if there is one. For any address, until [`at`](Doorkeeper::at) says more of it.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn new(file: Option<PathBuf>, around: Around) -> anyhow::Result<Doorkeeper> {
        let told = WebConfig::new().context("cannot set up metrics")?;
        let mut used = Used { files: Vec::new(), seen: None };
        let mut access = Access::default();
        if let Some(file) = &file {
            // Looked at before it is read once more: what changes in between is seen.
            let files = web::load(file).map_err(Wrong)?.files;
            used = Used { seen: Some(seen(&files)), files };
            access = Access { shows_private: around.show_private != Some(false), ..lowered(web::load(file).map_err(Wrong)?)? };
        }
        told.uses(access.expiry());
        let (guard, used) = (Guard::new(access), Mutex::new(used));
        Ok(Doorkeeper { guard, file, around, loopback: false, told, used, expiry: expiry::Told::default() })
    }

    /// Stands at an address that only this machine can call, or at another one. It is had after everything is read, since
    /// who finds us listening may change a file and expects that to be noticed.
    pub(super) fn at(self, loopback: bool) -> Doorkeeper {
        Doorkeeper { loopback, ..self }
    }

    /// Who stands at the door.
    pub(super) fn guard(&self) -> Arc<Guard> {
        Arc::clone(&self.guard)
    }

    /// Whether there is a file.
    pub(super) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Says in the log what others than this machine's users could see or do, and what expires.
    pub(super) fn warn(&self) {
        let access = self.guard.access();
        self.expiry.tell(access.expiry(), true, clock::now());
        let Around { actions, show_private } = self.around;
        if self.loopback {
            return;
        }
        if !access.authenticates() {
            if show_private == Some(true) {
                warn!(
                    "show_private: evidence, stderr, environment and versions are shown to everybody who can reach this address, which is no loopback one"
                );
            }
            if actions {
                warn!("--enable-actions has no effect: the address is no loopback one, and nobody who calls is known; see docs/security.md");
            }
        }
        if access.tls.is_none() && !access.users.is_empty() {
            warn!("passwords are sent in plain text: the address is no loopback one, and there is no tls_server_config");
        }
    }

    /// Reads everything again: rules that can be put in force, and what they were read from.
    ///
    /// # Errors
    ///
    /// What is wrong with the file, a line each.
    pub(super) fn read(&self) -> Result<Option<Read>, String> {
        let Some(file) = &self.file else { return Ok(None) };
        let read = || -> anyhow::Result<Read> {
            let web = web::load(file).map_err(Wrong)?;
            let files = web.files.clone();
            Ok(Read { access: Access { shows_private: self.around.show_private != Some(false), ..lowered(web)? }, files })
        };
        read().map(Some).map_err(|error| {
            self.told.read(false);
            format!("{error:#}")
        })
    }

    /// Puts rules in force that were read, if there are any.
    pub(super) fn put_in_force(&self, read: Option<Read>) {
        let Some(read) = read else { return };
        self.replace(read, None);
        self.warn();
    }

    /// The same, without a word; after the files were `seen`, if anybody looked.
    fn replace(&self, read: Read, seen: Option<Digest>) {
        let mut used = self.used.lock();
        // Of files that nobody looked at before, nothing is known.
        let seen = seen.filter(|_| used.files == read.files);
        *used = Used { files: read.files, seen };
        self.told.uses(read.access.expiry());
        self.guard.replace(read.access);
        self.told.read(true);
    }

    /// Reads everything again when one of the files changes, until `stop`.
    pub(super) async fn follow(self: Arc<Doorkeeper>, mut stop: watch::Receiver<bool>) {
        let mut refused = Refused::default();
        loop {
            tokio::select! {
                () = sleep(LOOK) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            self.expiry.tell(self.guard.access().expiry(), false, clock::now());
            let this = Arc::clone(&self);
            // A file may lie on a disk that takes its time.
            refused = spawn_blocking(move || this.look(refused)).await.unwrap_or_default();
        }
    }

    /// The files are again what is in force, after others were refused.
    fn restored(&self) {
        if self.told.is_refused() {
            self.told.read(true);
            info!("the web configuration is again the one in use");
        }
    }

    fn look(&self, mut refused: Refused) -> Refused {
        let (files, used) = {
            let used = self.used.lock();
            (used.files.clone(), used.seen)
        };
        let now = seen(&files);
        if used == Some(now) {
            self.restored();
            return Refused::default();
        }
        if refused.told == Some(now) {
            return refused;
        }
        match self.read() {
            Ok(read) => {
                let before = self.guard.access().expiry();
                if let Some(read) = read {
                    self.replace(read, Some(now));
                }
                // Once more after a reload, or for files that it has not named before: what there is to say was said then.
                let is_new = used.is_some() || refused.told.is_some();
                if is_new {
                    info!("the web configuration has changed, and was read again");
                }
                if is_new || before != self.guard.access().expiry() {
                    self.warn();
                }
                Refused::default()
            }
            // A certificate may be there before its key is: that is told if it stays so.
            Err(_) if refused.first != Some(now) => Refused { first: Some(now), ..refused },
            Err(why) => {
                error!(why = printable_lines(&why), "the web configuration is refused; what was read before stays in use");
                refused.told = Some(now);
                refused
            }
        }
    }
}

/// What was read, and from where.
pub(super) struct Read {
    access: Access,
    files: Vec<PathBuf>,
}

/// What stood in the files when they were refused.
#[derive(Clone, Copy, Default)]
struct Refused {
    first: Option<Digest>,
    told: Option<Digest>,
}

fn lowered(web: Web) -> anyhow::Result<Access> {
    let field = |(name, value): (String, String)| -> anyhow::Result<_> { Ok((HeaderName::try_from(name)?, HeaderValue::try_from(value)?)) };
    let headers: anyhow::Result<Vec<_>> = web.headers.into_iter().map(field).collect();
    Ok(Access { tls: web.tls, users: web.users, excluded: web.excluded, headers: headers?, shows_private: false })
}

/// Whether a web configuration is one; what is to be warned of.
///
/// # Errors
///
/// Everything that is wrong with it.
pub(super) fn check(file: &Path) -> Result<Vec<FileProblem>, Wrong> {
    let web = web::load(file).map_err(Wrong)?;
    let useless = web.tls.as_ref().map(|tls| expiry::useless(tls.expiry, clock::now())).unwrap_or_default();
    let placed = |(part, message)| FileProblem { file: file.to_owned(), problem: Problem { at: web.place_of(part), message } };
    Ok(useless.into_iter().map(placed).collect())
}
