//! What whoever started us has handed on to us, and no server is to get: a program that is started with
//! SIGHUP ignored or blocked (`nohup`, a cron job, a supervisor) or with a stray descriptor is another one
//! than a client starts.
//!
//! `posix_spawn` resets nothing but SIGPIPE, so it is mended once, in ourselves.

use std::io;

use nix::sys::signal::SigSet;
use tokio::signal::unix::{SignalKind, signal};

use super::proc_fs;

/// No descriptor above stderr goes on to a server.
const FIRST: i32 = 3;
/// Without it there are no zombies (sigaction(2)): statuses of the dead are lost, and their numbers
/// anybody's.
const CHLD: i32 = 17;
/// Std ignores SIGPIPE in us and resets it in what it spawns; a read from or write to a terminal out of the
/// background would be begun again for ever if TTIN or TTOU were caught; glibc has 32 and 33 for itself.
const LEFT: [i32; 5] = [13, 21, 22, 32, 33];
const HIGHEST: i32 = 64;

/// To be called on the thread that launches, before it does.
pub(super) fn shed() -> io::Result<()> {
    close_fds::set_fds_cloexec(FIRST, &[]);
    // Threads that this one starts have its mask.
    SigSet::empty().thread_set_mask()?;
    hear(&proc_fs::ignored_signals())
}

/// Has SIGPIPE as it was before std came: to be called by a program that is about to become another one.
pub(super) fn hear_broken_pipes() -> io::Result<()> {
    catch(&[13])
}

/// Has ignored signals caught: what happens then is the same for us, and an exec resets what is caught and
/// not what is ignored. Any handler will do, and the runtime's stays for good.
fn hear(ignored: &[i32]) -> io::Result<()> {
    let ignored: Vec<i32> = ignored.iter().copied().filter(|number| (1..=HIGHEST).contains(number) && !LEFT.contains(number)).collect();
    if ignored.is_empty() { Ok(()) } else { catch(&ignored) }
}

fn catch(signals: &[i32]) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let inside = runtime.enter();
    let heard: io::Result<()> = signals.iter().try_for_each(|number| match signal(SignalKind::from_raw(*number)) {
        Err(error) if *number == CHLD => Err(error),
        // Of the others some cannot be caught, for one SIGSEGV.
        Ok(_) | Err(_) => Ok(()),
    });
    drop(inside);
    // Dropped, it would panic where we are in another one.
    runtime.shutdown_background();
    heard
}
