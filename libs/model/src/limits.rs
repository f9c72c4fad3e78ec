//! Every number of the interface's Limits table and of the decisions that is no setting.

use std::time::Duration;

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

/// The time in which a tenant may make as many tokens, sessions and other things over HTTP as at once: 200, so ten a second.
/// Each is an entry of the audit trail, of some 400 bytes, for 400 days: at most 860,000 a day.
pub const TENANT_CHANGES_WINDOW: Duration = Duration::from_secs(20);
