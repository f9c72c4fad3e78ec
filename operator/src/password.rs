//! Passwords of declared mailboxes. Hashing one takes some 10 ms and 7 MiB, so matches are cached.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use rand::TryRng as _;
use tempmail_model::password::PasswordHasher;
use uuid::Uuid;

use crate::error::ReconcileError;

/// Random bytes of a password, which is their hexadecimal digits.
const BYTES: usize = 16;

/// Hashes one password at a time, which bounds the memory.
static HASHER: Mutex<PasswordHasher> = Mutex::new(PasswordHasher::new());

/// A new password.
pub(crate) fn generate() -> Result<String, ReconcileError> {
    let mut random = [0; BYTES];
    rand::rngs::SysRng.try_fill_bytes(&mut random).map_err(|_no_randomness| ReconcileError::Randomness)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// PHC string of a password.
pub(crate) async fn hash(password: &str) -> Result<String, ReconcileError> {
    let password = password.to_owned();
    let hash = hash_blocking(move |hasher| hasher.hash(password.as_bytes())).await?;
    hash.map_err(|_no_randomness| ReconcileError::Randomness)
}

/// The Secrets that were found to hold the password of their mailbox, by the uid of the Mailbox.
#[derive(Default)]
pub(crate) struct PasswordCheckCache(Mutex<HashMap<Uuid, PasswordMatch>>);

/// A version of a Secret, and the PHC string that its password matches.
#[derive(PartialEq, Eq)]
struct PasswordMatch {
    secret: Option<String>,
    /// Changes with the Secret.
    resource_version: Option<String>,
    phc: String,
}

impl PasswordMatch {
    fn new(secret: &Secret, phc: &str) -> Self {
        Self { secret: secret.uid(), resource_version: secret.resource_version(), phc: phc.to_owned() }
    }
}

impl PasswordCheckCache {
    /// Whether `password`, which the Secret of the Mailbox `uid` holds, has this PHC string. The password
    /// is hashed unless this version of the Secret is known to match.
    pub(crate) async fn matches(
        &self,
        uid: Uuid,
        secret: &Secret,
        password: &str,
        phc: &str,
    ) -> Result<bool, ReconcileError> {
        if self.lock().get(&uid) == Some(&PasswordMatch::new(secret, phc)) {
            return Ok(true);
        }
        let (presented, expected) = (password.to_owned(), phc.to_owned());
        let matches = hash_blocking(move |hasher| hasher.verify(presented.as_bytes(), &expected)).await?;
        if matches {
            self.record_match(uid, secret, phc);
        } else {
            self.remove(uid);
        }
        Ok(matches)
    }

    /// Records that the password in the Secret is known to have this PHC string.
    pub(crate) fn record_match(&self, uid: Uuid, secret: &Secret, phc: &str) {
        self.lock().insert(uid, PasswordMatch::new(secret, phc));
    }

    /// Removes the Mailbox `uid` from the cache.
    pub(crate) fn remove(&self, uid: Uuid) {
        self.lock().remove(&uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, PasswordMatch>> {
        // Each change is a single operation, so a panic elsewhere leaves the map consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn hash_blocking<T: Send + 'static>(
    work: impl FnOnce(&mut PasswordHasher) -> T + Send + 'static,
) -> Result<T, ReconcileError> {
    metrics::counter!("tempmail_operator_password_hashes_total").increment(1);
    let work = move || work(&mut HASHER.lock().unwrap_or_else(PoisonError::into_inner));
    tokio::task::spawn_blocking(work).await.map_err(|_aborted| ReconcileError::HashingAborted)
}
