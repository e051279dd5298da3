//! The only place that starts a server.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;
use std::time::Duration;

use nix::sched::CloneFlags;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::binaries::Binaries;
use super::browser::Calls;
use super::cgroup::{Group, Groups};
use super::child::Child;
use super::confine::{confine, dump_no_core};
use super::container::Container;
use super::environment::Environment;
use super::family::{Family, Mark};
use super::guard::{Guard, GuardCommand};
use super::inherit;
use super::leader::Leader;
use super::private_tmp::PrivateTmp;
use super::proc_fs::Stat;
use super::resolve::{self, Place};
use super::shim::{Obstacle, Shim, Told};
use super::spec::LaunchSpec;
use super::stdio::Stdio;
use super::sweep::Tree;
use crate::probe::LaunchError;
use crate::words::Digest;

/// How often a program that is being written is tried again, and after how long.
const BUSY_TRIES: u32 = 5;
const BUSY_PAUSE: Duration = Duration::from_millis(2);

/// Launches servers; one for the whole sidecar, on the thread that does all of it.
///
/// That thread should not be the main one: a launch stalls its thread until the server has been
/// executed, and what the main thread's list of children holds is then adopted orphans and nothing
/// else. Dropped, it sends the guard home, which ends what is still running.
pub struct Launcher {
    family: Arc<Family>,
    guard: Guard,
    home: Home,
    binaries: Binaries,
    /// This program.
    own: PathBuf,
    /// Without it calls for a browser are not noticed, and open nothing all the same.
    calls: Option<Arc<Calls>>,
    /// Where control groups can be made, if they can; looked for when one is wanted.
    groups: OnceLock<Option<Groups>>,
}

impl Launcher {
    /// Makes this process the reaper of its descendants, rids it of what servers are not to inherit (ignored
    /// and blocked signals, descriptors above 2), has it dump no core, gives this thread a working directory of its
    /// own where that is allowed, and starts the guard.
    ///
    /// # Errors
    ///
    /// Where there is no memory or descriptor for it. A guard that cannot be started is no error, and
    /// is tried again at each launch: see [`Launcher::guard_running`].
    pub fn start(guard: GuardCommand) -> io::Result<Launcher> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        inherit::shed()?;
        dump_no_core(None);
        let family = Arc::new(Family::new()?);
        let calls = Calls::new(family.id()).ok().map(Arc::new);
        let own = guard.program().to_owned();
        let launcher =
            Launcher { family, guard: Guard::new(guard), home: Home::new(), binaries: Binaries::default(), own, calls, groups: OnceLock::new() };
        let _ = launcher.guard_running();
        Ok(launcher)
    }

    /// Whether a guard is there to end every tree should this process be killed; starts one if not.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn guard_running(&self) -> io::Result<()> {
        self.guard.ensure(&self.family)
    }

    /// Launches a server. Stalls this thread until it has been executed, so a millisecond or so.
    ///
    /// # Errors
    ///
    /// See [`LaunchError`]. Nothing of it is left then, neither a process nor a descriptor.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O.
    #[expect(clippy::disallowed_methods, reason = "the place that launches")]
    pub fn launch(&self, spec: &LaunchSpec) -> Result<Child, LaunchError> {
        // Without a guard a server is still worth probing.
        let _ = self.guard_running();
        let dir = spec.cwd.as_deref().map(resolve::open_cwd).transpose()?;
        let cwd = spec.cwd.as_deref().zip(dir.as_ref());
        let environment = Environment::of(spec);
        let path = environment.path();
        let place = Place::new(cwd, &path, &self.binaries);
        let program = place.resolve(&spec.command)?;
        let stdio = Stdio::new(spec.stdio).map_err(resolve::resources)?;
        let mark = self.family.next_mark(spec.leftovers);
        let container = Container::of(&spec.command, &spec.args, &mark.text);
        let labelled = container.as_ref().map(|container| container.labelled(&spec.args));
        let group = spec.cgroup.then(|| self.group(&mark)).flatten();
        let shim = Shim::of(spec, group.as_ref().map(Group::entrance)).map_err(|error| LaunchError::Failed { error })?;
        let (mut command, told) = match &shim {
            Some(shim) => {
                shim.command(&self.own, &spec.command, &program).map(|(command, told)| (command, Some(told))).map_err(resolve::resources)?
            }
            None => (Command::new(&program), None),
        };
        if shim.is_none() {
            command.arg0(&spec.command);
        }
        command.args(labelled.as_ref().unwrap_or(&spec.args)).process_group(0);
        let tmp = spec.private_tmp.then(|| self.private_tmp(&mark.text, shim.as_ref())).transpose()?;
        environment.apply(&mut command, &self.family.marker(&mark.text), tmp.as_ref().map(PrivateTmp::path));
        let [stdin, stdout, stderr] = stdio.theirs;
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        if cwd.is_some() && self.home.forks() && place.is_no_program(&program) {
            return Err(place.explain(Errno::NOEXEC, &spec.command, &program));
        }
        let slot = self.family.enrol(&mark);
        let leader = match self.home.spawn(command, cwd) {
            Ok(leader) => leader,
            Err(error) => {
                self.family.leave(slot);
                return Err(match Errno::from_io_error(&error) {
                    Some(errno) => place.explain(errno, &spec.command, &program),
                    // A NUL byte in an argument.
                    None => LaunchError::Failed { error: error.to_string() },
                });
            }
        };
        if shim.is_none() {
            confine(Some(leader.pid()), &spec.resources);
        }
        let tree = Tree::new(Arc::clone(&self.family), leader, slot, mark, group);
        // Dropped, the tree is cleared away.
        told.map_or(Ok(()), Told::wait).map_err(|obstacle| match obstacle {
            Obstacle::Execute(errno) => place.explain(errno, &spec.command, &program),
            Obstacle::Become(errno) => resolve::not_allowed(errno, spec),
        })?;
        tree.expect_in_group();
        Child::new(stdio.ours, spec.stdio, tree, container, self.calls.clone(), tmp)
            .map_err(|error| resolve::resources(Errno::from_io_error(&error).unwrap_or(Errno::NOMEM)))
    }

    /// A control group for a tree, where there can be one; where not, that is said once.
    fn group(&self, mark: &Mark) -> Option<Group> {
        let groups = self.groups.get_or_init(|| {
            Groups::find().inspect_err(|why| tracing::warn!("no control groups for servers, which are launched without: {why}")).ok()
        });
        let name = Digest::of(mark.text.as_bytes()).to_string();
        groups
            .as_ref()?
            .make(&name[..24], mark.spares)
            .inspect_err(|error| tracing::warn!("no control group could be made for a server: {error}"))
            .ok()
    }

    /// A directory for a tree's temporary files. Its name tells nothing of the mark, which is a secret.
    fn private_tmp(&self, mark: &str, shim: Option<&Shim>) -> Result<PrivateTmp, LaunchError> {
        let name = Digest::of(mark.as_bytes()).to_string();
        PrivateTmp::make(&name[..24], shim.and_then(Shim::owner)).map_err(|error| LaunchError::Resources {
            error: format!("no directory for its temporary files could be made in {}: {error}", std::env::temp_dir().display()),
        })
    }

    /// Whether a process is of something which this launcher has running, or left alone.
    pub(in crate::outside) fn knows(&self, stat: &Stat) -> bool {
        self.family.leads(stat.group) || self.family.spares(stat.pid)
    }

    /// Reaps adopted orphans that have died and belong to no server that is being probed. Worth a call
    /// now and then, above all as PID 1; costs a few microseconds where there is none.
    pub fn reap_adopted(&self) {
        self.family.reap_strangers();
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        self.guard.dismiss(self.family.is_empty());
    }
}

/// The working directory of the launching thread.
///
/// `Command::current_dir` makes std fork in a static build (there is no weak symbol to find
/// `posix_spawn_file_actions_addchdir_np` by). So this thread goes to the directory itself, having
/// first stopped sharing its own with the other threads: unshare(2), CLONE_FS.
struct Home {
    thread: ThreadId,
    /// Where to come back to. `None` where a seccomp filter refuses `unshare`, as container runtimes'
    /// default ones do without CAP_SYS_ADMIN.
    dir: Option<OwnedFd>,
}

impl Home {
    fn new() -> Home {
        let here = || rustix::fs::openat(CWD, ".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let own = nix::sched::unshare(CloneFlags::CLONE_FS).is_ok();
        Home { thread: std::thread::current().id(), dir: own.then(here).and_then(Result::ok) }
    }

    /// Where to come back to, if this is the thread.
    fn own(&self) -> Option<&OwnedFd> {
        self.dir.as_ref().filter(|_| std::thread::current().id() == self.thread)
    }

    /// Whether std will fork to get to a directory. What it then executes by `execvp` has no wrong
    /// format: glibc has the shell run what the kernel refuses.
    fn forks(&self) -> bool {
        cfg!(target_feature = "crt-static") && self.own().is_none()
    }

    /// Spawns `command` in `cwd`, or here.
    fn spawn(&self, mut command: Command, cwd: Option<(&Path, &OwnedFd)>) -> io::Result<Leader> {
        match (cwd, self.own()) {
            (None, _) => spawn(command),
            (Some((_, dir)), Some(home)) => {
                rustix::process::fchdir(dir)?;
                let spawned = spawn(command);
                rustix::process::fchdir(home)?;
                spawned
            }
            (Some((cwd, _)), None) => {
                command.current_dir(cwd);
                spawn(command)
            }
        }
    }
}

/// Spawns, and tries again for a moment while the program is open for writing: another thread of the
/// one that has just installed it may have forked meanwhile.
fn spawn(mut command: Command) -> io::Result<Leader> {
    let mut tries = 0;
    loop {
        match command.spawn() {
            Ok(child) => return Ok(Leader::new(&child)),
            Err(error) if tries < BUSY_TRIES && Errno::from_io_error(&error) == Some(Errno::TXTBSY) => {
                tries += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}
