//! The form of an error answer on each surface.

use std::time::Duration;

use axum::Json;
use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use tempmail_model::surface::DropInSurface;

use super::code::Code;
use super::drop_in;
use super::refusal::Refusal;

/// Where the Model Context Protocol is served.
pub(crate) const MCP_PATHS: [&str; 2] = ["/mcp", "/mcp/"];

/// Which form of error a path answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// `/api`, `/pro/api` and every path outside the surfaces.
    Api,
    /// `/v1`.
    V1,
}

/// The form of an error answer: of the interface or the Model Context Protocol, by its path, or of the drop-in surface
/// whose listener it came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    Interface(Surface),
    Mcp,
    DropIn(DropInSurface),
}

impl From<Surface> for ErrorForm {
    fn from(surface: Surface) -> Self {
        Self::Interface(surface)
    }
}

impl From<DropInSurface> for ErrorForm {
    fn from(surface: DropInSurface) -> Self {
        Self::DropIn(surface)
    }
}

impl Surface {
    /// The surface of a request path.
    pub(crate) fn of_path(path: &str) -> Self {
        if path == "/v1" || path.starts_with("/v1/") { Self::V1 } else { Self::Api }
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

impl ErrorForm {
    /// The form for a path of the interface, or of the Model Context Protocol.
    pub(crate) fn of_path(path: &str) -> Self {
        if MCP_PATHS.contains(&path) { Self::Mcp } else { Surface::of_path(path).into() }
    }

    fn challenge(self, code: &str) -> Option<&'static str> {
        match self {
            Self::Interface(surface) => surface.challenge(code),
            // A token is accepted there as on `/api`.
            Self::Mcp => Surface::Api.challenge(code),
            Self::DropIn(_) => None,
        }
    }

    /// The error answer in this form; `message` is dropped where the form has none.
    pub(crate) fn error_response(self, (status, code): Code, message: &str) -> Response {
        let mut response = match self {
            Self::Interface(Surface::Api) => {
                (status, Json(json!({"error": code, "message": message}))).into_response()
            }
            Self::Interface(Surface::V1) => (status, Json(json!({"error": code}))).into_response(),
            Self::Mcp => (status, Json(tempmail_mcp::transport_error(code, message))).into_response(),
            Self::DropIn(surface) => drop_in::error_response(surface, (status, code), message),
        };
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
}

/// Sets `Retry-After`, in whole seconds and at least one.
pub(super) fn with_retry_after(mut response: Response, wait: Duration) -> Response {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    response
}
