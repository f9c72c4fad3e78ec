//! Servers that a killed process left behind: their processes, files and socket.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::account::Account;
use crate::error::Error;
use crate::pid_file::PidFile;
use crate::process::{postgres_processes, send_signal};
use crate::progress::Progress;
use crate::socket::{SHORT_PREFIX, short_root};

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Signals in order, each with the time that the processes have to end: a fast shutdown with its
/// checkpoint, an immediate one, and the kernel's.
const SIGNALS: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_secs(20)),
    (Signal::SIGQUIT, Duration::from_secs(10)),
    (Signal::SIGKILL, Duration::from_secs(5)),
];

/// Stops every Postgres process of this data directory, which frees its shared memory, and removes
/// the files that they left. The caller holds the directory's lock, so all of them are orphans.
pub(crate) async fn stop(account: &Account, data: &Path, progress: Progress) -> Result<(), Error> {
    let file = PidFile::read(data);
    let mut running = postgres_processes(data);
    if !running.is_empty() {
        progress("stopping a Postgres server that a killed process left running");
    }
    for (signal, timeout) in SIGNALS {
        if running.is_empty() {
            break;
        }
        // The postmaster stops its children; without it each process gets the signal.
        let postmaster = file.as_ref().map(|file| file.pid).filter(|pid| running.contains(pid));
        let targets = postmaster.filter(|_| signal != Signal::SIGKILL).map_or(running, |pid| vec![pid]);
        for pid in targets {
            send_signal(pid, signal);
        }
        let deadline = Instant::now() + timeout;
        running = postgres_processes(data);
        while !running.is_empty() && Instant::now() < deadline {
            tokio::time::sleep(POLL_INTERVAL).await;
            running = postgres_processes(data);
        }
    }
    if !running.is_empty() {
        return Err(Error::StillRunning(data.to_owned()));
    }
    if let Some(file) = PidFile::read(data) {
        remove_files(account, data, &file);
    }
    Ok(())
}

/// Removes files of a server that is gone. Postgres itself would take any living process of
/// that number for the server.
fn remove_files(account: &Account, data: &Path, file: &PidFile) {
    let _ = fs::remove_file(data.join("postmaster.pid"));
    if let Some(socket) = &file.socket {
        let ours = socket.parent() == Some(&short_root())
            && socket.file_name().is_some_and(|name| name.to_string_lossy().starts_with(SHORT_PREFIX))
            && fs::symlink_metadata(socket).is_ok_and(|found| found.is_dir() && found.uid() == account.uid());
        if ours {
            let _ = fs::remove_dir_all(socket);
        }
    }
}
