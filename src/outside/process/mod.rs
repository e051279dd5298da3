//! Processes: launched, watched, ended, reaped.
//!
//! ```text
//! spec         what to launch: LaunchSpec, EnvMode, StdioKind
//! environment  the environment that the server gets, and the PATH in it
//! resolve      command → file, or which of the mistakes it is that the kernel calls ENOENT
//! outlook      what stands in the way of a launch, without one
//! binaries     files known to have no such line, so that they are not read each time
//! format       the first bytes of that file: its `#!` line, the loader that an ELF asks for
//! stdio        the three pipes (or socket pairs) between us and the server
//! inherit      what was handed on to us, and no server is to get
//! launch       Launcher: one on the thread that launches, the only place that starts a process
//! child        Child: the three streams and the exit, all of it usable from one select!
//! browser      what the server gets for a browser, and who is told when it calls it
//! confine      what the server may take
//! account      as whom it runs, if not as us
//! private_tmp  a directory of its own for temporary files
//! cgroup       a control group of its own, where one can be made
//! shim         what has to happen in its process before it runs: `stdiowatch shim`
//! leader       the launched process itself: waited for, signalled, reaped; never left a zombie
//! family       all that this sidecar has launched: whose is a process that turns up?
//! container    servers run by docker, podman, nerdctl: labelled, found again, removed
//! sweep        what outlived the leader is found, ended, reaped; only then the leader is reaped
//! scarce       what there was next to nothing left of, for one that ended badly
//! kin          what a launched tree is seen to run as, so that other copies of it can be told
//! proc_fs      the files of /proc that all of this reads
//! guard        the process that ends every tree when this one is killed: our side of it
//! guarding     … and its own side, `stdiowatch guard`
//! ```
//!
//! Rules that hold everywhere in here:
//!
//! - Nothing signals a pid or a group that may have been reaped: a leader is a zombie of ours until
//!   its tree is gone, an adopted orphan until we reap it, anything else is held by a pidfd.
//! - Nothing waits for "any child": that would take the status of a child somebody else waits for.
//! - A process in state `Z` is dead, though it still answers `kill(pid, 0)` and fills its group.
//! - `Command` gets no hook, no user, no group: each makes std fork, which copies our page tables
//!   and runs a file without `#!` by the shell (glibc's `execvp`), unlike `posix_spawn`.

mod account;
mod binaries;
mod browser;
mod cgroup;
mod child;
mod confine;
mod container;
pub(in crate::outside) mod environment;
mod family;
mod format;
mod guard;
mod guarding;
mod inherit;
pub(in crate::outside) mod kin;
mod launch;
mod leader;
mod outlook;
mod private_tmp;
pub(in crate::outside) mod proc_fs;
mod resolve;
mod scarce;
mod shim;
mod spec;
mod stdio;
mod sweep;

pub use account::User;
pub use browser::{BrowserCall, browser_main};
pub use child::Child;
pub use container::container_run;
pub use guard::GuardCommand;
pub use guarding::guard_main;
pub use kin::Kin;
pub use launch::Launcher;
pub use leader::Signal;
pub use outlook::obstacle;
pub use shim::{SUBCOMMAND as SHIM, shim_main};
pub use spec::{EnvMode, LaunchSpec, Leftovers, Resources, StdioKind};
