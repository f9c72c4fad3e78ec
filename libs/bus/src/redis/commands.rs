//! The connection for commands: many at a time over one connection, in the order in which they are sent. Scripts are
//! commands that Redis runs as one step; all their times are the server's.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult,
    ServerErrorKind, Value, cmd, from_redis_value,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::limit::RateKey;
use crate::local::PermitKey;

/// Longest that a command may take before Redis counts as unavailable.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_millis(500);
/// Longest that connecting may take.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Commands that may wait to be written before the next caller waits.
const UNWRITTEN_MAX: usize = 1024;

/// Why a connection to Redis ended, for the log. Never includes what was sent, which may be a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Disconnected(Cow<'static, str>);

impl Disconnected {
    pub(super) const fn because(reason: &'static str) -> Self {
        Self(Cow::Borrowed(reason))
    }
}

impl fmt::Display for Disconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&RedisError> for Disconnected {
    fn from(error: &RedisError) -> Self {
        if error.is_io_error() {
            return Self(error.to_string().into());
        }
        // Only the first word of a server's error: the rest may quote the command.
        let code = error.code().map(|code| format!(" ({code})")).unwrap_or_default();
        Self(format!("{}{code}", error.category()).into())
    }
}

/// A connection for commands, until its first error.
pub(super) struct Commands {
    connection: MultiplexedConnection,
    broken: CancellationToken,
    reason: OnceLock<Disconnected>,
}

impl Commands {
    /// Connects, and loads the scripts into the server.
    pub(super) async fn connect(client: &Client) -> Result<Self, Disconnected> {
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(COMMAND_TIMEOUT))
            .set_pipeline_buffer_size(UNWRITTEN_MAX);
        let connection = client.get_multiplexed_async_connection_with_config(&settings).await;
        let connection = connection.map_err(|error| Disconnected::from(&error))?;
        let commands = Self { connection, broken: CancellationToken::new(), reason: OnceLock::new() };
        commands.load_scripts().await.map_err(|error| Disconnected::from(&error))?;
        Ok(commands)
    }

    /// Sends commands together and returns their replies in order. The first error ends the connection, which
    /// [`Commands::broken`] waits for.
    pub(super) async fn send(&self, commands: &[Cmd]) -> Result<Vec<Value>, Disconnected> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let replies = tokio::select! {
            replies = self.send_with_scripts(commands) => replies,
            // Another command timed out: do not wait as long again.
            () = self.broken.cancelled() => return Err(self.reason()),
        };
        replies.map_err(|error| {
            let reason = self.reason.get_or_init(|| Disconnected::from(&error)).clone();
            self.broken.cancel();
            reason
        })
    }

    /// Sends one command.
    pub(super) async fn send_one(&self, command: Cmd) -> Result<Value, Disconnected> {
        Ok(self.send(&[command]).await?.into_iter().next().unwrap_or(Value::Nil))
    }

    /// Waits until the connection is broken.
    pub(super) async fn broken(&self) -> Disconnected {
        self.broken.cancelled().await;
        self.reason()
    }

    fn reason(&self) -> Disconnected {
        self.reason.get().cloned().unwrap_or(Disconnected::because("the connection ended"))
    }

    /// Sends commands, and once more those whose script the server no longer had.
    async fn send_with_scripts(&self, commands: &[Cmd]) -> RedisResult<Vec<Value>> {
        let mut replies = self.send_once(commands).await?;
        let without_script: Vec<usize> =
            (0..replies.len()).filter(|&at| lacks_script(&replies[at])).collect();
        if !without_script.is_empty() {
            self.load_scripts().await?;
            let again: Vec<Cmd> = without_script.iter().map(|&at| commands[at].clone()).collect();
            for (at, reply) in without_script.into_iter().zip(self.send_once(&again).await?) {
                replies[at] = reply;
            }
        }
        replies.into_iter().collect()
    }

    async fn send_once(&self, commands: &[Cmd]) -> RedisResult<Vec<RedisResult<Value>>> {
        let mut pipeline = Pipeline::with_capacity(commands.len());
        for command in commands {
            pipeline.add_command(command.clone());
        }
        pipeline.ignore_errors().query_async(&mut self.connection.clone()).await
    }

    async fn load_scripts(&self) -> RedisResult<()> {
        for script in ALL_SCRIPTS {
            let hash: String = script.load().query_async(&mut self.connection.clone()).await?;
            // A proxy that kept this connection while the server behind it restarted may have lost a reply:
            // from then on each command gets the reply to an earlier one.
            if hash != script.hash() {
                return Err((ErrorKind::UnexpectedReturnType, "a reply to another command").into());
            }
        }
        Ok(())
    }
}

fn lacks_script(reply: &RedisResult<Value>) -> bool {
    reply
        .as_ref()
        .is_err_and(|error: &RedisError| error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
}

/// The connection for commands as callers see it: there while Redis is connected.
#[derive(Default)]
pub(super) struct CommandsHandle(RwLock<Option<Arc<Commands>>>);

impl CommandsHandle {
    /// The connection, unless Redis is unavailable.
    pub(super) fn get(&self) -> Option<Arc<Commands>> {
        let commands = self.0.read().unwrap_or_else(PoisonError::into_inner);
        commands.as_ref().filter(|commands| !commands.broken.is_cancelled()).cloned()
    }

    /// Sends one command; `None` if Redis is unavailable, or does not reply with a `T`.
    pub(super) async fn query<T: FromRedisValue>(&self, command: Cmd) -> Option<T> {
        let reply = self.get()?.send_one(command).await.ok()?;
        from_redis_value(reply).ok()
    }

    pub(super) fn set(&self, commands: Arc<Commands>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(commands);
    }

    pub(super) fn clear(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Time after which the set of sessions expires if no process sends a heartbeat.
pub(super) const SESSIONS_TTL: Duration = Duration::from_secs(60);
/// Time after which the permits of a key expire if no process renews them.
pub(super) const PERMITS_TTL: Duration = Duration::from_secs(24 * 3600);

/// A script, and the hash by which the server knows it.
#[derive(Debug)]
pub(super) struct Script {
    source: &'static str,
    hash: String,
}

impl Script {
    fn new(source: &'static str) -> Self {
        Self { source, hash: redis::Script::new(source).get_hash().to_owned() }
    }

    /// What the server replies to [`load`](Self::load).
    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    /// The command that loads it into the server.
    pub(super) fn load(&self) -> Cmd {
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(self.source);
        command
    }

    /// The command that runs it, once it is loaded; arguments are to be added.
    pub(super) fn run(&self, keys: &[&str]) -> Cmd {
        let mut command = cmd("EVALSHA");
        command.arg(&self.hash).arg(keys.len()).arg(keys);
        command
    }
}

/// Acquires one of the permits of a key.
pub(super) static ACQUIRE_PERMIT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/acquire_permit.lua")));
/// Moves a permit to another session.
pub(super) static MOVE_PERMIT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/move_permit.lua")));
/// Starts a session, or keeps it alive.
pub(super) static HEARTBEAT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/heartbeat.lua")));
/// Counts a request.
pub(super) static COUNT_REQUEST: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/count_request.lua")));
/// Counts a failure.
pub(super) static COUNT_FAILURE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/count_failure.lua")));
/// Uncounts a failure.
pub(super) static UNCOUNT_FAILURE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/uncount_failure.lua")));

/// Every script.
pub(super) static ALL_SCRIPTS: [&LazyLock<Script>; 6] =
    [&ACQUIRE_PERMIT, &MOVE_PERMIT, &HEARTBEAT, &COUNT_REQUEST, &COUNT_FAILURE, &UNCOUNT_FAILURE];

/// Names in Redis of one installation: they share a prefix and a hash tag, and contain ids and digests only.
#[derive(Debug)]
pub(super) struct RedisKeys {
    prefix: String,
}

impl RedisKeys {
    pub(super) fn new(installation: Uuid) -> Self {
        Self { prefix: format!("{{tempmail:{}}}", installation.simple()) }
    }

    /// The channel of arrivals.
    pub(super) fn arrivals(&self) -> String {
        format!("{}:arrivals", self.prefix)
    }

    /// The sorted set of live sessions, by the time at which each of them expires.
    pub(super) fn sessions(&self) -> String {
        format!("{}:sessions", self.prefix)
    }

    /// The sorted set of permits in use under a key: `<session>:<number>`, by the time at which each was
    /// acquired.
    pub(super) fn permits(&self, key: PermitKey) -> String {
        let name = match key {
            PermitKey::TokenWaits(token) => format!("token-waits:{}", token.simple()),
            PermitKey::TokenStreams(token) => format!("token-streams:{}", token.simple()),
            PermitKey::MailboxSockets(mailbox) => format!("mailbox-sockets:{}", mailbox.simple()),
            PermitKey::AddressWaits { tenant, address } => {
                format!("address-waits:{}:{}", tenant.simple(), address.simple())
            }
        };
        format!("{}:permits:{name}", self.prefix)
    }

    /// The time until which the requests of a key are used up.
    pub(super) fn rate(&self, limit: &str, key: RateKey) -> String {
        format!("{}:rate:{limit}:{}", self.prefix, key.as_uuid().simple())
    }

    /// The number of failures within the window of a key.
    pub(super) fn failures(&self, limit: &str, key: RateKey) -> String {
        format!("{}:failures:{limit}:{}", self.prefix, key.as_uuid().simple())
    }
}
