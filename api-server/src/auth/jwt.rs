//! JWTs that this service issues and verifies: HS256 with `kid`, by keys derived for one purpose each. A mailbox
//! token is valid for 7 days and bound to a mailbox and its password epoch. A Pro session is valid for 12 h, acts as
//! a Pro token and ends with it.

use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tempmail_model::id::new_id;
use tempmail_model::key::MasterKey;
use uuid::Uuid;

/// Signs and verifies JWTs. The first key signs; all keys verify.
struct JwtKeys {
    signing: EncodingKey,
    header: Header,
    verifying: Vec<(String, DecodingKey)>,
    validation: Validation,
}

impl JwtKeys {
    /// With keys derived for `purpose` from `master_keys`, which has at least one.
    fn new(master_keys: &[MasterKey], purpose: &str, audience: &str) -> Self {
        let derived = |key: &MasterKey| key.derive(purpose);
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some(master_keys[0].kid().to_owned());
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "aud", "sub"]);
        // The library would use system time: the caller compares `exp` with the clock.
        validation.validate_exp = false;
        validation.leeway = 0;
        Self {
            signing: EncodingKey::from_secret(&derived(&master_keys[0])),
            header,
            verifying: master_keys
                .iter()
                .map(|key| (key.kid().to_owned(), DecodingKey::from_secret(&derived(key))))
                .collect(),
            validation,
        }
    }

    /// The signed JWT of these claims.
    fn sign(&self, claims: &impl Serialize) -> String {
        encode(&self.header, claims, &self.signing).expect("claims can be written as JSON")
    }

    /// The claims of a JWT that one of the keys signed for this audience. `exp` is not checked.
    fn verify<C: DeserializeOwned + Clone>(&self, presented: &str) -> Option<C> {
        let kid = decode_header(presented).ok()?.kid?;
        let (_, key) = self.verifying.iter().find(|(known, _)| *known == kid)?;
        Some(decode::<C>(presented, key, &self.validation).ok()?.claims)
    }
}

/// How long a mailbox JWT is valid.
const TOKEN_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);
const MAILBOX_AUDIENCE: &str = "mailbox";

#[derive(Clone, Serialize, Deserialize)]
struct MailboxTokenClaims {
    aud: String,
    sub: Uuid,
    epoch: i64,
    iat: i64,
    exp: i64,
}

/// The claims of a valid JWT. Whether the mailbox still exists and has that epoch is in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VerifiedMailboxToken {
    /// The mailbox.
    pub(crate) mailbox: Uuid,
    /// Its password epoch when the JWT was issued.
    pub(crate) epoch: i64,
    /// When the JWT expires.
    pub(crate) expires_at: Timestamp,
}

/// Issues and verifies mailbox JWTs.
pub(crate) struct MailboxTokens(JwtKeys);

impl MailboxTokens {
    /// With keys derived from `master_keys`, which has at least one.
    pub(super) fn new(master_keys: &[MasterKey]) -> Self {
        Self(JwtKeys::new(master_keys, "jwt-mailbox", MAILBOX_AUDIENCE))
    }

    /// A JWT for a mailbox, valid for 7 days from `now` or until its epoch is raised.
    pub(crate) fn issue(&self, mailbox: Uuid, epoch: i64, now: Timestamp) -> String {
        let claims = MailboxTokenClaims {
            aud: MAILBOX_AUDIENCE.to_owned(),
            sub: mailbox,
            epoch,
            iat: now.as_second(),
            exp: (now + TOKEN_LIFETIME).as_second(),
        };
        self.0.sign(&claims)
    }

    /// The claims of a presented JWT; `None` where it is not a mailbox JWT of this service, or not valid
    /// at `now`.
    pub(crate) fn verify(&self, presented: &str, now: Timestamp) -> Option<VerifiedMailboxToken> {
        let claims: MailboxTokenClaims = self.0.verify(presented)?;
        let expires_at = Timestamp::from_second(claims.exp).ok()?;
        let token = VerifiedMailboxToken { mailbox: claims.sub, epoch: claims.epoch, expires_at };
        (now < expires_at).then_some(token)
    }
}

/// How long a session is valid.
const SESSION_LIFETIME: SignedDuration = SignedDuration::from_hours(12);
/// The same in seconds.
pub(super) const SESSION_SECONDS: i64 = SESSION_LIFETIME.as_secs();
const SESSION_AUDIENCE: &str = "pro";

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
        Self(JwtKeys::new(master_keys, "jwt-pro", SESSION_AUDIENCE))
    }

    /// A session of a token, and when the session expires.
    pub(crate) fn issue(&self, token: Uuid, now: Timestamp) -> (String, Timestamp) {
        let expires_at = Timestamp::from_second((now + SESSION_LIFETIME).as_second()).unwrap_or(now);
        let claims = ProSessionClaims {
            aud: SESSION_AUDIENCE.to_owned(),
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
    use super::*;

    fn tokens(keys: &[(&str, u8)]) -> MailboxTokens {
        let master_keys: Vec<MasterKey> =
            keys.iter().map(|(kid, byte)| MasterKey::new(*kid, &[*byte; 32]).unwrap()).collect();
        MailboxTokens::new(&master_keys)
    }

    fn now() -> Timestamp {
        "2031-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn accepts_a_jwt_for_seven_days_of_the_clock() {
        let tokens = tokens(&[("a", 1)]);
        let token = VerifiedMailboxToken {
            mailbox: Uuid::from_u128(5),
            epoch: 3,
            expires_at: now() + TOKEN_LIFETIME,
        };
        let jwt = tokens.issue(token.mailbox, token.epoch, now());
        let last = now() + TOKEN_LIFETIME - SignedDuration::from_secs(1);
        assert_eq!(tokens.verify(&jwt, now()), Some(token));
        assert_eq!(tokens.verify(&jwt, last), Some(token));
        assert_eq!(tokens.verify(&jwt, now() + TOKEN_LIFETIME), None);
    }

    #[test]
    fn accepts_a_former_key_until_it_is_removed() {
        let jwt = tokens(&[("a", 1)]).issue(Uuid::from_u128(5), 0, now());
        assert!(tokens(&[("b", 2), ("a", 1)]).verify(&jwt, now()).is_some());
        assert!(tokens(&[("b", 2)]).verify(&jwt, now()).is_none());
        assert!(tokens(&[("a", 2)]).verify(&jwt, now()).is_none());
    }

    #[test]
    fn rejects_other_audiences_algorithms_and_malformed_tokens() {
        let ours = tokens(&[("a", 1)]);
        let key = EncodingKey::from_secret(&MasterKey::new("a", &[1; 32]).unwrap().derive("jwt-mailbox"));
        let exp = now().as_second() + 60;
        let make = |algorithm, kid: Option<&str>, claims: serde_json::Value| {
            let mut header = Header::new(algorithm);
            header.kid = kid.map(str::to_owned);
            encode(&header, &claims, &key).unwrap()
        };
        let claims =
            |aud: &str| serde_json::json!({"aud": aud, "sub": Uuid::nil(), "epoch": 0, "iat": 0, "exp": exp});
        assert!(ours.verify(&make(Algorithm::HS256, Some("a"), claims("mailbox")), now()).is_some());
        assert!(ours.verify(&make(Algorithm::HS256, Some("a"), claims("pro")), now()).is_none());
        assert!(ours.verify(&make(Algorithm::HS256, None, claims("mailbox")), now()).is_none());
        assert!(ours.verify(&make(Algorithm::HS512, Some("a"), claims("mailbox")), now()).is_none());
        let none = "eyJhbGciOiJub25lIiwia2lkIjoiYSJ9.e30.";
        for malformed in ["", "a.b.c", none, "tm_live_0"] {
            assert!(ours.verify(malformed, now()).is_none(), "{malformed}");
        }
    }

    #[test]
    fn accepts_a_session_for_twelve_hours_and_not_as_a_mailbox_token() {
        let keys = [MasterKey::new("a", &[1; 32]).unwrap()];
        let (sessions, mailboxes) = (ProSessions::new(&keys), MailboxTokens::new(&keys));
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let token = Uuid::from_u128(7);
        let (session, expires_at) = sessions.issue(token, now);
        assert_eq!(expires_at, now + SESSION_LIFETIME);
        let at = |hours| sessions.verify(&session, now + SignedDuration::from_hours(hours));
        let Some(VerifiedProSession::Active(active)) = at(11) else { panic!("the session is active") };
        assert_eq!((active.token, active.issued_at, active.expires_at), (token, now, expires_at));
        assert!(!active.id.is_nil());
        assert_eq!(at(12), Some(VerifiedProSession::Expired));
        assert_eq!(mailboxes.verify(&session, now), None);
        assert_eq!(sessions.verify(&mailboxes.issue(token, 0, now), now), None);
    }
}
