//! The key of verify tokens: generated once for an installation, and kept in the store.

use tempmail_model::key::MasterKey;
use tempmail_model::verify_token::{VerifyTokenKey, VerifyTokenKeySealer, VerifyTokenKeyUnopened};
use tempmail_store::{Store, StoreError};

/// Why a process has no key of verify tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenKeyError {
    /// Postgres does not answer, or refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system provides no randomness.
    #[error("the operating system provides no randomness")]
    Randomness,
    /// The key that sealed it is missing.
    #[error(transparent)]
    Unopened(#[from] VerifyTokenKeyUnopened),
}

/// The installation's key of verify tokens, which `ring` (`secrets.keys`, not empty) opens. The process that needs it
/// first generates it.
///
/// # Errors
/// [`TokenKeyError`].
pub async fn verify_token_key(store: &Store, ring: &[MasterKey]) -> Result<VerifyTokenKey, TokenKeyError> {
    let sealer = VerifyTokenKeySealer::new(ring);
    let generated = sealer.generate().map_err(|_no_randomness| TokenKeyError::Randomness)?;
    let kept = store.ensure_verify_token_key(&generated).await?;
    Ok(sealer.open(&kept)?)
}
