//! Who was accepted in the last seconds. Bounded: two maps, of which the older one is dropped
//! when the newer one is full or old.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempmail_model::address::RecipientAddress;

use super::judge::Accepting;

/// How long a yes holds.
const HOLDS: Duration = Duration::from_secs(5);
/// Addresses of one of the two maps.
const HALF: usize = 32_768;

#[derive(Debug, Default)]
pub(super) struct YesCache(Mutex<Halves>);

#[derive(Debug, Default)]
struct Halves {
    newer: HashMap<RecipientAddress, Entry>,
    older: HashMap<RecipientAddress, Entry>,
    since: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    accepting: Accepting,
    until: Instant,
}

impl YesCache {
    /// The yes for this address, if there was one just now that covers the declared size.
    pub(super) fn get(&self, address: &RecipientAddress, size: u64) -> Option<Accepting> {
        let halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = *halves.newer.get(address).or_else(|| halves.older.get(address))?;
        drop(halves);
        let holds = entry.until > Instant::now() && entry.accepting.room.fits(size) == Some(true);
        holds.then_some(entry.accepting)
    }

    pub(super) fn insert(&self, address: RecipientAddress, accepting: Accepting) {
        let now = Instant::now();
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *halves.since.get_or_insert(now);
        if halves.newer.len() >= HALF || now - since > HOLDS {
            halves.older = std::mem::take(&mut halves.newer);
            halves.since = Some(now);
        }
        halves.newer.insert(address, Entry { accepting, until: now + HOLDS });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipient::judge::Room;

    #[test]
    fn a_yes_holds_for_its_size_and_the_cache_is_bounded() {
        let cache = YesCache::default();
        let address = |name: usize| RecipientAddress::parse(&format!("a{name}@b.example")).unwrap();
        let accepting = |room| Accepting { shared: false, room };
        cache.insert(address(1), accepting(Room::Octets(10)));
        cache.insert(address(2), accepting(Room::NotAsked));
        assert_eq!(cache.get(&address(1), 10), Some(accepting(Room::Octets(10))));
        assert_eq!(cache.get(&address(1), 11), None);
        assert_eq!(cache.get(&address(2), 0), Some(accepting(Room::NotAsked)));
        assert_eq!(cache.get(&address(2), 1), None);
        assert_eq!(cache.get(&address(3), 0), None);
        for name in 0..3 * HALF {
            cache.insert(address(name), accepting(Room::NoMailbox));
        }
        let halves = cache.0.lock().unwrap();
        assert!(halves.newer.len() + halves.older.len() <= 2 * HALF);
    }
}
