//! `tempmail worker` deletes what has ended, and sends webhooks. It reads no data of mails, no passwords and no hashes
//! of tokens.

use super::{CHECKED_DOMAIN, REMOVED_MAILBOX, Rights, VERIFICATION_FUNCTIONS, on};

/// The rights of the group role `worker`.
pub(in super::super) const WORKER: Rights = Rights {
    tables: &[
        on("_sqlx_migrations").select(),
        on("schema_object").select(),
        on("schema_compatibility").select(),
        on("audit").select(),
        on("audit_unlogged").select().delete(),
        on("free_class").select().insert(),
        // `singleton`: locks the stream.
        on("stream").select().update(&[&["singleton"]]),
        on("change").select().delete(),
        on("tenant").select().delete(),
        on("api_token").select_only(&["revoked_at", "expires_at"]).delete(),
        on("minted_token").select_only(&["expires_at"]).delete(),
        on("ended_session").select().delete(),
        on("domain").select().update(&[CHECKED_DOMAIN]).delete(),
        on("verify_token_key").select().update(&[&["kid", "sealed"]]),
        on("mailbox")
            .select_only(&[
                "id",
                "domain",
                "tenant",
                "password_epoch",
                "seen_at",
                "removed_at",
                "held_until",
                "restorable",
            ])
            .update(&[REMOVED_MAILBOX, &["tenant", "password_hash", "restorable"]])
            .delete(),
        on("webhook").select().update(&[&[
            // To seal it again with another key, which `reseals` says.
            "secret",
            "reseals",
            "status",
            "failure_count",
            "failing_mailboxes",
            "failed_at",
            "last_triggered_at",
            "due_at",
            "rotated",
            "lease_holder",
            "lease_expires_at",
        ]]),
        on("webhook_event").select().update(&[&["attempts", "due_at"]]).delete(),
        on("webhook_delivery").insert(),
        on("message").select().delete(),
        on("visible_message").select(),
        on("raw")
            .select_only(&["mail", "class", "part", "recipients", "stored_bytes"])
            .update(&[&["recipients"]])
            .delete(),
        on("message_partition").select().update(&[&["bytes", "free_bytes", "shared_bytes"]]),
        on("usage").select().update(&[&["bytes"]]).delete(),
        // `created_at`: locks the purge that is carried out.
        on("purge").select().insert().update(&[&["created_at"]]).delete(),
    ],
    functions: &[
        VERIFICATION_FUNCTIONS,
        &[
            "delete_messages",
            "detach_message_partition",
            "drop_audit_partitions",
            "drop_delivery_partitions",
            "drop_detached_partitions",
            "ensure_delivery_partition",
            "ensure_message_partition",
            "id_time",
            "inbox_bytes",
            "message_row_bytes",
            "messages_of_mail",
            "next_probe",
            "partition_start",
            "partition_width",
            "purge_batch",
            "record_deliveries",
            "remove_held_mailboxes",
            "remove_idle_mailboxes",
            "stored_bytes",
            "time_id",
        ],
    ],
};
