//! What subscribers subscribe to.

use tempmail_model::message::Arrival;
use uuid::Uuid;

/// What a subscriber is notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// Mail of one inbox: a mailbox, or the key of an exact address.
    Inbox(Uuid),
    /// Mail of one tenant: to its mailboxes, and to every address under its custom domains.
    Tenant(Uuid),
    /// A change of what the right to read depends on: a tenant, token, mailbox, domain, or the key of
    /// an address that may become a mailbox.
    Rights(Uuid),
}

impl Topic {
    /// The topics whose subscribers are notified of an arrival.
    pub(super) fn of(arrival: &Arrival) -> impl Iterator<Item = Self> {
        [Some(Self::Inbox(arrival.inbox)), arrival.tenant.map(Self::Tenant)].into_iter().flatten()
    }
}
