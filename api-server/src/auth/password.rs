//! Hashes mailbox passwords with argon2id, in turns.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tempmail_admission::TurnKey;
use tempmail_model::password::PasswordHasher;

use crate::http::client::Party;
use crate::http::error::ApiError;
use crate::http::gates::Gate;
use crate::http::rate_limit::SignInAttempt;

/// Verified where there is no mailbox, so that the answer takes the same time.
static DUMMY_HASH: LazyLock<String> = LazyLock::new(|| {
    let hash = PasswordHasher::default().hash_with_salt(b"", b"dummy-hash-salt!");
    hash.expect("this salt is valid")
});

/// Hashes and verifies passwords on blocking threads.
pub(crate) struct Passwords {
    gate: Gate,
    /// Those that hash nothing now, with their memory: as many as ever hashed at once.
    hashers: Arc<Mutex<Vec<PasswordHasher>>>,
}

impl Passwords {
    pub(crate) fn new(gate: Gate) -> Self {
        // Before the first sign-in, which would take longer.
        LazyLock::force(&DUMMY_HASH);
        Self { gate, hashers: Arc::default() }
    }

    /// The hash of a new password, as PHC string.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where too many passwords wait, or this one for too long.
    pub(crate) async fn hash(
        &self,
        key: impl Into<TurnKey<Party>>,
        password: String,
    ) -> Result<String, ApiError> {
        let hashed = self.run(key, move |hasher| hasher.hash(password.as_bytes())).await?;
        hashed.map_err(|error| {
            tracing::error!("{error}");
            ApiError::Internal
        })
    }

    /// Whether a password has this hash; without a hash `false`, after the same time. `attempt` stays counted only
    /// if the password was compared and is wrong, whether or not the client waits for the answer.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where too many passwords wait, or this one for too long.
    pub(crate) async fn verify(
        &self,
        key: impl Into<TurnKey<Party>>,
        password: String,
        hash: Option<String>,
        attempt: SignInAttempt,
    ) -> Result<bool, ApiError> {
        let exists = hash.is_some();
        let hash = hash.unwrap_or_else(|| DUMMY_HASH.clone());
        let verified = self.run(key, move |hasher| {
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

    /// Runs a job when its turn has come.
    async fn run<T: Send + 'static>(
        &self,
        key: impl Into<TurnKey<Party>>,
        job: impl FnOnce(&mut PasswordHasher) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let turn = self.gate.turn(key).await?;
        let hashers = Arc::clone(&self.hashers);
        let hashing = tokio::task::spawn_blocking(move || {
            let idle = || hashers.lock().unwrap_or_else(PoisonError::into_inner);
            let mut hasher = idle().pop().unwrap_or_default();
            metrics::counter!("tempmail_password_hashes_total").increment(1);
            let result = job(&mut hasher);
            idle().push(hasher);
            drop(turn);
            result
        });
        hashing.await.map_err(|_panicked| ApiError::Internal)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tempmail_bus::LocalBus;
    use tempmail_runtime::config::{Http, Limits};
    use tempmail_runtime::cores;
    use uuid::Uuid;

    use super::*;
    use crate::http::client::{Client, ClientResolver};
    use crate::http::gates::Gates;
    use crate::http::rate_limit::RequestLimits;

    const PARTY: Party = Party::Id(Uuid::nil());

    fn passwords() -> Passwords {
        Passwords::new(Gates::new().passwords)
    }

    fn limits() -> RequestLimits {
        RequestLimits::new(Arc::new(LocalBus::new()), &Limits { sign_in_failures: 1, ..Limits::default() })
    }

    fn client() -> Client {
        ClientResolver::new(&Http::default()).of_connection("192.0.2.1".parse().unwrap())
    }

    #[tokio::test]
    async fn verifies_a_password_against_its_own_hash_only() {
        let (passwords, limits) = (passwords(), limits());
        let hash = passwords.hash(PARTY, "pass123".into()).await.unwrap();
        for (address, password, hash, expected) in [
            ("a", "pass123", Some(hash.clone()), true),
            ("a", "pass124", Some(hash), false),
            ("b", "", None, false),
        ] {
            let attempt = limits.begin_sign_in(address, client()).await.unwrap();
            assert_eq!(passwords.verify(PARTY, password.into(), hash, attempt).await, Ok(expected));
            let again = limits.begin_sign_in(address, client()).await;
            assert_eq!(again.is_ok(), expected, "a wrong password and an unknown address stay counted");
            if let Ok(again) = again {
                again.uncount().await;
            }
        }
    }

    #[tokio::test]
    async fn gives_back_the_attempt_and_hashes_nothing_of_a_client_that_left_the_queue() {
        let (passwords, limits) = (passwords(), limits());
        let mut held = Vec::new();
        for _ in 0..cores::half() {
            held.push(passwords.gate.turn(PARTY).await.unwrap());
        }
        let attempt = limits.begin_sign_in("a", client()).await.unwrap();
        let (hash, hashed) = mpsc::channel();
        {
            let mut waiting = std::pin::pin!(passwords.run(PARTY, move |_| {
                drop(attempt);
                hash.send(()).is_ok()
            }));
            assert!(futures_util::poll!(waiting.as_mut()).is_pending());
            assert!(limits.begin_sign_in("a", client()).await.is_err());
        }
        tokio::task::yield_now().await;
        assert!(limits.begin_sign_in("a", client()).await.is_ok());
        drop(held);
        assert_eq!(passwords.run(PARTY, |_| true).await, Ok(true));
        assert!(hashed.try_recv().is_err());
    }

    #[tokio::test]
    async fn continues_after_a_job_panicked() {
        let passwords = passwords();
        assert_eq!(passwords.run(PARTY, |_| panic!("as a test")).await, Err::<(), _>(ApiError::Internal));
        assert_eq!(passwords.run(PARTY, |_| true).await, Ok(true));
    }
}
