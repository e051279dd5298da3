//! The environment that a server gets.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};

use super::spec::{EnvMode, LaunchSpec};

/// Tells whose an orphan is, from its `/proc/PID/environ`: each tree that it is in, outermost first.
pub(super) const MARKER: &str = "STDIOWATCH_TREE";

/// What the SDKs pass on outside of Windows.
const SDK: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// Where a program is looked for without a PATH (glibc's `confstr(_CS_PATH)`).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A server's whole environment.
pub(super) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The environment of `spec`, from ours.
    pub(super) fn of(spec: &LaunchSpec) -> Environment {
        match spec.env_mode {
            EnvMode::Sdk => {
                Environment::new(SDK.iter().filter_map(|name| Some(((*name).into(), env::var_os(name)?))), spec)
            }
            EnvMode::Inherit => Environment::new(env::vars_os(), spec),
            EnvMode::Clean => Environment::new(std::iter::empty(), spec),
        }
    }

    /// The environment of `spec`, from what is passed on of `ours`.
    fn new(ours: impl Iterator<Item = (OsString, OsString)>, spec: &LaunchSpec) -> Environment {
        let function = |value: &OsStr| value.as_encoded_bytes().starts_with(b"()");
        let dropped = |value: &OsStr| spec.env_mode == EnvMode::Sdk && function(value);
        let mut all: BTreeMap<_, _> = ours.filter(|(_, value)| !dropped(value)).collect();
        all.extend(spec.env.iter().map(|(name, value)| (name.into(), value.into())));
        Environment(all)
    }

    /// The PATH that the server will search, which is the one that its program is searched on.
    pub(super) fn path(&self) -> &OsStr {
        self.0.get(OsStr::new("PATH")).map_or(OsStr::new(DEFAULT_PATH), OsString::as_os_str)
    }

    /// Every entry, and the marker.
    pub(super) fn with_marker(mut self, marker: &str) -> BTreeMap<OsString, OsString> {
        self.0.insert(MARKER.into(), marker.into());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> impl Iterator<Item = (OsString, OsString)> {
        [("HOME", "/root"), ("PATH", "/opt/bin"), ("SHELL", "() { :; }"), ("SECRET", "s")]
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
    }

    fn names(mode: EnvMode, env: &[(&str, &str)]) -> Vec<String> {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let spec = LaunchSpec { env_mode: mode, env, ..LaunchSpec::default() };
        let environment = match mode {
            EnvMode::Clean => Environment::new(std::iter::empty(), &spec),
            EnvMode::Sdk | EnvMode::Inherit => Environment::new(ours(), &spec),
        };
        let entry = |(name, value): (OsString, OsString)| format!("{}={}", name.display(), value.display());
        environment.with_marker("m").into_iter().map(entry).collect()
    }

    #[test]
    fn a_shell_function_is_dropped_in_sdk_mode_only() {
        let kept = names(EnvMode::Sdk, &[]);
        assert!(kept.contains(&"HOME=/root".to_owned()));
        assert!(!kept.iter().any(|entry| entry.starts_with("SHELL")));
        assert!(names(EnvMode::Inherit, &[]).contains(&"SHELL=() { :; }".to_owned()));
    }

    #[test]
    fn own_entries_win_and_are_never_dropped() {
        assert!(names(EnvMode::Inherit, &[("PATH", "/mine")]).contains(&"PATH=/mine".to_owned()));
        assert!(names(EnvMode::Sdk, &[("F", "() { :; }")]).contains(&"F=() { :; }".to_owned()));
        assert_eq!(names(EnvMode::Clean, &[("A", "1")]), ["A=1", "STDIOWATCH_TREE=m"]);
    }

    #[test]
    fn sdk_mode_passes_six_names_on() {
        let spec = LaunchSpec::default();
        let got = Environment::of(&spec);
        assert!(got.0.keys().all(|name| SDK.iter().any(|sdk| name == sdk)));
        assert_eq!(got.0.get(OsStr::new("PATH")), env::var_os("PATH").as_ref());
    }

    #[test]
    fn without_a_path_the_systems_default_is_searched() {
        let spec = LaunchSpec { env_mode: EnvMode::Clean, ..LaunchSpec::default() };
        assert_eq!(Environment::of(&spec).path(), "/bin:/usr/bin");
    }
}
