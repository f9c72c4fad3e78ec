//! Messages as clients get them: summaries, the full message, raw data and attachments.
//!
//! Full parsing runs off the async threads within a memory budget. Raw data and attachments
//! are streamed from the store; a reader that is slow holds a few hundred KiB, no more.

mod budget;
mod disposition;
mod raw;
mod render;

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde::Serialize;
use tempmail_mime::{Structure, TransferDecoder};
use tempmail_model::timestamp::timestamp;
use tempmail_store::{MessageRow, RawHead, StoreError, StoredMessage};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::error::{Absence, ApiError, Surface, V1Error};
use crate::state::AppState;

pub(crate) use budget::MemoryBudget;
pub(crate) use raw::START as RAW_START;
use raw::{RawError, RawReader};
pub use render::{Email, FullMessage};

/// Answers up to this many octets leave the memory budget before they are written.
const SMALL_ANSWER: usize = 64 << 10;

/// The summary of a message in the lists of `/api` and `/pro/api`.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageSummary {
    id: Uuid,
    sender: String,
    from: String,
    subject: String,
    preview_text: String,
    #[schema(minimum = 0)]
    size: i32,
    created_at: String,
    is_read: bool,
}

impl From<MessageRow> for MessageSummary {
    fn from(row: MessageRow) -> Self {
        Self {
            id: row.id,
            created_at: timestamp(row.created_at()),
            sender: row.sender,
            from: row.from_text,
            subject: row.subject,
            preview_text: row.preview,
            size: row.size,
            is_read: row.is_read,
        }
    }
}

/// A page of a mailbox's messages, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageList {
    messages: Vec<MessageSummary>,
    page: i64,
}

impl MessageList {
    /// Page `page`, from 1, of these messages.
    pub fn new(rows: Vec<MessageRow>, page: i64) -> Self {
        Self { messages: rows.into_iter().map(Into::into).collect(), page }
    }
}

/// Why a message that was found can't be shown.
#[derive(Debug)]
pub enum ViewError {
    /// Its raw data is gone, or it has no attachment of that index.
    Absent(Absence),
    /// The index is no integer.
    InvalidIndex,
    /// No memory for it within 5 s.
    Busy,
    /// The store failed.
    Store(StoreError),
    /// Our own fault; logged.
    Internal,
}

impl From<ViewError> for ApiError {
    fn from(error: ViewError) -> Self {
        match error {
            ViewError::Absent(absence) => absence.into(),
            ViewError::InvalidIndex => Self::InvalidRequest("`index` must be an integer from 0.".into()),
            ViewError::Busy => Self::Unavailable,
            ViewError::Store(error) => error.into(),
            ViewError::Internal => Self::Internal,
        }
    }
}

impl From<ViewError> for V1Error {
    fn from(error: ViewError) -> Self {
        match error {
            ViewError::Absent(absence) => absence.into(),
            ViewError::InvalidIndex => Self::InvalidRequest,
            ViewError::Busy => Self::Unavailable,
            ViewError::Store(error) => error.into(),
            ViewError::Internal => Self::Internal,
        }
    }
}

/// The full message as JSON, in the form of a surface: `is_read` is `/api`'s alone.
///
/// # Errors
/// [`ViewError`].
pub async fn full_message(
    state: &AppState,
    message: StoredMessage,
    surface: Surface,
) -> Result<Response, ViewError> {
    let (row, start) = split(state, message)?;
    let permit = state.parsing.take(row.size).await?;
    let raw = read_whole(state, &row, start).await?;
    let (json, permit) = off_thread(move || {
        let json = render::full_message(&raw, &row, surface);
        drop(raw);
        (json, permit)
    })
    .await?;
    let length = json.len();
    let body = if length <= SMALL_ANSWER { Body::from(json) } else { metered(json.into(), permit) };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}

/// The message as its recipient received it, as `message/rfc822`: exactly `row.size` octets.
///
/// # Errors
/// [`ViewError`].
pub fn raw_message(state: &AppState, message: StoredMessage) -> Result<Response, ViewError> {
    let (row, start) = split(state, message)?;
    let file_name = format!("{}.eml", row.id);
    let length = u64::try_from(row.size).unwrap_or(0);
    let reader = open(state, &row, start)?;
    let chunks = stream::try_unfold(reader, |mut reader| async move {
        Ok::<_, RawError>(reader.next().await?.map(|chunk| (Bytes::from(chunk), reader)))
    });
    Ok(download(Body::from_stream(chunks), length, "message/rfc822", &file_name))
}

/// One attachment, decoded, with its media type; `index` as the path has it.
///
/// # Errors
/// [`ViewError`]; [`Absence::NotFound`] where there is none of that index.
pub async fn attachment(
    state: &AppState,
    message: StoredMessage,
    index: &str,
) -> Result<Response, ViewError> {
    let index = parse_index(index)?;
    let (row, start) = split(state, message)?;
    let found = {
        let permit = state.parsing.take(row.size).await?;
        let raw = read_whole(state, &row, start.clone()).await?;
        let found = off_thread(move || {
            let attachment = Structure::parse(&raw).attachments(&raw).into_iter().nth(index?);
            drop((raw, permit));
            attachment
        });
        found.await?.ok_or(ViewError::Absent(Absence::NotFound))?
    };
    let name = found.download_name();
    let content_type = found.content_type_with_charset();
    let state_of_stream =
        (open(state, &row, start)?, 0_usize, found.leaf.body, TransferDecoder::new(found.leaf.encoding));
    let chunks = stream::try_unfold(Some(state_of_stream), |state| async move {
        let Some((mut reader, mut at, body, mut decoder)) = state else { return Ok(None) };
        let mut decoded = Vec::new();
        while decoded.is_empty() {
            match reader.next().await? {
                Some(chunk) if at < body.end => {
                    let from = body.start.saturating_sub(at).min(chunk.len());
                    let to = (body.end - at).min(chunk.len());
                    at += chunk.len();
                    decoder.push(&chunk[from..to], &mut decoded);
                }
                _ => {
                    decoder.finish(&mut decoded);
                    return Ok::<_, RawError>(Some((Bytes::from(decoded), None)));
                }
            }
        }
        Ok(Some((Bytes::from(decoded), Some((reader, at, body, decoder)))))
    });
    Ok(download(Body::from_stream(chunks), found.size as u64, &content_type, &name))
}

/// A zero-based integer of any length: those that are too large for an index are `None`.
fn parse_index(text: &str) -> Result<Option<usize>, ViewError> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ViewError::InvalidIndex);
    }
    Ok(text.parse().ok())
}

/// The message and where its raw data begins.
fn split(state: &AppState, message: StoredMessage) -> Result<(Arc<MessageRow>, RawHead), ViewError> {
    let StoredMessage { row, raw } = message;
    let start = raw.ok_or_else(|| ViewError::Absent(Absence::of(row.id, state.clock.now())))?;
    Ok((Arc::new(row), start))
}

fn open(state: &AppState, row: &Arc<MessageRow>, start: RawHead) -> Result<RawReader, ViewError> {
    RawReader::new(state.store.clone(), Arc::clone(row), start).map_err(ViewError::Store)
}

/// All of what `/raw` answers, within a budget that the caller holds.
async fn read_whole(state: &AppState, row: &Arc<MessageRow>, start: RawHead) -> Result<Vec<u8>, ViewError> {
    let mut reader = open(state, row, start)?;
    let mut whole = Vec::with_capacity(usize::try_from(row.size).unwrap_or(0));
    loop {
        match reader.next().await {
            Ok(Some(chunk)) => whole.extend_from_slice(&chunk),
            Ok(None) => return Ok(whole),
            Err(RawError::Store(error)) => return Err(ViewError::Store(error)),
            Err(RawError::Gone) => return Err(ViewError::Absent(Absence::of(row.id, state.clock.now()))),
            Err(RawError::Damaged) => return Err(ViewError::Internal),
        }
    }
}

async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ViewError> {
    tokio::task::spawn_blocking(work).await.map_err(|_panicked| {
        tracing::error!("parsing a message panicked");
        ViewError::Internal
    })
}

/// A body that counts against the memory budget until it is written.
fn metered(json: Bytes, mut permit: OwnedSemaphorePermit) -> Body {
    budget::shrink(&mut permit, json.len());
    let pieces = stream::unfold((json, permit), |(mut rest, permit)| async move {
        if rest.is_empty() {
            return None;
        }
        let piece = rest.split_to(rest.len().min(SMALL_ANSWER));
        Some((Ok::<_, std::convert::Infallible>(piece), (rest, permit)))
    });
    Body::from_stream(pieces)
}

/// A body that a browser saves and never runs.
fn download(body: Body, length: u64, content_type: &str, file_name: &str) -> Response {
    let content_type = HeaderValue::try_from(content_type)
        .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(CONTENT_DISPOSITION, disposition::attachment(file_name));
    headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_an_integer_of_any_length() {
        assert_eq!(parse_index("0").unwrap(), Some(0));
        assert_eq!(parse_index("99999999999999999999999").unwrap(), None);
        for wrong in ["", "-1", "a", "1.0", "0x1", " 1"] {
            assert!(parse_index(wrong).is_err(), "{wrong}");
        }
    }
}
