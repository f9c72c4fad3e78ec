//! What sends requests: HTTP, or a router of the same process.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Request, StatusCode};

/// An answer with its body.
#[derive(Debug)]
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Header fields.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum TransportError {
    /// There is no connection, or it was cut.
    Unreachable {
        /// What failed.
        reason: String,
        /// Whether there was a connection.
        connected: bool,
    },
    /// The body is larger than the transport reads.
    TooLarge {
        /// Bytes that it reads.
        limit: usize,
    },
}

/// Sends requests of the token API.
pub trait Transport: Send + Sync {
    /// Sends a request, whose URI is the path and query below the base URL, and reads the answer. A future that is
    /// dropped ends the request.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Answer, TransportError>>;
}
