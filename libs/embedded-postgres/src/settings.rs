//! The server's settings.

use std::fmt::Write as _;
use std::path::Path;

/// `pg_hba.conf`: clients of the socket sign in with the password.
pub(crate) const HBA: &str = "local all all scram-sha-256\n";

/// The settings of every start. Nothing that a client sends may reach the log: no statements, no
/// parameters, and no messages below `LOG`, whose texts quote values.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", ""),
    ("unix_socket_permissions", "0700"),
    ("port", "5432"),
    ("password_encryption", "scram-sha-256"),
    ("max_connections", "60"),
    // A query locks every partition of a table.
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

/// A sixteenth of the machine's memory, between 128 MB and 1 GB: enough for an hour of busy mail.
/// Unused pages take no memory.
fn shared_buffers() -> String {
    let kibibytes = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        total.split_whitespace().next()?.parse::<u64>().ok()
    });
    format!("{}MB", (kibibytes.unwrap_or(0) / 1024 / 16).clamp(128, 1024))
}

/// The text of `postgresql.conf`; `overrides` come last, so they win.
pub(crate) fn configuration(socket: &Path, durable: bool, overrides: &[(String, String)]) -> String {
    let mut text = String::from("# Rewritten at each start. ALTER SYSTEM overrides it.\n");
    let mut set = |name: &str, value: &str| {
        let _ = writeln!(text, "{name} = '{}'", value.replace('\'', "''"));
    };
    for (name, value) in SETTINGS.iter().chain(if durable { DURABLE } else { NOT_DURABLE }) {
        set(name, value);
    }
    set("shared_buffers", &shared_buffers());
    set("unix_socket_directories", &socket.to_string_lossy());
    for (name, value) in overrides {
        set(name, value);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_win_and_quotes_are_escaped() {
        let overrides = [("fsync".to_owned(), "off".to_owned()), ("a".to_owned(), "it's".to_owned())];
        let text = configuration(Path::new("/s"), true, &overrides);
        assert!(text.find("fsync = 'on'").unwrap() < text.find("fsync = 'off'").unwrap());
        assert!(text.ends_with("a = 'it''s'\n"));
        assert!(text.contains("listen_addresses = ''\n"));
    }
}
