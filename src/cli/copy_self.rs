//! `stdiowatch copy-self`: the running program into a directory, for a container whose image lacks it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::complain;

/// The running program, also when its file was replaced or deleted meanwhile.
const SELF: &str = "/proc/self/exe";

pub(super) fn run(dir: &Path) -> ExitCode {
    match copy(dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error),
    }
}

fn copy(dir: &Path) -> anyhow::Result<()> {
    let shown = crate::words::printable(&dir.to_string_lossy(), 300);
    if !dir.is_dir() {
        bail!("{shown} is no directory: it has to be there already");
    }
    // Beside its place, so that the rename stays within one file system and nobody ever runs half a program.
    let beside = dir.join(format!(".stdiowatch-{}", std::process::id()));
    let copied = write(&beside).and_then(|()| fs::rename(&beside, dir.join("stdiowatch")));
    if copied.is_err() {
        let _ = fs::remove_file(&beside);
    }
    copied.with_context(|| format!("cannot copy the program into {shown}"))
}

fn write(path: &Path) -> io::Result<()> {
    let mut from = File::open(SELF)?;
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o755).open(path)?;
    io::copy(&mut from, &mut to)?;
    // Whatever the umask says.
    to.set_permissions(fs::Permissions::from_mode(0o755))?;
    to.sync_all()
}
