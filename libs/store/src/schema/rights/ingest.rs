//! `tempmail ingest` stores mail. It faces everyone who sends, so it reads no mail and no secrets.

use super::{Rights, on};

/// The rights of the group role `ingest`.
pub(in super::super) const INGEST: Rights = Rights {
    tables: &[
        on("_sqlx_migrations").select(),
        on("schema_object").select(),
        on("schema_compatibility").select(),
        on("free_class").select().insert(),
        on("stream").select().update(&[&["seq"]]),
        on("tenant").select(),
        on("domain").select(),
        on("mailbox").select_only(&[
            "id",
            "domain",
            "local_part",
            "tenant",
            "quota",
            "removed_at",
            "held_until",
        ]),
        on("webhook").select_only(&["id", "tenant", "status", "events"]),
        on("webhook_event").insert(),
        on("message").select_only(&["id", "class", "inbox", "owner", "size"]).insert(),
        on("visible_message").select_only(&["id", "class", "inbox", "mail", "size"]),
        on("raw")
            .select_only(&["mail", "class", "part", "recipients", "stored_bytes"])
            .insert()
            .update(&[&["recipients"]])
            .delete(),
        on("message_partition").select().update(&[&["bytes", "free_bytes", "shared_bytes"]]),
        on("usage").select().insert().update(&[&["bytes", "expired_before"]]),
    ],
    functions: &[&[
        "accept_mail",
        "address_owner",
        "discard_raw",
        "ensure_generation",
        "ensure_message_partition",
        "expire_usage",
        "expired_usage",
        "inbox_bytes",
        "lock_inbox",
        "mailbox_used",
        "message_row_bytes",
        "partition_start",
        "partition_width",
        "scope_used",
        "store_raw_part",
        "stored_bytes",
        "time_id",
        "try_lock_inbox",
        "webhook_event_id",
    ]],
};
