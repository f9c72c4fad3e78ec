//! Settings that all sessions share.

use tempmail_model::address::AddressSyntax;

use super::data::DataLimits;
use crate::memory::MemoryBudget;

/// Settings that all sessions of a server share.
#[derive(Debug)]
pub(crate) struct SessionSettings {
    /// The server's host name.
    pub(crate) hostname: String,
    /// Whether STARTTLS is offered.
    pub(crate) tls_offered: bool,
    /// Whether all mail is caught, as the client writes it: each path that can be parsed is a recipient, parameters of DSN
    /// (RFC 3461) are known, and AUTH is offered, which takes any password.
    pub(crate) catches_all: bool,
    /// Bounds of a message.
    pub(crate) data: DataLimits,
    /// Maximum recipients of a transaction.
    pub(crate) max_recipients: usize,
    /// Permanent rejections after which a session is closed; a stored mail resets their count.
    pub(crate) max_errors: u32,
    /// Memory for the message data of all sessions.
    pub(crate) memory: MemoryBudget,
}

impl SessionSettings {
    /// Which addresses can be recipients.
    pub(super) fn addresses(&self) -> AddressSyntax {
        if self.catches_all { AddressSyntax::Caught } else { AddressSyntax::Hosted }
    }

    /// The greeting, with its CRLF.
    pub(crate) fn greeting(&self) -> String {
        format!("220 {} ESMTP tempmail\r\n", self.hostname)
    }
}
