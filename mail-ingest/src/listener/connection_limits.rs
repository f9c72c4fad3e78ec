//! The limits of connections: in all, and per peer. Where one is reached, a session that makes no progress gives its
//! place to a new one: of the same peer or, where all are in use, of the peer that has the most.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;

use crate::connection::SessionActivity;
use crate::peer::{Client, Peer, PeerNetwork};
use crate::shares::Shares;

/// Sessions that were ended for others and are not closed yet: what is open above the limit, at most.
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
    max: usize,
    max_per_peer: usize,
    /// Time without progress after which a session may be ended for another one of its peer.
    idle: Duration,
    unlimited: Vec<IpNet>,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    total: usize,
    /// Ended for others and not closed yet; not part of `total`.
    ending: usize,
    next: u64,
    /// Those of peers, which may be ended for others.
    sessions: HashMap<u64, PeerSession>,
    by_network: HashMap<PeerNetwork, BTreeSet<u64>>,
    shares: Shares<PeerNetwork>,
}

#[derive(Debug)]
struct PeerSession {
    peer: Peer,
    activity: Arc<SessionActivity>,
}

/// The permit of one connection; released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    limits: ConnectionLimits,
    /// `None` where the connection does not count towards the limit of a peer.
    session: Option<u64>,
    activity: Arc<SessionActivity>,
}

impl ConnectionLimits {
    /// At most `max` connections, and `max_per_peer` of each peer that is not in `unlimited`: of an IPv4 address or
    /// a /64; twice as many of a /56, and four times of a /48. A session without progress for `idle` may be ended for
    /// another one of its peer.
    pub(crate) fn new(max: usize, max_per_peer: usize, idle: Duration, unlimited: Vec<IpNet>) -> Self {
        Self(Arc::new(LimitState { max, max_per_peer, idle, unlimited, open: Mutex::default() }))
    }

    /// The client with this address, as the limits by peer have it.
    pub(super) fn client(&self, address: IpAddr) -> Client {
        let address = address.to_canonical();
        let exempt = self.0.unlimited.iter().any(|network| network.contains(&address));
        Client { address, peer: (!exempt).then(|| Peer::new(address)) }
    }

    /// A permit for a connection from `client`.
    ///
    /// # Errors
    /// A limit is reached, and no session can be ended for this one.
    pub(super) fn acquire(&self, client: Client) -> Result<ConnectionPermit, ConnectionLimit> {
        let mut open = self.lock();
        // First, so that nobody gives way to a connection that its own peer has no place for.
        if let Some(peer) = client.peer {
            open.make_room_of_peer(peer, &self.0)?;
        }
        open.take_place(client.peer, self.0.max)?;
        let activity = Arc::<SessionActivity>::default();
        let session =
            client.peer.map(|peer| open.insert(PeerSession { peer, activity: Arc::clone(&activity) }));
        Ok(ConnectionPermit { limits: self.clone(), session, activity })
    }

    /// A permit for a connection from a load balancer, whose client is not known yet.
    ///
    /// # Errors
    /// The limit of all connections is reached, and no session can be ended for this one.
    pub(super) fn acquire_for_proxy(&self) -> Result<ConnectionPermit, ConnectionLimit> {
        self.lock().take_place(None, self.0.max)?;
        Ok(ConnectionPermit { limits: self.clone(), session: None, activity: Arc::default() })
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn open(&self) -> usize {
        self.lock().total
    }
}

impl ConnectionPermit {
    /// Counts the connection towards the limits of `peer`.
    ///
    /// # Errors
    /// One is reached, and no session can be ended for this one.
    pub(super) fn count_for(&mut self, peer: Peer) -> Result<(), ConnectionLimit> {
        let mut open = self.limits.lock();
        open.make_room_of_peer(peer, &self.limits.0)?;
        self.session = Some(open.insert(PeerSession { peer, activity: Arc::clone(&self.activity) }));
        Ok(())
    }

    /// What the session reports its progress to, and is ended by.
    pub(super) fn activity(&self) -> &Arc<SessionActivity> {
        &self.activity
    }
}

impl OpenConnections {
    /// Counts a connection from `peer` (`None`: from one that is exempt, or not known yet) towards `max`.
    ///
    /// # Errors
    /// All places are taken, and no session can be ended for this one.
    fn take_place(&mut self, peer: Option<Peer>, max: usize) -> Result<(), ConnectionLimit> {
        if self.total >= max {
            let most = self.shares.displaced_by(peer.map(Peer::widest), 1, max);
            let ended = most.and_then(|network| self.least_active(network, Duration::ZERO));
            self.end(ended.ok_or(ConnectionLimit::Process)?);
        }
        self.total += 1;
        Ok(())
    }

    /// Ends idle sessions of `peer` where it has no place for another one.
    ///
    /// # Errors
    /// None of them can be ended.
    fn make_room_of_peer(&mut self, peer: Peer, limits: &LimitState) -> Result<(), ConnectionLimit> {
        for (network, times) in peer.networks() {
            let count = self.by_network.get(&network).map_or(0, BTreeSet::len);
            if count >= limits.max_per_peer.saturating_mul(times) {
                let ended = self.least_active(network, limits.idle);
                self.end(ended.ok_or(ConnectionLimit::Peer)?);
            }
        }
        Ok(())
    }

    /// The session in `network` that made no progress for the longest time, and for more than `idle`. `None` if there
    /// is none, or too many are ending.
    fn least_active(&self, network: PeerNetwork, idle: Duration) -> Option<u64> {
        if self.ending >= ENDING_MAX {
            return None;
        }
        let sessions = self.by_network.get(&network)?.iter();
        let idle_for = |id: &u64| Some((self.sessions.get(id)?.activity.idle_for()?, Reverse(*id)));
        let (longest, Reverse(id)) = sessions.filter_map(idle_for).max()?;
        (longest >= idle).then_some(id)
    }

    /// Ends a session, whose permit is free from now on.
    fn end(&mut self, id: u64) {
        if let Some(session) = self.remove(id) {
            session.activity.end();
            self.total -= 1;
            self.ending += 1;
        }
    }

    fn insert(&mut self, session: PeerSession) -> u64 {
        let id = self.next;
        self.next += 1;
        self.shares.add(Some(session.peer.widest()), 1);
        for (network, _) in session.peer.networks() {
            self.by_network.entry(network).or_default().insert(id);
        }
        self.sessions.insert(id, session);
        id
    }

    fn remove(&mut self, id: u64) -> Option<PeerSession> {
        let session = self.sessions.remove(&id)?;
        self.shares.subtract(Some(session.peer.widest()), 1);
        for (network, _) in session.peer.networks() {
            if let Some(sessions) = self.by_network.get_mut(&network) {
                sessions.remove(&id);
                if sessions.is_empty() {
                    self.by_network.remove(&network);
                }
            }
        }
        Some(session)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limits.lock();
        match self.session {
            Some(id) if open.remove(id).is_none() => open.ending -= 1,
            _ => open.total -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(5);

    fn acquire(limits: &ConnectionLimits, address: &str) -> Result<ConnectionPermit, ConnectionLimit> {
        limits.acquire(limits.client(address.parse().unwrap()))
    }

    /// Whether the session was ended for another one.
    fn is_ended(permit: &ConnectionPermit) -> bool {
        permit.activity.ended().is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn limits_connections_in_all_and_per_peer() {
        let limits = ConnectionLimits::new(5, 2, IDLE, vec!["127.0.0.0/8".parse().unwrap()]);
        let first = acquire(&limits, "192.0.2.1").unwrap();
        let _second = acquire(&limits, "::ffff:192.0.2.1").unwrap();
        assert_eq!(acquire(&limits, "192.0.2.1").unwrap_err(), ConnectionLimit::Peer);
        drop(first);
        let _third = acquire(&limits, "192.0.2.1").unwrap();
        let v6 = ["2001:db8::1", "2001:db8::ffff:1"].map(|address| acquire(&limits, address).unwrap());
        assert_eq!(acquire(&limits, "2001:db8::2").unwrap_err(), ConnectionLimit::Peer);
        let _exempt = acquire(&limits, "127.0.0.1").unwrap();
        assert_eq!(limits.open(), 5);
        drop(v6);
        let _others = ["192.0.2.2", "192.0.2.3"].map(|address| acquire(&limits, address).unwrap());
        assert_eq!(acquire(&limits, "192.0.2.1").unwrap_err(), ConnectionLimit::Peer);
        assert_eq!(limits.open(), 5);
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
        let first = acquire(&limits, "192.0.2.1").unwrap();
        tokio::time::advance(IDLE / 2).await;
        let second = acquire(&limits, "192.0.2.1").unwrap();
        assert_eq!(acquire(&limits, "192.0.2.1").unwrap_err(), ConnectionLimit::Peer);
        tokio::time::advance(IDLE / 2).await;
        let third = acquire(&limits, "192.0.2.1").unwrap();
        assert!(is_ended(&first) && !is_ended(&second));
        tokio::time::advance(IDLE).await;
        second.activity.begin_delivery();
        third.activity.record_progress();
        assert_eq!(acquire(&limits, "192.0.2.1").unwrap_err(), ConnectionLimit::Peer);
        drop((first, second, third));
        assert_eq!(limits.open(), 0);
        assert_eq!(limits.lock().ending, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn ends_a_session_of_the_peer_with_the_most_where_all_are_in_use() {
        let limits = ConnectionLimits::new(4, 5, IDLE, Vec::new());
        let held: Vec<_> = (0..4).map(|_| acquire(&limits, "192.0.2.1").unwrap()).collect();
        assert_eq!(acquire(&limits, "192.0.2.1").unwrap_err(), ConnectionLimit::Process);
        let _other = acquire(&limits, "192.0.2.2").unwrap();
        assert_eq!(held.iter().filter(|permit| is_ended(permit)).count(), 1);
        assert_eq!(limits.open(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn ends_no_session_for_a_peer_that_has_no_place_of_its_own() {
        let limits = ConnectionLimits::new(5, 1, IDLE, Vec::new());
        let _own = acquire(&limits, "192.0.2.1").unwrap();
        let others = [1, 2, 3, 4].map(|net| acquire(&limits, &format!("2001:db8:0:{net}00::1")).unwrap());
        assert_eq!(acquire(&limits, "192.0.2.1").unwrap_err(), ConnectionLimit::Peer);
        assert!(!others.iter().any(is_ended));
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
    async fn releases_permits_on_drop() {
        let limits = ConnectionLimits::new(10, 10, IDLE, Vec::new());
        let permits: Vec<_> = (0..10).map(|_| acquire(&limits, "2001:db8::1").unwrap()).collect();
        drop(permits);
        let open = limits.lock();
        assert!(open.total == 0 && open.sessions.is_empty() && open.by_network.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn counts_a_client_behind_a_load_balancer_as_a_peer_that_is_never_exempt() {
        let limits = ConnectionLimits::new(5, 1, IDLE, vec!["192.0.2.0/24".parse().unwrap()]);
        let client = Peer::new("192.0.2.1".parse().unwrap());
        let mut first = limits.acquire_for_proxy().unwrap();
        let mut second = limits.acquire_for_proxy().unwrap();
        first.count_for(client).unwrap();
        assert_eq!(second.count_for(client), Err(ConnectionLimit::Peer));
        drop(first);
        second.count_for(client).unwrap();
        drop(second);
        assert_eq!(limits.open(), 0);
    }
}
