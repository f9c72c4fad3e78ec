//! Postgres processes, found in `/proc`.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Postgres processes of this data directory, without zombies: the postmaster and its children
/// all have it as their working directory.
pub(crate) fn postgres_processes(data: &Path) -> Vec<u32> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_a_process_that_is_not_postgres() {
        let directory = std::env::current_dir().unwrap();
        assert!(!postgres_processes(&directory).contains(&std::process::id()));
    }
}
