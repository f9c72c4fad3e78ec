//! Authenticated encryption with keys of the installation (AES-256-GCM-SIV, RFC 8452), bound to a purpose and an owner.
//!
//! Nonces are random, since processes share a key and no counter. **Limit:** 2^48 values a key and purpose, a million each
//! second for nine years; up to there, one pair of values with the same nonce is as likely as none. A cursor is sealed for
//! each event and ping of each stream, so a large installation passes within weeks the 2^32 values at which AES-GCM ends:
//! there, such a pair discloses both values and lets others be forged. With AES-GCM-SIV each nonce has keys of its own, and
//! a pair discloses only whether its values are equal.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rand::TryRng as _;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::key::MasterKey;

const KEY_ID_LEN: usize = 4;

/// What came of sealing a value again with the first key of a ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reseal<T = Vec<u8>> {
    /// The first key sealed it: it stays as it is.
    Current,
    /// Another key sealed it: this is the same value, sealed with the first key.
    Resealed(T),
    /// No key opens it.
    Unopened,
}

/// Seals and opens data for a purpose. The first key seals, all keys open.
pub(crate) struct Sealer {
    keys: Vec<([u8; KEY_ID_LEN], LessSafeKey)>,
}

impl Sealer {
    /// A sealer with keys derived for `purpose` from `ring`, which is not empty.
    pub(crate) fn new(ring: &[MasterKey], purpose: &str) -> Self {
        let keys = ring
            .iter()
            .map(|master| {
                let digest = Sha256::digest(master.kid().as_bytes());
                let mut id = [0; KEY_ID_LEN];
                id.copy_from_slice(&digest[..KEY_ID_LEN]);
                let key = UnboundKey::new(&AES_256_GCM_SIV, &master.derive(purpose))
                    .expect("a derived key has the length of an AES-256 key");
                (id, LessSafeKey::new(key))
            })
            .collect();
        Self { keys }
    }

    /// Seals `plain` for `owner`: key id, nonce, ciphertext and tag.
    pub(crate) fn seal(&self, owner: Uuid, plain: &[u8]) -> Vec<u8> {
        let mut nonce = [0; NONCE_LEN];
        rand::rngs::SysRng.try_fill_bytes(&mut nonce).expect("the operating system provides randomness");
        self.seal_with_nonce(nonce, owner, plain)
    }

    fn seal_with_nonce(&self, nonce: [u8; NONCE_LEN], owner: Uuid, plain: &[u8]) -> Vec<u8> {
        let (id, key) = &self.keys[0];
        let mut sealed = Vec::with_capacity(KEY_ID_LEN + NONCE_LEN + plain.len() + AES_256_GCM_SIV.tag_len());
        sealed.extend_from_slice(id);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let tag = key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(owner.as_bytes()),
                &mut sealed[KEY_ID_LEN + NONCE_LEN..],
            )
            .expect("the data is short");
        sealed.extend_from_slice(tag.as_ref());
        sealed
    }

    /// The data that was sealed for `owner`; `None` if it was altered, or sealed for another owner or
    /// with a key that is not in the ring.
    pub(crate) fn open(&self, owner: Uuid, sealed: &[u8]) -> Option<Vec<u8>> {
        let (id, rest) = sealed.split_at_checked(KEY_ID_LEN)?;
        let (nonce, ciphertext) = rest.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let (_, key) = self.keys.iter().find(|(known, _)| known == id)?;
        let mut plain = ciphertext.to_vec();
        let length = key.open_in_place(nonce, Aad::from(owner.as_bytes()), &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }

    /// Seals again with the first key what another key sealed for `owner`.
    pub(crate) fn reseal(&self, owner: Uuid, sealed: &[u8]) -> Reseal {
        let Some(plain) = self.open(owner, sealed) else { return Reseal::Unopened };
        if sealed.starts_with(&self.keys[0].0) {
            Reseal::Current
        } else {
            Reseal::Resealed(self.seal(owner, &plain))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Uuid = Uuid::from_u128(1);

    /// Values that were sealed with the same nonce, without key id and nonce.
    fn sealed_with_one_nonce(values: [&[u8; 16]; 2]) -> [Vec<u8>; 2] {
        let sealer = Sealer::new(&[MasterKey::new("a", &[1; 32]).unwrap()], "test");
        values.map(|value| {
            let sealed = sealer.seal_with_nonce([7; NONCE_LEN], OWNER, value);
            assert_eq!(sealer.open(OWNER, &sealed).as_deref(), Some(&value[..]));
            sealed[KEY_ID_LEN + NONCE_LEN..].to_vec()
        })
    }

    fn difference(one: &[u8], other: &[u8]) -> Vec<u8> {
        one.iter().zip(other).map(|(one, other)| one ^ other).collect()
    }

    #[test]
    fn discloses_no_value_where_a_nonce_is_repeated() {
        let values = [b"position 0000001", b"position 0000002"];
        let [one, other] = sealed_with_one_nonce(values);
        assert_ne!(difference(&one[..16], &other[..16]), difference(values[0], values[1]));
        let [one, other] = sealed_with_one_nonce([values[0], values[0]]);
        assert_eq!(one, other, "that they are the same is disclosed");
    }

    #[test]
    fn seals_a_value_each_time_with_another_nonce() {
        let sealer = Sealer::new(&[MasterKey::new("a", &[1; 32]).unwrap()], "test");
        assert_ne!(sealer.seal(OWNER, b"the same"), sealer.seal(OWNER, b"the same"));
    }
}
