//! How many of a thing each client has: connections, and WebSockets that are not authenticated.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use crate::client::{Client, ClientKey};

/// The places that clients have taken. Clients without one use no memory.
#[derive(Clone)]
pub(crate) struct Places {
    most: usize,
    taken: Arc<Mutex<HashMap<ClientKey, usize>>>,
}

/// A place of a client; given back when dropped.
pub(crate) struct Place(Option<(Places, ClientKey)>);

impl Places {
    /// Of which each client may take `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// One more place for a client; `None` where it has as many as it may.
    pub(crate) fn take(&self, client: Client) -> Option<Place> {
        if client.unlimited {
            return Some(Place(None));
        }
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(client.key).or_insert(0);
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Place(Some((self.clone(), client.key))))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((places, key)) = self.0.take() else { return };
        let mut taken = places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = taken.entry(key) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tempmail_runtime::config::Http;

    use super::*;
    use crate::client::ClientRule;

    #[test]
    fn places_are_counted_by_client_and_given_back() {
        let http = Http { unlimited_networks: vec!["127.0.0.0/8".parse().unwrap()], ..Http::default() };
        let client = |address: &str| ClientRule::new(&http).of_connection(address.parse().unwrap());
        let places = Places::new(2);
        let held = [places.take(client("192.0.2.1")), places.take(client("192.0.2.1"))];
        assert!(held.iter().all(Option::is_some));
        assert!(places.take(client("192.0.2.1")).is_none());
        assert!(places.take(client("192.0.2.2")).is_some());
        assert!((0..9).map(|_| places.take(client("127.0.0.1"))).all(|place| place.is_some()));
        drop(held);
        assert!(places.taken.lock().unwrap().is_empty());
    }
}
