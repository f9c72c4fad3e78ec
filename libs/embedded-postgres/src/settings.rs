//! The server's settings and where its socket is.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rand::TryRng as _;

use crate::Error;
use crate::account::Account;

/// Where socket directories go whose own place has too long a name.
pub(crate) fn short_socket_root() -> PathBuf {
    PathBuf::from("/tmp")
}

/// How their names begin.
pub(crate) const SHORT_SOCKET_PREFIX: &str = "tempmail-postgres-";

/// Octets a socket's path may have (`sun_path` less its zero).
const SOCKET_PATH_MAX: usize = 107;

/// Who may connect: whoever has the socket and the password.
pub(crate) const HBA: &str = "local all all scram-sha-256\n";

/// The settings of every start. Nothing a client sends may reach the log: neither statements
/// nor parameters, and no message below `LOG`, whose texts quote values.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", ""),
    ("unix_socket_permissions", "0700"),
    ("port", "5432"),
    ("password_encryption", "scram-sha-256"),
    ("max_connections", "60"),
    // A read names every partition of a table.
    ("max_locks_per_transaction", "256"),
    ("effective_cache_size", "1GB"),
    ("work_mem", "8MB"),
    ("maintenance_work_mem", "64MB"),
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("max_logical_replication_workers", "0"),
    ("wal_buffers", "16MB"),
    ("min_wal_size", "512MB"),
    ("max_wal_size", "4GB"),
    ("checkpoint_timeout", "15min"),
    ("autovacuum_naptime", "15s"),
    ("autovacuum_max_workers", "2"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("lc_messages", "C"),
    ("log_destination", "stderr"),
    ("logging_collector", "off"),
    ("log_line_prefix", "%m [%p] "),
    ("log_min_messages", "log"),
    ("log_min_error_statement", "panic"),
    ("log_error_verbosity", "terse"),
    ("log_statement", "none"),
    ("log_min_duration_statement", "-1"),
    ("log_parameter_max_length", "0"),
    ("log_parameter_max_length_on_error", "0"),
    ("log_lock_waits", "off"),
    ("log_temp_files", "-1"),
    ("log_autovacuum_min_duration", "-1"),
];

const DURABLE: &[(&str, &str)] = &[("fsync", "on"), ("synchronous_commit", "on"), ("full_page_writes", "on")];
const NOT_DURABLE: &[(&str, &str)] =
    &[("fsync", "off"), ("synchronous_commit", "off"), ("full_page_writes", "off")];

/// A sixteenth of the machine's memory, between 128 MB and 1 GB: an hour of busy mail stays in
/// it, and pages that are not used take nothing.
fn shared_buffers() -> String {
    let kibibytes = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        total.split_whitespace().next()?.parse::<u64>().ok()
    });
    format!("{}MB", (kibibytes.unwrap_or(0) / 1024 / 16).clamp(128, 1024))
}

/// The text of `postgresql.conf`; `more` goes over what is set here.
pub(crate) fn configuration(socket: &Path, durable: bool, more: &[(String, String)]) -> String {
    let mut text = String::from("# Written anew at each start. ALTER SYSTEM goes over it.\n");
    let mut set = |name: &str, value: &str| {
        let _ = writeln!(text, "{name} = '{}'", value.replace('\'', "''"));
    };
    for (name, value) in SETTINGS.iter().chain(if durable { DURABLE } else { NOT_DURABLE }) {
        set(name, value);
    }
    set("shared_buffers", &shared_buffers());
    set("unix_socket_directories", &socket.to_string_lossy());
    for (name, value) in more {
        set(name, value);
    }
    text
}

/// Makes the socket's directory anew: `preferred`, or a short one where its name is too long or
/// could not be written in a list of directories.
pub(crate) fn make_socket_directory(account: &Account, preferred: &Path) -> Result<PathBuf, Error> {
    let length = preferred.as_os_str().len() + "/.s.PGSQL.5432".len();
    let plain = preferred.to_str().is_some_and(|text| !text.contains([',', '"', '\'', '\\', '\n']));
    if length <= SOCKET_PATH_MAX && plain {
        // A killed server's lock file beside its socket names a process that may be a zombie
        // still, or another by now: Postgres would take either for the server.
        if preferred.exists() {
            std::fs::remove_dir_all(preferred).map_err(Error::file("can't remove", preferred))?;
        }
        account.own_directory(preferred)?;
        return Ok(preferred.to_owned());
    }
    let directory = short_socket_root().join(format!("{SHORT_SOCKET_PREFIX}{}", random_hex::<8>()?));
    account.own_directory(&directory)?;
    Ok(directory)
}

/// `N` octets of the operating system's randomness as hex digits.
pub(crate) fn random_hex<const N: usize>() -> Result<String, Error> {
    let mut random = [0; N];
    rand::rngs::SysRng.try_fill_bytes(&mut random).map_err(|_| Error::NoRandomness)?;
    Ok(random.iter().map(|octet| format!("{octet:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_settings_win_and_quotes_are_kept() {
        let more = [("fsync".to_owned(), "off".to_owned()), ("a".to_owned(), "it's".to_owned())];
        let text = configuration(Path::new("/s"), true, &more);
        assert!(text.find("fsync = 'on'").unwrap() < text.find("fsync = 'off'").unwrap());
        assert!(text.ends_with("a = 'it''s'\n"));
        assert!(text.contains("listen_addresses = ''\n"));
    }
}
