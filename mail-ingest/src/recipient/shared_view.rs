//! Which addresses are plain shared inboxes, without a question to Postgres. Most mail of a
//! catch-all service goes to addresses that nobody made; a look-up for each would cost more
//! than it tells. The view holds the domains that serve shared inboxes, and a hash of every
//! address under them that has a mailbox row, live or held. An address that is not among them
//! is a shared inbox: a yes that is at most [`FRESH`] old, as yeses may be. Everything else,
//! and everything while the view is stale, is looked up.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tempmail_model::address::{RecipientAddress, Reservation, ReservedLocalParts};
use tempmail_model::clock::Clock;
use tempmail_store::{Store, StoreError};

/// Age up to which the view decides.
const FRESH: Duration = Duration::from_secs(5);
const PERIOD: Duration = Duration::from_secs(2);
/// Each look goes back this far behind the last one: commits come later than ids are made.
const OVERLAP: SignedDuration = SignedDuration::from_secs(60);
/// Mailboxes that the view can hold, 16 MiB of hashes or so; with more, all is looked up.
const MAILBOXES: usize = 1_000_000;
/// The view is read anew from the start so often, and so forgets what was released.
const WHOLE: SignedDuration = SignedDuration::from_hours(1);

/// The view of one process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct SharedView(Arc<RwLock<Option<View>>>);

#[derive(Debug)]
struct View {
    domains: HashSet<String>,
    mailboxes: HashSet<u64>,
    hasher: RandomState,
    /// Business time of the last look, and of the last one from the start.
    seen: Timestamp,
    whole: Timestamp,
    looked: Instant,
}

impl SharedView {
    /// Whether the address certainly was a shared inbox a moment ago; `false` says nothing.
    pub fn is_shared(&self, address: &RecipientAddress, reserved: &ReservedLocalParts) -> bool {
        let view = self.0.read().unwrap_or_else(PoisonError::into_inner);
        view.as_ref().is_some_and(|view| {
            view.looked.elapsed() < FRESH
                && !address.has_non_ascii_local_part()
                && view.domains.contains(address.domain())
                && reserved.reservation_of(address.base_local_part()) == Reservation::None
                && !view.mailboxes.contains(&view.hash(address.base_local_part(), address.domain()))
        })
    }

    /// Keeps the view fresh until the task is dropped. While Postgres is away it turns stale.
    pub async fn watch(self, store: Store, clock: Arc<dyn Clock>) {
        let mut interval = tokio::time::interval(PERIOD);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            if let Err(error) = self.look(&store, clock.now()).await {
                tracing::debug!(%error, "the view of shared inboxes could not be renewed");
            }
        }
    }

    async fn look(&self, store: &Store, now: Timestamp) -> Result<(), StoreError> {
        let looked = Instant::now();
        let known = {
            let view = self.0.read().unwrap_or_else(PoisonError::into_inner);
            view.as_ref().map(|view| (view.seen, view.whole))
        };
        // A clock that was set back makes a new beginning, too.
        let part = known.filter(|(seen, whole)| *seen <= now && now.duration_since(*whole) < WHOLE);
        let since = part.map_or(Timestamp::UNIX_EPOCH, |(seen, _)| seen - OVERLAP);
        let limit = i64::try_from(MAILBOXES).unwrap_or(i64::MAX);
        let domains = store.list_shared_domains().await?;
        let addresses = store.list_mailbox_addresses(since, limit).await?;

        let mut view = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = match view.take() {
            Some(former) if part.is_some() => former,
            _ => View::empty(now, looked),
        };
        next.domains = domains.into_iter().collect();
        for (local_part, domain) in &addresses {
            let hash = next.hash(local_part, domain);
            next.mailboxes.insert(hash);
        }
        next.seen = now;
        next.looked = looked;
        *view = (next.mailboxes.len() < MAILBOXES).then_some(next);
        Ok(())
    }
}

impl View {
    fn empty(now: Timestamp, looked: Instant) -> Self {
        Self {
            domains: HashSet::new(),
            mailboxes: HashSet::new(),
            hasher: RandomState::new(),
            seen: now,
            whole: now,
            looked,
        }
    }

    fn hash(&self, local_part: &str, domain: &str) -> u64 {
        self.hasher.hash_one((local_part, domain))
    }
}
