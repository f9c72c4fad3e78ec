//! `/api/messages`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tempmail_store::StoredMessage;
use uuid::Uuid;

use crate::auth::MailboxCaller;
use crate::error::{Absence, ApiError, Surface};
use crate::message_view::{self, MessageList, RAW_START};
use crate::parameter::{Page, PathAttachment, PathId};
use crate::state::AppState;

/// A page of the mailbox's messages, newest first.
pub(super) async fn list_messages(
    State(state): State<AppState>,
    MailboxCaller { mailbox }: MailboxCaller,
    Page(page): Page,
) -> Result<Json<MessageList>, ApiError> {
    let rows = state.store.list_mailbox_messages(mailbox.id, page, state.clock.now()).await?;
    Ok(Json(MessageList::new(rows, page)))
}

/// The full message.
pub(super) async fn get_message(
    State(state): State<AppState>,
    caller: MailboxCaller,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    let message = find(&state, &caller, id, RAW_START).await?;
    Ok(message_view::full_message(&state, message, Surface::Api).await?)
}

/// Deletes the message.
pub(super) async fn delete_message(
    State(state): State<AppState>,
    caller: MailboxCaller,
    PathId(id): PathId,
) -> Result<StatusCode, ApiError> {
    let StoredMessage { row, .. } = find(&state, &caller, id, 0).await?;
    if state.store.delete_message(&row).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        // Another request was faster.
        Err(Absence::of(row.id, state.clock.now()).into())
    }
}

/// Marks the message as read.
pub(super) async fn mark_read(
    State(state): State<AppState>,
    MailboxCaller { mailbox }: MailboxCaller,
    PathId(id): PathId,
) -> Result<StatusCode, ApiError> {
    let now = state.clock.now();
    if state.store.mark_message_read(mailbox.id, id, now).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Absence::of(id, now).into())
    }
}

/// The message as it was received.
pub(super) async fn get_raw(
    State(state): State<AppState>,
    caller: MailboxCaller,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    let message = find(&state, &caller, id, RAW_START).await?;
    Ok(message_view::raw_message(&state, message)?)
}

/// One attachment, decoded.
pub(super) async fn get_attachment(
    State(state): State<AppState>,
    caller: MailboxCaller,
    PathAttachment { message: id, index }: PathAttachment,
) -> Result<Response, ApiError> {
    let message = find(&state, &caller, id, RAW_START).await?;
    Ok(message_view::attachment(&state, message, &index).await?)
}

async fn find(
    state: &AppState,
    caller: &MailboxCaller,
    id: Uuid,
    raw_len: i32,
) -> Result<StoredMessage, ApiError> {
    let now = state.clock.now();
    let found = state.store.find_mailbox_message(caller.mailbox.id, id, now, raw_len).await?;
    found.ok_or_else(|| Absence::of(id, now).into())
}
