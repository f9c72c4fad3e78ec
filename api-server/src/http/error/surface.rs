//! The form of an error answer on each surface.

use std::time::Duration;

use axum::Json;
use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use super::code::Code;
use super::refusal::Refusal;

/// Which form of error a path answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// `/api`, `/pro/api` and every path outside the surfaces.
    Api,
    /// `/v1`.
    V1,
}

impl Surface {
    /// The surface of a request path.
    pub(crate) fn of_path(path: &str) -> Self {
        if path == "/v1" || path.starts_with("/v1/") { Self::V1 } else { Self::Api }
    }

    /// The error answer of this surface; `message` is dropped where the form has none.
    pub(crate) fn error_response(self, (status, code): Code, message: &str) -> Response {
        let body = match self {
            Self::Api => json!({"error": code, "message": message}),
            Self::V1 => json!({"error": code}),
        };
        let mut response = (status, Json(body)).into_response();
        response.extensions_mut().insert(Refusal::of((status, code)));
        if status == StatusCode::UNAUTHORIZED
            && let Some(challenge) = self.challenge(code)
        {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if status == StatusCode::REQUEST_TIMEOUT {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn challenge(self, code: &str) -> Option<&'static str> {
        match (self, code) {
            (Self::Api, "authentication_required") => Some("Bearer realm=\"tempmail\""),
            (Self::Api, "invalid_token") => Some("Bearer realm=\"tempmail\", error=\"invalid_token\""),
            (Self::V1, _) => Some("ApiKey realm=\"tempmail\", header=\"x-api-token\""),
            _ => None,
        }
    }
}

/// Sets `Retry-After`, in whole seconds and at least one.
pub(super) fn with_retry_after(mut response: Response, wait: Duration) -> Response {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    response
}
