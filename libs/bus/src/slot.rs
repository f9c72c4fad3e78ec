//! Places: how many waits, streams and sockets may be open under one key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use crate::over_redis::Lease;

/// What is counted, and by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermitKey {
    /// Long-polls of an API token, by its id.
    TokenWaits(Uuid),
    /// Server-sent event streams of an API token, by its id.
    TokenStreams(Uuid),
    /// WebSockets of a mailbox.
    MailboxSockets(Uuid),
    /// Long-polls of one tenant on one address, so that no tenant can lock another out.
    AddressWaits {
        /// The tenant that waits.
        tenant: Uuid,
        /// The key of the exact address.
        address: Uuid,
    },
}

/// The places that this process has taken. Keys without a taken place use no memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    taken: Arc<Mutex<HashMap<PermitKey, usize>>>,
}

impl Places {
    pub(crate) fn try_take(&self, key: PermitKey, max: usize) -> Option<Place> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.entry(key) {
            Entry::Occupied(entry) if *entry.get() >= max => return None,
            Entry::Vacant(_) if max == 0 => return None,
            entry => *entry.or_insert(0) += 1,
        }
        Some(Place { key, places: self.clone() })
    }
}

/// A place of this process that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    key: PermitKey,
    places: Places,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut entry) = taken.entry(self.key) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

/// A place that is taken until this is given back, or dropped.
#[derive(Debug)]
#[must_use = "the place is given back when the slot is dropped"]
pub struct Permit(Box<Taken>);

/// Boxed: whoever waits keeps its slot for long, in a future that is to be small.
#[derive(Debug)]
struct Taken {
    /// Before the place: whoever takes the place next comes after this in Redis too.
    lease: Option<Lease>,
    place: Place,
}

impl Permit {
    pub(crate) fn new(place: Place) -> Self {
        Self(Box::new(Taken { lease: None, place }))
    }

    pub(crate) fn with_lease(place: Place, lease: Lease) -> Self {
        Self(Box::new(Taken { lease: Some(lease), place }))
    }

    /// Gives the place back, and returns when it is free for everybody: whoever is told after
    /// this can't meet the place that was just given back. Waits for Redis for less than a second.
    pub async fn release(self) {
        let Taken { lease, place } = *self.0;
        let freed = lease.map(Lease::release);
        drop(place);
        if let Some(freed) = freed {
            freed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_when_it_is_dropped() {
        let places = Places::default();
        let key = PermitKey::AddressWaits { tenant: Uuid::from_u128(1), address: Uuid::from_u128(2) };
        let first = places.try_take(key, 2);
        let second = places.try_take(key, 2);
        assert!(first.is_some() && second.is_some());
        assert!(places.try_take(key, 2).is_none());
        drop(first);
        assert!(places.try_take(key, 2).is_some());
        drop(second);
        assert!(places.taken.lock().unwrap().is_empty());
    }

    #[test]
    fn keys_do_not_share_places() {
        let places = Places::default();
        let id = Uuid::from_u128(1);
        let _token = places.try_take(PermitKey::TokenWaits(id), 1).unwrap();
        let _streams = places.try_take(PermitKey::TokenStreams(id), 1).unwrap();
        let other = PermitKey::AddressWaits { tenant: id, address: id };
        let _address = places.try_take(other, 1).unwrap();
        assert!(places.try_take(PermitKey::TokenWaits(id), 1).is_none());
        assert!(places.try_take(PermitKey::TokenWaits(Uuid::from_u128(2)), 0).is_none());
    }
}
