//! `/api/messages`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use tempmail_store::StoredMessage;
use uuid::Uuid;

use crate::auth::MailboxCaller;
use crate::http::client::Client;
use crate::http::error::{ApiError, MissingMessage, Surface, code};
use crate::http::parameter::{AttachmentPath, BeforeMessage, PageNumber, PathId};
use crate::message::{Extraction, FullMessage, INITIAL_CHUNK, MessageList};
use crate::openapi::{Credential, Operation, Routes, attachment_index, email_id};
use crate::resources::mailbox;
use crate::state::AppState;

/// The routes of `/api/messages`.
pub(super) fn routes() -> Routes<AppState> {
    let of_message = |id, summary| {
        Operation::new(id, Credential::Mailbox, summary).parameter(email_id()).fails(&[
            code::INVALID_REQUEST,
            code::NOT_FOUND,
            code::EMAIL_EXPIRED,
        ])
    };
    Routes::new()
        .get(
            "/api/messages",
            Operation::new("listMessages", Credential::Mailbox, "List the mailbox's messages")
                .page()
                .before()
                .json::<MessageList>(200, "A page, newest first."),
            list_messages,
        )
        .get(
            "/api/messages/{id}",
            of_message("getMessage", "Show a message").json::<FullMessage<'_>>(200, "The whole message."),
            get_message,
        )
        .delete(
            "/api/messages/{id}",
            of_message("deleteMessage", "Delete a message").empty(204, "The message is deleted."),
            delete_message,
        )
        .put(
            "/api/messages/{id}/read",
            of_message("markMessageRead", "Mark a message as read")
                .empty(204, "The message is marked as read."),
            mark_read,
        )
        .get(
            "/api/messages/{id}/codes",
            of_message("getMessageCodes", "Show the one-time codes and action links of a message")
                .json::<Extraction>(200, "What was found; often nothing."),
            get_codes,
        )
        .get(
            "/api/messages/{id}/raw",
            of_message("getRawMessage", "Download a message as it was received").binary(
                200,
                "message/rfc822",
                "The original, with trace fields.",
            ),
            get_raw,
        )
        .get(
            "/api/messages/{id}/attachments/{index}",
            of_message("getMessageAttachment", "Download an attachment")
                .parameter(attachment_index())
                .binary(200, "*/*", "The attachment, decoded."),
            get_attachment,
        )
}

async fn list_messages(
    State(state): State<AppState>,
    MailboxCaller { mailbox, .. }: MailboxCaller,
    BeforeMessage(before): BeforeMessage,
    PageNumber(page): PageNumber,
) -> Result<Json<MessageList>, ApiError> {
    let owner = mailbox.tenant.unwrap_or(mailbox.id);
    mailbox::list_messages(&state, owner, mailbox.id, before, page).await
}

async fn get_message(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: MailboxCaller,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    let message = find(&state, &caller, id, INITIAL_CHUNK).await?;
    state.messages.full_message(message, client, Surface::Api).await
}

async fn delete_message(
    State(state): State<AppState>,
    caller: MailboxCaller,
    PathId(id): PathId,
) -> Result<StatusCode, ApiError> {
    let StoredMessage { row, .. } = find(&state, &caller, id, 0).await?;
    if state.begin_deletion().delete_message(&row).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        // Another request deleted it first.
        Err(MissingMessage::of(row.id, state.clock.now()).into())
    }
}

async fn mark_read(
    State(state): State<AppState>,
    MailboxCaller { mailbox, .. }: MailboxCaller,
    PathId(id): PathId,
) -> Result<StatusCode, ApiError> {
    let now = state.clock.now();
    if state.store.mark_message_read(mailbox.id, id, now).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(MissingMessage::of(id, now).into())
    }
}

async fn get_codes(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: MailboxCaller,
    PathId(id): PathId,
) -> Result<Json<Extraction>, ApiError> {
    let message = find(&state, &caller, id, INITIAL_CHUNK).await?;
    state.messages.extraction(message, client).await
}

async fn get_raw(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: MailboxCaller,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    let message = find(&state, &caller, id, INITIAL_CHUNK).await?;
    state.messages.raw_message(message, client).await
}

async fn get_attachment(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: MailboxCaller,
    AttachmentPath { message: id, index }: AttachmentPath,
) -> Result<Response, ApiError> {
    let message = find(&state, &caller, id, INITIAL_CHUNK).await?;
    state.messages.attachment(message, client, &index).await
}

/// The message of the mailbox with this id, with up to `raw_len` bytes of its raw data.
pub(super) async fn find(
    state: &AppState,
    caller: &MailboxCaller,
    id: Uuid,
    raw_len: i32,
) -> Result<StoredMessage, ApiError> {
    let now = state.clock.now();
    let found = state.store.find_mailbox_message(caller.mailbox.id, id, now, raw_len).await?;
    found.ok_or_else(|| MissingMessage::of(id, now).into())
}
