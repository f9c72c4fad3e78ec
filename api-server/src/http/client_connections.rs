//! Bounds the connections of each client. A client at its bound is not locked out: one of its connections without a
//! request in flight makes room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use tempmail_admission::ClientNetwork;

use super::client::Client;
use super::deadline::Activity;

/// The connections of all clients. Clients without one use no memory.
#[derive(Clone)]
pub(crate) struct ClientConnections {
    max: usize,
    open: Arc<Mutex<HashMap<ClientNetwork, Vec<OpenConnection>>>>,
}

struct OpenConnection {
    activity: Activity,
    replaced: CancellationToken,
}

/// One connection of a client, until it is dropped.
pub(crate) struct ClientConnection {
    connections: ClientConnections,
    /// `None` for a client without limits.
    client: Option<ClientNetwork>,
    replaced: CancellationToken,
    activity: Activity,
}

impl ClientConnections {
    /// Each client may have `max` of them.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, open: Arc::default() }
    }

    /// Adds a connection; `None` where the client has as many as it may, and all have a request in flight.
    pub(crate) fn add(&self, client: Client, activity: Activity) -> Option<ClientConnection> {
        let replaced = CancellationToken::new();
        let key = (!client.unlimited).then_some(client.origin.narrowest());
        if let Some(key) = key {
            let mut all = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let open = all.entry(key).or_default();
            if open.len() >= self.max {
                let dispensable = open
                    .iter()
                    .enumerate()
                    .filter_map(|(at, one)| one.activity.dispensable().map(|rank| (rank, at)));
                let (_, at) = dispensable.min()?;
                open.swap_remove(at).replaced.cancel();
            }
            open.push(OpenConnection { activity: activity.clone(), replaced: replaced.clone() });
        }
        Some(ClientConnection { connections: self.clone(), client: key, replaced, activity })
    }
}

impl ClientConnection {
    /// What the connection is waiting for.
    pub(super) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Cancelled when another connection of the client takes its place.
    pub(super) fn replaced(&self) -> &CancellationToken {
        &self.replaced
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        let Some(key) = self.client else { return };
        let mut all = self.connections.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = all.get_mut(&key) {
            // One that was replaced is not there any more.
            if let Some(at) = open.iter().position(|one| one.activity.is(&self.activity)) {
                open.swap_remove(at);
            }
            if open.is_empty() {
                all.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tempmail_runtime::config::Http;

    use super::super::client::ClientResolver;
    use super::super::deadline::ActivityLimits;
    use super::*;

    fn activity() -> Activity {
        Activity::new(ActivityLimits { header_timeout: Duration::from_secs(10), min_drain_rate: 1 })
    }

    #[test]
    fn replaces_a_connection_that_waits_and_none_that_is_answered() {
        let http = Http { unlimited_networks: vec!["127.0.0.0/8".parse().unwrap()], ..Http::default() };
        let client = |address: &str| ClientResolver::new(&http).of_connection(address.parse().unwrap());
        let connections = ClientConnections::new(2);
        let add = |address: &str| connections.add(client(address), activity());
        let answered = add("192.0.2.1").unwrap();
        let in_flight = answered.activity().begin_request();
        let silent = add("192.0.2.1").unwrap();
        assert!(add("192.0.2.2").is_some());
        let third = add("192.0.2.1").unwrap();
        assert!(silent.replaced().is_cancelled() && !answered.replaced().is_cancelled());
        drop(silent);
        let _also_answered = third.activity().begin_request();
        assert!(add("192.0.2.1").is_none());
        assert!((0..9).map(|_| add("127.0.0.1")).all(|added| added.is_some()));
        drop(in_flight);
        assert!(add("192.0.2.1").is_some());
        drop((answered, third));
        assert!(connections.open.lock().unwrap().is_empty());
    }
}
