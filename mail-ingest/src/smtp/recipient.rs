//! Recipients between RCPT and the reply to it.

use tempmail_model::address::RecipientAddress;

/// A forward-path of RCPT that has yet to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PendingRecipient {
    /// An address in normal form.
    Address(RecipientAddress),
    /// `<postmaster>` without a domain: that of the default system domain (RFC 5321 4.5.1).
    Postmaster,
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
    /// Shared inboxes, or the installation, are full.
    StoreFull,
    /// Postgres does not answer.
    Unavailable,
}
