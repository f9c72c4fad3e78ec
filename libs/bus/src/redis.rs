//! The bus of processes that share a Redis: a [`LocalBus`] in each of them, and what they share.
//!
//! The process' own limits decide first, then Redis, while it is connected. It counts as connected while
//! commands are answered within 500 ms and a probe comes back over the channel within 2 s; otherwise both
//! connections are dropped and reestablished (after waits of at most 1 s), limits hold in each process alone
//! until then, and no request waits for Redis. So at most as many permits and requests are granted as there
//! are processes times the limit.
//!
//! Redis holds nothing that is not recreated by itself. It knows ids and digests only.

mod channel;
mod commands;
mod connection;
mod permit_session;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{Client, IntoConnectionInfo as _, RedisResult};
use tempmail_model::chance;
use tempmail_model::message::Arrival;
use tokio::sync::oneshot;
use uuid::Uuid;

use self::channel::{Outbox, Publisher, count_dropped};
use self::commands::{COUNT_FAILURE, COUNT_REQUEST, CommandsHandle, RedisKeys, UNCOUNT_FAILURE};
use self::connection::Connection;
use self::permit_session::{PermitClient, PermitSession, RedisPermit};
use crate::limit::{Attempt, FailureLimit, RateDecision, RateKey, RateLimit, check_all};
use crate::local::{AcquiredPermit, LocalBus, LocalPermit, Permit, PermitKey};
use crate::{ArrivalReceiver, Bus};

/// After this time without a packet the kernel asks whether the server's machine is there.
const KEEPALIVE_PERIOD: Duration = Duration::from_secs(5);
/// How long the kernel waits for the acknowledgement of what was sent.
const USER_TIMEOUT: Duration = Duration::from_secs(10);

/// The URL is not one of Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a URL of Redis, such as redis://user:password@host:6379/0")]
pub struct InvalidRedisUrl;

/// A bus over Redis; see the module.
pub struct RedisBus {
    local: Arc<LocalBus>,
    keys: Arc<RedisKeys>,
    commands: Arc<CommandsHandle>,
    permits: PermitClient,
    outbox: Outbox,
}

impl RedisBus {
    /// Connects to the Redis at `url` (`redis:`, `rediss:` for TLS, `unix:` for a socket), which other
    /// installations may use too, and returns when the first try has succeeded or failed. Further tries
    /// follow in the background.
    ///
    /// # Errors
    /// [`InvalidRedisUrl`].
    pub async fn connect(url: &str, installation: Uuid) -> Result<Self, InvalidRedisUrl> {
        let client = client(url).map_err(|_| InvalidRedisUrl)?;
        let keys = Arc::new(RedisKeys::new(installation));
        let (channel, sender) = (keys.arrivals(), chance::uuid());
        let local = Arc::new(LocalBus::new());
        let commands = Arc::<CommandsHandle>::default();
        let (permits, session) = PermitSession::new(keys.clone());
        let (outbox, publisher) = Publisher::new(channel.clone(), sender);
        let (first_try, tried) = oneshot::channel();
        let connection = Connection {
            client,
            channel,
            sender,
            local: local.clone(),
            commands: commands.clone(),
            permits: session,
            publisher,
            first_try: Some(first_try),
        };
        tokio::spawn(connection.run());
        // The other end is dropped, never used.
        let _ = tried.await;
        Ok(Self { local, keys, commands, permits, outbox })
    }

    /// Whether limits hold over all processes now.
    pub fn is_connected(&self) -> bool {
        self.commands.get().is_some()
    }

    /// Counts a request in Redis; `None` if it is unavailable.
    async fn count_request(&self, counted: &[(&RateLimit, RateKey)]) -> Option<RateDecision> {
        let keys: Vec<_> = counted.iter().map(|(limit, key)| self.keys.rate(limit.name(), *key)).collect();
        let mut command = COUNT_REQUEST.run(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        for (limit, _) in counted {
            command.arg(microseconds(limit.period()).max(1)).arg(limit.limit());
        }
        let (decided_by, allowed, remaining, wait): (usize, bool, u32, u64) =
            self.commands.query(command).await?;
        let (limit, _) = counted.get(decided_by)?;
        Some(limit.decision(allowed, remaining, Duration::from_micros(wait)))
    }

    /// Counts a failure in Redis, or returns the time until the window ends; `None` if it is unavailable.
    async fn count_failure(&self, limit: &FailureLimit, key: RateKey) -> Option<Result<(), Duration>> {
        let mut command = COUNT_FAILURE.run(&[&self.keys.failures(limit.name(), key)]);
        command.arg(limit.max_failures()).arg(microseconds(limit.window()).div_ceil(1000).max(1));
        let wait: i64 = self.commands.query(command).await?;
        Some(u64::try_from(wait).map_or(Ok(()), |wait| Err(Duration::from_millis(wait))))
    }

    /// Uncounts a failure in Redis, if it is connected.
    fn uncount_failure(&self, limit: &FailureLimit, key: RateKey) -> BoxFuture<'static, ()> {
        let command = UNCOUNT_FAILURE.run(&[&self.keys.failures(limit.name(), key)]);
        let commands = Arc::clone(&self.commands);
        async move {
            let _: Option<u64> = commands.query(command).await;
        }
        .boxed()
    }
}

impl Bus for RedisBus {
    fn publish(&self, arrivals: Vec<Arrival>) {
        // An empty batch would announce a loss.
        if arrivals.is_empty() {
            return;
        }
        let arrivals: Arc<[Arrival]> = arrivals.into();
        if let Err(dropped) = self.outbox.try_send(arrivals.clone()) {
            count_dropped(dropped.into_inner().len());
        }
        self.local.deliver(arrivals);
    }

    fn subscribe(&self) -> ArrivalReceiver {
        self.local.subscribe()
    }

    fn acquire(&self, key: PermitKey, max: usize) -> BoxFuture<'_, Option<Permit>> {
        async move {
            let local = self.local.try_acquire(key, max)?;
            let redis = self.permits.acquire(key, max).await?;
            Some(Permit::new(SharedPermit { redis, local }))
        }
        .boxed()
    }

    fn check_rates<'a>(
        &'a self,
        counted: Vec<(&'a RateLimit, RateKey)>,
    ) -> BoxFuture<'a, Option<RateDecision>> {
        async move {
            let local = check_all(&counted)?;
            if !local.allowed {
                return Some(local);
            }
            Some(self.count_request(&counted).await.unwrap_or(local))
        }
        .boxed()
    }

    fn begin_attempt<'a>(
        &'a self,
        limit: &'a FailureLimit,
        key: RateKey,
    ) -> BoxFuture<'a, Result<Attempt, Duration>> {
        async move {
            let attempt = limit.begin_attempt(key)?;
            match self.count_failure(limit, key).await {
                Some(Ok(())) => Ok(attempt.also_counted(self.uncount_failure(limit, key))),
                Some(Err(wait)) => {
                    attempt.uncount().await;
                    Err(wait)
                }
                None => Ok(attempt),
            }
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.permits.close().boxed()
    }
}

impl fmt::Debug for RedisBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBus").field("is_connected", &self.is_connected()).finish_non_exhaustive()
    }
}

/// A permit of this process and of Redis.
#[derive(Debug)]
struct SharedPermit {
    /// Dropped first: whoever acquires the local permit next comes after this release in Redis too.
    redis: RedisPermit,
    local: LocalPermit,
}

impl AcquiredPermit for SharedPermit {
    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        let Self { redis, local } = *self;
        let released = redis.release();
        drop(local);
        released.boxed()
    }
}

/// The client for a URL. Its error may quote the URL, which contains a password.
fn client(url: &str) -> RedisResult<Client> {
    let server = url.into_connection_info()?;
    // Setting the library's name is one more command, and one more right to grant.
    let settings = server.redis_settings().clone().set_skip_set_lib_name();
    // Commands and probes have their own ends; this frees what the kernel keeps of a connection to a machine that is
    // gone.
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_PERIOD).with_interval(KEEPALIVE_PERIOD);
    let socket = TcpSettings::default().set_keepalive(keepalive).set_user_timeout(USER_TIMEOUT);
    Client::open(server.set_redis_settings(settings).set_tcp_settings(socket))
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
