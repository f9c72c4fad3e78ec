//! `/view/{id}.html` and `.txt`: the bodies of a message. `latest` is the newest one.

use std::io::{self, Write as _};

use axum::extract::State;
use axum::response::Response;
use tempmail_mime::{Role, Structure};
use tempmail_store::MessageRow;

use super::message::{find, text_of};
use super::{Caller, Error, Mailpit};
use crate::compat::mail::TenantMail;
use crate::compat::mail_content;
use crate::compat::request::{Parameters, Segments};
use crate::http::error::ApiError;
use crate::message::{MessageTexts, PieceWriter};
use crate::state::AppState;

/// The HTML as it was received, or the text. With `embed=1` the HTML is sanitized, and shows the images of the message.
pub(super) async fn view(
    State(state): State<AppState>,
    caller: Caller,
    Segments(file, _): Segments<Mailpit, String>,
    parameters: Parameters<Mailpit>,
) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let messages = &mail.state().messages;
    if let Some(id) = file.strip_suffix(".html") {
        let message = find(&mail, id).await?;
        if parameters.text("embed") == Some("1") {
            let document = messages.document(message, mail.client(), false).await;
            return Ok(document.map_err(missing)?.into_response());
        }
        let html = messages.pieces(message, mail.client(), write_html).await?;
        return Ok(mail_content(html.into_response("text/html; charset=utf-8")));
    }
    let id = file.strip_suffix(".txt").ok_or(ApiError::NotFound)?;
    let message = find(&mail, id).await?;
    let text = messages.pieces(message, mail.client(), write_text).await?;
    Ok(mail_content(text.into_response("text/plain; charset=utf-8")))
}

fn write_html(raw: &[u8], _: &MessageRow, answer: &mut PieceWriter) -> io::Result<()> {
    let structure = Structure::parse(raw);
    if structure.leaves.iter().all(|leaf| leaf.role != Role::Html) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let texts = MessageTexts::of(&structure, raw);
    answer.set_aside(texts.memory())?;
    answer.write_all(texts.html.as_bytes())
}

fn write_text(raw: &[u8], _: &MessageRow, answer: &mut PieceWriter) -> io::Result<()> {
    let texts = MessageTexts::of(&Structure::parse(raw), raw);
    answer.set_aside(texts.memory())?;
    answer.write_all(text_of(&texts).as_bytes())
}

/// Clients know a message without HTML as 404.
fn missing(error: ApiError) -> ApiError {
    if error == ApiError::NoHtml { ApiError::NotFound } else { error }
}
