//! Lock files on disk.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};

use crate::judge::{Listing, LockFile};
use crate::outside::vault::read_file;
use crate::running::Watched;
use crate::words::{ServerName, printable};

/// The path as it is shown.
pub(super) fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy(), 300)
}

/// Reads a lock file; `None` if there is none.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<LockFile>> {
    match read_file(path) {
        Ok(text) => Ok(Some(LockFile::parse(&text).map_err(|error| anyhow::anyhow!("{}:{error}", shown(path)))?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", shown(path))),
    }
}

/// From where it is known what a server is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// From the command line, or from what it says.
    There,
    /// From a configuration file.
    InFile,
}

/// What the lock file at `path` says of a server.
///
/// # Errors
///
/// When there is no such file, or it says nothing of the server.
pub(super) fn of_server(path: &Path, name: &ServerName, named: Named) -> anyhow::Result<Arc<Listing>> {
    let Some(mut lock) = read(path)? else {
        let arguments = if named == Named::InFile { " --config FILE NAME" } else { "" };
        bail!("there is no lock file {}: write it with `stdiowatch lock{arguments}`", shown(path));
    };
    if let Some(listing) = lock.servers.remove(name) {
        return Ok(Arc::new(listing));
    }
    let hint = match named {
        Named::There => "--name says what a server is called",
        Named::InFile => "call it so in the file, or lock it with `stdiowatch lock --config FILE NAME`",
    };
    bail!("{}; {hint}", says_nothing_of(path, name, &lock));
}

/// That the lock file at `path` is about others than this server.
pub(super) fn says_nothing_of(path: &Path, name: &ServerName, lock: &LockFile) -> String {
    let names: Vec<&str> = lock.servers.keys().map(ServerName::as_str).collect();
    let others = if names.is_empty() { "nothing".to_owned() } else { printable(&names.join(", "), 600) };
    format!("{} says nothing of a server \"{name}\", but of: {others}", shown(path))
}

/// Reads what the servers' lock files say of them.
pub(super) fn load(servers: &mut [Watched], named: Named) -> anyhow::Result<()> {
    for server in servers {
        if let Some(path) = &server.schema.lock {
            server.schema.locked = Some(of_server(path, &server.name, named)?);
        }
    }
    Ok(())
}
