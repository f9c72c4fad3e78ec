//! A page of a mailbox's messages.

use axum::Json;
use uuid::Uuid;

use crate::http::error::{ApiError, MissingMessage};
use crate::message::MessageList;
use crate::state::AppState;

/// A page (from 1) of a mailbox's messages, newest first: of those before a message of it, or of all. However far back
/// that message is, the page costs the same; later pages cost more, and those of an owner, its tenant or a mailbox of none,
/// are read one at a time.
///
/// # Errors
/// [`ApiError::NotFound`] or [`ApiError::EmailExpired`] where the mailbox has no such message; [`ApiError::Busy`]
/// where too many pages of the owner wait; the store failed.
pub(crate) async fn list_messages(
    state: &AppState,
    owner: Uuid,
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
    let _turn = state.gates.long_reads.turn_for_page(owner, page).await?;
    let rows = state.store.list_mailbox_messages(mailbox, position, page, now).await?;
    Ok(Json(MessageList::new(rows, page)))
}
