//! A directory for the temporary files of one launch, removed with all that is in it.
//!
//! What is in it a server has made, which may be hostile: directories deeper than a stack or a table of
//! descriptors, links to elsewhere, mounts. So nothing is followed, no other filesystem entered, and depth costs
//! nothing: directories within directories are moved up before they are emptied.
//!
//! As long as it is in use it is locked (flock(2)), which ends with us, however we end: what is not locked is
//! nobody's any more, and is removed after the next probe that has one.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Dir, FlockOperation, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;

use crate::outside::clock;

/// What their names begin with.
const PREFIX: &str = "stdiowatch-tmp-";
/// So many names are tried: another stdiowatch may take one for nobody's before it is locked.
const TRIES: u32 = 4;
/// What is not removed by then is left for the next time: somebody who is left alone may be writing.
const MOST: Duration = Duration::from_secs(10);
/// For nobody else.
const MODE: Mode = Mode::RWXU;

/// The directory. Dropped, it is removed.
pub(super) struct PrivateTmp {
    base: OwnedFd,
    name: String,
    path: PathBuf,
    top: OwnedFd,
}

impl PrivateTmp {
    /// Makes one, owned by `owner` if that is not us, with `name` in its name.
    pub(super) fn make(name: &str, owner: Option<(u32, u32)>) -> io::Result<PrivateTmp> {
        PrivateTmp::make_in(&std::path::absolute(std::env::temp_dir())?, name, owner)
    }

    fn make_in(dir: &Path, name: &str, owner: Option<(u32, u32)>) -> io::Result<PrivateTmp> {
        let base = rustix::fs::openat(CWD, dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let mut last = Errno::EXIST;
        for attempt in 0..TRIES {
            let name = format!("{PREFIX}{name}-{attempt}");
            match make_locked(&base, &name) {
                Ok(top) => {
                    if let Some((uid, gid)) = owner {
                        rustix::fs::fchown(&top, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
                    }
                    return Ok(PrivateTmp { path: dir.join(&name), base, name, top });
                }
                Err(Errno::EXIST | Errno::WOULDBLOCK | Errno::NOENT) => last = Errno::EXIST,
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(last.into())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, and those that nobody has any more. Takes as long as it takes, within bounds.
    pub(super) fn remove(self) {
        let base = self.base.try_clone();
        drop(self);
        if let Ok(base) = base {
            remove_orphans(&base);
        }
    }
}

impl Drop for PrivateTmp {
    fn drop(&mut self) {
        if let Err(errno) = remove(&self.base, self.name.as_str(), &self.top) {
            tracing::warn!("{} could not be removed: {errno}", self.path.display());
        }
    }
}

fn make_locked(base: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::mkdirat(base, name, MODE)?;
    let top = open_top(base, name)?;
    rustix::fs::flock(&top, FlockOperation::NonBlockingLockExclusive)?;
    // Locked by us, it may have been removed before.
    let there = rustix::fs::statat(base, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if there.st_ino != rustix::fs::fstat(&top)?.st_ino {
        return Err(Errno::EXIST);
    }
    // Whatever the mask of modes is.
    rustix::fs::fchmod(&top, MODE)?;
    Ok(top)
}

fn open_top<P: rustix::path::Arg>(base: &OwnedFd, name: P) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(base, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// Removes those that nobody has locked: whoever made them was killed.
fn remove_orphans(base: &OwnedFd) {
    let Ok(entries) = Dir::read_from(base) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_bytes().starts_with(PREFIX.as_bytes())) {
        let Ok(top) = open_top(base, entry.file_name()) else { continue };
        if rustix::fs::flock(&top, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // It may be somebody's who keeps something in it that cannot be removed.
            let _ = remove(base, entry.file_name(), &top);
        }
    }
}

fn remove<P: rustix::path::Arg>(base: &OwnedFd, name: P, top: &OwnedFd) -> Result<(), Errno> {
    let emptied = empty(top);
    match rustix::fs::unlinkat(base, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => emptied.and(Err(errno)),
    }
}

/// Removes all that is in `top`, in as many looks as it takes.
fn empty(top: &OwnedFd) -> Result<(), Errno> {
    let _ = rustix::fs::fchmod(top, MODE);
    let until = clock::up() + MOST;
    let mut moved = 0;
    loop {
        let (mut removed, mut trouble) = (0_u64, None);
        for entry in Dir::read_from(top)? {
            let entry = entry?;
            let name = entry.file_name();
            if is_dots(name) {
                continue;
            }
            if clock::up() > until {
                return Err(Errno::TIMEDOUT);
            }
            match remove_entry(top, name, &mut moved) {
                Ok(()) | Err(Errno::NOENT) => removed += 1,
                Err(errno) => trouble = Some(errno),
            }
        }
        match trouble {
            _ if removed > 0 => {}
            Some(errno) => return Err(errno),
            None => return Ok(()),
        }
    }
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

/// Removes a file, or a directory, of which the directories in it are moved to `top` first.
fn remove_entry(top: &OwnedFd, name: &CStr, moved: &mut u64) -> Result<(), Errno> {
    match rustix::fs::unlinkat(top, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        done => return done,
    }
    let dir = open_within(top.as_fd(), name)?;
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        let inner = entry.file_name();
        if is_dots(inner) {
            continue;
        }
        match rustix::fs::unlinkat(&dir, inner, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => move_up(&dir, inner, top, moved)?,
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    rustix::fs::unlinkat(top, name, AtFlags::REMOVEDIR)
}

fn move_up(from: &OwnedFd, name: &CStr, top: &OwnedFd, moved: &mut u64) -> Result<(), Errno> {
    loop {
        *moved += 1;
        let there = format!("~{moved}");
        match rustix::fs::renameat(from, name, top, there.as_str()) {
            // Its own name for something else.
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            // To be moved it has to be written to: `..` is another one.
            Err(Errno::ACCESS) => {
                open_within(from.as_fd(), name)?;
                return rustix::fs::renameat(from, name, top, there.as_str());
            }
            done => return done,
        }
    }
}

/// Opens a directory, which has been made one that we may change; not through a link, and not on another filesystem.
fn open_within(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    // Not all kernels and filters know openat2(2).
    let open = |flags| match rustix::fs::openat2(dir, name, flags, Mode::empty(), within) {
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(dir, name, flags, Mode::empty()),
        opened => opened,
    };
    let known = open(flags | OFlags::PATH)?;
    if rustix::fs::fstat(&known)?.st_dev != rustix::fs::fstat(dir)?.st_dev {
        return Err(Errno::XDEV);
    }
    // By this descriptor, and not by a name that may be another directory's by now.
    let this = format!("/proc/self/fd/{}", known.as_raw_fd());
    let _ = rustix::fs::chmod(&this, MODE);
    rustix::fs::openat(&known, ".", flags | OFlags::RDONLY, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    fn base(test: &str) -> PathBuf {
        let base = std::env::temp_dir().join(format!("stdiowatch-test-{test}-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        base
    }

    #[test]
    fn it_is_ours_alone_and_goes_with_all_that_is_in_it() {
        let base = base("tmp");
        let kept = base.join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        let tmp = PrivateTmp::make_in(&base, "a", None).unwrap();
        let path = tmp.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o700);
        symlink(&kept, path.join("link")).unwrap();
        symlink("/", path.join("root")).unwrap();
        let mut deep = path.clone();
        for n in 0..200 {
            deep.push("d");
            fs::create_dir(&deep).unwrap();
            fs::write(deep.join("~1"), "x").unwrap();
            symlink(&kept, deep.join("link")).unwrap();
            if n % 20 == 3 {
                fs::create_dir(deep.join(format!("~{n}"))).unwrap();
            }
        }
        for mode in [0o000, 0o500] {
            let dir = path.join(format!("mode{mode}"));
            fs::create_dir_all(dir.join("inner/more")).unwrap();
            fs::set_permissions(dir.join("inner"), fs::Permissions::from_mode(mode)).unwrap();
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        }
        drop(tmp);
        assert!(!path.exists());
        assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "x");
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn depth_costs_neither_stack_nor_descriptors() {
        let base = base("deep");
        let tmp = PrivateTmp::make_in(&base, "a", None).unwrap();
        // Deeper than there are descriptors, mostly.
        let mut at = tmp.top.try_clone().unwrap();
        for _ in 0..1500 {
            rustix::fs::mkdirat(&at, "d", MODE).unwrap();
            at = open_top(&at, "d").unwrap();
        }
        drop(tmp);
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0);
        fs::remove_dir(base).unwrap();
    }

    #[test]
    fn what_nobody_has_locked_goes_and_what_is_in_use_stays() {
        let base = base("orphans");
        let used = PrivateTmp::make_in(&base, "used", None).unwrap();
        fs::write(used.path().join("file"), "x").unwrap();
        let left = base.join(format!("{PREFIX}left-0"));
        fs::create_dir_all(left.join("a/b")).unwrap();
        let other = base.join("other");
        fs::create_dir(&other).unwrap();
        symlink(&other, base.join(format!("{PREFIX}link-0"))).unwrap();
        PrivateTmp::make_in(&base, "before", None).unwrap().remove();
        let next = PrivateTmp::make_in(&base, "next", None).unwrap();
        assert!(!left.exists() && other.exists() && used.path().join("file").exists());
        // A name that is taken is not taken over.
        let same = PrivateTmp::make_in(&base, "next", None).unwrap();
        assert_ne!(same.path(), next.path());
        drop((used, next, same));
        assert_eq!(fs::read_dir(&base).unwrap().count(), 2, "the other one, and the link to it");
        fs::remove_dir_all(base).unwrap();
    }
}
