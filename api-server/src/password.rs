//! Mailbox passwords: argon2id, as many at once as there are cores, 64 waiting.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, available_parallelism};

use tempmail_model::password::PasswordHasher;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::ApiError;

/// Hashes that may wait for a core.
const WAITING: usize = 64;
type Work = Box<dyn FnOnce(&mut PasswordHasher) + Send>;

/// Hashes and verifies passwords with bounded work, on threads of its own.
pub(crate) struct PasswordPool {
    admitted: Arc<Semaphore>,
    threads: mpsc::Sender<Work>,
    /// What is verified where there is no mailbox, so that this takes the same time.
    nobody: Arc<str>,
}

impl PasswordPool {
    pub(crate) fn new() -> Self {
        let cores = available_parallelism().map_or(1, std::num::NonZero::get);
        Self::with_places(cores, WAITING)
    }

    fn with_places(cores: usize, waiting: usize) -> Self {
        let nobody = PasswordHasher::default().hash_with_salt(b"", b"nobody-has-this!");
        Self {
            admitted: Arc::new(Semaphore::new(cores + waiting)),
            threads: start_threads(cores),
            nobody: nobody.expect("this salt is valid").into(),
        }
    }

    /// The hash of a new password, as PHC string.
    ///
    /// # Errors
    /// [`ApiError::Unavailable`] where too many wait.
    pub(crate) async fn hash(&self, password: String) -> Result<String, ApiError> {
        let hashed = self.run(move |hasher| hasher.hash(password.as_bytes())).await?;
        hashed.map_err(|error| {
            tracing::error!("{error}");
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
        let matches = self.run(move |hasher| hasher.verify(password.as_bytes(), &hash)).await?;
        Ok(matches && somebody)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut PasswordHasher) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let place: OwnedSemaphorePermit =
            self.admitted.clone().try_acquire_owned().map_err(|_full| ApiError::Unavailable)?;
        let (done, result) = oneshot::channel();
        // The work goes on if the client leaves: so does its place.
        let work = Box::new(move |hasher: &mut PasswordHasher| {
            let result = work(hasher);
            drop(place);
            let _ = done.send(result);
        });
        self.threads.send(work).map_err(|_ended| ApiError::Internal)?;
        result.await.map_err(|_panicked| ApiError::Internal)
    }
}

/// Threads that take work in its order; they end when nobody can give them any.
fn start_threads(count: usize) -> mpsc::Sender<Work> {
    let (give, take) = mpsc::channel::<Work>();
    let take = Arc::new(Mutex::new(take));
    for _ in 0..count {
        let take = Arc::clone(&take);
        thread::spawn(move || {
            let mut hasher = PasswordHasher::default();
            loop {
                let work = take.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(work) = work else { return };
                // A hash that panics is an error of its caller, and not the end of the thread.
                let _ = catch_unwind(AssertUnwindSafe(|| work(&mut hasher)));
            }
        });
    }
    give
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_matches_its_own_hash_only() {
        let pool = PasswordPool::new();
        let hash = pool.hash("pass123".into()).await.unwrap();
        assert!(pool.verify("pass123".into(), Some(hash.clone())).await.unwrap());
        assert!(!pool.verify("pass124".into(), Some(hash)).await.unwrap());
        assert!(!pool.verify(String::new(), None).await.unwrap());
    }

    #[tokio::test]
    async fn more_than_may_wait_are_turned_away() {
        let pool = PasswordPool::with_places(1, 1);
        let (end, ends) = mpsc::channel::<()>();
        let first = pool.run(move |_| ends.recv().is_err());
        let mut both = std::pin::pin!(futures_util::future::join(first, pool.run(|_| true)));
        assert!(futures_util::poll!(both.as_mut()).is_pending());
        assert_eq!(pool.run(|_| true).await, Err(ApiError::Unavailable));
        drop(end);
        assert_eq!(both.await, (Ok(true), Ok(true)));
        assert_eq!(pool.run(|_| true).await, Ok(true));
    }

    #[tokio::test]
    async fn work_that_panics_harms_no_other() {
        let pool = PasswordPool::with_places(1, 0);
        assert_eq!(pool.run(|_| panic!("as a test")).await, Err::<(), _>(ApiError::Internal));
        assert_eq!(pool.run(|_| true).await, Ok(true));
    }
}
