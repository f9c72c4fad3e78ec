//! Deletions of messages, in turns.

use jiff::Timestamp;
use tempmail_admission::Turn;
use tempmail_store::{InboxQuery, MessageRow, Store, TenantInbox};
use tokio::time::Instant;
use uuid::Uuid;

use crate::http::client::Party;
use crate::http::error::ApiError;
use crate::http::gates::Gate;

/// What one request deletes within 8 s, one thing after the other, each in a turn of the tenant, or of an inbox of none.
pub(crate) struct Deletion<'d> {
    store: &'d Store,
    gate: &'d Gate,
    deadline: Instant,
}

impl<'d> Deletion<'d> {
    pub(crate) fn new(store: &'d Store, gate: &'d Gate) -> Self {
        Self { store, gate, deadline: gate.deadline() }
    }

    /// Deletes a message for every reader; `false` where it is deleted already.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where the time of the request is over, also before its turn has come: nothing was deleted. The
    /// store failed.
    pub(crate) async fn delete_message(&self, row: &MessageRow) -> Result<bool, ApiError> {
        let _turn = self.turn(row.tenant.unwrap_or(row.inbox)).await?;
        Ok(self.store.delete_message(row).await?)
    }

    /// Deletes every message that an address has now; `false` where the tenant may not read the address.
    ///
    /// # Errors
    /// As [`Self::delete_message`].
    pub(crate) async fn clear_inbox(&self, query: InboxQuery<'_>, now: Timestamp) -> Result<bool, ApiError> {
        let _turn = self.turn(query.tenant).await?;
        Ok(self.store.clear_inbox(query, now).await?)
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
        Ok(self.store.clear_tenant_inbox(inbox, now).await?)
    }

    async fn turn(&self, of: Uuid) -> Result<Turn<Party>, ApiError> {
        // A turn that is free is taken at any time.
        if Instant::now() >= self.deadline {
            return Err(ApiError::Busy("deletion"));
        }
        self.gate.turn_until(Party::Id(of), self.deadline).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::http::gates::Gates;

    #[tokio::test(start_paused = true)]
    async fn the_waits_of_a_request_take_8_s_in_all() {
        let store = Store::connect("postgres://localhost", 1, "test").expect("the URL is valid");
        let (gate, tenant) = (Gates::new().deletions, Uuid::new_v4());
        let (deletion, began) = (Deletion::new(&store, &gate), Instant::now());
        let others = Deletion::new(&store, &gate);
        let first = others.turn(tenant).await.expect("a free turn");
        let _second = others.turn(tenant).await.expect("a free turn");
        let (third, ()) = tokio::join!(deletion.turn(tenant), async {
            tokio::time::sleep(Duration::from_secs(6)).await;
            drop(first);
        });
        let third = third.expect("a turn within 8 s");
        assert!(matches!(deletion.turn(tenant).await, Err(ApiError::Busy("deletion"))));
        assert_eq!(began.elapsed(), Duration::from_secs(8));
        drop(third);
        assert!(matches!(deletion.turn(tenant).await, Err(ApiError::Busy("deletion"))));
        assert!(Deletion::new(&store, &gate).turn(tenant).await.is_ok());
    }
}
