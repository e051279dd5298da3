//! The environment that a server gets.

use std::borrow::Cow;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use super::browser::{BROWSER, stub};
use super::spec::{EnvMode, LaunchSpec};
use crate::outside::service;
use crate::words::printable;

/// Tells whose an orphan is, from its `/proc/PID/environ`: each tree that it is in, outermost first.
pub(in crate::outside) const MARKER: &str = "STDIOWATCH_TREE";

/// What the SDKs pass on outside of Windows.
const SDK: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// Where a program is looked for without a PATH (glibc's `confstr(_CS_PATH)`).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// What names a directory for temporary files: to C and most others, to Node and Python too.
const TMP: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// A server's environment: what it inherits of ours, a browser that opens nothing, then its own entries.
pub(super) struct Environment<'a>(&'a LaunchSpec);

impl<'a> Environment<'a> {
    pub(super) fn of(spec: &'a LaunchSpec) -> Environment<'a> {
        Environment(spec)
    }

    /// Gives a command this environment and no other, and the marker; `tmp` is for its temporary files.
    pub(super) fn apply(&self, command: &mut Command, marker: &str, tmp: Option<&Path>) {
        command.env_clear();
        match self.0.env_mode {
            EnvMode::Sdk => {
                for name in SDK {
                    if let Some(value) = inherited(name) {
                        command.env(name, value);
                    }
                }
            }
            EnvMode::Inherit => {
                // What the service manager says to us is not meant for a server: it could speak in our place.
                command.envs(env::vars_os().filter(|(name, _)| !service::VARIABLES.iter().any(|own| name == own)));
            }
            EnvMode::Clean => {}
        }
        // A desktop's own browser, too: nobody has asked for a page.
        command.env(BROWSER, stub());
        command.envs(tmp.iter().flat_map(|tmp| TMP.map(|name| (name, tmp))));
        command.envs(self.0.env.iter().map(|(name, value)| (name, value))).env(MARKER, marker);
    }

    /// The names of all that is in it, sorted.
    #[expect(clippy::disallowed_methods, reason = "nothing is launched: the builder is asked what it would hand on")]
    pub(super) fn names(&self) -> Vec<String> {
        let mut command = Command::new("");
        self.apply(&mut command, "", self.0.private_tmp.then_some(Path::new("")));
        // A map, so sorted already.
        command.get_envs().filter(|(_, value)| value.is_some()).map(|(name, _)| printable(&name.to_string_lossy(), 100)).collect()
    }

    /// The PATH that the server will search, which is the one that its program is searched on.
    pub(super) fn path(&self) -> Cow<'a, OsStr> {
        let own = self.0.env.iter().rev().find(|(name, _)| name == "PATH");
        if let Some((_, path)) = own {
            return Cow::Borrowed(OsStr::new(path.as_str()));
        }
        let ours = match self.0.env_mode {
            EnvMode::Sdk => inherited("PATH"),
            EnvMode::Inherit => env::var_os("PATH"),
            EnvMode::Clean => None,
        };
        ours.map_or(Cow::Borrowed(OsStr::new(DEFAULT_PATH)), Cow::Owned)
    }
}

/// A variable of ours, as the SDKs pass it on.
fn inherited(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !is_function(value))
}

/// Whether a value is a shell function, as bash used to export them.
fn is_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "it is not launched")]
    fn entries(env_mode: EnvMode, env: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let spec = LaunchSpec { env_mode, env, ..LaunchSpec::default() };
        let mut command = Command::new("x");
        Environment::of(&spec).apply(&mut command, "m", None);
        command.get_envs().map(|(name, value)| (name.into(), value.unwrap().into())).collect()
    }

    fn entry(name: &str, value: &str) -> (OsString, OsString) {
        (name.into(), value.into())
    }

    #[test]
    fn sdk_mode_passes_six_names_on() {
        let got = entries(EnvMode::Sdk, &[]);
        assert!(got.contains(&(OsString::from("PATH"), env::var_os("PATH").unwrap())));
        assert!(got.contains(&entry(MARKER, "m")));
        assert!(got.contains(&entry(BROWSER, stub().to_str().unwrap())));
        assert!(got.iter().all(|(name, _)| name == MARKER || name == BROWSER || SDK.iter().any(|sdk| name == sdk)), "{got:?}");
    }

    #[test]
    fn a_shell_function_is_not_passed_on() {
        assert!(is_function(OsStr::new("() { :; }")));
        assert!(!is_function(OsStr::new("/bin")));
    }

    #[test]
    fn own_entries_win_and_are_never_dropped() {
        assert!(entries(EnvMode::Inherit, &[("PATH", "/mine")]).contains(&entry("PATH", "/mine")));
        assert!(entries(EnvMode::Sdk, &[("F", "() { :; }")]).contains(&entry("F", "() { :; }")));
        let clean = entries(EnvMode::Clean, &[("A", "1"), ("A", "2"), ("BROWSER", "mine")]);
        assert_eq!(clean, [entry("A", "2"), entry("BROWSER", "mine"), entry(MARKER, "m")]);
        assert!(entries(EnvMode::Inherit, &[]).len() >= env::vars_os().count());
    }

    #[test]
    fn a_private_directory_is_named_by_all_its_names_unless_the_server_has_its_own() {
        let env = vec![("TMP".to_owned(), "/mine".to_owned())];
        let spec = LaunchSpec { env_mode: EnvMode::Clean, env, private_tmp: true, ..LaunchSpec::default() };
        #[expect(clippy::disallowed_methods, reason = "it is not launched")]
        let mut command = Command::new("x");
        Environment::of(&spec).apply(&mut command, "m", Some(Path::new("/t")));
        let got: Vec<_> = command.get_envs().filter(|(name, _)| TMP.iter().any(|tmp| name == tmp)).collect();
        let is = |name, value| (OsStr::new(name), Some(OsStr::new(value)));
        assert_eq!(got, [is("TEMP", "/t"), is("TMP", "/mine"), is("TMPDIR", "/t")]);
        assert!(Environment::of(&spec).names().contains(&"TMPDIR".to_owned()));
    }

    #[test]
    fn the_path_is_the_servers_own() {
        let mut spec = LaunchSpec { env_mode: EnvMode::Clean, ..LaunchSpec::default() };
        assert_eq!(Environment::of(&spec).path(), OsStr::new("/bin:/usr/bin"));
        spec.env_mode = EnvMode::Sdk;
        assert_eq!(Environment::of(&spec).path(), env::var_os("PATH").unwrap().as_os_str());
        spec.env = vec![("PATH".to_owned(), "/a".to_owned()), ("PATH".to_owned(), String::new())];
        assert_eq!(Environment::of(&spec).path(), OsStr::new(""));
    }
}
