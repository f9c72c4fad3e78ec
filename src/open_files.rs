//! Every connection is an open file, and a process that has none left can't even ask Postgres: so
//! clients get no more of them than can be had.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tempmail_runtime::config::Config;

/// Files that are not for clients: Postgres, Redis, DNS, logs, and what the runtime needs.
const RESERVED: u64 = 256;

/// Takes as many open files as the system lets this process have.
pub fn take_all() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Without it fewer connections are served.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Lowers the bounds on connections to what the open files of this process allow.
pub fn bound_connections(config: &mut Config) {
    let Ok((files, _)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let files = usize::try_from(files.saturating_sub(RESERVED)).unwrap_or(usize::MAX);
    bound("http.connections", &mut config.http.connections, files);
    bound("smtp.connections", &mut config.smtp.connections, files);
}

fn bound(key: &str, connections: &mut usize, most: usize) {
    let most = most.max(1);
    if *connections > most {
        tracing::info!("`{key}` is {connections}: this process may open files for {most} of them");
        *connections = most;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_lowered_to_what_there_is_and_never_raised() {
        let bounded = |connections: usize, most| {
            let mut connections = connections;
            bound("http.connections", &mut connections, most);
            connections
        };
        assert_eq!((bounded(20_000, 768), bounded(100, 768), bounded(100, 0)), (768, 100, 1));
    }
}
