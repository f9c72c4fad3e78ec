//! A cache of recipients that were accepted in the last seconds. It is bounded by two generations:
//! the older one is dropped when the newer one is full or old.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempmail_model::address::RecipientAddress;

use super::acceptance::Acceptance;

/// How long an entry is valid.
const TTL: Duration = Duration::from_secs(5);
/// Maximum entries of a generation.
const GENERATION_MAX: usize = 32_768;

/// Accepted recipients by address.
#[derive(Debug, Default)]
pub(super) struct AcceptCache(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    newer: HashMap<RecipientAddress, CachedAcceptance>,
    older: HashMap<RecipientAddress, CachedAcceptance>,
    /// When the newer generation was started.
    started: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct CachedAcceptance {
    acceptance: Acceptance,
    valid_until: Instant,
}

impl AcceptCache {
    /// The valid entry of an address, unless the declared size needs its quota to be read again.
    pub(super) fn get(&self, address: &RecipientAddress, size: u64) -> Option<Acceptance> {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = *generations.newer.get(address).or_else(|| generations.older.get(address))?;
        drop(generations);
        let valid =
            entry.valid_until > Instant::now() && entry.acceptance.quota_left.fits(size) == Some(true);
        valid.then_some(entry.acceptance)
    }

    pub(super) fn insert(&self, address: RecipientAddress, acceptance: Acceptance) {
        let now = Instant::now();
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let started = *generations.started.get_or_insert(now);
        if generations.newer.len() >= GENERATION_MAX || now - started > TTL {
            generations.older = std::mem::take(&mut generations.newer);
            generations.started = Some(now);
        }
        generations.newer.insert(address, CachedAcceptance { acceptance, valid_until: now + TTL });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipient::acceptance::QuotaLeft;

    #[test]
    fn returns_entries_that_cover_the_size_and_is_bounded() {
        let cache = AcceptCache::default();
        let address = |name: usize| RecipientAddress::parse(&format!("a{name}@b.example")).unwrap();
        let acceptance = |quota_left| Acceptance { tenant: None, quota_left };
        cache.insert(address(1), acceptance(QuotaLeft::Bytes(10)));
        cache.insert(address(2), acceptance(QuotaLeft::Unknown));
        assert_eq!(cache.get(&address(1), 10), Some(acceptance(QuotaLeft::Bytes(10))));
        assert_eq!(cache.get(&address(1), 11), None);
        assert_eq!(cache.get(&address(2), 0), Some(acceptance(QuotaLeft::Unknown)));
        assert_eq!(cache.get(&address(2), 1), None);
        assert_eq!(cache.get(&address(3), 0), None);
        for name in 0..3 * GENERATION_MAX {
            cache.insert(address(name), acceptance(QuotaLeft::NoMailbox));
        }
        let generations = cache.0.lock().unwrap();
        assert!(generations.newer.len() + generations.older.len() <= 2 * GENERATION_MAX);
    }
}
