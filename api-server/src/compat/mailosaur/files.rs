//! `/api/files`: raw messages and attachments.

use axum::extract::State;
use axum::response::Response;

use super::{Caller, Error, Mailosaur};
use crate::compat::mail::TenantMail;
use crate::compat::request::Segments;
use crate::http::error::ApiError;
use crate::state::AppState;

/// The message as it was received.
pub(super) async fn get_email(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailosaur, String>,
) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let message = mail.find(&id).await?;
    Ok(mail.state().messages.raw_message(message, mail.client()).await?)
}

/// An attachment, decoded. Its id is that of the message and its index.
pub(super) async fn get_attachment(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailosaur, String>,
) -> Result<Response, Error> {
    let (message, index) = id.rsplit_once('-').ok_or(ApiError::NotFound)?;
    let mail = TenantMail::of(state, &caller);
    let message = mail.find(message).await?;
    match mail.state().messages.attachment(message, mail.client(), index).await {
        Err(ApiError::InvalidRequest(_)) => Err(ApiError::NotFound.into()),
        found => Ok(found?),
    }
}
