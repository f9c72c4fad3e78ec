//! Sums of the last minute or hour, by what is limited and by client. A sum is that of the present period, and of the
//! former one as far as it is still within the window, as if its mail had been spread evenly.

use std::collections::HashMap;
use std::time::Duration;

use tempmail_admission::{Client, ClientNetwork};
use tokio::time::Instant;
use uuid::Uuid;

/// Sums by client and by address that are counted in a period, at most.
const SUMS_MAX: usize = 100_000;
/// Beyond so many, only those of a tenant are, by the widest network of each client: an address is then limited as its
/// tenant is, and a narrow network as the widest one. Beyond [`SUMS_MAX`] only the total of the tenant is.
const FINE_SUMS_MAX: usize = SUMS_MAX / 2;

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RateScope {
    /// A tenant; `None`: all mail without one.
    Tenant(Option<Uuid>),
    /// An address, by its key.
    Address(Uuid),
}

/// A limit of the sum in a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateLimit {
    /// Of all clients together.
    pub(super) total: u64,
    /// Of a client: an IPv4 address or a /64. A /56 has twice as much, a /48 four times.
    pub(super) per_peer: u64,
}

/// Which limit is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RateExceeded {
    /// That of the client.
    PerPeer,
    /// That of all clients, or the client would have more than what is left of it.
    Total,
}

/// Whose sum it is: that of a network of a client, or (`None`) of all clients together.
type SumKey = (RateScope, Option<ClientNetwork>);

/// The sums of a window.
#[derive(Debug)]
pub(super) struct Window {
    period: Duration,
    began: Instant,
    present: HashMap<SumKey, u64>,
    former: HashMap<SumKey, u64>,
}

impl Window {
    /// A window of this length.
    pub(super) fn new(period: Duration) -> Self {
        Self { period, began: Instant::now(), present: HashMap::new(), former: HashMap::new() }
    }

    /// Checks whether `client` may add `amount` to `scope`. One that added something before may have as much as it
    /// leaves to others.
    ///
    /// # Errors
    /// The limit that it would exceed.
    pub(super) fn check(
        &mut self,
        scope: RateScope,
        client: Client,
        amount: u64,
        limit: RateLimit,
    ) -> Result<(), RateExceeded> {
        self.advance();
        let total = self.sum((scope, None)).saturating_add(amount);
        let left = limit.total.checked_sub(total);
        let mut is_within_left = left.is_some();
        for (network, times) in client.networks() {
            let before = self.sum((scope, Some(network)));
            let own = before.saturating_add(amount);
            if own > limit.per_peer.saturating_mul(times.into()) {
                return Err(RateExceeded::PerPeer);
            }
            is_within_left &= before == 0 || left.is_some_and(|left| own <= left);
        }
        if is_within_left { Ok(()) } else { Err(RateExceeded::Total) }
    }

    /// Adds what `client` sent.
    pub(super) fn add(&mut self, scope: RateScope, client: Client, amount: u64) {
        self.advance();
        let widest = client.widest();
        let (of_all, of_widest) = match scope {
            // There are only so many tenants.
            RateScope::Tenant(_) => (usize::MAX, SUMS_MAX),
            RateScope::Address(_) => (FINE_SUMS_MAX, FINE_SUMS_MAX),
        };
        self.add_to((scope, None), amount, of_all);
        for (network, _) in client.networks() {
            let most = if network == widest { of_widest } else { FINE_SUMS_MAX };
            self.add_to((scope, Some(network)), amount, most);
        }
    }

    /// Adds to a sum, which is a new one only if there are fewer than `most`.
    fn add_to(&mut self, key: SumKey, amount: u64, most: usize) {
        let has_room = self.present.len() < most;
        match self.present.get_mut(&key) {
            Some(sum) => *sum = sum.saturating_add(amount),
            None if has_room && amount > 0 => {
                self.present.insert(key, amount);
            }
            None => {}
        }
    }

    /// Begins a new period where the present one is over.
    fn advance(&mut self) {
        let age = self.began.elapsed();
        if age < self.period {
            return;
        }
        let ended = std::mem::take(&mut self.present);
        let periods = u32::try_from(age.as_nanos() / self.period.as_nanos().max(1)).unwrap_or(u32::MAX);
        self.former = if periods == 1 { ended } else { HashMap::new() };
        self.began += self.period.saturating_mul(periods);
    }

    /// The sum in the window.
    fn sum(&self, key: SumKey) -> u64 {
        let of = |sums: &HashMap<SumKey, u64>| sums.get(&key).copied().unwrap_or(0);
        let left = self.period.saturating_sub(self.began.elapsed());
        let weighted = u128::from(of(&self.former)) * left.as_millis() / self.period.as_millis().max(1);
        of(&self.present).saturating_add(u64::try_from(weighted).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const TENANT: RateScope = RateScope::Tenant(None);

    fn client(number: u8) -> Client {
        Client::Address([192, 0, 2, number].into())
    }

    /// A host in a /64 of its own; 65,536 of these are a /48.
    fn host(number: u32) -> Client {
        let network = (0x2001_0db8_u128 << 96) + (u128::from(number) << 64);
        Client::Address(Ipv6Addr::from_bits(network + 1).into())
    }

    /// Adds if the limit allows it.
    fn send(
        window: &mut Window,
        scope: RateScope,
        client: Client,
        amount: u64,
        limit: RateLimit,
    ) -> Result<(), RateExceeded> {
        window.check(scope, client, amount, limit)?;
        window.add(scope, client, amount);
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn limits_a_client_in_a_window_that_slides() {
        let limit = RateLimit { total: 1_000, per_peer: 100 };
        let mut window = Window::new(MINUTE);
        let mut send = |number, amount| send(&mut window, TENANT, client(number), amount, limit);
        assert_eq!(send(1, 100), Ok(()));
        assert_eq!(send(1, 1), Err(RateExceeded::PerPeer));
        assert_eq!(send(2, 100), Ok(()));
        tokio::time::advance(MINUTE + MINUTE / 2).await;
        assert_eq!(send(1, 51), Err(RateExceeded::PerPeer));
        assert_eq!(send(1, 50), Ok(()));
        tokio::time::advance(MINUTE * 3).await;
        assert_eq!(send(1, 100), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_sends_at_most_what_is_left_and_one_more_finds_some() {
        let limit = RateLimit { total: 100, per_peer: 80 };
        let mut window = Window::new(MINUTE);
        let mut sent = |number| {
            (0..).take_while(|_| send(&mut window, TENANT, client(number), 1, limit).is_ok()).count()
        };
        assert_eq!([1, 2, 3, 4].map(&mut sent), [50, 25, 12, 6]);
        assert_eq!(window.check(TENANT, client(1), 1, limit), Err(RateExceeded::Total));
        assert_eq!(window.check(RateScope::Tenant(Some(Uuid::nil())), client(1), 80, limit), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_site_that_rotates_its_addresses_has_the_rate_of_four_clients() {
        let limit = RateLimit { total: 1_000_000, per_peer: 10 };
        let mut window = Window::new(MINUTE);
        let sent = (0..65_536).filter(|number| send(&mut window, TENANT, host(*number), 1, limit).is_ok());
        assert_eq!(sent.count(), 40);
    }

    #[tokio::test(start_paused = true)]
    async fn counts_a_tenant_by_widest_network_where_narrow_ones_and_addresses_are_too_many() {
        let limit = RateLimit { total: 1_000_000, per_peer: 10 };
        let mut window = Window::new(MINUTE);
        for number in 0..FINE_SUMS_MAX as u128 {
            window.add(RateScope::Address(Uuid::from_u128(number)), client(1), 1);
        }
        assert_eq!(window.present.len(), FINE_SUMS_MAX);
        let sent = (0..65_536).filter(|number| send(&mut window, TENANT, host(*number), 1, limit).is_ok());
        assert_eq!(sent.count(), 40, "of a /48, whose networks are not counted");
        assert_eq!(window.present.len(), FINE_SUMS_MAX + 2);
        let address = RateScope::Address(Uuid::from_u128(0));
        let counted = RateLimit { total: 100, per_peer: 1 };
        assert_eq!(window.check(address, client(1), 1, counted), Err(RateExceeded::PerPeer));
    }

    #[tokio::test(start_paused = true)]
    async fn counts_the_total_of_a_tenant_however_many_clients_there_are() {
        let limit = RateLimit { total: 110_000, per_peer: 10 };
        let mut window = Window::new(MINUTE);
        let site = |number: u32| {
            Client::Address(Ipv6Addr::from_bits((0x2001_u128 << 112) + (u128::from(number) << 80)).into())
        };
        let sent = (0..120_000).filter(|number| send(&mut window, TENANT, site(*number), 1, limit).is_ok());
        assert_eq!(sent.count(), 110_000);
        assert_eq!(window.present.len(), SUMS_MAX);
    }
}
