//! The answers that are built from a message's raw data: the full message, the raw data and attachments.
//!
//! All of it is within a memory budget, and messages are parsed on blocking threads. Raw data and attachments of a
//! small message are made at once and hold none of the budget while they are written; those of a large one are streamed
//! from the store. The full message is in memory, and releases it piece by piece as it is written.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use tempmail_mime::Structure;
use tempmail_model::clock::Clock;
use tempmail_store::{MessageRow, RawHead, Store, StoredMessage};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use super::budget::{MemoryBudget, MemoryPermit, Reader, SMALL_MESSAGE};
use super::digest::{Digest, DigestCache};
use super::document::{Document, HTML_MAX};
use super::download::{decode, decoding_body, download};
use super::extraction::Extraction;
use super::found::{self, WantedEmail};
use super::full;
use super::pieces::{PieceWriter, Pieces};
use super::raw::{RawError, RawReader};
use super::texts::MessageTexts;
use crate::http::client::Client;
use crate::http::error::{ApiError, MissingMessage, Surface};
use crate::http::key_turn::{KeyTurn, KeyTurns};

/// The media type of the full message.
const JSON: &str = "application/json";
/// Bytes for the structure and headers of a message, besides its size.
const STRUCTURE: usize = 64 << 10;
/// Copies of a message in memory while it is rendered: the raw data, its decoded texts and the answer, which may have
/// them twice. If it turns out larger, more is taken.
const RENDERED_COPIES: usize = 4;
/// Elements of a document in memory while it is sanitized, as multiples of its HTML.
const TREE_COPIES: usize = 4;
/// Documents that are sanitized at a time.
const DOCUMENTS: usize = 2;
/// Messages that are read at a time for the waits and searches of a tenant.
const WAITS_OF_TENANT: usize = 2;
/// How long a document waits for its turn.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a decompressor, of compressed data and of a piece while raw data is streamed.
const STREAM: usize = 384 << 10;
/// Bytes of the decompressor's window at most, and as many that it has written and not handed out.
const WINDOW: usize = 512 << 10;

/// Renders messages that were found in the store.
pub(crate) struct MessageRenderer {
    store: Store,
    clock: Arc<dyn Clock>,
    budget: MemoryBudget,
    documents: Arc<Semaphore>,
    /// For what waits and searches read: however many a tenant has, and however large its mail is, another one's are
    /// next.
    tenant_turns: KeyTurns<Uuid>,
    /// For what they compute then.
    cores: Arc<Semaphore>,
    digests: DigestCache,
}

/// What is made of the raw data of a message, which decides on what that needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rendering {
    /// Its parts and texts are decoded.
    Texts,
    /// Its HTML is sanitized, too: that takes turns.
    Document,
}

/// A message that is being answered.
struct Answered {
    row: Arc<MessageRow>,
    start: RawHead,
    reader: Reader,
    /// Bytes of its raw data.
    size: usize,
}

impl Answered {
    fn is_small(&self) -> bool {
        self.size <= SMALL_MESSAGE
    }

    /// Bytes in memory while its raw data is streamed.
    fn streamed(&self) -> usize {
        STREAM + 2 * self.size.min(WINDOW)
    }
}

impl MessageRenderer {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        let documents = Arc::new(Semaphore::new(DOCUMENTS));
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self {
            store,
            clock,
            budget: MemoryBudget::new(),
            documents,
            tenant_turns: KeyTurns::new(WAITS_OF_TENANT),
            cores: Arc::new(Semaphore::new(cores)),
            digests: DigestCache::new(),
        }
    }

    /// The full message as JSON, in the form of a surface: only `/api` has `is_read`.
    ///
    /// # Errors
    /// 404 or 410 where the raw data is gone; 503 where there is no memory within 5 s, or Postgres is
    /// unavailable.
    pub(crate) async fn full_message(
        &self,
        message: StoredMessage,
        client: Client,
        surface: Surface,
    ) -> Result<Response, ApiError> {
        let write = move |raw: &[u8], row: &MessageRow, json: &mut PieceWriter| {
            full::write_full_message(raw, row, surface, json)
        };
        let json = self.pieces(message, client, Rendering::Texts, write).await?;
        Ok(json.into_response(JSON))
    }

    /// Waits for a tenant's turn to have its mail read, by a wait or a search.
    pub(crate) async fn turn_of_tenant(&self, tenant: Uuid) -> KeyTurn<Uuid> {
        self.tenant_turns.acquire(tenant).await
    }

    /// The answer to a wait, whose turn it is, with this message; `None` where it does not have what is wanted.
    ///
    /// # Errors
    /// As [`full_message`](Self::full_message).
    pub(crate) async fn found_email(
        &self,
        _turn: &KeyTurn<Uuid>,
        message: StoredMessage,
        client: Client,
        wanted: Arc<WantedEmail>,
        next_since: String,
    ) -> Result<Option<Response>, ApiError> {
        let message = self.begin(message, client)?;
        let memory = self.reserve(&message, Rendering::Texts).await?;
        let raw = self.read_all(&message).await?;
        let computing = Arc::clone(&self.cores).acquire_owned().await.ok();
        let rendered = spawn_blocking(move || {
            let _computing = computing;
            let mut json = PieceWriter::new(memory, raw.len());
            found::write_found_email(&raw, &message.row, &wanted, &next_since, &mut json).map(|is_found| {
                drop(raw);
                is_found.then(|| json.finish())
            })
        });
        Ok(rendered.await?.map_err(|error| write_error(&error))?.map(|json| json.into_response(JSON)))
    }

    /// The one-time codes and action links of the message.
    ///
    /// # Errors
    /// As [`full_message`](Self::full_message).
    pub(crate) async fn extraction(
        &self,
        message: StoredMessage,
        client: Client,
    ) -> Result<Json<Extraction>, ApiError> {
        let find = |raw: &[u8], row: &MessageRow| {
            Extraction::of(row, &MessageTexts::of(&Structure::parse(raw), raw))
        };
        Ok(Json(self.read(message, client, Rendering::Texts, find).await?))
    }

    /// What `write` makes of the raw data of a message. Its [`io::ErrorKind::NotFound`] says that the message does not
    /// have it.
    ///
    /// # Errors
    /// As [`full_message`](Self::full_message); 503 where too many documents wait; 404 where `write` says so.
    pub(crate) async fn pieces(
        &self,
        message: StoredMessage,
        client: Client,
        rendering: Rendering,
        write: impl FnOnce(&[u8], &MessageRow, &mut PieceWriter) -> io::Result<()> + Send + 'static,
    ) -> Result<Pieces, ApiError> {
        let message = self.begin(message, client)?;
        let memory = self.reserve(&message, rendering).await?;
        let raw = self.read_all(&message).await?;
        let turn = self.turn(rendering).await?;
        let written = spawn_blocking(move || {
            let mut json = PieceWriter::new(memory, raw.len());
            let written = write(&raw, &message.row, &mut json);
            drop((raw, turn));
            written.map(|()| json.finish())
        });
        written.await?.map_err(|error| write_error(&error))
    }

    /// What `read` finds in the raw data of a message; it is small, compared with that.
    ///
    /// # Errors
    /// As [`full_message`](Self::full_message); 503 where too many documents wait.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        message: StoredMessage,
        client: Client,
        rendering: Rendering,
        read: impl FnOnce(&[u8], &MessageRow) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let message = self.begin(message, client)?;
        let memory = self.reserve(&message, rendering).await?;
        let raw = self.read_all(&message).await?;
        let turn = self.turn(rendering).await?;
        let reading = spawn_blocking(move || {
            let found = read(&raw, &message.row);
            drop((raw, memory, turn));
            found
        });
        reading.await
    }

    /// The digest of a message, if it was made lately.
    pub(crate) fn known_digest(&self, id: Uuid) -> Option<Arc<Digest>> {
        self.digests.get(id)
    }

    /// The digest of a message, which is kept for a while.
    ///
    /// # Errors
    /// As [`full_message`](Self::full_message).
    pub(crate) async fn digest(
        &self,
        message: StoredMessage,
        client: Client,
    ) -> Result<Arc<Digest>, ApiError> {
        let id = message.row.id;
        let digest = self.read(message, client, Rendering::Texts, |raw, _| Digest::of_message(raw)).await?;
        let digest = Arc::new(digest);
        self.digests.keep(id, &digest);
        Ok(digest)
    }

    /// The message as its recipient received it, as `message/rfc822`: exactly `row.size` bytes.
    ///
    /// # Errors
    /// As [`full_message`](Self::full_message).
    pub(crate) async fn raw_message(
        &self,
        message: StoredMessage,
        client: Client,
    ) -> Result<Response, ApiError> {
        let message = self.begin(message, client)?;
        let file_name = format!("{}.eml", message.row.id);
        let body = if message.is_small() {
            let _memory = self.acquire(&message, message.streamed() + message.size).await?;
            Body::from(self.read_all(&message).await?)
        } else {
            let memory = self.acquire(&message, message.streamed()).await?;
            let reading = (self.open(&message)?, memory);
            Body::from_stream(stream::try_unfold(reading, |(mut reader, memory)| async move {
                Ok::<_, RawError>(reader.next().await?.map(|chunk| (Bytes::from(chunk), (reader, memory))))
            }))
        };
        Ok(download(body, message.size, "message/rfc822", &file_name))
    }

    /// The HTML of the message, sanitized.
    ///
    /// # Errors
    /// As [`full_message`](Self::full_message); 409 where the message has no HTML, 503 where too many documents wait.
    pub(crate) async fn document(
        &self,
        message: StoredMessage,
        client: Client,
        remote: bool,
    ) -> Result<Document, ApiError> {
        let read = move |raw: &[u8], _: &MessageRow| Document::of_message(raw, remote);
        self.read(message, client, Rendering::Document, read).await?.ok_or(ApiError::NoHtml)
    }

    /// One attachment, decoded, with its media type; `index` as it is in the path.
    ///
    /// # Errors
    /// As [`full_message`](Self::full_message); 400 where `index` is not an integer, 404 where there is
    /// no attachment of that index.
    pub(crate) async fn attachment(
        &self,
        message: StoredMessage,
        client: Client,
        index: &str,
    ) -> Result<Response, ApiError> {
        let index = parse_index(index)?;
        let message = self.begin(message, client)?;
        // Parsing decodes each attachment, to know its length.
        let parsed = 2 * message.size + STRUCTURE;
        let memory = self.acquire(&message, parsed.max(message.streamed())).await?;
        let raw = self.read_all(&message).await?;
        let is_small = message.is_small();
        let found = spawn_blocking(move || {
            let attachment = Structure::parse(&raw).attachments(&raw).into_iter().nth(index?)?;
            let decoded = is_small.then(|| decode(&attachment, &raw[attachment.leaf.body.clone()]));
            Some((attachment, decoded, memory))
        });
        let (attachment, decoded, mut memory) = found.await?.ok_or(ApiError::NotFound)?;
        let name = attachment.download_name();
        let content_type = attachment.content_type_with_charset();
        let size = attachment.size;
        let body = match decoded {
            Some(decoded) => Body::from(decoded),
            None => {
                memory.shrink_to(message.streamed());
                decoding_body(self.open(&message)?, &attachment, memory)
            }
        };
        Ok(download(body, size, &content_type, &name))
    }

    fn begin(&self, message: StoredMessage, client: Client) -> Result<Answered, ApiError> {
        let StoredMessage { row, raw } = message;
        let start = raw.ok_or_else(|| self.missing(&row))?;
        let reader = Reader { client, inbox: row.inbox };
        let size = usize::try_from(row.size).unwrap_or(0);
        Ok(Answered { row: Arc::new(row), start, reader, size })
    }

    /// The memory for a rendering.
    async fn reserve(&self, message: &Answered, rendering: Rendering) -> Result<MemoryPermit, ApiError> {
        let tree = match rendering {
            Rendering::Texts => 0,
            Rendering::Document => message.size.min(HTML_MAX) * TREE_COPIES,
        };
        self.acquire(message, message.size * RENDERED_COPIES + tree + STRUCTURE).await
    }

    /// The turn for a rendering, if it needs one.
    async fn turn(&self, rendering: Rendering) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        let Rendering::Document = rendering else { return Ok(None) };
        let turn = tokio::time::timeout(DOCUMENT_TIMEOUT, Arc::clone(&self.documents).acquire_owned()).await;
        // The semaphore is never closed.
        let Ok(Ok(turn)) = turn else { return Err(ApiError::Busy("documents")) };
        Ok(Some(turn))
    }

    async fn acquire(&self, message: &Answered, bytes: usize) -> Result<MemoryPermit, ApiError> {
        self.budget.acquire(message.reader, message.size, bytes).await
    }

    fn missing(&self, row: &MessageRow) -> ApiError {
        MissingMessage::of(row.id, self.clock.now()).into()
    }

    fn open(&self, message: &Answered) -> Result<RawReader, ApiError> {
        Ok(RawReader::new(self.store.clone(), Arc::clone(&message.row), message.start.clone())?)
    }

    /// All of the raw data, within a budget that the caller holds.
    async fn read_all(&self, message: &Answered) -> Result<Vec<u8>, ApiError> {
        let mut reader = self.open(message)?;
        let mut raw = Vec::with_capacity(message.size);
        loop {
            match reader.next().await {
                Ok(Some(chunk)) => raw.extend_from_slice(&chunk),
                Ok(None) => return Ok(raw),
                Err(RawError::Store(error)) => return Err(error.into()),
                Err(RawError::Deleted) => return Err(self.missing(&message.row)),
                Err(RawError::Corrupt) => return Err(ApiError::Internal),
            }
        }
    }
}

/// Why nothing was written: the message does not have it or, with any other kind, there is not enough memory.
fn write_error(error: &io::Error) -> ApiError {
    match error.kind() {
        io::ErrorKind::NotFound => ApiError::NotFound,
        _ => ApiError::Busy("answer_memory"),
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
