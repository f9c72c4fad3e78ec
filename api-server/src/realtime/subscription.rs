//! The subscription of an API token or a session: to one address, to a domain, or to everything its tenant owns. It
//! follows the stream through the ring of recent arrivals, and reads the store where the ring is not
//! enough. The right to read is decided in every read of the store, which also happens whenever something
//! that the right depends on changes, and while the process does not know whether it does
//! ([`Arrivals::is_stale`](crate::arrivals::Arrivals::is_stale)).

use std::sync::Arc;

use tempmail_model::address::{AddressSyntax, RecipientAddress};
use tempmail_store::{InboxAccess, InboxQuery, InboxScan, MessageRow, ScanRequest, TenantScan};
use tokio::time::Instant;
use uuid::Uuid;

use crate::arrivals::{ArrivedMessage, GenerationNumber, Notifications, Subscriber, Topic};
use crate::auth::{LiveCaller, MailCaller, SubscriberCredential};
use crate::http::client::Party;
use crate::http::error::ApiError;
use crate::state::AppState;

/// Rows of the store that need no turn: as many as a stream sends at a time. What looks for few among more takes turns by
/// tenant, over all of its tokens.
const READ_AT_ONCE: i64 = 100;

/// The mail that a subscription covers.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    /// One exact address.
    Address(Arc<RecipientAddress>),
    /// Every address under a verified domain of the tenant.
    Domain(String),
    /// Every mailbox of the tenant, and every address under its verified domains.
    Owned,
}

impl Scope {
    /// The caller, if its token is for this scope: a minted one is for one address alone. Whatever is done with a scope on
    /// `/v1` begins with this.
    ///
    /// # Errors
    /// [`ApiError::NotFound`].
    pub(crate) fn admit(&self, caller: MailCaller) -> Result<LiveCaller, ApiError> {
        match self {
            Self::Address(address) => caller.for_address(address),
            Self::Domain(_) | Self::Owned => caller.for_any_address(),
        }
    }
}

/// A page of messages from the store.
#[derive(Debug)]
pub(crate) struct StreamPage {
    /// In the order of the range.
    pub(crate) rows: Vec<MessageRow>,
    /// The end of the stream: every message up to it was considered, unless the page is full.
    pub(crate) position: i64,
    /// Whether the messages belong to another owner than those of the previous page.
    pub(crate) owner_changed: bool,
    /// Whether later arrivals are notified; if not, read the next page before waiting.
    pub(crate) subscribed: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Subscription {
    credential: SubscriberCredential,
    scope: Scope,
    subscriber: Subscriber,
    /// Whose mail it is, as of the last read: the key of its arrivals, and what the right depends on.
    access: Option<Access>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Inbox(InboxAccess),
    Tenant { domain: Option<Uuid> },
}

/// What a read of the store met.
struct Scan {
    access: Access,
    /// The generation that was current in the store.
    generation: Uuid,
    position: i64,
    rows: Vec<MessageRow>,
}

impl Subscription {
    /// Subscribes to the topics of `scope` that are known before the first read.
    pub(crate) fn new(state: &AppState, credential: SubscriberCredential, scope: Scope) -> Self {
        let mut subscriber = state.arrivals.register();
        subscriber.schedule_expiry(credential.expires_at);
        let mut subscription = Self { credential, scope, subscriber, access: None };
        subscription.subscribe();
        subscription
    }

    /// Reads messages from the store, whose positions are of `generation`; [`covers`](Self::covers) tells which of
    /// them are in the scope. Once a page is [`subscribed`](StreamPage::subscribed), later arrivals are returned by
    /// [`notified`](Self::notified).
    ///
    /// # Errors
    /// [`ApiError::NotFound`] where the caller may not read the scope, unless its token ended meanwhile;
    /// [`ApiError::Unavailable`] while another generation is current in the store, and where Postgres is unavailable.
    pub(crate) async fn read(
        &mut self,
        state: &AppState,
        generation: GenerationNumber,
        scan: ScanRequest,
    ) -> Result<StreamPage, ApiError> {
        let scan = self.scan(state, scan).await;
        if let Err(ApiError::NotFound) = scan {
            // A tenant that is deleted loses both: its token is reported first, whenever it was checked.
            self.recheck(state).await?;
        }
        let Scan { access, generation: scanned, rows, position } = scan?;
        if !state.arrivals.generations().is(generation, scanned) {
            return Err(ApiError::Unavailable);
        }
        let former = self.access.replace(access);
        let owner_changed = former.is_some_and(|former| former != access);
        // Earlier arrivals under a new topic were not notified.
        Ok(StreamPage { rows, position, owner_changed, subscribed: !self.subscribe() })
    }

    /// What arrived after `reached`, and up to which position arrivals were considered; `first` is the
    /// first arrival that [`notified`](Self::notified) returned. `None`: read the store.
    pub(crate) fn recent(&self, reached: i64, first: Option<i64>) -> Option<(Vec<Arc<ArrivedMessage>>, i64)> {
        let key = match self.access? {
            Access::Inbox(access) => access.inbox,
            Access::Tenant { .. } => self.credential.tenant,
        };
        let recent = self.subscriber.recent(key, reached, first)?;
        let mut messages = recent.messages;
        if let Some(Access::Inbox(access)) = self.access {
            // Mail of former owners of the address has the same key.
            messages.retain(|message| message.arrival.owner == access.owner);
        }
        if messages.iter().any(|message| message.row.is_none()) {
            return None;
        }
        messages.retain(|message| message.row.as_ref().is_some_and(|row| self.covers(row)));
        Some((messages, recent.up_to))
    }

    /// The tenant that cursors are sealed for.
    pub(crate) fn tenant(&self) -> Uuid {
        self.credential.tenant
    }

    /// Waits for notifications.
    pub(crate) async fn notified(&self) -> Notifications {
        self.subscriber.notified().await
    }

    /// Schedules a notification at `at`, in place of the one that was scheduled before.
    pub(crate) fn schedule(&mut self, at: Instant) {
        self.subscriber.schedule(at);
    }

    /// Checks whether the caller's credential is still accepted; the next read checks its right to the scope.
    ///
    /// # Errors
    /// What the caller is answered; Postgres is unavailable.
    pub(crate) async fn recheck(&mut self, state: &AppState) -> Result<(), ApiError> {
        self.credential.recheck(&state.auth, &state.stream_store).await?;
        self.subscriber.schedule_expiry(self.credential.expires_at);
        Ok(())
    }

    async fn scan(&self, state: &AppState, scan: ScanRequest) -> Result<Scan, ApiError> {
        let (tenant, now) = (self.credential.tenant, state.clock.now());
        let _turn = match scan.limit {
            ..=READ_AT_ONCE => None,
            _ => Some(state.gates.scans.turn(Party::Id(tenant)).await?),
        };
        let domain = match &self.scope {
            Scope::Address(address) => {
                let reserved = state.reserved.reservation_of(address.base_local_part());
                let query = InboxQuery { tenant, address, reserved };
                let scan = state.stream_store.scan_inbox(query, scan, now).await?;
                let InboxScan { access, generation, position, rows } = scan.ok_or(ApiError::NotFound)?;
                return Ok(Scan { access: Access::Inbox(access), generation, position, rows });
            }
            Scope::Domain(name) => Some(name.as_str()),
            Scope::Owned => None,
        };
        let scan = state.stream_store.scan_tenant(tenant, domain, scan, now).await?;
        let TenantScan { domain, generation, position, rows } = scan.ok_or(ApiError::NotFound)?;
        Ok(Scan { access: Access::Tenant { domain }, generation, position, rows })
    }

    /// Subscribes to the topics that are known now; `true` where mail of some was not subscribed to.
    fn subscribe(&mut self) -> bool {
        let mut topics = vec![Topic::Rights(self.credential.token), Topic::Rights(self.credential.tenant)];
        topics.extend(self.credential.further_subject().map(Topic::Rights));
        match &self.scope {
            Scope::Address(address) => {
                let key = address.inbox_key();
                topics.extend([Topic::Inbox(key), Topic::Rights(key)]);
                topics.extend(base_key(address).filter(|base| *base != key).map(Topic::Rights));
            }
            Scope::Domain(_) | Scope::Owned => topics.push(Topic::Tenant(self.credential.tenant)),
        }
        match self.access {
            Some(Access::Inbox(access)) => {
                topics.extend([Topic::Inbox(access.inbox), Topic::Rights(access.domain)]);
                topics.extend(access.mailbox.map(Topic::Rights));
            }
            Some(Access::Tenant { domain }) => topics.extend(domain.map(Topic::Rights)),
            None => {}
        }
        self.subscriber.subscribe(topics)
    }

    /// Whether reads of the store may return messages outside the scope.
    pub(crate) fn reads_beyond_scope(&self) -> bool {
        matches!(self.scope, Scope::Domain(_))
    }

    /// Whether a message that was read is in the scope.
    pub(crate) fn covers(&self, row: &MessageRow) -> bool {
        match &self.scope {
            Scope::Address(address) => {
                // A mailbox covers all its tags, a tag only itself.
                row.address == address.as_str()
                    || base_key(address).is_some_and(|base| base == address.inbox_key())
            }
            Scope::Domain(name) => is_at_domain(&row.address, name),
            Scope::Owned => true,
        }
    }
}

/// The key of an address without its tag.
fn base_key(address: &RecipientAddress) -> Option<Uuid> {
    let base = format!("{}@{}", address.base_local_part(), address.domain());
    AddressSyntax::Caught.parse(&base).ok().map(|base| base.inbox_key())
}

fn is_at_domain(address: &str, domain: &str) -> bool {
    address.rsplit_once('@').is_some_and(|(_, of)| of == domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Uuid {
        RecipientAddress::parse(text).unwrap().inbox_key()
    }

    #[test]
    fn finds_the_base_address_of_a_tag() {
        let base = |text: &str| base_key(&RecipientAddress::parse(text).unwrap());
        assert_eq!(base("name+tag@b.example"), Some(key("name@b.example")));
        assert_eq!(base("name@b.example"), Some(key("name@b.example")));
        assert_eq!(base("+tag@b.example"), None);
    }

    #[test]
    fn covers_addresses_at_exactly_the_domain() {
        assert!(is_at_domain("a@b.example", "b.example"));
        assert!(!is_at_domain("a@c.b.example", "b.example") && !is_at_domain("a@xb.example", "b.example"));
    }
}
