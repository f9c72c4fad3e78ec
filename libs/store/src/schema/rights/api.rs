//! `tempmail api` reads mail, deletes it for its owners, and manages what tenants own.

use super::{CHECKED_DOMAIN, REMOVED_MAILBOX, Rights, VERIFICATION_FUNCTIONS, on};

/// The rights of the group role `api`.
pub(in super::super) const API: Rights = Rights {
    tables: &[
        on("_sqlx_migrations").select(),
        on("schema_object").select(),
        on("schema_compatibility").select(),
        on("free_class").select().insert(),
        // `singleton`: locks the stream.
        on("stream").select().update(&[&["singleton"]]),
        on("stream_generation").select(),
        on("change").select(),
        // `created_at`: locks a tenant whose limits are checked.
        on("tenant").select().update(&[&["created_at"]]),
        on("api_token").select().insert().update(&[&["last_used_at", "revoked_at"]]),
        on("minted_token").select().insert().delete(),
        on("ended_session").select().insert(),
        on("domain")
            .select()
            .insert()
            .update(&[CHECKED_DOMAIN, &["active", "check_requested_at", "removed_at", "origin"]]),
        on("verify_token_key").select().insert(),
        on("mailbox")
            .select()
            .insert()
            .update(&[REMOVED_MAILBOX, &["password_hash", "active", "seen_at", "origin", "restorable"]]),
        // `singleton`: locks the count while a free mailbox is made.
        on("mailbox_count").select().update(&[&["singleton"]]),
        // All but the secret, which `worker` signs with.
        on("webhook")
            .select_only(&[
                "id",
                "tenant",
                "url",
                "events",
                "status",
                "managed_by",
                "created_at",
                "failure_count",
                "last_triggered_at",
            ])
            .insert()
            .update(&[&["secret", "failure_count", "failed_at", "due_at", "rotated"]])
            .delete(),
        on("webhook_delivery").select(),
        on("message").select().update(&[&["is_read"]]).delete(),
        on("visible_message").select(),
        on("served_message").select(),
        on("raw").select().update(&[&["recipients"]]).delete(),
        on("message_partition").select().update(&[&["bytes", "free_bytes", "shared_bytes"]]),
        on("usage").select().update(&[&["bytes"]]),
        on("purge").select().insert(),
    ],
    functions: &[
        VERIFICATION_FUNCTIONS,
        &[
            "address_key",
            "address_owner",
            "check_limit",
            "clear_inbox",
            "create_custom_domain",
            "create_mailbox",
            "create_token",
            "create_webhook",
            "delete_message",
            "delete_messages",
            "end_session",
            "ensure_generation",
            "ensure_verify_token_key",
            "expired_usage",
            "id_time",
            "inbox_bytes",
            "inbox_messages",
            "inbox_positions",
            "lock_inbox",
            "mailbox_used",
            "message_row_bytes",
            "messages_of_mail",
            "mint_token",
            "partition_start",
            "partition_width",
            "record_audit",
            "recreate_mailbox",
            "remove_custom_domain",
            "remove_mailbox",
            "reset_mailbox_password",
            "revoke_minted_token",
            "scope_used",
            "server_history",
            "stored_bytes",
            "tenant_messages",
            "tenant_positions",
            "time_id",
            "token_origin",
        ],
    ],
};
