//! Messages of a caller: shown, deleted and downloaded by id, and listed. Each surface gives its paths, operation ids and
//! caller; the handlers are the same.

use std::future::Future;

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use jiff::Timestamp;
use tempmail_store::{MessageRow, StoreError, StoredMessage};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::http::client::Client;
use crate::http::error::{ApiError, MissingMessage, Surface, code};
use crate::http::parameter::{AttachmentPath, PathId};
use crate::message::{Extraction, INITIAL_CHUNK, MessageList};
use crate::openapi::{Operation, Routes, attachment_index, email_id};
use crate::state::AppState;

/// A caller that names messages by id.
pub(crate) trait MessageReader: FromRequestParts<AppState> + Send + Sync + 'static {
    /// The form of errors on the caller's surface.
    type Error: From<ApiError> + IntoResponse + Send;

    /// The full message, as the surface shows it.
    type Shown: ToSchema;

    /// What [`Self::Shown`] is written for.
    const SURFACE: Surface;

    /// An unexpired message whose contents the caller may read, with up to `raw_len` bytes of its raw data.
    fn find(
        &self,
        state: &AppState,
        id: Uuid,
        now: Timestamp,
        raw_len: i32,
    ) -> impl Future<Output = Result<Option<StoredMessage>, StoreError>> + Send;

    /// An unexpired message that the caller may delete.
    fn find_deletable(
        &self,
        state: &AppState,
        id: Uuid,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<MessageRow>, StoreError>> + Send {
        async move { Ok(self.find(state, id, now, 0).await?.map(|message| message.row)) }
    }
}

/// The paths of a surface's routes of one message, and what is its own in their descriptions.
pub(crate) struct MessageRoutes {
    /// The path of a message, with `{id}`.
    pub(crate) item: &'static str,
    /// The path of its raw data.
    pub(crate) raw: &'static str,
    /// The path of an attachment, with `{index}`.
    pub(crate) attachment: &'static str,
    pub(crate) show: Operation,
    pub(crate) delete: Operation,
    pub(crate) download: Operation,
    pub(crate) download_attachment: Operation,
}

/// The routes of one message of a surface, whose caller is `C`.
pub(crate) fn routes<C: MessageReader>(surface: MessageRoutes) -> Routes<AppState> {
    let MessageRoutes { item, raw, attachment, show, delete, download, download_attachment } = surface;
    Routes::new()
        .get(item, of_message(show).json::<C::Shown>(200, "The whole message."), get_message::<C>)
        .delete(item, of_message(delete).empty(204, "The message is deleted."), delete_message::<C>)
        .get(
            raw,
            of_message(download).binary(200, "message/rfc822", "The original, with trace fields."),
            get_raw::<C>,
        )
        .get(
            attachment,
            of_message(download_attachment).parameter(attachment_index()).binary(
                200,
                "*/*",
                "The attachment, decoded.",
            ),
            get_attachment::<C>,
        )
}

/// The route of the codes and links of a message.
pub(crate) fn codes_route<C: MessageReader>(path: &'static str, show: Operation) -> Routes<AppState> {
    let show = of_message(show).json::<Extraction>(200, "What was found; often nothing.");
    Routes::new().get(path, show, get_codes::<C>)
}

/// Describes an operation on a message that the path names.
pub(crate) fn of_message(operation: Operation) -> Operation {
    operation.parameter(email_id()).fails(&[code::INVALID_REQUEST, code::NOT_FOUND, code::EMAIL_EXPIRED])
}

/// The message with this id, if the caller may read it, with the beginning of its raw data. The error depends on the id's
/// own time only: it is the same for a message of another owner, a deleted one, an expired one and an unknown id.
///
/// # Errors
/// [`ApiError::NotFound`], [`ApiError::EmailExpired`]; the store failed.
pub(crate) async fn find<C: MessageReader>(
    state: &AppState,
    caller: &C,
    id: Uuid,
) -> Result<StoredMessage, ApiError> {
    let now = state.clock.now();
    let found = caller.find(state, id, now, INITIAL_CHUNK).await?;
    found.ok_or_else(|| MissingMessage::of(id, now).into())
}

async fn get_message<C: MessageReader>(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: C,
    PathId(id): PathId,
) -> Result<Response, C::Error> {
    let message = find(&state, &caller, id).await?;
    Ok(state.messages.full_message(message, client, C::SURFACE).await?)
}

/// Deletes the message for every reader.
async fn delete_message<C: MessageReader>(
    State(state): State<AppState>,
    caller: C,
    PathId(id): PathId,
) -> Result<StatusCode, C::Error> {
    Ok(delete(&state, &caller, id).await.map(|()| StatusCode::NO_CONTENT)?)
}

async fn delete<C: MessageReader>(state: &AppState, caller: &C, id: Uuid) -> Result<(), ApiError> {
    let now = state.clock.now();
    let missing = || MissingMessage::of(id, now).into();
    let row = caller.find_deletable(state, id, now).await?.ok_or_else(missing)?;
    // Another request may have deleted it first.
    if state.begin_deletion().delete_message(&row).await? { Ok(()) } else { Err(missing()) }
}

async fn get_codes<C: MessageReader>(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: C,
    PathId(id): PathId,
) -> Result<Json<Extraction>, C::Error> {
    let message = find(&state, &caller, id).await?;
    Ok(state.messages.extraction(message, client).await?)
}

async fn get_raw<C: MessageReader>(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: C,
    PathId(id): PathId,
) -> Result<Response, C::Error> {
    let message = find(&state, &caller, id).await?;
    Ok(state.messages.raw_message(message, client).await?)
}

async fn get_attachment<C: MessageReader>(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: C,
    AttachmentPath { message: id, index }: AttachmentPath,
) -> Result<Response, C::Error> {
    let message = find(&state, &caller, id).await?;
    Ok(state.messages.attachment(message, client, &index).await?)
}

/// A page (from 1) of a mailbox's messages, newest first: of those before a message of it, or of all. However far back
/// that message is, the page costs the same; later pages cost more, and those of an owner, its tenant or a mailbox of none,
/// are read one at a time.
///
/// # Errors
/// [`ApiError::NotFound`] or [`ApiError::EmailExpired`] where the mailbox has no such message; [`ApiError::Busy`]
/// where too many pages of the owner wait; the store failed.
pub(crate) async fn list_of_mailbox(
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
    Ok(Json(MessageList::new(&rows, page)))
}

/// Deletes every message that a tenant owns now, inbox by inbox.
///
/// # Errors
/// [`ApiError::Busy`] where it takes too long: some are left. The store failed.
pub(crate) async fn delete_all_owned(state: &AppState, tenant: Uuid) -> Result<(), ApiError> {
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
