//! SMTP without I/O: bytes in, in any split; replies and actions out. RFC 5321 with
//! PIPELINING (2920), SIZE (1870), 8BITMIME (6152), SMTPUTF8 (6531), CHUNKING (3030),
//! ENHANCEDSTATUSCODES (2034), STARTTLS (3207) and LIMITS (9422); in a sink AUTH (4954).

mod auth;
mod command;
mod data;
pub(crate) mod reply;
mod session;

use std::net::IpAddr;

use tempmail_admission::Client;
use tempmail_model::address::RecipientAddress;
use tempmail_model::trace::Protocol;
use uuid::Uuid;

use self::data::MessageData;
use crate::memory::{MessageMemory, TenantKey};

pub(crate) use data::DataLimits;
pub(crate) use reply::Reply;
pub(crate) use session::{Action, AwaitedInput, Session, SessionSettings};

/// Who is at the other end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its address, as trace fields name it.
    pub(crate) address: IpAddr,
    /// What limits by peer count it as; `None` if it is exempt from them (`smtp.unlimited_networks`).
    pub(crate) client: Option<Client>,
}

/// An open mail transaction (RFC 5321 3.3), from MAIL to the end of the data.
#[derive(Debug)]
struct Transaction {
    sender: String,
    utf8: bool,
    /// SIZE that MAIL declared.
    size: Option<u64>,
    /// Accepted recipients, without duplicates.
    recipients: Vec<AcceptedRecipient>,
    /// Whether a recipient was rejected for now only.
    deferred: bool,
    /// The message, once BDAT has started it.
    chunks: Option<MessageData>,
}

impl Transaction {
    fn new(sender: String, utf8: bool, size: Option<u64>) -> Self {
        Self { sender, utf8, size, recipients: Vec::new(), deferred: false, chunks: None }
    }

    /// The reply to DATA or BDAT without an accepted recipient: a temporary one if the client should
    /// try a recipient again.
    fn no_recipients_reply(&self) -> Reply {
        if self.deferred { reply::RECIPIENTS_DEFERRED } else { reply::NO_RECIPIENTS }
    }

    /// Adds a recipient unless it is a duplicate.
    fn add(&mut self, recipient: AcceptedRecipient) {
        if self.recipients.iter().all(|known| known.address != recipient.address) {
            self.recipients.push(recipient);
        }
    }

    /// The tenants of its recipients.
    fn tenants(&self) -> Vec<TenantKey> {
        self.recipients.iter().map(|recipient| recipient.tenant).collect()
    }
}

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
    /// All clients together sent too much mail to the recipient or its tenant for what this one sent.
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

/// A mail as a session received it.
#[derive(Debug)]
pub(crate) struct ReceivedMail {
    /// Who sent it.
    pub(crate) peer: Peer,
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
    pub(crate) memory: MessageMemory,
}

/// The outcome of a delivery, for all recipients of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryOutcome {
    /// Committed to disk for every recipient: 250.
    Stored,
    /// Postgres is unavailable or busy: 451 4.3.0.
    Unavailable,
    /// Too many large mails are being stored: 451 4.3.2.
    Busy,
    /// It does not fit into a mailbox, an address or a tenant: 452 4.2.2.
    OverQuota,
    /// The part of the storage for tenants has no more for that of a recipient: 452 4.3.1.
    StoreFull,
    /// The client sent too much mail to a recipient or its tenant: 450 4.7.1.
    PeerRate,
    /// All clients together sent too much mail to a recipient or its tenant for what this one sent: 450 4.2.1.
    TotalRate,
    /// A recipient was removed after its RCPT: 451 4.2.1, so that each gets a reply of its own
    /// when the client tries again.
    RecipientsChanged,
    /// Postgres rejects the content: 554 5.6.0.
    Rejected,
}
