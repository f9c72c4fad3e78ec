//! The caller with a live API token.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use jiff::Timestamp;
use tempmail_model::token::{TokenHash, TokenKind};
use tempmail_store::ApiToken;
use uuid::Uuid;

use super::{Refusal, check};
use crate::error::V1Error;
use crate::limit::RateReport;
use crate::state::AppState;

/// The header that carries a live token.
const HEADER: &str = "x-api-token";
/// The query parameter that may carry it instead, where streams are asked for.
const PARAMETER: &str = "token";

/// A tenant that a `tm_live_` token was presented for. Its requests a second are counted:
/// whoever extracts it needs no further limit.
#[derive(Debug, Clone, Copy)]
pub struct LiveCaller {
    /// The token: waits are counted by it.
    pub token: Uuid,
    /// Its tenant, which is not suspended.
    pub tenant: Uuid,
    /// When the token expires.
    pub expires_at: Option<Timestamp>,
}

impl LiveCaller {
    /// Asks again whether the token may act, and until when.
    ///
    /// # Errors
    /// 401, 403 or 440 as for a request that came now; or Postgres is away.
    pub(crate) async fn recheck(&mut self, state: &AppState) -> Result<(), V1Error> {
        let token = state.store.find_token_by_id(TokenKind::Live, self.token).await?;
        let token = token.ok_or(V1Error::InvalidToken)?;
        admit(&token, state.clock.now())?;
        self.expires_at = token.expires_at;
        Ok(())
    }
}

impl FromRequestParts<AppState> for LiveCaller {
    type Rejection = V1Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, V1Error> {
        let presented = in_header(&parts.headers)?.ok_or(V1Error::AuthenticationRequired)?;
        of_token(presented, parts, state).await
    }
}

/// A [`LiveCaller`] whose token may be in the query: EventSource sends no header of its own.
#[derive(Debug, Clone, Copy)]
pub struct StreamCaller(pub LiveCaller);

impl FromRequestParts<AppState> for StreamCaller {
    type Rejection = V1Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, V1Error> {
        let presented = anywhere(in_header(&parts.headers)?, in_query(&parts.uri)?)?;
        Ok(Self(of_token(&presented, parts, state).await?))
    }
}

async fn of_token(presented: &str, parts: &Parts, state: &AppState) -> Result<LiveCaller, V1Error> {
    let hash = TokenHash::from_presented(TokenKind::Live, presented).ok_or(V1Error::InvalidToken)?;
    let token = find(hash, state).await?;
    let decision = state.limits.of_token(token.id).await;
    RateReport::put(&parts.extensions, "token", decision);
    if !decision.allowed {
        return Err(V1Error::RateLimitExceeded { retry_after: decision.retry_after });
    }
    state.touches.token(&token, state.clock.now());
    Ok(LiveCaller { token: token.id, tenant: token.tenant, expires_at: token.expires_at })
}

/// What the one header says; an empty one is none.
fn in_header(headers: &HeaderMap) -> Result<Option<&str>, V1Error> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(V1Error::InvalidToken);
    }
    let text = value.to_str().map_err(|_not_ascii| V1Error::InvalidToken)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// What the one parameter says; an empty one is none.
fn in_query(uri: &Uri) -> Result<Option<String>, V1Error> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|_malformed| V1Error::AuthenticationRequired)?;
    let mut values = pairs.into_iter().filter(|(name, _)| name == PARAMETER).map(|(_, value)| value);
    let value = values.next();
    if values.next().is_some() {
        return Err(V1Error::InvalidToken);
    }
    Ok(value.filter(|text| !text.is_empty()))
}

/// The token of either place; of both, if they say the same.
fn anywhere(header: Option<&str>, query: Option<String>) -> Result<String, V1Error> {
    match (header, query) {
        (Some(header), Some(query)) if header != query => Err(V1Error::InvalidToken),
        (_, Some(query)) => Ok(query),
        (Some(header), None) => Ok(header.to_owned()),
        (None, None) => Err(V1Error::AuthenticationRequired),
    }
}

async fn find(hash: TokenHash, state: &AppState) -> Result<ApiToken, V1Error> {
    let token = state.store.find_token(TokenKind::Live, hash).await?.ok_or(V1Error::InvalidToken)?;
    admit(&token, state.clock.now())?;
    Ok(token)
}

fn admit(token: &ApiToken, now: Timestamp) -> Result<(), V1Error> {
    check(token, now).map_err(|refusal| match refusal {
        Refusal::Revoked => V1Error::InvalidToken,
        Refusal::Expired => V1Error::SessionExpired,
        Refusal::Suspended => V1Error::AccountDisabled,
    })
}
