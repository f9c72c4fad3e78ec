//! `POST /pro/api/messages/{id}/document` and `GET /pro/api/document/{id}`: the HTML of a message for a frame, which
//! sends the cookie of its page.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use tempmail_model::document::DocumentReader;

use super::message::find;
use crate::auth::ProCaller;
use crate::http::client::Client;
use crate::http::error::ApiError;
use crate::http::json_body::JsonObject;
use crate::http::parameter::PathId;
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::document::{self, CreatedDocument, as_unknown, create_operation, open_operation};
use crate::state::AppState;

/// The routes of the documents of a tenant.
pub(super) fn routes() -> Routes<AppState> {
    Routes::new()
        .post(
            "/pro/api/messages/{id}/document",
            create_operation(Operation::new(
                "createOwnedDocument",
                Credential::Pro,
                "Show the HTML of a message of a mailbox of the tenant",
            )),
            create_document,
        )
        .get(
            "/pro/api/document/{id}",
            open_operation(Operation::new(
                "openOwnedDocument",
                Credential::Pro,
                "Open a document with the session or token that it was made with",
            )),
            open_document,
        )
}

async fn create_document(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    caller: ProCaller,
    PathId(id): PathId,
    mut body: JsonObject,
) -> Result<(StatusCode, Json<CreatedDocument>), ApiError> {
    let remote = body.flag("remote")?;
    let message = find(&state, caller, id).await?;
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
    let message = find(&state, caller, ticket.message).await.map_err(as_unknown)?;
    document::answer(&state, (address, ticket), message, client).await
}
