//! Who calls: an extractor a credential, each of which yields a typed caller.
//!
//! | extractor | credential | where |
//! |---|---|---|
//! | [`MailboxCaller`] | mailbox JWT, `Authorization: Bearer` | `/api` |
//! | [`ProToken`] | `tm_pro_…`, `Authorization: Bearer` | `POST /api/accounts` |
//! | [`ProCaller`] | the same, or a Pro session | `/pro/api` |
//! | [`LiveCaller`] | `tm_live_…`, `x-api-token` | `/v1` |
//! | [`StreamCaller`] | the same, or `token` in the query | `/v1/sse` |
//!
//! Every request asks the store once, so that a right that ended is refused from then on.

mod bearer;
mod jwt;
mod live;
mod mailbox;
mod mailbox_token;
mod pro;
mod pro_session;
pub(crate) mod touch;

pub use live::{LiveCaller, StreamCaller};
pub use mailbox::MailboxCaller;
pub use mailbox_token::{MailboxClaim, MailboxTokens};
pub use pro::{ProCaller, ProToken, find_pro_token};
pub use pro_session::ProSessions;

use jiff::Timestamp;
use tempmail_store::ApiToken;

/// Why an API token that exists is refused, in the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Revoked,
    Expired,
    Suspended,
}

/// Whether a token may act at `now`.
fn check(token: &ApiToken, now: Timestamp) -> Result<(), Refusal> {
    if token.revoked_at.is_some() {
        Err(Refusal::Revoked)
    } else if token.expires_at.is_some_and(|expires| expires <= now) {
        Err(Refusal::Expired)
    } else if token.suspended {
        Err(Refusal::Suspended)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn revocation_comes_before_expiry_and_both_before_suspension() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let mut token = ApiToken {
            id: Uuid::from_u128(1),
            tenant: Uuid::from_u128(2),
            suspended: true,
            last_used_at: None,
            expires_at: Some(now),
            revoked_at: Some(now),
        };
        assert_eq!(check(&token, now), Err(Refusal::Revoked));
        token.revoked_at = None;
        assert_eq!(check(&token, now), Err(Refusal::Expired));
        token.expires_at = None;
        assert_eq!(check(&token, now), Err(Refusal::Suspended));
        token.suspended = false;
        assert_eq!(check(&token, now), Ok(()));
    }
}
