//! What a killed process left behind: a server that still runs, its files, its socket.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Error;
use crate::account::Account;
use crate::server::Progress;
use crate::settings::{SHORT_SOCKET_PREFIX, short_socket_root};

const POLL: Duration = Duration::from_millis(20);
/// For a fast shutdown with its checkpoint; for an immediate one; for the kernel.
const PATIENCE: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_secs(20)),
    (Signal::SIGQUIT, Duration::from_secs(10)),
    (Signal::SIGKILL, Duration::from_secs(5)),
];

/// What `postmaster.pid` says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PidFile {
    /// The postmaster.
    pub pid: u32,
    /// Its socket directory, where it has one.
    pub socket: Option<PathBuf>,
    /// Whether it takes connections.
    pub ready: bool,
}

impl PidFile {
    /// Reads the file of a data directory; `None` where there is none that can be read.
    pub fn read(data: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)
    }

    /// Lines: pid, data directory, start, port, socket directory, address, memory, status.
    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        Some(Self {
            pid: lines.first()?.parse().ok()?,
            socket: lines.get(4).filter(|line| !line.is_empty()).map(PathBuf::from),
            ready: lines.get(7) == Some(&"ready"),
        })
    }
}

/// Stops every Postgres process of this data directory and waits until its shared memory is
/// free. The caller holds the directory's lock, so none of them belongs to anybody.
pub(crate) async fn clear(account: &Account, data: &Path, progress: Progress) -> Result<(), Error> {
    let file = PidFile::read(data);
    let mut running = processes_of(data);
    if !running.is_empty() {
        progress("stopping a Postgres server that a killed process left behind");
    }
    for (signal, patience) in PATIENCE {
        if running.is_empty() {
            break;
        }
        // The postmaster stops its own; without it each process is told.
        let postmaster = file.as_ref().map(|file| file.pid).filter(|pid| running.contains(pid));
        let told = postmaster.filter(|_| signal != Signal::SIGKILL).map_or(running, |pid| vec![pid]);
        for pid in told {
            let _ = kill(pid_of(pid), signal);
        }
        let deadline = Instant::now() + patience;
        running = processes_of(data);
        while !running.is_empty() && Instant::now() < deadline {
            tokio::time::sleep(POLL).await;
            running = processes_of(data);
        }
    }
    if !running.is_empty() {
        return Err(Error::StillRunning(data.to_owned()));
    }
    if let Some(file) = PidFile::read(data) {
        forget(account, data, &file);
    }
    Ok(())
}

/// Removes files of a server that is gone. Postgres itself would take any living process of
/// that number for the server.
fn forget(account: &Account, data: &Path, file: &PidFile) {
    let _ = fs::remove_file(data.join("postmaster.pid"));
    if let Some(socket) = &file.socket {
        let ours = socket.parent() == Some(&short_socket_root())
            && socket.file_name().is_some_and(|name| name.to_string_lossy().starts_with(SHORT_SOCKET_PREFIX))
            && fs::symlink_metadata(socket).is_ok_and(|found| found.is_dir() && found.uid() == account.uid());
        if ours {
            let _ = fs::remove_dir_all(socket);
        }
    }
}

/// Postgres processes that work in this data directory, zombies left out: the postmaster and
/// its children all have it as their working directory.
fn processes_of(data: &Path) -> Vec<u32> {
    let Ok(data) = data.canonicalize() else { return Vec::new() };
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter(|pid| is_postgres_in(*pid, &data))
        .collect()
}

/// Whether the process is a Postgres that works in this data directory (links resolved).
pub(crate) fn is_postgres_in(pid: u32, data: &Path) -> bool {
    // Neither link of a zombie can be read.
    let process = Path::new("/proc").join(pid.to_string());
    let in_data = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == data);
    in_data
        && fs::read_link(process.join("exe")).is_ok_and(|program| {
            // A program that was upgraded meanwhile shows as `postgres (deleted)`.
            program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("postgres"))
        })
}

/// For `kill`.
pub(crate) fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("process numbers of Linux are below 2^22"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_file_is_read() {
        let text = "4711\n/data\n1700000000\n5432\n/run/socket\n\n  123  456\nready   \n";
        let file = PidFile { pid: 4711, socket: Some("/run/socket".into()), ready: true };
        assert_eq!(PidFile::parse(text), Some(file));
        assert_eq!(PidFile::parse("4711\n"), Some(PidFile { pid: 4711, socket: None, ready: false }));
        assert_eq!(PidFile::parse("torn"), None);
    }

    #[test]
    fn a_process_that_is_no_postgres_is_left_alone() {
        let here = std::env::current_dir().unwrap();
        assert!(!processes_of(&here).contains(&std::process::id()));
    }
}
