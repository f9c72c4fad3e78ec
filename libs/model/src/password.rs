//! Password hashes: argon2id with memory that is reused. Allocating it for each hash fragments the heap:
//! after 40 passwords a process had grown to 400 MB.

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use rand::TryRng as _;
use subtle::ConstantTimeEq as _;

/// 7 MiB, five passes, one lane: of the equally strong choices of OWASP's password storage cheat sheet, the one with
/// the least memory, which a core's caches hold best: it is also the quickest.
const MEMORY_KIB: u32 = 7 << 10;
const PASSES: u32 = 5;
/// Bytes of a salt and of a hash (RFC 9106, 4).
const SALT: usize = 16;
const HASH: usize = 32;

/// A password that could not be hashed.
#[derive(Debug, thiserror::Error)]
#[error("a password can't be hashed: {0}")]
pub struct PasswordHashError(String);

/// Hashes one password at a time, with 7 MiB of memory that it keeps.
#[derive(Default)]
pub struct PasswordHasher {
    memory: Vec<Block>,
}

impl PasswordHasher {
    /// A hasher, which allocates its memory for the first hash.
    pub const fn new() -> Self {
        Self { memory: Vec::new() }
    }

    /// The PHC string of a password, with a random salt.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub fn hash(&mut self, password: &[u8]) -> Result<String, PasswordHashError> {
        let mut salt = [0; SALT];
        rand::rngs::SysRng.try_fill_bytes(&mut salt).map_err(|error| PasswordHashError(error.to_string()))?;
        self.hash_with_salt(password, &salt)
    }

    /// The same with a given salt.
    ///
    /// # Errors
    /// The salt is too short or too long.
    pub fn hash_with_salt(&mut self, password: &[u8], salt: &[u8]) -> Result<String, PasswordHashError> {
        let hash_error = |error: &dyn std::fmt::Display| PasswordHashError(error.to_string());
        let params = Params::new(MEMORY_KIB, PASSES, 1, Some(HASH)).map_err(|error| hash_error(&error))?;
        let output =
            self.output(&params, Version::V0x13, password, salt).map_err(|error| hash_error(&error))?;
        let hash = PasswordHash {
            algorithm: Algorithm::Argon2id.ident(),
            version: Some(Version::V0x13.into()),
            params: ParamsString::try_from(&params).map_err(|error| hash_error(&error))?,
            salt: Some(Salt::new(salt).map_err(|error| hash_error(&error))?),
            hash: Some(Output::new(&output).map_err(|error| hash_error(&error))?),
        };
        Ok(hash.to_string())
    }

    /// Whether a password matches a PHC string; `false` for another algorithm.
    pub fn verify(&mut self, password: &[u8], hash: &str) -> bool {
        let Ok(hash) = PasswordHash::new(hash) else { return false };
        let (Ok(params), Some(salt), Some(expected)) = (Params::try_from(&hash), hash.salt, hash.hash) else {
            return false;
        };
        let version = hash.version.and_then(|version| Version::try_from(version).ok());
        let (Some(version), true) = (version, hash.algorithm == Algorithm::Argon2id.ident()) else {
            return false;
        };
        let output = self.output(&params, version, password, &salt);
        output.is_ok_and(|output| output.ct_eq(expected.as_bytes()).into())
    }

    fn output(
        &mut self,
        params: &Params,
        version: Version,
        password: &[u8],
        salt: &[u8],
    ) -> argon2::Result<Vec<u8>> {
        self.memory.resize(params.block_count(), Block::default());
        let mut output = vec![0; params.output_len().unwrap_or(HASH)];
        let argon2 = Argon2::new(Algorithm::Argon2id, version, params.clone());
        argon2.hash_password_into_with_memory(password, salt, &mut output, &mut self.memory)?;
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use argon2::PasswordVerifier as _;

    use super::*;

    #[test]
    fn hashes_with_argon2id_and_a_random_salt() {
        let mut hasher = PasswordHasher::default();
        let hash = hasher.hash(b"pass123").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=7168,t=5,p=1$"), "{hash}");
        let parsed = PasswordHash::new(&hash).unwrap();
        assert!(Argon2::default().verify_password(b"pass123", &parsed).is_ok());
        assert!(hasher.verify(b"pass123", &hash) && !hasher.verify(b"pass124", &hash));
        assert_ne!(hasher.hash(b"pass123").unwrap(), hash, "each has a salt of its own");
    }

    #[test]
    fn verifies_other_parameters_but_no_other_algorithm() {
        use argon2::PasswordHasher as _;
        let mut hasher = PasswordHasher::default();
        let other = |algorithm| {
            let argon2 = Argon2::new(algorithm, Version::V0x13, Params::new(64, 1, 2, None).unwrap());
            argon2.hash_password_with_salt(b"pass123", b"sixteen octets!!").unwrap().to_string()
        };
        assert!(hasher.verify(b"pass123", &other(Algorithm::Argon2id)));
        assert!(!hasher.verify(b"pass123", &other(Algorithm::Argon2i)));
        for nothing in ["", "pass123", "$argon2id$v=19$m=7168,t=5,p=1$"] {
            assert!(!hasher.verify(b"pass123", nothing));
        }
    }
}
