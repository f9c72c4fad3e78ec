//! Why a socket closes, and what the client is sent last.

use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::message;
use super::rejection::SocketRejection;

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
            Self::Rejected(rejection) => Some(message::error(*rejection)),
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
