//! Recipients between RCPT and the reply to it.

use tempmail_model::address::RecipientAddress;
use uuid::Uuid;

/// A forward-path of RCPT that has yet to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PendingRecipient {
    /// An address in normal form.
    Address(RecipientAddress),
    /// `<postmaster>` without a domain: that of the default system domain (RFC 5321 4.5.1).
    Postmaster,
}

/// A recipient that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AcceptedRecipient {
    /// Its address in normal form.
    pub(crate) address: RecipientAddress,
    /// The tenant that owned the address at RCPT, by which limits count. Who owns the mail is decided when it is
    /// stored.
    pub(crate) tenant: Option<Uuid>,
}

/// Why a recipient is rejected, for good or for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecipientRejection {
    /// The domain is not served here.
    NotServed,
    /// There is no such mailbox, or its address is reserved.
    Unknown,
    /// The tenant is suspended.
    Suspended,
    /// The local part is not ASCII, and the domain is a system domain.
    NonAscii,
    /// The declared size exceeds what is left of the quota.
    MailboxFull,
    /// The part of the storage for its mail is full: that of tenants, or that of mail without a tenant.
    StoreFull,
    /// The client sent too much mail to the recipient or its tenant.
    PeerRate,
    /// All clients together sent too much mail to the recipient or its tenant, and this one more than its share.
    TotalRate,
    /// Postgres does not answer.
    Unavailable,
}

impl RecipientRejection {
    /// Whether it tells a client that guesses addresses that there is none.
    pub(crate) fn denies_address(self) -> bool {
        matches!(self, Self::NotServed | Self::Unknown | Self::Suspended)
    }
}
