//! Why a request was refused, for the metric of refused requests.

use super::code::{self, Code};

/// In the extensions of each error answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The published code.
    pub(crate) code: &'static str,
    /// The limit or the resource that was used up; the code where the request itself is the reason.
    pub(crate) reason: &'static str,
}

impl Refusal {
    /// A refusal whose reason is the request itself.
    pub(crate) const fn of((_, code): Code) -> Self {
        Self { code, reason: code }
    }

    /// Whether the caller has no right to any answer: no credential, or one that is not accepted.
    pub(crate) fn is_of_credential(self) -> bool {
        [
            code::AUTHENTICATION_REQUIRED,
            code::INVALID_TOKEN,
            code::INVALID_CREDENTIALS,
            code::ACCOUNT_DISABLED,
            code::ORIGIN_NOT_ALLOWED,
            code::SESSION_EXPIRED,
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
        self.code == code::RATE_LIMIT_EXCEEDED.1 && limits.contains(&self.reason)
    }

    /// Counts the refusal.
    pub(crate) fn count(self) {
        let labels = [("code", self.code), ("reason", self.reason)];
        metrics::counter!("tempmail_http_refused_total", &labels).increment(1);
    }
}
