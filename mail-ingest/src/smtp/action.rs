//! What a session requests from its connection.

use super::transaction::{PendingRecipient, ReceivedMail};

/// The result of [`Session::feed`](super::Session::feed).
#[derive(Debug)]
pub(crate) struct Step {
    /// Octets consumed from the front of the input.
    pub(crate) consumed: usize,
    /// What the connection has to do next.
    pub(crate) action: Action,
}

/// What the connection has to do before the session can continue.
#[derive(Debug)]
pub(crate) enum Action {
    /// Send the replies, then read more and feed it behind what was not consumed.
    Read,
    /// Send the replies, then feed again what was not consumed.
    Flush,
    /// Check the recipients and call
    /// [`Session::recipients_checked`](super::Session::recipients_checked) with the results in
    /// their order.
    CheckRecipients(Vec<PendingRecipient>),
    /// Deliver the mail and call [`Session::delivered`](super::Session::delivered).
    Deliver(Box<ReceivedMail>),
    /// Send the replies, do the TLS handshake, and continue with a new session.
    StartTls,
    /// Send the replies and close.
    Close,
}

/// The input that a session waits for, from which its deadline follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AwaitedInput {
    /// Commands and messages completed so far; a new count starts a new wait.
    pub(crate) completed: u64,
    /// Within message data: octets received since DATA or BDAT.
    pub(crate) data: Option<u64>,
}
