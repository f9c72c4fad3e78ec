//! What users may have, and for how long: `limits.*`, `retention.*` and `addresses.*`.

#![expect(missing_docs, reason = "`SETTINGS` describes each field that is a setting")]

use serde::{Deserialize, Serialize};
use tempmail_model::address::ReservedLocalParts;
use tempmail_model::limits::TENANT_MAILBOX_BYTES_MAX;
use tempmail_model::retention::RetentionClass;

use super::Config;
use super::setting::{Bound, Kind, Setting, bound, bytes, count, number, setting};
use super::validate::any_text;

/// The limits (`limits.*`): settings, and bounds that nobody has a reason to change but a test.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub mailbox_bytes: u64,
    pub inbox_bytes: u64,
    pub shared_bytes: u64,
    pub store_bytes: u64,
    pub free_mailboxes: u32,
    pub address_hold_days: u16,
    pub idle_mailbox_days: u16,
    pub password_min: u16,
    /// Maximum characters of a mailbox password.
    pub password_max: u16,
    pub v1_per_second: u32,
    pub minted_tokens: u32,
    /// Requests per second of all minted tokens of a tenant together; also the burst.
    pub minted_per_second: u32,
    pub pro_per_second: u32,
    pub api_per_second: u32,
    /// Requests per minute and client whose credential is missing or not accepted.
    pub refused_per_minute: u32,
    pub free_mailboxes_per_hour: u32,
    pub sign_in_failures: u32,
    /// Failed sign-ins in 15 minutes per client, over all addresses.
    pub sign_in_failures_per_client: u32,
    /// Failed sign-ins a minute per client, over all addresses.
    pub sign_in_failures_per_minute: u32,
    /// Passwords that a tenant may reset a minute over `/pro/api`; also the burst.
    pub password_resets_per_minute: u32,
    /// Tokens, sessions and other things that a tenant may make over HTTP in
    /// [`TENANT_CHANGES_WINDOW`](tempmail_model::limits::TENANT_CHANGES_WINDOW); also the burst.
    pub tenant_changes: u32,
}

impl Limits {
    pub(super) const SETTINGS: &[Setting] = &[
        number(
            "limits.mailbox_bytes",
            52_428_800,
            TENANT_MAILBOX_BYTES_MAX.unsigned_abs(),
            "a whole number of bytes from 1 to 1099511627776 (1 TiB)",
            "Maximum bytes of a free mailbox.",
        ),
        bytes("limits.inbox_bytes", 52_428_800, "Maximum bytes of an address without a mailbox."),
        bytes(
            "limits.shared_bytes",
            20 << 30,
            "Part of `limits.store_bytes` for mail without a tenant: of shared inboxes and of free mailboxes. Half of it at most: more counts as half.",
        ),
        bytes(
            "limits.store_bytes",
            40 << 30,
            "Maximum bytes of mail on the disk: compressed data, once a mail, and 1,024 for each message. What is not for mail without a tenant is for tenants, and one tenant may store as much of it as is left.",
        ),
        count("limits.free_mailboxes", 100_000, "Maximum free mailboxes of the installation."),
        count(
            "limits.address_hold_days",
            31,
            "Days that the address of a removed mailbox stays reserved on a system domain; at least 31, more than the longest retention.",
        ),
        count(
            "limits.idle_mailbox_days",
            30,
            "Days without sign-in or read after which a free mailbox is removed.",
        ),
        number(
            "limits.password_min",
            6,
            128,
            "a whole number from 1 to 128",
            "Minimum characters of a mailbox password.",
        ),
        count("limits.v1_per_second", 10, "Requests per second and token on `/v1`; also the burst."),
        count("limits.minted_tokens", 200, "Maximum minted tokens of a tenant that have not expired."),
        count("limits.pro_per_second", 20, "Requests per second and token on `/pro/api`; also the burst."),
        count(
            "limits.api_per_second",
            20,
            "Requests per second and mailbox with a mailbox JWT, and per client where no credential is needed.",
        ),
        count(
            "limits.free_mailboxes_per_hour",
            60,
            "Mailboxes that a client may create per hour without a Pro token.",
        ),
        count("limits.sign_in_failures", 10, "Failed sign-ins in 15 minutes per address and client."),
    ];
    pub(super) const BOUNDS: &[Bound] = &[
        bound("limits.password_max", 128),
        bound("limits.minted_per_second", 100),
        bound("limits.refused_per_minute", 300),
        bound("limits.sign_in_failures_per_client", 100),
        bound("limits.sign_in_failures_per_minute", 20),
        bound("limits.password_resets_per_minute", 20),
        bound("limits.tenant_changes", 200),
    ];
}

impl Default for Limits {
    fn default() -> Self {
        Config::default().limits
    }
}

/// `retention.*`, in hours: 1, 6, 24, 72, 168 or 720.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    pub free_hours: RetentionClass,
    pub pro_hours: RetentionClass,
}

const fn retention(path: &'static str, default: RetentionClass, description: &'static str) -> Setting {
    let default = default.hours().unsigned_abs() as u64;
    setting(path, Kind::Number { default, min: 1, max: u64::MAX }, "1, 6, 24, 72, 168 or 720", description)
}

impl Retention {
    pub(super) const SETTINGS: &[Setting] = &[
        retention(
            "retention.free_hours",
            RetentionClass::FREE,
            "Retention of mail of free mailboxes and shared inboxes, in hours: 1, 6, 24, 72, 168 or 720.",
        ),
        retention(
            "retention.pro_hours",
            RetentionClass::PRO,
            "Default retention of a new Pro tenant, in hours: 1, 6, 24, 72, 168 or 720.",
        ),
    ];
}

/// `addresses.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Addresses {
    pub reserved: Vec<String>,
}

impl Addresses {
    pub(super) const SETTINGS: &[Setting] = &[setting(
        "addresses.reserved",
        Kind::List { default: &ReservedLocalParts::DEFAULT, is_valid: any_text },
        "a list of local parts",
        "Local parts that can't be used on system domains; `postmaster` and `abuse` are always reserved.",
    )];
}
