//! `/v1/email/{id}`: one message, its raw data and attachments.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use tempmail_store::StoredMessage;
use uuid::Uuid;

use crate::auth::MailCaller;
use crate::http::client::Client;
use crate::http::error::{ApiError, MissingMessage, Surface, V1Error, code};
use crate::http::parameter::{AttachmentPath, PathId};
use crate::message::{Email, Extraction, INITIAL_CHUNK};
use crate::openapi::{Credential, Operation, Routes, attachment_index, email_id};
use crate::state::AppState;

/// The routes of `/v1/email`.
pub(super) fn routes() -> Routes<AppState> {
    let of_email = |id, summary| {
        Operation::new(id, Credential::Live, summary).parameter(email_id()).fails(&[
            code::INVALID_REQUEST,
            code::NOT_FOUND,
            code::EMAIL_EXPIRED,
        ])
    };
    Routes::new()
        .get(
            "/v1/email/{id}",
            of_email("getEmail", "Show a message").json::<Email<'_>>(200, "The whole message."),
            get_email,
        )
        .delete(
            "/v1/email/{id}",
            of_email("deleteEmail", "Delete a message").empty(204, "The message is deleted."),
            delete_email,
        )
        .get(
            "/v1/email/{id}/codes",
            of_email("getEmailCodes", "Show the one-time codes and action links of a message")
                .json::<Extraction>(200, "What was found; often nothing."),
            get_codes,
        )
        .get(
            "/v1/email/{id}/raw",
            of_email("getRawEmail", "Download a message as it was received").binary(
                200,
                "message/rfc822",
                "The original, with trace fields.",
            ),
            get_raw,
        )
        .get(
            "/v1/email/{id}/attachments/{index}",
            of_email("getEmailAttachment", "Download an attachment").parameter(attachment_index()).binary(
                200,
                "*/*",
                "The attachment, decoded.",
            ),
            get_attachment,
        )
}

async fn get_email(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: MailCaller,
    PathId(id): PathId,
) -> Result<Response, V1Error> {
    let message = find(&state, caller, id, INITIAL_CHUNK).await?;
    Ok(state.messages.full_message(message, client, Surface::V1).await?)
}

async fn get_codes(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: MailCaller,
    PathId(id): PathId,
) -> Result<Json<Extraction>, V1Error> {
    let message = find(&state, caller, id, INITIAL_CHUNK).await?;
    Ok(state.messages.extraction(message, client).await?)
}

async fn get_raw(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: MailCaller,
    PathId(id): PathId,
) -> Result<Response, V1Error> {
    let message = find(&state, caller, id, INITIAL_CHUNK).await?;
    Ok(state.messages.raw_message(message, client).await?)
}

async fn get_attachment(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: MailCaller,
    AttachmentPath { message: id, index }: AttachmentPath,
) -> Result<Response, V1Error> {
    let message = find(&state, caller, id, INITIAL_CHUNK).await?;
    Ok(state.messages.attachment(message, client, &index).await?)
}

/// Deletes the message for every reader.
async fn delete_email(
    State(state): State<AppState>,
    caller: MailCaller,
    PathId(id): PathId,
) -> Result<StatusCode, V1Error> {
    let StoredMessage { row, .. } = find(&state, caller, id, 0).await?;
    if state.begin_deletion().delete_message(&row).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        // Another request deleted it first.
        Err(MissingMessage::of(row.id, state.clock.now()).into())
    }
}

/// The message with this id, if the caller may read it, with up to `raw_len` bytes of its raw data. The
/// error depends on the id's own time only: it is the same for a message of another owner, a deleted one,
/// an expired one and an unknown id.
async fn find(
    state: &AppState,
    caller: MailCaller,
    id: Uuid,
    raw_len: i32,
) -> Result<StoredMessage, ApiError> {
    let now = state.clock.now();
    let (tenant, address) = caller.message_scope();
    let found = state.store.find_readable_message(tenant, address, id, &state.reserved, now, raw_len).await?;
    found.ok_or_else(|| MissingMessage::of(id, now).into())
}
