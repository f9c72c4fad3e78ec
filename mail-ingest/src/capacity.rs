//! Whether the installation has capacity for more mail. Its storage has two parts: one for mail without a tenant,
//! which anybody may send and whose mailboxes anybody may make, and the rest for tenants. Neither fills the other.
//!
//! Within theirs, a tenant may store as many bytes as are left. So one tenant leaves half of the part to the others,
//! two leave a third, and who stores most is deferred first; there is nothing to configure, and nobody is counted.
//!
//! The usage is read every two seconds, so the parts may be exceeded by that much.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tempmail_model::address::RecipientAddress;
use tempmail_model::clock::Clock;
use tempmail_runtime::config::Limits;
use tempmail_runtime::readiness::Readiness;
use tempmail_store::{DeliveryLimits, Store, StoreError};

const REFRESH_PERIOD: Duration = Duration::from_secs(2);

/// The capacity at the last refresh. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct CapacityGate(Arc<GateState>);

#[derive(Debug)]
struct GateState {
    free_full: AtomicBool,
    tenant_bytes: AtomicU64,
    postmaster: Mutex<Option<RecipientAddress>>,
}

/// The parts of the storage, bytes.
struct StoreParts {
    /// Of mail without a tenant.
    free: u64,
    tenants: u64,
}

impl Default for GateState {
    /// Nothing is full before the first refresh.
    fn default() -> Self {
        Self {
            free_full: AtomicBool::new(false),
            tenant_bytes: AtomicU64::new(u64::MAX),
            postmaster: Mutex::default(),
        }
    }
}

impl CapacityGate {
    /// Whether mail without a tenant may be stored: of shared inboxes and of free mailboxes.
    pub(crate) fn accepts_free(&self) -> bool {
        !self.0.free_full.load(Ordering::Relaxed)
    }

    /// Whether mail of tenants may be stored at all.
    pub(crate) fn accepts_tenants(&self) -> bool {
        self.tenant_bytes() > 0
    }

    /// What any one tenant may store now, bytes.
    fn tenant_bytes(&self) -> i64 {
        i64::try_from(self.0.tenant_bytes.load(Ordering::Relaxed)).unwrap_or(i64::MAX)
    }

    /// These limits, with what any one tenant may store now.
    pub(crate) fn limits_now(&self, limits: DeliveryLimits) -> DeliveryLimits {
        DeliveryLimits { tenant_bytes: self.tenant_bytes(), ..limits }
    }

    /// The address of `<postmaster>` without a domain; `None` while no system domain is known.
    pub(crate) fn postmaster(&self) -> Option<RecipientAddress> {
        self.0.postmaster.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Refreshes the capacity until the task is aborted, and reports in `readiness` whether Postgres
    /// answers.
    pub(crate) async fn run(self, store: Store, clock: Arc<dyn Clock>, limits: Limits, readiness: Readiness) {
        let mut interval = tokio::time::interval(REFRESH_PERIOD);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut failing = false;
        loop {
            interval.tick().await;
            let refreshed = self.refresh(&store, &*clock, &limits).await;
            match &refreshed {
                Ok(()) => readiness.set_ready("postgres"),
                Err(error) => {
                    readiness.set_not_ready("postgres", error.to_string());
                    if !failing {
                        tracing::warn!(%error, "the usage of the store can't be read");
                    }
                }
            }
            failing = refreshed.is_err();
        }
    }

    async fn refresh(&self, store: &Store, clock: &dyn Clock, limits: &Limits) -> Result<(), StoreError> {
        let (usage, parts) = (store.store_usage(clock.now()).await?, StoreParts::of(limits));
        let of_tenants = usage.total.saturating_sub(usage.free);
        let left = parts.tenants.saturating_sub(of_tenants);
        self.0.free_full.store(usage.free >= parts.free, Ordering::Relaxed);
        self.0.tenant_bytes.store(left, Ordering::Relaxed);
        set_gauges("shared_inboxes", usage.shared, parts.free);
        set_gauges("free", usage.free, parts.free);
        set_gauges("tenants", of_tenants, parts.tenants);
        set_gauges("store", usage.total, limits.store_bytes);
        let postmaster = store
            .default_system_domain()
            .await?
            .and_then(|domain| RecipientAddress::parse(&format!("postmaster@{domain}")).ok());
        *self.0.postmaster.lock().unwrap_or_else(PoisonError::into_inner) = postmaster;
        Ok(())
    }
}

impl StoreParts {
    fn of(limits: &Limits) -> Self {
        let free = limits.shared_bytes.min(limits.store_bytes / 2);
        Self { free, tenants: limits.store_bytes - free }
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges of bytes")]
fn set_gauges(scope: &'static str, used: u64, limit: u64) {
    metrics::gauge!("tempmail_used_bytes", "scope" => scope).set(used as f64);
    metrics::gauge!("tempmail_limit_bytes", "scope" => scope).set(limit as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(shared_bytes: u64, store_bytes: u64) -> (u64, u64) {
        let parts = StoreParts::of(&Limits { shared_bytes, store_bytes, ..Limits::default() });
        (parts.free, parts.tenants)
    }

    #[test]
    fn leaves_at_least_half_of_the_store_to_tenants() {
        assert_eq!(parts(20, 40), (20, 20));
        assert_eq!(parts(10, 40), (10, 30));
        assert_eq!(parts(40, 40), (20, 20));
        assert_eq!(parts(u64::MAX, 41), (20, 21));
    }
}
