//! A link that signs in to the dashboard once: `up` prints one, so that its user need not copy a token.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use rand::TryRng as _;
use sha2::{Digest as _, Sha256};

/// A code that signs in as a Pro token, once and in this process only. `Debug` shows neither.
pub struct SignInLink {
    code: String,
    token: String,
}

impl SignInLink {
    /// A new random code for a `tm_pro_` token.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub fn generate(token: &str) -> Result<Self, rand::rngs::SysError> {
        let mut random = [0; 32];
        rand::rngs::SysRng.try_fill_bytes(&mut random)?;
        let code = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { code, token: token.to_owned() })
    }

    /// The code: 64 hexadecimal digits.
    pub fn code(&self) -> &str {
        &self.code
    }
}

impl fmt::Debug for SignInLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SignInLink").finish_non_exhaustive()
    }
}

/// The link of a process, if there is one, until it is used.
#[derive(Default)]
pub(crate) struct UnusedSignInLink(Mutex<Option<SignInLink>>);

impl UnusedSignInLink {
    /// Takes the link if it has this code: of several requests one gets it.
    pub(crate) fn take(&self, code: &str) -> Option<SignInLink> {
        let mut link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Digests: how long the comparison takes discloses nothing of the code.
        link.take_if(|link| Sha256::digest(&link.code) == Sha256::digest(code))
    }

    /// Makes a link usable, again if it could not be used.
    pub(crate) fn put(&self, link: SignInLink) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(link);
    }
}

impl SignInLink {
    /// The token that it signs in as.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_once_and_by_its_code_only() {
        let link = SignInLink::generate("tm_pro_x").unwrap();
        let code = link.code().to_owned();
        assert!(code.len() == 64 && !format!("{link:?}").contains(&code));
        let unused = UnusedSignInLink::default();
        unused.put(link);
        assert!(unused.take("").is_none() && unused.take(&code[1..]).is_none());
        let taken = unused.take(&code).expect("the code is right");
        assert_eq!(taken.token(), "tm_pro_x");
        assert!(unused.take(&code).is_none());
        unused.put(taken);
        assert!(unused.take(&code).is_some());
    }
}
