//! Bounds what each client holds at a time: connections, and WebSockets that are not authenticated.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use super::client::{Client, ClientKey};

/// The permits that clients hold. Clients without one use no memory.
#[derive(Clone)]
pub(crate) struct ClientPermits {
    max: usize,
    held: Arc<Mutex<HashMap<ClientKey, usize>>>,
}

/// A permit of a client; released when dropped. Empty for clients without limits.
pub(crate) struct ClientPermit(Option<(ClientPermits, ClientKey)>);

impl ClientPermits {
    /// Each client may hold `max` of them.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, held: Arc::default() }
    }

    /// One more permit for a client; `None` where the client holds as many as it may.
    pub(crate) fn acquire(&self, client: Client) -> Option<ClientPermit> {
        if client.unlimited {
            return Some(ClientPermit(None));
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(client.key).or_insert(0);
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(ClientPermit(Some((self.clone(), client.key))))
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        let Some((permits, key)) = self.0.take() else { return };
        let mut held = permits.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = held.entry(key) {
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

    use super::super::client::ClientResolver;
    use super::*;

    #[test]
    fn bounds_the_permits_of_each_client_and_releases_them_on_drop() {
        let http = Http { unlimited_networks: vec!["127.0.0.0/8".parse().unwrap()], ..Http::default() };
        let client = |address: &str| ClientResolver::new(&http).of_connection(address.parse().unwrap());
        let permits = ClientPermits::new(2);
        let held = [permits.acquire(client("192.0.2.1")), permits.acquire(client("192.0.2.1"))];
        assert!(held.iter().all(Option::is_some));
        assert!(permits.acquire(client("192.0.2.1")).is_none());
        assert!(permits.acquire(client("192.0.2.2")).is_some());
        assert!((0..9).map(|_| permits.acquire(client("127.0.0.1"))).all(|permit| permit.is_some()));
        drop(held);
        assert!(permits.held.lock().unwrap().is_empty());
    }
}
