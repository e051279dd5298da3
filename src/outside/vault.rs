//! A directory in which things are kept over restarts.
//!
//! Each thing is a file that is replaced as a whole: written beside the old one, brought to the disk if
//! it matters, then renamed over it. Whoever reads finds the old one or the new one, whatever happened in between.
//!
//! A file's last line is a digest of what stands before it: a disk may return other bytes than were written,
//! and what is kept is compared with. A file without such a line is one of an earlier version.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::words::Digest;

/// No file that is kept is larger, in bytes.
const MAX_SIZE: u64 = 256 << 20;
/// So that the opening of a pipe does not wait for its other end (open(2)).
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
/// The end of the name of a file that is not complete.
const PARTIAL: &str = ".partial";
/// The end of the name of a file that made no sense.
const SET_ASIDE: &str = ".set-aside";
/// What the last line of a file begins with; the digest follows, as hexadecimal digits.
const SEAL: &[u8] = b"\n#sha256:";
/// The file that says that the directory is in use.
const IN_USE: &str = "in-use";

/// A directory that this process alone writes to.
#[derive(Debug)]
pub struct Vault {
    dir: PathBuf,
    /// Locked as long as this lives.
    in_use: File,
}

/// Why nothing can be kept.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// Another process keeps its things there.
    #[error("{dir} is in use by another stdiowatch: give each its own --state-dir")]
    InUse {
        /// The directory.
        dir: String,
    },
    /// A file does not hold what was written.
    #[error("{path} is damaged: its content does not have the digest in its last line")]
    Damaged {
        /// The file.
        path: String,
    },
    /// The directory or a file in it cannot be had, read or written.
    #[error("cannot {what} {path}: {cause}")]
    Io {
        /// What was to be done.
        what: &'static str,
        /// With which file or directory.
        path: String,
        /// What the system says.
        cause: io::Error,
    },
}

fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> VaultError {
    let path = crate::words::printable(&path.to_string_lossy(), 300);
    move |cause| VaultError::Io { what, path, cause }
}

impl Vault {
    /// Takes `dir`, which is made if it is not there, for this process alone. What an earlier one was
    /// killed in the middle of is removed.
    ///
    /// # Errors
    ///
    /// See [`VaultError`].
    pub fn open(dir: &Path) -> Result<Vault, VaultError> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io_error("make the directory", dir))?;
        let path = dir.join(IN_USE);
        let in_use = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(io_error("write", &path))?;
        flock(&in_use, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => VaultError::InUse { dir: crate::words::printable(&dir.to_string_lossy(), 300) },
            other => io_error("lock", &path)(other.into()),
        })?;
        let vault = Vault { dir: dir.to_owned(), in_use };
        vault.clear_partial();
        Ok(vault)
    }

    /// Whether the directory at its path is still the one that was taken. One that was removed, or made anew, is not, and
    /// what is written there would be written beside whoever has that one. Where that cannot be told, it is.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        match (fs::metadata(self.dir.join(IN_USE)), self.in_use.metadata()) {
            (Ok(there), Ok(ours)) => (there.dev(), there.ino()) == (ours.dev(), ours.ino()),
            (Err(error), _) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
            (Ok(_), Err(_)) => true,
        }
    }

    /// What is kept under `name`; `None` if nothing is.
    ///
    /// # Errors
    ///
    /// When it is there and cannot be read, or is not what was written.
    pub fn load(&self, name: &str) -> Result<Option<Vec<u8>>, VaultError> {
        peek(&self.dir, name)
    }

    /// Keeps `bytes` under `name`, in place of what was kept there. When this returns without an error,
    /// they are on the disk.
    ///
    /// # Errors
    ///
    /// When they cannot be written: what was kept before is then still there.
    pub fn save(&self, name: &str, bytes: &[u8]) -> Result<(), VaultError> {
        self.replace(name, bytes, File::sync_all)?;
        // The new name has to reach the disk as well (fsync(2)).
        File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(io_error("bring to the disk", &self.dir))
    }

    /// The same without waiting for the disk: whatever happens to this process, the old or the new is
    /// found; if the machine loses its power soon after, maybe neither.
    ///
    /// # Errors
    ///
    /// See [`Vault::save`].
    pub fn save_soon(&self, name: &str, bytes: &[u8]) -> Result<(), VaultError> {
        self.replace(name, bytes, |_| Ok(()))
    }

    fn replace(&self, name: &str, bytes: &[u8], bring_to_disk: impl FnOnce(&File) -> io::Result<()>) -> Result<(), VaultError> {
        let path = self.path(name);
        let partial = with_end(&path, PARTIAL);
        let write = || {
            let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&partial)?;
            file.write_all(bytes)?;
            file.write_all(&seal(bytes))?;
            bring_to_disk(&file)
        };
        let written = write().map_err(io_error("write", &partial)).and_then(|()| fs::rename(&partial, &path).map_err(io_error("replace", &path)));
        if written.is_err() {
            let _ = fs::remove_file(&partial);
        }
        written
    }

    /// Keeps nothing under `name` any more.
    ///
    /// # Errors
    ///
    /// When what is kept there cannot be removed.
    pub fn forget(&self, name: &str) -> Result<(), VaultError> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Moves what is kept under `name` out of the way, since it makes no sense, and says where to.
    ///
    /// # Errors
    ///
    /// When it cannot be moved.
    pub fn set_aside(&self, name: &str) -> Result<PathBuf, VaultError> {
        let path = self.path(name);
        let aside = with_end(&path, SET_ASIDE);
        fs::rename(&path, &aside).map_err(io_error("set aside", &path))?;
        Ok(aside)
    }

    fn path(&self, name: &str) -> PathBuf {
        path(&self.dir, name)
    }

    fn clear_partial(&self) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.to_string_lossy().ends_with(PARTIAL)) {
            let _ = fs::remove_file(path);
        }
    }
}

/// What is kept under `name` in a directory that another process may have in use: each file is a whole one at any
/// moment.
///
/// # Errors
///
/// As [`Vault::load`].
pub fn peek(dir: &Path, name: &str) -> Result<Option<Vec<u8>>, VaultError> {
    let path = path(dir, name);
    match read_file(&path) {
        Ok(bytes) => match unsealed(bytes) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(VaultError::Damaged { path: crate::words::printable(&path.to_string_lossy(), 300) }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("read", &path)(error)),
    }
}

fn path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{}.json", file_name(name)))
}

/// The line that ends a file with this content.
fn seal(bytes: &[u8]) -> Vec<u8> {
    [SEAL, Digest::of(bytes).to_string().as_bytes(), b"\n"].concat()
}

/// What stands before the line that ends a file; all of it where there is none. `None` if that line is not
/// the content's.
fn unsealed(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let Some(at) = memchr::memmem::rfind(&bytes, SEAL) else { return Some(bytes) };
    let is_whole = bytes[at..] == seal(&bytes[..at]);
    bytes.truncate(at);
    is_whole.then_some(bytes)
}

/// Reads a file, up to 256 MiB of it. A pipe or a device in its place is refused, and not waited for.
///
/// # Errors
///
/// When it is no file, or cannot be read.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.take(MAX_SIZE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file, to be read. A pipe or a device in its place is refused, and not waited for.
///
/// # Errors
///
/// When it is no file, or cannot be opened.
pub fn open_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)?;
    let kind = file.metadata()?.file_type();
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => Ok(file),
        (false, true) => Err(io::ErrorKind::IsADirectory.into()),
        (false, false) => Err(io::Error::other("it is no regular file")),
    }
}

/// A name as a file's: what of it a file name may hold, to be recognised by, and a digest, to be told
/// apart by.
#[must_use]
pub fn file_name(name: &str) -> String {
    let readable: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' }).take(40).collect();
    let digest = Digest::of(name.as_bytes()).to_string();
    format!("{readable}-{}", &digest[..12])
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let dir = std::env::temp_dir().join(format!("stdiowatch-vault-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&dir);
            Scratch(dir)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_was_saved_is_loaded_and_replaced() {
        let scratch = Scratch::new("saved");
        let vault = Vault::open(&scratch.0).unwrap();
        assert_eq!(vault.load("a").unwrap(), None);
        vault.save("a", b"one").unwrap();
        vault.save("a", b"two").unwrap();
        vault.save("a/../b", b"three").unwrap();
        assert_eq!(vault.load("a").unwrap().unwrap(), b"two");
        assert_eq!(vault.load("a/../b").unwrap().unwrap(), b"three");
        assert_eq!(vault.load("a-..-b").unwrap(), None, "names that look alike are told apart");
        let files: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|e| e.unwrap()).collect();
        assert_eq!(files.len(), 3);
        assert!(files.iter().all(|f| f.metadata().unwrap().permissions().mode() & 0o077 == 0), "nobody else may read it");
    }

    #[test]
    fn one_process_at_a_time() {
        let scratch = Scratch::new("one");
        let first = Vault::open(&scratch.0).unwrap();
        assert!(matches!(Vault::open(&scratch.0), Err(VaultError::InUse { .. })));
        drop(first);
        Vault::open(&scratch.0).unwrap();
    }

    #[test]
    fn a_directory_that_was_removed_or_made_anew_is_not_the_one_that_was_taken() {
        let scratch = Scratch::new("anew");
        let vault = Vault::open(&scratch.0).unwrap();
        vault.save("a", b"one").unwrap();
        assert!(vault.is_ours());
        let aside = with_end(&scratch.0, "-aside");
        fs::rename(&scratch.0, &aside).unwrap();
        assert!(!vault.is_ours(), "gone");
        let other = Vault::open(&scratch.0).unwrap();
        assert!(!vault.is_ours() && other.is_ours());
        fs::remove_dir_all(&scratch.0).unwrap();
        fs::write(&scratch.0, b"").unwrap();
        assert!(!vault.is_ours(), "a file");
        fs::remove_file(&scratch.0).unwrap();
        fs::rename(&aside, &scratch.0).unwrap();
        assert!(vault.is_ours() && !other.is_ours(), "moved back");
    }

    #[test]
    fn what_was_not_finished_is_cleared_and_what_makes_no_sense_set_aside() {
        let scratch = Scratch::new("cleared");
        let vault = Vault::open(&scratch.0).unwrap();
        vault.save("a", b"one").unwrap();
        fs::write(with_end(&vault.path("a"), PARTIAL), b"tw").unwrap();
        drop(vault);
        let vault = Vault::open(&scratch.0).unwrap();
        assert!(!with_end(&vault.path("a"), PARTIAL).exists());
        let aside = vault.set_aside("a").unwrap();
        assert!(fs::read(aside).unwrap().starts_with(b"one\n#sha256:") && vault.load("a").unwrap().is_none());
    }

    #[test]
    fn a_place_that_cannot_be_had_is_named() {
        let scratch = Scratch::new("named");
        fs::create_dir_all(&scratch.0).unwrap();
        let file = scratch.0.join("file");
        fs::write(&file, b"").unwrap();
        let error = Vault::open(&file.join("below")).unwrap_err().to_string();
        assert!(error.starts_with("cannot make the directory /") && error.contains("below"), "{error}");
    }
}
