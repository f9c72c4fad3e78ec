//! Errors as the surfaces publish them: a variant a code.
//!
//! `/api` answers `{"error": code, "message": sentence}`, `/v1` answers `{"error": code}`.
//! Nothing here carries a cause to the client; our own faults are logged where they arise.

mod api;
mod surface;
mod v1;

use axum::http::StatusCode;
use jiff::Timestamp;
use tempmail_model::id::id_time;
use tempmail_model::retention::RetentionClass;
use tempmail_store::StoreError;
use uuid::Uuid;

pub use api::ApiError;
pub use surface::Surface;
pub use v1::V1Error;

/// Seconds after which a client may ask again when Postgres was away or a queue full.
pub(crate) const RETRY_UNAVAILABLE: u64 = 5;

/// What an id that no readable message has is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// 410: it is old enough to have expired.
    Expired,
    /// 404.
    NotFound,
}

impl Absence {
    /// By the id's own time alone, so that nothing is told of messages that exist for others:
    /// expired if that is at least the shortest retention ago.
    pub fn of(id: Uuid, now: Timestamp) -> Self {
        let expired = id_time(id).is_some_and(|made| RetentionClass::SHORTEST.expires_at(made) <= now);
        if expired { Self::Expired } else { Self::NotFound }
    }
}

/// A failure of the store, as what the client is told: logged here, once.
pub(crate) enum StoreFault {
    Unavailable,
    Internal,
}

impl From<StoreError> for StoreFault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => {
                tracing::warn!("Postgres is not available");
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
            // This version does not know it; during an upgrade another process may.
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

/// Every published code with its status.
pub(crate) mod code {
    use super::StatusCode;

    /// A status and the code that says why.
    pub(crate) type Code = (StatusCode, &'static str);

    pub(crate) const INVALID_REQUEST: Code = (StatusCode::BAD_REQUEST, "invalid_request");
    pub(crate) const INVALID_ADDRESS: Code = (StatusCode::BAD_REQUEST, "invalid_address");
    pub(crate) const INVALID_DOMAIN: Code = (StatusCode::BAD_REQUEST, "invalid_domain");
    pub(crate) const INVALID_URL: Code = (StatusCode::BAD_REQUEST, "invalid_url");
    pub(crate) const INVALID_EVENTS: Code = (StatusCode::BAD_REQUEST, "invalid_events");
    pub(crate) const PASSWORD_TOO_SHORT: Code = (StatusCode::BAD_REQUEST, "password_too_short");
    pub(crate) const PASSWORD_TOO_LONG: Code = (StatusCode::BAD_REQUEST, "password_too_long");
    pub(crate) const AUTHENTICATION_REQUIRED: Code = (StatusCode::UNAUTHORIZED, "authentication_required");
    pub(crate) const INVALID_TOKEN: Code = (StatusCode::UNAUTHORIZED, "invalid_token");
    pub(crate) const INVALID_CREDENTIALS: Code = (StatusCode::UNAUTHORIZED, "invalid_credentials");
    pub(crate) const ORIGIN_NOT_ALLOWED: Code = (StatusCode::FORBIDDEN, "origin_not_allowed");
    pub(crate) const ACCOUNT_DISABLED: Code = (StatusCode::FORBIDDEN, "account_disabled");
    pub(crate) const ACCOUNT_LIMIT_REACHED: Code = (StatusCode::FORBIDDEN, "account_limit_reached");
    pub(crate) const DOMAIN_LIMIT_REACHED: Code = (StatusCode::FORBIDDEN, "domain_limit_reached");
    pub(crate) const WEBHOOK_LIMIT_REACHED: Code = (StatusCode::FORBIDDEN, "webhook_limit_reached");
    pub(crate) const TOKEN_LIMIT_REACHED: Code = (StatusCode::FORBIDDEN, "token_limit_reached");
    pub(crate) const NOT_FOUND: Code = (StatusCode::NOT_FOUND, "not_found");
    pub(crate) const METHOD_NOT_ALLOWED: Code = (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed");
    pub(crate) const REQUEST_TIMEOUT: Code = (StatusCode::REQUEST_TIMEOUT, "request_timeout");
    pub(crate) const ADDRESS_TAKEN: Code = (StatusCode::CONFLICT, "address_taken");
    pub(crate) const DOMAIN_ALREADY_EXISTS: Code = (StatusCode::CONFLICT, "domain_already_exists");
    pub(crate) const MANAGED_BY_KUBERNETES: Code = (StatusCode::CONFLICT, "managed_by_kubernetes");
    pub(crate) const EMAIL_EXPIRED: Code = (StatusCode::GONE, "email_expired");
    pub(crate) const PAYLOAD_TOO_LARGE: Code = (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large");
    pub(crate) const UNSUPPORTED_MEDIA_TYPE: Code =
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type");
    pub(crate) const UPGRADE_REQUIRED: Code = (StatusCode::UPGRADE_REQUIRED, "upgrade_required");
    pub(crate) const RATE_LIMIT_EXCEEDED: Code = (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded");
    pub(crate) const TOKEN_BUSY: Code = (StatusCode::TOO_MANY_REQUESTS, "token_busy");
    pub(crate) const ADDR_BUSY: Code = (StatusCode::TOO_MANY_REQUESTS, "addr_busy");
    pub(crate) const SSE_UNAVAILABLE: Code = (StatusCode::SERVICE_UNAVAILABLE, "sse_unavailable");
    pub(crate) const UNAVAILABLE: Code = (StatusCode::SERVICE_UNAVAILABLE, "unavailable");
    pub(crate) const INTERNAL_ERROR: Code = (StatusCode::INTERNAL_SERVER_ERROR, "internal_error");

    /// 440 is no status of the HTTP registry; clients of mail.cx know it.
    pub(crate) const SESSION_EXPIRED: Code = (
        match StatusCode::from_u16(440) {
            Ok(status) => status,
            Err(_) => panic!("440 is a three-digit status"),
        },
        "session_expired",
    );
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use tempmail_model::id::new_id;

    use super::*;

    #[test]
    fn an_absent_id_is_answered_by_its_own_time() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let made = |minutes: i64| new_id(now - SignedDuration::from_mins(minutes));
        assert_eq!(Absence::of(made(60), now), Absence::Expired);
        assert_eq!(Absence::of(made(59), now), Absence::NotFound);
        assert_eq!(Absence::of(made(-10), now), Absence::NotFound);
        assert_eq!(Absence::of(Uuid::from_u128(7), now), Absence::NotFound);
    }
}
