//! The token in the TXT record of a custom domain: a MAC of tenant and domain. It is the same when the
//! tenant creates the domain again, and useless to other tenants. Its key is kept by the store, sealed, so that a
//! rotation of `secrets.keys` changes no token.

use std::fmt;

use aws_lc_rs::hmac;
use rand::TryRng as _;
use uuid::Uuid;

use crate::key::MasterKey;
use crate::sealer::{Reseal, Sealer};

/// What precedes the token in the TXT record.
const TXT_PREFIX: &str = "tempmail-verify=";

/// Bytes of the key.
const KEY_BYTES: usize = 32;

/// Bytes of the MAC in the token: 128 bits.
const TOKEN_BYTES: usize = 16;

/// The key of verify tokens. `Debug` does not show it.
#[derive(Clone)]
pub struct VerifyTokenKey {
    key: hmac::Key,
}

impl VerifyTokenKey {
    /// The token for a domain (A-labels) of a tenant: 32 lower-case hex digits.
    pub fn token_for(&self, tenant: Uuid, domain: &str) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(tenant.as_bytes());
        context.update(domain.as_bytes());
        let mac = context.sign();
        mac.as_ref()[..TOKEN_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for VerifyTokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerifyTokenKey(…)")
    }
}

/// The key of verify tokens as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedVerifyTokenKey {
    /// Name of the key of `secrets.keys` that sealed it.
    pub kid: String,
    /// The sealed key.
    pub sealed: Vec<u8>,
}

/// A sealed key of verify tokens that was altered, or sealed with an unknown key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`secrets.keys` has no key that opens the key of verify tokens: put the key \"{kid}\", which sealed it, back into \
     `secrets.keys`"
)]
pub struct VerifyTokenKeyUnopened {
    /// Name of the key that sealed it.
    pub kid: String,
}

/// Seals the key of verify tokens for the store.
pub struct VerifyTokenKeySealer {
    /// Name of the first key.
    kid: String,
    sealer: Sealer,
}

impl VerifyTokenKeySealer {
    /// A sealer with keys derived from `ring`, which is not empty: the first seals, all open.
    pub fn new(ring: &[MasterKey]) -> Self {
        Self { kid: ring[0].kid().to_owned(), sealer: Sealer::new(ring, "verify-token-key") }
    }

    /// A new key of random bytes, sealed.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub fn generate(&self) -> Result<SealedVerifyTokenKey, rand::rngs::SysError> {
        let mut random = [0; KEY_BYTES];
        rand::rngs::SysRng.try_fill_bytes(&mut random)?;
        Ok(self.by_first_key(self.sealer.seal(Uuid::nil(), &random)))
    }

    /// Opens the sealed key.
    ///
    /// # Errors
    /// [`VerifyTokenKeyUnopened`].
    pub fn open(&self, key: &SealedVerifyTokenKey) -> Result<VerifyTokenKey, VerifyTokenKeyUnopened> {
        let opened = self.sealer.open(Uuid::nil(), &key.sealed);
        let opened = opened.ok_or_else(|| VerifyTokenKeyUnopened { kid: key.kid.clone() })?;
        Ok(VerifyTokenKey { key: hmac::Key::new(hmac::HMAC_SHA256, &opened) })
    }

    /// Seals the key again with the first key, if another key sealed it.
    pub fn reseal(&self, key: &SealedVerifyTokenKey) -> Reseal<SealedVerifyTokenKey> {
        match self.sealer.reseal(Uuid::nil(), &key.sealed) {
            Reseal::Current => Reseal::Current,
            Reseal::Resealed(sealed) => Reseal::Resealed(self.by_first_key(sealed)),
            Reseal::Unopened => Reseal::Unopened,
        }
    }

    fn by_first_key(&self, sealed: Vec<u8>) -> SealedVerifyTokenKey {
        SealedVerifyTokenKey { kid: self.kid.clone(), sealed }
    }
}

/// The name of the TXT record of a domain.
pub fn txt_host(domain: &str) -> String {
    format!("_tempmail.{domain}")
}

/// The value of the TXT record with this token.
pub fn txt_value(token: &str) -> String {
    format!("{TXT_PREFIX}{token}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(secrets: &[(&str, u8)]) -> VerifyTokenKeySealer {
        let ring: Vec<MasterKey> =
            secrets.iter().map(|(kid, octet)| MasterKey::new(*kid, &[*octet; 32]).unwrap()).collect();
        VerifyTokenKeySealer::new(&ring)
    }

    #[test]
    fn tokens_differ_by_tenant_and_domain() {
        let sealer = sealer(&[("a", 7)]);
        let sealed = sealer.generate().unwrap();
        let key = sealer.open(&sealed).unwrap();
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let token = key.token_for(one, "ships.example");
        let again = sealer.open(&sealed).unwrap();
        assert_eq!(token, again.token_for(one, "ships.example"), "it is deterministic");
        assert_ne!(token, key.token_for(two, "ships.example"));
        assert_ne!(token, key.token_for(one, "boats.example"));
        assert!(token.len() == 32 && token.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
        assert_eq!(txt_host("ships.example"), "_tempmail.ships.example");
        assert_eq!(txt_value("ab"), "tempmail-verify=ab");
        assert_eq!(format!("{key:?}"), "VerifyTokenKey(…)");
    }

    #[test]
    fn tokens_stay_when_the_key_is_sealed_again() {
        let sealed = sealer(&[("a", 1)]).generate().unwrap();
        let token = |sealer: &VerifyTokenKeySealer, sealed: &SealedVerifyTokenKey| {
            sealer.open(sealed).map(|key| key.token_for(Uuid::from_u128(1), "ships.example"))
        };
        let before = token(&sealer(&[("a", 1)]), &sealed);
        let ring = sealer(&[("b", 2), ("a", 1)]);
        let Reseal::Resealed(resealed) = ring.reseal(&sealed) else { panic!("another key sealed it") };
        assert_eq!(resealed.kid, "b");
        assert_eq!(token(&sealer(&[("b", 2)]), &resealed), before);
        assert_eq!(ring.reseal(&resealed), Reseal::Current);
    }

    #[test]
    fn names_the_key_that_is_missing() {
        let sealed = sealer(&[("a", 1)]).generate().unwrap();
        for ring in [sealer(&[("b", 2)]), sealer(&[("a", 2)])] {
            let error = ring.open(&sealed).err().unwrap();
            assert!(error.to_string().contains("put the key \"a\""), "{error}");
            assert_eq!(ring.reseal(&sealed), Reseal::Unopened);
        }
    }
}
