//! Keys of the installation. Each purpose has its own key, derived by HKDF-SHA-256 from a configured
//! secret, so that no key is used for two purposes.

use std::fmt;

use aws_lc_rs::hkdf;

/// A configured secret with its name. `Debug` shows the name only.
#[derive(Clone)]
pub struct MasterKey {
    kid: String,
    secret: Vec<u8>,
}

/// Why configured keys are invalid.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A secret has fewer than 32 bytes.
    #[error("the secret of key \"{0}\" is shorter than 32 bytes")]
    TooShort(String),
    /// Two keys have the same secret.
    #[error("keys \"{0}\" and \"{1}\" have the same secret")]
    DuplicateSecret(String, String),
    /// Two keys of a ring have the same name.
    #[error("two keys are named \"{0}\"")]
    DuplicateName(String),
    /// A ring has no key.
    #[error("no key is configured")]
    Empty,
}

impl MasterKey {
    /// A key named `kid`, with a secret of at least 32 bytes.
    ///
    /// # Errors
    /// [`KeyError::TooShort`].
    pub fn new(kid: impl Into<String>, secret: &[u8]) -> Result<Self, KeyError> {
        let kid = kid.into();
        if secret.len() < 32 {
            return Err(KeyError::TooShort(kid));
        }
        Ok(Self { kid, secret: secret.to_vec() })
    }

    /// Its name.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// A 32-byte key for a purpose.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut key = [0; 32];
        hkdf::Salt::new(hkdf::HKDF_SHA256, b"tempmail")
            .extract(&self.secret)
            .expand(&[purpose.as_bytes()], hkdf::HKDF_SHA256)
            .and_then(|okm| okm.fill(&mut key))
            .expect("32 bytes are within the limit of HKDF-SHA-256");
        key
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.kid)
    }
}

/// Checks that every ring has a key, that names are unique within a ring, and secrets over all rings.
///
/// # Errors
/// The first violation.
pub fn validate_rings(rings: &[&[MasterKey]]) -> Result<(), KeyError> {
    for ring in rings {
        if ring.is_empty() {
            return Err(KeyError::Empty);
        }
        for (i, key) in ring.iter().enumerate() {
            if ring[..i].iter().any(|other| other.kid == key.kid) {
                return Err(KeyError::DuplicateName(key.kid.clone()));
            }
        }
    }
    let all: Vec<&MasterKey> = rings.iter().flat_map(|ring| ring.iter()).collect();
    for (i, key) in all.iter().enumerate() {
        if let Some(other) = all[..i].iter().find(|other| other.secret == key.secret) {
            return Err(KeyError::DuplicateSecret(other.kid.clone(), key.kid.clone()));
        }
    }
    Ok(())
}
