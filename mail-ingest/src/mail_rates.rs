//! How much mail a peer may send to a tenant and to an address, and all peers together, in messages a minute; and how
//! many octets an hour a peer may send to mail without a tenant, whose storage all share. A peer may send at most its
//! limit, and at most what is left of the total. Each process counts by itself.

mod window;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tempmail_runtime::config::Smtp;

use self::window::{RateExceeded, RateLimit, RateScope, Window};
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

#[cfg(test)]
mod tests {
    use tempmail_admission::Client;
    use tempmail_model::address::RecipientAddress;
    use uuid::Uuid;

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
}
