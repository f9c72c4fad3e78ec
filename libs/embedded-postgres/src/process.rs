//! Postgres processes of a data directory: those in `/proc`, the one that `postmaster.pid` names, and what a killed process
//! left behind.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Progress;
use crate::account::Account;
use crate::connection::{SHORT_PREFIX, short_root};
use crate::error::Error;

/// Time between two looks at processes that were signalled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Signals in order, each with the time that the processes have to end: a fast shutdown with its
/// checkpoint, an immediate one, and the kernel's.
const SIGNALS: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_secs(20)),
    (Signal::SIGQUIT, Duration::from_secs(10)),
    (Signal::SIGKILL, Duration::from_secs(5)),
];

/// Postgres processes of this data directory, without zombies: the postmaster and its children
/// all have it as their working directory.
fn postgres_processes(data: &Path) -> Vec<u32> {
    let Ok(data) = data.canonicalize() else { return Vec::new() };
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter(|pid| is_postgres_in(*pid, &data))
        .collect()
}

/// Whether the process is a Postgres server of this data directory (links resolved).
pub(crate) fn is_postgres_in(pid: u32, data: &Path) -> bool {
    // The links of a zombie can't be read.
    let process = Path::new("/proc").join(pid.to_string());
    let in_data = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == data);
    in_data
        && fs::read_link(process.join("exe")).is_ok_and(|program| {
            // After an upgrade of the package the link reads `postgres (deleted)`.
            program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("postgres"))
        })
}

/// Sends a signal; a process that has ended already is no error.
pub(crate) fn send_signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("process ids of Linux are below 2^22"));
    let _ = kill(pid, signal);
}

/// The content of `postmaster.pid`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PidFile {
    /// The postmaster.
    pub pid: u32,
    /// Its socket directory, if it has one.
    pub socket: Option<PathBuf>,
    /// Whether it accepts connections.
    pub ready: bool,
}

impl PidFile {
    /// Reads the file of a data directory; `None` if there is none or it can't be parsed.
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

/// Stops every Postgres process of this data directory, which frees its shared memory, and removes
/// the files that they left. The caller holds the directory's lock, so all of them are orphans.
pub(crate) async fn stop_orphans(account: &Account, data: &Path, progress: Progress) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_a_process_that_is_not_postgres() {
        let directory = std::env::current_dir().unwrap();
        assert!(!postgres_processes(&directory).contains(&std::process::id()));
    }

    #[test]
    fn parses_the_pid_file() {
        let text = "4711\n/data\n1700000000\n5432\n/run/socket\n\n  123  456\nready   \n";
        let file = PidFile { pid: 4711, socket: Some("/run/socket".into()), ready: true };
        assert_eq!(PidFile::parse(text), Some(file));
        assert_eq!(PidFile::parse("4711\n"), Some(PidFile { pid: 4711, socket: None, ready: false }));
        assert_eq!(PidFile::parse("torn"), None);
    }
}
