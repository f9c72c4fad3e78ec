//! Passwords of declared mailboxes. Hashing one takes some 50 ms and 19 MiB, so what was found once is
//! remembered.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use rand::TryRng as _;
use tempmail_model::password::PasswordHasher;
use uuid::Uuid;

use crate::failure::Failure;

/// Octets of a password, which is their hexadecimal digits.
const OCTETS: usize = 16;

/// One password at a time, so that many objects take the memory of one.
static HASHER: Mutex<PasswordHasher> = Mutex::new(PasswordHasher::new());

/// A new password.
pub(super) fn generate() -> Result<String, Failure> {
    let mut random = [0; OCTETS];
    rand::rngs::SysRng.try_fill_bytes(&mut random).map_err(|_no_randomness| Failure::Randomness)?;
    Ok(random.iter().map(|octet| format!("{octet:02x}")).collect())
}

/// PHC string of a password.
pub(super) async fn hash(password: &str) -> Result<String, Failure> {
    let password = password.to_owned();
    let hash = hashing(move |hasher| hasher.hash(password.as_bytes())).await?;
    hash.map_err(|_no_randomness| Failure::Randomness)
}

/// Which Secrets were found to hold the password of their mailbox, by the uid of the Mailbox.
#[derive(Default)]
pub(crate) struct Fits(Mutex<HashMap<Uuid, Fit>>);

/// A Secret as it was, and the hash that its password has.
#[derive(PartialEq, Eq)]
struct Fit {
    secret: Option<String>,
    /// Whoever changes the Secret changes it.
    resource_version: Option<String>,
    phc: String,
}

impl Fits {
    /// Whether the password that is in the Secret of the object `uid` has this PHC string. It is
    /// hashed if the Secret or the string is another one than when it had it last.
    pub(super) async fn matches(
        &self,
        uid: Uuid,
        secret: &Secret,
        password: &str,
        phc: &str,
    ) -> Result<bool, Failure> {
        let fit =
            Fit { secret: secret.uid(), resource_version: secret.resource_version(), phc: phc.to_owned() };
        if self.lock().get(&uid) == Some(&fit) {
            return Ok(true);
        }
        let (password, phc) = (password.to_owned(), phc.to_owned());
        let matches = hashing(move |hasher| hasher.verify(password.as_bytes(), &phc)).await?;
        if matches {
            self.lock().insert(uid, fit);
        } else {
            self.forget(uid);
        }
        Ok(matches)
    }

    /// The object is gone.
    pub(crate) fn forget(&self, uid: Uuid) {
        self.lock().remove(&uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Fit>> {
        // Every change is a single one: a panic elsewhere leaves the map whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn hashing<T: Send + 'static>(
    work: impl FnOnce(&mut PasswordHasher) -> T + Send + 'static,
) -> Result<T, Failure> {
    metrics::counter!("tempmail_operator_password_hashes_total").increment(1);
    let work = move || work(&mut HASHER.lock().unwrap_or_else(PoisonError::into_inner));
    // It does not panic, and is not cancelled but with the process.
    tokio::task::spawn_blocking(work).await.map_err(|_ended| Failure::Unsettled)
}
