//! A control group of a launch's own (cgroups, version 2), where we may make one.
//!
//! What is in it stays in it, whatever it does to its environment, its session and its parents, and all of it is killed at
//! once (`cgroup.kill`, Linux 5.14), faster than anything can multiply. It is below our own group, so what bounds that
//! bounds servers too. The server enters it before its program runs: the [shim](super::shim) does that.
//!
//! Mostly we may not: a container's groups are mounted read-only, and a service's are the manager's unless it delegates
//! them (`Delegate=yes`). Then servers are launched as ever, and it is said why.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

/// So many names are tried: another stdiowatch may take one for nobody's before it is locked.
const TRIES: u32 = 4;
/// What their names begin with; the pid of who made them follows, for people.
const PREFIX: &str = "stdiowatch-";
/// What those names end with in which something may live on.
const KEPT: &str = "-kept";

/// Where groups can be made: the one that we are in.
#[derive(Debug)]
pub(super) struct Groups(PathBuf);

/// The group of one launch. Dropped, it is removed, unless something in it is to live on.
#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
    /// Ends with us, however we end: what is not locked (flock(2)) is nobody's any more.
    _lock: File,
}

impl Groups {
    /// Ours, if groups can be made in it.
    ///
    /// # Errors
    ///
    /// Why they cannot.
    pub(super) fn find() -> Result<Groups, String> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"));
        let own = place(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)?;
        let groups = Groups(own);
        // To know is to try.
        let trial = groups.make("trial", false).map_err(|error| format!("none can be made in {}: {error}", groups.0.display()))?;
        if !trial.path.join("cgroup.kill").exists() {
            return Err("the kernel has no cgroup.kill, which came with Linux 5.14".to_owned());
        }
        Ok(groups)
    }

    /// Makes a group with `name` in its name, in which something may live on if it `spares`, and removes those that are nobody's
    /// any more.
    pub(super) fn make(&self, name: &str, spares: bool) -> io::Result<Group> {
        self.tidy();
        let end = if spares { KEPT } else { "" };
        let mut made = Err(io::ErrorKind::WouldBlock.into());
        for attempt in 0..TRIES {
            made = Group::make(self.0.join(format!("{PREFIX}{}-{name}-{attempt}{end}", std::process::id())));
            if made.is_ok() {
                break;
            }
        }
        made
    }

    /// Removes what was left: by us, where something lived on in it, and by others that were killed, with what is in it unless
    /// that may live on. The kernel keeps groups in which something is.
    fn tidy(&self) {
        let Ok(entries) = fs::read_dir(&self.0) else { return };
        for entry in entries.flatten().filter(|entry| entry.file_name().as_bytes().starts_with(PREFIX.as_bytes())) {
            // Dropped, it is removed.
            let Ok(group) = Group::lock(entry.path()) else { continue };
            if !entry.file_name().as_bytes().ends_with(KEPT.as_bytes()) {
                group.kill();
            }
        }
    }
}

impl Group {
    fn make(path: PathBuf) -> io::Result<Group> {
        fs::create_dir(&path)?;
        let group = Group::lock(path)?;
        // Before it was locked, another stdiowatch may have taken it for nobody's, and removed it.
        fs::metadata(group.entrance()).map(|_| group)
    }

    /// One that is there, unless somebody has it.
    fn lock(path: PathBuf) -> io::Result<Group> {
        let lock = File::open(&path)?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Group { path, _lock: lock })
    }

    /// Where the number of who enters it is to be written.
    pub(super) fn entrance(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// The processes in it; those in groups that they made below it are not.
    pub(super) fn members(&self) -> Vec<u32> {
        fs::read_to_string(self.entrance()).map(|text| text.lines().filter_map(|line| line.parse().ok()).collect()).unwrap_or_default()
    }

    /// Kills all that is in it, and below it.
    pub(super) fn kill(&self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a group, and first those that a server made in it.
fn remove(group: &Path) {
    if fs::remove_dir(group).is_ok() {
        return;
    }
    let mut all = vec![group.to_owned()];
    let mut at = 0;
    while let Some(dir) = all.get(at).cloned() {
        let inner = fs::read_dir(dir).into_iter().flatten().flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        all.extend(inner.map(|entry| entry.path()));
        at += 1;
    }
    for dir in all.iter().rev() {
        let _ = fs::remove_dir(dir);
    }
}

/// Where our group lies, by `/proc/self/cgroup` and `/proc/self/mountinfo` (cgroups(7), proc_pid_mountinfo(5)).
fn place(own: &str, mounts: &str) -> Result<PathBuf, String> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).ok_or("this host has no cgroups of version 2")?;
    let mut refused = "cgroups of version 2 are not mounted".to_owned();
    for line in mounts.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let fields: Vec<&str> = before.split(' ').collect();
        let ([_, _, _, root, point, options, ..], true) = (fields.as_slice(), after.starts_with("cgroup2 ")) else { continue };
        // A mount that begins elsewhere shows ours only if it lies below.
        let below = if *root == "/" { Some(own) } else { own.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/')) };
        let Some(below) = below else { continue };
        if options.split(',').any(|option| option == "ro") {
            refused = format!("{point} is mounted read-only");
            continue;
        }
        return Ok(Path::new(point).components().chain(Path::new(below.trim_start_matches('/')).components()).collect());
    }
    Err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";

    #[test]
    fn our_own_group_is_found_where_it_is_mounted() {
        let found = |own: &str, mounts: &str| place(own, mounts).map(|path| path.to_string_lossy().into_owned());
        assert_eq!(found("0::/a.slice/b.service\n", MOUNT), Ok("/sys/fs/cgroup/a.slice/b.service".to_owned()));
        let hybrid =
            format!("29 23 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n{}", MOUNT.replace("/sys/fs/cgroup ", "/sys/fs/cgroup/unified "));
        assert_eq!(found("1:cpu:/x\n0::/\n", &hybrid), Ok("/sys/fs/cgroup/unified".into()));
        let bound = MOUNT.replace(" / ", " /a.slice ");
        assert_eq!(found("0::/a.slice/b\n", &bound), Ok("/sys/fs/cgroup/b".into()));
        assert_eq!(found("0::/a.slices\n", &bound).unwrap_err(), "cgroups of version 2 are not mounted");
        assert_eq!(found("0::/\n", &MOUNT.replace("rw,nosuid", "nosuid,ro")).unwrap_err(), "/sys/fs/cgroup is mounted read-only");
        assert_eq!(found("1:cpu:/\n", MOUNT).unwrap_err(), "this host has no cgroups of version 2");
        assert!(found("0::/", "").is_err() && found("", "").is_err());
    }
}
