//! The routes: lists and searches of whole messages, downloads, and deletion.

use std::io::{self, Write as _};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use tempmail_mime::Structure;
use tempmail_store::MessageRow;
use tokio::time::Instant;

use super::message::write_message;
use super::{Caller, Error, Mailhog};
use crate::compat::mail::{SCAN_MAX, TenantMail};
use crate::compat::mail_content;
use crate::compat::request::{Parameters, Segments};
use crate::compat::search::{Search, Term, Word};
use crate::http::error::ApiError;
use crate::message::{PieceWriter, Pieces, disposition};
use crate::state::AppState;

/// Messages of a page without `limit`, and at most; they are whole.
const LIMIT: usize = 50;
const LIMIT_MAX: usize = 250;
/// How long pieces of a message are sent after the token was judged.
const JUDGED_FOR: Duration = Duration::from_secs(1);

/// API v1: the newest messages of the tenant, as an array.
pub(super) async fn list_all(State(state): State<AppState>, caller: Caller) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let rows = mail.list(0, LIMIT_MAX).await?;
    Ok(stream_array(mail, "[".into(), rows, "]"))
}

/// API v2: a page of the messages of the tenant, newest first.
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    parameters: Parameters<Mailhog>,
) -> Result<Response, Error> {
    let (start, limit) = page(&parameters)?;
    let mail = TenantMail::of(state, &caller);
    let total = usize::try_from(mail.count().await?.total).unwrap_or(0);
    let rows = mail.list(start, limit).await?;
    Ok(stream_page(mail, total, start, rows))
}

/// API v2: a page of what is from, to or contains something, newest first.
pub(super) async fn search(
    State(state): State<AppState>,
    caller: Caller,
    parameters: Parameters<Mailhog>,
) -> Result<Response, Error> {
    let (start, limit) = page(&parameters)?;
    let query = parameters.text("query").ok_or_else(|| invalid("`query` is missing."))?;
    let query = Word::parse(query)?;
    let term = match parameters.text("kind") {
        Some("from") => Term::From(query),
        Some("to") => Term::To(query),
        Some("containing") => Term::Anywhere(query),
        _ => return Err(invalid("`kind` must be from, to or containing.").into()),
    };
    let mut search = Search::new();
    search.add(term, false)?;
    let mail = TenantMail::of(state, &caller);
    let found = mail.find_page(&search, start, limit).await?;
    Ok(stream_page(mail, found.total, start, found.rows))
}

/// One whole message.
pub(super) async fn get_message(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailhog, String>,
) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let message = mail.find(&id).await?;
    let pieces = mail.state().messages.pieces(message, mail.client(), write_message).await?;
    Ok(pieces.into_response("application/json"))
}

/// The message as it was received.
pub(super) async fn download(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailhog, String>,
) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let message = mail.find(&id).await?;
    Ok(mail.state().messages.raw_message(message, mail.client()).await?)
}

/// A part of a multipart message, decoded.
pub(super) async fn download_part(
    State(state): State<AppState>,
    caller: Caller,
    Segments((id, part), _): Segments<Mailhog, (String, usize)>,
) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let message = mail.find(&id).await?;
    let (found, described) = tokio::sync::oneshot::channel();
    let write = move |raw: &[u8], _: &MessageRow, json: &mut PieceWriter| {
        let structure = Structure::parse(raw);
        let leaf = structure.leaves.get(part).ok_or(io::ErrorKind::NotFound)?;
        let name = leaf.file_name.clone().unwrap_or_else(|| format!("part-{part}"));
        // Whoever waits for it is gone if it is not taken.
        let _ = found.send((leaf.content_type_with_charset(), name));
        json.set_aside(leaf.body.len())?;
        json.write_all(&leaf.encoding.decode(&raw[leaf.body.clone()]))
    };
    let pieces = mail.state().messages.pieces(message, mail.client(), write).await?;
    let (content_type, name) = described.await.map_err(|_not_sent| ApiError::Internal)?;
    let mut response = mail_content(pieces.into_response(&content_type));
    response.headers_mut().insert(CONTENT_DISPOSITION, disposition(&name));
    Ok(response)
}

/// Deletes a message for every reader.
pub(super) async fn delete_message(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailhog, String>,
) -> Result<StatusCode, Error> {
    TenantMail::of(state, &caller).delete_one(&id).await?;
    Ok(StatusCode::OK)
}

/// Deletes everything that the tenant owns.
pub(super) async fn delete_all(State(state): State<AppState>, caller: Caller) -> Result<StatusCode, Error> {
    TenantMail::of(state, &caller).clear().await?;
    Ok(StatusCode::OK)
}

fn page(parameters: &Parameters<Mailhog>) -> Result<(usize, usize), ApiError> {
    let start = parameters.number("start", SCAN_MAX)?.unwrap_or(0);
    let limit = parameters.number("limit", LIMIT_MAX)?.unwrap_or(LIMIT);
    Ok((start, limit))
}

fn invalid(sentence: &'static str) -> ApiError {
    ApiError::InvalidRequest(sentence.into())
}

fn stream_page(mail: TenantMail, total: usize, start: usize, rows: Vec<MessageRow>) -> Response {
    let count = rows.len();
    let before = format!("{{\"total\":{total},\"count\":{count},\"start\":{start},\"items\":[");
    stream_array(mail, before, rows, "]}")
}

/// Whole messages within JSON, made one at a time while they are written, each within the memory for answers. One that
/// was deleted meanwhile is left out; where another can't be read, or the token has ended, the answer breaks off.
fn stream_array(mail: TenantMail, before: String, rows: Vec<MessageRow>, after: &'static str) -> Response {
    let items = stream::unfold((mail, rows.into_iter(), true), |(mail, mut rows, is_first)| async move {
        loop {
            let row = rows.next()?;
            let item = match read_item(&mail, &row).await {
                Ok(pieces) => Ok((is_first, judged(mail.clone(), pieces))),
                Err(ApiError::NotFound | ApiError::EmailExpired) => continue,
                Err(error) => Err(error),
            };
            return Some((item, (mail, rows, false)));
        }
    });
    let items = items
        .map_ok(|(is_first, pieces)| {
            let separator = Bytes::from_static(if is_first { b"" } else { b"," });
            stream::once(async { Ok(separator) }).chain(pieces)
        })
        .try_flatten();
    let whole = stream::once(async { Ok(Bytes::from(before)) })
        .chain(items)
        .chain(stream::once(async move { Ok(Bytes::from_static(after.as_bytes())) }));
    let mut response = Response::new(Body::from_stream(whole));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A message of a list. The token is judged again first.
async fn read_item(mail: &TenantMail, row: &MessageRow) -> Result<Pieces, ApiError> {
    mail.recheck().await?;
    let message = mail.find(&row.id.to_string()).await?;
    mail.state().messages.pieces(message, mail.client(), write_message).await
}

/// The pieces of a message. The token is judged again meanwhile where the client takes its time to read them.
fn judged(mail: TenantMail, pieces: Pieces) -> impl Stream<Item = Result<Bytes, ApiError>> {
    let pieces = pieces.into_body().into_data_stream();
    stream::try_unfold((mail, pieces, Instant::now()), |(mail, mut pieces, mut judged_at)| async move {
        if judged_at.elapsed() >= JUDGED_FOR {
            mail.recheck().await?;
            judged_at = Instant::now();
        }
        let piece = pieces.try_next().await.map_err(|_broken| ApiError::Internal)?;
        Ok::<_, ApiError>(piece.map(|piece| (piece, (mail, pieces, judged_at))))
    })
}
