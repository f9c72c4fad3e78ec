//! Why a client is rejected.

use tempmail_store::StoreError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::http::error::StoreFailure;

/// The `error` that a client is sent before the socket closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketRejection {
    /// The JWT is malformed, not a mailbox JWT, or no longer accepted.
    InvalidToken,
    /// No authentication in time, or a message where none is expected.
    InvalidAuthMessage,
    /// The mailbox has as many sockets as it may.
    TooManyConnections,
    /// The mailbox's tenant is suspended.
    AccountDisabled,
    /// Postgres is unavailable, so the client can't be authenticated.
    Unavailable,
    /// An internal error; logged.
    Internal,
}

impl SocketRejection {
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

    pub(super) fn close_code(self) -> CloseCode {
        match self {
            Self::Unavailable => CloseCode::Again,
            Self::Internal => CloseCode::Error,
            _ => CloseCode::Policy,
        }
    }
}

impl From<StoreError> for SocketRejection {
    fn from(error: StoreError) -> Self {
        match StoreFailure::from(error) {
            StoreFailure::Unavailable => Self::Unavailable,
            StoreFailure::Internal => Self::Internal,
        }
    }
}
