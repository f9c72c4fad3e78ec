//! The mail of an API token or a session: to one address, to a domain, or to everything its tenant owns. The right to read is
//! decided in every read of the store.

use std::sync::Arc;

use jiff::Timestamp;
use tempmail_model::address::{AddressSyntax, RecipientAddress};
use tempmail_store::{InboxAccess, InboxQuery, InboxScan, MessageRow, ScanRequest, TenantScan};
use uuid::Uuid;

use super::follower::{Follower, MailSource, Patience, RingKey, SourcePage, Start};
use crate::arrivals::Topic;
use crate::auth::{LiveCaller, MailCaller, SubscriberCredential};
use crate::http::client::Party;
use crate::http::error::ApiError;
use crate::state::AppState;

/// Rows of the store that need no turn: as many as a stream sends at a time. What looks for few among more takes turns by
/// tenant, over all of its tokens.
const READ_AT_ONCE: i64 = 100;

/// Which mail a follower gives.
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

/// See the module.
#[derive(Debug)]
pub(crate) struct ScopeSource {
    credential: SubscriberCredential,
    scope: Scope,
    /// Whose mail it is, as of the last read: the key of its arrivals, and what the right depends on.
    access: Option<Access>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Inbox(InboxAccess),
    Tenant { domain: Option<Uuid> },
}

/// A follower of the mail of `scope`, for the caller with this credential.
pub(crate) fn follow(
    state: &AppState,
    credential: SubscriberCredential,
    scope: Scope,
    start: Start,
    patience: Patience,
) -> Follower<ScopeSource> {
    let source = ScopeSource { credential, scope, access: None };
    Follower::new(state, state.arrivals.register(), source, start, patience)
}

impl ScopeSource {
    /// The tenant that cursors are sealed for.
    pub(crate) fn tenant(&self) -> Uuid {
        self.credential.tenant
    }

    /// Whether reads of the store may meet messages outside the scope.
    pub(crate) fn reads_beyond_scope(&self) -> bool {
        matches!(self.scope, Scope::Domain(_))
    }

    async fn scan(&self, state: &AppState, scan: ScanRequest) -> Result<(Access, SourcePage), ApiError> {
        let (tenant, now) = (self.credential.tenant, state.clock.now());
        let _turn = match scan.limit {
            ..=READ_AT_ONCE => None,
            _ => Some(state.gates.scans.turn(Party::Id(tenant)).await?),
        };
        let page =
            |generation, position, rows| SourcePage { rows, position, generation, owner_changed: false };
        let domain = match &self.scope {
            Scope::Address(address) => {
                let reserved = state.reserved.reservation_of(address.base_local_part());
                let query = InboxQuery { tenant, address, reserved };
                let scan = state.stream_store.scan_inbox(query, scan, now).await?;
                let InboxScan { access, generation, position, rows } = scan.ok_or(ApiError::NotFound)?;
                return Ok((Access::Inbox(access), page(generation, position, rows)));
            }
            Scope::Domain(name) => Some(name.as_str()),
            Scope::Owned => None,
        };
        let scan = state.stream_store.scan_tenant(tenant, domain, scan, now).await?;
        let TenantScan { domain, generation, position, rows } = scan.ok_or(ApiError::NotFound)?;
        Ok((Access::Tenant { domain }, page(generation, position, rows)))
    }
}

impl MailSource for ScopeSource {
    fn topics(&self) -> Vec<Topic> {
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
        topics
    }

    fn expires_at(&self) -> Option<Timestamp> {
        self.credential.expires_at
    }

    fn ring_key(&self) -> Option<RingKey> {
        Some(match self.access? {
            // Mail of former owners of the address has the same key.
            Access::Inbox(access) => RingKey { key: access.inbox, owner: Some(access.owner) },
            Access::Tenant { .. } => RingKey { key: self.credential.tenant, owner: None },
        })
    }

    fn covers(&self, row: &MessageRow) -> bool {
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

    async fn recheck(&mut self, state: &AppState) -> Result<(), ApiError> {
        self.credential.recheck(&state.auth, &state.stream_store).await
    }

    /// [`ApiError::NotFound`] where the caller may not read the scope.
    async fn read(&mut self, state: &AppState, scan: ScanRequest) -> Result<SourcePage, ApiError> {
        let (access, page) = self.scan(state, scan).await?;
        let former = self.access.replace(access);
        Ok(SourcePage { owner_changed: former.is_some_and(|former| former != access), ..page })
    }
}

impl Follower<ScopeSource> {
    /// The cursor after what was given.
    pub(crate) fn cursor(&self, state: &AppState) -> String {
        self.cursor_after(state, self.position().seq)
    }

    /// The cursor after the message at position `seq`.
    pub(crate) fn cursor_after(&self, state: &AppState, seq: i64) -> String {
        let generation = state.arrivals.generations().id(self.position().generation);
        state.cursors.seal(self.source().tenant(), generation, seq)
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
