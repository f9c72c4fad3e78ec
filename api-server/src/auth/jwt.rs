//! JWTs of one purpose and audience: HS256 with `kid`, by keys derived for that purpose.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempmail_model::key::MasterKey;

/// Signs and verifies JWTs. The first key signs; all keys verify.
pub(super) struct JwtKeys {
    signing: EncodingKey,
    header: Header,
    verifying: Vec<(String, DecodingKey)>,
    validation: Validation,
}

impl JwtKeys {
    /// With keys derived for `purpose` from `master_keys`, which has at least one.
    pub(super) fn new(master_keys: &[MasterKey], purpose: &str, audience: &str) -> Self {
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
    pub(super) fn sign(&self, claims: &impl Serialize) -> String {
        encode(&self.header, claims, &self.signing).expect("claims can be written as JSON")
    }

    /// The claims of a JWT that one of the keys signed for this audience. `exp` is not checked.
    pub(super) fn verify<C: DeserializeOwned + Clone>(&self, presented: &str) -> Option<C> {
        let kid = decode_header(presented).ok()?.kid?;
        let (_, key) = self.verifying.iter().find(|(known, _)| *known == kid)?;
        Some(decode::<C>(presented, key, &self.validation).ok()?.claims)
    }
}
