//! Files that are known not to be scripts.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use rustix::fs::Stat;

/// When more than this are known, all are forgotten.
const MOST: usize = 1024;

/// Files of which the first bytes were no `#!` when they were read. To look whether one is the same as
/// then costs a third of what reading it again does.
#[derive(Default)]
pub(super) struct Binaries(Mutex<BTreeSet<Identity>>);

/// What changes when a file is replaced or written to.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    file: (u64, u64),
    changed: (i64, u64),
    len: i64,
}

impl Binaries {
    pub(super) fn has(&self, stat: &Stat) -> bool {
        self.0.lock().contains(&identity(stat))
    }

    pub(super) fn insert(&self, stat: &Stat) {
        let mut known = self.0.lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(identity(stat));
    }
}

/// A change of its bytes, of its mode or of its name changes a file's `ctime`.
fn identity(stat: &Stat) -> Identity {
    Identity { file: (stat.st_dev, stat.st_ino), changed: (stat.st_ctime, stat.st_ctime_nsec), len: stat.st_size }
}
