//! What Linux tells of processes in `/proc`.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

use crate::wait::DEADLINE;

/// `USER_HZ`, which Linux fixes at 100 for every program.
const TICK: Duration = Duration::from_millis(10);

/// What `/proc/<id>/stat` says.
struct Stat {
    state: char,
    parent: u32,
    ticks: u32,
}

/// `None` where it is gone.
fn stat(process: u32) -> Option<Stat> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..13)?.iter().filter_map(|field| field.parse::<u32>().ok()).sum();
    Some(Stat { state: fields.first()?.chars().next()?, parent: fields.get(1)?.parse().ok()?, ticks })
}

/// Whether it is there and no zombie. One whose first thread has ended holds its files and ports
/// as long as it has another.
pub(crate) fn is_alive(process: u32) -> bool {
    threads(process).any(|thread| !matches!(thread.state, 'Z' | 'X'))
}

fn threads(process: u32) -> impl Iterator<Item = Stat> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| stat(thread.file_name().to_str()?.parse().ok()?))
}

/// Resident memory in octets; `None` where it is gone.
pub(crate) fn resident_bytes(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Processor time that it used so far, in user and kernel mode, in steps of 10 ms; `None` where
/// it is gone.
pub(crate) fn cpu_time(process: u32) -> Option<Duration> {
    stat(process).map(|stat| TICK * stat.ticks)
}

/// Sets how many files it may have open, of which it has some already; returns what it was.
///
/// # Panics
/// It is gone, or the limit would be above what is allowed.
pub(crate) fn set_open_file_limit(process: u32, most: u64) -> u64 {
    let process = rustix::process::Pid::from_raw(pid(process).as_raw());
    // What is allowed is what this process may have, which has started it.
    let maximum = getrlimit(Resource::Nofile).maximum;
    let before = prlimit(process, Resource::Nofile, Rlimit { current: Some(most), maximum });
    before.expect("the limit can be set").current.expect("files have a limit")
}

/// The processes that `root` started, and theirs.
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

/// For `kill`.
pub(crate) fn pid(process: u32) -> Pid {
    Pid::from_raw(i32::try_from(process).expect("a process id fits"))
}

/// Sends SIGKILL to all of them.
pub(crate) fn kill_all(processes: &[u32]) {
    for &process in processes {
        let _ = kill(pid(process), Signal::SIGKILL);
    }
}

/// Sends SIGSTOP, and blocks until every thread of it stands still: until then some may go on.
///
/// # Panics
/// It is gone, or goes on.
pub(crate) fn pause(process: u32) {
    kill(pid(process), Signal::SIGSTOP).expect("the process is there");
    let give_up = Instant::now() + DEADLINE;
    while threads(process).any(|thread| thread.state != 'T') {
        assert!(Instant::now() < give_up, "a stopped process goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Blocks until none of them is alive.
///
/// # Panics
/// They stay.
pub(crate) fn wait_until_gone(processes: &[u32]) {
    let give_up = Instant::now() + DEADLINE;
    while processes.iter().any(|&process| is_alive(process)) {
        assert!(Instant::now() < give_up, "ended processes stay");
        std::thread::sleep(Duration::from_millis(5));
    }
}
