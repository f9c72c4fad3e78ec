//! The memory for message data. A peer and a tenant have a share of it each; beyond a share, or the whole, mail is
//! deferred with `452 4.3.1`. The oldest incomplete message of the one that has the most is discarded for one that
//! has little, so that incomplete messages that are never finished keep nobody else out.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use crate::peer::{Peer, PeerNetwork};
use crate::shares::Shares;

/// Memory that a message has at first: most mail is small, and an incomplete one must cost little.
const INITIAL: usize = 4 << 10;
/// Messages above this size leave an eighth of each limit to smaller ones.
const LARGE: usize = 1 << 20;

/// Bounds of the memory, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryLimits {
    /// Of the process.
    pub(crate) process: usize,
    /// Of a peer: an IPv4 address or a /64. A /56 has twice as much, a /48 four times.
    pub(crate) peer: usize,
    /// Of a tenant, and of all mail without one.
    pub(crate) tenant: usize,
}

/// The limit that a message exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryError {
    /// That of the process.
    Process,
    /// That of its peer.
    Peer,
    /// That of its recipients' tenant.
    Tenant,
    /// It was discarded for others, since its peer or tenant had the most.
    Discarded,
}

/// Whose mail it is, as far as limits are concerned; `None`: mail of shared inboxes, free mailboxes and the
/// platform, which has one share.
pub(crate) type TenantKey = Option<Uuid>;

/// The memory that all sessions of a process share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    limits: MemoryLimits,
    messages: Mutex<BufferedMessages>,
}

/// The messages in memory, and the sums that limits are checked against.
#[derive(Debug, Default)]
struct BufferedMessages {
    next: u64,
    /// Oldest first.
    open: BTreeMap<u64, BufferedMessage>,
    by_process: Shares<PeerNetwork>,
    by_peer: HashMap<PeerNetwork, Shares<TenantKey>>,
    by_tenant: HashMap<TenantKey, Shares<PeerNetwork>>,
}

#[derive(Debug)]
struct BufferedMessage {
    bytes: usize,
    peer: Option<Peer>,
    /// Tenants of its recipients, at least one, sorted, each once.
    tenants: Vec<TenantKey>,
    /// The data while it is incomplete, so that it can be discarded.
    incomplete: Option<SharedData>,
}

/// The data of an incomplete message; `None` once it is discarded.
type SharedData = Arc<Mutex<Option<Vec<u8>>>>;

/// What a limit holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemoryScope {
    Process,
    /// With its limit.
    Peer(PeerNetwork, usize),
    Tenant(TenantKey),
}

/// A permit for the memory of one message; released on drop.
#[derive(Debug)]
pub(crate) struct MemoryPermit {
    budget: MemoryBudget,
    id: u64,
}

/// The buffer of an incomplete message, within the budget.
#[derive(Debug)]
pub(crate) struct MessageBuffer {
    permit: MemoryPermit,
    data: SharedData,
}

impl MemoryBudget {
    /// An empty budget.
    pub(crate) fn new(limits: MemoryLimits) -> Self {
        Self(Arc::new(BudgetState { limits, messages: Mutex::default() }))
    }

    /// A buffer for a message from `peer` (`None`: exempt from the limits by peer) to recipients of `tenants`.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn open(
        &self,
        peer: Option<Peer>,
        mut tenants: Vec<TenantKey>,
    ) -> Result<MessageBuffer, MemoryError> {
        tenants.sort_unstable();
        tenants.dedup();
        if tenants.is_empty() {
            tenants.push(None);
        }
        let data = SharedData::new(Mutex::new(Some(Vec::new())));
        let mut messages = self.lock();
        let id = messages.next;
        messages.next += 1;
        messages
            .open
            .insert(id, BufferedMessage { bytes: 0, peer, tenants, incomplete: Some(Arc::clone(&data)) });
        drop(messages);
        // Releases the message if there is no memory.
        let permit = MemoryPermit { budget: self.clone(), id };
        permit.grow_to(INITIAL)?;
        Ok(MessageBuffer { permit, data })
    }

    fn lock(&self) -> MutexGuard<'_, BufferedMessages> {
        self.0.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A budget whose limits are all `bytes`.
    #[cfg(test)]
    pub(crate) fn of(bytes: usize) -> Self {
        Self::new(MemoryLimits { process: bytes, peer: bytes, tenant: bytes })
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.lock().by_process.total()
    }
}

impl MemoryPermit {
    /// Grows the permit to `bytes`, unless it is larger already.
    fn grow_to(&self, bytes: usize) -> Result<(), MemoryError> {
        let limits = &self.budget.0.limits;
        let mut messages = self.budget.lock();
        loop {
            let message = messages.open.get(&self.id).ok_or(MemoryError::Discarded)?;
            let Some(additional) = bytes.checked_sub(message.bytes) else { return Ok(()) };
            match messages.exceeded(message, additional, limits) {
                None => {
                    messages.add(self.id, additional);
                    return Ok(());
                }
                Some(scope) => match messages.displaced(self.id, additional, scope, limits) {
                    Some(other) => messages.discard(other),
                    None => return Err(scope.error()),
                },
            }
        }
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.budget.lock().close(self.id);
    }
}

impl MessageBuffer {
    /// Appends `octets`. The buffer is doubled where it is full, up to `most` octets.
    ///
    /// # Errors
    /// There is no memory for it, or the message was discarded.
    pub(crate) fn append(&mut self, octets: &[u8], most: usize) -> Result<(), MemoryError> {
        let capacity = {
            let mut data = lock_data(&self.data);
            let data = data.as_mut().ok_or(MemoryError::Discarded)?;
            let needed = data.len() + octets.len();
            if needed <= data.capacity() {
                data.extend_from_slice(octets);
                return Ok(());
            }
            needed.max(data.capacity() * 2).min(most).max(INITIAL)
        };
        self.permit.grow_to(capacity)?;
        let mut data = lock_data(&self.data);
        let data = data.as_mut().ok_or(MemoryError::Discarded)?;
        data.reserve_exact(capacity.saturating_sub(data.len()));
        data.extend_from_slice(octets);
        Ok(())
    }

    /// The data of the complete message, which is not discarded any more, with the permit for it.
    ///
    /// # Errors
    /// It was discarded.
    pub(crate) fn finish(self) -> Result<(Vec<u8>, MemoryPermit), MemoryError> {
        if let Some(message) = self.permit.budget.lock().open.get_mut(&self.permit.id) {
            message.incomplete = None;
        }
        let data = lock_data(&self.data).take().ok_or(MemoryError::Discarded)?;
        Ok((data, self.permit))
    }
}

impl BufferedMessages {
    /// The first limit that `message` exceeds with `additional` bytes.
    fn exceeded(
        &self,
        message: &BufferedMessage,
        additional: usize,
        limits: &MemoryLimits,
    ) -> Option<MemoryScope> {
        let is_large = message.bytes + additional > LARGE;
        let exceeds = |used: usize, limit: usize| {
            let left_to_small = if is_large && used > message.bytes { limit / 8 } else { 0 };
            used + additional > limit - left_to_small
        };
        if exceeds(self.by_process.total(), limits.process) {
            return Some(MemoryScope::Process);
        }
        let of_tenant = |tenant: &TenantKey| self.by_tenant.get(tenant).map_or(0, Shares::total);
        let tenant = message.tenants.iter().find(|&tenant| exceeds(of_tenant(tenant), limits.tenant));
        if let Some(tenant) = tenant {
            return Some(MemoryScope::Tenant(*tenant));
        }
        let of_peer = |network: &PeerNetwork| self.by_peer.get(network).map_or(0, Shares::total);
        let networks = message.peer.into_iter().flat_map(Peer::networks);
        networks
            .map(|(network, times)| (network, limits.peer.saturating_mul(times)))
            .find(|(network, limit)| exceeds(of_peer(network), *limit))
            .map(|(network, limit)| MemoryScope::Peer(network, limit))
    }

    /// The message that is discarded for `id`, where that exceeds the limit of `scope`: the oldest incomplete one of
    /// the peer, or within a peer of the tenant, that has the most.
    fn displaced(
        &self,
        id: u64,
        additional: usize,
        scope: MemoryScope,
        limits: &MemoryLimits,
    ) -> Option<u64> {
        let message = self.open.get(&id)?;
        let peer = message.peer.map(Peer::widest);
        let is_displaced: Box<dyn Fn(&BufferedMessage) -> bool> = match scope {
            MemoryScope::Process => {
                let largest = self.by_process.displaced_by(peer, additional, limits.process)?;
                Box::new(move |other| other.is_of_peer(largest))
            }
            MemoryScope::Tenant(tenant) => {
                let largest = self.by_tenant.get(&tenant)?.displaced_by(peer, additional, limits.tenant)?;
                Box::new(move |other| other.is_of_peer(largest) && other.tenants.contains(&tenant))
            }
            MemoryScope::Peer(network, limit) => {
                let tenant = message.first_tenant();
                let largest = self.by_peer.get(&network)?.displaced_by(tenant, additional, limit)?;
                Box::new(move |other| other.is_in(network) && other.first_tenant() == Some(largest))
            }
        };
        self.open
            .iter()
            .find(|(other, message)| **other != id && message.incomplete.is_some() && is_displaced(message))
            .map(|(other, _)| *other)
    }

    /// Frees the data of an incomplete message; its session finds it gone.
    fn discard(&mut self, id: u64) {
        if let Some(data) = self.open.get(&id).and_then(|message| message.incomplete.as_ref()) {
            *lock_data(data) = None;
        }
        self.close(id);
    }

    fn add(&mut self, id: u64, bytes: usize) {
        let Some(message) = self.open.get_mut(&id) else { return };
        message.bytes += bytes;
        let widest = message.peer.map(Peer::widest);
        self.by_process.add(widest, bytes);
        for tenant in &message.tenants {
            self.by_tenant.entry(*tenant).or_default().add(widest, bytes);
        }
        for (network, _) in message.peer.into_iter().flat_map(Peer::networks) {
            self.by_peer.entry(network).or_default().add(message.first_tenant(), bytes);
        }
    }

    fn close(&mut self, id: u64) {
        let Some(message) = self.open.remove(&id) else { return };
        let widest = message.peer.map(Peer::widest);
        self.by_process.subtract(widest, message.bytes);
        for tenant in &message.tenants {
            subtract(&mut self.by_tenant, *tenant, widest, message.bytes);
        }
        for (network, _) in message.peer.into_iter().flat_map(Peer::networks) {
            subtract(&mut self.by_peer, network, message.first_tenant(), message.bytes);
        }
    }
}

impl BufferedMessage {
    /// The tenant that it counts for within its peer.
    fn first_tenant(&self) -> Option<TenantKey> {
        self.tenants.first().copied()
    }

    fn is_of_peer(&self, widest: PeerNetwork) -> bool {
        self.peer.is_some_and(|peer| peer.widest() == widest)
    }

    fn is_in(&self, network: PeerNetwork) -> bool {
        self.peer.is_some_and(|peer| peer.networks().any(|(own, _)| own == network))
    }
}

impl MemoryScope {
    fn error(self) -> MemoryError {
        match self {
            Self::Process => MemoryError::Process,
            Self::Peer(..) => MemoryError::Peer,
            Self::Tenant(_) => MemoryError::Tenant,
        }
    }
}

fn lock_data(data: &SharedData) -> MutexGuard<'_, Option<Vec<u8>>> {
    data.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Subtracts from the shares of a scope, which are removed once nobody has any.
fn subtract<S, K>(scopes: &mut HashMap<S, Shares<K>>, scope: S, holder: Option<K>, bytes: usize)
where
    S: Copy + Eq + std::hash::Hash,
    K: Copy + Ord + std::hash::Hash,
{
    if let Some(shares) = scopes.get_mut(&scope) {
        shares.subtract(holder, bytes);
        if shares.total() == 0 {
            scopes.remove(&scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;
    const MOST: usize = usize::MAX;

    fn budget(process: usize, peer: usize, tenant: usize) -> MemoryBudget {
        MemoryBudget::new(MemoryLimits { process, peer, tenant })
    }

    fn peer(address: &str) -> Option<Peer> {
        Some(Peer::new(address.parse().unwrap()))
    }

    fn tenant(number: u128) -> Vec<TenantKey> {
        vec![Some(Uuid::from_u128(number))]
    }

    /// A message of `kib` KiB.
    fn message(
        budget: &MemoryBudget,
        peer: Option<Peer>,
        tenant: Vec<TenantKey>,
        kib: usize,
    ) -> Result<MessageBuffer, MemoryError> {
        let mut buffer = budget.open(peer, tenant)?;
        buffer.append(&vec![b'x'; kib * KIB], MOST)?;
        Ok(buffer)
    }

    fn is_discarded(message: &MessageBuffer) -> bool {
        message.data.lock().unwrap().is_none()
    }

    #[test]
    fn messages_share_the_budget_and_release_it() {
        let budget = budget(100 * KIB, 100 * KIB, 100 * KIB);
        let first = message(&budget, None, Vec::new(), 60).unwrap();
        assert_eq!(message(&budget, None, Vec::new(), 41).unwrap_err(), MemoryError::Process);
        let second = message(&budget, None, Vec::new(), 40).unwrap();
        assert_eq!(budget.used(), 100 * KIB);
        let (data, permit) = first.finish().unwrap();
        assert_eq!((data.len(), budget.used()), (60 * KIB, 100 * KIB));
        drop((permit, second));
        assert_eq!(budget.used(), 0);
        let messages = budget.lock();
        assert!(messages.open.is_empty() && messages.by_peer.is_empty() && messages.by_tenant.is_empty());
    }

    #[test]
    fn a_peer_and_a_tenant_have_a_share_each() {
        let budget = budget(1000 * KIB, 100 * KIB, 150 * KIB);
        let _held = message(&budget, peer("192.0.2.1"), tenant(1), 90).unwrap();
        let refused = message(&budget, peer("192.0.2.1"), tenant(1), 20).unwrap_err();
        assert_eq!(refused, MemoryError::Peer);
        let _second = message(&budget, peer("192.0.2.2"), tenant(1), 55).unwrap();
        let refused = message(&budget, peer("192.0.2.2"), tenant(1), 30).unwrap_err();
        assert_eq!(refused, MemoryError::Tenant);
        let _other = message(&budget, peer("192.0.2.2"), tenant(2), 40).unwrap();
    }

    #[test]
    fn the_networks_of_an_ipv6_address_have_shares_of_one_two_and_four_peers() {
        let budget = budget(1000 * KIB, 40 * KIB, 1000 * KIB);
        let send = |address: &str| message(&budget, peer(address), tenant(1), 40);
        let mut held = vec![send("2001:db8:0:100::1").unwrap()];
        assert_eq!(send("2001:db8:0:100::2").unwrap_err(), MemoryError::Peer);
        held.push(send("2001:db8:0:101::1").unwrap());
        assert_eq!(send("2001:db8:0:102::1").unwrap_err(), MemoryError::Peer, "the /56 has two shares");
        held.push(send("2001:db8:0:200::1").unwrap());
        held.push(send("2001:db8:0:300::1").unwrap());
        assert_eq!(send("2001:db8:0:400::1").unwrap_err(), MemoryError::Peer, "the /48 has four shares");
        held.push(send("2001:db8:1:100::1").unwrap());
    }

    #[test]
    fn discards_the_oldest_message_of_the_peer_with_the_most() {
        let budget = budget(100 * KIB, 100 * KIB, 100 * KIB);
        let [oldest, newer] = [1, 2].map(|_| message(&budget, peer("192.0.2.1"), tenant(1), 40).unwrap());
        let other = message(&budget, peer("192.0.2.2"), tenant(2), 20).unwrap();
        let third = message(&budget, peer("192.0.2.3"), tenant(3), 20).unwrap();
        assert!(is_discarded(&oldest) && !is_discarded(&newer) && !is_discarded(&other));
        assert_eq!(oldest.finish().unwrap_err(), MemoryError::Discarded);
        assert_eq!(budget.used(), 80 * KIB);
        drop((newer, other, third));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn within_a_peer_the_tenant_with_the_most_gives_way() {
        let budget = budget(1000 * KIB, 100 * KIB, 1000 * KIB);
        let parked = message(&budget, peer("192.0.2.1"), tenant(1), 100).unwrap();
        let _other = message(&budget, peer("192.0.2.1"), tenant(2), 10).unwrap();
        assert!(is_discarded(&parked));
    }

    #[test]
    fn within_a_tenant_the_peer_with_the_most_gives_way() {
        let budget = budget(1000 * KIB, 1000 * KIB, 100 * KIB);
        let parked = message(&budget, peer("192.0.2.1"), tenant(1), 100).unwrap();
        let _other = message(&budget, peer("192.0.2.2"), tenant(1), 10).unwrap();
        assert!(is_discarded(&parked));
    }

    #[test]
    fn never_discards_a_complete_message_or_one_of_an_exempt_peer() {
        let budget = budget(100 * KIB, 100 * KIB, 100 * KIB);
        let complete = message(&budget, peer("192.0.2.1"), tenant(1), 60).unwrap().finish().unwrap();
        let exempt = message(&budget, None, tenant(2), 40).unwrap();
        assert_eq!(message(&budget, peer("192.0.2.3"), tenant(3), 8).unwrap_err(), MemoryError::Process);
        assert!(!is_discarded(&exempt));
        assert_eq!(complete.0.len(), 60 * KIB);
    }

    #[test]
    fn large_messages_leave_a_part_of_each_limit_to_small_ones() {
        const SMALL_LIMIT: usize = 8 << 20;
        const OTHERS: usize = 64 << 20;
        for (process, of_peer, of_tenant, from) in [
            (SMALL_LIMIT, OTHERS, OTHERS, None),
            (OTHERS, SMALL_LIMIT, OTHERS, peer("192.0.2.1")),
            (OTHERS, OTHERS, SMALL_LIMIT, None),
        ] {
            let budget = budget(process, of_peer, of_tenant);
            let large: Vec<_> = (0..5)
                .map_while(|_| message(&budget, from, Vec::new(), 1_500).ok())
                .map(|message| message.finish().unwrap())
                .collect();
            assert_eq!(large.len(), 4);
            let _small = message(&budget, from, Vec::new(), 1_000).unwrap();
        }
    }

    #[test]
    fn a_single_message_may_use_the_whole_budget() {
        let budget = budget(2 << 20, 2 << 20, 2 << 20);
        let mut buffer = budget.open(peer("192.0.2.1"), tenant(1)).unwrap();
        buffer.append(&vec![b'x'; 2 << 20], 2 << 20).unwrap();
        assert_eq!(budget.used(), 2 << 20);
    }
}
