//! The form of errors on `/v1`.

use axum::response::{IntoResponse, Response};

use super::api::ApiError;
use super::surface::Surface;

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
}
