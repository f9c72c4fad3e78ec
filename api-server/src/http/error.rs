//! Errors of the interface: one variant per published code. No answer carries a cause; internal errors are logged
//! where they occur.

pub(crate) mod code;
mod form;

use std::borrow::Cow;
use std::time::Duration;

use axum::http::HeaderName;
use axum::http::header::{CONNECTION, SEC_WEBSOCKET_VERSION, UPGRADE};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use tempmail_bus::RateDecision;
use tempmail_model::id::id_time;
use tempmail_model::retention::RetentionClass;
use tempmail_model::webhook::WebhookUrlError;
use tempmail_runtime::known_host::ForeignHost;
use tempmail_store::{ChangeError, StoreError};
use uuid::Uuid;

use self::code::Code;
use self::form::with_retry_after;
use super::rate_limit;

pub(crate) use code::RequestRefusal;
pub(crate) use form::{DropIn, DropInError, ErrorForm, MCP_PATHS, Surface, V1Error};

/// `Retry-After` when Postgres is unavailable or a queue is full.
const RETRY_UNAVAILABLE: Duration = Duration::from_secs(5);
/// `Retry-After` when all permits of a token or an address are held.
const RETRY_BUSY: Duration = Duration::from_secs(1);

/// Header fields of a 426 answer (RFC 9110 15.5.22, RFC 6455 4.4).
const UPGRADE_FIELDS: [(HeaderName, &str); 3] =
    [(UPGRADE, "websocket"), (CONNECTION, "upgrade"), (SEC_WEBSOCKET_VERSION, "13")];

/// An error that a client is answered with. The text is the `message` of `/api` and `/pro/api`; `/v1`
/// answers the code alone, see [`V1Error`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    /// 400 `invalid_request`; the sentence names the field or parameter.
    #[error("{0}")]
    InvalidRequest(Cow<'static, str>),
    /// 400 `invalid_address`; the sentence says why the address can't be registered.
    #[error("{0}")]
    InvalidAddress(&'static str),
    /// 400 `invalid_domain`; the sentence says why the domain can't be added.
    #[error("{0}")]
    InvalidDomain(&'static str),
    /// 400 `invalid_url`; the sentence says what is wrong with the URL.
    #[error("{0}")]
    InvalidUrl(WebhookUrlError),
    /// 400 `invalid_events`.
    #[error("`events` must be a list of event names; the only event is `email.received`.")]
    InvalidEvents,
    /// 400 `password_too_short`.
    #[error("The password must have at least {0} characters.")]
    PasswordTooShort(u16),
    /// 400 `password_too_long`.
    #[error("The password must have at most {0} characters.")]
    PasswordTooLong(u16),
    /// 401 `authentication_required`: the request has no credential.
    #[error("Send a token in the header `Authorization: Bearer <token>`.")]
    AuthenticationRequired,
    /// 401 `invalid_token`: malformed, unknown, revoked or of another kind.
    #[error("The token is not valid here; sign in again or use another one.")]
    InvalidToken,
    /// 401 `invalid_credentials`.
    #[error("No mailbox has this address and password.")]
    InvalidCredentials,
    /// 403 `account_disabled`: the tenant is suspended.
    #[error("The account is suspended; contact its administrator.")]
    AccountDisabled,
    /// 403 `origin_not_allowed`: the request comes from a page of another site.
    #[error("Pages of this origin may not connect; connect from the site's own origin.")]
    OriginNotAllowed,
    /// 403 `host_not_allowed`: the request names a host that is not this service's.
    #[error("{0}")]
    HostNotAllowed(ForeignHost),
    /// 403 `account_limit_reached`.
    #[error("The account has reached its limit of mailboxes; delete one first.")]
    AccountLimitReached,
    /// 403 `account_limit_reached`: of all free mailboxes.
    #[error("The service has as many free mailboxes as it may have; try again later, or use a Pro token.")]
    FreeMailboxLimitReached,
    /// 403 `domain_limit_reached`.
    #[error("The account has reached its limit of custom domains; delete one first.")]
    DomainLimitReached,
    /// 403 `webhook_limit_reached`.
    #[error("The account has reached its limit of webhooks; delete one first.")]
    WebhookLimitReached,
    /// 403 `token_limit_reached`.
    #[error("The account has reached its limit of API tokens; revoke one first.")]
    TokenLimitReached,
    /// 404 `not_found`: does not exist, or is not the caller's.
    #[error("Not found; check the path and the id.")]
    NotFound,
    /// 408 `request_timeout`: the body did not arrive in time.
    #[error("The request body did not arrive in time; send it again.")]
    RequestTimeout,
    /// 409 `address_taken`.
    #[error("The address is in use; choose another one.")]
    AddressTaken,
    /// 409 `domain_already_exists`: the tenant has the domain.
    #[error("The account already has this domain; see the list of its domains.")]
    DomainAlreadyExists,
    /// 409 `managed_by_kubernetes`.
    #[error("A Kubernetes resource manages this object; change the resource instead.")]
    ManagedByKubernetes,
    /// 409 `no_html`.
    #[error("The message has no HTML; show its text.")]
    NoHtml,
    /// 410 `email_expired`.
    #[error("The message has expired or was deleted.")]
    EmailExpired,
    /// 413 `payload_too_large`.
    #[error("The request body must not exceed 65536 bytes.")]
    PayloadTooLarge,
    /// 415 `unsupported_media_type`.
    #[error("Send the body as `Content-Type: application/json`, without `Content-Encoding`.")]
    UnsupportedMediaType,
    /// 421 `misdirected_request`: the request names a host that is not this service's.
    #[error("{0}")]
    MisdirectedRequest(ForeignHost),
    /// 426 `upgrade_required`: the request does not ask for a WebSocket.
    #[error("Connect with a WebSocket client (RFC 6455, version 13).")]
    UpgradeRequired,
    /// 429 `rate_limit_exceeded`.
    #[error("Too many requests; try again as `Retry-After` says.")]
    RateLimitExceeded {
        /// Time until one more request is allowed.
        retry_after: Duration,
        /// The limit, as the metric of refused requests names it.
        limit: &'static str,
        /// What it decided, where it is a rate.
        decision: Option<RateDecision>,
    },
    /// 429 `token_busy`: the token has as many waits or streams open as it may.
    #[error("The token has too many open waits or streams; close one first.")]
    TokenBusy,
    /// 429 `addr_busy`: the tenant has as many waits on the address open as it may.
    #[error("The address has too many open waits; close one first.")]
    AddrBusy,
    /// 440 `session_expired`: the token's `expires_at` has passed.
    #[error("The token has expired; use another one.")]
    SessionExpired,
    /// 503 `sse_unavailable`: the process has as many streams as it may, or can't follow new mail.
    #[error("No stream can be opened at the moment; try again as `Retry-After` says.")]
    SseUnavailable,
    /// 503 `unavailable`: Postgres is unavailable.
    #[error("The service is unavailable at the moment; try again as `Retry-After` says.")]
    Unavailable,
    /// 503 `unavailable`: something that requests share is used up; its name as the metric of refused requests has it.
    #[error("The service is busy at the moment; try again as `Retry-After` says.")]
    Busy(&'static str),
    /// 500 `internal_error`.
    #[error("The service failed; try again later.")]
    Internal,
}

impl ApiError {
    /// Status and published code.
    fn code(&self) -> Code {
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
            Self::HostNotAllowed(_) => code::HOST_NOT_ALLOWED,
            Self::AccountDisabled => code::ACCOUNT_DISABLED,
            Self::AccountLimitReached | Self::FreeMailboxLimitReached => code::ACCOUNT_LIMIT_REACHED,
            Self::DomainLimitReached => code::DOMAIN_LIMIT_REACHED,
            Self::WebhookLimitReached => code::WEBHOOK_LIMIT_REACHED,
            Self::TokenLimitReached => code::TOKEN_LIMIT_REACHED,
            Self::NotFound => code::NOT_FOUND,
            Self::RequestTimeout => code::REQUEST_TIMEOUT,
            Self::AddressTaken => code::ADDRESS_TAKEN,
            Self::DomainAlreadyExists => code::DOMAIN_ALREADY_EXISTS,
            Self::ManagedByKubernetes => code::MANAGED_BY_KUBERNETES,
            Self::NoHtml => code::NO_HTML,
            Self::EmailExpired => code::EMAIL_EXPIRED,
            Self::PayloadTooLarge => code::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => code::UNSUPPORTED_MEDIA_TYPE,
            Self::MisdirectedRequest(_) => code::MISDIRECTED_REQUEST,
            Self::UpgradeRequired => code::UPGRADE_REQUIRED,
            Self::RateLimitExceeded { .. } => code::RATE_LIMIT_EXCEEDED,
            Self::TokenBusy => code::TOKEN_BUSY,
            Self::AddrBusy => code::ADDR_BUSY,
            Self::SessionExpired => code::SESSION_EXPIRED,
            Self::SseUnavailable => code::SSE_UNAVAILABLE,
            Self::Unavailable | Self::Busy(_) => code::UNAVAILABLE,
            Self::Internal => code::INTERNAL_ERROR,
        }
    }

    /// The limit or the resource that is used up, where the code does not name it.
    fn reason(&self) -> Option<&'static str> {
        match self {
            Self::RateLimitExceeded { limit: reason, .. } | Self::Busy(reason) => Some(*reason),
            Self::FreeMailboxLimitReached => Some("free_mailboxes"),
            _ => None,
        }
    }

    /// The answer in the form of a surface.
    pub(crate) fn into_response_on(self, form: impl Into<ErrorForm>) -> Response {
        let form = form.into();
        let message = match form {
            ErrorForm::Interface(Surface::V1) => String::new(),
            ErrorForm::Interface(Surface::Api) | ErrorForm::Mcp | ErrorForm::DropIn(_) => self.to_string(),
        };
        let mut response = form.error_response(self.code(), &message);
        if let Some(reason) = self.reason() {
            response.extensions_mut().insert(RequestRefusal { reason, ..RequestRefusal::of(self.code()) });
        }
        match self {
            Self::RateLimitExceeded { retry_after, limit, decision } => {
                if let Some(decision) = decision {
                    rate_limit::write_headers(limit, decision, response.headers_mut());
                }
                with_retry_after(response, retry_after)
            }
            Self::TokenBusy | Self::AddrBusy => with_retry_after(response, RETRY_BUSY),
            Self::Unavailable | Self::Busy(_) | Self::SseUnavailable => {
                with_retry_after(response, RETRY_UNAVAILABLE)
            }
            Self::UpgradeRequired => (UPGRADE_FIELDS, response).into_response(),
            _ => response,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.into_response_on(Surface::Api)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::TokenEnded) {
            return Self::InvalidToken;
        }
        match StoreFailure::from(error) {
            StoreFailure::Unavailable => Self::Unavailable,
            StoreFailure::Internal => Self::Internal,
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

impl From<MissingMessage> for ApiError {
    fn from(missing: MissingMessage) -> Self {
        match missing {
            MissingMessage::Expired => Self::EmailExpired,
            MissingMessage::NotFound => Self::NotFound,
        }
    }
}

/// What a client is answered when the store fails. The cause is logged by the conversion, once.
pub(crate) enum StoreFailure {
    Unavailable,
    Internal,
}

impl From<StoreError> for StoreFailure {
    fn from(error: StoreError) -> Self {
        match error {
            unavailable if unavailable.is_unavailable() => {
                tracing::warn!("{unavailable}");
                Self::Unavailable
            }
            // The server's message may quote data: only its code and names are logged.
            StoreError::Database(error) => {
                let refused = error.as_database_error();
                tracing::error!(
                    db.code = refused.and_then(|e| e.code()).as_deref(),
                    db.table = refused.and_then(|e| e.table()),
                    db.constraint = refused.and_then(|e| e.constraint()),
                    "a statement failed"
                );
                Self::Internal
            }
            // Written by a newer version: during an upgrade another process may read it.
            unknown @ (StoreError::UnknownWord { .. } | StoreError::Inconsistent { .. }) => {
                tracing::error!("{unknown}");
                Self::Unavailable
            }
            other => {
                tracing::error!("{other}");
                Self::Internal
            }
        }
    }
}

/// How a request for an unreadable message is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingMessage {
    /// 410: the id is old enough for its message to have expired.
    Expired,
    /// 404.
    NotFound,
}

impl MissingMessage {
    /// Decides by the id's own time alone, so that the answer does not reveal messages of others:
    /// expired if the id is at least as old as the shortest retention.
    pub(crate) fn of(id: Uuid, now: Timestamp) -> Self {
        let expired = id_time(id).is_some_and(|created| RetentionClass::SHORTEST.expires_at(created) <= now);
        if expired { Self::Expired } else { Self::NotFound }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::StatusCode;
    use jiff::SignedDuration;
    use tempmail_model::id::new_id;

    use super::*;

    #[tokio::test]
    async fn answers_with_code_and_message() {
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
    fn rounds_retry_after_up_to_whole_seconds() {
        let error = ApiError::RateLimitExceeded {
            retry_after: Duration::from_millis(1_001),
            limit: "token",
            decision: None,
        };
        assert_eq!(error.into_response().headers()["retry-after"], "2");
        assert_eq!(ApiError::Unavailable.into_response().headers()["retry-after"], "5");
    }

    #[test]
    fn names_the_limit_that_refused_a_request() {
        let refusal = |error: ApiError| error.into_response().extensions().get::<RequestRefusal>().copied();
        let limited =
            ApiError::RateLimitExceeded { retry_after: Duration::ZERO, limit: "token", decision: None };
        assert_eq!(refusal(limited), Some(RequestRefusal { code: "rate_limit_exceeded", reason: "token" }));
        let of_all = RequestRefusal { code: "account_limit_reached", reason: "free_mailboxes" };
        assert_eq!(refusal(ApiError::FreeMailboxLimitReached), Some(of_all));
        let unknown = RequestRefusal { code: "not_found", reason: "not_found" };
        assert_eq!(refusal(ApiError::NotFound), Some(unknown));
    }

    #[test]
    fn challenges_for_a_bearer_token_only() {
        let challenge = ApiError::AuthenticationRequired.into_response();
        assert!(challenge.headers().contains_key("www-authenticate"));
        assert!(!ApiError::InvalidCredentials.into_response().headers().contains_key("www-authenticate"));
    }

    #[test]
    fn decides_between_404_and_410_by_the_time_of_the_id() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let created = |minutes: i64| new_id(now - SignedDuration::from_mins(minutes));
        assert_eq!(MissingMessage::of(created(60), now), MissingMessage::Expired);
        assert_eq!(MissingMessage::of(created(59), now), MissingMessage::NotFound);
        assert_eq!(MissingMessage::of(created(-10), now), MissingMessage::NotFound);
        assert_eq!(MissingMessage::of(Uuid::from_u128(7), now), MissingMessage::NotFound);
    }
}
