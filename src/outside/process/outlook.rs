//! What stands in the way of a launch, as far as that shows without one.

use super::binaries::Binaries;
use super::environment::Environment;
use super::resolve::{self, Place};
use super::spec::LaunchSpec;
use crate::probe::LaunchError;

/// Why `spec` could not be launched by this user here and now: its working directory, its command on the PATH that it would
/// get, the interpreter of a script. `None` if nothing is known against it. Nothing is launched.
#[must_use]
pub fn obstacle(spec: &LaunchSpec) -> Option<LaunchError> {
    let dir = match spec.cwd.as_deref().map(resolve::open_cwd).transpose() {
        Ok(dir) => dir,
        Err(error) => return Some(error),
    };
    let (path, binaries) = (Environment::of(spec).path(), Binaries::default());
    let place = Place::new(spec.cwd.as_deref().zip(dir.as_ref()), &path, &binaries);
    match place.resolve(&spec.command) {
        Ok(program) => place.refusal(&spec.command, &program),
        Err(error) => Some(error),
    }
}
