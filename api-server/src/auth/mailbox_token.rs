//! Mailbox JWTs: valid for 7 days, bound to a mailbox and its password epoch.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tempmail_model::key::MasterKey;
use uuid::Uuid;

use super::jwt::JwtKeys;

/// How long a mailbox JWT is valid.
const LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);
const AUDIENCE: &str = "mailbox";

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
        Self(JwtKeys::new(master_keys, "jwt-mailbox", AUDIENCE))
    }

    /// A JWT for a mailbox, valid for 7 days from `now` or until its epoch is raised.
    pub(crate) fn issue(&self, mailbox: Uuid, epoch: i64, now: Timestamp) -> String {
        let claims = MailboxTokenClaims {
            aud: AUDIENCE.to_owned(),
            sub: mailbox,
            epoch,
            iat: now.as_second(),
            exp: (now + LIFETIME).as_second(),
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

#[cfg(test)]
mod tests {
    use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};

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
        let token =
            VerifiedMailboxToken { mailbox: Uuid::from_u128(5), epoch: 3, expires_at: now() + LIFETIME };
        let jwt = tokens.issue(token.mailbox, token.epoch, now());
        let last = now() + LIFETIME - SignedDuration::from_secs(1);
        assert_eq!(tokens.verify(&jwt, now()), Some(token));
        assert_eq!(tokens.verify(&jwt, last), Some(token));
        assert_eq!(tokens.verify(&jwt, now() + LIFETIME), None);
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
}
