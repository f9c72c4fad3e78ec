//! The memory for message data. A peer and a tenant hold at most their share of it, and at most what is left: however
//! many hold all that they may, one more finds memory. Beyond that, mail is deferred with `452 4.3.1`.

use tempmail_admission::{Client, ClientNetwork, Exceeded, Holder, Share, Shares};
use uuid::Uuid;

/// Memory that a message has at first: most mail is small, and an incomplete one must cost little.
const INITIAL: usize = 4 << 10;
/// A message above this size leaves an eighth of the memory to smaller ones.
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
}

/// Whose mail it is, as far as limits are concerned; `None`: mail of shared inboxes, free mailboxes and the
/// platform, which has one share.
pub(crate) type TenantKey = Option<Uuid>;

/// What the data of a message counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MemoryHolder {
    /// A network of its peer.
    Peer(ClientNetwork),
    /// A tenant of its recipients.
    Tenant(TenantKey),
}

/// The memory that all sessions of a process share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBudget {
    limits: MemoryLimits,
    shares: Shares<MemoryHolder>,
}

/// The memory of one message; released on drop.
pub(crate) type MessageMemory = Share<MemoryHolder>;

/// The buffer of an incomplete message, within the budget.
#[derive(Debug)]
pub(crate) struct MessageBuffer {
    data: Vec<u8>,
    memory: MessageMemory,
    /// What it leaves to smaller messages once it is large.
    left_to_small: usize,
}

impl MemoryBudget {
    /// An empty budget.
    pub(crate) fn new(limits: MemoryLimits) -> Self {
        Self { limits, shares: Shares::new(limits.process) }
    }

    /// A buffer for a message from `client` (`None`: exempt from the limits by peer) to recipients of `tenants`.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn open(
        &self,
        client: Option<Client>,
        mut tenants: Vec<TenantKey>,
    ) -> Result<MessageBuffer, MemoryError> {
        tenants.sort_unstable();
        tenants.dedup();
        let of_tenants = tenants
            .into_iter()
            .map(|tenant| Holder { key: MemoryHolder::Tenant(tenant), cap: self.limits.tenant });
        let of_peer = client.into_iter().flat_map(|client| client.holders(self.limits.peer));
        let of_peer = of_peer.map(|network| network.map(MemoryHolder::Peer));
        let memory = self.shares.try_acquire(of_peer.chain(of_tenants), INITIAL)?;
        Ok(MessageBuffer { data: Vec::new(), memory, left_to_small: self.limits.process / 8 })
    }

    /// A budget whose limits are all `bytes`.
    #[cfg(test)]
    pub(crate) fn of(bytes: usize) -> Self {
        Self::new(MemoryLimits { process: bytes, peer: bytes, tenant: bytes })
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.shares.held()
    }
}

impl MessageBuffer {
    /// Appends `octets`. The buffer is doubled where it is full, up to `most` octets.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn append(&mut self, octets: &[u8], most: usize) -> Result<(), MemoryError> {
        let needed = self.data.len() + octets.len();
        if needed > self.data.capacity() {
            let capacity = needed.max(self.data.capacity() * 2).min(most).max(INITIAL);
            let keep = if capacity > LARGE { self.left_to_small } else { 0 };
            self.memory.grow(capacity.saturating_sub(self.memory.amount()), keep)?;
            self.data.reserve_exact(capacity.saturating_sub(self.data.len()));
        }
        self.data.extend_from_slice(octets);
        Ok(())
    }

    /// The data of the complete message, and its memory.
    pub(crate) fn finish(self) -> (Vec<u8>, MessageMemory) {
        (self.data, self.memory)
    }
}

impl From<Exceeded<MemoryHolder>> for MemoryError {
    fn from(exceeded: Exceeded<MemoryHolder>) -> Self {
        match exceeded {
            Exceeded::Sum => Self::Process,
            Exceeded::Holder(MemoryHolder::Peer(_)) => Self::Peer,
            Exceeded::Holder(MemoryHolder::Tenant(_)) => Self::Tenant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;
    const MOST: usize = usize::MAX;

    fn budget(process: usize, peer: usize, tenant: usize) -> MemoryBudget {
        MemoryBudget::new(MemoryLimits { process, peer, tenant })
    }

    fn client(address: &str) -> Option<Client> {
        Some(Client::Address(address.parse().unwrap()))
    }

    fn tenant(number: u128) -> Vec<TenantKey> {
        vec![Some(Uuid::from_u128(number))]
    }

    /// A message of `kib` KiB.
    fn message(
        budget: &MemoryBudget,
        client: Option<Client>,
        tenant: Vec<TenantKey>,
        kib: usize,
    ) -> Result<MessageBuffer, MemoryError> {
        let mut buffer = budget.open(client, tenant)?;
        buffer.append(&vec![b'x'; kib * KIB], MOST)?;
        Ok(buffer)
    }

    #[test]
    fn messages_share_the_budget_and_release_it() {
        let budget = budget(100 * KIB, 100 * KIB, 100 * KIB);
        let first = message(&budget, None, Vec::new(), 60).unwrap();
        assert_eq!(message(&budget, None, Vec::new(), 41).unwrap_err(), MemoryError::Process);
        let second = message(&budget, None, Vec::new(), 40).unwrap();
        assert_eq!(budget.used(), 100 * KIB);
        let (data, memory) = first.finish();
        assert_eq!((data.len(), budget.used()), (60 * KIB, 100 * KIB));
        drop((memory, second));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_peer_and_a_tenant_have_a_share_each() {
        let budget = budget(1000 * KIB, 100 * KIB, 150 * KIB);
        let _held = message(&budget, client("192.0.2.1"), tenant(1), 90).unwrap();
        let refused = message(&budget, client("192.0.2.1"), tenant(1), 20).unwrap_err();
        assert_eq!(refused, MemoryError::Peer);
        let _second = message(&budget, client("192.0.2.2"), tenant(1), 55).unwrap();
        let refused = message(&budget, client("192.0.2.2"), tenant(1), 30).unwrap_err();
        assert_eq!(refused, MemoryError::Tenant);
        let _other = message(&budget, client("192.0.2.2"), tenant(2), 40).unwrap();
    }

    #[test]
    fn one_more_is_served_beside_four_peers_that_hold_all_that_they_may() {
        let budget = budget(512 * MIB, 128 * MIB, 256 * MIB);
        let park = |address: &str, number| {
            std::iter::from_fn(|| message(&budget, client(address), tenant(number), 512).ok()).collect()
        };
        let parked: Vec<Vec<_>> = (1..=4).map(|number| park(&format!("192.0.2.{number}"), number)).collect();
        assert!(parked[..3].iter().all(|parked| parked.len() == 256));
        assert_eq!(parked[3].len(), 128, "half of what was left");
        let mut large = budget.open(client("192.0.2.5"), tenant(5)).unwrap();
        large.append(&vec![b'x'; 512 * KIB], MOST).unwrap();
        assert_eq!(message(&budget, client("192.0.2.1"), tenant(1), 4).unwrap_err(), MemoryError::Peer);
    }

    #[test]
    fn one_more_peer_of_a_tenant_is_served_beside_one_that_holds_all_that_it_may() {
        let budget = budget(512 * MIB, 128 * MIB, 256 * MIB);
        let parked: Vec<_> =
            std::iter::from_fn(|| message(&budget, client("192.0.2.1"), tenant(1), 512).ok()).collect();
        assert_eq!(parked.len(), 256);
        let _other = message(&budget, client("192.0.2.2"), tenant(1), 512).unwrap();
    }

    #[test]
    fn a_site_that_rotates_its_addresses_has_the_share_of_four_peers() {
        let budget = budget(1000 * KIB, 40 * KIB, 1000 * KIB);
        let send = |address: &str| message(&budget, client(address), tenant(1), 40);
        let mut held = vec![send("2001:db8:0:100::1").unwrap()];
        assert_eq!(send("2001:db8:0:100::2").unwrap_err(), MemoryError::Peer);
        held.push(send("2001:db8:0:101::1").unwrap());
        assert_eq!(send("2001:db8:0:102::1").unwrap_err(), MemoryError::Peer, "the /56 has two shares");
        held.push(send("2001:db8:0:200::1").unwrap());
        held.push(send("2001:db8:0:300::1").unwrap());
        for host in 0..1_000 {
            let refused = send(&format!("2001:db8:0:{:x}::1", 0x400 + host)).unwrap_err();
            assert_eq!(refused, MemoryError::Peer, "the /48 has four shares");
        }
        held.push(send("2001:db8:1:100::1").unwrap());
    }

    #[test]
    fn a_message_above_a_mebibyte_leaves_an_eighth_to_smaller_ones() {
        let budget = budget(16 * MIB, 64 * MIB, 64 * MIB);
        let large: Vec<_> = std::iter::from_fn(|| message(&budget, None, Vec::new(), 1_500).ok()).collect();
        let left = 16 * MIB - budget.used();
        assert!((2 * MIB..2 * MIB + 1_500 * KIB).contains(&left), "{left} bytes after {}", large.len());
        let _small = message(&budget, None, Vec::new(), 1_000).unwrap();
    }

    #[test]
    fn a_message_that_does_not_fit_keeps_what_it_has() {
        let budget = budget(100 * KIB, 100 * KIB, 100 * KIB);
        let mut buffer = message(&budget, client("192.0.2.1"), tenant(1), 40).unwrap();
        assert_eq!(buffer.append(&[b'x'; 20 * KIB], MOST), Err(MemoryError::Peer));
        assert_eq!((buffer.data.len(), budget.used()), (40 * KIB, 40 * KIB));
    }
}
