//! A page of a mailbox's messages.

use axum::Json;
use uuid::Uuid;

use crate::http::error::{ApiError, MissingMessage};
use crate::message::MessageList;
use crate::state::AppState;

/// A page (from 1) of a mailbox's messages, newest first: of those before a message of it, or of all. However far back
/// that message is, the page costs the same.
///
/// # Errors
/// [`ApiError::NotFound`] or [`ApiError::EmailExpired`] where the mailbox has no such message; the store failed.
pub(crate) async fn list_messages(
    state: &AppState,
    mailbox: Uuid,
    before: Option<Uuid>,
    page: i64,
) -> Result<Json<MessageList>, ApiError> {
    let now = state.clock.now();
    let position = match before {
        None => i64::MAX,
        Some(id) => {
            let found = state.store.find_mailbox_message(mailbox, id, now, 0).await?;
            found.ok_or_else(|| MissingMessage::of(id, now))?.row.seq
        }
    };
    let rows = state.store.list_mailbox_messages(mailbox, position, page, now).await?;
    Ok(Json(MessageList::new(rows, page)))
}
