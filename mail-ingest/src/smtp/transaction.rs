//! A mail transaction (RFC 5321 3.3): from MAIL to the end of the data.

use super::data::MessageData;
use super::recipient::AcceptedRecipient;
use super::reply::{self, Reply};
use crate::memory::TenantKey;

/// An open mail transaction.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) sender: String,
    pub(super) utf8: bool,
    /// SIZE that MAIL declared.
    pub(super) size: Option<u64>,
    /// Accepted recipients, without duplicates.
    pub(super) recipients: Vec<AcceptedRecipient>,
    /// Whether a recipient was rejected for now only.
    pub(super) deferred: bool,
    /// The message, once BDAT has started it.
    pub(super) chunks: Option<MessageData>,
}

impl Transaction {
    pub(super) fn new(sender: String, utf8: bool, size: Option<u64>) -> Self {
        Self { sender, utf8, size, recipients: Vec::new(), deferred: false, chunks: None }
    }

    /// The reply to DATA or BDAT without an accepted recipient: a temporary one if the client should
    /// try a recipient again.
    pub(super) fn no_recipients_reply(&self) -> Reply {
        if self.deferred { reply::RECIPIENTS_DEFERRED } else { reply::NO_RECIPIENTS }
    }

    /// Adds a recipient unless it is a duplicate.
    pub(super) fn add(&mut self, recipient: AcceptedRecipient) {
        if self.recipients.iter().all(|known| known.address != recipient.address) {
            self.recipients.push(recipient);
        }
    }

    /// The tenants of its recipients.
    pub(super) fn tenants(&self) -> Vec<TenantKey> {
        self.recipients.iter().map(|recipient| recipient.tenant).collect()
    }
}
