//! How much mail a peer may send to a tenant and to an address, and all peers together, in messages a minute; and how
//! many octets an hour a peer may send to mail without a tenant, whose storage all share. A peer may send at most its
//! limit, and at most what is left of the total. Each process counts by itself.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tempmail_admission::{Client, ClientNetwork};
use tempmail_runtime::config::Smtp;
use tokio::time::Instant;
use uuid::Uuid;

use crate::smtp::{AcceptedRecipient, DeliveryOutcome, Peer, RecipientRejection};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// Octets an hour of a peer to mail without a tenant. Tenants are bounded by their storage.
const FREE_OCTETS: RateLimit = RateLimit { total: u64::MAX, per_peer: 8 << 30 };

/// The rates of a process.
#[derive(Debug)]
pub(crate) struct MailRates {
    tenant: RateLimit,
    address: RateLimit,
    windows: Mutex<Windows>,
}

#[derive(Debug)]
struct Windows {
    messages: Window,
    free_octets: Window,
}

/// What a mail adds to its scopes.
struct Amounts {
    /// One message for each recipient, by address and by tenant.
    messages: Vec<(RateScope, u64)>,
    /// Octets of mail without a tenant; they count once, however many addresses receive them.
    free_octets: u64,
}

impl MailRates {
    /// As configured.
    pub(crate) fn from_config(config: &Smtp) -> Self {
        let tenant = RateLimit {
            total: config.tenant_messages_per_minute,
            per_peer: config.tenant_messages_per_minute_per_peer,
        };
        let address = RateLimit {
            total: config.address_messages_per_minute,
            per_peer: config.address_messages_per_minute_per_peer,
        };
        let windows = Windows { messages: Window::new(MINUTE), free_octets: Window::new(HOUR) };
        Self { tenant, address, windows: Mutex::new(windows) }
    }

    /// Whether a message of `size` bytes (0: not known yet) from `peer` to the recipient is within the limits.
    ///
    /// # Errors
    /// The rejection of the recipient.
    pub(crate) fn check(
        &self,
        peer: Peer,
        recipient: &AcceptedRecipient,
        size: u64,
    ) -> Result<(), RecipientRejection> {
        self.apply(peer, &Amounts::of([recipient], size), false).map_err(|exceeded| match exceeded {
            RateExceeded::PerPeer => RecipientRejection::PeerRate,
            RateExceeded::Total => RecipientRejection::TotalRate,
        })
    }

    /// Counts a mail of `size` bytes from `peer`, if it is within the limits for all of its recipients.
    ///
    /// # Errors
    /// The outcome of its delivery; nothing is counted.
    pub(crate) fn count(
        &self,
        peer: Peer,
        recipients: &[AcceptedRecipient],
        size: u64,
    ) -> Result<(), DeliveryOutcome> {
        self.apply(peer, &Amounts::of(recipients, size), true).map_err(|exceeded| match exceeded {
            RateExceeded::PerPeer => DeliveryOutcome::PeerRate,
            RateExceeded::Total => DeliveryOutcome::TotalRate,
        })
    }

    fn apply(&self, peer: Peer, amounts: &Amounts, counts: bool) -> Result<(), RateExceeded> {
        let Some(client) = peer.client else { return Ok(()) };
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let Windows { messages, free_octets } = &mut *windows;
        for &(scope, amount) in &amounts.messages {
            let limit = match scope {
                RateScope::Tenant(_) => self.tenant,
                RateScope::Address(_) => self.address,
            };
            messages.check(scope, client, amount, limit)?;
        }
        free_octets.check(RateScope::Tenant(None), client, amounts.free_octets, FREE_OCTETS)?;
        if counts {
            for &(scope, amount) in &amounts.messages {
                messages.add(scope, client, amount);
            }
            free_octets.add(RateScope::Tenant(None), client, amounts.free_octets);
        }
        Ok(())
    }
}

impl Amounts {
    fn of<'a>(recipients: impl IntoIterator<Item = &'a AcceptedRecipient>, size: u64) -> Self {
        let mut messages: Vec<(RateScope, u64)> = Vec::new();
        let mut free_octets = 0;
        for AcceptedRecipient { address, tenant } in recipients {
            messages.push((RateScope::Address(address.inbox_key()), 1));
            let of_tenant = RateScope::Tenant(*tenant);
            match messages.iter_mut().find(|(scope, _)| *scope == of_tenant) {
                Some((_, count)) => *count += 1,
                None => messages.push((of_tenant, 1)),
            }
            if tenant.is_none() {
                free_octets = size;
            }
        }
        Self { messages, free_octets }
    }
}

/// Sums by client and by address that are counted in a period, at most.
const SUMS_MAX: usize = 100_000;
/// Beyond so many, only those of a tenant are, by the widest network of each client: an address is then limited as its
/// tenant is, and a narrow network as the widest one. Beyond [`SUMS_MAX`] only the total of the tenant is.
const FINE_SUMS_MAX: usize = SUMS_MAX / 2;

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RateScope {
    /// A tenant; `None`: all mail without one.
    Tenant(Option<Uuid>),
    /// An address, by its key.
    Address(Uuid),
}

/// A limit of the sum in a window.
#[derive(Debug, Clone, Copy)]
struct RateLimit {
    /// Of all clients together.
    total: u64,
    /// Of a client: an IPv4 address or a /64. A /56 has twice as much, a /48 four times.
    per_peer: u64,
}

/// Which limit is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RateExceeded {
    /// That of the client.
    PerPeer,
    /// That of all clients, or the client would have more than what is left of it.
    Total,
}

/// Whose sum it is: that of a network of a client, or (`None`) of all clients together.
type SumKey = (RateScope, Option<ClientNetwork>);

/// Sums of the last minute or hour, by what is limited and by client. A sum is that of the present period, and of the
/// former one as far as it is still within the window, as if its mail had been spread evenly.
#[derive(Debug)]
struct Window {
    period: Duration,
    began: Instant,
    present: HashMap<SumKey, u64>,
    former: HashMap<SumKey, u64>,
}

impl Window {
    /// A window of this length.
    fn new(period: Duration) -> Self {
        Self { period, began: Instant::now(), present: HashMap::new(), former: HashMap::new() }
    }

    /// Checks whether `client` may add `amount` to `scope`. One that added something before may have as much as it
    /// leaves to others.
    ///
    /// # Errors
    /// The limit that it would exceed.
    fn check(
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
    fn add(&mut self, scope: RateScope, client: Client, amount: u64) {
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

    use tempmail_model::address::RecipientAddress;

    use super::*;

    fn peer(number: u8) -> Peer {
        let address = [192, 0, 2, number].into();
        Peer { address, client: Some(Client::Address(address)) }
    }

    fn to(tenant: Option<Uuid>) -> Vec<AcceptedRecipient> {
        vec![AcceptedRecipient { address: RecipientAddress::parse("a@b.example").unwrap(), tenant }]
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_may_send_so_many_octets_an_hour_to_mail_without_a_tenant() {
        let rates = MailRates::from_config(&Smtp::default());
        assert_eq!(rates.count(peer(1), &to(None), 8 << 30), Ok(()));
        assert_eq!(rates.count(peer(1), &to(None), 1), Err(DeliveryOutcome::PeerRate));
        assert_eq!(rates.check(peer(1), &to(None)[0], 1), Err(RecipientRejection::PeerRate));
        assert_eq!(rates.count(peer(1), &to(Some(Uuid::nil())), 8 << 30), Ok(()), "its storage bounds it");
        assert_eq!(rates.count(peer(2), &to(None), 8 << 30), Ok(()));
        assert_eq!(rates.count(Peer { client: None, ..peer(1) }, &to(None), 1), Ok(()));
        tokio::time::advance(HOUR * 2).await;
        assert_eq!(rates.count(peer(1), &to(None), 1), Ok(()));
    }

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
