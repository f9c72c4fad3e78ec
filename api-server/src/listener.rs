//! A live token that listens: to one address, to a domain, or to everything its tenant owns. It
//! keeps up with the stream from the ring of recent arrivals, and reads the store where that is
//! not enough. Who may read is decided anew in every read of the store, and whenever something that
//! the right rests on changes.

use std::sync::Arc;

use tempmail_model::address::RecipientAddress;
use tempmail_store::{InboxAccess, InboxQuery, MessageRow, ScanRange};
use tokio::time::Instant;
use uuid::Uuid;

use crate::arrivals::{Arrived, Topic, Waiter, Woken};
use crate::auth::LiveCaller;
use crate::error::V1Error;
use crate::state::AppState;

/// What is listened to.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    /// One exact address.
    Address(Arc<RecipientAddress>),
    /// Every address under a verified domain of the tenant.
    Domain(String),
    /// Every mailbox of the tenant, and every address under its verified domains.
    Owned,
}

/// Messages of the stream.
#[derive(Debug)]
pub(crate) struct Page {
    /// In the order of the range.
    pub(crate) rows: Vec<MessageRow>,
    /// Where the stream stood: every message up to it was seen, unless the page is full.
    pub(crate) position: i64,
    /// Whether all this is another owner's than what was read before.
    pub(crate) moved: bool,
    /// Whether what arrives after it is told; else it is to be read on before waiting.
    pub(crate) settled: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Listener {
    caller: LiveCaller,
    scope: Scope,
    waiter: Waiter,
    /// Whose mail it is: what arrivals are found by, and what the right rests on.
    access: Option<Access>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Inbox(InboxAccess),
    Tenant { domain: Option<Uuid> },
}

impl Listener {
    /// Listens from now on to what is known of `scope` before the store was asked.
    pub(crate) fn new(state: &AppState, caller: LiveCaller, scope: Scope) -> Self {
        let mut waiter = state.arrivals.register();
        waiter.expire_at(caller.expires_at);
        let mut listener = Self { caller, scope, waiter, access: None };
        listener.listen();
        listener
    }

    /// Reads up to `limit` messages from the store; [`shows`](Self::shows) tells which of them
    /// are of the scope. Once a page is [`settled`](Page::settled), whatever arrives after what was
    /// read is told by [`woken`](Self::woken).
    ///
    /// # Errors
    /// [`V1Error::NotFound`] where the caller may not read the scope; Postgres is away.
    pub(crate) async fn read(
        &mut self,
        state: &AppState,
        range: ScanRange,
        limit: i64,
    ) -> Result<Page, V1Error> {
        let (access, rows, position) = self.scan(state, range, limit).await?;
        let former = self.access.replace(access);
        let moved = former.is_some_and(|former| former != access);
        // What arrived of another inbox before it was listened to is told to nobody.
        Ok(Page { rows, position, moved, settled: !self.listen() })
    }

    /// What arrived after `reached` for one that was told `first` by [`woken`](Self::woken), and
    /// how far that was looked for. `None`: read the store.
    pub(crate) fn recent(&self, reached: i64, first: Option<i64>) -> Option<(Vec<Arc<Arrived>>, i64)> {
        let key = match self.access? {
            Access::Inbox(access) => access.inbox,
            Access::Tenant { .. } => self.caller.tenant,
        };
        let recent = self.waiter.recent(key, reached, first)?;
        let mut ours = recent.arrived;
        if let Some(Access::Inbox(access)) = self.access {
            // An address may have had other owners: their mail has its key too.
            ours.retain(|arrived| arrived.arrival.owner == access.owner);
        }
        if ours.iter().any(|arrived| arrived.row.is_none()) {
            return None;
        }
        ours.retain(|arrived| arrived.row.as_ref().is_some_and(|row| self.shows(row)));
        Some((ours, recent.up_to))
    }

    /// Whose cursors it goes by.
    pub(crate) fn tenant(&self) -> Uuid {
        self.caller.tenant
    }

    /// Waits until something is to be done.
    pub(crate) async fn woken(&self) -> Woken {
        self.waiter.woken().await
    }

    /// Is woken at `at`, and not at what was asked for before.
    pub(crate) fn wake_at(&mut self, at: Instant) {
        self.waiter.wake_at(at);
    }

    /// Whether the caller's token may still act; the next read tells whether the scope is still
    /// the caller's.
    ///
    /// # Errors
    /// What the caller is to be told; Postgres is away.
    pub(crate) async fn recheck(&mut self, state: &AppState) -> Result<(), V1Error> {
        self.caller.recheck(state).await?;
        self.waiter.expire_at(self.caller.expires_at);
        Ok(())
    }

    async fn scan(
        &self,
        state: &AppState,
        range: ScanRange,
        limit: i64,
    ) -> Result<(Access, Vec<MessageRow>, i64), V1Error> {
        let (tenant, now) = (self.caller.tenant, state.clock.now());
        let domain = match &self.scope {
            Scope::Address(address) => {
                let reserved = state.reserved.reservation_of(address.base_local_part());
                let question = InboxQuery { tenant, address, reserved };
                let scan = state.store.scan_inbox(question, range, limit, now).await?;
                let scan = scan.ok_or(V1Error::NotFound)?;
                return Ok((Access::Inbox(scan.access), scan.rows, scan.position));
            }
            Scope::Domain(name) => Some(name.as_str()),
            Scope::Owned => None,
        };
        let scan = state.store.scan_tenant(tenant, domain, range, limit, now).await?;
        let scan = scan.ok_or(V1Error::NotFound)?;
        Ok((Access::Tenant { domain: scan.domain }, scan.rows, scan.position))
    }

    /// Listens to what is known now; `true` where some of it is new.
    fn listen(&mut self) -> bool {
        let mut topics = vec![Topic::Rights(self.caller.token), Topic::Rights(self.caller.tenant)];
        match &self.scope {
            Scope::Address(address) => {
                let key = address.inbox_key();
                topics.extend([Topic::Inbox(key), Topic::Rights(key)]);
                topics.extend(base_key(address).filter(|base| *base != key).map(Topic::Rights));
            }
            Scope::Domain(_) | Scope::Owned => topics.push(Topic::Tenant(self.caller.tenant)),
        }
        match self.access {
            Some(Access::Inbox(access)) => {
                topics.extend([Topic::Inbox(access.inbox), Topic::Rights(access.domain)]);
                topics.extend(access.mailbox.map(Topic::Rights));
            }
            Some(Access::Tenant { domain }) => topics.extend(domain.map(Topic::Rights)),
            None => {}
        }
        self.waiter.listen(topics)
    }

    /// Whether reads of the store meet other messages than those of the scope.
    pub(crate) fn is_narrower(&self) -> bool {
        matches!(self.scope, Scope::Domain(_))
    }

    /// Whether a message that was read is one of the scope.
    pub(crate) fn shows(&self, row: &MessageRow) -> bool {
        match &self.scope {
            Scope::Address(address) => {
                // A mailbox shows all its tags, and a tag itself alone.
                row.address == address.as_str()
                    || base_key(address).is_some_and(|base| base == address.inbox_key())
            }
            Scope::Domain(name) => is_under(&row.address, name),
            Scope::Owned => true,
        }
    }
}

/// The key of the address that a tag belongs to: of itself where it has none.
fn base_key(address: &RecipientAddress) -> Option<Uuid> {
    let base = format!("{}@{}", address.base_local_part(), address.domain());
    RecipientAddress::parse(&base).ok().map(|base| base.inbox_key())
}

fn is_under(address: &str, domain: &str) -> bool {
    address.rsplit_once('@').is_some_and(|(_, of)| of == domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Uuid {
        RecipientAddress::parse(text).unwrap().inbox_key()
    }

    #[test]
    fn a_tag_belongs_to_its_base_address() {
        let base = |text: &str| base_key(&RecipientAddress::parse(text).unwrap());
        assert_eq!(base("name+tag@b.example"), Some(key("name@b.example")));
        assert_eq!(base("name@b.example"), Some(key("name@b.example")));
        assert_eq!(base("+tag@b.example"), None);
    }

    #[test]
    fn only_addresses_of_exactly_the_domain_are_under_it() {
        assert!(is_under("a@b.example", "b.example"));
        assert!(!is_under("a@c.b.example", "b.example") && !is_under("a@xb.example", "b.example"));
    }
}
