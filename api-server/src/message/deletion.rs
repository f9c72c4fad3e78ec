//! Deletions of messages. Those in one inbox wait for each other in Postgres, with a connection each: who deletes has few
//! at once, and its others wait here.

use std::time::Duration;

use jiff::Timestamp;
use tempmail_store::{InboxQuery, MessageRow, Store, TenantInbox};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::http::error::ApiError;
use crate::http::key_turn::{KeyTurn, KeyTurns};

/// Deletions that a tenant, or an inbox of none, has at once in this process.
const AT_ONCE: usize = 2;
/// How long a request deletes, with the waits for its turns.
const TIME: Duration = Duration::from_secs(8);

/// The deletions of this process, in turns.
pub(crate) struct Deletions {
    store: Store,
    turns: KeyTurns<Uuid>,
}

/// What one request deletes, one thing after the other.
pub(crate) struct Deletion<'d> {
    deletions: &'d Deletions,
    deadline: Instant,
}

impl Deletions {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, turns: KeyTurns::new(AT_ONCE) }
    }

    /// Begins what a request deletes within 8 s.
    pub(crate) fn begin(&self) -> Deletion<'_> {
        Deletion { deletions: self, deadline: Instant::now() + TIME }
    }
}

impl Deletion<'_> {
    /// Deletes a message for every reader; `false` where it is deleted already.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where the time of the request is over, also before its turn has come: nothing was deleted. The
    /// store failed.
    pub(crate) async fn delete_message(&self, row: &MessageRow) -> Result<bool, ApiError> {
        let _turn = self.turn(row.tenant.unwrap_or(row.inbox)).await?;
        Ok(self.deletions.store.delete_message(row).await?)
    }

    /// Deletes every message that an address has now; `false` where the tenant may not read the address.
    ///
    /// # Errors
    /// As [`Self::delete_message`].
    pub(crate) async fn clear_inbox(&self, query: InboxQuery<'_>, now: Timestamp) -> Result<bool, ApiError> {
        let _turn = self.turn(query.tenant).await?;
        Ok(self.deletions.store.clear_inbox(query, now).await?)
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
        let _turn = self.turn(tenant).await?;
        Ok(self.deletions.store.clear_tenant_inbox(inbox, now).await?)
    }

    async fn turn(&self, key: Uuid) -> Result<KeyTurn<Uuid>, ApiError> {
        // A turn that is free is taken at any time.
        if Instant::now() >= self.deadline {
            return Err(ApiError::Busy("deletion"));
        }
        let turn = timeout_at(self.deadline, self.deletions.turns.acquire(key)).await;
        turn.map_err(|_| ApiError::Busy("deletion"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deletions() -> Deletions {
        Deletions::new(Store::connect("postgres://localhost", 1, "test").expect("the URL is valid"))
    }

    #[tokio::test(start_paused = true)]
    async fn the_waits_of_a_request_take_8_s_in_all() {
        let (deletions, tenant) = (deletions(), Uuid::new_v4());
        let (deletion, began) = (deletions.begin(), Instant::now());
        let others = deletions.begin();
        let first = others.turn(tenant).await.expect("a free turn");
        let _second = others.turn(tenant).await.expect("a free turn");
        let (third, ()) = tokio::join!(deletion.turn(tenant), async {
            tokio::time::sleep(Duration::from_secs(6)).await;
            drop(first);
        });
        let third = third.expect("a turn within 8 s");
        assert!(matches!(deletion.turn(tenant).await, Err(ApiError::Busy("deletion"))));
        assert_eq!(began.elapsed(), TIME);
        drop(third);
        assert!(matches!(deletion.turn(tenant).await, Err(ApiError::Busy("deletion"))));
        assert!(deletions.begin().turn(tenant).await.is_ok());
    }
}
