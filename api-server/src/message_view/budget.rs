//! Memory for parsing: 256 MiB in flight a process.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ViewError;

/// Octets a permit of the semaphore stands for.
const UNIT: usize = 1 << 10;
const BUDGET: usize = 256 << 20;
/// What a message takes besides its size: structure, headers.
const OVERHEAD: usize = 64 << 10;
/// The raw data, its decoded parts and the answer made of them.
const COPIES: usize = 3;
/// How long a request waits for room.
const WAIT: Duration = Duration::from_secs(5);

/// What all parsing shares.
pub(crate) struct MemoryBudget(Arc<Semaphore>);

impl MemoryBudget {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(BUDGET / UNIT)))
    }

    /// Room to parse a message of `size` octets.
    ///
    /// # Errors
    /// [`ViewError::Busy`] where there is none within 5 s.
    pub(super) async fn take(&self, size: i32) -> Result<OwnedSemaphorePermit, ViewError> {
        let octets = usize::try_from(size).unwrap_or(0) * COPIES + OVERHEAD;
        let units = units(octets.min(BUDGET));
        match tokio::time::timeout(WAIT, self.0.clone().acquire_many_owned(units)).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(ViewError::Busy),
        }
    }
}

/// Gives back what of a permit is over `octets`.
pub(super) fn shrink(permit: &mut OwnedSemaphorePermit, octets: usize) {
    let over = permit.num_permits().saturating_sub(octets.div_ceil(UNIT));
    drop(permit.split(over));
}

fn units(octets: usize) -> u32 {
    u32::try_from(octets.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_fit_waits_and_then_is_busy() {
        let budget = MemoryBudget::new();
        let large = 50 << 20;
        let mut first = budget.take(large).await.unwrap();
        assert!(matches!(budget.take(large).await, Err(ViewError::Busy)));
        assert!(budget.take(1).await.is_ok());
        shrink(&mut first, 1 << 20);
        let second = budget.take(large).await.unwrap();
        drop((first, second));
        assert!(budget.take(i32::MAX).await.is_ok());
    }
}
