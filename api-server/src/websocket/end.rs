//! Why a socket ends, and what its client is told.

use tempmail_store::StoreError;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::message;
use crate::error::StoreFault;

/// Why a client is refused: the `error` that it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The JWT is malformed, of something else, or has ended.
    InvalidToken,
    /// No authentication in time, or a message where none is due.
    InvalidAuthMessage,
    /// The mailbox has as many sockets as it may.
    TooManyConnections,
    /// The mailbox's tenant is suspended.
    AccountDisabled,
    /// Postgres is away, so nobody can be let in.
    Unavailable,
    /// Our own fault; logged.
    Internal,
}

impl Refusal {
    /// The published code.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::InvalidToken => "invalid_token",
            Self::InvalidAuthMessage => "invalid_auth_message",
            Self::TooManyConnections => "too_many_connections",
            Self::AccountDisabled => "account_disabled",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal_error",
        }
    }

    fn close_code(self) -> CloseCode {
        match self {
            Self::Unavailable => CloseCode::Again,
            Self::Internal => CloseCode::Error,
            _ => CloseCode::Policy,
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match StoreFault::from(error) {
            StoreFault::Unavailable => Self::Unavailable,
            StoreFault::Internal => Self::Internal,
        }
    }
}

/// How a socket ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The client closed; the answer to that is queued.
    Closed,
    /// The connection is gone.
    Gone,
    /// The client has read nothing for too long.
    Stalled,
    /// The client does not answer pings.
    NoPong,
    /// What the client sends is no WebSocket's; the code says what is wrong.
    Broken(CloseCode),
    /// The client is refused.
    Refused(Refusal),
    /// The process drains.
    Draining,
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl End {
    /// Its name in the metrics.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Gone => "gone",
            Self::Stalled => "stalled",
            Self::NoPong => "no_pong",
            Self::Broken(_) => "protocol_error",
            Self::Refused(refusal) => refusal.code(),
            Self::Draining => "draining",
        }
    }

    /// Whether nothing that is sent can arrive.
    pub(super) fn is_deaf(&self) -> bool {
        matches!(self, Self::Gone | Self::Stalled)
    }

    /// What the client is sent last.
    pub(super) fn last_words(&self) -> Vec<Message> {
        let error = match self {
            Self::Refused(refusal) => Some(message::error(*refusal)),
            _ => None,
        };
        let code = match self {
            Self::Closed | Self::Gone | Self::Stalled => None,
            Self::NoPong => Some(CloseCode::Policy),
            Self::Broken(code) => Some(*code),
            Self::Refused(refusal) => Some(refusal.close_code()),
            Self::Draining => Some(CloseCode::Away),
        };
        let reason = self.reason();
        let close = code.map(|code| Message::Close(Some(CloseFrame { code, reason: reason.into() })));
        error.into_iter().chain(close).collect()
    }
}
