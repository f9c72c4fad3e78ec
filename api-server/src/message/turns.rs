//! Turns at reading messages for waits. A tenant has two at a time, and the process one a core: however many waits a
//! tenant has, and however large its mail is, another one's waits are next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// Messages that are read at a time for the waits of a tenant.
const OF_TENANT: usize = 2;

/// The turns of one process.
pub(super) struct Turns {
    all: Arc<Semaphore>,
    tenants: Arc<Tenants>,
}

/// Tenants whose waits read a message or are about to.
type Tenants = Mutex<HashMap<Uuid, Arc<Semaphore>>>;

/// A turn among the waits of a tenant; over when dropped.
pub(crate) struct TenantTurn {
    permit: Option<OwnedSemaphorePermit>,
    _queue: TenantQueue,
}

/// The queue of a tenant's waits, which is forgotten with the last of them.
struct TenantQueue {
    tenants: Arc<Tenants>,
    tenant: Uuid,
    turns: Option<Arc<Semaphore>>,
}

impl Turns {
    pub(super) fn new() -> Self {
        let cores = available_parallelism().map_or(1, std::num::NonZero::get);
        Self { all: Arc::new(Semaphore::new(cores)), tenants: Arc::default() }
    }

    /// Waits for a turn among the waits of a tenant. What it does then may wait for memory.
    pub(super) async fn of_tenant(&self, tenant: Uuid) -> TenantTurn {
        let turns = {
            let mut tenants = lock(&self.tenants);
            Arc::clone(tenants.entry(tenant).or_insert_with(|| Arc::new(Semaphore::new(OF_TENANT))))
        };
        let queue =
            TenantQueue { tenants: Arc::clone(&self.tenants), tenant, turns: Some(Arc::clone(&turns)) };
        // Semaphores are never closed.
        TenantTurn { permit: turns.acquire_owned().await.ok(), _queue: queue }
    }

    /// Waits for a turn among all tenants, which is for computing alone.
    pub(super) async fn of_process(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.all).acquire_owned().await.ok()
    }
}

impl Drop for TenantTurn {
    fn drop(&mut self) {
        // Before the queue, which is forgotten where nothing else has it.
        self.permit = None;
    }
}

impl Drop for TenantQueue {
    fn drop(&mut self) {
        let mut tenants = lock(&self.tenants);
        self.turns = None;
        if tenants.get(&self.tenant).is_some_and(|turns| Arc::strong_count(turns) == 1) {
            tenants.remove(&self.tenant);
        }
    }
}

fn lock(tenants: &Tenants) -> MutexGuard<'_, HashMap<Uuid, Arc<Semaphore>>> {
    tenants.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tenant_has_two_turns_and_holds_up_no_other() {
        let turns = Turns::new();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let first = turns.of_tenant(one).await;
        let second = turns.of_tenant(one).await;
        let mut third = std::pin::pin!(turns.of_tenant(one));
        assert!(futures_util::poll!(third.as_mut()).is_pending());
        drop(turns.of_tenant(other).await);
        drop(first);
        assert!(futures_util::poll!(third.as_mut()).is_ready());
        drop(second);
    }

    #[tokio::test]
    async fn forgets_tenants_whose_waits_are_over_or_were_given_up() {
        let turns = Turns::new();
        let tenant = Uuid::from_u128(1);
        let held = [turns.of_tenant(tenant).await, turns.of_tenant(tenant).await];
        let mut given_up = Box::pin(turns.of_tenant(tenant));
        assert!(futures_util::poll!(given_up.as_mut()).is_pending());
        drop(held);
        drop(given_up);
        assert!(lock(&turns.tenants).is_empty());
    }
}
