//! Names in Redis. All share one hash tag, and none tells more than ids and digests.

use std::time::Duration;

use redis::Client;

use crate::{RateKey, SlotKey};

/// The sorted set of living sessions: when each of them is dead, by the server's clock.
pub(super) const SESSIONS: &str = "{tempmail}:sessions";

/// Time after which the set of sessions is gone, where no process beats any more.
pub(super) const SESSIONS_EXPIRE: Duration = Duration::from_secs(60);

/// Time after which the places of a key are gone, where no process renews them.
pub(super) const PLACES_EXPIRE: Duration = Duration::from_secs(24 * 3600);

/// The channel of arrivals. Channels span the databases of a server, so it tells which one.
pub(super) fn channel(client: &Client) -> String {
    format!("{{tempmail}}:arrivals:{}", client.get_connection_info().redis_settings().db())
}

/// The sorted set of places taken under a key: `<session>:<number>`, and when it was taken.
pub(super) fn places(key: SlotKey) -> String {
    let of = match key {
        SlotKey::TokenWaits(token) => format!("token-waits:{}", token.simple()),
        SlotKey::TokenStreams(token) => format!("token-streams:{}", token.simple()),
        SlotKey::MailboxSockets(mailbox) => format!("mailbox-sockets:{}", mailbox.simple()),
        SlotKey::AddressWaits { tenant, address } => {
            format!("address-waits:{}:{}", tenant.simple(), address.simple())
        }
    };
    format!("{{tempmail}}:places:{of}")
}

/// The time until which requests under a key are used up.
pub(super) fn rate(limit: &str, key: RateKey) -> String {
    format!("{{tempmail}}:rate:{limit}:{}", key.as_uuid().simple())
}

/// The failures within the window of a key.
pub(super) fn failures(limit: &str, key: RateKey) -> String {
    format!("{{tempmail}}:failures:{limit}:{}", key.as_uuid().simple())
}
