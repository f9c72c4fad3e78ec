//! What the verification of custom domains (`libs/verification`) needs, which `api`, `worker` and `operator` run.

/// Columns of `domain` that a check changes.
pub(super) const DOMAIN: &[&str] = &[
    "verify_status",
    "failure_reason",
    "serves",
    "verified_at",
    "failed_checks",
    "txt_ok",
    "txt_result",
    "txt_seen",
    "mx_ok",
    "mx_result",
    "mx_seen",
    "next_check_at",
    "claimed_until",
];

/// Columns of `mailbox` that change when mailboxes are removed, as those of a domain that others lose.
pub(super) const MAILBOX: &[&str] = &["local_part", "password_epoch", "removed_at", "held_until"];

/// The functions of a domain's verification.
pub(super) const FUNCTIONS: &[&str] = &[
    "verify_custom_domain",
    "lock_domain_names",
    "overlaps_system_domain",
    "domains_overlap",
    "purge_owner",
    "purge_removed",
    "remove_mailboxes_of_domain",
    "wait_for_mail",
];
