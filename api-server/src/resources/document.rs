//! Documents: the HTML of a message at an address of its own, for a frame of a page. The address works once, for a
//! minute, and while what it was made with is still accepted.

use axum::Json;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};
use tempmail_model::document::{DocumentReader, DocumentTicket};
use tempmail_model::timestamp::timestamp;
use tempmail_store::StoredMessage;
use utoipa::ToSchema;

use crate::http::client::Client;
use crate::http::error::{ApiError, code};
use crate::message::DocumentLink;
use crate::openapi::{Operation, email_id};
use crate::state::AppState;

/// How long an address works.
const LIFETIME: SignedDuration = SignedDuration::from_secs(60);

/// An address of a document, and what the document leaves to its reader.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CreatedDocument {
    /// Path of the document. It works once.
    url: String,
    /// When the path stops working.
    expires_at: String,
    /// Hosts of remote images, whether they are loaded or not.
    remote_hosts: Vec<String>,
    /// In the order of the message, 500 at most.
    links: Vec<DocumentLink>,
    /// Whether some of the HTML is left out: it is too large, or takes too long.
    truncated: bool,
}

/// Describes the operation that makes a document.
pub(crate) fn create_operation(operation: Operation) -> Operation {
    operation
        .description(
            "The HTML of the message, sanitized, at a path for a frame: without scripts, forms and anything that is loaded by \
             itself. Images of the message are shown, remote ones if `remote` says so.",
        )
        .parameter(email_id())
        .body(body_schema())
        .json::<CreatedDocument>(201, "The path, which works once, for 60 s.")
        .fails(&[code::NOT_FOUND, code::EMAIL_EXPIRED, code::NO_HTML])
}

/// Describes the operation that shows a document.
pub(crate) fn open_operation(operation: Operation) -> Operation {
    operation
        .description("An address that was used, has expired, or whose session has ended is 404.")
        .parameter(address())
        .binary(200, "text/html", "The document, with a Content-Security-Policy that lets nothing run.")
        .fails(&[code::INVALID_REQUEST, code::NOT_FOUND])
}

/// The path parameter `id`, which is no UUID.
fn address() -> Value {
    json!({"name": "id", "in": "path", "required": true, "description": "The end of the path that was made.",
           "schema": {"type": "string"}})
}

fn body_schema() -> Value {
    json!({
        "type": "object",
        "required": [],
        "properties": {"remote": {
            "type": "boolean",
            "default": false,
            "description": "Whether remote images are loaded.",
            "examples": [false],
        }},
    })
}

/// Makes a document of a message that `reader` may read, below `base`. It works until `reader_ends` at the latest.
///
/// # Errors
/// [`ApiError::NoHtml`]; as [`MessageRenderer::document`](crate::message::MessageRenderer::document).
pub(crate) async fn create(
    state: &AppState,
    base: &'static str,
    message: StoredMessage,
    client: Client,
    (reader, reader_ends): (DocumentReader, Option<Timestamp>),
    remote: bool,
) -> Result<(StatusCode, Json<CreatedDocument>), ApiError> {
    let id = message.row.id;
    let document = state.messages.document(message, client, remote).await?;
    let expires_at = state.clock.now() + LIFETIME;
    let expires_at = reader_ends.map_or(expires_at, |ends| ends.min(expires_at));
    let ticket = DocumentTicket { message: id, reader, remote, expires_at };
    let created = CreatedDocument {
        url: format!("{base}/{}", state.documents.seal(&ticket)),
        expires_at: timestamp(expires_at),
        remote_hosts: document.remote_hosts,
        links: document.links,
        truncated: document.truncated,
    };
    Ok((StatusCode::CREATED, Json(created)))
}

/// The end of a document's path, and what it says, if it has not expired. Whether it was used is seen when it is
/// answered.
///
/// # Errors
/// [`ApiError::NotFound`]; the path is not UTF-8.
pub(crate) fn open(
    state: &AppState,
    path: Result<Path<String>, PathRejection>,
) -> Result<(String, DocumentTicket), ApiError> {
    let Path(address) =
        path.map_err(|_not_utf8| ApiError::InvalidRequest("The path must be UTF-8.".into()))?;
    let ticket = state.documents.open(&address).filter(|ticket| state.clock.now() < ticket.expires_at);
    Ok((address, ticket.ok_or(ApiError::NotFound)?))
}

/// The document of an address that was opened, if it was not used before.
///
/// # Errors
/// [`ApiError::NotFound`]: it was used, or the message is gone; as
/// [`MessageRenderer::document`](crate::message::MessageRenderer::document).
pub(crate) async fn answer(
    state: &AppState,
    (address, ticket): (String, DocumentTicket),
    message: StoredMessage,
    client: Client,
) -> Result<Response, ApiError> {
    if !state.used_documents.record(&address).await {
        return Err(ApiError::NotFound);
    }
    let document = state.messages.document(message, client, ticket.remote).await.map_err(as_unknown)?;
    Ok(document.into_response())
}

/// What became of a message or its reader is not revealed to who has the address alone.
pub(crate) fn as_unknown(error: ApiError) -> ApiError {
    match error {
        ApiError::EmailExpired | ApiError::NoHtml | ApiError::InvalidToken | ApiError::AccountDisabled => {
            ApiError::NotFound
        }
        other => other,
    }
}
