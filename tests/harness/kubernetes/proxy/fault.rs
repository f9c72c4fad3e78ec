//! Error responses of an API server.

use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::http::response::Builder;
use serde_json::{Value, json};

/// An error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiFault {
    /// 409 `Conflict`: the resource version of the request is not the newest.
    Conflict,
    /// 409 `AlreadyExists`.
    AlreadyExists,
    /// 410 `Expired`: the resource version of a list or a watch is too old.
    Expired,
    /// 422 `Invalid`.
    Invalid,
    /// 429 `TooManyRequests`, with `Retry-After` in seconds.
    TooManyRequests(u32),
    /// 500 `InternalError`.
    Internal,
}

impl ApiFault {
    /// Its status.
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Conflict | Self::AlreadyExists => StatusCode::CONFLICT,
            Self::Expired => StatusCode::GONE,
            Self::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooManyRequests(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Conflict => "Conflict",
            Self::AlreadyExists => "AlreadyExists",
            Self::Expired => "Expired",
            Self::Invalid => "Invalid",
            Self::TooManyRequests(_) => "TooManyRequests",
            Self::Internal => "InternalError",
        }
    }

    /// Head and body of the response.
    pub(super) fn response(self) -> (Builder, Value) {
        let mut head =
            hyper::Response::builder().status(self.status()).header(CONTENT_TYPE, "application/json");
        let mut status = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "message": "scheduled by a test",
            "reason": self.reason(),
            "code": self.status().as_u16(),
        });
        if let Self::TooManyRequests(seconds) = self {
            head = head.header(RETRY_AFTER, seconds);
            status["details"] = json!({ "retryAfterSeconds": seconds });
        }
        (head, status)
    }
}
