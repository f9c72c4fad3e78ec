//! `/v1/email/{id}`: one message, its raw data and attachments.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tempmail_store::StoredMessage;
use uuid::Uuid;

use crate::auth::LiveCaller;
use crate::error::{Absence, Surface, V1Error};
use crate::message_view::{self, RAW_START};
use crate::state::AppState;

/// The full message.
pub(super) async fn get_email(
    State(state): State<AppState>,
    caller: LiveCaller,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, V1Error> {
    let message = find(&state, &caller, &segment(id)?, RAW_START).await?;
    Ok(message_view::full_message(&state, message, Surface::V1).await?)
}

/// The message as its recipient received it.
pub(super) async fn get_raw(
    State(state): State<AppState>,
    caller: LiveCaller,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, V1Error> {
    let message = find(&state, &caller, &segment(id)?, RAW_START).await?;
    Ok(message_view::raw_message(&state, message)?)
}

/// One attachment, decoded.
pub(super) async fn get_attachment(
    State(state): State<AppState>,
    caller: LiveCaller,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, V1Error> {
    let (id, index) = segment(path)?;
    let message = find(&state, &caller, &id, RAW_START).await?;
    Ok(message_view::attachment(&state, message, &index).await?)
}

/// Deletes the message for everybody who can read it.
pub(super) async fn delete_email(
    State(state): State<AppState>,
    caller: LiveCaller,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, V1Error> {
    let StoredMessage { row, .. } = find(&state, &caller, &segment(id)?, 0).await?;
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
    id: &str,
    raw_len: i32,
) -> Result<StoredMessage, V1Error> {
    let id = Uuid::try_parse(id).map_err(|_no_id| V1Error::NotFound)?;
    let now = state.clock.now();
    let found = state.store.find_readable_message(caller.tenant, id, &state.reserved, now, raw_len).await?;
    found.ok_or_else(|| Absence::of(id, now).into())
}

fn segment<T>(path: Result<Path<T>, PathRejection>) -> Result<T, V1Error> {
    path.map(|Path(segments)| segments).map_err(|_no_utf8| V1Error::InvalidRequest)
}
