//! Bounds the memory of answers that are made from raw data: 256 MiB a process.
//!
//! Small messages and large ones have a part each, so what is small never waits for what is large. In each part a
//! client and an inbox have a share; who holds nothing is admitted whatever the size, so each message can be read.
//! Beyond its share a reader waits for itself only: those behind it go on.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use uuid::Uuid;

use crate::http::client::{Client, Party};
use crate::http::error::ApiError;

/// Bytes of a message that counts as small. Most of its answers are a single piece, which is written after their memory
/// was released.
pub(super) const SMALL_MESSAGE: usize = 64 << 10;

const SMALL_BYTES: usize = 64 << 20;
const LARGE_BYTES: usize = 192 << 20;
/// A client and an inbox may hold one part in this many of the memory.
const SHARES: usize = 4;
/// Requests of a client that may wait for memory.
const WAITING_PER_CLIENT: usize = 16;
/// How long a request waits for memory.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The gauge of bytes that are held.
const HELD: &str = "tempmail_answer_memory_bytes";

/// The memory that all requests share.
pub(crate) struct MemoryBudget {
    small: Arc<Pool>,
    large: Arc<Pool>,
}

/// Who reads, and what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    pub(super) client: Client,
    pub(super) inbox: Uuid,
}

impl Reader {
    /// Clients without limits have no share.
    fn parties(self) -> impl Iterator<Item = Party> {
        let client = (!self.client.unlimited).then_some(Party::Network(self.client.origin.narrowest()));
        client.into_iter().chain([Party::Id(self.inbox)])
    }
}

/// One part of the memory.
struct Pool {
    size: &'static str,
    bytes: usize,
    state: Mutex<PoolState>,
}

struct PoolState {
    free: usize,
    held: HashMap<Party, usize>,
    /// In the order of their arrival.
    waiting: VecDeque<QueuedRequest>,
}

struct QueuedRequest {
    reader: Reader,
    bytes: usize,
    granted: oneshot::Sender<MemoryPermit>,
}

/// What a request waits with; dropping it leaves the queue.
struct AwaitedGrant {
    pool: Arc<Pool>,
    granted: oneshot::Receiver<MemoryPermit>,
}

/// Memory of an answer; released when dropped.
pub(super) struct MemoryPermit {
    pool: Arc<Pool>,
    reader: Reader,
    bytes: usize,
}

impl MemoryBudget {
    pub(crate) fn new() -> Self {
        Self { small: Pool::new("small", SMALL_BYTES), large: Pool::new("large", LARGE_BYTES) }
    }

    /// Memory of `bytes` bytes for a message of `message_bytes`.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where there is none within 5 s, or too many requests of the client wait for it.
    pub(super) async fn acquire(
        &self,
        reader: Reader,
        message_bytes: usize,
        bytes: usize,
    ) -> Result<MemoryPermit, ApiError> {
        let pool = if message_bytes <= SMALL_MESSAGE { &self.small } else { &self.large };
        let mut awaited = pool.enqueue(reader, bytes.min(pool.bytes))?;
        match tokio::time::timeout(TIMEOUT, &mut awaited.granted).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(ApiError::Busy("answer_memory")),
        }
    }
}

impl Pool {
    fn new(size: &'static str, bytes: usize) -> Arc<Self> {
        let state = PoolState { free: bytes, held: HashMap::new(), waiting: VecDeque::new() };
        Arc::new(Self { size, bytes, state: Mutex::new(state) })
    }

    fn enqueue(self: &Arc<Self>, reader: Reader, bytes: usize) -> Result<AwaitedGrant, ApiError> {
        let (granted, receiver) = oneshot::channel();
        let mut state = self.lock();
        state.waiting.retain(|waiting| !waiting.granted.is_closed());
        let of_client =
            state.waiting.iter().filter(|waiting| waiting.reader.client.origin == reader.client.origin);
        if !reader.client.unlimited && of_client.count() >= WAITING_PER_CLIENT {
            return Err(ApiError::Busy("answer_memory_of_client"));
        }
        state.waiting.push_back(QueuedRequest { reader, bytes, granted });
        self.grant(state);
        Ok(AwaitedGrant { pool: Arc::clone(self), granted: receiver })
    }

    /// Grants what can be granted. Who waits for its own share is passed over; who waits for the pool is not, or
    /// large answers would wait forever.
    fn grant(self: &Arc<Self>, mut state: MutexGuard<'_, PoolState>) {
        let mut granted = Vec::new();
        let mut at = 0;
        while let Some(waiting) = state.waiting.get(at) {
            if waiting.granted.is_closed() {
                state.waiting.remove(at);
            } else if !state.is_within_shares(waiting, self.bytes / SHARES) {
                at += 1;
            } else if waiting.bytes > state.free {
                break;
            } else if let Some(QueuedRequest { reader, bytes, granted: sender }) = state.waiting.remove(at) {
                state.add(reader, bytes);
                granted.push((sender, MemoryPermit { pool: Arc::clone(self), reader, bytes }));
            }
        }
        self.report(&state);
        // A permit whose request has ended meanwhile is dropped, which locks the state.
        drop(state);
        for (sender, permit) in granted {
            let _ = sender.send(permit);
        }
    }

    fn release(self: &Arc<Self>, reader: Reader, bytes: usize) {
        let mut state = self.lock();
        state.subtract(reader, bytes);
        self.grant(state);
    }

    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    fn report(&self, state: &PoolState) {
        metrics::gauge!(HELD, "size" => self.size).set((self.bytes - state.free) as f64);
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn is_within_shares(&self, waiting: &QueuedRequest, share: usize) -> bool {
        waiting
            .reader
            .parties()
            .all(|party| self.held.get(&party).is_none_or(|held| held + waiting.bytes <= share))
    }

    fn add(&mut self, reader: Reader, bytes: usize) {
        self.free -= bytes;
        for party in reader.parties() {
            *self.held.entry(party).or_default() += bytes;
        }
    }

    fn subtract(&mut self, reader: Reader, bytes: usize) {
        self.free += bytes;
        for party in reader.parties() {
            if let Some(held) = self.held.get_mut(&party) {
                *held -= bytes;
                if *held == 0 {
                    self.held.remove(&party);
                }
            }
        }
    }
}

impl Drop for AwaitedGrant {
    fn drop(&mut self) {
        // For those behind a request that gave up there may be enough.
        self.granted.close();
        self.pool.grant(self.pool.lock());
    }
}

impl MemoryPermit {
    /// Releases what it holds beyond `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        if bytes < self.bytes {
            let excess = self.bytes - bytes;
            self.bytes = bytes;
            self.pool.release(self.reader, excess);
        }
    }

    /// Takes more memory, so that it holds `bytes`, if there is some: nothing waits while it holds memory.
    pub(super) fn try_grow_to(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes) else { return true };
        let mut state = self.pool.lock();
        if more > state.free {
            return false;
        }
        state.add(self.reader, more);
        self.pool.report(&state);
        self.bytes = bytes;
        true
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.pool.release(self.reader, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use tempmail_runtime::config::Http;

    use super::*;
    use crate::http::client::ClientResolver;

    const LARGE: usize = 25 << 20;

    fn reader(address: &str, inbox: u128) -> Reader {
        let client = ClientResolver::new(&Http::default()).of_connection(address.parse().unwrap());
        Reader { client, inbox: Uuid::from_u128(inbox) }
    }

    async fn acquire(
        budget: &MemoryBudget,
        reader: Reader,
        message: usize,
    ) -> Result<MemoryPermit, ApiError> {
        budget.acquire(reader, message, 3 * message).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_message_waits_for_no_large_one() {
        let budget = MemoryBudget::new();
        let one = acquire(&budget, reader("192.0.2.1", 1), LARGE).await.unwrap();
        let two = acquire(&budget, reader("192.0.2.2", 2), LARGE).await.unwrap();
        let mut third = std::pin::pin!(acquire(&budget, reader("192.0.2.3", 3), LARGE));
        assert!(futures_util::poll!(third.as_mut()).is_pending());
        assert!(acquire(&budget, reader("192.0.2.1", 1), 1_000).await.is_ok());
        drop(one);
        assert!(third.await.is_ok());
        drop(two);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_and_an_inbox_beyond_their_share_hold_up_nobody_else() {
        let budget = MemoryBudget::new();
        let _held = acquire(&budget, reader("192.0.2.1", 1), LARGE).await.unwrap();
        let mut same_client = std::pin::pin!(acquire(&budget, reader("192.0.2.1", 2), LARGE));
        let mut same_inbox = std::pin::pin!(acquire(&budget, reader("192.0.2.2", 1), LARGE));
        assert!(futures_util::poll!(same_client.as_mut()).is_pending());
        assert!(futures_util::poll!(same_inbox.as_mut()).is_pending());
        assert!(acquire(&budget, reader("192.0.2.3", 3), LARGE).await.is_ok());
        assert_eq!(same_client.await.err(), Some(ApiError::Busy("answer_memory")));
        assert_eq!(same_inbox.await.err(), Some(ApiError::Busy("answer_memory")));
    }

    #[tokio::test(start_paused = true)]
    async fn memory_that_is_given_back_is_there_for_those_who_wait() {
        let budget = MemoryBudget::new();
        let (one, two) = (reader("192.0.2.1", 1), reader("192.0.2.2", 2));
        let mut whole = budget.acquire(one, LARGE, LARGE_BYTES).await.unwrap();
        let mut waiting = std::pin::pin!(acquire(&budget, two, LARGE));
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        assert!(!whole.try_grow_to(LARGE_BYTES + 1));
        whole.shrink_to(LARGE_BYTES - 3 * LARGE);
        let second = waiting.await.unwrap();
        assert!(!whole.try_grow_to(LARGE_BYTES));
        drop(second);
        assert!(whole.try_grow_to(LARGE_BYTES));
        drop(whole);
        let state = budget.large.lock();
        assert_eq!((state.free, state.held.len(), state.waiting.len()), (LARGE_BYTES, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_holds_up_nobody_behind() {
        let budget = MemoryBudget::new();
        let _held = budget.acquire(reader("192.0.2.1", 1), LARGE, LARGE_BYTES / 2).await.unwrap();
        let mut first = Box::pin(budget.acquire(reader("192.0.2.2", 2), LARGE, LARGE_BYTES));
        assert!(futures_util::poll!(first.as_mut()).is_pending());
        let mut second = std::pin::pin!(acquire(&budget, reader("192.0.2.3", 3), LARGE));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        drop(first);
        assert!(futures_util::poll!(second.as_mut()).is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn bounds_the_requests_of_a_client_that_wait() {
        let budget = MemoryBudget::new();
        let _held = acquire(&budget, reader("192.0.2.1", 0), LARGE).await.unwrap();
        let mut waiting = Vec::new();
        for inbox in 1..=WAITING_PER_CLIENT {
            let mut one = Box::pin(acquire(&budget, reader("192.0.2.1", inbox as u128), LARGE));
            assert!(futures_util::poll!(one.as_mut()).is_pending());
            waiting.push(one);
        }
        let refused = acquire(&budget, reader("192.0.2.1", 99), LARGE).await;
        assert_eq!(refused.err(), Some(ApiError::Busy("answer_memory_of_client")));
        drop(waiting);
        let again = acquire(&budget, reader("192.0.2.1", 99), LARGE).await;
        assert_eq!(again.err(), Some(ApiError::Busy("answer_memory")));
    }
}
