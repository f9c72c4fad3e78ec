//! Pro sessions: a JWT for the dashboard, valid for 12 h, that acts as a Pro token and ends with it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tempmail_model::id::new_id;
use tempmail_model::key::MasterKey;
use uuid::Uuid;

use super::jwt::JwtKeys;

/// How long a session is valid.
const LIFETIME: SignedDuration = SignedDuration::from_hours(12);
/// The same in seconds.
pub(super) const LIFETIME_SECONDS: i64 = LIFETIME.as_secs();
const AUDIENCE: &str = "pro";

#[derive(Clone, Serialize, Deserialize)]
struct ProSessionClaims {
    aud: String,
    /// The session's id; nil for those that a former version issued, which can't be ended.
    #[serde(default)]
    jti: Uuid,
    /// The token's id.
    sub: Uuid,
    iat: i64,
    exp: i64,
}

/// A session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProSession {
    /// Its id.
    pub(crate) id: Uuid,
    /// The token that it acts as.
    pub(crate) token: Uuid,
    /// When it began, to the second.
    pub(super) issued_at: Timestamp,
    /// When its 12 hours are over.
    pub(crate) expires_at: Timestamp,
}

/// A presented session of this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VerifiedProSession {
    /// Its time is not over. Whether it was ended, and whether its token is still accepted, is in the store.
    Active(ProSession),
    /// Its 12 hours are over.
    Expired,
}

/// Issues and verifies Pro sessions.
pub(crate) struct ProSessions(JwtKeys);

impl ProSessions {
    /// With keys derived from `master_keys`, which has at least one.
    pub(super) fn new(master_keys: &[MasterKey]) -> Self {
        Self(JwtKeys::new(master_keys, "jwt-pro", AUDIENCE))
    }

    /// A session of a token, and when the session expires.
    pub(crate) fn issue(&self, token: Uuid, now: Timestamp) -> (String, Timestamp) {
        let expires_at = Timestamp::from_second((now + LIFETIME).as_second()).unwrap_or(now);
        let claims = ProSessionClaims {
            aud: AUDIENCE.to_owned(),
            jti: new_id(now),
            sub: token,
            iat: now.as_second(),
            exp: expires_at.as_second(),
        };
        (self.0.sign(&claims), expires_at)
    }

    /// The session in a presented JWT; `None` where it is not a session of this service.
    pub(super) fn verify(&self, presented: &str, now: Timestamp) -> Option<VerifiedProSession> {
        let claims: ProSessionClaims = self.0.verify(presented)?;
        Some(if now.as_second() < claims.exp {
            VerifiedProSession::Active(ProSession {
                id: claims.jti,
                token: claims.sub,
                issued_at: Timestamp::from_second(claims.iat).ok()?,
                expires_at: Timestamp::from_second(claims.exp).ok()?,
            })
        } else {
            VerifiedProSession::Expired
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::mailbox_token::MailboxTokens;
    use super::*;

    #[test]
    fn accepts_a_session_for_twelve_hours_and_not_as_a_mailbox_token() {
        let keys = [MasterKey::new("a", &[1; 32]).unwrap()];
        let (sessions, mailboxes) = (ProSessions::new(&keys), MailboxTokens::new(&keys));
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let token = Uuid::from_u128(7);
        let (session, expires_at) = sessions.issue(token, now);
        assert_eq!(expires_at, now + LIFETIME);
        let at = |hours| sessions.verify(&session, now + SignedDuration::from_hours(hours));
        let Some(VerifiedProSession::Active(active)) = at(11) else { panic!("the session is active") };
        assert_eq!((active.token, active.issued_at, active.expires_at), (token, now, expires_at));
        assert!(!active.id.is_nil());
        assert_eq!(at(12), Some(VerifiedProSession::Expired));
        assert_eq!(mailboxes.verify(&session, now), None);
        assert_eq!(sessions.verify(&mailboxes.issue(token, 0, now), now), None);
    }
}
