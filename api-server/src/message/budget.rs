//! Bounds the memory for parsing messages: 256 MiB per process.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::error::ApiError;

/// Bytes per permit of the semaphore.
const UNIT: usize = 1 << 10;
const BUDGET: usize = 256 << 20;
/// Bytes for the structure and headers of a message, besides its size.
const OVERHEAD: usize = 64 << 10;
/// Copies of a message in memory: the raw data, its decoded parts and the answer.
const COPIES: usize = 3;
/// How long a request waits for memory.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The memory that all requests share.
pub(crate) struct MemoryBudget(Arc<Semaphore>);

impl MemoryBudget {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(BUDGET / UNIT)))
    }

    /// Memory to parse a message of `size` bytes.
    ///
    /// # Errors
    /// [`ApiError::Unavailable`] where there is none within 5 s.
    pub(super) async fn acquire(&self, size: i32) -> Result<OwnedSemaphorePermit, ApiError> {
        let bytes = usize::try_from(size).unwrap_or(0) * COPIES + OVERHEAD;
        let units = units(bytes.min(BUDGET));
        match tokio::time::timeout(TIMEOUT, self.0.clone().acquire_many_owned(units)).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(ApiError::Unavailable),
        }
    }
}

/// Releases what a permit holds beyond `bytes`.
pub(super) fn shrink(permit: &mut OwnedSemaphorePermit, bytes: usize) {
    let excess = permit.num_permits().saturating_sub(bytes.div_ceil(UNIT));
    drop(permit.split(excess));
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_for_memory_and_then_is_unavailable() {
        let budget = MemoryBudget::new();
        let large = 50 << 20;
        let mut first = budget.acquire(large).await.unwrap();
        assert!(matches!(budget.acquire(large).await, Err(ApiError::Unavailable)));
        assert!(budget.acquire(1).await.is_ok());
        shrink(&mut first, 1 << 20);
        let second = budget.acquire(large).await.unwrap();
        drop((first, second));
        assert!(budget.acquire(i32::MAX).await.is_ok());
    }
}
