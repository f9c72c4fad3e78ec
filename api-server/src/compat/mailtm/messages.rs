//! `/messages` and `/sources`: of the mailbox whose JWT was presented.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tempmail_model::limits::PAGES_MAX;
use tempmail_store::{Mailbox, MessageRow, StoredMessage};
use uuid::Uuid;

use super::message::{attachment_index, summary, write_message, write_source};
use super::representation::Representation;
use super::{Error, Mailtm, SignedIn};
use crate::compat::mail::SCAN_MAX;
use crate::compat::request::{Body, Parameters, Segments};
use crate::http::client::Client;
use crate::http::error::{ApiError, MissingMessage};
use crate::message::{Digest, INITIAL_CHUNK, PieceWriter, Rendering};
use crate::state::AppState;

/// A page of the mailbox' messages, newest first: 30 of them.
pub(super) async fn list(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    SignedIn(mailbox): SignedIn,
    form: Representation,
    parameters: Parameters<Mailtm>,
) -> Result<Response, Error> {
    let most = usize::try_from(PAGES_MAX).unwrap_or(usize::MAX);
    let page = parameters.number("page", most)?.unwrap_or(1);
    let page = i64::try_from(page).unwrap_or(PAGES_MAX);
    if page == 0 {
        return Err(ApiError::InvalidRequest("`page` must be a whole number from 1.".into()).into());
    }
    let now = state.clock.now();
    let counted = i64::try_from(SCAN_MAX).unwrap_or(i64::MAX);
    let (total, rows) = {
        let _turn = state.long_reads.turn(mailbox.tenant.unwrap_or(mailbox.id)).await?;
        let total = state.store.count_mailbox_messages(mailbox.id, counted, now).await?;
        (total, state.store.list_mailbox_messages(mailbox.id, i64::MAX, page, now).await?)
    };
    let mut members = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some(digest) = digest(&state, client, &mailbox, row.id).await? {
            members.push(summary(&row, &digest, mailbox.id));
        }
    }
    Ok(form.collection("Message", "/messages", members, usize::try_from(total).unwrap_or(0), page))
}

/// The whole message.
pub(super) async fn get_message(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    SignedIn(mailbox): SignedIn,
    form: Representation,
    Segments(id, _): Segments<Mailtm, String>,
) -> Result<Response, Error> {
    let message = find(&state, &mailbox, &id).await?;
    let write =
        move |raw: &[u8], row: &MessageRow, json: &mut PieceWriter| write_message(raw, row, form, json);
    let pieces = state.messages.pieces(message, client, Rendering::Texts, write).await?;
    Ok(pieces.into_response(form.content_type()))
}

/// Marks a message as seen or not.
pub(super) async fn mark(
    State(state): State<AppState>,
    SignedIn(mailbox): SignedIn,
    form: Representation,
    Segments(id, _): Segments<Mailtm, String>,
    Body(mut body, _): Body<Mailtm>,
) -> Result<Response, Error> {
    let message = find(&state, &mailbox, &id).await?;
    let seen = match body.take("seen") {
        Some(Value::Bool(seen)) => seen,
        _ => return Err(ApiError::InvalidRequest("`seen` must be true or false.".into()).into()),
    };
    state.store.mark_messages(&[message.row], seen).await?;
    Ok(form.object("Message", json!({"seen": seen})))
}

/// Deletes a message.
pub(super) async fn delete_message(
    State(state): State<AppState>,
    SignedIn(mailbox): SignedIn,
    Segments(id, _): Segments<Mailtm, String>,
) -> Result<StatusCode, Error> {
    let message = find(&state, &mailbox, &id).await?;
    if state.deletions.begin().delete_message(&message.row).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        // Another request deleted it first.
        Err(ApiError::NotFound.into())
    }
}

/// The message as it was received.
pub(super) async fn download(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    SignedIn(mailbox): SignedIn,
    Segments(id, _): Segments<Mailtm, String>,
) -> Result<Response, Error> {
    let message = find(&state, &mailbox, &id).await?;
    Ok(state.messages.raw_message(message, client).await?)
}

/// An attachment, decoded.
pub(super) async fn download_attachment(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    SignedIn(mailbox): SignedIn,
    Segments((id, attachment), _): Segments<Mailtm, (String, String)>,
) -> Result<Response, Error> {
    let index = attachment_index(&attachment).ok_or(ApiError::NotFound)?;
    let message = find(&state, &mailbox, &id).await?;
    Ok(state.messages.attachment(message, client, &index.to_string()).await?.into_response())
}

/// The message as it was received, as a text in JSON.
pub(super) async fn get_source(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    SignedIn(mailbox): SignedIn,
    form: Representation,
    Segments(id, _): Segments<Mailtm, String>,
) -> Result<Response, Error> {
    let message = find(&state, &mailbox, &id).await?;
    let write =
        move |raw: &[u8], row: &MessageRow, json: &mut PieceWriter| write_source(raw, row, form, json);
    let pieces = state.messages.pieces(message, client, Rendering::Texts, write).await?;
    Ok(pieces.into_response(form.content_type()))
}

/// The message of the mailbox with this id, with the beginning of its raw data. What is not an id is answered like an
/// unknown one.
async fn find(state: &AppState, mailbox: &Mailbox, id: &str) -> Result<StoredMessage, ApiError> {
    let id = Uuid::try_parse(id).unwrap_or_default();
    let now = state.clock.now();
    let found = state.store.find_mailbox_message(mailbox.id, id, now, INITIAL_CHUNK).await?;
    found.ok_or_else(|| MissingMessage::of(id, now).into())
}

/// The digest of a message; `None` where it was deleted meanwhile.
async fn digest(
    state: &AppState,
    client: Client,
    mailbox: &Mailbox,
    id: Uuid,
) -> Result<Option<Arc<Digest>>, ApiError> {
    if let Some(known) = state.messages.known_digest(id) {
        return Ok(Some(known));
    }
    let found = state.store.find_mailbox_message(mailbox.id, id, state.clock.now(), INITIAL_CHUNK).await?;
    let Some(message) = found else { return Ok(None) };
    match state.messages.digest(message, client).await {
        Ok(digest) => Ok(Some(digest)),
        Err(ApiError::NotFound | ApiError::EmailExpired) => Ok(None),
        Err(error) => Err(error),
    }
}
