//! `/v1/email/{id}`: one message, its raw data and attachments.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tempmail_store::MessageRow;
use uuid::Uuid;

use crate::auth::LiveCaller;
use crate::error::{Absence, Surface, V1Error};
use crate::message_view;
use crate::state::AppState;

/// The full message.
pub(super) async fn get_email(
    State(state): State<AppState>,
    caller: LiveCaller,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, V1Error> {
    let row = find(&state, &caller, &segment(id)?).await?;
    Ok(message_view::full_message(&state, row, Surface::V1).await?)
}

/// The message as its recipient received it.
pub(super) async fn get_raw(
    State(state): State<AppState>,
    caller: LiveCaller,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, V1Error> {
    let row = find(&state, &caller, &segment(id)?).await?;
    Ok(message_view::raw_message(&state, row).await?)
}

/// One attachment, decoded.
pub(super) async fn get_attachment(
    State(state): State<AppState>,
    caller: LiveCaller,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, V1Error> {
    let (id, index) = segment(path)?;
    let row = find(&state, &caller, &id).await?;
    Ok(message_view::attachment(&state, row, &index).await?)
}

/// Deletes the message for everybody who can read it.
pub(super) async fn delete_email(
    State(state): State<AppState>,
    caller: LiveCaller,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, V1Error> {
    let row = find(&state, &caller, &segment(id)?).await?;
    if state.store.delete_message(&row).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        // Somebody else was faster.
        Err(Absence::of(row.id, state.clock.now()).into())
    }
}

/// The message of an id, if the caller may read it; else what the id's own time says, which
/// is the same whether it is another's, deleted, expired or never was.
async fn find(state: &AppState, caller: &LiveCaller, id: &str) -> Result<MessageRow, V1Error> {
    let id = Uuid::try_parse(id).map_err(|_no_id| V1Error::NotFound)?;
    let now = state.clock.now();
    let found = state.store.find_readable_message(caller.tenant, id, &state.reserved, now).await?;
    found.ok_or_else(|| Absence::of(id, now).into())
}

fn segment<T>(path: Result<Path<T>, PathRejection>) -> Result<T, V1Error> {
    path.map(|Path(segments)| segments).map_err(|_no_utf8| V1Error::InvalidRequest)
}
