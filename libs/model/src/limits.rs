//! Every number of the interface's Limits table and of the decisions, with its default.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Seconds that a long-poll waits. Fixed by the interface, so not a setting.
pub const LONG_POLL_SECONDS: u64 = 25;
/// Maximum `count` and `limit` of a long-poll; higher values are lowered to it.
pub const LONG_POLL_MAX: u32 = 50;
/// Default `limit` of a long-poll.
pub const LONG_POLL_LIMIT: u32 = 20;
/// Maximum rows that a long-poll scans for its filters.
pub const LONG_POLL_SCAN_MAX: i64 = 10_000;
/// Seconds that a mail wait (`POST /v1/wait`) lasts unless the client says otherwise.
pub const MAIL_WAIT_SECONDS: u64 = 60;
/// Maximum seconds of a mail wait.
pub const MAIL_WAIT_SECONDS_MAX: u64 = 300;
/// Messages whose contents a mail wait looks at.
pub const MAIL_WAIT_READ_MAX: u32 = 200;
/// Bytes of these messages together. The last one may exceed it.
pub const MAIL_WAIT_READ_BYTES: u64 = 256 << 20;
/// Maximum characters of a text that a mail wait looks for.
pub const MATCH_TEXT_MAX: usize = 256;
/// Bytes of the text that a message shows which are looked at, and returned as `shown_text`.
pub const SHOWN_TEXT_MAX: usize = 256 << 10;
/// Maximum `limit` of a list of messages; higher values are lowered to it.
pub const EMAIL_LIST_MAX: i64 = 50;
/// Default `limit` of a list of messages.
pub const EMAIL_LIST_LIMIT: i64 = 20;
/// Entries per page of a list, but for one of mailboxes.
pub const PAGE_SIZE: i64 = 30;
/// Mailboxes, custom domains, webhooks or tokens per page of a tenant's list: more than a tenant has by default, so that a
/// client that knows no pages gets all.
pub const OWNED_PAGE_SIZE: i64 = 1_000;
/// Highest page of a list: what comes before a page is read, so a list costs the more the deeper its page.
pub const PAGES_MAX: i64 = 100;
/// Maximum open long-polls of a token.
pub const LONG_POLLS_PER_TOKEN: usize = 1;
/// Maximum open long-polls of a tenant on an address.
pub const LONG_POLLS_PER_ADDRESS: usize = 10;
/// Maximum authenticated WebSockets of a mailbox. Fixed by the interface, so not a setting.
pub const SOCKETS_PER_MAILBOX: usize = 3;

/// Maximum open streams of server-sent events of a token.
pub const STREAMS_PER_TOKEN: usize = 10;

/// Maximum mailboxes that an administrator may allow a tenant. These bounds keep what is computed of them, such as the
/// bytes of all mailboxes of a tenant, far below what an i64 holds; `crds` says them, too.
pub const TENANT_MAILBOXES_MAX: i32 = 1_000_000;
/// Maximum custom domains that an administrator may allow a tenant.
pub const TENANT_DOMAINS_MAX: i32 = 100_000;
/// Maximum webhooks that an administrator may allow a tenant. All mail waits while an event for each is inserted.
pub const TENANT_WEBHOOKS_MAX: i32 = 100;
/// Maximum tokens that an administrator may allow a tenant.
pub const TENANT_TOKENS_MAX: i32 = 100_000;
/// Maximum bytes of a mailbox that an administrator may allow a tenant, or free users: 1 TiB.
pub const TENANT_MAILBOX_BYTES_MAX: i64 = 1 << 40;
/// Maximum place of a system domain in lists, and its negative the minimum.
pub const SORT_ORDER_MAX: i32 = 10_000;

/// Tokens, sessions and other things that a tenant may make at once over HTTP: a token for each test of a large run.
const TENANT_CHANGES: u32 = 200;
/// The time in which it may make as many again: ten a second. Each is an entry of the audit trail, of some 400 bytes, for 400
/// days: at most 860,000 a day.
pub const TENANT_CHANGES_WINDOW: Duration = Duration::from_secs(20);

/// The limits (`limits.*`): settings, and bounds that nobody has a reason to change but a test.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum bytes of a free mailbox.
    pub mailbox_bytes: u64,
    /// Maximum bytes of an address without a mailbox.
    pub inbox_bytes: u64,
    /// Bytes on the disk for mail without a tenant: of shared inboxes and of free mailboxes. At most half of
    /// `store_bytes` counts.
    pub shared_bytes: u64,
    /// Maximum bytes of mail on the disk; what is not for mail without a tenant is for tenants.
    pub store_bytes: u64,
    /// Maximum free mailboxes of the installation.
    pub free_mailboxes: u32,
    /// Days that the address of a removed mailbox stays reserved on a system domain.
    pub address_hold_days: u16,
    /// Days without sign-in or read after which a free mailbox is removed.
    pub idle_mailbox_days: u16,
    /// Minimum characters of a mailbox password.
    pub password_min: u16,
    /// Maximum characters of a mailbox password.
    pub password_max: u16,
    /// Requests per second and token on `/v1`; also the burst.
    pub v1_per_second: u32,
    /// Maximum minted tokens of a tenant that have not expired.
    pub minted_tokens: u32,
    /// Requests per second of all minted tokens of a tenant together; also the burst.
    pub minted_per_second: u32,
    /// Requests per second and token on `/pro/api`; also the burst.
    pub pro_per_second: u32,
    /// Requests per second and mailbox on `/api`, and per client where no credential is needed.
    pub api_per_second: u32,
    /// Requests per minute and client whose credential is missing or not accepted.
    pub refused_per_minute: u32,
    /// Mailboxes that a client may create per hour without a Pro token.
    pub free_mailboxes_per_hour: u32,
    /// Failed sign-ins in 15 minutes per address and client.
    pub sign_in_failures: u32,
    /// Failed sign-ins in 15 minutes per client, over all addresses.
    pub sign_in_failures_per_client: u32,
    /// Failed sign-ins a minute per client, over all addresses.
    pub sign_in_failures_per_minute: u32,
    /// Passwords that a tenant may reset a minute over `/pro/api`; also the burst.
    pub password_resets_per_minute: u32,
    /// Tokens, sessions and other things that a tenant may make over HTTP in [`TENANT_CHANGES_WINDOW`]; also the burst.
    #[serde(skip)]
    pub tenant_changes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            mailbox_bytes: 52_428_800,
            inbox_bytes: 52_428_800,
            shared_bytes: 20 << 30,
            store_bytes: 40 << 30,
            free_mailboxes: 100_000,
            address_hold_days: 31,
            idle_mailbox_days: 30,
            password_min: 6,
            password_max: 128,
            v1_per_second: 10,
            minted_tokens: 200,
            minted_per_second: 100,
            pro_per_second: 20,
            api_per_second: 20,
            refused_per_minute: 300,
            free_mailboxes_per_hour: 60,
            sign_in_failures: 10,
            sign_in_failures_per_client: 100,
            sign_in_failures_per_minute: 20,
            password_resets_per_minute: 20,
            tenant_changes: TENANT_CHANGES,
        }
    }
}
