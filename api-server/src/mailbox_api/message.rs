//! `/api/messages`, and `GET /document/{id}`: the HTML of a message for a frame. The frame can't send the JWT, so its
//! address is all that it needs.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use jiff::Timestamp;
use tempmail_model::document::DocumentReader;
use tempmail_store::{StoreError, StoredMessage};
use uuid::Uuid;

use crate::auth::{MailboxCaller, VerifiedMailboxToken};
use crate::http::client::{Client, PublicCaller};
use crate::http::error::{ApiError, MissingMessage, Surface};
use crate::http::json_body::JsonObject;
use crate::http::parameter::{BeforeMessage, PageNumber, PathId};
use crate::message::{FullMessage, MessageList};
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::document::{self, CreatedDocument, as_unknown, create_operation, open_operation};
use crate::resources::message::{self, MessageReader, MessageRoutes, codes_route, find, of_message};
use crate::state::AppState;

impl MessageReader for MailboxCaller {
    type Error = ApiError;
    type Shown = FullMessage<'static>;

    const SURFACE: Surface = Surface::Api;

    async fn find(
        &self,
        state: &AppState,
        id: Uuid,
        now: Timestamp,
        raw_len: i32,
    ) -> Result<Option<StoredMessage>, StoreError> {
        state.store.find_mailbox_message(self.mailbox.id, id, now, raw_len).await
    }
}

/// The routes of the messages of a mailbox, and of their documents.
pub(super) fn routes() -> Routes<AppState> {
    let operation = |id, summary| Operation::new(id, Credential::Mailbox, summary);
    message::routes::<MailboxCaller>(MessageRoutes {
        item: "/api/messages/{id}",
        raw: "/api/messages/{id}/raw",
        attachment: "/api/messages/{id}/attachments/{index}",
        show: operation("getMessage", "Show a message"),
        delete: operation("deleteMessage", "Delete a message"),
        download: operation("getRawMessage", "Download a message as it was received"),
        download_attachment: operation("getMessageAttachment", "Download an attachment"),
    })
    .merge(codes_route::<MailboxCaller>(
        "/api/messages/{id}/codes",
        operation("getMessageCodes", "Show the one-time codes and action links of a message"),
    ))
    .get(
        "/api/messages",
        operation("listMessages", "List the mailbox's messages")
            .page()
            .before()
            .json::<MessageList>(200, "A page, newest first."),
        list_messages,
    )
    .put(
        "/api/messages/{id}/read",
        of_message(operation("markMessageRead", "Mark a message as read"))
            .empty(204, "The message is marked as read."),
        mark_read,
    )
    .post(
        "/api/messages/{id}/document",
        create_operation(operation("createDocument", "Show the HTML of a message")),
        create_document,
    )
    .get(
        "/document/{id}",
        open_operation(Operation::new("openDocument", Credential::None, "Open a document of a mailbox")),
        open_document,
    )
}

async fn list_messages(
    State(state): State<AppState>,
    MailboxCaller { mailbox, .. }: MailboxCaller,
    BeforeMessage(before): BeforeMessage,
    PageNumber(page): PageNumber,
) -> Result<Json<MessageList>, ApiError> {
    let owner = mailbox.tenant.unwrap_or(mailbox.id);
    message::list_of_mailbox(&state, owner, mailbox.id, before, page).await
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

async fn create_document(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: MailboxCaller,
    PathId(id): PathId,
    mut body: JsonObject,
) -> Result<(StatusCode, Json<CreatedDocument>), ApiError> {
    let remote = body.flag("remote")?;
    let message = find(&state, &caller, id).await?;
    let MailboxCaller { mailbox, expires_at } = caller;
    let reader = DocumentReader::Mailbox { mailbox: mailbox.id, epoch: mailbox.password_epoch };
    document::create(&state, "/document", message, client, (reader, Some(expires_at)), remote).await
}

async fn open_document(
    State(state): State<AppState>,
    PublicCaller { client }: PublicCaller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let (address, ticket) = document::open(&state, path)?;
    let DocumentReader::Mailbox { mailbox, epoch } = ticket.reader else { return Err(ApiError::NotFound) };
    let expires_at = ticket.expires_at;
    let token = VerifiedMailboxToken { mailbox, epoch, expires_at };
    let mailbox = state.auth.find_mailbox(client, token).await.map_err(as_unknown)?;
    let caller = MailboxCaller { mailbox, expires_at };
    let message = find(&state, &caller, ticket.message).await.map_err(as_unknown)?;
    document::answer(&state, (address, ticket), message, client).await
}
