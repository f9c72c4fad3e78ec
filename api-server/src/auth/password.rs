//! Hashes mailbox passwords with argon2id: one at a time per core, with up to 64 queued.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, available_parallelism};

use tempmail_model::password::PasswordHasher;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::http::error::ApiError;

/// Hashes that may wait for a core.
const QUEUE_MAX: usize = 64;

type HashJob = Box<dyn FnOnce(&mut PasswordHasher) + Send>;

/// Hashes and verifies passwords on threads of its own.
pub(crate) struct PasswordPool {
    permits: Arc<Semaphore>,
    jobs: mpsc::Sender<HashJob>,
    /// Verified where there is no mailbox, so that the answer takes the same time.
    dummy_hash: Arc<str>,
}

impl PasswordPool {
    pub(crate) fn new() -> Self {
        let cores = available_parallelism().map_or(1, std::num::NonZero::get);
        Self::with_capacity(cores, QUEUE_MAX)
    }

    fn with_capacity(cores: usize, queue_max: usize) -> Self {
        let dummy_hash = PasswordHasher::default().hash_with_salt(b"", b"dummy-hash-salt!");
        Self {
            permits: Arc::new(Semaphore::new(cores + queue_max)),
            jobs: start_threads(cores),
            dummy_hash: dummy_hash.expect("this salt is valid").into(),
        }
    }

    /// The hash of a new password, as PHC string.
    ///
    /// # Errors
    /// [`ApiError::Unavailable`] where the queue is full.
    pub(crate) async fn hash(&self, password: String) -> Result<String, ApiError> {
        let hashed = self.run(move |hasher| hasher.hash(password.as_bytes())).await?;
        hashed.map_err(|error| {
            tracing::error!("{error}");
            ApiError::Internal
        })
    }

    /// Whether a password has this hash; without a hash `false`, after the same time.
    ///
    /// # Errors
    /// [`ApiError::Unavailable`] where the queue is full.
    pub(crate) async fn verify(&self, password: String, hash: Option<String>) -> Result<bool, ApiError> {
        let exists = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.dummy_hash.to_string());
        let matches = self.run(move |hasher| hasher.verify(password.as_bytes(), &hash)).await?;
        Ok(matches && exists)
    }

    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut PasswordHasher) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let permit: OwnedSemaphorePermit =
            self.permits.clone().try_acquire_owned().map_err(|_full| ApiError::Unavailable)?;
        let (done, result) = oneshot::channel();
        // The job continues if the client disconnects, and keeps its permit.
        let job = Box::new(move |hasher: &mut PasswordHasher| {
            let result = job(hasher);
            drop(permit);
            let _ = done.send(result);
        });
        self.jobs.send(job).map_err(|_ended| ApiError::Internal)?;
        result.await.map_err(|_panicked| ApiError::Internal)
    }
}

/// Starts threads that run jobs in order; they end when the sender is dropped.
fn start_threads(count: usize) -> mpsc::Sender<HashJob> {
    let (sender, receiver) = mpsc::channel::<HashJob>();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..count {
        let receiver = Arc::clone(&receiver);
        thread::spawn(move || {
            let mut hasher = PasswordHasher::default();
            loop {
                let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(job) = job else { return };
                // A job that panics fails its caller, and does not end the thread.
                let _ = catch_unwind(AssertUnwindSafe(|| job(&mut hasher)));
            }
        });
    }
    sender
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn verifies_a_password_against_its_own_hash_only() {
        let pool = PasswordPool::new();
        let hash = pool.hash("pass123".into()).await.unwrap();
        assert!(pool.verify("pass123".into(), Some(hash.clone())).await.unwrap());
        assert!(!pool.verify("pass124".into(), Some(hash)).await.unwrap());
        assert!(!pool.verify(String::new(), None).await.unwrap());
    }

    #[tokio::test]
    async fn rejects_jobs_while_the_queue_is_full() {
        let pool = PasswordPool::with_capacity(1, 1);
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
    async fn continues_after_a_job_panicked() {
        let pool = PasswordPool::with_capacity(1, 0);
        assert_eq!(pool.run(|_| panic!("as a test")).await, Err::<(), _>(ApiError::Internal));
        assert_eq!(pool.run(|_| true).await, Ok(true));
    }
}
