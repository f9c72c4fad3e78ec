//! Errors of `/api` and `/pro/api`.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::HeaderName;
use axum::http::header::{CONNECTION, SEC_WEBSOCKET_VERSION, UPGRADE};
use axum::response::{IntoResponse, Response};
use tempmail_model::webhook::WebhookUrlError;
use tempmail_store::{ChangeError, StoreError};

use super::code::{self, Code};
use super::surface::{Surface, with_retry_after};
use super::{Absence, RETRY_UNAVAILABLE, StoreFault};

/// What an answer has to name that asks for an upgrade (RFC 9110 15.5.22, RFC 6455 4.4).
const UPGRADE_TO: [(HeaderName, &str); 3] =
    [(UPGRADE, "websocket"), (CONNECTION, "upgrade"), (SEC_WEBSOCKET_VERSION, "13")];

/// Every error that `/api` and `/pro/api` answer with; its text is the answer's `message`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// 400 `invalid_request`; the sentence names the field.
    #[error("{0}")]
    InvalidRequest(Cow<'static, str>),
    /// 400 `invalid_address`; the sentence says why nobody can have it here.
    #[error("{0}")]
    InvalidAddress(&'static str),
    /// 400 `invalid_domain`; the sentence says why nobody can have it here.
    #[error("{0}")]
    InvalidDomain(&'static str),
    /// 400 `invalid_url`; the sentence says what is wrong with it.
    #[error("{0}")]
    InvalidUrl(WebhookUrlError),
    /// 400 `invalid_events`.
    #[error("`events` must be a list of event names; the only one is `email.received`.")]
    InvalidEvents,
    /// 400 `password_too_short`.
    #[error("The password must have at least {0} characters.")]
    PasswordTooShort(u16),
    /// 400 `password_too_long`.
    #[error("The password must have at most {0} characters.")]
    PasswordTooLong(u16),
    /// 401 `authentication_required`.
    #[error("Send a token in the header `Authorization: Bearer <token>`.")]
    AuthenticationRequired,
    /// 401 `invalid_token`.
    #[error("The token is not valid here; sign in again or use another one.")]
    InvalidToken,
    /// 401 `invalid_credentials`.
    #[error("No mailbox has this address and password.")]
    InvalidCredentials,
    /// 403 `account_disabled`.
    #[error("The account is suspended; ask its administrator.")]
    AccountDisabled,
    /// 403 `origin_not_allowed`: a browser shows a page of another site.
    #[error("Pages of this origin may not connect; use the site's own.")]
    OriginNotAllowed,
    /// 403 `account_limit_reached`.
    #[error("The account has as many mailboxes as it may; delete one first.")]
    AccountLimitReached,
    /// 403 `domain_limit_reached`.
    #[error("The account has as many custom domains as it may; delete one first.")]
    DomainLimitReached,
    /// 403 `webhook_limit_reached`.
    #[error("The account has as many webhooks as it may; delete one first.")]
    WebhookLimitReached,
    /// 403 `token_limit_reached`.
    #[error("The account has as many API tokens as it may; revoke one first.")]
    TokenLimitReached,
    /// 404 `not_found`.
    #[error("There is nothing here; check the path and the id.")]
    NotFound,
    /// 408 `request_timeout`.
    #[error("The request body did not arrive in time; send it again.")]
    RequestTimeout,
    /// 409 `address_taken`.
    #[error("The address is in use; choose another one.")]
    AddressTaken,
    /// 409 `domain_already_exists`.
    #[error("The account has this domain already; see the list of its domains.")]
    DomainAlreadyExists,
    /// 409 `managed_by_kubernetes`.
    #[error("A Kubernetes resource manages this; change the resource instead.")]
    ManagedByKubernetes,
    /// 410 `email_expired`.
    #[error("The message has expired or was deleted.")]
    EmailExpired,
    /// 413 `payload_too_large`.
    #[error("The request body must not be over 65536 octets.")]
    PayloadTooLarge,
    /// 415 `unsupported_media_type`.
    #[error("Send the body as `Content-Type: application/json`, without `Content-Encoding`.")]
    UnsupportedMediaType,
    /// 426 `upgrade_required`: the request asks for no WebSocket.
    #[error("Connect with a WebSocket client (RFC 6455, version 13).")]
    UpgradeRequired,
    /// 429 `rate_limit_exceeded`.
    #[error("Too many requests; wait as long as `Retry-After` says.")]
    RateLimitExceeded {
        /// Time until one more is allowed.
        retry_after: Duration,
    },
    /// 440 `session_expired`.
    #[error("The token has expired; use another one.")]
    SessionExpired,
    /// 503 `unavailable`.
    #[error("The service can't do this at the moment; try again as `Retry-After` says.")]
    Unavailable,
    /// 500 `internal_error`.
    #[error("The service failed; try again later.")]
    Internal,
}

impl ApiError {
    /// Status and published code.
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::InvalidRequest(_) => code::INVALID_REQUEST,
            Self::InvalidAddress(_) => code::INVALID_ADDRESS,
            Self::InvalidDomain(_) => code::INVALID_DOMAIN,
            Self::InvalidUrl(_) => code::INVALID_URL,
            Self::InvalidEvents => code::INVALID_EVENTS,
            Self::PasswordTooShort(_) => code::PASSWORD_TOO_SHORT,
            Self::PasswordTooLong(_) => code::PASSWORD_TOO_LONG,
            Self::AuthenticationRequired => code::AUTHENTICATION_REQUIRED,
            Self::InvalidToken => code::INVALID_TOKEN,
            Self::InvalidCredentials => code::INVALID_CREDENTIALS,
            Self::OriginNotAllowed => code::ORIGIN_NOT_ALLOWED,
            Self::AccountDisabled => code::ACCOUNT_DISABLED,
            Self::AccountLimitReached => code::ACCOUNT_LIMIT_REACHED,
            Self::DomainLimitReached => code::DOMAIN_LIMIT_REACHED,
            Self::WebhookLimitReached => code::WEBHOOK_LIMIT_REACHED,
            Self::TokenLimitReached => code::TOKEN_LIMIT_REACHED,
            Self::NotFound => code::NOT_FOUND,
            Self::RequestTimeout => code::REQUEST_TIMEOUT,
            Self::AddressTaken => code::ADDRESS_TAKEN,
            Self::DomainAlreadyExists => code::DOMAIN_ALREADY_EXISTS,
            Self::ManagedByKubernetes => code::MANAGED_BY_KUBERNETES,
            Self::EmailExpired => code::EMAIL_EXPIRED,
            Self::PayloadTooLarge => code::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => code::UNSUPPORTED_MEDIA_TYPE,
            Self::UpgradeRequired => code::UPGRADE_REQUIRED,
            Self::RateLimitExceeded { .. } => code::RATE_LIMIT_EXCEEDED,
            Self::SessionExpired => code::SESSION_EXPIRED,
            Self::Unavailable => code::UNAVAILABLE,
            Self::Internal => code::INTERNAL_ERROR,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let response = Surface::Api.answer(self.code(), &self.to_string());
        match self {
            Self::RateLimitExceeded { retry_after } => with_retry_after(response, retry_after),
            Self::Unavailable => with_retry_after(response, Duration::from_secs(RETRY_UNAVAILABLE)),
            Self::UpgradeRequired => (UPGRADE_TO, response).into_response(),
            _ => response,
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match StoreFault::from(error) {
            StoreFault::Unavailable => Self::Unavailable,
            StoreFault::Internal => Self::Internal,
        }
    }
}

impl From<ChangeError> for ApiError {
    fn from(refused: ChangeError) -> Self {
        match refused {
            ChangeError::NotFound => Self::NotFound,
            ChangeError::ManagedByKubernetes => Self::ManagedByKubernetes,
        }
    }
}

impl From<Absence> for ApiError {
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
    use axum::http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn the_body_has_code_and_sentence() {
        let response = ApiError::PasswordTooShort(6).into_response();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        let body = to_bytes(response.into_body(), 1024).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let expected = serde_json::json!({
            "error": "password_too_short", "message": "The password must have at least 6 characters."
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn waits_are_rounded_up_to_whole_seconds() {
        let error = ApiError::RateLimitExceeded { retry_after: Duration::from_millis(1_001) };
        assert_eq!(error.into_response().headers()["retry-after"], "2");
        assert_eq!(ApiError::Unavailable.into_response().headers()["retry-after"], "5");
        let challenge = ApiError::AuthenticationRequired.into_response();
        assert!(challenge.headers().contains_key("www-authenticate"));
        assert!(!ApiError::InvalidCredentials.into_response().headers().contains_key("www-authenticate"));
    }
}
