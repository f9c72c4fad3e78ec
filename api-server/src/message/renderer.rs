//! The answers that are built from a message's raw data: the full message, the raw data and attachments.
//!
//! All of it is within a memory budget, and messages are parsed on blocking threads. Raw data and attachments of a
//! small message are made at once and hold none of the budget while they are written; those of a large one are streamed
//! from the store. The full message is in memory, and releases it piece by piece as it is written.

use std::io;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use tempmail_admission::TurnKey;
use tempmail_mime::Structure;
use tempmail_model::clock::Clock;
use tempmail_store::{MessageRow, RawHead, Store, StoredMessage};
use uuid::Uuid;

use super::budget::{PieceWriter, Pieces, Reader, RenderBudget, RenderMemory, SMALL_MESSAGE};
use super::digest::{Digest, DigestCache};
use super::document::{Document, HTML_MAX};
use super::download::{decode, decoding_body, download};
use super::extraction::Extraction;
use super::found::{self, WantedEmail};
use super::full;
use super::raw::{RawError, RawReader};
use super::texts::MessageTexts;
use crate::http::client::{Client, Party};
use crate::http::error::{ApiError, MissingMessage, Surface};
use crate::http::gates::Gates;

/// The media type of the full message.
const JSON: &str = "application/json";
/// Bytes for the structure and headers of a message, besides its size.
const STRUCTURE: usize = 64 << 10;
/// Copies of a message in memory while it is rendered: the raw data, its decoded texts and the answer, which may have
/// them twice. If it turns out larger, more is taken.
const RENDERED_COPIES: usize = 4;
/// Elements of a document in memory while it is sanitized, as multiples of its HTML.
const TREE_COPIES: usize = 4;
/// Bytes of a decompressor, of compressed data and of a piece while raw data is streamed.
const STREAM: usize = 384 << 10;
/// Bytes of the decompressor's window at most, and as many that it has written and not handed out.
const WINDOW: usize = 512 << 10;

/// Renders messages that were found in the store.
pub(crate) struct MessageRenderer {
    store: Store,
    clock: Arc<dyn Clock>,
    budget: RenderBudget,
    gates: Gates,
    digests: DigestCache,
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
    /// Whose turn it is to have it parsed: that of its tenant, or else of the client.
    fn turn_key(&self) -> TurnKey<Party> {
        self.reader.client.turn_key(self.row.tenant)
    }

    fn is_small(&self) -> bool {
        self.size <= SMALL_MESSAGE
    }

    /// Bytes of its elements while its HTML is sanitized.
    fn tree(&self) -> usize {
        self.size.min(HTML_MAX) * TREE_COPIES
    }

    /// Bytes in memory while its raw data is streamed.
    fn streamed(&self) -> usize {
        STREAM + 2 * self.size.min(WINDOW)
    }
}

impl MessageRenderer {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>, gates: Gates) -> Self {
        Self { store, clock, budget: RenderBudget::new(), gates, digests: DigestCache::new() }
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
        let json = self.pieces(message, client, write).await?;
        Ok(json.into_response(JSON))
    }

    /// The answer to a wait with this message; `None` where it does not have what is wanted.
    ///
    /// # Errors
    /// As [`full_message`](Self::full_message).
    pub(crate) async fn found_email(
        &self,
        message: StoredMessage,
        client: Client,
        wanted: Arc<WantedEmail>,
        next_since: String,
    ) -> Result<Option<Response>, ApiError> {
        let message = self.begin(message, client)?;
        let memory = self.reserve(&message, 0).await?;
        let raw = self.read_all(&message).await?;
        let (key, row) = (message.turn_key(), message.row);
        let rendered = self.parse(key, move || {
            let mut json = PieceWriter::new(memory, raw.len());
            found::write_found_email(&raw, &row, &wanted, &next_since, &mut json).map(|is_found| {
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
        Ok(Json(self.read(message, client, find).await?))
    }

    /// What `write` makes of the raw data of a message. Its [`io::ErrorKind::NotFound`] says that the message does not
    /// have it.
    ///
    /// # Errors
    /// As [`full_message`](Self::full_message); 404 where `write` says so.
    pub(crate) async fn pieces(
        &self,
        message: StoredMessage,
        client: Client,
        write: impl FnOnce(&[u8], &MessageRow, &mut PieceWriter) -> io::Result<()> + Send + 'static,
    ) -> Result<Pieces, ApiError> {
        let message = self.begin(message, client)?;
        let memory = self.reserve(&message, 0).await?;
        let raw = self.read_all(&message).await?;
        self.write(message, raw, memory, write).await
    }

    /// What `write` makes of the raw data and the sanitized HTML of a message, if that has any.
    ///
    /// # Errors
    /// As [`document`](Self::document).
    pub(crate) async fn pieces_with_document(
        &self,
        message: StoredMessage,
        client: Client,
        write: impl FnOnce(&[u8], &MessageRow, Option<Document>, &mut PieceWriter) -> io::Result<()>
        + Send
        + 'static,
    ) -> Result<Pieces, ApiError> {
        let message = self.begin(message, client)?;
        let memory = self.reserve(&message, message.tree()).await?;
        let raw = self.read_all(&message).await?;
        let (document, raw, memory) = self.sanitize(&message, raw, memory, false).await?;
        let write =
            move |raw: &[u8], row: &MessageRow, json: &mut PieceWriter| write(raw, row, document, json);
        self.write(message, raw, memory, write).await
    }

    async fn write(
        &self,
        message: Answered,
        raw: Vec<u8>,
        memory: RenderMemory,
        write: impl FnOnce(&[u8], &MessageRow, &mut PieceWriter) -> io::Result<()> + Send + 'static,
    ) -> Result<Pieces, ApiError> {
        let (key, row) = (message.turn_key(), message.row);
        let written = self.parse(key, move || {
            let mut json = PieceWriter::new(memory, raw.len());
            let written = write(&raw, &row, &mut json);
            drop(raw);
            written.map(|()| json.finish())
        });
        written.await?.map_err(|error| write_error(&error))
    }

    /// What `read` finds in the raw data of a message; it is small, compared with that.
    ///
    /// # Errors
    /// As [`full_message`](Self::full_message).
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        message: StoredMessage,
        client: Client,
        read: impl FnOnce(&[u8], &MessageRow) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let message = self.begin(message, client)?;
        let memory = self.reserve(&message, 0).await?;
        let raw = self.read_all(&message).await?;
        let (key, row) = (message.turn_key(), message.row);
        let reading = self.parse(key, move || {
            let found = read(&raw, &row);
            drop((raw, memory));
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
        let digest = self.read(message, client, |raw, _| Digest::of_message(raw)).await?;
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
        let message = self.begin(message, client)?;
        let memory = self.reserve(&message, message.tree()).await?;
        let raw = self.read_all(&message).await?;
        let (document, ..) = self.sanitize(&message, raw, memory, remote).await?;
        document.ok_or(ApiError::NoHtml)
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
        let found = self.parse(message.turn_key(), move || {
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

    /// The memory to parse a message in, with so many bytes besides.
    async fn reserve(&self, message: &Answered, besides: usize) -> Result<RenderMemory, ApiError> {
        self.acquire(message, message.size * RENDERED_COPIES + STRUCTURE + besides).await
    }

    /// Runs `job`, which parses mail or compares much of it, on a blocking thread when its turn at a core has come.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where it does not come; `job` panicked.
    pub(crate) async fn parse<T: Send + 'static>(
        &self,
        key: TurnKey<Party>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let turn = self.gates.parsing.turn(key).await?;
        let parsed = move || {
            let _turn = turn;
            job()
        };
        spawn_blocking(parsed).await
    }

    /// The sanitized HTML of a message, if it has any, with what it was made of. The mailboxes of a client take turns.
    async fn sanitize(
        &self,
        message: &Answered,
        raw: Vec<u8>,
        memory: RenderMemory,
        remote: bool,
    ) -> Result<(Option<Document>, Vec<u8>, RenderMemory), ApiError> {
        let key = TurnKey { member: Party::Id(message.row.inbox), ..message.turn_key() };
        let turn = self.gates.documents.turn(key).await?;
        let sanitized = move || {
            let _turn = turn;
            (Document::of_message(&raw, remote), raw, memory)
        };
        spawn_blocking(sanitized).await
    }

    async fn acquire(&self, message: &Answered, bytes: usize) -> Result<RenderMemory, ApiError> {
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
