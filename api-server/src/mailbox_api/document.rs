//! `POST /api/messages/{id}/document` and `GET /document/{id}`: the HTML of a message for a frame. The frame can't send
//! the JWT, so its address is all that it needs.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use tempmail_model::document::DocumentReader;

use super::message::find;
use crate::auth::{MailboxCaller, VerifiedMailboxToken};
use crate::http::client::{Client, PublicCaller};
use crate::http::error::ApiError;
use crate::http::json_body::JsonObject;
use crate::http::parameter::PathId;
use crate::message::INITIAL_CHUNK;
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::document::{self, CreatedDocument, as_unknown, create_operation, open_operation};
use crate::state::AppState;

/// The routes of the documents of a mailbox.
pub(super) fn routes() -> Routes<AppState> {
    Routes::new()
        .post(
            "/api/messages/{id}/document",
            create_operation(Operation::new(
                "createDocument",
                Credential::Mailbox,
                "Show the HTML of a message",
            )),
            create_document,
        )
        .get(
            "/document/{id}",
            open_operation(Operation::new("openDocument", Credential::None, "Open a document of a mailbox")),
            open_document,
        )
}

async fn create_document(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: MailboxCaller,
    PathId(id): PathId,
    mut body: JsonObject,
) -> Result<(StatusCode, Json<CreatedDocument>), ApiError> {
    let remote = body.flag("remote")?;
    let message = find(&state, &caller, id, INITIAL_CHUNK).await?;
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
    let message = find(&state, &caller, ticket.message, INITIAL_CHUNK).await.map_err(as_unknown)?;
    document::answer(&state, (address, ticket), message, client).await
}
