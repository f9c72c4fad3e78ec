//! The caller with a live API token.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use jiff::Timestamp;
use tempmail_model::token::TokenKind;
use uuid::Uuid;

use super::authenticator::{Authenticator, client_of};
use crate::http::error::{ApiError, V1Error};
use crate::http::rate_limit::RateLimitHeaders;

/// The header that carries a live token.
const HEADER: &str = "x-api-token";
/// The query parameter that may carry the token of a stream.
const PARAMETER: &str = "token";

/// The tenant of a `tm_live_` token. Extracting it counts the request against the token's rate: no
/// further limit is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LiveCaller {
    /// The token: open waits and streams count by it.
    pub(crate) token: Uuid,
    /// The tenant, which is not suspended.
    pub(crate) tenant: Uuid,
    /// When the token expires.
    pub(crate) expires_at: Option<Timestamp>,
}

impl<S: AsRef<Authenticator> + Send + Sync> FromRequestParts<S> for LiveCaller {
    type Rejection = V1Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, V1Error> {
        let presented = header_token(&parts.headers)?.ok_or(ApiError::AuthenticationRequired)?;
        Ok(authenticate(presented, parts, state.as_ref()).await?)
    }
}

/// A [`LiveCaller`] whose token may be in the query: EventSource can't set headers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamCaller(pub(crate) LiveCaller);

impl<S: AsRef<Authenticator> + Send + Sync> FromRequestParts<S> for StreamCaller {
    type Rejection = V1Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, V1Error> {
        let presented = one_of(header_token(&parts.headers)?, query_token(&parts.uri)?)?;
        Ok(Self(authenticate(&presented, parts, state.as_ref()).await?))
    }
}

async fn authenticate(presented: &str, parts: &Parts, auth: &Authenticator) -> Result<LiveCaller, ApiError> {
    let token = auth.find_token(client_of(parts)?, TokenKind::Live, presented).await?;
    let decision = auth.limits.count_live_token(token.id).await;
    RateLimitHeaders::enforce_in(&parts.extensions, "token", decision)?;
    auth.last_used.record_token(&token, auth.clock.now());
    Ok(LiveCaller { token: token.id, tenant: token.tenant, expires_at: token.expires_at })
}

/// The token in the header, given once; an empty one counts as missing.
fn header_token(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ApiError::InvalidToken);
    }
    let text = value.to_str().map_err(|_not_ascii| ApiError::InvalidToken)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// The token in the query, given once; an empty one counts as missing.
fn query_token(uri: &Uri) -> Result<Option<String>, ApiError> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|_malformed| ApiError::AuthenticationRequired)?;
    let mut values = pairs.into_iter().filter(|(name, _)| name == PARAMETER).map(|(_, value)| value);
    let value = values.next();
    if values.next().is_some() {
        return Err(ApiError::InvalidToken);
    }
    Ok(value.filter(|text| !text.is_empty()))
}

/// The token of the header or the query; both may carry the same one.
fn one_of(header: Option<&str>, query: Option<String>) -> Result<String, ApiError> {
    match (header, query) {
        (Some(header), Some(query)) if header != query => Err(ApiError::InvalidToken),
        (_, Some(query)) => Ok(query),
        (Some(header), None) => Ok(header.to_owned()),
        (None, None) => Err(ApiError::AuthenticationRequired),
    }
}
