//! Messages in the stream of all mail.

use uuid::Uuid;

use crate::retention::RetentionClass;

/// The kind of owner of a message, which is decided when it is stored and never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OwnerKind {
    /// A shared inbox of a system domain, which any live token can read.
    #[default]
    Shared,
    /// A mailbox.
    Mailbox,
    /// A custom domain, for an address without a mailbox.
    Domain,
    /// The tenant `platform`, for `postmaster` and `abuse` of system domains.
    Platform,
    /// The tenant whose sink received it, for an address that neither a mailbox nor a custom domain has.
    Sink,
}

impl OwnerKind {
    /// Its number in the store.
    pub const fn code(self) -> i16 {
        match self {
            Self::Shared => 0,
            Self::Mailbox => 1,
            Self::Domain => 2,
            Self::Platform => 3,
            Self::Sink => 4,
        }
    }

    /// The kind with a number of the store.
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Shared),
            1 => Some(Self::Mailbox),
            2 => Some(Self::Domain),
            3 => Some(Self::Platform),
            4 => Some(Self::Sink),
            _ => None,
        }
    }
}

/// The hint that a message was committed, which wakes its readers. They read it from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Position in the stream.
    pub seq: i64,
    /// The message.
    pub id: Uuid,
    /// Its retention class; together with the id it determines the partition.
    pub class: RetentionClass,
    /// The tenant that owns it; `None` for a free mailbox or a shared inbox.
    pub tenant: Option<Uuid>,
    /// Mailbox, custom domain, tenant (`platform`, or that of a sink), or nil for a shared inbox.
    pub owner: Uuid,
    /// Mailbox, or [the key of the exact address](crate::address::RecipientAddress::inbox_key).
    pub inbox: Uuid,
}
