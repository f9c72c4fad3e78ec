//! The secret that signs a webhook's events, and how the store keeps it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::TryRng as _;
use uuid::Uuid;

use crate::key::MasterKey;
use crate::sealer::{Reseal, Sealer};

/// The secret that signs a webhook's events. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(String);

impl WebhookSecret {
    /// A new secret: `whsec_` and the Base64 of 32 random bytes.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub fn generate() -> Result<Self, rand::rngs::SysError> {
        let mut random = [0; 32];
        rand::rngs::SysRng.try_fill_bytes(&mut random)?;
        Ok(Self(format!("whsec_{}", STANDARD.encode(random))))
    }

    /// The text of the secret, which is shown once.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// A sealed secret that was altered, or sealed for another webhook or with an unknown key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret was not sealed for this webhook with a key of the ring")]
pub struct UnsealError;

/// Seals the secrets of webhooks for the store.
pub struct WebhookSecretSealer(Sealer);

impl WebhookSecretSealer {
    /// A sealer with keys derived from `ring`, which is not empty: the first seals, all open.
    pub fn new(ring: &[MasterKey]) -> Self {
        Self(Sealer::new(ring, "webhook-secret"))
    }

    /// Seals the secret of `webhook`.
    pub fn seal(&self, webhook: Uuid, secret: &str) -> Vec<u8> {
        self.0.seal(webhook, secret.as_bytes())
    }

    /// Opens the sealed secret of `webhook`.
    ///
    /// # Errors
    /// [`UnsealError`].
    pub fn open(&self, webhook: Uuid, sealed: &[u8]) -> Result<String, UnsealError> {
        let secret = self.0.open(webhook, sealed).ok_or(UnsealError)?;
        String::from_utf8(secret).map_err(|_not_ours| UnsealError)
    }

    /// Seals the secret of `webhook` again with the first key, if another key sealed it.
    pub fn reseal(&self, webhook: Uuid, sealed: &[u8]) -> Reseal {
        self.0.reseal(webhook, sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEBHOOK: Uuid = Uuid::from_u128(1);

    fn ring(secrets: &[(&str, u8)]) -> Vec<MasterKey> {
        secrets.iter().map(|(kid, octet)| MasterKey::new(*kid, &[*octet; 32]).unwrap()).collect()
    }

    fn sealer(secrets: &[(&str, u8)]) -> WebhookSecretSealer {
        WebhookSecretSealer::new(&ring(secrets))
    }

    #[test]
    fn opens_for_its_webhook_only() {
        let sealer = sealer(&[("a", 1)]);
        let sealed = sealer.seal(WEBHOOK, "whsec_x");
        assert!(!sealed.windows(5).any(|octets| octets == b"whsec"));
        assert_eq!(sealer.open(WEBHOOK, &sealed).as_deref(), Ok("whsec_x"));
        assert_eq!(sealer.open(Uuid::from_u128(2), &sealed), Err(UnsealError));
    }

    #[test]
    fn seals_a_secret_differently_each_time() {
        let sealer = sealer(&[("a", 1)]);
        assert_ne!(sealer.seal(WEBHOOK, "whsec_x"), sealer.seal(WEBHOOK, "whsec_x"));
    }

    #[test]
    fn rejects_altered_and_truncated_secrets() {
        let sealer = sealer(&[("a", 1)]);
        let sealed = sealer.seal(WEBHOOK, "whsec_x");
        for i in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[i] ^= 1;
            assert_eq!(sealer.open(WEBHOOK, &altered), Err(UnsealError), "{i}");
            assert_eq!(sealer.open(WEBHOOK, &sealed[..i]), Err(UnsealError), "{i}");
        }
    }

    #[test]
    fn opens_secrets_of_the_previous_key_while_it_is_in_the_ring() {
        let sealed = sealer(&[("a", 1)]).seal(WEBHOOK, "whsec_x");
        assert_eq!(sealer(&[("b", 2), ("a", 1)]).open(WEBHOOK, &sealed).as_deref(), Ok("whsec_x"));
        assert_eq!(sealer(&[("b", 2)]).open(WEBHOOK, &sealed), Err(UnsealError));
        let renewed = sealer(&[("b", 2), ("a", 1)]).seal(WEBHOOK, "whsec_x");
        assert!(sealer(&[("b", 2)]).open(WEBHOOK, &renewed).is_ok(), "the first key seals");
    }

    #[test]
    fn seals_again_with_the_first_key_what_another_key_of_the_ring_sealed() {
        let sealed = sealer(&[("a", 1)]).seal(WEBHOOK, "whsec_x");
        let ring = sealer(&[("b", 2), ("a", 1)]);
        let Reseal::Resealed(resealed) = ring.reseal(WEBHOOK, &sealed) else {
            panic!("another key sealed it")
        };
        assert_eq!(sealer(&[("b", 2)]).open(WEBHOOK, &resealed).as_deref(), Ok("whsec_x"));
        assert_eq!(ring.reseal(WEBHOOK, &resealed), Reseal::Current);
        assert_eq!(ring.reseal(Uuid::from_u128(2), &sealed), Reseal::Unopened, "another webhook's");
        assert_eq!(
            sealer(&[("b", 2)]).reseal(WEBHOOK, &sealed),
            Reseal::Unopened,
            "the key is not in the ring"
        );
        assert_eq!(
            sealer(&[("a", 3)]).reseal(WEBHOOK, &sealed),
            Reseal::Unopened,
            "another key of that name"
        );
    }

    #[test]
    fn does_not_open_data_of_another_purpose() {
        let ring = ring(&[("a", 1)]);
        let sealed = Sealer::new(&ring, "cursor").seal(WEBHOOK, b"whsec_x");
        assert_eq!(WebhookSecretSealer::new(&ring).open(WEBHOOK, &sealed), Err(UnsealError));
    }

    #[test]
    fn generates_32_random_bytes_that_debug_does_not_show() {
        let secret = WebhookSecret::generate().unwrap();
        let random = secret.expose().strip_prefix("whsec_").unwrap();
        assert_eq!(STANDARD.decode(random).unwrap().len(), 32);
        assert_ne!(secret, WebhookSecret::generate().unwrap());
        assert_eq!(format!("{secret:?}"), "WebhookSecret(…)");
    }
}
