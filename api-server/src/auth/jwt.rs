//! JWTs of one purpose: HS256 with `kid`, by keys that serve nothing else, for one audience.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempmail_model::key::MasterKey;

/// Signs and verifies. The first key signs; all of them verify.
pub(super) struct JwtKeys {
    signing: EncodingKey,
    header: Header,
    verifying: Vec<(String, DecodingKey)>,
    validation: Validation,
}

impl JwtKeys {
    /// With keys derived from `ring`, which has at least one, for `purpose`.
    pub(super) fn new(ring: &[MasterKey], purpose: &str, audience: &str) -> Self {
        let derived = |key: &MasterKey| key.derive(purpose);
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some(ring[0].kid().to_owned());
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "aud", "sub"]);
        // The library would go by the machine's time: whoever reads the claims goes by the clock.
        validation.validate_exp = false;
        validation.leeway = 0;
        Self {
            signing: EncodingKey::from_secret(&derived(&ring[0])),
            header,
            verifying: ring
                .iter()
                .map(|key| (key.kid().to_owned(), DecodingKey::from_secret(&derived(key))))
                .collect(),
            validation,
        }
    }

    /// The JWT of these claims.
    pub(super) fn sign(&self, claims: &impl Serialize) -> String {
        encode(&self.header, claims, &self.signing).expect("these claims can be written as JSON")
    }

    /// The claims of a JWT that was signed here for this audience, whatever its `exp`.
    pub(super) fn verify<C: DeserializeOwned + Clone>(&self, presented: &str) -> Option<C> {
        let kid = decode_header(presented).ok()?.kid?;
        let (_, key) = self.verifying.iter().find(|(known, _)| *known == kid)?;
        Some(decode::<C>(presented, key, &self.validation).ok()?.claims)
    }
}
