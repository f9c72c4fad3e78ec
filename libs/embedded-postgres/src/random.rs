//! Randomness of the operating system.

use rand::TryRng as _;

use crate::error::Error;

/// `N` random bytes as hex digits.
pub(crate) fn random_hex<const N: usize>() -> Result<String, Error> {
    let mut random = [0; N];
    rand::rngs::SysRng.try_fill_bytes(&mut random).map_err(|_| Error::NoRandomness)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
