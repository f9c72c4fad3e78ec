//! Passwords of declared mailboxes.

use std::sync::{Mutex, PoisonError};

use rand::TryRng as _;
use tempmail_model::password::Hasher;

use crate::failure::Failure;

/// Octets of a password, which is their hexadecimal digits.
const OCTETS: usize = 16;

/// One password at a time, so that many objects take the memory of one.
static HASHER: Mutex<Hasher> = Mutex::new(Hasher::new());

/// A new password, and its PHC string.
pub(super) async fn generate() -> Result<(String, String), Failure> {
    let mut random = [0; OCTETS];
    rand::rngs::SysRng.try_fill_bytes(&mut random).map_err(|_no_randomness| Failure::Randomness)?;
    let password: String = random.iter().map(|octet| format!("{octet:02x}")).collect();
    let text = password.clone();
    let hash = hash(move |hasher| hasher.hash(text.as_bytes())).await?;
    Ok((password, hash.map_err(|_no_randomness| Failure::Randomness)?))
}

/// Whether a password has this PHC string.
pub(super) async fn matches(password: String, phc: String) -> Result<bool, Failure> {
    hash(move |hasher| hasher.matches(password.as_bytes(), &phc)).await
}

async fn hash<T: Send + 'static>(work: impl FnOnce(&mut Hasher) -> T + Send + 'static) -> Result<T, Failure> {
    let work = move || work(&mut HASHER.lock().unwrap_or_else(PoisonError::into_inner));
    // It does not panic, and is not cancelled but with the process.
    tokio::task::spawn_blocking(work).await.map_err(|_ended| Failure::Unsettled)
}
