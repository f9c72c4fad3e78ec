//! Names in Redis: all of an installation share a prefix and a hash tag, and none tells more than
//! ids and digests.

use std::time::Duration;

use uuid::Uuid;

use crate::{PermitKey, RateKey};

/// Time after which the set of sessions is gone, where no process beats any more.
pub(super) const SESSIONS_EXPIRE: Duration = Duration::from_secs(60);

/// Time after which the places of a key are gone, where no process renews them.
pub(super) const PLACES_EXPIRE: Duration = Duration::from_secs(24 * 3600);

/// The names of one installation.
#[derive(Debug)]
pub(super) struct Names {
    prefix: String,
}

impl Names {
    pub(super) fn new(installation: Uuid) -> Self {
        Self { prefix: format!("{{tempmail:{}}}", installation.simple()) }
    }

    /// The channel of arrivals.
    pub(super) fn arrivals(&self) -> String {
        format!("{}:arrivals", self.prefix)
    }

    /// The sorted set of living sessions: when each of them is dead, by the server's clock.
    pub(super) fn sessions(&self) -> String {
        format!("{}:sessions", self.prefix)
    }

    /// The sorted set of places taken under a key: `<session>:<number>`, and when it was taken.
    pub(super) fn places(&self, key: PermitKey) -> String {
        let of = match key {
            PermitKey::TokenWaits(token) => format!("token-waits:{}", token.simple()),
            PermitKey::TokenStreams(token) => format!("token-streams:{}", token.simple()),
            PermitKey::MailboxSockets(mailbox) => format!("mailbox-sockets:{}", mailbox.simple()),
            PermitKey::AddressWaits { tenant, address } => {
                format!("address-waits:{}:{}", tenant.simple(), address.simple())
            }
        };
        format!("{}:places:{of}", self.prefix)
    }

    /// The time until which requests under a key are used up.
    pub(super) fn rate(&self, limit: &str, key: RateKey) -> String {
        format!("{}:rate:{limit}:{}", self.prefix, key.as_uuid().simple())
    }

    /// The failures within the window of a key.
    pub(super) fn failures(&self, limit: &str, key: RateKey) -> String {
        format!("{}:failures:{limit}:{}", self.prefix, key.as_uuid().simple())
    }
}
