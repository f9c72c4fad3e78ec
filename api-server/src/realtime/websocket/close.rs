//! Why a socket closes, and what the client is sent last.

use tempmail_store::StoreError;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::http::error::{ApiError, StoreFailure};

/// Why a socket closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// The client closed; the answer to its close frame is queued.
    ClosedByClient,
    /// The connection is lost.
    ConnectionLost,
    /// The client has read nothing for too long.
    Stalled,
    /// The client does not answer pings.
    NoPong,
    /// The client violates the protocol; the code says how.
    ProtocolError(CloseCode),
    /// The client is rejected.
    Rejected(SocketRejection),
    /// The process drains.
    Draining,
}

impl From<SocketRejection> for CloseReason {
    fn from(rejection: SocketRejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl CloseReason {
    /// The label in the metrics, and the reason in the close frame.
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::ClosedByClient => "closed",
            Self::ConnectionLost => "gone",
            Self::Stalled => "stalled",
            Self::NoPong => "no_pong",
            Self::ProtocolError(_) => "protocol_error",
            Self::Rejected(rejection) => rejection.code(),
            Self::Draining => "draining",
        }
    }

    /// Whether nothing can be sent to the client any more.
    pub(super) fn is_unreachable(&self) -> bool {
        matches!(self, Self::ConnectionLost | Self::Stalled)
    }

    /// The last messages to the client: the error, if it is rejected, and the close frame.
    pub(super) fn closing_frames(&self) -> Vec<Message> {
        let error = match self {
            Self::Rejected(rejection) => Some(rejection.message()),
            _ => None,
        };
        let code = match self {
            Self::ClosedByClient | Self::ConnectionLost | Self::Stalled => None,
            Self::NoPong => Some(CloseCode::Policy),
            Self::ProtocolError(code) => Some(*code),
            Self::Rejected(rejection) => Some(rejection.close_code()),
            Self::Draining => Some(CloseCode::Away),
        };
        let reason = self.label();
        let close = code.map(|code| Message::Close(Some(CloseFrame { code, reason: reason.into() })));
        error.into_iter().chain(close).collect()
    }
}

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

    /// What the client is sent before the close frame.
    fn message(self) -> Message {
        Message::text(format!(r#"{{"error":"{}"}}"#, self.code()))
    }

    fn close_code(self) -> CloseCode {
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

impl From<ApiError> for SocketRejection {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::InvalidToken => Self::InvalidToken,
            ApiError::AccountDisabled => Self::AccountDisabled,
            ApiError::Unavailable => Self::Unavailable,
            _ => Self::Internal,
        }
    }
}
