//! The limit on open files. Every client connection is an open file, and a process without free
//! files can't even reach Postgres, so the limits on connections stay below the limit on files.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tempmail_runtime::config::Config;

/// Open files that are not for clients: Postgres, Redis, DNS, logs and the runtime.
const RESERVED: u64 = 256;

/// Raises the soft limit of this process to its hard limit.
pub(crate) fn raise_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // If this fails, fewer connections are served.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Lowers the limits on connections to what the limit on open files allows.
pub(crate) fn limit_connections(config: &mut Config) {
    let Ok((files, _)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let files = usize::try_from(files.saturating_sub(RESERVED)).unwrap_or(usize::MAX);
    lower("http.connections", &mut config.http.connections, files);
    lower("smtp.connections", &mut config.smtp.connections, files);
}

fn lower(key: &str, connections: &mut usize, max: usize) {
    let max = max.max(1);
    if *connections > max {
        tracing::info!("`{key}` is {connections}: the limit on open files allows {max}");
        *connections = max;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowers_a_limit_to_the_available_files_and_never_raises_it() {
        let lowered = |connections: usize, max| {
            let mut connections = connections;
            lower("http.connections", &mut connections, max);
            connections
        };
        assert_eq!((lowered(20_000, 768), lowered(100, 768), lowered(100, 0)), (768, 100, 1));
    }
}
