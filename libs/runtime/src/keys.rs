//! The keys of the installation, validated. None has a default.

use tempmail_model::key::{MasterKey, validate_rings};

use crate::config::{Config, KeyRing};

pub use tempmail_model::key::KeyError;

/// The two key rings; the first key of each signs or encrypts.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Signs mailbox JWTs.
    pub jwt: Vec<MasterKey>,
    /// Seals cursors, and encrypts secrets at rest.
    pub secrets: Vec<MasterKey>,
}

impl Keys {
    /// The keys of `jwt.keys` and `secrets.keys`.
    ///
    /// # Errors
    /// A ring is empty, a secret is shorter than 32 bytes, or two of them are equal.
    pub fn from_config(config: &Config) -> Result<Self, KeyError> {
        let keys = Self { jwt: ring(&config.jwt)?, secrets: ring(&config.secrets)? };
        validate_rings(&[&keys.jwt, &keys.secrets])?;
        Ok(keys)
    }

    /// The keys of `secrets.keys` only.
    ///
    /// # Errors
    /// As [`from_config`](Self::from_config).
    pub fn secrets_from_config(config: &Config) -> Result<Vec<MasterKey>, KeyError> {
        let keys = ring(&config.secrets)?;
        validate_rings(&[&keys])?;
        Ok(keys)
    }
}

fn ring(ring: &KeyRing) -> Result<Vec<MasterKey>, KeyError> {
    ring.keys.iter().map(|key| MasterKey::new(key.kid.as_str(), key.secret.expose().as_bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Key;

    fn config(jwt: &str, secrets: &str) -> Config {
        let ring = |kid: &str, secret: &str| KeyRing {
            keys: vec![Key { kid: kid.into(), secret: secret.to_owned().into() }],
        };
        Config { jwt: ring("a", jwt), secrets: ring("b", secrets), ..Config::default() }
    }

    #[test]
    fn rejects_missing_short_and_equal_keys() {
        let (one, two) = ("1".repeat(32), "2".repeat(32));
        assert!(Keys::from_config(&config(&one, &two)).is_ok());
        assert!(matches!(Keys::from_config(&Config::default()), Err(KeyError::Empty)));
        assert!(matches!(Keys::from_config(&config(&one, &one)), Err(KeyError::DuplicateSecret(..))));
        assert!(matches!(Keys::from_config(&config(&one, &one[1..])), Err(KeyError::TooShort(_))));
    }
}
