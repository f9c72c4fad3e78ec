//! Hashes mailbox passwords with argon2id: on half of the cores at most, with up to 64 queued.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};
use std::thread;

use tempmail_model::password::PasswordHasher;
use tempmail_runtime::cores;
use tokio::sync::oneshot;

use super::hash_queue::{HashParty, HashQueue};
use crate::http::error::ApiError;
use crate::http::rate_limit::SignInAttempt;

/// Hashes that may wait for a thread.
const QUEUE_MAX: usize = 64;

/// Verified where there is no mailbox, so that the answer takes the same time.
static DUMMY_HASH: LazyLock<String> = LazyLock::new(|| {
    let hash = PasswordHasher::default().hash_with_salt(b"", b"dummy-hash-salt!");
    hash.expect("this salt is valid")
});

/// Hashes and verifies passwords on threads of its own.
pub(crate) struct PasswordPool {
    queue: Arc<HashQueue>,
}

impl PasswordPool {
    pub(crate) fn new() -> Self {
        Self::with_capacity(cores::half(), QUEUE_MAX)
    }

    fn with_capacity(threads: usize, queue_max: usize) -> Self {
        // Before the first sign-in, which would take longer.
        LazyLock::force(&DUMMY_HASH);
        let queue = Arc::new(HashQueue::new(threads, queue_max));
        for _ in 0..threads {
            let queue = Arc::clone(&queue);
            thread::spawn(move || run_jobs(&queue));
        }
        Self { queue }
    }

    /// The hash of a new password, as PHC string.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where too many passwords wait.
    pub(crate) async fn hash(&self, party: HashParty, password: String) -> Result<String, ApiError> {
        let hashed = self.run(party, move |hasher| hasher.hash(password.as_bytes())).await?;
        hashed.map_err(|error| {
            tracing::error!("{error}");
            ApiError::Internal
        })
    }

    /// Whether a password has this hash; without a hash `false`, after the same time. `attempt` stays counted only
    /// if the password was compared and is wrong, whether or not the client waits for the answer.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where too many passwords wait.
    pub(crate) async fn verify(
        &self,
        party: HashParty,
        password: String,
        hash: Option<String>,
        attempt: SignInAttempt,
    ) -> Result<bool, ApiError> {
        let exists = hash.is_some();
        let hash = hash.unwrap_or_else(|| DUMMY_HASH.clone());
        let verified = self.run(party, move |hasher| {
            if hasher.verify(password.as_bytes(), &hash) && exists {
                return Some(attempt);
            }
            attempt.keep();
            None
        });
        let Some(attempt) = verified.await? else { return Ok(false) };
        attempt.uncount().await;
        Ok(true)
    }

    /// Runs a job when it is the party's turn, unless the client has disconnected by then.
    async fn run<T: Send + 'static>(
        &self,
        party: HashParty,
        job: impl FnOnce(&mut PasswordHasher) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let (done, result) = oneshot::channel();
        let job = move |hasher: Option<&mut PasswordHasher>| {
            let result = match hasher {
                Some(_) if done.is_closed() => return,
                Some(hasher) => {
                    metrics::counter!("tempmail_password_hashes_total").increment(1);
                    Ok(job(hasher))
                }
                None => Err(ApiError::Busy("passwords")),
            };
            let _ = done.send(result);
        };
        self.queue.push(party, Box::new(job))?;
        result.await.map_err(|_panicked| ApiError::Internal)?
    }
}

impl Drop for PasswordPool {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Runs the jobs of a queue until it is closed.
fn run_jobs(queue: &HashQueue) {
    let mut hasher = PasswordHasher::default();
    while let Some(job) = queue.next() {
        // A job that panics fails its caller, and does not end the thread.
        let _ = catch_unwind(AssertUnwindSafe(|| job(Some(&mut hasher))));
        queue.done();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tempmail_bus::LocalBus;
    use tempmail_model::limits::Limits;
    use tempmail_runtime::config::Http;

    use super::*;
    use crate::http::client::{Client, ClientResolver};
    use crate::http::rate_limit::RequestLimits;

    const PARTY: HashParty = HashParty::Unlimited;

    fn limits() -> RequestLimits {
        RequestLimits::new(Arc::new(LocalBus::new()), &Limits { sign_in_failures: 1, ..Limits::default() })
    }

    fn client() -> Client {
        ClientResolver::new(&Http::default()).of_connection("192.0.2.1".parse().unwrap())
    }

    #[tokio::test]
    async fn verifies_a_password_against_its_own_hash_only() {
        let (pool, limits) = (PasswordPool::new(), limits());
        let hash = pool.hash(PARTY, "pass123".into()).await.unwrap();
        for (address, password, hash, expected) in [
            ("a", "pass123", Some(hash.clone()), true),
            ("a", "pass124", Some(hash), false),
            ("b", "", None, false),
        ] {
            let attempt = limits.begin_sign_in(address, client()).await.unwrap();
            assert_eq!(pool.verify(PARTY, password.into(), hash, attempt).await, Ok(expected));
            let again = limits.begin_sign_in(address, client()).await;
            assert_eq!(again.is_ok(), expected, "a wrong password and an unknown address stay counted");
            if let Ok(again) = again {
                again.uncount().await;
            }
        }
    }

    #[tokio::test]
    async fn gives_back_an_attempt_that_the_queue_rejects() {
        let (pool, limits) = (PasswordPool::with_capacity(1, 0), limits());
        let (end, ends) = mpsc::channel::<()>();
        let mut running = std::pin::pin!(pool.run(PARTY, move |_| ends.recv().is_err()));
        assert!(futures_util::poll!(running.as_mut()).is_pending());
        let attempt = limits.begin_sign_in("a", client()).await.unwrap();
        let rejected = pool.verify(PARTY, "pass123".into(), None, attempt).await;
        assert_eq!(rejected, Err(ApiError::Busy("passwords")));
        tokio::task::yield_now().await;
        assert!(limits.begin_sign_in("a", client()).await.is_ok());
        drop(end);
        assert_eq!(running.await, Ok(true));
    }

    #[tokio::test]
    async fn does_not_hash_for_a_client_that_left_the_queue() {
        let pool = PasswordPool::with_capacity(1, 2);
        let (end, ends) = mpsc::channel::<()>();
        let (hash, hashed) = mpsc::channel();
        let mut running = std::pin::pin!(pool.run(PARTY, move |_| ends.recv().is_err()));
        assert!(futures_util::poll!(running.as_mut()).is_pending());
        {
            let mut waiting = std::pin::pin!(pool.run(PARTY, move |_| hash.send(()).is_ok()));
            assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        }
        drop(end);
        assert_eq!(running.await, Ok(true));
        // After the one that was left.
        assert_eq!(pool.run(PARTY, |_| true).await, Ok(true));
        assert!(hashed.try_recv().is_err());
    }

    #[tokio::test]
    async fn rejects_jobs_while_the_queue_is_full() {
        let pool = PasswordPool::with_capacity(1, 1);
        let (end, ends) = mpsc::channel::<()>();
        let first = pool.run(PARTY, move |_| ends.recv().is_err());
        let mut both = std::pin::pin!(futures_util::future::join(first, pool.run(PARTY, |_| true)));
        assert!(futures_util::poll!(both.as_mut()).is_pending());
        assert_eq!(pool.run(PARTY, |_| true).await, Err(ApiError::Busy("passwords")));
        drop(end);
        assert_eq!(both.await, (Ok(true), Ok(true)));
        assert_eq!(pool.run(PARTY, |_| true).await, Ok(true));
    }

    #[tokio::test]
    async fn continues_after_a_job_panicked() {
        let pool = PasswordPool::with_capacity(1, 1);
        assert_eq!(pool.run(PARTY, |_| panic!("as a test")).await, Err::<(), _>(ApiError::Internal));
        assert_eq!(pool.run(PARTY, |_| true).await, Ok(true));
    }
}
