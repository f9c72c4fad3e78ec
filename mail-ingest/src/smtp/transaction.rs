//! A mail transaction (RFC 5321 3.3): from MAIL to the end of the data.

use tempmail_model::address::RecipientAddress;

use super::data::MessageData;
use super::reply::{self, Reply};

/// What MAIL and RCPT said.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) sender: String,
    pub(super) utf8: bool,
    /// Declared SIZE.
    pub(super) size: Option<u64>,
    /// Accepted, each once.
    pub(super) recipients: Vec<RecipientAddress>,
    /// A recipient was refused for now, not for good.
    pub(super) deferred: bool,
    /// The message, once BDAT has begun it.
    pub(super) chunks: Option<MessageData>,
}

impl Transaction {
    pub(super) fn new(sender: String, utf8: bool, size: Option<u64>) -> Self {
        Self { sender, utf8, size, recipients: Vec::new(), deferred: false, chunks: None }
    }

    /// Answers data without a recipient. A client that sends it in the same flight must not take
    /// "try again" for "never".
    pub(super) fn no_recipients(&self) -> Reply {
        if self.deferred { reply::RECIPIENTS_DEFERRED } else { reply::NO_RECIPIENTS }
    }

    /// Adds a recipient; one that is there already is the same recipient.
    pub(super) fn add(&mut self, recipient: RecipientAddress) {
        if !self.recipients.contains(&recipient) {
            self.recipients.push(recipient);
        }
    }
}
