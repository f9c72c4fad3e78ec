//! The caller with a Pro API token.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::request::Parts;
use tempmail_model::token::{TokenHash, TokenKind};
use uuid::Uuid;

use super::bearer::bearer;
use super::{Refusal, check};
use crate::error::ApiError;
use crate::state::AppState;

/// A tenant that a `tm_pro_` token was presented for.
#[derive(Debug, Clone, Copy)]
pub struct ProCaller {
    /// Its tenant, which is not suspended.
    pub tenant: Uuid,
}

impl ProCaller {
    async fn of(presented: &str, state: &AppState) -> Result<Self, ApiError> {
        let hash = TokenHash::of_presented(TokenKind::Pro, presented).ok_or(ApiError::InvalidToken)?;
        let token = state.store.find_token(TokenKind::Pro, hash).await?.ok_or(ApiError::InvalidToken)?;
        let now = state.clock.now();
        check(&token, now).map_err(|refusal| match refusal {
            Refusal::Revoked => ApiError::InvalidToken,
            Refusal::Expired => ApiError::SessionExpired,
            Refusal::Suspended => ApiError::AccountDisabled,
        })?;
        state.touches.token(&token, now);
        Ok(Self { tenant: token.tenant })
    }
}

impl FromRequestParts<AppState> for ProCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let presented = bearer(&parts.headers)?.ok_or(ApiError::AuthenticationRequired)?;
        Self::of(presented, state).await
    }
}

impl OptionalFromRequestParts<AppState> for ProCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Option<Self>, ApiError> {
        match bearer(&parts.headers)? {
            Some(presented) => Self::of(presented, state).await.map(Some),
            None => Ok(None),
        }
    }
}
