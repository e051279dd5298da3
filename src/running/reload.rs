//! Reading the configuration again, while it is used. All or nothing: what cannot be read, or is wrong
//! somewhere, changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::{error, info, warn};

use super::fleet::{Changes, Fleet};
use super::watched::Watched;
use crate::ledger::Unwatched;
use crate::outside::clock;
use crate::outside::vault::read_file;
use crate::words::{Digest, printable_lines};

/// How often followed files are looked at.
const LOOK: Duration = Duration::from_secs(5);
/// Until they stay the same for this long, somebody is still writing.
const SETTLE: Duration = Duration::from_millis(500);
/// Who writes for longer than so many of these does not stop.
const MOST_SETTLES: u32 = 10;
/// The longest file that is looked into; of a longer one only its length is.
const LONGEST: u64 = 16 << 20;

/// What a configuration says.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The servers.
    pub servers: Vec<Watched>,
    /// Its entries that are not watched.
    pub unwatched: Vec<Unwatched>,
    /// The files to follow from now on, if they are to be followed; those from before where it is empty.
    pub files: Vec<PathBuf>,
}

impl From<Vec<Watched>> for Loaded {
    fn from(servers: Vec<Watched>) -> Loaded {
        Loaded { servers, ..Loaded::default() }
    }
}

/// Reads the whole configuration; or says what is wrong with it, in as many lines as that takes.
pub type Load = Arc<dyn Fn() -> Result<Loaded, String> + Send + Sync>;

/// Where the servers come from, if that can be read again.
pub struct Source {
    /// Reads it.
    pub load: Load,
    /// What to follow; none if it is not to be followed.
    pub follow: Option<Follow>,
}

/// What there is to tell of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It begins.
    Begun,
    /// It is over.
    Ended {
        /// What was read is in use.
        accepted: bool,
    },
}

/// Is told of each reading.
pub type Told = Box<dyn Fn(Reading) + Send + Sync>;

/// Puts what is read into the fleet.
pub struct Reloader {
    fleet: Arc<Fleet>,
    load: Load,
    told: Told,
    /// One at a time: who comes while one is read has it read once more.
    turn: Mutex<()>,
    followed: parking_lot::Mutex<Follow>,
}

/// Files that are followed.
#[derive(Debug, Default)]
pub struct Follow {
    /// Where they are.
    pub files: Vec<PathBuf>,
    /// [`seen`] of before they were last read; `None` if they are to be read again in any case.
    pub used: Option<Digest>,
}

impl Reloader {
    /// A reloader of what `load` reads.
    #[must_use]
    pub fn new(fleet: Arc<Fleet>, load: Load, told: Told) -> Arc<Reloader> {
        Arc::new(Reloader { fleet, load, told, turn: Mutex::new(()), followed: parking_lot::Mutex::default() })
    }

    /// Reads the configuration again and watches what it says; `cause` is for the log.
    ///
    /// # Errors
    ///
    /// What is wrong with it. Everything stays as it was then.
    pub async fn reload(&self, cause: &str) -> Result<Changes, String> {
        let _turn = self.turn.lock().await;
        (self.told)(Reading::Begun);
        let read = self.read().await;
        self.take(read, cause)
    }

    /// Reads it again that was refused. Nothing is told if it is refused for the same reason.
    async fn try_again(&self) {
        let _turn = self.turn.lock().await;
        let read = self.read().await;
        if read.as_ref().is_err_and(|why| self.refused().as_ref() == Some(why)) {
            return;
        }
        (self.told)(Reading::Begun);
        // What is wrong with it is told.
        let _ = self.take(read, "what it needs may be there by now");
    }

    /// Why the last reading was refused, if it was.
    fn refused(&self) -> Option<String> {
        self.fleet.hub.snapshot().reading.refused.as_ref().map(|(_, why)| why.clone())
    }

    async fn read(&self) -> Result<Loaded, String> {
        let load = Arc::clone(&self.load);
        // A file may lie on a disk that takes its time.
        let read = spawn_blocking(move || load()).await.unwrap_or_else(|error| Err(format!("reading the configuration broke off: {error}")));
        read.and_then(|loaded| Ok(Loaded { servers: unambiguous(loaded.servers)?, ..loaded }))
    }

    /// Uses what was read, or tells why not.
    fn take(&self, read: Result<Loaded, String>, cause: &str) -> Result<Changes, String> {
        let changes = read.map(|Loaded { servers, unwatched, files }| {
            self.names(files);
            self.fleet.hub.update(|snapshot| snapshot.read(unwatched));
            self.fleet.replace(servers)
        });
        if let Err(why) = &changes {
            self.fleet.hub.update(|snapshot| snapshot.refuse(clock::now(), why.clone()));
        }
        (self.told)(Reading::Ended { accepted: changes.is_ok() });
        match &changes {
            Ok(changes) => tell(changes, cause),
            Err(why) => error!(cause, why = printable_lines(why), "the configuration is refused; what was read before stays in use"),
        }
        changes
    }

    /// These are the files to follow. Of others than before it is not known whether they changed since they were read: they
    /// are read once more.
    fn names(&self, files: Vec<PathBuf>) {
        let mut followed = self.followed.lock();
        if !files.is_empty() && !followed.files.is_empty() && followed.files != files {
            *followed = Follow { files, used: None };
        }
    }

    /// Reloads whenever what stands in one of these files, or of those that are named later, is not what was used, until `stop`;
    /// and as long as that is refused, since it may name files that come later. Symbolic links may be put in place of others, as Kubernetes does; files may be written in pieces.
    pub async fn follow(&self, follow: Follow, mut stop: watch::Receiver<bool>) {
        *self.followed.lock() = follow;
        loop {
            tokio::select! {
                () = sleep(LOOK) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            let (files, used) = {
                let followed = self.followed.lock();
                (Arc::new(followed.files.clone()), followed.used)
            };
            let mut now = look(&files).await;
            if now == used {
                if self.refused().is_some() {
                    self.try_again().await;
                }
                continue;
            }
            for _ in 0..MOST_SETTLES {
                sleep(SETTLE).await;
                let then = look(&files).await;
                if std::mem::replace(&mut now, then) == then {
                    break;
                }
            }
            self.followed.lock().used = now;
            // What is wrong with it has been told.
            let _ = self.reload(if used.is_some() { "a change of the file" } else { "files that it names now" }).await;
        }
    }
}

/// Two servers of one name would be one.
fn unambiguous(servers: Vec<Watched>) -> Result<Vec<Watched>, String> {
    let mut names: Vec<_> = servers.iter().map(|server| &server.name).collect();
    names.sort();
    match names.windows(2).find(|two| two[0] == two[1]) {
        Some(two) => Err(format!("two servers are called \"{}\"", two[0])),
        None => Ok(servers),
    }
}

fn tell(changes: &Changes, cause: &str) {
    let (added, removed, changed, kept) = (changes.added.len(), changes.removed.len(), changes.changed.len(), changes.kept);
    info!(cause, added, removed, changed, kept, "the configuration was read again: {changes}");
    if added + kept + changed == 0 {
        warn!("no server is watched any more");
    }
}

async fn look(files: &Arc<Vec<PathBuf>>) -> Option<Digest> {
    let files = Arc::clone(files);
    spawn_blocking(move || seen(&files)).await.ok()
}

/// A digest of what stands in the files, or of why they cannot be read.
#[must_use]
pub fn seen(files: &[PathBuf]) -> Digest {
    let contents: Vec<Vec<u8>> = files.iter().map(|file| content(file)).collect();
    Digest::of_pieces(contents.iter().map(Vec::as_slice))
}

fn content(file: &Path) -> Vec<u8> {
    let read = || match std::fs::metadata(file)? {
        metadata if metadata.is_file() && metadata.len() <= LONGEST => read_file(file),
        metadata => Ok(format!("{} {:?}", metadata.len(), metadata.modified()).into_bytes()),
    };
    read().unwrap_or_else(|error| error.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outside::process::LaunchSpec;
    use crate::words::ServerName;

    #[test]
    fn files_are_told_by_what_stands_in_them() {
        let dir = std::env::temp_dir().join(format!("stdiowatch-follow-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (one, two, link) = (dir.join("one"), dir.join("two"), dir.join("link"));
        let look = || seen(std::slice::from_ref(&link));
        let missing = look();
        std::fs::write(&one, "a").unwrap();
        std::fs::write(&two, "b").unwrap();
        let point_at = |file: &Path| {
            let new = dir.join("new");
            std::os::unix::fs::symlink(file, &new).unwrap();
            std::fs::rename(&new, &link).unwrap();
        };
        point_at(&one);
        let first = look();
        point_at(&two);
        let second = look();
        assert!(missing != first && first != second);
        std::fs::write(&two, "a").unwrap();
        assert_eq!(look(), first, "the same text is no change");
        let files = [one.clone(), two.clone()];
        assert_ne!(seen(&files), seen(&files[..1]));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn two_servers_of_one_name_are_refused() {
        let server = |name: &str| Watched::new(ServerName::new(name).unwrap(), LaunchSpec::default(), Duration::from_secs(60));
        assert_eq!(unambiguous(vec![server("a"), server("b")]).unwrap().len(), 2);
        assert_eq!(unambiguous(vec![server("a"), server("b"), server("a")]).unwrap_err(), "two servers are called \"a\"");
    }
}
