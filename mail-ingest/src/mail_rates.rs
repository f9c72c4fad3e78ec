//! How much mail a peer may send to a tenant and to an address, and all peers together: messages a minute, and bytes
//! an hour. Where all together reach their limit, peers with more than an equal share of it are deferred and the
//! others are not, so that nobody can stop a tenant's mail by sending it more. Each process counts by itself.

mod window;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempmail_runtime::config::Smtp;
use uuid::Uuid;

use self::window::{RateExceeded, RateScope, Window, WindowLimit};
use crate::peer::{Client, Peer};
use crate::smtp::{AcceptedRecipient, DeliveryOutcome, RecipientRejection};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// The limits of messages or of bytes in a window.
#[derive(Debug, Clone, Copy)]
struct ScopeLimits {
    tenant: WindowLimit,
    address: WindowLimit,
}

/// The rates of a process.
#[derive(Debug)]
pub(crate) struct MailRates {
    messages_limits: ScopeLimits,
    bytes_limits: ScopeLimits,
    windows: Mutex<Windows>,
}

#[derive(Debug)]
struct Windows {
    messages: Window,
    bytes: Window,
}

impl MailRates {
    /// As configured.
    pub(crate) fn from_config(config: &Smtp) -> Self {
        let limit = |total, per_peer| WindowLimit { total, per_peer };
        Self {
            messages_limits: ScopeLimits {
                tenant: limit(config.tenant_messages_per_minute, config.tenant_messages_per_minute_per_peer),
                address: limit(
                    config.address_messages_per_minute,
                    config.address_messages_per_minute_per_peer,
                ),
            },
            bytes_limits: ScopeLimits {
                tenant: limit(config.tenant_bytes_per_hour, config.tenant_bytes_per_hour_per_peer),
                address: limit(config.address_bytes_per_hour, config.address_bytes_per_hour_per_peer),
            },
            windows: Mutex::new(Windows { messages: Window::new(MINUTE), bytes: Window::new(HOUR) }),
        }
    }

    /// Whether a message of `size` bytes (0: not known yet) from `client` to the recipient is within the limits.
    ///
    /// # Errors
    /// The rejection of the recipient.
    pub(crate) fn check(
        &self,
        client: Client,
        recipient: &AcceptedRecipient,
        size: u64,
    ) -> Result<(), RecipientRejection> {
        let Some(peer) = client.peer else { return Ok(()) };
        self.lock().check(self, peer, &Amounts::of([recipient], size)).map_err(|exceeded| match exceeded {
            RateExceeded::PerPeer => RecipientRejection::PeerRate,
            RateExceeded::Total => RecipientRejection::TotalRate,
        })
    }

    /// Counts a mail of `size` bytes from `client`, if it is within the limits for all of its recipients.
    ///
    /// # Errors
    /// The outcome of its delivery; nothing is counted.
    pub(crate) fn count(
        &self,
        client: Client,
        recipients: &[AcceptedRecipient],
        size: u64,
    ) -> Result<(), DeliveryOutcome> {
        let Some(peer) = client.peer else { return Ok(()) };
        let amounts = Amounts::of(recipients, size);
        let mut windows = self.lock();
        windows.check(self, peer, &amounts).map_err(|exceeded| match exceeded {
            RateExceeded::PerPeer => DeliveryOutcome::PeerRate,
            RateExceeded::Total => DeliveryOutcome::TotalRate,
        })?;
        windows.add(peer, &amounts);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limits(&self, scope: RateScope) -> (WindowLimit, WindowLimit) {
        match scope {
            RateScope::Tenant(_) => (self.messages_limits.tenant, self.bytes_limits.tenant),
            RateScope::Address(_) => (self.messages_limits.address, self.bytes_limits.address),
        }
    }
}

/// Messages and bytes of a mail, by tenant and by address. The data of a mail counts once for a tenant, however many
/// of its addresses receive it.
struct Amounts(Vec<(RateScope, u64, u64)>);

impl Amounts {
    fn of<'a>(recipients: impl IntoIterator<Item = &'a AcceptedRecipient>, size: u64) -> Self {
        let mut amounts: Vec<(RateScope, u64, u64)> = Vec::new();
        let mut tenants: Vec<(Option<Uuid>, u64)> = Vec::new();
        for AcceptedRecipient { address, tenant } in recipients {
            amounts.push((RateScope::Address(address.inbox_key()), 1, size));
            match tenants.iter_mut().find(|(known, _)| known == tenant) {
                Some((_, messages)) => *messages += 1,
                None => tenants.push((*tenant, 1)),
            }
        }
        amounts.extend(
            tenants.into_iter().map(|(tenant, messages)| (RateScope::Tenant(tenant), messages, size)),
        );
        Self(amounts)
    }
}

impl Windows {
    fn check(&mut self, rates: &MailRates, peer: Peer, amounts: &Amounts) -> Result<(), RateExceeded> {
        for &(scope, messages, bytes) in &amounts.0 {
            let (messages_limit, bytes_limit) = rates.limits(scope);
            self.messages.check(scope, peer, messages, messages_limit)?;
            self.bytes.check(scope, peer, bytes, bytes_limit)?;
        }
        Ok(())
    }

    fn add(&mut self, peer: Peer, amounts: &Amounts) {
        for &(scope, messages, bytes) in &amounts.0 {
            self.messages.add(scope, peer, messages);
            self.bytes.add(scope, peer, bytes);
        }
    }
}
