//! Processes, from `/proc`, and signals.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, prlimit};

use crate::wait::DEADLINE;

/// `USER_HZ`, which Linux fixes at 100 for every program.
const TICK: Duration = Duration::from_millis(10);

/// Fields of `/proc/<id>/stat`.
struct Stat {
    state: char,
    parent: u32,
    ticks: u32,
}

/// `None` if the process is gone.
fn stat(process: u32) -> Option<Stat> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..13)?.iter().filter_map(|field| field.parse::<u32>().ok()).sum();
    Some(Stat { state: fields.first()?.chars().next()?, parent: fields.get(1)?.parse().ok()?, ticks })
}

/// Whether the process runs and is not a zombie. A process whose first thread has ended keeps its files
/// and ports while it has other threads.
pub(crate) fn is_alive(process: u32) -> bool {
    !ends_within(process, Duration::ZERO)
}

/// Blocks until all threads of the process have ended, or until the time is over; returns whether they have. `/proc` does
/// not tell: its list of threads leaves some out while others end.
fn ends_within(process: u32, time: Duration) -> bool {
    let Ok(process) = pidfd_open(raw(process), PidfdFlags::empty()) else { return true };
    let time = Timespec::try_from(time).expect("the time fits");
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    retry_on_intr(|| poll(&mut ended, Some(&time))).expect("a process can be polled") == 1
}

fn threads(process: u32) -> impl Iterator<Item = Stat> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| stat(thread.file_name().to_str()?.parse().ok()?))
}

/// Resident memory in bytes; `None` if the process is gone.
pub(crate) fn resident_bytes(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Processor time so far, in user and kernel mode, in steps of 10 ms; `None` if the process is gone.
pub(crate) fn cpu_time(process: u32) -> Option<Duration> {
    stat(process).map(|stat| TICK * stat.ticks)
}

/// Sets the limit on open files and returns the previous one.
///
/// # Panics
/// The process is gone, or the limit is above the maximum.
pub(crate) fn set_open_file_limit(process: u32, limit: u64) -> u64 {
    // The maximum is that of this process, which started it.
    let maximum = getrlimit(Resource::Nofile).maximum;
    let before = prlimit(Some(raw(process)), Resource::Nofile, Rlimit { current: Some(limit), maximum });
    before.expect("the limit can be set").current.expect("files have a limit")
}

/// The child processes of `root`, and theirs.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> =
        processes.filter_map(|process| stat(process).map(|stat| (process, stat.parent))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process));
        next += 1;
    }
    found.split_off(1)
}

/// The process id as `kill` takes it.
pub(crate) fn pid(process: u32) -> Pid {
    Pid::from_raw(i32::try_from(process).expect("a process id fits"))
}

fn raw(process: u32) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(pid(process).as_raw()).expect("a process id is not 0")
}

/// Sends SIGKILL to all processes.
pub(crate) fn kill_all(processes: &[u32]) {
    for &process in processes {
        let _ = kill(pid(process), Signal::SIGKILL);
    }
}

/// Sends SIGSTOP, and blocks until all threads have stopped, which takes a moment.
///
/// # Panics
/// The process is gone, or keeps running.
pub(crate) fn pause(process: u32) {
    kill(pid(process), Signal::SIGSTOP).expect("the process is there");
    let deadline = Instant::now() + DEADLINE;
    while threads(process).any(|thread| thread.state != 'T') {
        assert!(Instant::now() < deadline, "a stopped process keeps running");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Blocks until none of the processes is alive.
///
/// # Panics
/// A process keeps running.
pub(crate) fn wait_until_gone(processes: &[u32]) {
    let deadline = Instant::now() + DEADLINE;
    for &process in processes {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(ends_within(process, left), "killed processes keep running");
    }
}
