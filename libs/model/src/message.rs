//! What the stream carries of a message.

use uuid::Uuid;

use crate::retention::RetentionClass;

/// Whose mail it is; decided when the mail is stored and never changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OwnerKind {
    /// A shared inbox of a system domain: any live token reads it.
    Shared,
    /// A mailbox.
    Mailbox,
    /// An address without a mailbox under a custom domain.
    Domain,
    /// `postmaster` and `abuse` of system domains, for the tenant `platform`.
    Platform,
}

impl OwnerKind {
    /// The number the store keeps for it.
    pub const fn code(self) -> i16 {
        match self {
            Self::Shared => 0,
            Self::Mailbox => 1,
            Self::Domain => 2,
            Self::Platform => 3,
        }
    }

    /// The kind of a stored number.
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Shared),
            1 => Some(Self::Mailbox),
            2 => Some(Self::Domain),
            3 => Some(Self::Platform),
            _ => None,
        }
    }
}

/// A message that was committed: what wakes its waiters. A hint only; what they then read is
/// in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Place in the one stream.
    pub seq: i64,
    /// The message.
    pub id: Uuid,
    /// How long it is kept; with its id, where it is stored.
    pub class: RetentionClass,
    /// The tenant that owns it; `None` for a free mailbox or a shared inbox.
    pub tenant: Option<Uuid>,
    /// Mailbox, custom domain, platform tenant, or nil for a shared inbox.
    pub owner: Uuid,
    /// Mailbox, or the key of the exact address.
    pub inbox: Uuid,
}
