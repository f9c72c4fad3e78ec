//! Sends the audit trail to the log, for systems that collect logs.

use jiff::Timestamp;
use tempmail_store::{AuditEntry, Store};

/// Entries that are logged together.
const BATCH: i64 = 500;

/// Logs every entry that is not in the log yet, oldest first. One is logged twice, with the same id, where the process
/// ends before that is recorded, or where two workers are at it.
pub(crate) async fn run(store: &Store, now: Timestamp) -> anyhow::Result<()> {
    loop {
        let entries = store.list_unlogged_audit(BATCH).await?;
        let age = entries.first().map_or(0.0, |oldest| now.duration_since(oldest.at()).as_secs_f64());
        metrics::gauge!("tempmail_audit_oldest_unlogged_seconds").set(age.max(0.0));
        if entries.is_empty() {
            return Ok(());
        }
        entries.iter().for_each(log);
        let ids: Vec<_> = entries.iter().map(|entry| entry.id).collect();
        store.record_audit_logged(&ids).await?;
    }
}

fn log(entry: &AuditEntry) {
    tracing::info!(
        target: "tempmail::audit",
        id = %entry.id,
        time = %entry.at(),
        actor = entry.actor,
        login = entry.login,
        action = entry.action,
        kind = entry.kind,
        subject = entry.subject,
        tenant = entry.tenant.map(tracing::field::display),
        "audit"
    );
}
