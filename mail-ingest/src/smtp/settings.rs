//! Settings that all sessions share.

use super::data::DataLimits;
use crate::memory::MemoryBudget;

/// Settings that all sessions of a server share.
#[derive(Debug)]
pub(crate) struct SessionSettings {
    /// The server's host name.
    pub(crate) hostname: String,
    /// Whether STARTTLS is offered.
    pub(crate) tls_offered: bool,
    /// Whether AUTH is offered, which then takes any password.
    pub(crate) auth_offered: bool,
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
    /// The greeting, with its CRLF.
    pub(crate) fn greeting(&self) -> String {
        format!("220 {} ESMTP tempmail\r\n", self.hostname)
    }
}
