//! The connection for commands: many at a time over one, in the order they are sent.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value,
};
use tokio_util::sync::CancellationToken;

use super::away::Away;
use super::name::Names;
use super::script;

/// Longest that a command may take before Redis counts as away.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_millis(500);
/// Longest that connecting may take.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Commands that may wait to be written before the next caller waits.
const UNWRITTEN: usize = 1024;

/// One connection, until its first error.
pub(super) struct Commands {
    connection: MultiplexedConnection,
    broken: CancellationToken,
    why: OnceLock<Away>,
}

impl Commands {
    /// Connects, and gives the server the scripts.
    pub(super) async fn connect(client: &Client) -> Result<Self, Away> {
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(COMMAND_TIMEOUT))
            .set_pipeline_buffer_size(UNWRITTEN);
        let connection = client.get_multiplexed_async_connection_with_config(&settings).await;
        let connection = connection.map_err(|error| Away::from(&error))?;
        let commands = Self { connection, broken: CancellationToken::new(), why: OnceLock::new() };
        commands.load_scripts().await.map_err(|error| Away::from(&error))?;
        Ok(commands)
    }

    /// Sends commands together and gives their answers in order. The first error is the end of
    /// the connection: [`Commands::broken`] tells.
    pub(super) async fn send(&self, commands: &[Cmd]) -> Result<Vec<Value>, Away> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let answered = tokio::select! {
            answered = self.send_twice(commands) => answered,
            // Another command ran into its timeout: this one need not.
            () = self.broken.cancelled() => return Err(self.why()),
        };
        answered.map_err(|error| {
            let why = self.why.get_or_init(|| Away::from(&error)).clone();
            self.broken.cancel();
            why
        })
    }

    /// Sends one command.
    pub(super) async fn send_one(&self, command: Cmd) -> Result<Value, Away> {
        Ok(self.send(&[command]).await?.into_iter().next().unwrap_or(Value::Nil))
    }

    /// Ends when the connection broke.
    pub(super) async fn broken(&self) -> Away {
        self.broken.cancelled().await;
        self.why()
    }

    fn why(&self) -> Away {
        self.why.get().cloned().unwrap_or(Away::because("the connection ended"))
    }

    /// Again what met a server that lost the scripts.
    async fn send_twice(&self, commands: &[Cmd]) -> RedisResult<Vec<Value>> {
        let mut answers = self.send_once(commands).await?;
        let unknown: Vec<usize> = (0..answers.len()).filter(|&at| lacks_script(&answers[at])).collect();
        if !unknown.is_empty() {
            self.load_scripts().await?;
            let again: Vec<Cmd> = unknown.iter().map(|&at| commands[at].clone()).collect();
            for (at, answer) in unknown.into_iter().zip(self.send_once(&again).await?) {
                answers[at] = answer;
            }
        }
        answers.into_iter().collect()
    }

    async fn send_once(&self, commands: &[Cmd]) -> RedisResult<Vec<RedisResult<Value>>> {
        let mut pipeline = Pipeline::with_capacity(commands.len());
        for command in commands {
            pipeline.add_command(command.clone());
        }
        pipeline.ignore_errors().query_async(&mut self.connection.clone()).await
    }

    async fn load_scripts(&self) -> RedisResult<()> {
        for script in script::ALL {
            let answer: String = script.load().query_async(&mut self.connection.clone()).await?;
            // A proxy that kept this connection while the server behind it was restarted may have
            // lost an answer: from then on each command is given that of another.
            if answer != script.hash() {
                return Err((ErrorKind::UnexpectedReturnType, "an answer to another command").into());
            }
        }
        Ok(())
    }
}

fn lacks_script(answer: &RedisResult<Value>) -> bool {
    answer
        .as_ref()
        .is_err_and(|error: &RedisError| error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
}

/// What callers see of Redis: the connection while it is well, else nothing.
pub(super) struct Gate {
    names: Arc<Names>,
    commands: RwLock<Option<Arc<Commands>>>,
}

impl Gate {
    pub(super) fn new(names: Arc<Names>) -> Self {
        Self { names, commands: RwLock::default() }
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    /// The connection, unless Redis is away.
    pub(super) fn commands(&self) -> Option<Arc<Commands>> {
        let commands = self.commands.read().unwrap_or_else(PoisonError::into_inner);
        commands.as_ref().filter(|commands| !commands.broken.is_cancelled()).cloned()
    }

    pub(super) fn open(&self, commands: Arc<Commands>) {
        *self.commands.write().unwrap_or_else(PoisonError::into_inner) = Some(commands);
    }

    pub(super) fn close(&self) {
        *self.commands.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
