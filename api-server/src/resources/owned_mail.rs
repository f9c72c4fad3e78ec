//! Everything that a tenant owns, deleted at once.

use uuid::Uuid;

use crate::http::error::ApiError;
use crate::state::AppState;

/// Deletes every message that a tenant owns now, inbox by inbox.
///
/// # Errors
/// [`ApiError::Busy`] where it takes too long: some are left. The store failed.
pub(crate) async fn clear(state: &AppState, tenant: Uuid) -> Result<(), ApiError> {
    let (deletion, now) = (state.begin_deletion(), state.clock.now());
    // What arrives meanwhile is not deleted for its own sake, so this ends.
    let mut before = i64::MAX;
    loop {
        let inboxes = state.store.list_tenant_inboxes(tenant, before, now).await?;
        let Some(newest) = inboxes.iter().map(|inbox| inbox.newest).max() else { return Ok(()) };
        before = before.min(newest.saturating_add(1));
        for inbox in &inboxes {
            deletion.clear_tenant_inbox(tenant, inbox, now).await?;
        }
    }
}
