//! Statements that loops of the roles send while requests are made.

use std::collections::{BTreeMap, BTreeSet};

use super::recording::Statement;

/// Statements of periodic jobs (of which some run every 5 minutes, or when a time range of partitions starts or ends), and
/// writes that do not belong to a request.
pub const BACKGROUND: &[&str] = &[
    "apply_rotation",
    "claim_due_domains",
    "claim_webhooks",
    "claim_webhooks_of",
    "clock_offset",
    "count_domains_to_check",
    "count_partitions",
    "default_system_domain",
    "delete_ended_sessions",
    "delete_ended_tokens",
    "delete_events_without_message",
    "delete_expired_minted_tokens",
    "delete_expired_usage",
    "delete_old_changes",
    "delete_released_mailboxes",
    "delete_removed_domains",
    "delete_removed_tenants",
    "delete_stale_events",
    "detach_message_partition",
    "drop_audit_partitions",
    "drop_delivery_partitions",
    "drop_detached_partitions",
    "ensure_delivery_partition",
    "ensure_generation",
    "ensure_message_partition",
    "erase_released_passwords",
    "find_probe",
    "find_verify_token_key",
    "list_active_classes",
    "list_arrivals",
    "list_expired_partitions",
    "list_generations",
    "list_mailbox_addresses",
    "list_messages_by_id",
    "list_missing_partitions",
    "list_pending_events",
    "list_purges",
    "list_shared_domains",
    "list_unlogged_audit",
    "list_webhook_secrets",
    "poll_stream",
    "probe_stream",
    "purge_batch",
    "record_audit_logged",
    "record_deliveries",
    "release_webhook_lease",
    "release_webhook_leases",
    "remove_idle_mailboxes",
    "renew_webhook_leases",
    "reseal_verify_token_key",
    "reseal_webhook_secrets",
    "shared_inbox_usage",
    "store_usage",
    "stream_id",
    "touch_mailbox",
    "touch_token",
    "webhook_backlog",
];

/// Removes background statements, with the start and end of their transactions.
pub fn without_background(
    is_background: impl Fn(&str) -> bool,
    statements: Vec<Statement>,
) -> Vec<Statement> {
    let mut kept = Vec::new();
    let (mut begun, mut open) = (BTreeMap::new(), BTreeSet::new());
    for statement in statements {
        let process = statement.process;
        match statement.name.as_str() {
            "BEGIN" => {
                begun.insert(process, statement);
            }
            "COMMIT" | "ROLLBACK" => kept.extend(open.remove(&process).then_some(statement)),
            name if is_background(name) => {
                begun.remove(&process);
            }
            _ => {
                if let Some(begin) = begun.remove(&process) {
                    open.insert(process);
                    kept.push(begin);
                }
                kept.push(statement);
            }
        }
    }
    kept
}
