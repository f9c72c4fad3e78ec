//! The limit on open files. Every client connection is an open file, and a process without free
//! files can't even reach Postgres, so the limits on connections stay below the limit on files. Servers of
//! one process share the files by their limits: none of them can use up those of another.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tempmail_runtime::config::Config;

/// Open files that are not for clients: Postgres, Redis, DNS, logs and the runtime.
const RESERVED: usize = 256;

/// A server that clients connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Http,
    Smtp,
}

impl Server {
    /// The setting that limits its connections.
    fn setting(self, config: &mut Config) -> (&'static str, &mut usize) {
        match self {
            Self::Http => ("http.connections", &mut config.http.connections),
            Self::Smtp => ("smtp.connections", &mut config.smtp.connections),
        }
    }
}

/// Raises the soft limit of this process to its hard limit.
pub(crate) fn raise_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // If this fails, fewer connections are served.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Lowers the limits on connections of the servers of this process to what the limit on open files allows.
pub(crate) fn limit_connections(config: &mut Config, servers: &[Server]) {
    let Ok((files, _)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    share(config, servers, usize::try_from(files).unwrap_or(usize::MAX));
}

/// Shares `files` in proportion to the limits on connections, after what is not for clients.
fn share(config: &mut Config, servers: &[Server], files: usize) {
    let free = files.saturating_sub(RESERVED).saturating_sub(config.admin.connections) as u128;
    let wanted: u128 = servers.iter().map(|server| *server.setting(config).1 as u128).sum();
    if wanted <= free {
        return;
    }
    for server in servers {
        let (key, connections) = server.setting(config);
        let allowed = usize::try_from(*connections as u128 * free / wanted).unwrap_or(usize::MAX).max(1);
        tracing::info!("`{key}` is {connections}: the limit on open files allows {allowed}");
        *connections = allowed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_the_available_files_between_the_servers_of_a_process() {
        let shared = |servers: &[Server], files: usize| {
            let mut config = Config::default();
            (config.http.connections, config.smtp.connections, config.admin.connections) =
                (20_000, 10_000, 64);
            share(&mut config, servers, files);
            (config.http.connections, config.smtp.connections)
        };
        let both = [Server::Http, Server::Smtp];
        assert_eq!(shared(&both, 1_000_000), (20_000, 10_000), "limits are never raised");
        assert_eq!(shared(&both, 30_320), (20_000, 10_000));
        assert_eq!(shared(&both, 3_320), (2_000, 1_000));
        assert_eq!(shared(&[Server::Http], 1_344), (1_024, 10_000));
        assert_eq!(shared(&both, 100), (1, 1));
    }
}
