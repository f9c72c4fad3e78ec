//! `tempmail operator`, and the administrative commands, which do with tenants, tokens and system domains what objects
//! do. They read no mail.

use super::{Rights, on, verification};

/// See the module.
pub(in super::super) const OPERATOR: Rights = Rights {
    tables: &[
        on("_sqlx_migrations").select(),
        on("schema_object").select(),
        on("schema_compatibility").select(),
        on("audit").select(),
        // `singleton`: locks the stream.
        on("stream").select().update(&[&["singleton"]]),
        on("change").select(),
        on("cluster").select().insert().update(&[&["epoch", "heartbeat_at"]]),
        on("operator").select().update(&[&["epoch"]]),
        on("resource")
            .select()
            .insert()
            .update(&[&[
                "row_id",
                "retained",
                "verify_handled",
                "rotate_handled",
                "reenable_handled",
                "missing_since",
            ]])
            .delete(),
        on("origin").select().insert().update(&[&["namespace_uid"]]).delete(),
        on("tenant").select().insert().update(&[&[
            "name",
            "suspended",
            "managed_by",
            "retention_hours",
            "classes",
            "mailbox_limit",
            "domain_limit",
            "webhook_limit",
            "token_limit",
            "mailbox_bytes",
            "removed_at",
        ]]),
        on("api_token").select().insert().update(&[&["active", "expires_at", "revoked_at"]]).delete(),
        on("domain").select().insert().update(&[
            verification::DOMAIN,
            &[
                "shared_inboxes",
                "is_default",
                "sort_order",
                "managed_by",
                "active",
                "deadline",
                "removed_at",
                "origin",
            ],
        ]),
        on("verify_token_key").select().insert(),
        on("mailbox").select().insert().update(&[
            verification::MAILBOX,
            &["tenant", "password_hash", "managed_by", "active", "origin", "restorable"],
        ]),
        on("webhook")
            .select()
            .insert()
            .update(&[&[
                "url",
                "secret",
                "status",
                "active",
                "failure_count",
                "failed_at",
                "due_at",
                "rotated",
                "origin",
            ]])
            .delete(),
        on("usage").select(),
        on("purge").insert(),
    ],
    functions: &[
        verification::FUNCTIONS,
        &[
            "acquire_epoch",
            "add_system_domain",
            "adopt_released",
            "adopt_released_webhook",
            "check_limit",
            "create_custom_domain",
            "create_mailbox",
            "create_token",
            "declare_custom_domain",
            "declare_mailbox",
            "declare_system_domain",
            "declare_tenant",
            "declare_token",
            "declare_webhook",
            "delete_ended_origins",
            "domain_of_object",
            "end_grant",
            "end_managed_token",
            "end_of_object",
            "end_origin",
            "end_origins",
            "ensure_generation",
            "ensure_verify_token_key",
            "is_granted",
            "is_predecessor",
            "lock_epoch",
            "mailbox_of_object",
            "partition_width",
            "record_heartbeat",
            "record_missing",
            "release_custom_domain",
            "release_mailbox",
            "release_resource",
            "release_system_domain",
            "release_tenant",
            "release_token",
            "release_webhook",
            "remove_custom_domain",
            "remove_held_mailboxes",
            "remove_mailbox",
            "remove_system_domain",
            "remove_tenant",
            "revoke_managed_token",
            "scope_used",
            "server_history",
            "set_default_system_domain",
        ],
    ],
};
