//! Open files of an attacker. The limit on them is that of a table, and all threads of a process usually share one.

use std::fs;
use std::os::fd::RawFd;

use nix::libc::STDERR_FILENO;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::close;
use tokio::runtime::{Builder, Runtime};

use crate::open_files;

/// A runtime for this thread, which gets a table of its own with the files of the runtime and the standard streams only,
/// as a process on another machine would have. Where the system forbids it (some containers do), it stays with the
/// table of its process.
///
/// # Panics
/// A runtime can't be made.
pub(super) fn runtime_with_own_files() -> Runtime {
    open_files::raise_limit();
    let copies = unshare(CloneFlags::CLONE_FILES).map_or_else(|_| Vec::new(), |()| list_open_files());
    // It has a part of its own in the files by which all runtimes learn of signals.
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    // What others close would stay open as long as this thread.
    for copy in copies.into_iter().filter(|&file| file > STDERR_FILENO) {
        close(copy).expect("it is open");
    }
    runtime
}

fn list_open_files() -> Vec<RawFd> {
    let path = "/proc/thread-self/fd";
    let listed = fs::read_dir(path).expect("Linux lists open files");
    let listed: Vec<RawFd> =
        listed.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok()).collect();
    // Without the directory itself, which was open while it was read.
    listed.into_iter().filter(|file| fs::symlink_metadata(format!("{path}/{file}")).is_ok()).collect()
}
