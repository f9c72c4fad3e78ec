//! Processor time of a server and its children, from `/proc`.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// `USER_HZ`, which Linux fixes at 100 for every program.
const TICK: Duration = Duration::from_millis(10);

struct ProcStat {
    parent: u32,
    ticks: u32,
}

/// What a process, its descendants, and those of their children that have ended used so far.
pub fn of_tree(root: u32) -> Duration {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let processes: HashMap<u32, ProcStat> =
        ids.filter_map(|id| Some((id, process(&id.to_string())?))).collect();
    let in_tree = |mut id: u32| {
        while id != root {
            match processes.get(&id) {
                Some(process) => id = process.parent,
                None => return false,
            }
        }
        true
    };
    processes.iter().filter(|(id, _)| in_tree(**id)).map(|(_, process)| TICK * process.ticks).sum()
}

/// What one thread of this process used so far; nothing of one that has ended.
pub fn of_thread(id: u32) -> Duration {
    process(&format!("self/task/{id}")).map_or(Duration::ZERO, |thread| TICK * thread.ticks)
}

/// Fields 4 and 14 to 17 of `/proc/<path>/stat`; `None` where it is gone.
fn process(path: &str) -> Option<ProcStat> {
    let stat = fs::read_to_string(format!("/proc/{path}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u32>().ok()).sum();
    Some(ProcStat { parent: fields.get(1)?.parse().ok()?, ticks })
}
