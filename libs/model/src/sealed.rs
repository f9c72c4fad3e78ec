//! Sealing with keys of the installation (AES-256-GCM): what is sealed can neither be read nor
//! altered without them, and opens only for what it was sealed for.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rand::TryRng as _;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::key::MasterKey;

const KEY_ID_LEN: usize = 4;

/// Seals and opens for one purpose. The first key seals; all of them open.
pub(crate) struct Sealer {
    keys: Vec<([u8; KEY_ID_LEN], LessSafeKey)>,
}

impl Sealer {
    /// A sealer with keys derived for `purpose` from `ring`, which has at least one.
    pub(crate) fn new(ring: &[MasterKey], purpose: &str) -> Self {
        let keys = ring
            .iter()
            .map(|master| {
                let digest = Sha256::digest(master.kid().as_bytes());
                let mut id = [0; KEY_ID_LEN];
                id.copy_from_slice(&digest[..KEY_ID_LEN]);
                let key = UnboundKey::new(&AES_256_GCM, &master.derive(purpose))
                    .expect("a derived key has the length of an AES-256 key");
                (id, LessSafeKey::new(key))
            })
            .collect();
        Self { keys }
    }

    /// `plain` sealed for `whom`: key id, nonce, ciphertext and tag.
    pub(crate) fn seal(&self, whom: Uuid, plain: &[u8]) -> Vec<u8> {
        let (id, key) = &self.keys[0];
        let mut nonce = [0; NONCE_LEN];
        rand::rngs::SysRng.try_fill_bytes(&mut nonce).expect("the operating system gives randomness");
        let mut sealed = Vec::with_capacity(KEY_ID_LEN + NONCE_LEN + plain.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(id);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let tag = key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(whom.as_bytes()),
                &mut sealed[KEY_ID_LEN + NONCE_LEN..],
            )
            .expect("what is sealed here is short");
        sealed.extend_from_slice(tag.as_ref());
        sealed
    }

    /// What was sealed for `whom`; `None` for everything that was altered, sealed for another, or
    /// by a key that is not in the ring.
    pub(crate) fn open(&self, whom: Uuid, sealed: &[u8]) -> Option<Vec<u8>> {
        let (id, rest) = sealed.split_at_checked(KEY_ID_LEN)?;
        let (nonce, ciphertext) = rest.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let (_, key) = self.keys.iter().find(|(known, _)| known == id)?;
        let mut plain = ciphertext.to_vec();
        let length = key.open_in_place(nonce, Aad::from(whom.as_bytes()), &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}

/// A secret that does not open: altered, of another webhook, or sealed by a key that is gone.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret was not sealed for this webhook by a key of the ring")]
pub struct DoesNotOpen;

/// Seals the secrets of webhooks, as the store keeps them.
pub struct SecretSealer(Sealer);

impl SecretSealer {
    /// A sealer with keys derived from `ring`, which has at least one: the first seals, all open.
    pub fn new(ring: &[MasterKey]) -> Self {
        Self(Sealer::new(ring, "webhook-secret"))
    }

    /// The secret, sealed for `webhook` alone.
    pub fn seal(&self, webhook: Uuid, secret: &str) -> Vec<u8> {
        self.0.seal(webhook, secret.as_bytes())
    }

    /// The secret of `webhook`.
    ///
    /// # Errors
    /// [`DoesNotOpen`].
    pub fn open(&self, webhook: Uuid, sealed: &[u8]) -> Result<String, DoesNotOpen> {
        let secret = self.0.open(webhook, sealed).ok_or(DoesNotOpen)?;
        String::from_utf8(secret).map_err(|_not_ours| DoesNotOpen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEBHOOK: Uuid = Uuid::from_u128(1);

    fn ring(secrets: &[(&str, u8)]) -> Vec<MasterKey> {
        secrets.iter().map(|(kid, octet)| MasterKey::new(*kid, &[*octet; 32]).unwrap()).collect()
    }

    fn sealer(secrets: &[(&str, u8)]) -> SecretSealer {
        SecretSealer::new(&ring(secrets))
    }

    #[test]
    fn a_secret_opens_for_its_webhook_only() {
        let sealer = sealer(&[("a", 1)]);
        let sealed = sealer.seal(WEBHOOK, "whsec_x");
        assert!(!sealed.windows(5).any(|octets| octets == b"whsec"));
        assert_eq!(sealer.open(WEBHOOK, &sealed).as_deref(), Ok("whsec_x"));
        assert_eq!(sealer.open(Uuid::from_u128(2), &sealed), Err(DoesNotOpen));
    }

    #[test]
    fn one_secret_is_never_sealed_alike() {
        let sealer = sealer(&[("a", 1)]);
        assert_ne!(sealer.seal(WEBHOOK, "whsec_x"), sealer.seal(WEBHOOK, "whsec_x"));
    }

    #[test]
    fn every_altered_octet_is_noticed_and_every_shorter_text() {
        let sealer = sealer(&[("a", 1)]);
        let sealed = sealer.seal(WEBHOOK, "whsec_x");
        for i in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[i] ^= 1;
            assert_eq!(sealer.open(WEBHOOK, &altered), Err(DoesNotOpen), "{i}");
            assert_eq!(sealer.open(WEBHOOK, &sealed[..i]), Err(DoesNotOpen), "{i}");
        }
    }

    #[test]
    fn what_the_former_key_sealed_opens_while_it_is_in_the_ring() {
        let sealed = sealer(&[("a", 1)]).seal(WEBHOOK, "whsec_x");
        assert_eq!(sealer(&[("b", 2), ("a", 1)]).open(WEBHOOK, &sealed).as_deref(), Ok("whsec_x"));
        assert_eq!(sealer(&[("b", 2)]).open(WEBHOOK, &sealed), Err(DoesNotOpen));
        let renewed = sealer(&[("b", 2), ("a", 1)]).seal(WEBHOOK, "whsec_x");
        assert!(sealer(&[("b", 2)]).open(WEBHOOK, &renewed).is_ok(), "the first key seals");
    }

    #[test]
    fn a_key_serves_one_purpose() {
        let ring = ring(&[("a", 1)]);
        let sealed = Sealer::new(&ring, "cursor").seal(WEBHOOK, b"whsec_x");
        assert_eq!(SecretSealer::new(&ring).open(WEBHOOK, &sealed), Err(DoesNotOpen));
    }
}
