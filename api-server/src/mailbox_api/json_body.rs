//! Request bodies: one JSON object of at most 64 KiB, within its time.

use std::time::Duration;

use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::server::BODY_MAX;
use crate::state::AppState;

/// The object that a request's body is. Fields nobody asks for are ignored.
pub(super) struct JsonObject(Map<String, Value>);

impl JsonObject {
    /// A field that is to be a string.
    ///
    /// # Errors
    /// [`ApiError::InvalidRequest`], naming the field.
    pub(super) fn text(&mut self, field: &str) -> Result<String, ApiError> {
        match self.0.remove(field) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(ApiError::InvalidRequest(format!("`{field}` must be a string.").into())),
            None => Err(ApiError::InvalidRequest(format!("`{field}` is missing.").into())),
        }
    }

    fn read(octets: &[u8]) -> Result<Self, ApiError> {
        match serde_json::from_slice(octets) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(ApiError::InvalidRequest("The body must be a JSON object.".into())),
            Err(error) => {
                let place =
                    format!("The body is not valid JSON (line {}, column {}).", error.line(), error.column());
                Err(ApiError::InvalidRequest(place.into()))
            }
        }
    }
}

impl FromRequest<AppState> for JsonObject {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            return Err(ApiError::UnsupportedMediaType);
        }
        let time = Duration::from_secs(state.config.http.body_seconds);
        let body = Limited::new(request.into_body(), BODY_MAX).collect();
        let body = tokio::time::timeout(time, body).await.map_err(|_late| ApiError::RequestTimeout)?;
        match body {
            Ok(body) => Self::read(&body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(ApiError::PayloadTooLarge),
            Err(_) => Err(ApiError::InvalidRequest("The body broke off.".into())),
        }
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
