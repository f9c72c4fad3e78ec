//! Finds shared inboxes without a query. Most mail of a catch-all service goes to addresses that were
//! never created, and a lookup of each would be expensive. The index has the domains that serve
//! shared inboxes, and a hash of every address under them that has a mailbox row, whether live or
//! held. Any other address of these domains is a shared inbox. The index is at most [`VALID_FOR`]
//! old, as cached acceptances may be. All else, and everything while the index is stale, is looked
//! up.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tempmail_model::address::{RecipientAddress, Reservation, ReservedLocalParts};
use tempmail_model::clock::Clock;
use tempmail_store::{Store, StoreError};

/// Age up to which the index may be used.
const VALID_FOR: Duration = Duration::from_secs(5);
const REFRESH_PERIOD: Duration = Duration::from_secs(2);
/// A refresh reads mailboxes again that are this much older than the last one, since they are
/// committed later than their ids are generated.
const OVERLAP: SignedDuration = SignedDuration::from_secs(60);
/// Maximum mailboxes of the index, about 16 MiB of hashes. With more, all recipients are looked up.
const MAILBOXES_MAX: usize = 1_000_000;
/// The index is rebuilt this often, which drops addresses that were released.
const REBUILD_PERIOD: SignedDuration = SignedDuration::from_hours(1);

/// The index of a process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedInboxIndex(Arc<RwLock<Option<IndexContent>>>);

#[derive(Debug)]
struct IndexContent {
    domains: HashSet<String>,
    mailboxes: HashSet<u64>,
    hasher: RandomState,
    /// Business time of the last refresh.
    refreshed_at: Timestamp,
    /// Business time of the last rebuild.
    rebuilt_at: Timestamp,
    /// When the last refresh started, for [`VALID_FOR`].
    valid_since: Instant,
}

impl SharedInboxIndex {
    /// Whether the address certainly was a shared inbox at the last refresh; `false` if it is not
    /// known.
    pub(super) fn contains(&self, address: &RecipientAddress, reserved: &ReservedLocalParts) -> bool {
        let content = self.0.read().unwrap_or_else(PoisonError::into_inner);
        content.as_ref().is_some_and(|content| {
            content.valid_since.elapsed() < VALID_FOR
                && !address.has_non_ascii_local_part()
                && content.domains.contains(address.domain())
                && reserved.reservation_of(address.base_local_part()) == Reservation::None
                && !content.mailboxes.contains(&content.hash(address.base_local_part(), address.domain()))
        })
    }

    /// Refreshes the index until the task is aborted. While Postgres is unavailable it becomes stale.
    pub(crate) async fn run(self, store: Store, clock: Arc<dyn Clock>) {
        let mut interval = tokio::time::interval(REFRESH_PERIOD);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            if let Err(error) = self.refresh(&store, clock.now()).await {
                tracing::debug!(%error, "the index of shared inboxes can't be refreshed");
            }
        }
    }

    async fn refresh(&self, store: &Store, now: Timestamp) -> Result<(), StoreError> {
        let started = Instant::now();
        let last = {
            let content = self.0.read().unwrap_or_else(PoisonError::into_inner);
            content.as_ref().map(|content| (content.refreshed_at, content.rebuilt_at))
        };
        // The index is also rebuilt if the clock was set back.
        let last = last.filter(|(refreshed_at, rebuilt_at)| {
            *refreshed_at <= now && now.duration_since(*rebuilt_at) < REBUILD_PERIOD
        });
        let since = last.map_or(Timestamp::UNIX_EPOCH, |(refreshed_at, _)| refreshed_at - OVERLAP);
        let limit = i64::try_from(MAILBOXES_MAX).unwrap_or(i64::MAX);
        let domains = store.list_shared_domains().await?;
        let addresses = store.list_mailbox_addresses(since, limit).await?;

        let mut content = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = match content.take() {
            Some(current) if last.is_some() => current,
            _ => IndexContent::empty(now, started),
        };
        next.domains = domains.into_iter().collect();
        for (local_part, domain) in &addresses {
            let hash = next.hash(local_part, domain);
            next.mailboxes.insert(hash);
        }
        next.refreshed_at = now;
        next.valid_since = started;
        *content = (next.mailboxes.len() < MAILBOXES_MAX).then_some(next);
        Ok(())
    }
}

impl IndexContent {
    fn empty(now: Timestamp, valid_since: Instant) -> Self {
        Self {
            domains: HashSet::new(),
            mailboxes: HashSet::new(),
            hasher: RandomState::new(),
            refreshed_at: now,
            rebuilt_at: now,
            valid_since,
        }
    }

    fn hash(&self, local_part: &str, domain: &str) -> u64 {
        self.hasher.hash_one((local_part, domain))
    }
}
