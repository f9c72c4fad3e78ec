//! A mail that a session received, and the outcome of its delivery.

use tempmail_model::trace::Protocol;

use super::recipient::AcceptedRecipient;
use crate::memory::MemoryPermit;
use crate::peer::Client;

/// A mail as a session received it.
#[derive(Debug)]
pub(crate) struct ReceivedMail {
    /// The client.
    pub(crate) client: Client,
    /// The client's name from EHLO or HELO, sanitized for the trace field.
    pub(crate) hello: String,
    /// The protocol, for the trace field.
    pub(crate) protocol: Protocol,
    /// Reverse-path, "" for the null one.
    pub(crate) sender: String,
    /// At least one, without duplicates.
    pub(crate) recipients: Vec<AcceptedRecipient>,
    /// The data, dots unstuffed, lines ending in CRLF, without the terminator.
    pub(crate) data: Vec<u8>,
    /// Memory of `data`, released when the delivery is over.
    pub(crate) memory: MemoryPermit,
}

/// The outcome of a delivery, for all recipients of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryOutcome {
    /// Committed to disk for every recipient: 250.
    Stored,
    /// Postgres is unavailable or busy: 451 4.3.0.
    Unavailable,
    /// It does not fit into a mailbox, an address or a tenant: 452 4.2.2.
    OverQuota,
    /// The part of the storage for tenants has no more for that of a recipient: 452 4.3.1.
    StoreFull,
    /// The client sent too much mail to a recipient or its tenant: 450 4.7.1.
    PeerRate,
    /// All clients together sent too much mail to a recipient or its tenant, and this one more than its share:
    /// 450 4.2.1.
    TotalRate,
    /// A recipient was removed after its RCPT: 451 4.2.1, so that each gets a reply of its own
    /// when the client tries again.
    RecipientsChanged,
    /// Postgres rejects the content: 554 5.6.0.
    Rejected,
}
