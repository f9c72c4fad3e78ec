//! The forms in which the surfaces publish an error.
//!
//! `/api` and `/pro/api` answer `{"error": code, "message": sentence}`, `/v1` answers `{"error": code}`. `/mcp` answers
//! errors of JSON-RPC with the same code and sentence. Drop-in surfaces answer as the clients of those services expect.

use std::marker::PhantomData;
use std::time::Duration;

use axum::Json;
use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tempmail_model::surface::DropInSurface;

use super::ApiError;
use super::code::{self, Code, RequestRefusal};

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
            Self::DropIn(surface) => drop_in_response(surface, (status, code), message),
        };
        response.extensions_mut().insert(RequestRefusal::of((status, code)));
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

/// An [`ApiError`] that is answered as on `/v1`: `{"error": code}` and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct V1Error(ApiError);

impl<E: Into<ApiError>> From<E> for V1Error {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for V1Error {
    fn into_response(self) -> Response {
        self.0.into_response_on(Surface::V1)
    }
}

/// A drop-in surface as a type, which its errors and callers are generic over.
pub(crate) trait DropIn: Send + Sync + 'static {
    /// The surface.
    const SURFACE: DropInSurface;
}

/// An [`ApiError`] that is answered in the form of the drop-in surface `S`.
#[derive(Debug)]
pub(crate) struct DropInError<S>(ApiError, PhantomData<fn() -> S>);

impl<S, E: Into<ApiError>> From<E> for DropInError<S> {
    fn from(error: E) -> Self {
        Self(error.into(), PhantomData)
    }
}

impl<S: DropIn> IntoResponse for DropInError<S> {
    fn into_response(self) -> Response {
        self.0.into_response_on(S::SURFACE)
    }
}

/// The error answer of a drop-in surface. It never asks for HTTP Basic, so that no browser keeps a token.
fn drop_in_response(surface: DropInSurface, error: Code, message: &str) -> Response {
    let status = status(surface, error);
    let message = message_on(surface, error).unwrap_or(message);
    let mut response = match surface {
        DropInSurface::Mailpit | DropInSurface::MailHog => (status, format!("{message}\n")).into_response(),
        DropInSurface::Mailosaur => (status, Json(mailosaur_body(status, error, message))).into_response(),
    };
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer realm=\"tempmail\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// The status that the clients of a surface know for an error.
fn status(surface: DropInSurface, error: Code) -> StatusCode {
    match surface {
        _ if error == code::SESSION_EXPIRED => StatusCode::UNAUTHORIZED,
        DropInSurface::Mailosaur => error.0,
        _ if error == code::EMAIL_EXPIRED => StatusCode::NOT_FOUND,
        _ => error.0,
    }
}

/// The sentence of an error, where that of the interface would not help here.
fn message_on(surface: DropInSurface, error: Code) -> Option<&'static str> {
    let missing = error == code::AUTHENTICATION_REQUIRED;
    let expired = error == code::SESSION_EXPIRED;
    match surface {
        _ if expired => Some("The token has expired; use another one."),
        DropInSurface::Mailosaur if missing => Some("Send a token of this surface as the API key."),
        _ if missing => {
            Some("Send a token of this surface as the password, or as `Authorization: Bearer <token>`.")
        }
        _ => None,
    }
}

fn mailosaur_body(status: StatusCode, (_, code): Code, message: &str) -> Value {
    if status == StatusCode::BAD_REQUEST {
        // Clients show the field in front of the description.
        let field = message.split('`').nth(1).unwrap_or_default();
        json!({"type": "ValidationError", "errors": [{"field": field, "detail": [{"description": message}]}]})
    } else {
        json!({"type": code, "message": message})
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn answers_with_the_code_alone() {
        for (error, status, expected) in [
            (ApiError::InvalidToken, 401, "invalid_token"),
            (ApiError::SessionExpired, 440, "session_expired"),
            (ApiError::TokenBusy, 429, "token_busy"),
            (ApiError::AddrBusy, 429, "addr_busy"),
            (ApiError::EmailExpired, 410, "email_expired"),
        ] {
            let response = V1Error::from(error).into_response();
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.headers()["content-type"], "application/json");
            assert_eq!(response.headers().contains_key("www-authenticate"), status == 401);
            assert_eq!(response.headers().contains_key("retry-after"), status == 429);
            let body = to_bytes(response.into_body(), 1024).await.unwrap();
            assert_eq!(body, format!("{{\"error\":\"{expected}\"}}"));
        }
    }

    async fn answer(surface: DropInSurface, error: ApiError) -> (u16, String, String) {
        let response = error.into_response_on(surface);
        let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        assert!(challenge.is_none_or(|challenge| challenge.starts_with("Bearer")));
        assert_eq!(challenge.is_some(), response.status() == StatusCode::UNAUTHORIZED);
        let media_type = response.headers()["content-type"].to_str().unwrap().to_owned();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 4096).await.unwrap();
        (status, media_type, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn answers_in_the_form_of_each_service() {
        let (status, media_type, body) = answer(DropInSurface::Mailpit, ApiError::EmailExpired).await;
        assert_eq!((status, media_type.as_str()), (404, "text/plain; charset=utf-8"));
        assert_eq!(body, "The message has expired or was deleted.\n");
        let (status, _, body) = answer(DropInSurface::Mailosaur, ApiError::EmailExpired).await;
        assert!(status == 410 && body.contains("email_expired"), "{body}");
        let wrong = ApiError::InvalidRequest("`server` is missing.".into());
        let (status, _, body) = answer(DropInSurface::Mailosaur, wrong).await;
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &body["errors"][0]["field"]), (400, &json!("server")));
        for surface in DropInSurface::ALL {
            assert_eq!(answer(surface, ApiError::SessionExpired).await.0, 401);
            assert_eq!(answer(surface, ApiError::AuthenticationRequired).await.0, 401);
            assert_eq!(answer(surface, ApiError::TokenBusy).await.0, 429);
        }
    }
}
