//! Errors of `/v1`.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use tempmail_store::{ChangeError, StoreError};

use super::code::{self, Code};
use super::surface::{Surface, with_retry_after};
use super::{Absence, RETRY_UNAVAILABLE, StoreFault};

/// Every error that `/v1` answers with; the body is `{"error": code}` and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum V1Error {
    /// 400 `invalid_request`: a parameter or the body is malformed.
    InvalidRequest,
    /// 400 `invalid_domain`: nobody can have it here.
    InvalidDomain,
    /// 401 `authentication_required`: no token.
    AuthenticationRequired,
    /// 401 `invalid_token`: malformed, unknown, revoked or of another kind.
    InvalidToken,
    /// 403 `account_disabled`: the tenant is suspended.
    AccountDisabled,
    /// 403 `domain_limit_reached`.
    DomainLimitReached,
    /// 403 `token_limit_reached`.
    TokenLimitReached,
    /// 404 `not_found`: not there, or not the caller's.
    NotFound,
    /// 408 `request_timeout`: the body did not arrive in time.
    RequestTimeout,
    /// 409 `domain_already_exists`: the tenant has it.
    DomainAlreadyExists,
    /// 409 `managed_by_kubernetes`.
    ManagedByKubernetes,
    /// 410 `email_expired`.
    EmailExpired,
    /// 413 `payload_too_large`.
    PayloadTooLarge,
    /// 415 `unsupported_media_type`.
    UnsupportedMediaType,
    /// 429 `rate_limit_exceeded`: over the requests a second of the token.
    RateLimitExceeded {
        /// Time until one more is allowed.
        retry_after: Duration,
    },
    /// 429 `token_busy`: a second wait on one token.
    TokenBusy,
    /// 429 `addr_busy`: one wait too many of the tenant on the address.
    AddrBusy,
    /// 440 `session_expired`: the token's `expires_at` has passed.
    SessionExpired,
    /// 503 `sse_unavailable`: the process has as many streams as it may, or has lost sight of new mail.
    SseUnavailable,
    /// 503 `unavailable`: Postgres is away or a queue is full.
    Unavailable,
    /// 500 `internal_error`: our own fault.
    Internal,
}

impl V1Error {
    /// Status and published code.
    pub(crate) fn code(self) -> Code {
        match self {
            Self::InvalidRequest => code::INVALID_REQUEST,
            Self::InvalidDomain => code::INVALID_DOMAIN,
            Self::AuthenticationRequired => code::AUTHENTICATION_REQUIRED,
            Self::InvalidToken => code::INVALID_TOKEN,
            Self::AccountDisabled => code::ACCOUNT_DISABLED,
            Self::DomainLimitReached => code::DOMAIN_LIMIT_REACHED,
            Self::TokenLimitReached => code::TOKEN_LIMIT_REACHED,
            Self::NotFound => code::NOT_FOUND,
            Self::RequestTimeout => code::REQUEST_TIMEOUT,
            Self::DomainAlreadyExists => code::DOMAIN_ALREADY_EXISTS,
            Self::ManagedByKubernetes => code::MANAGED_BY_KUBERNETES,
            Self::EmailExpired => code::EMAIL_EXPIRED,
            Self::PayloadTooLarge => code::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => code::UNSUPPORTED_MEDIA_TYPE,
            Self::RateLimitExceeded { .. } => code::RATE_LIMIT_EXCEEDED,
            Self::TokenBusy => code::TOKEN_BUSY,
            Self::AddrBusy => code::ADDR_BUSY,
            Self::SessionExpired => code::SESSION_EXPIRED,
            Self::SseUnavailable => code::SSE_UNAVAILABLE,
            Self::Unavailable => code::UNAVAILABLE,
            Self::Internal => code::INTERNAL_ERROR,
        }
    }
}

impl IntoResponse for V1Error {
    fn into_response(self) -> Response {
        let response = Surface::V1.answer(self.code(), "");
        match self {
            Self::RateLimitExceeded { retry_after } => with_retry_after(response, retry_after),
            Self::TokenBusy | Self::AddrBusy => with_retry_after(response, Duration::from_secs(1)),
            Self::Unavailable | Self::SseUnavailable => {
                with_retry_after(response, Duration::from_secs(RETRY_UNAVAILABLE))
            }
            _ => response,
        }
    }
}

impl From<StoreError> for V1Error {
    fn from(error: StoreError) -> Self {
        match StoreFault::from(error) {
            StoreFault::Unavailable => Self::Unavailable,
            StoreFault::Internal => Self::Internal,
        }
    }
}

impl From<ChangeError> for V1Error {
    fn from(refused: ChangeError) -> Self {
        match refused {
            ChangeError::NotFound => Self::NotFound,
            ChangeError::ManagedByKubernetes => Self::ManagedByKubernetes,
        }
    }
}

impl From<Absence> for V1Error {
    fn from(absence: Absence) -> Self {
        match absence {
            Absence::Expired => Self::EmailExpired,
            Absence::NotFound => Self::NotFound,
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn the_body_is_the_code_alone() {
        for (error, status, expected) in [
            (V1Error::InvalidToken, 401, "invalid_token"),
            (V1Error::SessionExpired, 440, "session_expired"),
            (V1Error::TokenBusy, 429, "token_busy"),
            (V1Error::AddrBusy, 429, "addr_busy"),
            (V1Error::EmailExpired, 410, "email_expired"),
        ] {
            let response = error.into_response();
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.headers()["content-type"], "application/json");
            assert_eq!(response.headers().contains_key("www-authenticate"), status == 401);
            assert_eq!(response.headers().contains_key("retry-after"), status == 429);
            let body = to_bytes(response.into_body(), 1024).await.unwrap();
            assert_eq!(body, format!("{{\"error\":\"{expected}\"}}"));
        }
    }
}
