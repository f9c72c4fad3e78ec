//! Whether the installation has capacity for more mail. The usage is read every two seconds, so the
//! bounds of all shared inboxes and of the store may be exceeded by that much. Shared inboxes are
//! closed first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tempmail_model::address::RecipientAddress;
use tempmail_model::clock::Clock;
use tempmail_model::limits::Limits;
use tempmail_runtime::readiness::Readiness;
use tempmail_store::{Store, StoreError};

const REFRESH_PERIOD: Duration = Duration::from_secs(2);

/// A refresh that takes longer counts as failed.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(5);

/// The capacity at the last refresh. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct CapacityGate(Arc<GateState>);

#[derive(Debug, Default)]
struct GateState {
    shared_inboxes_full: AtomicBool,
    store_full: AtomicBool,
    postmaster: Mutex<Option<RecipientAddress>>,
}

impl CapacityGate {
    /// Whether shared inboxes may receive mail.
    pub(crate) fn accepts_shared(&self) -> bool {
        !self.0.shared_inboxes_full.load(Ordering::Relaxed) && self.accepts_any()
    }

    /// Whether the installation may receive mail at all.
    pub(crate) fn accepts_any(&self) -> bool {
        !self.0.store_full.load(Ordering::Relaxed)
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
            let refresh = self.refresh(&store, &*clock, &limits);
            let problem = match tokio::time::timeout(REFRESH_TIMEOUT, refresh).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("Postgres does not answer".to_owned()),
            };
            match &problem {
                None => readiness.set_ready("postgres"),
                Some(problem) => {
                    readiness.set_not_ready("postgres", "does not answer");
                    if !failing {
                        tracing::warn!(%problem, "the usage of the store can't be read");
                    }
                }
            }
            failing = problem.is_some();
        }
    }

    async fn refresh(&self, store: &Store, clock: &dyn Clock, limits: &Limits) -> Result<(), StoreError> {
        let usage = store.store_usage(clock.now()).await?;
        self.0.shared_inboxes_full.store(usage.shared >= limits.shared_bytes, Ordering::Relaxed);
        self.0.store_full.store(usage.total >= limits.store_bytes, Ordering::Relaxed);
        set_gauges("shared_inboxes", usage.shared, limits.shared_bytes);
        set_gauges("store", usage.total, limits.store_bytes);
        let postmaster = store
            .default_system_domain()
            .await?
            .and_then(|domain| RecipientAddress::parse(&format!("postmaster@{domain}")).ok());
        *self.0.postmaster.lock().unwrap_or_else(PoisonError::into_inner) = postmaster;
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges of bytes")]
fn set_gauges(scope: &'static str, used: u64, limit: u64) {
    metrics::gauge!("tempmail_used_bytes", "scope" => scope).set(used as f64);
    metrics::gauge!("tempmail_limit_bytes", "scope" => scope).set(limit as f64);
}
