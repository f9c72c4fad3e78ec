//! The caller of a drop-in surface with a token of its tenant.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use tempmail_model::surface::DropInSurface;
use uuid::Uuid;

use super::authenticator::{Authenticator, client_of};
use crate::http::client::Client;
use crate::http::error::{ApiError, DropIn, DropInError};
use crate::http::rate_limit::RateLimitHeaders;

/// The header that may carry a token instead of `Authorization`.
const HEADER: &str = "x-api-token";

/// The tenant of a token that was created for the drop-in surface `S`. Extracting it counts the request against the
/// token's rate: no further limit is needed.
#[derive(Debug)]
pub(crate) struct DropInCaller<S> {
    /// The tenant, which is not suspended.
    pub(crate) tenant: Uuid,
    /// The token.
    pub(super) token: Uuid,
    /// When the token expires.
    pub(super) expires_at: Option<Timestamp>,
    /// Who sends the request.
    pub(crate) client: Client,
    surface: PhantomData<fn() -> S>,
}

impl<S: DropIn, State: AsRef<Authenticator> + Send + Sync> FromRequestParts<State> for DropInCaller<S> {
    type Rejection = DropInError<S>;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, DropInError<S>> {
        let presented = presented(&parts.headers)?.ok_or(ApiError::AuthenticationRequired)?;
        Ok(authenticate(S::SURFACE, &presented, parts, state.as_ref()).await?)
    }
}

async fn authenticate<S>(
    surface: DropInSurface,
    presented: &str,
    parts: &Parts,
    auth: &Authenticator,
) -> Result<DropInCaller<S>, ApiError> {
    let client = client_of(parts)?;
    let token = auth.find_surface_token(client, surface, presented).await?;
    let decision = auth.limits.count_live_token(token.id).await;
    RateLimitHeaders::enforce_in(&parts.extensions, "token", decision)?;
    let (tenant, expires_at) = (token.tenant, token.expires_at);
    Ok(DropInCaller { tenant, token: token.id, expires_at, client, surface: PhantomData })
}

/// The token of a request: in `x-api-token`, as a Bearer token, as the password of HTTP Basic or, where that is
/// empty, as its user name. Clients send a `Bearer` with nothing behind it before they have a token: no credential.
///
/// # Errors
/// [`ApiError::InvalidToken`]: more than one credential, or a malformed one.
fn presented(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let text = |value: &HeaderValue| {
        value.to_str().map(|text| text.trim().to_owned()).map_err(|_not_ascii| ApiError::InvalidToken)
    };
    let mut fields = headers.get_all(AUTHORIZATION).iter().chain(headers.get_all(HEADER)).map(text);
    let Some(first) = fields.next().transpose()? else { return Ok(None) };
    if fields.next().is_some() {
        return Err(ApiError::InvalidToken);
    }
    if !headers.contains_key(AUTHORIZATION) {
        return Ok(Some(first).filter(|token| !token.is_empty()));
    }
    let (scheme, credential) = first.split_once(' ').unwrap_or((&first, ""));
    let token = if scheme.eq_ignore_ascii_case("basic") {
        basic(credential.trim())?
    } else if scheme.is_empty() || scheme.eq_ignore_ascii_case("bearer") {
        credential.trim().to_owned()
    } else {
        return Err(ApiError::InvalidToken);
    };
    Ok(Some(token).filter(|token| !token.is_empty()))
}

/// The password of HTTP Basic (RFC 7617) or, where it is empty, the user name.
fn basic(credential: &str) -> Result<String, ApiError> {
    let decoded = STANDARD.decode(credential).ok().and_then(|octets| String::from_utf8(octets).ok());
    let decoded = decoded.ok_or(ApiError::InvalidToken)?;
    let (user, password) = decoded.split_once(':').ok_or(ApiError::InvalidToken)?;
    Ok(if password.is_empty() { user.to_owned() } else { password.to_owned() })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn parse(fields: &[(&'static str, &str)]) -> Result<Option<String>, ApiError> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        presented(&headers)
    }

    #[test]
    fn takes_a_token_wherever_clients_put_it() {
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let password = basic("anyone:tm_live_a");
        let user = basic("tm_live_a:");
        for (name, value) in [
            ("authorization", password.as_str()),
            ("authorization", &user),
            ("authorization", "bearer  tm_live_a"),
            ("x-api-token", "tm_live_a"),
        ] {
            assert_eq!(parse(&[(name, value)]), Ok(Some("tm_live_a".into())), "{name}: {value}");
        }
    }

    #[test]
    fn tells_a_missing_credential_from_a_malformed_one() {
        for none in
            [&[][..], &[("authorization", "")], &[("authorization", "Bearer")], &[("x-api-token", "")]]
        {
            assert_eq!(parse(none), Ok(None), "{none:?}");
        }
        for wrong in [
            &[("authorization", "Digest x")][..],
            &[("authorization", "Basic ?")],
            &[("authorization", "Basic dG1fbGl2ZV9h")],
            &[("authorization", "Bearer a"), ("x-api-token", "a")],
            &[("x-api-token", "a"), ("x-api-token", "a")],
        ] {
            assert_eq!(parse(wrong), Err(ApiError::InvalidToken), "{wrong:?}");
        }
    }
}
