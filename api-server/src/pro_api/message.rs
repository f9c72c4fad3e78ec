//! `/pro/api/messages`: everything that a tenant owns, newest first, and as it arrives. Contents are shown of its
//! mailboxes' messages only; those of an address without a mailbox are read over `/v1`.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::{Extension, Json};
use tempmail_store::StoredMessage;
use uuid::Uuid;

use crate::auth::ProCaller;
use crate::http::client::Client;
use crate::http::connection::EndsWithInput;
use crate::http::error::{ApiError, MissingMessage, Surface, code};
use crate::http::parameter::{AttachmentPath, BeforeMessage, PageNumber, PathId};
use crate::message::{FullMessage, INITIAL_CHUNK, OwnedMessageList};
use crate::openapi::{Credential, Operation, Routes, attachment_index, email_id};
use crate::realtime::sse::{self, StreamQuery};
use crate::realtime::subscription::Scope;
use crate::resources::owned_mail;
use crate::state::AppState;

/// The routes of `/pro/api/messages`.
pub(super) fn routes() -> Routes<AppState> {
    let of_message = |id, summary| {
        Operation::new(id, Credential::Pro, summary).parameter(email_id()).fails(&[
            code::INVALID_REQUEST,
            code::NOT_FOUND,
            code::EMAIL_EXPIRED,
        ])
    };
    Routes::new()
        .get(
            "/pro/api/messages",
            Operation::new(
                "listOwnedMessages",
                Credential::Pro,
                "List the messages of everything the tenant owns",
            )
            .description("Of its mailboxes, and of every address under its verified custom domains.")
            .page()
            .before()
            .json::<OwnedMessageList>(200, "A page, newest first."),
            list_messages,
        )
        .delete(
            "/pro/api/messages",
            Operation::new(
                "deleteOwnedMessages",
                Credential::Pro,
                "Delete the messages of everything the tenant owns",
            )
            .description("Inbox by inbox; after 503 `unavailable` some are left: send the request again.")
            .empty(204, "Every message that was there is deleted."),
            delete_messages,
        )
        .get(
            "/pro/api/messages/events",
            sse::described(Operation::new(
                "streamOwnedMessages",
                Credential::Pro,
                "Stream the mail to everything the tenant owns",
            )),
            stream_messages,
        )
        .get(
            "/pro/api/messages/{id}",
            of_message("getOwnedMessage", "Show a message of a mailbox of the tenant")
                .json::<FullMessage<'_>>(200, "The whole message."),
            get_message,
        )
        .delete(
            "/pro/api/messages/{id}",
            of_message("deleteOwnedMessage", "Delete a message that the tenant owns")
                .empty(204, "The message is deleted."),
            delete_message,
        )
        .get(
            "/pro/api/messages/{id}/source",
            of_message(
                "getOwnedMessageSource",
                "Download a message of a mailbox of the tenant as it was received",
            )
            .binary(200, "message/rfc822", "The original, with trace fields."),
            get_source,
        )
        .get(
            "/pro/api/messages/{id}/attachments/{index}",
            of_message(
                "getOwnedMessageAttachment",
                "Download an attachment of a message of a mailbox of the tenant",
            )
            .parameter(attachment_index())
            .binary(200, "*/*", "The attachment, decoded."),
            get_attachment,
        )
}

async fn list_messages(
    State(state): State<AppState>,
    caller: ProCaller,
    BeforeMessage(before): BeforeMessage,
    PageNumber(page): PageNumber,
) -> Result<Json<OwnedMessageList>, ApiError> {
    let now = state.clock.now();
    let position = match before {
        None => i64::MAX,
        Some(id) => {
            let found = state.store.find_owned_message(caller.tenant, id, now).await?;
            found.ok_or_else(|| MissingMessage::of(id, now))?.seq
        }
    };
    let _turn = state.gates.long_reads.turn_for_page(caller.tenant, page).await?;
    let rows = state.store.list_tenant_messages(caller.tenant, position, page, now).await?;
    Ok(Json(OwnedMessageList::new(rows, page)))
}

async fn delete_messages(State(state): State<AppState>, caller: ProCaller) -> Result<StatusCode, ApiError> {
    owned_mail::clear(&state, caller.tenant).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn stream_messages(
    State(state): State<AppState>,
    _: EndsWithInput,
    caller: ProCaller,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let since = StreamQuery::parse(&uri)?.start(&state, caller.tenant, &headers)?;
    sse::open(&state, caller.into(), Scope::Owned, since).await
}

async fn get_message(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: ProCaller,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    let message = find(&state, caller, id).await?;
    state.messages.full_message(message, client, Surface::Api).await
}

async fn delete_message(
    State(state): State<AppState>,
    caller: ProCaller,
    PathId(id): PathId,
) -> Result<StatusCode, ApiError> {
    let now = state.clock.now();
    let missing = || MissingMessage::of(id, now);
    let row = state.store.find_owned_message(caller.tenant, id, now).await?.ok_or_else(missing)?;
    if state.begin_deletion().delete_message(&row).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        // Another request deleted it first.
        Err(missing().into())
    }
}

async fn get_source(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: ProCaller,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    let message = find(&state, caller, id).await?;
    state.messages.raw_message(message, client).await
}

async fn get_attachment(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: ProCaller,
    AttachmentPath { message: id, index }: AttachmentPath,
) -> Result<Response, ApiError> {
    let message = find(&state, caller, id).await?;
    state.messages.attachment(message, client, &index).await
}

/// The message with this id, if a mailbox of the tenant has it, with the beginning of its raw data.
pub(super) async fn find(state: &AppState, caller: ProCaller, id: Uuid) -> Result<StoredMessage, ApiError> {
    let now = state.clock.now();
    let found = state.store.find_tenant_mailbox_message(caller.tenant, id, now, INITIAL_CHUNK).await?;
    found.ok_or_else(|| MissingMessage::of(id, now).into())
}
