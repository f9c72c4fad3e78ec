//! Deletions of messages. Those in one inbox wait for each other in Postgres, with a connection each: who deletes has few
//! at once, and its others wait here.

use std::time::Duration;

use jiff::Timestamp;
use tempmail_store::{InboxQuery, MessageRow, Store, StoreError, TenantInbox};
use tokio::time::timeout;
use uuid::Uuid;

use crate::http::error::ApiError;
use crate::http::key_turn::KeyTurns;

/// Deletions that a tenant, or an inbox of none, has at once in this process.
const AT_ONCE: usize = 2;
/// How long a deletion waits for its turn, and how long a request deletes many messages or inboxes, one after the other.
pub(crate) const DELETION_TIME: Duration = Duration::from_secs(8);

/// Deletes messages in turns.
pub(crate) struct Deletions {
    store: Store,
    turns: KeyTurns<Uuid>,
}

impl Deletions {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, turns: KeyTurns::new(AT_ONCE) }
    }

    /// Deletes a message for every reader; `false` where it is deleted already.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where its turn does not come in time. The store failed.
    pub(crate) async fn delete_message(&self, row: &MessageRow) -> Result<bool, ApiError> {
        self.in_turn(row.tenant.unwrap_or(row.inbox), self.store.delete_message(row)).await
    }

    /// Deletes every message that an address has now; `false` where the tenant may not read the address.
    ///
    /// # Errors
    /// As [`Self::delete_message`].
    pub(crate) async fn clear_inbox(&self, query: InboxQuery<'_>, now: Timestamp) -> Result<bool, ApiError> {
        self.in_turn(query.tenant, self.store.clear_inbox(query, now)).await
    }

    /// Deletes every message that an inbox of a tenant has now.
    ///
    /// # Errors
    /// As [`Self::delete_message`].
    pub(crate) async fn clear_tenant_inbox(
        &self,
        tenant: Uuid,
        inbox: &TenantInbox,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        self.in_turn(tenant, self.store.clear_tenant_inbox(inbox, now)).await
    }

    async fn in_turn<T>(
        &self,
        key: Uuid,
        deletion: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, ApiError> {
        let turn = timeout(DELETION_TIME, self.turns.acquire(key)).await;
        let _turn = turn.map_err(|_| ApiError::Busy("deletion"))?;
        Ok(deletion.await?)
    }
}
