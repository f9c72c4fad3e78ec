//! Every number of the interface's Limits table and of the decisions, with its default.

use serde::{Deserialize, Serialize};

/// Long-poll hold in seconds. Fixed by the interface: not a setting.
pub const LONG_POLL_SECONDS: u64 = 25;
/// Highest `count` and `limit` of a long-poll; above it counts as this.
pub const LONG_POLL_MAX: u32 = 50;
/// Default `limit` of a long-poll.
pub const LONG_POLL_LIMIT: u32 = 20;
/// Most rows one long-poll request scans for its filters.
pub const LONG_POLL_SCAN_MAX: i64 = 10_000;
/// Messages and accounts a page.
pub const PAGE_SIZE: i64 = 30;
/// Open long-polls a token may have.
pub const LONG_POLLS_PER_TOKEN: usize = 1;
/// Open long-polls one tenant may have on one address.
pub const LONG_POLLS_PER_ADDRESS: usize = 10;
/// Authenticated WebSockets a mailbox may have. Fixed by the interface: not a setting.
pub const SOCKETS_PER_MAILBOX: usize = 3;

/// Open streams of server-sent events a token may have.
pub const STREAMS_PER_TOKEN: usize = 10;

/// Settable bounds (configuration `limits.*`).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Octets a free mailbox may hold.
    pub mailbox_bytes: u64,
    /// Octets an address without a mailbox may hold.
    pub inbox_bytes: u64,
    /// Octets all shared inboxes may hold together.
    pub shared_bytes: u64,
    /// Octets the installation may hold.
    pub store_bytes: u64,
    /// Days that the address of a removed mailbox is held on a system domain.
    pub address_hold_days: u16,
    /// Days without sign-in or read after which a free mailbox is removed.
    pub idle_mailbox_days: u16,
    /// Fewest characters of a mailbox password.
    pub password_min: u16,
    /// Most characters of a mailbox password.
    pub password_max: u16,
    /// Requests a second on `/v1`, a token; also the burst.
    pub v1_per_second: u32,
    /// Requests a second on `/pro/api`, a token; also the burst.
    pub pro_per_second: u32,
    /// Requests a second on `/api`, a client.
    pub api_per_second: u32,
    /// Mailboxes a client may create in an hour without a Pro token.
    pub free_mailboxes_per_hour: u32,
    /// Failed sign-ins in 15 minutes, an address and client.
    pub sign_in_failures: u32,
    /// Failed sign-ins in 15 minutes, a client over all addresses.
    pub sign_in_failures_per_client: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            mailbox_bytes: 52_428_800,
            inbox_bytes: 52_428_800,
            shared_bytes: 20 << 30,
            store_bytes: 40 << 30,
            address_hold_days: 31,
            idle_mailbox_days: 30,
            password_min: 6,
            password_max: 128,
            v1_per_second: 10,
            pro_per_second: 20,
            api_per_second: 20,
            free_mailboxes_per_hour: 60,
            sign_in_failures: 10,
            sign_in_failures_per_client: 100,
        }
    }
}
