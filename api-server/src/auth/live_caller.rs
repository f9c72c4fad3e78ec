//! The caller with a live API token, and the one that may have a minted token instead.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use jiff::Timestamp;
use tempmail_client::LiveToken;
use tempmail_model::address::RecipientAddress;
use uuid::Uuid;

use super::authenticator::{Authenticator, client_of};
use super::bearer::bearer;
use crate::http::error::{ApiError, V1Error};
use crate::http::rate_limit::RateLimitHeaders;

/// The header that carries a live token.
const HEADER: &str = "x-api-token";
/// The query parameter that may carry the token of a stream.
const PARAMETER: &str = "token";

/// The tenant of a `tm_live_` token. Extracting it counts the request against the token's rate: no
/// further limit is needed. To a minted token, which is for one address, a route that extracts it does not exist: 404.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LiveCaller {
    /// The token: open waits and streams count by it.
    pub(crate) token: Uuid,
    /// The tenant, which is not suspended.
    pub(crate) tenant: Uuid,
    /// When the token expires, or its parent.
    pub(crate) expires_at: Option<Timestamp>,
    /// The token that minted it.
    pub(super) parent: Option<Uuid>,
}

/// The caller of a route about mail, whose token may be minted: it acts as a [`LiveCaller`] once it is known which mail
/// the request is about. It counts as that does, and a minted token also towards the rate of all of its tenant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MailCaller {
    caller: LiveCaller,
    /// The key of the one address that the token is for, if it is minted.
    address: Option<Uuid>,
}

impl MailCaller {
    /// The tenant, which cursors are sealed for.
    pub(crate) fn tenant(self) -> Uuid {
        self.caller.tenant
    }

    /// The caller, for mail of one exact address.
    ///
    /// # Errors
    /// [`ApiError::NotFound`]: the token is minted for another address.
    pub(crate) fn for_address(self, address: &RecipientAddress) -> Result<LiveCaller, ApiError> {
        match self.address {
            Some(key) if key != address.inbox_key() => Err(ApiError::NotFound),
            _ => Ok(self.caller),
        }
    }

    /// The caller, for mail of many addresses, and for everything that is not mail.
    ///
    /// # Errors
    /// [`ApiError::NotFound`]: the token is minted.
    pub(crate) fn for_any_address(self) -> Result<LiveCaller, ApiError> {
        if self.address.is_some() { Err(ApiError::NotFound) } else { Ok(self.caller) }
    }

    /// The tenant, and the key of the address whose messages alone the caller may name by id, if there is one.
    pub(crate) fn message_scope(self) -> (Uuid, Option<Uuid>) {
        (self.caller.tenant, self.address)
    }
}

impl<S: AsRef<Authenticator> + Send + Sync> FromRequestParts<S> for MailCaller {
    type Rejection = V1Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, V1Error> {
        let presented = header_token(&parts.headers)?.ok_or(ApiError::AuthenticationRequired)?;
        Ok(authenticate(presented, parts, state.as_ref()).await?)
    }
}

impl<S: AsRef<Authenticator> + Send + Sync> FromRequestParts<S> for LiveCaller {
    type Rejection = V1Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, V1Error> {
        let caller = MailCaller::from_request_parts(parts, state).await?;
        Ok(caller.for_any_address()?)
    }
}

/// A [`MailCaller`] whose token may be in the query: EventSource can't set headers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamCaller(pub(crate) MailCaller);

impl<S: AsRef<Authenticator> + Send + Sync> FromRequestParts<S> for StreamCaller {
    type Rejection = V1Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, V1Error> {
        let presented = one_of(header_token(&parts.headers)?, query_token(&parts.uri)?)?;
        Ok(Self(authenticate(&presented, parts, state.as_ref()).await?))
    }
}

/// The live token of a request of the Model Context Protocol, in `x-api-token` or `Authorization: Bearer`. Extracting
/// it counts the request against the token's rate. What it may do, the requests decide that are made with it.
#[derive(Debug)]
pub(crate) struct McpCaller(pub(crate) LiveToken);

impl<S: AsRef<Authenticator> + Send + Sync> FromRequestParts<S> for McpCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let bearer = bearer(&parts.headers)?.map(str::to_owned);
        let presented = one_of(header_token(&parts.headers)?, bearer)?;
        authenticate(&presented, parts, state.as_ref()).await?;
        LiveToken::parse(&presented).map(Self).map_err(|_malformed| ApiError::InvalidToken)
    }
}

async fn authenticate(presented: &str, parts: &Parts, auth: &Authenticator) -> Result<MailCaller, ApiError> {
    let live = auth.find_live_token(client_of(parts)?, presented).await?;
    let (tenant, minted) = (live.token.tenant, live.minted);
    let token = minted.map_or(live.token.id, |minted| minted.id);
    let decision = auth.limits.count_live_token(token).await;
    // What its own rate refuses takes nothing from the tenant's other tokens.
    if minted.is_some() && decision.allowed {
        let of_all = auth.limits.count_minted_token(tenant).await;
        if !of_all.allowed {
            RateLimitHeaders::enforce_in(&parts.extensions, "minted_tokens", of_all)?;
        }
    }
    RateLimitHeaders::enforce_in(&parts.extensions, "token", decision)?;
    let parent = minted.map(|_| live.token.id);
    let caller = LiveCaller { token, tenant, expires_at: live.expires_at(), parent };
    Ok(MailCaller { caller, address: minted.map(|minted| minted.address) })
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

/// The token of the header or of another place; both may carry the same one.
fn one_of(header: Option<&str>, other: Option<String>) -> Result<String, ApiError> {
    match (header, other) {
        (Some(header), Some(other)) if header != other => Err(ApiError::InvalidToken),
        (_, Some(other)) => Ok(other),
        (Some(header), None) => Ok(header.to_owned()),
        (None, None) => Err(ApiError::AuthenticationRequired),
    }
}
