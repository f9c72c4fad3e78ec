//! Mailbox passwords: argon2id, as many at once as there are cores, 64 waiting.

use std::sync::Arc;
use std::thread::available_parallelism;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Hashes that may wait for a core.
const WAITING: usize = 64;
/// 19 MiB, two passes, one lane: the first choice of OWASP's password storage cheat sheet.
const MEMORY_KIB: u32 = 19 << 10;
const PASSES: u32 = 2;

/// Hashes and verifies passwords with bounded work.
pub(crate) struct PasswordPool {
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
    /// What is verified where there is no mailbox, so that this takes the same time.
    nobody: Arc<str>,
}

impl PasswordPool {
    pub(crate) fn new() -> Self {
        let cores = available_parallelism().map_or(1, std::num::NonZero::get);
        Self::with_places(cores, WAITING)
    }

    fn with_places(cores: usize, waiting: usize) -> Self {
        let nobody: PasswordHash = argon2()
            .hash_password_with_salt(b"", b"nobody-has-this!")
            .expect("these parameters and this salt are valid");
        Self {
            admitted: Arc::new(Semaphore::new(cores + waiting)),
            running: Arc::new(Semaphore::new(cores)),
            nobody: nobody.to_string().into(),
        }
    }

    /// The hash of a new password, as PHC string.
    ///
    /// # Errors
    /// [`ApiError::Unavailable`] where too many wait.
    pub(crate) async fn hash(&self, password: String) -> Result<String, ApiError> {
        let hashed = self
            .run(move || {
                let hash: Result<PasswordHash, _> = argon2().hash_password(password.as_bytes());
                hash.map(|hash| hash.to_string())
            })
            .await?;
        hashed.map_err(|error| {
            tracing::error!("a password can't be hashed: {error}");
            ApiError::Internal
        })
    }

    /// Whether a password has this hash; `None`, where there is nobody, is no in the same time.
    ///
    /// # Errors
    /// [`ApiError::Unavailable`] where too many wait.
    pub(crate) async fn verify(&self, password: String, hash: Option<String>) -> Result<bool, ApiError> {
        let somebody = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.nobody.to_string());
        let matches = self
            .run(move || {
                let hash = PasswordHash::new(&hash);
                hash.is_ok_and(|hash| argon2().verify_password(password.as_bytes(), &hash).is_ok())
            })
            .await?;
        Ok(matches && somebody)
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
        let permits = self.place().await?;
        // The work goes on if the client leaves: so do its places.
        let done = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(permits);
            result
        });
        done.await.map_err(|_panicked| ApiError::Internal)
    }

    async fn place(&self) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit), ApiError> {
        let admitted = self.admitted.clone().try_acquire_owned().map_err(|_full| ApiError::Unavailable)?;
        let running = self.running.clone().acquire_owned().await.map_err(|_closed| ApiError::Internal)?;
        Ok((admitted, running))
    }
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).expect("these parameters are valid");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_matches_its_own_hash_only() {
        let pool = PasswordPool::new();
        let hash = pool.hash("pass123".into()).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(pool.verify("pass123".into(), Some(hash.clone())).await.unwrap());
        assert!(!pool.verify("pass124".into(), Some(hash)).await.unwrap());
        assert!(!pool.verify(String::new(), None).await.unwrap());
    }

    #[tokio::test]
    async fn more_than_may_wait_are_turned_away() {
        let pool = PasswordPool::with_places(1, 1);
        let first = pool.place().await.unwrap();
        let mut second = std::pin::pin!(pool.place());
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        assert_eq!(pool.place().await.map(drop), Err(ApiError::Unavailable));
        drop(first);
        assert!(second.await.is_ok());
    }
}
