//! Pro sessions: a JWT for the dashboard, for 12 h, that stands for a Pro token and dies with it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tempmail_model::key::MasterKey;
use uuid::Uuid;

use super::jwt::JwtKeys;

/// How long a session is valid.
const LIFETIME: SignedDuration = SignedDuration::from_hours(12);
const AUDIENCE: &str = "pro";

#[derive(Clone, Serialize, Deserialize)]
struct Claims {
    aud: String,
    /// The token's id.
    sub: Uuid,
    iat: i64,
    exp: i64,
}

/// What a presented session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProSession {
    /// It stands for the token of this id, which the store knows more of.
    Of(Uuid),
    /// Its 12 hours are over.
    Expired,
}

/// Makes and reads Pro sessions.
pub struct ProSessions(JwtKeys);

impl ProSessions {
    /// With keys derived from `ring`, which has at least one.
    pub fn new(ring: &[MasterKey]) -> Self {
        Self(JwtKeys::new(ring, "jwt-pro", AUDIENCE))
    }

    /// A session for a token, and when it ends.
    pub fn make(&self, token: Uuid, now: Timestamp) -> (String, Timestamp) {
        let expires_at = Timestamp::from_second((now + LIFETIME).as_second()).unwrap_or(now);
        let claims = Claims {
            aud: AUDIENCE.to_owned(),
            sub: token,
            iat: now.as_second(),
            exp: expires_at.as_second(),
        };
        (self.0.sign(&claims), expires_at)
    }

    /// What a presented JWT is; `None` for everything that is not a session of ours.
    pub(super) fn read(&self, presented: &str, now: Timestamp) -> Option<ProSession> {
        let claims: Claims = self.0.verify(presented)?;
        Some(if now.as_second() < claims.exp { ProSession::Of(claims.sub) } else { ProSession::Expired })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lasts_twelve_hours_and_is_no_mailbox_token() {
        let ring = [MasterKey::new("a", &[1; 32]).unwrap()];
        let (sessions, mailboxes) = (ProSessions::new(&ring), super::super::MailboxTokens::new(&ring));
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let token = Uuid::from_u128(7);
        let (session, expires_at) = sessions.make(token, now);
        assert_eq!(expires_at, now + LIFETIME);
        let at = |hours| sessions.read(&session, now + SignedDuration::from_hours(hours));
        assert_eq!(at(11), Some(ProSession::Of(token)));
        assert_eq!(at(12), Some(ProSession::Expired));
        assert_eq!(mailboxes.read(&session, now), None);
        assert_eq!(sessions.read(&mailboxes.make(token, 0, now), now), None);
    }
}
