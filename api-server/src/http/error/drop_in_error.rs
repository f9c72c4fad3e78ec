//! Errors of drop-in surfaces.

use std::marker::PhantomData;

use axum::response::{IntoResponse, Response};
use tempmail_model::surface::DropInSurface;

use super::api::ApiError;

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

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::StatusCode;
    use axum::http::header::WWW_AUTHENTICATE;
    use serde_json::{Value, json};

    use super::*;

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
