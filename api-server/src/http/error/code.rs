//! Every published error code with its status, and why a request was refused in metrics.

use axum::http::StatusCode;

/// A status and the published code that goes with it.
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
pub(crate) const HOST_NOT_ALLOWED: Code = (StatusCode::FORBIDDEN, "host_not_allowed");
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
pub(crate) const NO_HTML: Code = (StatusCode::CONFLICT, "no_html");
pub(crate) const EMAIL_EXPIRED: Code = (StatusCode::GONE, "email_expired");
pub(crate) const PAYLOAD_TOO_LARGE: Code = (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large");
pub(crate) const UNSUPPORTED_MEDIA_TYPE: Code =
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type");
pub(crate) const MISDIRECTED_REQUEST: Code = (StatusCode::MISDIRECTED_REQUEST, "misdirected_request");
pub(crate) const UPGRADE_REQUIRED: Code = (StatusCode::UPGRADE_REQUIRED, "upgrade_required");
pub(crate) const RATE_LIMIT_EXCEEDED: Code = (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded");
pub(crate) const TOKEN_BUSY: Code = (StatusCode::TOO_MANY_REQUESTS, "token_busy");
pub(crate) const ADDR_BUSY: Code = (StatusCode::TOO_MANY_REQUESTS, "addr_busy");
pub(crate) const SSE_UNAVAILABLE: Code = (StatusCode::SERVICE_UNAVAILABLE, "sse_unavailable");
pub(crate) const UNAVAILABLE: Code = (StatusCode::SERVICE_UNAVAILABLE, "unavailable");
pub(crate) const INTERNAL_ERROR: Code = (StatusCode::INTERNAL_SERVER_ERROR, "internal_error");

/// 440 is not in the HTTP status code registry; clients of mail.cx know it.
pub(crate) const SESSION_EXPIRED: Code = (
    match StatusCode::from_u16(440) {
        Ok(status) => status,
        Err(_) => panic!("440 is a three-digit status"),
    },
    "session_expired",
);

/// In the extensions of each error answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestRefusal {
    /// The published code.
    pub(crate) code: &'static str,
    /// The limit or the resource that was used up; the code where the request itself is the reason.
    pub(crate) reason: &'static str,
}

impl RequestRefusal {
    /// A refusal whose reason is the request itself.
    pub(crate) const fn of((_, code): Code) -> Self {
        Self { code, reason: code }
    }

    /// Whether the caller has no right to any answer: no credential, or one that is not accepted.
    pub(crate) fn is_of_credential(self) -> bool {
        [
            AUTHENTICATION_REQUIRED,
            INVALID_TOKEN,
            INVALID_CREDENTIALS,
            ACCOUNT_DISABLED,
            ORIGIN_NOT_ALLOWED,
            SESSION_EXPIRED,
        ]
        .iter()
        .any(|(_, code)| *code == self.code)
    }

    /// Whether a limit of the client's address is reached, by which those without a credential are counted.
    pub(crate) fn is_of_client_limit(self) -> bool {
        let limits = [
            "client",
            "refused",
            "sign_in_client",
            "sign_in_address",
            "free_mailboxes",
            "unauthenticated_sockets",
        ];
        self.code == RATE_LIMIT_EXCEEDED.1 && limits.contains(&self.reason)
    }

    /// Counts the refusal.
    pub(crate) fn count(self) {
        let labels = [("code", self.code), ("reason", self.reason)];
        metrics::counter!("tempmail_http_refused_total", &labels).increment(1);
    }
}
