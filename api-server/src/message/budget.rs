//! Bounds the memory of answers that are made from raw data: 256 MiB a process.
//!
//! Small messages and large ones have a part each, so what is small never waits for what is large. In each part a
//! client and an inbox have a share; who holds nothing is admitted whatever the size, so each message can be read.
//!
//! An answer is in pieces: each is freed as soon as it is written, and the memory that the answer holds shrinks with it.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use tempmail_admission::{Holder, Share, Shares};
use uuid::Uuid;

use crate::http::client::{Client, Party};
use crate::http::error::ApiError;

/// Bytes of a message that counts as small. Most of its answers are a single piece, which is written after their memory
/// was released.
pub(super) const SMALL_MESSAGE: usize = 64 << 10;

const SMALL_BYTES: usize = 64 << 20;
const LARGE_BYTES: usize = 192 << 20;
/// A client and an inbox may hold one part in this many of the memory.
const PARTS: usize = 4;
/// How long a request waits for memory.
const WITHIN: Duration = Duration::from_secs(5);

/// The gauge of bytes that are held.
const HELD: &str = "tempmail_answer_memory_bytes";

/// The memory that all requests share.
pub(crate) struct RenderBudget {
    small: Part,
    large: Part,
}

/// Who reads, and what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    pub(super) client: Client,
    pub(super) inbox: Uuid,
}

#[derive(Clone)]
struct Part {
    /// As the gauge has it.
    size: &'static str,
    bytes: usize,
    shares: Shares<Party>,
}

/// Memory of an answer; released when dropped.
pub(super) struct RenderMemory {
    part: Part,
    share: Share<Party>,
    /// What turned out to be needed beyond that. It counts in the sum only: what was begun is not refused for its size.
    grown: Share<Party>,
}

impl RenderBudget {
    pub(crate) fn new() -> Self {
        Self { small: Part::new("small", SMALL_BYTES), large: Part::new("large", LARGE_BYTES) }
    }

    /// Memory of `bytes` bytes for a message of `message_bytes`.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where there is none within 5 s.
    pub(super) async fn acquire(
        &self,
        reader: Reader,
        message_bytes: usize,
        bytes: usize,
    ) -> Result<RenderMemory, ApiError> {
        let part = if message_bytes <= SMALL_MESSAGE { &self.small } else { &self.large };
        let cap = part.bytes / PARTS;
        let networks = reader.client.holders(cap).map(|network| network.map(Party::Network));
        let holders = networks.chain([Holder { key: Party::Id(reader.inbox), cap }]);
        let share = part.shares.acquire(holders, bytes.min(part.bytes), WITHIN).await;
        let share = share.map_err(|_exceeded| ApiError::Busy("answer_memory"))?;
        part.report();
        Ok(RenderMemory { part: part.clone(), share, grown: part.shares.open([]) })
    }
}

impl Part {
    fn new(size: &'static str, bytes: usize) -> Self {
        Self { size, bytes, shares: Shares::new(bytes) }
    }

    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    fn report(&self) {
        metrics::gauge!(HELD, "size" => self.size).set(self.shares.held() as f64);
    }
}

impl RenderMemory {
    /// Releases what it holds beyond `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        self.grown.shrink_to(bytes.saturating_sub(self.share.amount()));
        self.share.shrink_to(bytes);
        self.part.report();
    }

    /// Takes more memory, so that it holds `bytes`, if there is some: nothing waits while it holds memory.
    pub(super) fn try_grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.share.amount() + self.grown.amount());
        let has_grown = self.grown.grow(more, 0).is_ok();
        self.part.report();
        has_grown
    }
}

impl Drop for RenderMemory {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// Bytes of a piece.
const PIECE: usize = 64 << 10;

/// Collects an answer while it is made, within the memory that it holds.
pub(crate) struct PieceWriter {
    memory: RenderMemory,
    /// Bytes in use besides those of the answer.
    besides: usize,
    written: usize,
    pieces: Vec<Bytes>,
    last: Vec<u8>,
}

/// A whole answer.
pub(crate) struct Pieces {
    memory: RenderMemory,
    len: usize,
    pieces: Vec<Bytes>,
}

impl PieceWriter {
    /// While `besides` bytes of the memory are in use for something else.
    pub(super) fn new(memory: RenderMemory, besides: usize) -> Self {
        Self { memory, besides, written: 0, pieces: Vec::new(), last: Vec::new() }
    }

    /// Counts `bytes` more as in use for something else.
    ///
    /// # Errors
    /// There is not so much memory.
    pub(crate) fn set_aside(&mut self, bytes: usize) -> io::Result<()> {
        self.besides += bytes;
        self.require(0)
    }

    /// The answer. What was used besides it has to be freed by now.
    pub(super) fn finish(mut self) -> Pieces {
        // Without the rest of its capacity.
        let last = Bytes::from(self.last.into_boxed_slice());
        self.pieces.extend((!last.is_empty()).then_some(last));
        self.memory.shrink_to(self.written);
        Pieces { memory: self.memory, len: self.written, pieces: self.pieces }
    }

    fn require(&mut self, more: usize) -> io::Result<()> {
        if self.memory.try_grow_to(self.besides + self.written + more) {
            Ok(())
        } else {
            Err(io::ErrorKind::OutOfMemory.into())
        }
    }
}

impl io::Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.last.is_empty() {
            self.require(PIECE)?;
        }
        let taken = bytes.len().min(PIECE - self.last.len());
        self.last.extend_from_slice(&bytes[..taken]);
        self.written += taken;
        if self.last.len() == PIECE {
            self.pieces.push(std::mem::take(&mut self.last).into());
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pieces {
    /// The whole answer, with its length.
    pub(crate) fn into_response(self, content_type: &str) -> Response {
        let content_type = HeaderValue::try_from(content_type)
            .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
        let length = self.len;
        let mut response = Response::new(self.into_body());
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        response
    }

    /// A body that releases the memory of each piece when the next one is asked for; one that is a single piece
    /// releases it at once.
    pub(crate) fn into_body(mut self) -> Body {
        if self.pieces.len() <= 1 {
            return self.pieces.pop().map_or_else(Body::empty, Body::from);
        }
        let Self { memory, len, pieces } = self;
        let pieces =
            stream::unfold((pieces.into_iter(), len, memory), |(mut pieces, left, mut memory)| async move {
                memory.shrink_to(left);
                let piece = pieces.next()?;
                let left = left - piece.len();
                Some((Ok::<_, Infallible>(piece), (pieces, left, memory)))
            });
        Body::from_stream(pieces)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;
    use tempmail_runtime::config::Http;

    use super::*;
    use crate::http::client::ClientResolver;

    const LARGE: usize = 25 << 20;

    fn reader(address: &str, inbox: u128) -> Reader {
        let client = ClientResolver::new(&Http::default()).of_connection(address.parse().unwrap());
        Reader { client, inbox: Uuid::from_u128(inbox) }
    }

    async fn acquire(
        budget: &RenderBudget,
        reader: Reader,
        message: usize,
    ) -> Result<RenderMemory, ApiError> {
        budget.acquire(reader, message, 3 * message).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_message_waits_for_no_large_one() {
        let budget = RenderBudget::new();
        let one = acquire(&budget, reader("192.0.2.1", 1), LARGE).await.unwrap();
        let two = acquire(&budget, reader("192.0.2.2", 2), LARGE).await.unwrap();
        let mut third = std::pin::pin!(acquire(&budget, reader("192.0.2.3", 3), LARGE));
        assert!(poll!(third.as_mut()).is_pending());
        assert!(acquire(&budget, reader("192.0.2.1", 1), 1_000).await.is_ok());
        drop(one);
        assert!(third.await.is_ok());
        drop(two);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_and_an_inbox_beyond_their_share_hold_up_nobody_else() {
        let budget = RenderBudget::new();
        let _held = acquire(&budget, reader("192.0.2.1", 1), LARGE).await.unwrap();
        let mut same_client = std::pin::pin!(acquire(&budget, reader("192.0.2.1", 2), LARGE));
        let mut same_inbox = std::pin::pin!(acquire(&budget, reader("192.0.2.2", 1), LARGE));
        assert!(poll!(same_client.as_mut()).is_pending() && poll!(same_inbox.as_mut()).is_pending());
        assert!(acquire(&budget, reader("192.0.2.3", 3), LARGE).await.is_ok());
        assert_eq!(same_client.await.err(), Some(ApiError::Busy("answer_memory")));
        assert_eq!(same_inbox.await.err(), Some(ApiError::Busy("answer_memory")));
    }

    #[tokio::test(start_paused = true)]
    async fn memory_that_is_given_back_is_there_for_those_who_wait() {
        let budget = RenderBudget::new();
        let mut whole = budget.acquire(reader("192.0.2.1", 1), LARGE, LARGE_BYTES).await.unwrap();
        let mut waiting = std::pin::pin!(acquire(&budget, reader("192.0.2.2", 2), LARGE));
        assert!(poll!(waiting.as_mut()).is_pending());
        assert!(!whole.try_grow_to(LARGE_BYTES + 1));
        whole.shrink_to(LARGE_BYTES - 3 * LARGE);
        let second = waiting.await.unwrap();
        assert!(!whole.try_grow_to(LARGE_BYTES));
        drop(second);
        assert!(whole.try_grow_to(LARGE_BYTES), "beyond the share of one client");
        assert_eq!(budget.large.shares.held(), LARGE_BYTES);
        drop(whole);
        assert_eq!(budget.large.shares.held(), 0);
    }
}
