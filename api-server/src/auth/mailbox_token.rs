//! Mailbox JWTs: HS256 with `kid`, for 7 days, bound to a mailbox and its password epoch.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tempmail_model::key::MasterKey;
use uuid::Uuid;

use super::jwt::JwtKeys;

/// How long a mailbox JWT is valid.
const LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);
const AUDIENCE: &str = "mailbox";

#[derive(Clone, Serialize, Deserialize)]
struct Claims {
    aud: String,
    sub: Uuid,
    epoch: i32,
    iat: i64,
    exp: i64,
}

/// What a valid JWT says; whether the mailbox still is there and of that epoch, the store
/// knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailboxClaim {
    /// The mailbox.
    pub mailbox: Uuid,
    /// Its password epoch when the JWT was made.
    pub epoch: i32,
    /// From when on it says nothing.
    pub expires_at: Timestamp,
}

/// Makes and reads mailbox JWTs.
pub struct MailboxTokens(JwtKeys);

impl MailboxTokens {
    /// With keys derived from `ring`, which has at least one.
    pub fn new(ring: &[MasterKey]) -> Self {
        Self(JwtKeys::new(ring, "jwt-mailbox", AUDIENCE))
    }

    /// A JWT for a mailbox, valid for 7 days from `now` or until its epoch is raised.
    pub fn make(&self, mailbox: Uuid, epoch: i32, now: Timestamp) -> String {
        let claims = Claims {
            aud: AUDIENCE.to_owned(),
            sub: mailbox,
            epoch,
            iat: now.as_second(),
            exp: (now + LIFETIME).as_second(),
        };
        self.0.sign(&claims)
    }

    /// What a presented JWT says; `None` for everything that is not a JWT of ours for
    /// mailboxes, valid at `now`.
    pub fn read(&self, presented: &str, now: Timestamp) -> Option<MailboxClaim> {
        let claims: Claims = self.0.verify(presented)?;
        let expires_at = Timestamp::from_second(claims.exp).ok()?;
        let claim = MailboxClaim { mailbox: claims.sub, epoch: claims.epoch, expires_at };
        (now < expires_at).then_some(claim)
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};

    use super::*;

    fn tokens(keys: &[(&str, u8)]) -> MailboxTokens {
        let ring: Vec<MasterKey> =
            keys.iter().map(|(kid, octet)| MasterKey::new(*kid, &[*octet; 32]).unwrap()).collect();
        MailboxTokens::new(&ring)
    }

    fn now() -> Timestamp {
        "2031-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_jwt_is_valid_for_seven_days_of_the_clock() {
        let tokens = tokens(&[("a", 1)]);
        let claim = MailboxClaim { mailbox: Uuid::from_u128(5), epoch: 3, expires_at: now() + LIFETIME };
        let jwt = tokens.make(claim.mailbox, claim.epoch, now());
        let last = now() + LIFETIME - SignedDuration::from_secs(1);
        assert_eq!(tokens.read(&jwt, now()), Some(claim));
        assert_eq!(tokens.read(&jwt, last), Some(claim));
        assert_eq!(tokens.read(&jwt, now() + LIFETIME), None);
    }

    #[test]
    fn a_former_key_verifies_until_it_is_taken_away() {
        let jwt = tokens(&[("a", 1)]).make(Uuid::from_u128(5), 0, now());
        assert!(tokens(&[("b", 2), ("a", 1)]).read(&jwt, now()).is_some());
        assert!(tokens(&[("b", 2)]).read(&jwt, now()).is_none());
        assert!(tokens(&[("a", 2)]).read(&jwt, now()).is_none());
    }

    #[test]
    fn other_audiences_algorithms_and_junk_are_refused() {
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
        assert!(ours.read(&make(Algorithm::HS256, Some("a"), claims("mailbox")), now()).is_some());
        assert!(ours.read(&make(Algorithm::HS256, Some("a"), claims("pro")), now()).is_none());
        assert!(ours.read(&make(Algorithm::HS256, None, claims("mailbox")), now()).is_none());
        assert!(ours.read(&make(Algorithm::HS512, Some("a"), claims("mailbox")), now()).is_none());
        let none = "eyJhbGciOiJub25lIiwia2lkIjoiYSJ9.e30.";
        for junk in ["", "a.b.c", none, "tm_live_0"] {
            assert!(ours.read(junk, now()).is_none(), "{junk}");
        }
    }
}
