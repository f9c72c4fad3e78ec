//! The permits of this process in Redis: under a session that lives while heartbeats arrive.
//!
//! A permit is a member `<session>:<number>` of its key's sorted set, and counts while its session lives. So
//! the permits of a process that was killed are available again when its session expires, and no permit is
//! renewed by itself.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{Cmd, Value, cmd};
use tempmail_model::chance;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::commands::{
    ACQUIRE_PERMIT, COMMAND_TIMEOUT, Commands, Disconnected, HEARTBEAT, MOVE_PERMIT, PERMITS_TTL, RedisKeys,
    SESSIONS_TTL,
};
use crate::local::PermitKey;

/// Time between two heartbeats of a session.
const HEARTBEAT_PERIOD: Duration = Duration::from_secs(1);
/// Time without a heartbeat after which a session expires.
const SESSION_LIFE: Duration = Duration::from_secs(4);
/// Age at which a session is replaced, so that the keys of permits that are held for long do not expire.
const SESSION_AGE_MAX: Duration = Duration::from_secs(12 * 3600);
/// Operations, or permits to move, in one exchange with Redis.
const BATCH: usize = 256;
/// Longest that a caller waits for an operation: the time of a command, and some for what is queued before
/// it.
const OPERATION_TIMEOUT: Duration = COMMAND_TIMEOUT.saturating_add(Duration::from_millis(250));

/// An operation on permits. One that is dropped was not done, and its caller continues without Redis.
#[derive(Debug)]
enum PermitOperation {
    /// Acquires one of `max` permits of `key`; the reply is whether there was one.
    Acquire { number: u64, key: PermitKey, max: usize, reply: oneshot::Sender<bool> },
    /// Releases a permit; drops `done` then.
    Release { number: u64, key: PermitKey, done: Option<oneshot::Sender<()>> },
    /// Releases all permits and ends the session; drops `done` then.
    Close { done: oneshot::Sender<()> },
}

/// The permits that this process holds, by number.
#[derive(Debug, Default)]
struct HeldPermits(Mutex<HashMap<u64, PermitKey>>);

impl HeldPermits {
    fn all(&self) -> Vec<(u64, PermitKey)> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().map(|(&number, &key)| (number, key)).collect()
    }

    fn insert(&self, number: u64, key: PermitKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number, key);
    }

    fn remove(&self, number: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&number).is_some()
    }
}

/// Acquires permits through the session. The queue needs no bound of its own: each operation belongs to a
/// request that waits or to a permit that was held.
#[derive(Debug)]
pub(super) struct PermitClient {
    held: Arc<HeldPermits>,
    operations: UnboundedSender<PermitOperation>,
    next_number: AtomicU64,
}

impl PermitClient {
    /// Acquires one of `max` permits of `key`; `None` if Redis replies that all are in use. Without a reply
    /// the permit counts as acquired.
    pub(super) async fn acquire(&self, key: PermitKey, max: usize) -> Option<RedisPermit> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        // Held from now on: it is released if this future is dropped, and a session that starts before Redis
        // replies includes it.
        self.held.insert(number, key);
        let permit =
            RedisPermit { number, key, held: self.held.clone(), operations: self.operations.clone() };
        let (reply, replied) = oneshot::channel();
        let _ = self.operations.send(PermitOperation::Acquire { number, key, max, reply });
        match timeout(OPERATION_TIMEOUT, replied).await {
            // Released like one that was acquired: a session that started meanwhile included it.
            Ok(Ok(false)) => None,
            Ok(Ok(true) | Err(_)) | Err(_) => Some(permit),
        }
    }

    /// Releases all permits and ends the session.
    pub(super) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.operations.send(PermitOperation::Close { done }).is_ok() {
            let _ = timeout(OPERATION_TIMEOUT, closed).await;
        }
    }
}

/// A permit in Redis, until it is released or dropped.
#[derive(Debug)]
pub(super) struct RedisPermit {
    number: u64,
    key: PermitKey,
    held: Arc<HeldPermits>,
    operations: UnboundedSender<PermitOperation>,
}

impl RedisPermit {
    /// Queues the release at once, before every later `acquire`; the future ends when Redis has done it, or
    /// does not reply.
    pub(super) fn release(self) -> impl Future<Output = ()> {
        let (done, released) = oneshot::channel();
        self.queue_release(Some(done));
        async move {
            let _ = timeout(OPERATION_TIMEOUT, released).await;
        }
    }

    fn queue_release(&self, done: Option<oneshot::Sender<()>>) {
        if self.held.remove(self.number) {
            let (number, key) = (self.number, self.key);
            let _ = self.operations.send(PermitOperation::Release { number, key, done });
        }
    }
}

impl Drop for RedisPermit {
    fn drop(&mut self) {
        self.queue_release(None);
    }
}

/// Does the operations on permits, in their order.
#[derive(Debug)]
pub(super) struct PermitSession {
    keys: Arc<RedisKeys>,
    held: Arc<HeldPermits>,
    operations: UnboundedReceiver<PermitOperation>,
    session: String,
}

impl PermitSession {
    /// A session that is not started, and the client that acquires permits through it.
    pub(super) fn new(keys: Arc<RedisKeys>) -> (PermitClient, Self) {
        let held = Arc::new(HeldPermits::default());
        let (sender, operations) = unbounded_channel();
        let client = PermitClient { held: held.clone(), operations: sender, next_number: AtomicU64::new(0) };
        (client, Self { keys, held, operations, session: String::new() })
    }

    /// Drops every operation, since Redis is unavailable; ends when the bus is closed.
    pub(super) async fn serve_offline(&mut self) {
        while let Some(operation) = self.operations.recv().await {
            if matches!(operation, PermitOperation::Close { .. }) {
                return;
            }
        }
    }

    /// Starts a new session with the permits that are held, and ends the previous one. So Redis has again
    /// what it lost, and no longer has what was released meanwhile.
    pub(super) async fn start(&mut self, commands: &Commands) -> Result<(), Disconnected> {
        let session = chance::uuid().simple().to_string();
        commands.send_one(self.heartbeat(&session, true)).await?;
        let held = self.held.all();
        for permits in held.chunks(BATCH) {
            let moves = permits.iter().map(|&(number, key)| self.move_permit(&session, number, key));
            let batch: Vec<Cmd> = moves.chain([self.heartbeat(&session, true)]).collect();
            commands.send(&batch).await?;
        }
        let previous = std::mem::replace(&mut self.session, session);
        commands.send_one(self.end(&previous)).await?;
        Ok(())
    }

    /// Does operations and keeps the session alive, until the bus is closed.
    pub(super) async fn serve(&mut self, commands: &Commands) -> Result<(), Disconnected> {
        let mut started = Instant::now();
        let mut heartbeats = interval(HEARTBEAT_PERIOD);
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                _ = heartbeats.tick() => {
                    let alive = started.elapsed() < SESSION_AGE_MAX
                        && commands.send_one(self.heartbeat(&self.session, false)).await? == Value::Int(1);
                    if !alive {
                        self.start(commands).await?;
                        started = Instant::now();
                    }
                }
                count = self.operations.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        commands.send_one(self.end(&self.session)).await?;
                        return Ok(());
                    }
                    if self.serve_batch(commands, &mut batch).await? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Does operations together; whether one of them was to close.
    async fn serve_batch(
        &mut self,
        commands: &Commands,
        batch: &mut Vec<PermitOperation>,
    ) -> Result<bool, Disconnected> {
        let mut replies = commands.send(&self.commands_for(batch)).await?;
        if replies.contains(&Value::Int(-1)) {
            // Redis was emptied since the last heartbeat. Acquiring a permit a second time changes nothing.
            self.start(commands).await?;
            replies = commands.send(&self.commands_for(batch)).await?;
        }
        let mut closed = false;
        for (operation, outcome) in batch.drain(..).zip(replies) {
            match operation {
                // A caller that no longer waits released its permit, or will.
                PermitOperation::Acquire { reply, .. } => match outcome {
                    Value::Int(1) => drop(reply.send(true)),
                    Value::Int(0) => drop(reply.send(false)),
                    _ => {}
                },
                PermitOperation::Release { done, .. } => drop(done),
                PermitOperation::Close { done } => {
                    closed = true;
                    drop(done);
                }
            }
        }
        Ok(closed)
    }

    fn commands_for(&self, operations: &[PermitOperation]) -> Vec<Cmd> {
        let command = |operation: &PermitOperation| match *operation {
            PermitOperation::Acquire { number, key, max, .. } => self.acquire(number, key, max),
            PermitOperation::Release { number, key, .. } => self.release(number, key),
            PermitOperation::Close { .. } => self.end(&self.session),
        };
        operations.iter().map(command).collect()
    }

    fn acquire(&self, number: u64, key: PermitKey, max: usize) -> Cmd {
        let mut command = ACQUIRE_PERMIT.run(&[&self.keys.permits(key), &self.keys.sessions()]);
        command.arg(&self.session).arg(number).arg(max).arg(milliseconds(PERMITS_TTL));
        command
    }

    fn release(&self, number: u64, key: PermitKey) -> Cmd {
        let mut command = cmd("ZREM");
        command.arg(self.keys.permits(key)).arg(format!("{}:{number}", self.session));
        command
    }

    /// Moves a permit from the current session to `session`.
    fn move_permit(&self, session: &str, number: u64, key: PermitKey) -> Cmd {
        let mut command = MOVE_PERMIT.run(&[&self.keys.permits(key)]);
        command.arg(session).arg(number).arg(&self.session).arg(milliseconds(PERMITS_TTL));
        command
    }

    fn heartbeat(&self, session: &str, start: bool) -> Cmd {
        let mut command = HEARTBEAT.run(&[&self.keys.sessions()]);
        let (life, ttl) = (milliseconds(SESSION_LIFE), milliseconds(SESSIONS_TTL));
        command.arg(session).arg(life).arg(u8::from(start)).arg(ttl);
        command
    }

    /// Ends a session, and with it all of its permits.
    fn end(&self, session: &str) -> Cmd {
        let mut command = cmd("ZREM");
        command.arg(self.keys.sessions()).arg(session);
        command
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
