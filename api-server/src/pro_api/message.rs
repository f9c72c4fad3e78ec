//! `/pro/api/messages`: everything that a tenant owns, newest first, and as it arrives; `/pro/api/document/{id}`: the HTML
//! of a message for a frame, which sends the cookie of its page. Contents are shown of its mailboxes' messages only; those
//! of an address without a mailbox are read over `/v1`.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::{Extension, Json};
use jiff::Timestamp;
use tempmail_model::document::DocumentReader;
use tempmail_store::{MessageRow, StoreError, StoredMessage};
use uuid::Uuid;

use crate::auth::ProCaller;
use crate::http::client::Client;
use crate::http::connection::EndsWithInput;
use crate::http::error::{ApiError, MissingMessage, Surface};
use crate::http::json_body::JsonObject;
use crate::http::parameter::{BeforeMessage, PageNumber, PathId};
use crate::message::{FullMessage, OwnedMessageList};
use crate::openapi::{Credential, Operation, Routes};
use crate::realtime::scope::Scope;
use crate::realtime::sse::{self, StreamQuery};
use crate::resources::document::{self, CreatedDocument, as_unknown, create_operation, open_operation};
use crate::resources::message::{self, MessageReader, MessageRoutes, find};
use crate::state::AppState;

impl MessageReader for ProCaller {
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
        state.store.find_tenant_mailbox_message(self.tenant, id, now, raw_len).await
    }

    /// What the tenant owns without reading it here can be deleted, too.
    async fn find_deletable(
        &self,
        state: &AppState,
        id: Uuid,
        now: Timestamp,
    ) -> Result<Option<MessageRow>, StoreError> {
        state.store.find_owned_message(self.tenant, id, now).await
    }
}

/// The routes of what a tenant owns, and of its documents.
pub(super) fn routes() -> Routes<AppState> {
    let operation = |id, summary| Operation::new(id, Credential::Pro, summary);
    message::routes::<ProCaller>(MessageRoutes {
        item: "/pro/api/messages/{id}",
        raw: "/pro/api/messages/{id}/source",
        attachment: "/pro/api/messages/{id}/attachments/{index}",
        show: operation("getOwnedMessage", "Show a message of a mailbox of the tenant"),
        delete: operation("deleteOwnedMessage", "Delete a message that the tenant owns"),
        download: operation(
            "getOwnedMessageSource",
            "Download a message of a mailbox of the tenant as it was received",
        ),
        download_attachment: operation(
            "getOwnedMessageAttachment",
            "Download an attachment of a message of a mailbox of the tenant",
        ),
    })
    .get(
        "/pro/api/messages",
        operation("listOwnedMessages", "List the messages of everything the tenant owns")
            .description("Of its mailboxes, and of every address under its verified custom domains.")
            .page()
            .before()
            .json::<OwnedMessageList>(200, "A page, newest first."),
        list_messages,
    )
    .delete(
        "/pro/api/messages",
        operation("deleteOwnedMessages", "Delete the messages of everything the tenant owns")
            .description("Inbox by inbox; after 503 `unavailable` some are left: send the request again.")
            .empty(204, "Every message that was there is deleted."),
        delete_messages,
    )
    .get(
        "/pro/api/messages/events",
        sse::described(operation("streamOwnedMessages", "Stream the mail to everything the tenant owns")),
        stream_messages,
    )
    .post(
        "/pro/api/messages/{id}/document",
        create_operation(operation(
            "createOwnedDocument",
            "Show the HTML of a message of a mailbox of the tenant",
        )),
        create_document,
    )
    .get(
        "/pro/api/document/{id}",
        open_operation(operation(
            "openOwnedDocument",
            "Open a document with the session or token that it was made with",
        )),
        open_document,
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
    Ok(Json(OwnedMessageList::new(&rows, page)))
}

async fn delete_messages(State(state): State<AppState>, caller: ProCaller) -> Result<StatusCode, ApiError> {
    message::delete_all_owned(&state, caller.tenant).await?;
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

async fn create_document(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: ProCaller,
    PathId(id): PathId,
    mut body: JsonObject,
) -> Result<(StatusCode, Json<CreatedDocument>), ApiError> {
    let remote = body.flag("remote")?;
    let message = find(&state, &caller, id).await?;
    let session = caller.session.map(|session| session.id);
    let reader = DocumentReader::Token { token: caller.token, session };
    document::create(&state, "/pro/api/document", message, client, (reader, caller.expires_at), remote).await
}

async fn open_document(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: ProCaller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let (address, ticket) = document::open(&state, path)?;
    let DocumentReader::Token { token, session } = ticket.reader else { return Err(ApiError::NotFound) };
    // What a session made is for that session alone.
    let is_of_session = session.is_none_or(|made| caller.session.is_some_and(|session| session.id == made));
    if token != caller.token || !is_of_session {
        return Err(ApiError::NotFound);
    }
    let message = find(&state, &caller, ticket.message).await.map_err(as_unknown)?;
    document::answer(&state, (address, ticket), message, client).await
}
