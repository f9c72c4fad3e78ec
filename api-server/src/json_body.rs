//! Request bodies: one JSON object of at most 64 KiB, within its time.

use std::time::Duration;

use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde_json::{Map, Value};

use crate::error::{ApiError, Surface, V1Error};
use crate::server::BODY_MAX;
use crate::state::AppState;

/// The object that a request's body is. Fields nobody asks for are ignored.
#[derive(Debug)]
pub(crate) struct JsonObject(Map<String, Value>);

/// What is wrong with a body. Each surface has its own words for it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the body is not said to be JSON")]
    UnsupportedMediaType,
    #[error("the body is over its bound")]
    TooLarge,
    #[error("the body did not arrive in time")]
    Late,
    #[error("The body broke off.")]
    BrokenOff,
    #[error("The body is not valid JSON (line {line}, column {column}).")]
    NotJson { line: usize, column: usize },
    #[error("The body must be a JSON object.")]
    NotAnObject,
    #[error("`{field}` is missing.")]
    Missing { field: &'static str },
    #[error("`{field}` must be {expected}.")]
    Wrong { field: &'static str, expected: &'static str },
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::UnsupportedMediaType => Self::UnsupportedMediaType,
            BodyError::TooLarge => Self::PayloadTooLarge,
            BodyError::Late => Self::RequestTimeout,
            other => Self::InvalidRequest(other.to_string().into()),
        }
    }
}

impl From<BodyError> for V1Error {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::UnsupportedMediaType => Self::UnsupportedMediaType,
            BodyError::TooLarge => Self::PayloadTooLarge,
            BodyError::Late => Self::RequestTimeout,
            _ => Self::InvalidRequest,
        }
    }
}

impl JsonObject {
    /// A field that is to be a string.
    ///
    /// # Errors
    /// It is missing or something else.
    pub(crate) fn text(&mut self, field: &'static str) -> Result<String, BodyError> {
        self.take(field).ok_or(BodyError::Missing { field }).and_then(|value| match value {
            Value::String(text) => Ok(text),
            _ => Err(BodyError::Wrong { field, expected: "a string" }),
        })
    }

    /// A field as it is; `None` where it is missing. `null` is a value.
    pub(crate) fn take(&mut self, field: &'static str) -> Option<Value> {
        self.0.remove(field)
    }

    fn read(octets: &[u8]) -> Result<Self, BodyError> {
        match serde_json::from_slice(octets) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(BodyError::NotAnObject),
            Err(error) => Err(BodyError::NotJson { line: error.line(), column: error.column() }),
        }
    }

    async fn receive(request: Request, state: &AppState) -> Result<Self, BodyError> {
        if !is_json(request.headers()) {
            return Err(BodyError::UnsupportedMediaType);
        }
        let time = Duration::from_secs(state.config.http.body_seconds);
        let body = Limited::new(request.into_body(), BODY_MAX).collect();
        match tokio::time::timeout(time, body).await.map_err(|_late| BodyError::Late)? {
            Ok(body) => Self::read(&body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge),
            Err(_) => Err(BodyError::BrokenOff),
        }
    }
}

impl FromRequest<AppState> for JsonObject {
    type Rejection = Response;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Response> {
        let surface = Surface::of(request.uri().path());
        Self::receive(request, state).await.map_err(|error| match surface {
            Surface::Api => ApiError::from(error).into_response(),
            Surface::V1 => V1Error::from(error).into_response(),
        })
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let media_type = value.split(';').next().unwrap_or("").trim();
    media_type.eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_and_never_quoted() {
        let message = |body: &[u8]| match JsonObject::read(body).and_then(|mut object| object.text("address"))
        {
            Ok(text) => text,
            Err(error) => error.to_string(),
        };
        assert_eq!(message(br#"{"address": "a", "other": [1]}"#), "a");
        assert_eq!(message(br#"{"address": 7}"#), "`address` must be a string.");
        assert_eq!(message(br#"{"address": null}"#), "`address` must be a string.");
        assert_eq!(message(b"{}"), "`address` is missing.");
        assert_eq!(message(b"[]"), "The body must be a JSON object.");
        assert_eq!(message(b"{\"address\": \xff}"), "The body is not valid JSON (line 1, column 13).");
        assert!(message(&b"[".repeat(60_000)).starts_with("The body is not valid JSON"));
    }

    #[test]
    fn only_json_is_json() {
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, value.parse().unwrap());
            is_json(&headers)
        };
        assert!(with("application/json") && with("Application/JSON; charset=utf-8"));
        assert!(
            !with("text/json") && !with("application/x-www-form-urlencoded") && !is_json(&HeaderMap::new())
        );
    }
}
