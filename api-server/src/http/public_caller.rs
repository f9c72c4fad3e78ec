//! The caller of a route that needs no credential.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;

use super::client::Client;
use super::error::{ApiError, Surface};
use super::rate_limit::{RateLimitHeaders, RequestLimits};

/// A client without a credential. Extracting it counts the request against the client's rate: requests with a
/// credential count by that, so that nobody is refused for what others behind its address do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublicCaller {
    pub(crate) client: Client,
}

impl<S: AsRef<RequestLimits> + Send + Sync> FromRequestParts<S> for PublicCaller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let surface = Surface::of_path(parts.uri.path());
        let client = parts.extensions.get::<Client>().copied();
        // The middleware has put it there.
        let client = client.ok_or_else(|| ApiError::Internal.into_response_on(surface))?;
        count(client, state.as_ref(), parts).await.map_err(|error| error.into_response_on(surface))?;
        Ok(Self { client })
    }
}

/// Counts a request of a client without a credential against its rate.
///
/// # Errors
/// [`ApiError::RateLimitExceeded`].
pub(crate) async fn count(client: Client, limits: &RequestLimits, parts: &Parts) -> Result<(), ApiError> {
    match limits.count_public(client).await {
        Some(decision) => RateLimitHeaders::enforce_in(&parts.extensions, "client", decision),
        None => Ok(()),
    }
}
