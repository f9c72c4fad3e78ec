//! The outcome of a long-poll.

use tempmail_store::MessageRow;

/// How a long-poll ends without an error.
#[derive(Debug)]
pub(crate) enum WaitOutcome {
    /// There is mail.
    Mail {
        /// Newest first; at least one.
        messages: Vec<MessageRow>,
        /// Where to continue.
        position: i64,
    },
    /// Time is up, the server drains, or the scan reached its bound.
    Empty {
        /// Where to continue.
        position: i64,
    },
}
