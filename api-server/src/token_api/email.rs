//! `/v1/email/{id}`: one message, its raw data and attachments.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tempmail_store::StoredMessage;
use uuid::Uuid;

use crate::auth::LiveCaller;
use crate::error::{Absence, Surface, V1Error};
use crate::message_view::{self, RAW_START};
use crate::parameter::{PathAttachment, PathId};
use crate::state::AppState;

/// The full message.
pub(super) async fn get_email(
    State(state): State<AppState>,
    caller: LiveCaller,
    PathId(id): PathId,
) -> Result<Response, V1Error> {
    let message = find(&state, &caller, id, RAW_START).await?;
    Ok(message_view::full_message(&state, message, Surface::V1).await?)
}

/// The message as its recipient received it.
pub(super) async fn get_raw(
    State(state): State<AppState>,
    caller: LiveCaller,
    PathId(id): PathId,
) -> Result<Response, V1Error> {
    let message = find(&state, &caller, id, RAW_START).await?;
    Ok(message_view::raw_message(&state, message)?)
}

/// One attachment, decoded.
pub(super) async fn get_attachment(
    State(state): State<AppState>,
    caller: LiveCaller,
    PathAttachment { message: id, index }: PathAttachment,
) -> Result<Response, V1Error> {
    let message = find(&state, &caller, id, RAW_START).await?;
    Ok(message_view::attachment(&state, message, &index).await?)
}

/// Deletes the message for everybody who can read it.
pub(super) async fn delete_email(
    State(state): State<AppState>,
    caller: LiveCaller,
    PathId(id): PathId,
) -> Result<StatusCode, V1Error> {
    let StoredMessage { row, .. } = find(&state, &caller, id, 0).await?;
    if state.store.delete_message(&row).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        // Somebody else was faster.
        Err(Absence::of(row.id, state.clock.now()).into())
    }
}

/// The message of an id, if the caller may read it; else what the id's own time says, which
/// is the same whether it is another's, deleted, expired or never was.
async fn find(
    state: &AppState,
    caller: &LiveCaller,
    id: Uuid,
    raw_len: i32,
) -> Result<StoredMessage, V1Error> {
    let now = state.clock.now();
    let found = state.store.find_readable_message(caller.tenant, id, &state.reserved, now, raw_len).await?;
    found.ok_or_else(|| Absence::of(id, now).into())
}
