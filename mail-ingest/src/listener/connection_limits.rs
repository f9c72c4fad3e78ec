//! The limits of connections: in all, and per peer, which holds at most what is left. A peer at its limit ends its own
//! session that has been idle for longest, so that a pool that leaks connections does not lock itself out.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use tempmail_admission::{Client, ClientNetwork, Share, Shares};

use crate::connection::SessionActivity;
use crate::smtp::Peer;

/// Sessions that were ended for others of their peer and are not closed yet: what is open above the limit, at most.
const ENDING_MAX: usize = 64;

/// The limit that a connection exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionLimit {
    /// That of the process.
    Process,
    /// That of its peer.
    Peer,
}

/// Counts and limits the connections of a process. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimits(Arc<LimitState>);

#[derive(Debug)]
struct LimitState {
    max_per_peer: usize,
    /// Time without progress after which a session may be ended for another one of its peer.
    idle: Duration,
    unlimited: Vec<IpNet>,
    shares: Shares<ClientNetwork>,
    sessions: Mutex<Sessions>,
}

/// The sessions of peers, which may be ended for others of the same peer.
#[derive(Debug, Default)]
struct Sessions {
    last_id: u64,
    /// By the widest network of their peer.
    by_peer: HashMap<ClientNetwork, HashMap<u64, Session>>,
    /// Ended for others and not closed yet.
    ending: usize,
}

#[derive(Debug)]
struct Session {
    client: Client,
    activity: Arc<SessionActivity>,
    _share: Share<ClientNetwork>,
}

/// The permit of one connection; released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    activity: Arc<SessionActivity>,
    _place: CountedShare,
}

/// Where a connection counts.
#[derive(Debug)]
enum CountedShare {
    /// In the sum only.
    Sum { _share: Share<ClientNetwork> },
    /// Also for its peer, with the share that the session has.
    Peer { _session: SessionEntry },
}

/// The entry of a session in [`Sessions`]; removed on drop.
#[derive(Debug)]
struct SessionEntry {
    limits: ConnectionLimits,
    peer: ClientNetwork,
    id: u64,
}

impl ConnectionLimits {
    /// At most `max` connections, and `max_per_peer` of each peer that is not in `unlimited`: of an IPv4 address or
    /// a /64; twice as many of a /56, and four times of a /48. A session without progress for `idle` may be ended for
    /// another one of its peer.
    pub(crate) fn new(max: usize, max_per_peer: usize, idle: Duration, unlimited: Vec<IpNet>) -> Self {
        let (shares, sessions) = (Shares::new(max), Mutex::default());
        Self(Arc::new(LimitState { max_per_peer, idle, unlimited, shares, sessions }))
    }

    /// The peer with this address, as limits count it.
    pub(super) fn peer(&self, address: IpAddr) -> Peer {
        let address = address.to_canonical();
        let exempt = self.0.unlimited.iter().any(|network| network.contains(&address));
        Peer { address, client: (!exempt).then_some(Client::Address(address)) }
    }

    /// A permit for a connection from `peer`.
    ///
    /// # Errors
    /// A limit is reached, and the peer has no idle session.
    pub(super) fn acquire(&self, peer: Peer) -> Result<ConnectionPermit, ConnectionLimit> {
        let share = self.acquire_for_proxy()?;
        match peer.client {
            Some(client) => self.acquire_for_client(share, client),
            None => {
                Ok(ConnectionPermit { activity: Arc::default(), _place: CountedShare::Sum { _share: share } })
            }
        }
    }

    /// The share of a connection from a load balancer, whose client is not known yet.
    ///
    /// # Errors
    /// The limit of all connections is reached.
    pub(super) fn acquire_for_proxy(&self) -> Result<Share<ClientNetwork>, ConnectionLimit> {
        self.0.shares.try_acquire([], 1).map_err(|_| ConnectionLimit::Process)
    }

    /// A permit for a connection that has this share, and counts for `client` from now on.
    ///
    /// # Errors
    /// The client has reached its limit, and has no idle session.
    pub(super) fn acquire_for_client(
        &self,
        mut share: Share<ClientNetwork>,
        client: Client,
    ) -> Result<ConnectionPermit, ConnectionLimit> {
        let activity = Arc::<SessionActivity>::default();
        let mut sessions = self.lock();
        for holder in client.holders(self.0.max_per_peer) {
            while share.count_for(holder).is_err() {
                if !sessions.end_idle(client.widest(), holder.key, self.0.idle) {
                    return Err(ConnectionLimit::Peer);
                }
            }
        }
        let id = sessions.insert(Session { client, activity: Arc::clone(&activity), _share: share });
        let entry = SessionEntry { limits: self.clone(), peer: client.widest(), id };
        Ok(ConnectionPermit { activity, _place: CountedShare::Peer { _session: entry } })
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn open(&self) -> usize {
        self.0.shares.held()
    }
}

impl ConnectionPermit {
    /// What the session reports its progress to, and is ended by.
    pub(super) fn activity(&self) -> &Arc<SessionActivity> {
        &self.activity
    }
}

impl Sessions {
    /// Ends the session of `peer` within `network` that made no progress for the longest time, and for at least
    /// `idle`; `false` if there is none, or too many are ending.
    fn end_idle(&mut self, peer: ClientNetwork, network: ClientNetwork, idle: Duration) -> bool {
        if self.ending >= ENDING_MAX {
            return false;
        }
        let sessions = self.by_peer.get(&peer).into_iter().flatten();
        let idle_for = |(id, session): (&u64, &Session)| {
            let is_within = session.client.networks().any(|(own, _)| own == network);
            Some((session.activity.idle_for().filter(|_| is_within)?, Reverse(*id)))
        };
        let longest = sessions.filter_map(idle_for).max().filter(|(time, _)| *time >= idle);
        let Some(session) = longest.and_then(|(_, Reverse(id))| self.remove(peer, id)) else { return false };
        session.activity.end();
        self.ending += 1;
        true
    }

    fn insert(&mut self, session: Session) -> u64 {
        self.last_id += 1;
        self.by_peer.entry(session.client.widest()).or_default().insert(self.last_id, session);
        self.last_id
    }

    fn remove(&mut self, peer: ClientNetwork, id: u64) -> Option<Session> {
        let sessions = self.by_peer.get_mut(&peer)?;
        let session = sessions.remove(&id);
        if sessions.is_empty() {
            self.by_peer.remove(&peer);
        }
        session
    }
}

impl Drop for SessionEntry {
    fn drop(&mut self) {
        let mut sessions = self.limits.lock();
        if sessions.remove(self.peer, self.id).is_none() {
            sessions.ending -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(5);

    fn acquire(limits: &ConnectionLimits, address: &str) -> Result<ConnectionPermit, ConnectionLimit> {
        limits.acquire(limits.peer(address.parse().unwrap()))
    }

    /// Whether the session was ended for another one.
    fn is_ended(permit: &ConnectionPermit) -> bool {
        permit.activity.ended().is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn limits_connections_in_all_and_per_peer() {
        let limits = ConnectionLimits::new(8, 2, IDLE, vec!["127.0.0.0/8".parse().unwrap()]);
        let first = acquire(&limits, "192.0.2.1").unwrap();
        let _second = acquire(&limits, "::ffff:192.0.2.1").unwrap();
        assert_eq!(acquire(&limits, "192.0.2.1").unwrap_err(), ConnectionLimit::Peer);
        drop(first);
        let _third = acquire(&limits, "192.0.2.1").unwrap();
        let _v6 = ["2001:db8::1", "2001:db8::ffff:1"].map(|address| acquire(&limits, address).unwrap());
        assert_eq!(acquire(&limits, "2001:db8::2").unwrap_err(), ConnectionLimit::Peer);
        let _exempt = [1, 2, 3, 4].map(|_| acquire(&limits, "127.0.0.1").unwrap());
        assert_eq!(limits.open(), 8);
        assert_eq!(acquire(&limits, "127.0.0.1").unwrap_err(), ConnectionLimit::Process);
        assert_eq!(acquire(&limits, "192.0.2.2").unwrap_err(), ConnectionLimit::Process);
    }

    #[tokio::test(start_paused = true)]
    async fn one_more_finds_room_beside_a_hundred_peers_that_hold_all_that_they_may() {
        let limits = ConnectionLimits::new(10_000, 100, IDLE, Vec::new());
        let fill = |peer: u8| {
            std::iter::from_fn(|| acquire(&limits, &format!("192.0.2.{peer}")).ok()).collect::<Vec<_>>()
        };
        let held: Vec<Vec<_>> = (1..=100).map(fill).collect();
        assert!(held[..99].iter().all(|held| held.len() == 100));
        assert_eq!(held[99].len(), 50, "half of what was left");
        let _other = acquire(&limits, "198.51.100.1").unwrap();
        assert!(!held.iter().flatten().any(is_ended));
    }

    #[tokio::test(start_paused = true)]
    async fn a_site_that_rotates_its_addresses_has_the_connections_of_four_peers() {
        let limits = ConnectionLimits::new(1_000, 10, IDLE, Vec::new());
        let held: Vec<_> =
            (0..1_000).filter_map(|host| acquire(&limits, &format!("2001:db8:0:{host:x}::1")).ok()).collect();
        assert_eq!(held.len(), 40);
        let _other = acquire(&limits, "2001:db8:1::1").unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn limits_the_networks_of_an_ipv6_address() {
        let limits = ConnectionLimits::new(100, 1, IDLE, Vec::new());
        let mut held = Vec::new();
        for (address, accepted) in [
            ("2001:db8:0:100::1", true),
            ("2001:db8:0:100::2", false),
            ("2001:db8:0:101::1", true),
            ("2001:db8:0:102::1", false),
            ("2001:db8:0:200::1", true),
            ("2001:db8:0:300::1", true),
            ("2001:db8:0:400::1", false),
            ("2001:db8:1:400::1", true),
        ] {
            let permit = acquire(&limits, address);
            assert_eq!(permit.is_ok(), accepted, "{address}");
            held.extend(permit);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn ends_the_session_of_a_peer_that_was_idle_for_the_longest_time() {
        let limits = ConnectionLimits::new(10, 2, IDLE, Vec::new());
        let other = acquire(&limits, "192.0.2.2").unwrap();
        let first = acquire(&limits, "192.0.2.1").unwrap();
        tokio::time::advance(IDLE / 2).await;
        let second = acquire(&limits, "192.0.2.1").unwrap();
        assert_eq!(acquire(&limits, "192.0.2.1").unwrap_err(), ConnectionLimit::Peer);
        tokio::time::advance(IDLE / 2).await;
        let third = acquire(&limits, "192.0.2.1").unwrap();
        assert!(is_ended(&first) && !is_ended(&second) && !is_ended(&other));
        tokio::time::advance(IDLE).await;
        second.activity.begin_delivery();
        third.activity.record_progress();
        assert_eq!(acquire(&limits, "192.0.2.1").unwrap_err(), ConnectionLimit::Peer);
        drop((first, second, third, other));
        assert_eq!(limits.open(), 0);
        let sessions = limits.lock();
        assert!(sessions.ending == 0 && sessions.by_peer.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn ends_an_idle_session_within_the_network_that_is_at_its_limit() {
        let limits = ConnectionLimits::new(100, 1, IDLE, Vec::new());
        let outside = acquire(&limits, "2001:db8:0:200::1").unwrap();
        let own = acquire(&limits, "2001:db8:0:100::1").unwrap();
        tokio::time::advance(IDLE).await;
        let _new = acquire(&limits, "2001:db8:0:100::2").unwrap();
        assert!(is_ended(&own) && !is_ended(&outside));
    }

    #[tokio::test(start_paused = true)]
    async fn bounds_the_sessions_that_are_ending() {
        let limits = ConnectionLimits::new(1_000, ENDING_MAX + 1, IDLE, Vec::new());
        let mut held: Vec<_> = (0..=ENDING_MAX).map(|_| acquire(&limits, "192.0.2.1").unwrap()).collect();
        tokio::time::advance(IDLE).await;
        for _ in 0..ENDING_MAX {
            held.push(acquire(&limits, "192.0.2.1").unwrap());
        }
        assert_eq!(acquire(&limits, "192.0.2.1").unwrap_err(), ConnectionLimit::Peer);
        held.retain(|permit| !is_ended(permit));
        let _accepted = acquire(&limits, "192.0.2.1").unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn counts_a_client_behind_a_load_balancer_as_a_peer_that_is_never_exempt() {
        let limits = ConnectionLimits::new(5, 1, IDLE, vec!["192.0.2.0/24".parse().unwrap()]);
        let client = Client::Address("192.0.2.1".parse().unwrap());
        let [first, second, third] = [1, 2, 3].map(|_| limits.acquire_for_proxy().unwrap());
        let first = limits.acquire_for_client(first, client).unwrap();
        assert_eq!(limits.acquire_for_client(second, client).unwrap_err(), ConnectionLimit::Peer);
        drop(first);
        drop(limits.acquire_for_client(third, client).unwrap());
        assert_eq!(limits.open(), 0);
    }
}
