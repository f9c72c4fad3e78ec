//! Request bodies: one JSON object of at most 64 KiB, received within `http.body_seconds`.

use std::time::Duration;

use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde_json::{Map, Value};
use tempmail_runtime::config::Http;

use super::error::{ApiError, Surface};

/// Bytes of a request body.
pub(crate) const BODY_MAX: usize = 64 << 10;

/// The JSON object in a request's body. Unknown fields are ignored.
#[derive(Debug)]
pub(crate) struct JsonObject(Map<String, Value>);

/// What is wrong with a body.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the body is not declared as JSON")]
    UnsupportedMediaType,
    #[error("the body is too large")]
    TooLarge,
    #[error("the body did not arrive in time")]
    Timeout,
    #[error("The body is incomplete.")]
    Incomplete,
    #[error("The body is not valid JSON (line {line}, column {column}).")]
    NotJson { line: usize, column: usize },
    #[error("The body must be a JSON object.")]
    NotAnObject,
    #[error("`{field}` is missing.")]
    Missing { field: &'static str },
    #[error("`{field}` must be {expected}.")]
    Invalid { field: &'static str, expected: &'static str },
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::UnsupportedMediaType => Self::UnsupportedMediaType,
            BodyError::TooLarge => Self::PayloadTooLarge,
            BodyError::Timeout => Self::RequestTimeout,
            other => Self::InvalidRequest(other.to_string().into()),
        }
    }
}

impl JsonObject {
    /// A field that must be a string.
    ///
    /// # Errors
    /// The field is missing or not a string.
    pub(crate) fn text(&mut self, field: &'static str) -> Result<String, BodyError> {
        self.take(field).ok_or(BodyError::Missing { field }).and_then(|value| match value {
            Value::String(text) => Ok(text),
            _ => Err(BodyError::Invalid { field, expected: "a string" }),
        })
    }

    /// A field that must be a boolean; `false` where it is missing.
    ///
    /// # Errors
    /// The field is not a boolean.
    pub(crate) fn flag(&mut self, field: &'static str) -> Result<bool, BodyError> {
        match self.take(field) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(BodyError::Invalid { field, expected: "true or false" }),
        }
    }

    /// A field that may be missing or `null`.
    pub(crate) fn optional(&mut self, field: &'static str) -> Option<Value> {
        self.take(field).filter(|value| !value.is_null())
    }

    /// A field that may be missing or `null`, and else must be an object.
    ///
    /// # Errors
    /// The field is not an object.
    pub(crate) fn optional_object(&mut self, field: &'static str) -> Result<Self, BodyError> {
        match self.optional(field) {
            None => Ok(Self(Map::new())),
            Some(Value::Object(fields)) => Ok(Self(fields)),
            // PHP writes an array without entries so.
            Some(Value::Array(items)) if items.is_empty() => Ok(Self(Map::new())),
            Some(_) => Err(BodyError::Invalid { field, expected: "an object" }),
        }
    }

    /// A field of any type; `None` where it is missing. `null` is a value.
    pub(crate) fn take(&mut self, field: &'static str) -> Option<Value> {
        self.0.remove(field)
    }

    fn parse(json: &[u8]) -> Result<Self, BodyError> {
        match serde_json::from_slice(json) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(BodyError::NotAnObject),
            Err(error) => Err(BodyError::NotJson { line: error.line(), column: error.column() }),
        }
    }

    async fn receive(request: Request, http: &Http) -> Result<Self, BodyError> {
        Self::parse(&receive_json(request, http).await?)
    }

    /// The object in a body; one without fields where there is no body.
    ///
    /// # Errors
    /// [`BodyError`].
    pub(crate) async fn receive_optional(request: Request, http: &Http) -> Result<Self, BodyError> {
        let is_json = is_json(request.headers());
        let body = without_byte_order_mark(receive(request, http).await?);
        if body.is_empty() {
            return Ok(Self(Map::new()));
        }
        if !is_json {
            return Err(BodyError::UnsupportedMediaType);
        }
        Self::parse(&body)
    }
}

impl<S: AsRef<Http> + Send + Sync> FromRequest<S> for JsonObject {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let surface = Surface::of_path(request.uri().path());
        let received = Self::receive(request, state.as_ref()).await;
        received.map_err(|error| ApiError::from(error).into_response_on(surface))
    }
}

/// The body of a request, which is declared as JSON.
///
/// # Errors
/// It is not, is larger than [`BODY_MAX`], or does not arrive in time or in full.
pub(crate) async fn receive_json(request: Request, http: &Http) -> Result<Bytes, BodyError> {
    if !is_json(request.headers()) {
        return Err(BodyError::UnsupportedMediaType);
    }
    receive(request, http).await.map(without_byte_order_mark)
}

/// JSON behind a byte order mark, which some programs write before UTF-8 and a receiver may skip (RFC 8259 8.1).
fn without_byte_order_mark(body: Bytes) -> Bytes {
    if body.starts_with(b"\xef\xbb\xbf") { body.slice(3..) } else { body }
}

/// A whole body.
async fn receive(request: Request, http: &Http) -> Result<Bytes, BodyError> {
    let limit = Duration::from_secs(http.body_seconds);
    let body = Limited::new(request.into_body(), BODY_MAX).collect();
    match tokio::time::timeout(limit, body).await.map_err(|_elapsed| BodyError::Timeout)? {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge),
        Err(_) => Err(BodyError::Incomplete),
    }
}

/// Whether a request's body is declared as JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers).eq_ignore_ascii_case("application/json")
}

/// The declared media type of a body, without parameters.
fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or("").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_is_wrong_without_quoting_the_body() {
        let message =
            |body: &[u8]| match JsonObject::parse(body).and_then(|mut object| object.text("address")) {
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
    fn accepts_only_application_json() {
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
