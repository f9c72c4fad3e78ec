//! Whether the installation has room for more mail. Read every two seconds: the bounds of all
//! shared inboxes and of the whole store may lag that much. Shared inboxes stop first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tempmail_model::address::RecipientAddress;
use tempmail_model::clock::Clock;
use tempmail_model::limits::Limits;
use tempmail_runtime::readiness::Readiness;
use tempmail_store::{Store, StoreError};

const PERIOD: Duration = Duration::from_secs(2);

/// Longest wait for Postgres before it counts as away.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the last look found. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct StorageRoom(Arc<State>);

#[derive(Debug, Default)]
struct State {
    shared_full: AtomicBool,
    full: AtomicBool,
    postmaster: Mutex<Option<RecipientAddress>>,
}

impl StorageRoom {
    /// Whether a shared inbox may receive.
    pub fn has_shared_room(&self) -> bool {
        !self.0.shared_full.load(Ordering::Relaxed) && self.has_room()
    }

    /// Whether anybody may receive.
    pub fn has_room(&self) -> bool {
        !self.0.full.load(Ordering::Relaxed)
    }

    /// Who `<postmaster>` without a domain is; `None` while no system domain is known.
    pub fn postmaster(&self) -> Option<RecipientAddress> {
        self.0.postmaster.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps looking until the task is dropped; says in `readiness` whether Postgres answers.
    pub async fn watch(self, store: Store, clock: Arc<dyn Clock>, limits: Limits, readiness: Readiness) {
        let mut interval = tokio::time::interval(PERIOD);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut away = false;
        loop {
            interval.tick().await;
            let problem = match tokio::time::timeout(PATIENCE, self.look(&store, &*clock, &limits)).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("Postgres does not answer".to_owned()),
            };
            match &problem {
                None => readiness.set_ready("postgres"),
                Some(problem) => {
                    readiness.set_not_ready("postgres", "does not answer");
                    if !away {
                        tracing::warn!(%problem, "mail is deferred: the room in the store is not known");
                    }
                }
            }
            away = problem.is_some();
        }
    }

    async fn look(&self, store: &Store, clock: &dyn Clock, limits: &Limits) -> Result<(), StoreError> {
        let usage = store.store_usage(clock.now()).await?;
        self.0.shared_full.store(usage.shared >= limits.shared_bytes, Ordering::Relaxed);
        self.0.full.store(usage.total >= limits.store_bytes, Ordering::Relaxed);
        let postmaster = store
            .default_system_domain()
            .await?
            .and_then(|domain| RecipientAddress::parse(&format!("postmaster@{domain}")).ok());
        *self.0.postmaster.lock().unwrap_or_else(PoisonError::into_inner) = postmaster;
        Ok(())
    }
}
