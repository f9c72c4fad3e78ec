//! The answers that are built from a message's raw data: the full message, the raw data and attachments.
//!
//! Messages are parsed on blocking threads within a memory budget. Raw data and attachments are streamed
//! from the store; a slow reader holds a few hundred KiB.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use tempmail_mime::{Structure, TransferDecoder};
use tempmail_model::clock::Clock;
use tempmail_store::{MessageRow, RawHead, Store, StoredMessage};
use tokio::sync::OwnedSemaphorePermit;

use super::budget::{MemoryBudget, shrink};
use super::raw::{RawError, RawReader};
use super::{disposition, full};
use crate::http::error::{ApiError, MissingMessage, Surface};

/// Answers of up to this many bytes release their memory budget before they are written.
const SMALL_ANSWER: usize = 64 << 10;

/// Renders messages that were found in the store.
pub(crate) struct MessageRenderer {
    store: Store,
    clock: Arc<dyn Clock>,
    budget: MemoryBudget,
}

impl MessageRenderer {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, budget: MemoryBudget::new() }
    }

    /// The full message as JSON, in the form of a surface: only `/api` has `is_read`.
    ///
    /// # Errors
    /// 404 or 410 where the raw data is gone; 503 where there is no memory within 5 s, or Postgres is
    /// unavailable.
    pub(crate) async fn full_message(
        &self,
        message: StoredMessage,
        surface: Surface,
    ) -> Result<Response, ApiError> {
        let (row, start) = self.split(message)?;
        let permit = self.budget.acquire(row.size).await?;
        let raw = self.read_all(&row, start).await?;
        let (json, permit) = spawn_blocking(move || {
            let json = full::full_message(&raw, &row, surface);
            drop(raw);
            (json, permit)
        })
        .await?;
        let length = json.len();
        let body = if length <= SMALL_ANSWER { Body::from(json) } else { budgeted_body(json.into(), permit) };
        let mut response = Response::new(body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        Ok(response)
    }

    /// The message as its recipient received it, as `message/rfc822`: exactly `row.size` bytes.
    ///
    /// # Errors
    /// 404 or 410 where the raw data is gone.
    pub(crate) fn raw_message(&self, message: StoredMessage) -> Result<Response, ApiError> {
        let (row, start) = self.split(message)?;
        let file_name = format!("{}.eml", row.id);
        let length = u64::try_from(row.size).unwrap_or(0);
        let reader = self.open(&row, start)?;
        let chunks = stream::try_unfold(reader, |mut reader| async move {
            Ok::<_, RawError>(reader.next().await?.map(|chunk| (Bytes::from(chunk), reader)))
        });
        Ok(download(Body::from_stream(chunks), length, "message/rfc822", &file_name))
    }

    /// One attachment, decoded, with its media type; `index` as it is in the path.
    ///
    /// # Errors
    /// As [`full_message`](Self::full_message); 400 where `index` is not an integer, 404 where there is
    /// no attachment of that index.
    pub(crate) async fn attachment(&self, message: StoredMessage, index: &str) -> Result<Response, ApiError> {
        let index = parse_index(index)?;
        let (row, start) = self.split(message)?;
        let found = {
            let permit = self.budget.acquire(row.size).await?;
            let raw = self.read_all(&row, start.clone()).await?;
            let found = spawn_blocking(move || {
                let attachment = Structure::parse(&raw).attachments(&raw).into_iter().nth(index?);
                drop((raw, permit));
                attachment
            });
            found.await?.ok_or(ApiError::NotFound)?
        };
        let name = found.download_name();
        let content_type = found.content_type_with_charset();
        let decoding =
            (self.open(&row, start)?, 0_usize, found.leaf.body, TransferDecoder::new(found.leaf.encoding));
        let chunks = stream::try_unfold(Some(decoding), |decoding| async move {
            let Some((mut reader, mut position, body, mut decoder)) = decoding else { return Ok(None) };
            let mut decoded = Vec::new();
            while decoded.is_empty() {
                match reader.next().await? {
                    Some(chunk) if position < body.end => {
                        let from = body.start.saturating_sub(position).min(chunk.len());
                        let to = (body.end - position).min(chunk.len());
                        position += chunk.len();
                        decoder.push(&chunk[from..to], &mut decoded);
                    }
                    _ => {
                        decoder.finish(&mut decoded);
                        return Ok::<_, RawError>(Some((Bytes::from(decoded), None)));
                    }
                }
            }
            Ok(Some((Bytes::from(decoded), Some((reader, position, body, decoder)))))
        });
        Ok(download(Body::from_stream(chunks), found.size as u64, &content_type, &name))
    }

    /// The message's row and the start of its raw data.
    fn split(&self, message: StoredMessage) -> Result<(Arc<MessageRow>, RawHead), ApiError> {
        let StoredMessage { row, raw } = message;
        let start = raw.ok_or_else(|| self.missing(&row))?;
        Ok((Arc::new(row), start))
    }

    fn missing(&self, row: &MessageRow) -> ApiError {
        MissingMessage::of(row.id, self.clock.now()).into()
    }

    fn open(&self, row: &Arc<MessageRow>, start: RawHead) -> Result<RawReader, ApiError> {
        Ok(RawReader::new(self.store.clone(), Arc::clone(row), start)?)
    }

    /// All of the raw data, within a budget that the caller holds.
    async fn read_all(&self, row: &Arc<MessageRow>, start: RawHead) -> Result<Vec<u8>, ApiError> {
        let mut reader = self.open(row, start)?;
        let mut raw = Vec::with_capacity(usize::try_from(row.size).unwrap_or(0));
        loop {
            match reader.next().await {
                Ok(Some(chunk)) => raw.extend_from_slice(&chunk),
                Ok(None) => return Ok(raw),
                Err(RawError::Store(error)) => return Err(error.into()),
                Err(RawError::Deleted) => return Err(self.missing(row)),
                Err(RawError::Corrupt) => return Err(ApiError::Internal),
            }
        }
    }
}

/// A zero-based integer of any length: `None` where it is too large for an index.
fn parse_index(text: &str) -> Result<Option<usize>, ApiError> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ApiError::InvalidRequest("`index` must be an integer from 0.".into()));
    }
    Ok(text.parse().ok())
}

async fn spawn_blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(job).await.map_err(|_panicked| {
        tracing::error!("parsing a message panicked");
        ApiError::Internal
    })
}

/// A body that holds its memory budget until it is written.
fn budgeted_body(json: Bytes, mut permit: OwnedSemaphorePermit) -> Body {
    shrink(&mut permit, json.len());
    let pieces = stream::unfold((json, permit), |(mut rest, permit)| async move {
        if rest.is_empty() {
            return None;
        }
        let piece = rest.split_to(rest.len().min(SMALL_ANSWER));
        Some((Ok::<_, std::convert::Infallible>(piece), (rest, permit)))
    });
    Body::from_stream(pieces)
}

/// A response that browsers save to a file and never render.
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
    fn accepts_an_index_of_any_length() {
        assert_eq!(parse_index("0").unwrap(), Some(0));
        assert_eq!(parse_index("99999999999999999999999").unwrap(), None);
        for wrong in ["", "-1", "a", "1.0", "0x1", " 1"] {
            assert!(parse_index(wrong).is_err(), "{wrong}");
        }
    }
}
