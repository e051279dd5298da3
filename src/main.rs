//! The program. Everything is in the library; see its documentation for the map.

use std::process::ExitCode;

fn main() -> ExitCode {
    give_memory_back();
    stdiowatch::cli::run()
}

/// What is larger than this has pages of its own, which go back to the system with it, in bytes.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD: libc::c_int = 128 << 10;

/// Has large pieces of memory given back as soon as they are not needed. Left to itself, glibc learns from a line of
/// sixteen megabytes that such pieces are usual here, and keeps what they leave between others (mallopt(3),
/// M_MMAP_THRESHOLD): beside fifty hostile servers that is as much again as all the rest.
fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "the only way to say it; setting a number is safe at any time, and no other thread runs yet")]
    // SAFETY: a number is set; refused, it stays as it was.
    let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD) };
}
